/* ATTENTION: q (B, H, T, D), k (B, G, S, D), v (B, G, S, E) into (B, H, T, E);
 * head h reads key head h / (H / G).
 *
 *   score[t, s] = scale * <q[t], k[s]> (+ mask[t, s] if the mask is of floats)
 *   out[t] = sum_s softmax(score[t])[s] * v[s]
 *
 * over the visible keys of t: causal, a bool mask and a score of -inf hide keys.
 * Hidden keys do not affect the result, even if they are NaN. A row without
 * visible keys is 0. A score of +inf or NaN makes the row NaN.
 *
 * With i8 k and v there is no mask, and there are two more inputs (B, G, S): the scales of
 * the rows of k and of v.
 *
 * ref   computes in double.
 * cpu   f32, f16, bf16 in f32: blocks of queries times blocks of keys, with
 *       a running maximum and sum for each query; f64 as ref, on many threads. */
#ifndef MICA_KERNELS_ATTENTION_H
#define MICA_KERNELS_ATTENTION_H

#include "kernels/launch.h"

mica_status mica__attention_ref(const mica__launch *launch);
mica_status mica__attention_cpu(const mica__launch *launch);
mica_status mica__attention_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__attention_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

/* Query t of head h, which reads key head g. */
typedef struct mica__attention_row {
    const mica__launch *launch;
    int64_t b, h, g, t;
} mica__attention_row;

/* Its score with key s, in double; -inf: hidden. */
double mica__attention_score(const mica__attention_row *row, int64_t s);

/* Rows begin ... end-1 of the B * H * T of the result, in double. */
void mica__attention_rows(const void *launch, int64_t begin, int64_t end);

#endif
