/* ARGMAX and ARGMIN over the last axis: i64 index of the first of equals. NaN
 * counts as the largest and as the smallest; -0 and 0 are equal. Any dtype. */
#ifndef MICA_KERNELS_ARGREDUCE_H
#define MICA_KERNELS_ARGREDUCE_H

#include "kernels/launch.h"

mica_status mica__argmax_ref(const mica__launch *launch);
mica_status mica__argmin_ref(const mica__launch *launch);
mica_status mica__argmax_cpu(const mica__launch *launch);
mica_status mica__argmax_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__argmin_cpu(const mica__launch *launch);
mica_status mica__argmin_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

#endif
