/* UPDATE: writes values to the positions from `start` on of one axis of the state, cast to its
 * dtype. out is the memory of the state; the other elements do not change. If the values do not
 * fit, it fails with MICA_ERR_INDEX and writes nothing.
 *
 * ref   element by element
 * cpu   rows on many threads; f32 to f16 and bf16 by vectors */
#ifndef MICA_KERNELS_UPDATE_H
#define MICA_KERNELS_UPDATE_H

#include "kernels/launch.h"

mica_status mica__update_ref(const mica__launch *launch);
mica_status mica__update_cpu(const mica__launch *launch);
mica_status mica__update_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

#endif
