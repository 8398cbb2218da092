/* Prints a kernel as Metal shader text, and describes its launch. Sizes, strides and
 * constants are not in the text but in words that are passed with a launch, so that one
 * compiled kernel serves every shape. Only strides of 0 and 1 are in the text, for speed. */
#ifndef MICA_CODEGEN_EMIT_MSL_H
#define MICA_CODEGEN_EMIT_MSL_H

#include "codegen/kernel.h"

enum {
    MICA__MSL_MAX_BUFFERS = 29, /* Metal's 31, minus the words and the mica_fault */
    MICA__MSL_MAX_CHECKED = 1 << 18, /* elements of a kernel that checks indices      */
    MICA__MSL_MAX_WORDS = 1024  /* limit of setBytes (4 KB)                 */
};

/* Launch sizes tuned for a device; counts of threads are powers of two. */
typedef struct mica__msl_shape {
    uint32_t threads;           /* threads of a group if each thread computes separate elements */
    uint32_t each;              /* elements of such a thread, if they are contiguous      */
    uint32_t fold_threads;      /* largest group that folds a row together                */
    uint32_t fold_each;         /* least number of folded elements per such thread        */
    uint32_t part, parts;       /* long folds: least elements of a part; most parts */
} mica__msl_shape;
/* The first entry of gpu_tune.def, for printing without a device. */
extern const mica__msl_shape mica__msl_usual;

typedef struct mica__msl_launch {
    uint32_t block[MICA__MSL_MAX_BUFFERS]; /* of the plan; number i is [[buffer(i)]]       */
    int64_t offset[MICA__MSL_MAX_BUFFERS]; /* in bytes, where it is bound: 0, or negative for negative strides */
    uint32_t n_buffer;
    uint32_t word[MICA__MSL_MAX_WORDS];    /* [[buffer(n_buffer)]], if there are words     */
    uint32_t n_word;
    uint32_t groups[3], threads;           /* the grid; threads in x of a threadgroup      */
    bool by_group;                         /* the grid does not depend on the threads of a group */
    bool checks;                           /* checks indices: a mica_fault follows the buffers, before the
                                            * words, and the grid is one threadgroup       */
} mica__msl_launch;

/* Prints `kernel void name(...)`; mica_msl.h must precede it. MICA_ERR_UNSUPPORTED for f64,
 * which Metal does not have. launch may be NULL. */
mica_status mica__emit_msl(const mica__kernel *k, const mica__msl_shape *shape, const char *name, mica__text *text,
                           mica__msl_launch *launch);

/* Does the kernel check indices? */
bool mica__msl_checks(const mica__kernel *k);

/* A long fold of few results is split into two kernels: threadgroups fold parts, then one folds the partial results.
 * Returns the number of parts, from sizes and the shape only; 1: not split. */
int64_t mica__msl_fold_parts(const mica__msl_shape *shape, int64_t results, int64_t folded);
/* Prints kernel `stage` (1 or 2) of a split fold. Its last buffer holds the parts: results * parts values of at most
 * 8 bytes in block scratch. */
mica_status mica__emit_msl_parts(const mica__kernel *k, const mica__msl_shape *shape, int stage, uint32_t scratch,
                                 const char *name, mica__text *text, mica__msl_launch *launch);

/* Prints the epilogue of a family, which must precede the text of its kernels (kernels/common/common.metal): a
 * function of an element of the anchor's result and its index that returns the last value it stored, and the
 * additional arguments for a kernel with 3 to 8 buffers. Its words follow the kernel's parameters. launch->groups
 * and threads are unused. */
mica_status mica__emit_msl_epilogue(const mica__kernel *k, mica__text *text, mica__msl_launch *launch);
/* The reason why an epilogue is not possible; NULL: it is possible. */
const char *mica__msl_epilogue_refused(const mica__kernel *k);

#endif
