/* Sorting on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_SORT_PARAMS_H
#define MICA_KERNELS_SORT_PARAMS_H

/* Function constants of sort.metal. */
#define MICA_SORT_DTYPE 0
#define MICA_SORT_ELEMENT_BYTES 1
#define MICA_SORT_DESCENDING 2
#define MICA_SORT_INDICES 3
#define MICA_SORT_FROM_X 4
#define MICA_SORT_TO_OUT 5

/* Rows of n keys in blocks of `block`; the first `keep` keys of each block are kept. */
typedef struct mica_sort_params {
    mica_view x;                 /* of the first element of each row             */
    int64_t step;
    uint32_t n, block, keep, next; /* next: kept keys of a row                   */
    uint32_t k, width;           /* of the result; of sorted runs to merge       */
} mica_sort_params;
MICA_LAYOUT(mica_sort_params, 144);

#endif
