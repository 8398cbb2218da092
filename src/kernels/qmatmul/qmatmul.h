/* QMATMUL: y[t][r] = sum over c of W[r][c] x'[t][c], W in a block format.
 * QROWS: rows of W as f32.
 *
 * x' is x, or x rounded to 8 bits (mica_act), all in f32:
 *
 *   token      a = max(largest |x| of the row, 1e-5) / 127, q = x * (127 / max(...)), to nearest, halves to even;
 *              x' = q a
 *   block256   for each 256 columns, m the element of the largest size (the first of them): q = x * (-127 / m),
 *              to nearest; d = 1 / (-127 / m); x' = q d. All 0 where |m| < 1e-30.
 *
 * |q| is 127 at most. A row of x with an element that is not finite gives NaN in all of its results, for any W.
 *
 * Formats of small integers (mica__quant_codes_row), x of 8 bits: the codes' products are added as integers, exactly,
 * over pieces with one weight scale w and one activation scale d (token: d = 1; block256: a = 1); then in double
 *
 *   y = (float)(a * sum over the pieces, in order, of (sum * w) * d)
 *
 * and nothing else is rounded. sum * w is exact, and so are sums of those with f16 scales of similar size. Therefore
 * equal codes and equal scales give equal bits for any block size of the file format and any number of rows of x.
 *
 * All other cases: ref adds W x' in double in the order of the columns. cpu adds in f32, in an order that depends on
 * the columns only, with x in parts of 8 or 16 bits (qmatmul_ternary.c, qmatmul_bytes.c). */
#ifndef MICA_KERNELS_QMATMUL_H
#define MICA_KERNELS_QMATMUL_H

#include "base/checked.h"
#include "graph/quant_matrix.h"
#include "kernels/launch.h"

enum { MICA__ACT_BLOCK = 256 };

/* The number of columns of rounded x: whole blocks, at least one. */
static inline int64_t mica__act_cols(int64_t cols)
{
    return (int64_t)mica__round_up((size_t)mica__max_i64(cols, 1), MICA__ACT_BLOCK);
}

/* in: data, scales, biases. */
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
bool mica__qmatmul_prepack(const mica__launch *launch, mica__prepack *wish);

/* Formats with codes, and formats of 4 to 8 bits. Any sizes, but the result is not empty.
 * prepack: false if the matrix is already in the layout that the kernel reads. */
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
