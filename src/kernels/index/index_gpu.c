/* Take and scatter as dispatches (index.metal): one checks the indices, the others move elements. They
 * may run at the same time, because the others skip indices that are out of range. */
#include "kernels/index/index_gpu.h"

#include "kernels/common/gpu_copy.h"
#include "kernels/common/gpu_view.h"
#include "kernels/index/index.h"

#include "kernels/index/index_params.h"

enum { SCATTER_THREADS = 4096 }; /* wanted: positions of the axis are split into parts to get that many */

void mica__gpu_check_indices(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t operand, int64_t n,
                             int64_t caller)
{
    const mica__tensor *indices = &l->in[operand];
    const mica_index_params p = {.indices = mica__gpu_view(indices),
                                 .n = (uint32_t)n,
                                 .count = (uint32_t)mica__spec_size(&indices->spec),
                                 .caller = (uint32_t)caller};
    mica__gpu_dispatch *d = mica__gpu_add(list, "index", "index_check");
    mica__gpu_constant_uint(d, MICA_INDEX_DTYPE, (uint32_t)indices->spec.dtype);
    mica__gpu_operand(d, l, operand);
    mica__gpu_bind_fault(d);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, 1, 1, 1, mica__gpu_row_threads(l->gpu, p.count), 1, 1);
}

static mica_index_params index_params_of(const mica__gpu_launch *l, int64_t axis)
{
    const mica__index_sizes s = mica__index_sizes_of(&l->in[0], &l->in[1], axis);
    return (mica_index_params){.x = mica__gpu_view(&l->in[0]),
                               .indices = mica__gpu_view(&l->in[1]),
                               .outer = (uint32_t)s.outer,
                               .n = (uint32_t)s.n,
                               .inner = (uint32_t)s.inner,
                               .count = (uint32_t)s.count};
}

static void index_constants(mica__gpu_dispatch *d, const mica__gpu_launch *l, bool add)
{
    mica__gpu_constant_uint(d, MICA_INDEX_DTYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_uint(d, MICA_INDEX_ELEMENT_BYTES, (uint32_t)mica_dtype_size(mica__dtype_of(l->out)));
    mica__gpu_constant_bool(d, MICA_INDEX_ADDS, add);
}

mica_status mica__take_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const mica__attr_take *attr = l->attr;
    mica_index_params p = index_params_of(l, attr->axis);
    p.work = (uint32_t)mica__spec_size(&l->out->spec);
    mica__gpu_check_indices(l, list, 1, p.n, attr->caller);
    mica__gpu_dispatch *d = mica__gpu_add(list, "index", "index_take");
    index_constants(d, l, false);
    mica__gpu_operand(d, l, 0);
    mica__gpu_operand(d, l, 1);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, p.work);
    return MICA_OK;
}

mica_status mica__scatter_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__attr_scatter *attr = l->attr;
    if (attr->add && mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_index_params p = index_params_of(l, attr->axis);
    p.updates = mica__gpu_view(&l->in[2]);
    const int64_t lines = (int64_t)p.outer * p.inner;
    p.parts = (uint32_t)mica__max_i64(1, mica__min_i64(p.n, SCATTER_THREADS / mica__max_i64(1, lines)));
    p.work = (uint32_t)(lines * p.parts);
    mica__gpu_check_indices(l, list, 1, p.n, attr->caller);
    mica__gpu_copy(l, list, 0, 0);
    if (p.count == 0 || p.work == 0) return MICA_OK;
    mica__gpu_dispatch *d = mica__gpu_add(list, "index", "index_scatter");
    index_constants(d, l, attr->add != 0);
    mica__gpu_operand(d, l, 1);
    mica__gpu_operand(d, l, 2);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, p.work);
    d->barrier = true;
    return MICA_OK;
}
