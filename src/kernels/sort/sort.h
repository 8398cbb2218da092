/* SORT and ARGSORT over the last axis, any dtype, in the order of order.h:
 * stable, NaN as the largest, -0 and 0 equal. Descending is stable too: equal
 * elements keep their order. SORT copies bytes. The result of ARGSORT has the first
 * k indices (i64) of each row; k is the size of its last axis.
 *
 * Rows are merge-sorted as pairs of key and index. The workspace has two buffers of
 * pairs for each row that is sorted at the same time. */
#ifndef MICA_KERNELS_SORT_H
#define MICA_KERNELS_SORT_H

#include "kernels/launch.h"

mica_status mica__sort_ref(const mica__launch *launch);
mica_status mica__argsort_ref(const mica__launch *launch);
mica_status mica__sort_cpu(const mica__launch *launch);
mica_status mica__sort_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__argsort_cpu(const mica__launch *launch);
mica_status mica__argsort_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__sort_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

#endif
