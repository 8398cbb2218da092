/* Argmax and argmin on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ARGREDUCE_PARAMS_H
#define MICA_KERNELS_ARGREDUCE_PARAMS_H

/* Function constants of argreduce.metal. */
#define MICA_ARGREDUCE_DTYPE 0
#define MICA_ARGREDUCE_RESULT 1
#define MICA_ARGREDUCE_LARGEST 2

typedef struct mica_argreduce_params {
    mica_view x;                 /* of the first element of each row             */
    int64_t step;
    uint32_t rows, n;
} mica_argreduce_params;
MICA_LAYOUT(mica_argreduce_params, 128);

#endif
