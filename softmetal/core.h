/* The core of softmetal: compiles Metal Shading Language text to kernels that run on this
 * CPU. It does not use Objective-C; softmetal/objc and softmetal/metal implement the Metal
 * API on top of this header, and tests call it directly.
 *
 *     sm_library *library = sm_library_open(text, length, &options, &message);
 *     sm_kernel *kernel = sm_kernel_build(library, "add", constants, n, &message);
 *     sm_status status = sm_kernel_run(kernel, &dispatch, &message);
 *
 * Opening translates and checks the whole text; building specialises one kernel,
 * compiles it with clang and loads it (disk cache: SM_CACHE, else
 * $XDG_CACHE_HOME/softmetal, else ~/.cache/softmetal). A failure stores an error message
 * in *message, to be released with free(); it names the line of the .metal text if one
 * is known. On success *message is NULL, or the compiler's warnings. No function
 * prints, exits or aborts.
 *
 * All functions may be called from several threads. A library or a kernel must
 * outlive the calls that use it; a kernel keeps what it needs of its library.
 *
 * Environment, read at each call; the last line is read once (README.md: what each mode finds):
 *     SM_SEED=n        shuffled schedules of threads, simdgroups and threadgroups
 *     SM_CHECK=1       races, bounds, uninitialised threadgroup memory, arithmetic
 *     SM_CHECK=simdgroup   the same, with the lanes of a simdgroup in order
 *     SM_MATH=precise|fast|fuzz   how default math functions and contraction behave
 *     SM_COUNT=file    what kernels cost on an Apple GPU, one line of JSON for each dispatch
 *     SM_MAXTHREADS=n  the limit of threads per threadgroup that kernels report
 *     SM_WORKERS=n     OS threads that run threadgroups; default: all cores
 *     SM_TIMEOUT=s     seconds after which a run is ended with an error (default 20)
 *     SM_CLANG=path, SM_CACHE=dir|off    the compiler, the disk cache */
#ifndef SOFTMETAL_CORE_H
#define SOFTMETAL_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "count/counts.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SM_API __attribute__((visibility("default")))

enum { SM_BUFFERS = 31, SM_SIMD_WIDTH = 32, SM_MAX_THREADS = 1024, SM_MAX_THREADGROUP_BYTES = 32768 };

typedef enum sm_status {
    SM_OK = 0,
    SM_INVALID, /* the call or the dispatch breaks a rule of the API */
    SM_FAULT,   /* the kernel accessed memory outside its buffers, or divided by zero */
    SM_CHECKED, /* a checking mode found a race, a hazard, a barrier misuse, ... */
    SM_TIMEOUT, /* SM_TIMEOUT exceeded: an endless kernel */
    SM_MEMORY   /* out of memory */
} sm_status;

typedef struct sm_library sm_library;
typedef struct sm_kernel sm_kernel;

/* ---- libraries ------------------------------------------------------------- */

typedef struct sm_define {
    const char *name, *value; /* value NULL or "": defined as nothing */
} sm_define;

/* Which variant a math function without a namespace is: exp is fast::exp or precise::exp. */
typedef enum sm_functions {
    SM_FUNCTIONS_AS_MATH, /* fast with fast_math, else precise */
    SM_FUNCTIONS_FAST,
    SM_FUNCTIONS_PRECISE
} sm_functions;

typedef struct sm_options {
    const sm_define *defines;
    int defines_count;
    bool fast_math;       /* Metal's default is true */
    sm_functions functions; /* mathFloatingPointFunctions */
    int language_version; /* 0x30000 = 3.0, as MTLLanguageVersion; 0: the newest known */
    const char *file;     /* the name used in messages; NULL: "program_source" */
    const char *include;  /* folders for #include "...", separated by ':'; NULL: none */
    bool unchecked;       /* compile errors are reported when a kernel is built, not when the library is opened */
} sm_options;

/* Returns NULL if a compiler is available, else the reason why not (not to be freed). */
SM_API const char *sm_unavailable(void);

/* options NULL: no defines, fast math, newest language. NULL on failure. */
SM_API sm_library *sm_library_open(const char *source, size_t length, const sm_options *options, char **message);
SM_API void sm_library_close(sm_library *library);

/* Returns the errors of Apple's compiler for the text of such a library, as sm_lint of softmetal.h. */
char *sm_lint_library(const char *source, size_t length, const sm_options *options);

/* Names of the kernels that can be built: plain ones and instantiated templates. */
SM_API int sm_library_kernels(const sm_library *library);
SM_API const char *sm_library_kernel(const sm_library *library, int index);

/* ---- what a function asks for ---------------------------------------------- */

typedef enum sm_type {
    SM_BOOL,
    SM_CHAR,
    SM_UCHAR,
    SM_SHORT,
    SM_USHORT,
    SM_INT,
    SM_UINT,
    SM_LONG,
    SM_ULONG,
    SM_HALF,
    SM_BFLOAT,
    SM_FLOAT
} sm_type;

