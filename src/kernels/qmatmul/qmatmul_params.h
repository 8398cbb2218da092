/* Parameters of products with block formats on the GPU. Include after common_params.h. */
#ifndef MICA_KERNELS_QMATMUL_PARAMS_H
#define MICA_KERNELS_QMATMUL_PARAMS_H

/* Function constants of quant_matrix.metal. */
#define MICA_QMATMUL_KIND 0
#define MICA_QMATMUL_BLOCK 1
#define MICA_QMATMUL_BYTES 2
#define MICA_QMATMUL_SCALE_PLACE 3
#define MICA_QMATMUL_CODE_PLACE 4
#define MICA_QMATMUL_LAYOUT_A 5
#define MICA_QMATMUL_LAYOUT_B 6
#define MICA_QMATMUL_LAYOUT_C 7
#define MICA_QMATMUL_SCALE_TYPE 8
#define MICA_QMATMUL_SCALE_DIVIDES 9
#define MICA_QMATMUL_ACT 10
#define MICA_QMATMUL_EXACT 11

/* How a format stores its values: X(name, code). The first three are MICA__CODES_... of quant_blocks.h. */
/* clang-format off */
#define MICA_QMATMUL_KINDS(X) \
    X(BITS,     1) \
    X(TWO_BITS, 2) \
    X(TRITS,    3) \
    X(SMALL,    4) \
    X(Q8_0,     5) \
    X(K45,      6) \
    X(Q6_K,     7) \
    X(HF,       8) \
    X(AFFINE,   9) \
    X(PLAIN,    10) \
    X(T2,       11) \
    X(PANEL8,   12) \
    X(T1,       13)
/* mica_act. */
#define MICA_QMATMUL_ACTS(X) \
    X(ACT_NONE,     0) \
    X(ACT_TOKEN,    1) \
    X(ACT_BLOCK256, 2)
/* clang-format on */

typedef struct mica_qmatmul_params {
    mica_view x;                 /* first element of each row; QROWS: the ids */
    int64_t step;
    uint64_t tail;               /* byte offset of the single scale of a matrix   */
    uint32_t count, n;           /* rows of x, and elements per row              */
    uint32_t rows, cols;         /* of the matrix                                */
    uint32_t pitch, acts;        /* per row: bytes of codes, floats of scales    */
} mica_qmatmul_params;
MICA_LAYOUT(mica_qmatmul_params, 152);

#endif
