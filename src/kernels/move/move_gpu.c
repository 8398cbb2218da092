/* Moves as dispatches with a thread for each element (move.metal). */
#include "kernels/move/move.h"

#include "kernels/common/gpu_view.h"

#include "kernels/common/gpu_copy.h"
#include "kernels/move/move_params.h"

/* Copies the operand to the part of out that has its shape and begins at element `first`. */
void mica__gpu_copy(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t operand, int64_t first)
{
    const mica__tensor *x = &l->in[operand];
    const mica_copy_params p = {.from = mica__gpu_view(x),
                                .to = mica__gpu_axes(l->out, x->spec.ndim, x->spec.shape, l->out->strides),
                                .count = (uint32_t)mica__spec_size(&x->spec)};
    if (p.count == 0) return;
    mica__gpu_dispatch *d = mica__gpu_add(list, "move", "move_copy");
    mica__gpu_constant_uint(d, MICA_MOVE_ELEMENT_BYTES, (uint32_t)mica_dtype_size(mica__dtype_of(x)));
    mica__gpu_operand(d, l, operand);
    mica__gpu_bind_out(d, mica__gpu_bytes(l->out, first));
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, p.count);
}

mica_status mica__concat_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const int64_t axis = ((const mica__attr_axis *)l->attr)->axis;
    int64_t first = 0;
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    for (uint32_t i = 0; i < l->n_in; i++) {
        mica__gpu_copy(l, list, i, first * l->out->strides[axis]);
        first += l->in[i].spec.shape[axis];
    }
    return MICA_OK;
}

mica_status mica__pad_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__tensor *x = &l->in[0], *out = l->out;
    const mica__attr_pad *attr = l->attr;
    const mica__launch as_launch = {.out = out, .attr = attr};
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    mica_pad_params p = {
        .start = -mica__gpu_low(x), .ndim = (uint32_t)out->spec.ndim, .count = (uint32_t)mica__spec_size(&out->spec)};
    char value[8] = {0};
    mica__pad_value(&as_launch, value);
    memcpy(&p.value, value, sizeof value);
    for (int d = 0; d < out->spec.ndim; d++) {
        p.stride[d] = x->strides[d];
        p.low[d] = attr->low[d];
        p.every[d] = attr->interior[d] + 1;
        p.from[d] = (uint32_t)x->spec.shape[d];
        p.to[d] = (uint32_t)out->spec.shape[d];
    }
    mica__gpu_dispatch *d = mica__gpu_add(list, "move", "move_pad");
    mica__gpu_constant_uint(d, MICA_MOVE_ELEMENT_BYTES, (uint32_t)mica_dtype_size(mica__dtype_of(x)));
    mica__gpu_operand(d, l, 0);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, p.count);
    return MICA_OK;
}

mica_status mica__unwindow_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__tensor *x = &l->in[0], *out = l->out;
    const mica__attr_window *w = l->attr;
    const int last = x->spec.ndim - 1, axis = (int)w->axis;
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    int64_t shape[MICA_MAX_DIMS], strides[MICA_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < last; d++)
        if (d != axis) {
            shape[n] = x->spec.shape[d];
            strides[n++] = x->strides[d];
        }
    const mica_unwindow_params p = {.x = mica__gpu_axes(x, n, shape, strides),
                                    .axis_step = x->strides[axis],
                                    .window_step = x->strides[last],
                                    .stride = w->stride,
                                    .dilation = w->dilation,
                                    .windows = (uint32_t)x->spec.shape[axis],
                                    .size = (uint32_t)w->size,
                                    .full = (uint32_t)out->spec.shape[axis],
                                    .inner = (uint32_t)mica__product(out->spec.shape + axis + 1, last - 1 - axis),
                                    .count = (uint32_t)mica__spec_size(&out->spec)};
    mica__gpu_dispatch *d = mica__gpu_add(list, "move", "move_unwindow");
    mica__gpu_constant_uint(d, MICA_MOVE_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_operand(d, l, 0);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, p.count);
    return MICA_OK;
}
