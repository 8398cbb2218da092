/* SOFTMAX and LOG_SOFTMAX over the last axis of a float tensor.
 *
 *   softmax(x)[i] = exp(x[i] - max) / sum_j exp(x[j] - max)
 *   log_softmax(x)[i] = x[i] - max - log(sum_j exp(x[j] - max))
 *
 * A row with a NaN or +inf, or of -inf only, is NaN throughout. */
#ifndef MICA_KERNELS_SOFTMAX_H
#define MICA_KERNELS_SOFTMAX_H

#include "kernels/launch.h"

mica_status mica__softmax_ref(const mica__launch *launch);
mica_status mica__log_softmax_ref(const mica__launch *launch);
mica_status mica__softmax_cpu(const mica__launch *launch);
mica_status mica__log_softmax_cpu(const mica__launch *launch);

#endif
