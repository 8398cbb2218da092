/* Products with block formats on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_QMATMUL_PARAMS_H
#define MICA_KERNELS_QMATMUL_PARAMS_H

typedef struct mica_qmatmul_params {
    mica_view x;                 /* of the first element of each row; QROWS: the ids */
    int64_t step;
    uint64_t tail;               /* where the one scale of a matrix is, in bytes  */
    uint32_t count, n;           /* rows of x, and their elements                */
    uint32_t rows, cols;         /* of the matrix                                */
    uint32_t pitch, acts;        /* of a row: bytes of codes, floats of scales   */
} mica_qmatmul_params;
MICA_LAYOUT(mica_qmatmul_params, 152);

#endif
