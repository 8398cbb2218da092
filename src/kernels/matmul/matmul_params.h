/* Parameters of matrix products on the GPU. Include after common_params.h. */
#ifndef MICA_KERNELS_MATMUL_PARAMS_H
#define MICA_KERNELS_MATMUL_PARAMS_H

/* Function constants of matmul.metal. */
#define MICA_MATMUL_A_TYPE 0
#define MICA_MATMUL_B_TYPE 1
#define MICA_MATMUL_OUT_TYPE 2
#define MICA_MATMUL_A_ALONG_K 3
#define MICA_MATMUL_B_ALONG_K 4
#define MICA_MATMUL_EVEN_M 5
#define MICA_MATMUL_EVEN_N 6
#define MICA_MATMUL_EVEN_K 7
#define MICA_MATMUL_VECTOR_COUNT 8
#define MICA_MATMUL_A_RUNS 9
#define MICA_MATMUL_B_RUNS 10

/* Tiles: a (m, k) times b (k, n); k is split into `parts` parts of length `each`. */
typedef struct mica_matmul_params {
    mica_view a, b;              /* first element of each batch                  */
    int64_t a_row, a_col, b_row, b_col;
    uint32_t m, n, k, batches;
    uint32_t parts, each;
} mica_matmul_params;
MICA_LAYOUT(mica_matmul_params, 280);

/* Few vectors of v times the lines of w, both along k. */
typedef struct mica_matvec_params {
    mica_view w, v;
    int64_t w_line, w_k, v_vector, v_k, out_line, out_vector, out_batch;
    uint32_t lines, vectors, k, unused;
} mica_matvec_params;
MICA_LAYOUT(mica_matvec_params, 296);

/* out[i] = sum over the parts of part[i]. */
typedef struct mica_matmul_sum_params {
    uint32_t count, parts;
} mica_matmul_sum_params;
MICA_LAYOUT(mica_matmul_sum_params, 8);

#endif
