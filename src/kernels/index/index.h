/* TAKE and SCATTER along one axis, indices i64; negative ones count from the
 * end. All indices are checked first: an index out of range fails with
 * MICA_ERR_INDEX before anything is read or written.
 *
 * TAKE copies bytes. SCATTER starts with x and applies the updates in the
 * row-major order of the indices. Of several updates to one position the last
 * wins; with add, each addition is rounded to the dtype (integers wrap). out
 * may be the memory of x if x is row-major. */
#ifndef MICA_KERNELS_INDEX_H
#define MICA_KERNELS_INDEX_H

#include "kernels/launch.h"

mica_status mica__take_ref(const mica__launch *launch);
mica_status mica__scatter_ref(const mica__launch *launch);
mica_status mica__take_cpu(const mica__launch *launch);
mica_status mica__take_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__scatter_cpu(const mica__launch *launch);
mica_status mica__scatter_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

/* Are all indices -n ... n-1? Otherwise fails with the first that is not. */
mica_status mica__check_indices(mica__pool *pool, const char *op, const mica__tensor *indices, int64_t n);

/* How an indexed axis splits a shape: (outer, n, inner). */
typedef struct mica__index_sizes {
    int axis;
    int64_t outer, n, inner; /* sizes before, along and after the axis     */
    int64_t count;           /* indices                                    */
} mica__index_sizes;

mica__index_sizes mica__index_sizes_of(const mica__tensor *x, const mica__tensor *indices, int64_t axis);

/* Index number `which`, which was checked before, as 0 ... n-1. */
int64_t mica__index_at(const mica__tensor *indices, int64_t which, int64_t n);

#endif
