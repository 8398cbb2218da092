/* SOFTMAX, LOG_SOFTMAX and LOGSUMEXP over the last axis of a float tensor.
 *
 *   softmax(x)[i] = exp(x[i] - max) / sum_j exp(x[j] - max)
 *   log_softmax(x)[i] = x[i] - max - log(sum_j exp(x[j] - max))
 *   logsumexp(x, origin) = log(sum_j exp(x[j])) - origin
 *
 * All results of a row are NaN if it has a NaN or +inf, or has -inf only; its logsumexp is
 * NaN, +inf or -inf. The origin, one for each row, is 0 if it is absent. It is subtracted
 * before the result is rounded, because the difference of large close numbers would lose
 * most of its digits. */
#ifndef MICA_KERNELS_SOFTMAX_H
#define MICA_KERNELS_SOFTMAX_H

#include "kernels/launch.h"

mica_status mica__softmax_ref(const mica__launch *launch);
mica_status mica__log_softmax_ref(const mica__launch *launch);
mica_status mica__logsumexp_ref(const mica__launch *launch);
mica_status mica__softmax_cpu(const mica__launch *launch);
mica_status mica__softmax_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__log_softmax_cpu(const mica__launch *launch);
mica_status mica__log_softmax_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__logsumexp_cpu(const mica__launch *launch);
mica_status mica__logsumexp_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

#endif
