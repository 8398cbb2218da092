/* ATTENTION_CACHED: ATTENTION over the first `length` keys of k and v; the keys after them are
 * not read. k and v may have other dtypes than q. in[3] is the length, one integer;
 * MICA_ERR_INDEX if it is not in 0 ... S. in[4] and in[5] are optional: the scales of the rows
 * of k and v, which are i8 then. */
#ifndef MICA_KERNELS_ATTENTION_CACHED_H
#define MICA_KERNELS_ATTENTION_CACHED_H

#include "kernels/launch.h"

mica_status mica__attention_cached_ref(const mica__launch *launch);
mica_status mica__attention_cached_cpu(const mica__launch *launch);
mica_status mica__attention_cached_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__attention_cached_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

#endif
