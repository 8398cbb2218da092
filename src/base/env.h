/* Every environment variable the library reads, in one table, so that `mica
 * doctor` and the documentation can list them. */
#ifndef MICA_BASE_ENV_H
#define MICA_BASE_ENV_H

#include <stddef.h>

#define MICA__ENV_LIST(X)                                                                                         \
    X(DEVICE, "MICA_DEVICE", "backend of engines that do not name one: cpu, metal, ref")                          \
    X(THREADS, "MICA_THREADS", "threads of engines that do not name a number")                                    \
    X(CPU, "MICA_CPU", "use no more of the CPU than: scalar, avx2, avx512, neon, ...")                            \
    X(PREPACK, "MICA_PREPACK", "0: weights are packed again at every product")                                    \
    X(ACCELERATE, "MICA_ACCELERATE", "0: large products without Apple's Accelerate; or the path of another BLAS") \
    X(METAL_LIB, "MICA_METAL_LIB", "a library to load instead of the system's Metal: softmetal")                  \
    X(CACHE, "MICA_CACHE", "a folder for compiled GPU kernels and what mica tune finds, or off")                  \
    X(CAPTURE, "MICA_CAPTURE", "a .gputrace file: what an engine runs on the GPU, captured")                      \
    X(DUMP, "MICA_DUMP", "print to stderr at each new plan: graph,simple,plan,kernels,msl")                       \
    X(PASSES, "MICA_PASSES", "passes to run: all, none, or fold,algebra,movement,cse,fuse,order,inplace")

typedef enum mica__env_name {
#define X(id, name, text) MICA__ENV_##id,
    MICA__ENV_LIST(X)
#undef X
        MICA__ENV_COUNT
} mica__env_name;

/* The value, or NULL when it is not set or empty. */
const char *mica__env(mica__env_name name);
const char *mica__env_title(mica__env_name name);
const char *mica__env_help(mica__env_name name);
/* Is word one of the comma-separated words of list? list may be NULL. */
int mica__env_has_word(const char *list, const char *word);

#endif
