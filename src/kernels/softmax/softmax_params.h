/* Rows of softmax, log-softmax and log-sum-exp on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_SOFTMAX_PARAMS_H
#define MICA_KERNELS_SOFTMAX_PARAMS_H

/* Function constants of softmax.metal. */
#define MICA_SOFTMAX_DTYPE 0
#define MICA_SOFTMAX_KIND 1
#define MICA_SOFTMAX_HAS_ORIGIN 2

/* Softmax, its logarithm, or the logarithm of its sum of exponentials. */
MICA_SHADER_ENUM{MICA_SOFTMAX_PLAIN = 0, MICA_SOFTMAX_LOG = 1, MICA_SOFTMAX_LOGSUMEXP = 2};

typedef struct mica_softmax_params {
    mica_view x, origin;         /* of the first element of each row             */
    int64_t step;                /* stride of the elements of a row              */
    uint32_t rows, n;
} mica_softmax_params;
MICA_LAYOUT(mica_softmax_params, 240);

#endif
