/* A kernel as Metal shader text, and how to start it. Sizes, strides and constants are
 * not in the text but in words that go with a launch, so that one compiled kernel
 * serves every shape; where a stride is 0 or 1 the text says so, because it is cheap. */
#ifndef MICA_CODEGEN_EMIT_MSL_H
#define MICA_CODEGEN_EMIT_MSL_H

#include "codegen/kernel.h"

enum {
    MICA__MSL_MAX_BUFFERS = 29, /* Metal's 31 without those for the words and the mica_fault */
    MICA__MSL_MAX_CHECKED = 1 << 18, /* elements of a kernel that checks indices      */
    MICA__MSL_MAX_WORDS = 1024  /* what setBytes takes                      */
};

/* Threads and elements that a device likes; counts of threads are powers of two. */
typedef struct mica__msl_shape {
    uint32_t threads;           /* of a group where a thread has elements of its own      */
    uint32_t each;              /* so many of them, where they lie side by side           */
    uint32_t fold_threads;      /* of a group that folds a row together, at most          */
    uint32_t fold_each;         /* folded elements of such a thread, at least             */
    uint32_t part, parts;       /* elements of a part of a long fold, at least; parts, at most */
} mica__msl_shape;
/* What gpu_tune.def has first, for whoever prints without a device. */
extern const mica__msl_shape mica__msl_usual;

typedef struct mica__msl_launch {
    uint32_t block[MICA__MSL_MAX_BUFFERS]; /* of the plan; number i is [[buffer(i)]]       */
    int64_t offset[MICA__MSL_MAX_BUFFERS]; /* in bytes, where it is bound: 0, or less where strides go back */
    uint32_t n_buffer;
    uint32_t word[MICA__MSL_MAX_WORDS];    /* [[buffer(n_buffer)]], if there are any       */
    uint32_t n_word;
    uint32_t groups[3], threads;           /* the grid; threads in x of a threadgroup      */
    bool by_group;                         /* the grid stays, however many threads a group has */
    bool checks;                           /* indices: after the buffers, before the words, is a mica_fault, and
                                            * the grid is one threadgroup                  */
} mica__msl_launch;

/* `kernel void name(...)`, without mica_msl.h, which goes before it. MICA_ERR_UNSUPPORTED for f64,
 * which Metal does not have. launch may be NULL. */
mica_status mica__emit_msl(const mica__kernel *k, const mica__msl_shape *shape, const char *name, mica__text *text,
                           mica__msl_launch *launch);

/* Does it check indices? */
bool mica__msl_checks(const mica__kernel *k);

/* A long fold of few results in two kernels: threadgroups fold parts of it, one folds what they have. How many
 * parts, by sizes and the shape alone; 1: it is one kernel. */
int64_t mica__msl_fold_parts(const mica__msl_shape *shape, int64_t results, int64_t folded);
/* Kernel `stage` of those, 1 or 2; its last buffer is the parts, results * parts values of at most 8 bytes in
 * block scratch. */
mica_status mica__emit_msl_parts(const mica__kernel *k, const mica__msl_shape *shape, int stage, uint32_t scratch,
                                 const char *name, mica__text *text, mica__msl_launch *launch);

/* The epilogue of a family, to go before the text of its kernels (kernels/common/common.metal): a function of
 * an element of the anchor's result and its number that returns what it stored last, and the arguments that a kernel with 3 to 8 buffers of its
 * own has in addition. Its words follow the kernel's parameters; launch->groups and threads mean nothing. */
mica_status mica__emit_msl_epilogue(const mica__kernel *k, mica__text *text, mica__msl_launch *launch);
/* Why there is none; NULL: there is. */
const char *mica__msl_epilogue_refused(const mica__kernel *k);

#endif
