/* QMATMUL: y[t][r] = sum over c of W[r][c] x'[t][c], W in a block format.
 * QROWS: rows of W as f32.
 *
 * x' is x, or x rounded to 8 bits (mica_act), all in f32:
 *
 *   token      a = max(largest |x| of the row, 1e-5) / 127, q = x * (127 / max(...)), to nearest, ties to even;
 *              x' = q a
 *   block256   for each 256 columns, m the element of the largest size (the first of them): q = x * (-127 / m),
 *              to nearest; d = 1 / (-127 / m); x' = q d. All 0 where |m| < 1e-30.
 *
 * |q| <= 127. If a row of x has an element that is not finite, all its results are NaN, for any W.
 *
 * Formats of small integers (mica__quant_codes_row) with 8-bit x: products of codes are added exactly, as integers,
 * over
 * pieces with one weight scale w and one activation scale d (token: d = 1; block256: a = 1); then in double
 *
 *   y = (float)(a * sum over the pieces, in order, of (sum * w) * d)
 *
 * Nothing else is rounded. sum * w is exact, and so are sums of these with f16 scales of similar size. So equal codes
 * and equal scales give equal bits for any block size of the container and any number of rows of x.
 *
 * All other cases: ref adds W x' in double in the order of the columns. cpu adds in f32, in an order that only depends
 * on
 * the number of columns, and splits x into parts of 8 or 16 bits (qmatmul_ternary.c, qmatmul_bytes.c). */
#ifndef MICA_KERNELS_QMATMUL_H
#define MICA_KERNELS_QMATMUL_H

#include "base/checked.h"
#include "graph/quant_matrix.h"
#include "kernels/launch.h"

enum { MICA__ACT_BLOCK = 256 };

/* Columns of rounded x: padded to whole blocks, at least one. */
static inline int64_t mica__act_cols(int64_t cols)
{
    return (int64_t)mica__round_up((size_t)mica__max_i64(cols, 1), MICA__ACT_BLOCK);
}

/* in: the matrix operands data, scales, biases. */
static inline mica__quant_matrix mica__quant_operand(const mica__attr_quant *a, const mica__tensor *in, uint32_t n_in)
{
    mica__quant_matrix m = mica__quant_matrix_of(a, n_in > 1 ? in[1].spec.dtype : -1);
    m.data = in[0].data;
    m.scales = n_in > 1 ? in[1].data : NULL;
    m.biases = n_in > 2 ? in[2].data : NULL;
    return m;
}

mica_status mica__qmatmul_ref(const mica__launch *launch);
mica_status mica__qmatmul_cpu(const mica__launch *launch);
mica_status mica__qmatmul_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__qmatmul_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

/* Should in[1], if it is a weight, be packed? */
bool mica__qmatmul_prepack(const mica__launch *launch, mica__prepack *wish);

/* Formats with codes; formats of 4 to 8 bits. Any sizes, but the result is not empty. prepack returns false if the
 * matrix already has the layout that the kernel reads. */
void mica__qmatmul_ternary(const mica__launch *launch);
size_t mica__qmatmul_ternary_workspace(const mica__attr_quant *attr, int64_t count);
bool mica__qmatmul_ternary_prepack(const mica__launch *launch, mica__prepack *wish);
void mica__qmatmul_bytes(const mica__launch *launch);
size_t mica__qmatmul_bytes_workspace(const mica__attr_quant *attr, int64_t count);
bool mica__qmatmul_bytes_prepack(const mica__launch *launch, mica__prepack *wish);

mica_status mica__qrows_ref(const mica__launch *launch);
mica_status mica__qrows_cpu(const mica__launch *launch);
mica_status mica__qrows_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

#endif
