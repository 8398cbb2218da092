/* CUMSUM, CUMPROD, CUMMAX over the last axis. Floats run in double and each
 * result is rounded once; integers run in 64 bits and wrap. The result's dtype
 * may be wider than the operand's.
 *
 * reverse starts at the end. exclusive leaves the element itself out: the first
 * result is 0, 1, or the smallest value (-inf). NaN makes all that follow NaN. */
#ifndef MICA_KERNELS_CUMULATIVE_H
#define MICA_KERNELS_CUMULATIVE_H

#include "kernels/launch.h"

mica_status mica__cumsum_ref(const mica__launch *launch);
mica_status mica__cumprod_ref(const mica__launch *launch);
mica_status mica__cummax_ref(const mica__launch *launch);
mica_status mica__cumsum_cpu(const mica__launch *launch);
mica_status mica__cumsum_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__cumprod_cpu(const mica__launch *launch);
mica_status mica__cumprod_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__cummax_cpu(const mica__launch *launch);
mica_status mica__cummax_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

#endif
