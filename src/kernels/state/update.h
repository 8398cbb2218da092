/* UPDATE: values into positions start ... of one axis of the state, each cast to its
 * dtype; out is where the state is, the rest of it stays. MICA_ERR_INDEX, and nothing is
 * written, if they do not fit.
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
