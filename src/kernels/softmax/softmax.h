/* SOFTMAX, LOG_SOFTMAX and LOGSUMEXP over the last axis of a float tensor.
 *
 *   softmax(x)[i] = exp(x[i] - max) / sum_j exp(x[j] - max)
 *   log_softmax(x)[i] = x[i] - max - log(sum_j exp(x[j] - max))
 *   logsumexp(x, origin) = log(sum_j exp(x[j])) - origin
 *
 * A row with a NaN or +inf, or of -inf only, is NaN throughout; its logsumexp is NaN,
 * +inf, -inf. The origin, one a row, is 0 if it is not given. It is taken off before
 * the result is rounded: of large numbers that are close to each other little would be left. */
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
