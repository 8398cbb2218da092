/* LAYER_NORM and RMS_NORM over the last axis of a float tensor, without
 * weights.
 *
 *   layer_norm(x)[i] = (x[i] - mean) / sqrt(variance + eps)
 *   rms_norm(x)[i] = x[i] / sqrt(mean of x^2 + eps)
 *
 * The variance is computed from differences from the mean, so that a large mean
 * costs no precision. cpu squares in f32: elements above 1e19 overflow, which they
 * do not in ref. */
#ifndef MICA_KERNELS_NORM_H
#define MICA_KERNELS_NORM_H

#include "kernels/launch.h"

mica_status mica__layer_norm_ref(const mica__launch *launch);
mica_status mica__rms_norm_ref(const mica__launch *launch);
mica_status mica__layer_norm_cpu(const mica__launch *launch);
mica_status mica__layer_norm_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__rms_norm_cpu(const mica__launch *launch);
mica_status mica__rms_norm_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

#endif
