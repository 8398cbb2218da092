/* Running sums on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_CUMULATIVE_PARAMS_H
#define MICA_KERNELS_CUMULATIVE_PARAMS_H

/* Function constants of cumulative.metal. */
#define MICA_CUMULATIVE_DTYPE 0
#define MICA_CUMULATIVE_RESULT 1
#define MICA_CUMULATIVE_KIND 2
#define MICA_CUMULATIVE_REVERSE 3
#define MICA_CUMULATIVE_EXCLUSIVE 4

MICA_SHADER_ENUM{MICA_CUMULATIVE_SUM = 0, MICA_CUMULATIVE_PRODUCT = 1, MICA_CUMULATIVE_MAXIMUM = 2};

typedef struct mica_cumulative_params {
    mica_view x;                 /* of the first element of each row             */
    int64_t step;
    uint32_t rows, n;
} mica_cumulative_params;
MICA_LAYOUT(mica_cumulative_params, 128);

#endif