typedef enum sm_argument_kind { SM_ARGUMENT_BUFFER, SM_ARGUMENT_THREADGROUP } sm_argument_kind;

typedef struct sm_argument {
    sm_argument_kind kind;
    int index;        /* index in setBuffer or setThreadgroupMemoryLength */
    bool writable;    /* device without const */
    bool constant;    /* address space constant */
    bool reference;   /* by reference, not by pointer */
    const char *name;
    int line;
} sm_argument;

typedef struct sm_function_constant {
    const char *name;
    int index;
    sm_type type;
    int width;        /* 1, or 2, 3, 4 for a vector */
    int line;
} sm_function_constant;

typedef struct sm_function {
    const char *name;
    const sm_argument *arguments;
    int arguments_count;
    int max_total_threads; /* [[max_total_threads_per_threadgroup(n)]], or 0 */
    int line;
} sm_function;

/* false: no kernel has that name. Pointers are valid as long as the library. */
SM_API bool sm_library_function(const sm_library *library, const char *name, sm_function *function);
/* All function constants of the text. */
SM_API int sm_library_constants(const sm_library *library, const sm_function_constant **constants);

/* ---- kernels --------------------------------------------------------------- */

typedef struct sm_constant {
    const char *name; /* NULL: by index */
    int index;
    sm_type type;
    int width;         /* 0 or 1: a scalar */
    const void *value; /* width elements of the type; a bool is one byte */
} sm_constant;

/* Constants without a value here are "not defined"; reading one is a build error. NULL on failure. */
SM_API sm_kernel *sm_kernel_build(sm_library *library, const char *name, const sm_constant *values, int count,
                                  char **message);
SM_API void sm_kernel_close(sm_kernel *kernel);

typedef struct sm_kernel_facts {
    int max_threads;              /* per threadgroup: maxTotalThreadsPerThreadgroup */
    int simd_width;               /* threadExecutionWidth, 32 */
    size_t threadgroup_bytes;     /* staticThreadgroupMemoryLength */
    uint32_t buffers_used;        /* bit i: buffer i is an argument, and the compiled kernel uses it */
    bool from_cache;              /* loaded from the disk cache, not compiled */
} sm_kernel_facts;

SM_API void sm_kernel_describe(const sm_kernel *kernel, sm_kernel_facts *facts);

/* ---- running ---------------------------------------------------------------- */

typedef struct sm_buffer {
    void *address; /* includes the offset; NULL: no buffer bound */
    size_t length; /* bytes from address to the end of the buffer */
} sm_buffer;

/* The dispatches of one concurrent encoder: those between two barriers may overlap. Under
 * SM_CHECK it is an error if two dispatches of one scope access the same byte, one of them
 * writes, and no barrier is between them. Without SM_CHECK a scope has no effect. */
typedef struct sm_scope sm_scope;
SM_API sm_scope *sm_scope_open(void); /* NULL: out of memory */
/* Orders later dispatches after all earlier ones; with an address only their accesses there. */
SM_API void sm_scope_barrier(sm_scope *scope, const void *address, size_t length);
SM_API void sm_scope_close(sm_scope *scope);

typedef struct sm_dispatch {
    sm_buffer buffers[SM_BUFFERS];
    size_t threadgroup_bytes[SM_BUFFERS]; /* setThreadgroupMemoryLength, by index */
    uint32_t threads[3];                  /* threads in the grid; the last groups may be smaller */
    uint32_t group[3];                    /* threads in a threadgroup */
    sm_scope *scope;                      /* NULL: ordered with the dispatches before and after it */
    const char *label;                    /* used in messages; NULL: the kernel's name */
    bool only_counted; /* SM_COUNT: runs only the threadgroups that are counted; the results are incomplete */
} sm_dispatch;

/* Returns when the run has ended. On failure buffers may be partly written; the kernel stays usable. */
SM_API sm_status sm_kernel_run(sm_kernel *kernel, const sm_dispatch *dispatch, char **message);

/* ---- counting ---------------------------------------------------------------- */

/* What the last dispatch of a kernel cost that was built while SM_COUNT was set; false: there was none. */
SM_API bool sm_kernel_counts(const sm_kernel *kernel, sm_counts *counts);
/* The same as a line of JSON (README.md), to be freed; dispatch: the one that ran. NULL: out of memory. */
SM_API char *sm_count_json(const sm_kernel *kernel, const sm_dispatch *dispatch);

/* ---- memory ------------------------------------------------------------------ */

/* Page-aligned memory with an inaccessible page before and after it. With flush the memory ends
 * exactly at the second page (its start is then aligned to 16 bytes only), so that an overrun by one
 * element is a fault. Filled with a pattern under SM_CHECK, else with zeros. NULL: out of memory. */
SM_API void *sm_memory_open(size_t length, bool flush);
SM_API void sm_memory_close(void *address, size_t length);

#ifdef __cplusplus
}
#endif

#endif
