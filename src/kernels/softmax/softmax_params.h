/* Rows of softmax, log-softmax and log-sum-exp on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_SOFTMAX_PARAMS_H
#define MICA_KERNELS_SOFTMAX_PARAMS_H

typedef struct mica_softmax_params {
    mica_view x, origin;         /* of the first element of each row             */
    int64_t step;                /* from an element of a row to the next         */
    uint32_t rows, n;
} mica_softmax_params;
MICA_LAYOUT(mica_softmax_params, 240);

#endif
