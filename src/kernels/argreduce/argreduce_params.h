/* Argmax and argmin on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ARGREDUCE_PARAMS_H
#define MICA_KERNELS_ARGREDUCE_PARAMS_H

typedef struct mica_argreduce_params {
    mica_view x;                 /* of the first element of each row             */
    int64_t step;
    uint32_t rows, n;
} mica_argreduce_params;
MICA_LAYOUT(mica_argreduce_params, 128);

#endif
