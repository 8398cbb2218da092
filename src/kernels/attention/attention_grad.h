/* ATTENTION_GRAD: the gradients of attention with respect to q, k and v.
 *
 * Inputs are those of ATTENTION (q, k, v and, if has_mask, the mask) and c, the
 * gradient of its result. The result is one row: the elements of dq, then of dk, then
 * of dv, each in row-major order. With the normalised weights p of a query,
 *
 *   dv[s] += p[s] c       slope[s] = p[s] * (<c, v[s]> - sum over i of p[i] <c, v[i]>)
 *   dq += scale slope[s] k[s]        dk[s] += scale slope[s] q
 *
 * Weights are computed again, so that nothing of size T * S is stored between the passes.
 *
 * ref   computes in double.
 * cpu   f32, f16, bf16 in f32; f64 as ref, on many threads. */
#ifndef MICA_KERNELS_ATTENTION_GRAD_H
#define MICA_KERNELS_ATTENTION_GRAD_H

#include "kernels/launch.h"

mica_status mica__attention_grad_ref(const mica__launch *launch);
mica_status mica__attention_grad_cpu(const mica__launch *launch);
mica_status mica__attention_grad_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__attention_grad_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

/* The same in double on a pool, and its scratch: three numbers for each query. */
void mica__attention_grad_double(const mica__launch *launch, mica__pool *pool);
size_t mica__attention_grad_double_bytes(const mica__tensor *in);

#endif
