/* The input of a kernel family: operands with strides, a row-major result, attributes, scratch. Kernels do not
 * allocate and read no global state. They split work into tasks that do not depend on the number of threads. */
#ifndef MICA_KERNELS_LAUNCH_H
#define MICA_KERNELS_LAUNCH_H

#include "base/pool.h"
#include "base/scratch.h"
#include "graph/graph.h"
#include "memory/packed.h"

typedef struct mica__tensor {
    char *data;                 /* the first element                                     */
    mica__spec spec;
    int64_t strides[MICA_MAX_DIMS];
} mica__tensor;

/* y = value * scale + shift along the rows of the result (its last axis), each op
 * rounded to f32, then once to dtype. */
typedef struct mica__affine_term {
    const char *data;           /* NULL: absent; shift requires scale                    */
    mica_dtype dtype;           /* f32, f16 or bf16, contiguous                          */
} mica__affine_term;

typedef struct mica__affine {
    mica__affine_term scale, shift;
    char *out;                  /* row-major                                             */
    mica_dtype dtype;
} mica__affine;

/* Element-wise work on finished parts of the result. A family may call run() itself, while the rows are still in
 * cache: then it covers every element exactly once and sets epilogue_taken. Otherwise the backend runs it afterwards.
 * Calls come from many threads, with ranges of any length, not only whole rows. */
typedef struct mica__epilogue {
    void (*run)(const struct mica__epilogue *epilogue, int64_t begin, int64_t end); /* flat elements of the result */
    const void *context;
} mica__epilogue;

typedef struct mica__launch {
    const mica__tensor *in;
    uint32_t n_in;
    const mica__tensor *out;    /* row-major                                             */
    const void *attr;
    void *workspace;            /* the size that the family requested, 64-byte aligned */
    mica__pool *pool;           /* NULL: run on the calling thread only                  */
    const mica__epilogue *epilogue; /* NULL: none                                        */
    bool *epilogue_taken;       /* set to true by a family that ran it                   */
    const mica__affine *affine; /* NULL, or all the work of the epilogue: a family may do it in registers instead, and
                                 * then does not write out */
    mica__buffer *weight;       /* owner of the memory of in[1], if an input; NULL: a temporary */
    const void *packed;         /* in[1] packed by the family's prepack; NULL: not packed */
} mica__launch;

/* The layout in which a family wants in[1], if it is a weight (memory/packed.h). */
typedef struct mica__prepack {
    const void *format;         /* identity of the layout that fill writes               */
    int64_t size[2], step[2];   /* identity of the view: equal ones at one address share a copy */
    size_t nbytes;
    mica__repack_fn fill;       /* context: the launch                                   */
    bool at_once;               /* pack at the first use, not at the second              */
    size_t replaces;            /* bytes of in[1] that are then no longer read           */
} mica__prepack;

typedef mica_status (*mica__family_fn)(const mica__launch *launch);
/* Called if in[1] is a weight (launch->weight). false: the kernel reads it without packing; else fills in *wish. */
typedef bool (*mica__prepack_fn)(const mica__launch *launch, mica__prepack *wish);
/* Scratch bytes for these operands. */
typedef size_t (*mica__workspace_fn)(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);
/* See gpu.h. */
typedef struct mica__gpu_launch mica__gpu_launch;
typedef struct mica__gpu_list mica__gpu_list;
typedef mica_status (*mica__gpu_lower)(const mica__gpu_launch *launch, mica__gpu_list *list);

/* One row of families.def. ref, cpu: required. */
typedef struct mica__family {
    mica__op op;
    mica__family_fn ref;        /* defines the result; one thread, double or 64-bit accumulators */
    mica__family_fn cpu;        /* the cpu backend runs it; the same bits for any number of threads */
    mica__workspace_fn workspace; /* for ref and cpu; NULL: no workspace                 */
    mica__prepack_fn prepack;   /* for cpu; NULL: in[1] is never packed in advance       */
    bool takes_epilogue;        /* cpu calls launch->epilogue itself                     */
    mica__gpu_lower gpu;        /* its dispatches (gpu.h); NULL: GPU backends run cpu too */
    bool gpu_f64;               /* gpu accepts f64 operands, or refuses them itself      */
} mica__family;

/* NULL if op has no family. */
const mica__family *mica__family_get(mica__op op);

#endif
