/* Running sums on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_CUMULATIVE_PARAMS_H
#define MICA_KERNELS_CUMULATIVE_PARAMS_H

typedef struct mica_cumulative_params {
    mica_view x;                 /* of the first element of each row             */
    int64_t step;
    uint32_t rows, n;
} mica_cumulative_params;
MICA_LAYOUT(mica_cumulative_params, 128);

#endif
