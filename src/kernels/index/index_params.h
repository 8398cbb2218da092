/* Take and scatter on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_INDEX_PARAMS_H
#define MICA_KERNELS_INDEX_PARAMS_H

/* Function constants of index.metal. */
#define MICA_INDEX_DTYPE 0
#define MICA_INDEX_ELEMENT_BYTES 1
#define MICA_INDEX_ADDS 2

/* An axis of n, elements (outer, n, inner); count indices. */
typedef struct mica_index_params {
    mica_view x, indices, updates;
    uint32_t outer, n, inner, count;
    uint32_t parts, work;        /* SCATTER: of the axis; threads                */
    uint32_t caller;             /* index_check: a mica__index_caller, for the error message */
    uint32_t unused;
} mica_index_params;
MICA_LAYOUT(mica_index_params, 368);

#endif
