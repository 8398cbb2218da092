/* Rows of norms on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_NORM_PARAMS_H
#define MICA_KERNELS_NORM_PARAMS_H

/* Function constants of norm.metal. */
#define MICA_NORM_DTYPE 0
#define MICA_NORM_RESULT 1
#define MICA_NORM_CENTRED 2
#define MICA_NORM_ROUNDS 3

typedef struct mica_norm_params {
    mica_view x;                 /* of the first element of each row             */
    int64_t step;
    uint32_t rows, n;
    float eps;
    uint32_t pitch;              /* of a rounded row's codes                      */
} mica_norm_params;
MICA_LAYOUT(mica_norm_params, 136);

#endif
