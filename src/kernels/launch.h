/* What a kernel family is given: operands with strides, a row-major result,
 * attributes, scratch. Kernels do not allocate and read no global state; they
 * cut work into tasks that do not depend on the number of threads. */
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
    const char *data;           /* NULL: not there; shift only after a scale             */
    mica_dtype dtype;           /* f32, f16 or bf16, next to each other                  */
} mica__affine_term;

typedef struct mica__affine {
    mica__affine_term scale, shift;
    char *out;                  /* row-major                                             */
    mica_dtype dtype;
} mica__affine;

/* Element-wise work to do on finished parts of the result. A family that calls
 * run() itself, while the rows are still in cache, covers every element exactly
 * once and says so by taking it; otherwise the backend runs it afterwards. Calls
 * come from many threads and name ranges of any length, not only whole rows. */
typedef struct mica__epilogue {
    void (*run)(const struct mica__epilogue *epilogue, int64_t begin, int64_t end); /* flat elements of the result */
    const void *context;
} mica__epilogue;

typedef struct mica__launch {
    const mica__tensor *in;
    uint32_t n_in;
    const mica__tensor *out;    /* row-major                                             */
    const void *attr;
    void *workspace;            /* as many bytes as the family asked for, 64-byte aligned */
    mica__pool *pool;           /* NULL: this thread alone                               */
    const mica__epilogue *epilogue; /* NULL: none                                        */
    bool *epilogue_taken;       /* set to true by a family that ran it                   */
    const mica__affine *affine; /* NULL, or all that the epilogue does: a family may do it in
                                 * registers instead, and then leaves out alone          */
    mica__buffer *weight;       /* whose memory in[1] is, if it was given; NULL: a temporary */
    const void *packed;         /* in[1] as the family's prepack wished; NULL: it is not */
} mica__launch;

/* How a family would like to have in[1], if it is a weight (memory/packed.h). */
typedef struct mica__prepack {
    const void *format;         /* differs where what fill writes differs                */
    size_t nbytes;
    mica__repack_fn fill;       /* context: the launch                                   */
    bool at_once;               /* not only from the second use on                       */
    size_t replaces;            /* bytes of in[1] that are not read then                 */
} mica__prepack;

typedef mica_status (*mica__family_fn)(const mica__launch *launch);
/* Scratch bytes for these operands. */
typedef size_t (*mica__workspace_fn)(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);
/* See gpu.h. */
typedef struct mica__gpu_launch mica__gpu_launch;
typedef struct mica__gpu_list mica__gpu_list;
typedef mica_status (*mica__gpu_lower)(const mica__gpu_launch *launch, mica__gpu_list *list);

/* One line a family in families.def. */
typedef struct mica__family {
    mica__op op;
    mica__family_fn ref;        /* defines the result: shortest correct code             */
    mica__family_fn cpu;        /* what the cpu backend runs                             */
    mica__workspace_fn workspace; /* of either; NULL: none                               */
    bool takes_epilogue;        /* cpu calls launch->epilogue itself                     */
    mica__gpu_lower gpu;        /* its dispatches; NULL: cpu runs it on a GPU's backend too */
    bool gpu_f64;               /* gpu may be asked with f64 operands                    */
} mica__family;

/* NULL if there is none for this op. */
const mica__family *mica__family_get(mica__op op);

#endif
