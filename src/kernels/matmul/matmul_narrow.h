/* Matrix products whose operands are narrower than the accumulators: 8-bit integers into i32 or u32 (created by the
 * graph's narrow pass), f16 and bf16 into the same dtype or into f32. Thin products are streamed; the others are packed
 * in blocks (gemm_dot.h). */
#ifndef MICA_KERNELS_MATMUL_NARROW_H
#define MICA_KERNELS_MATMUL_NARROW_H

#include "kernels/launch.h"

/* Is this such a product? */
bool mica__matmul_is_narrow(const mica__spec *a, const mica__spec *b, const mica__spec *out);
mica_status mica__matmul_narrow(const mica__launch *launch);
size_t mica__matmul_narrow_workspace(const mica__spec *a, const mica__spec *b, const mica__spec *out);

#endif
