/* Convolutions as a dispatch of tiles (conv.metal). */
#include "kernels/conv/conv.h"

#include "kernels/common/gpu_view.h"

#include "kernels/conv/conv_params.h"

mica_status mica__conv_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__tensor *x = &l->in[0], *w = &l->in[1];
    const mica__conv_sizes s = mica__conv_sizes_of(x, w, l->attr, &l->out->spec);
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const int64_t positions = s.out[0] * s.out[1], images = s.batch * s.groups;
    const mica__gpu_tile_work work = {s.outs, positions, images, mica__gpu_cores(l->gpu)};
    const mica__gpu_shape *tile =
        l->gpu->simdgroup_matrix ? mica__gpu_pick(l->gpu, MICA__KNOB_CONV, mica__gpu_tiles_half_full, &work) : NULL;
    if (!tile) return mica__gpu_refuse(list, "no matrix units, or threadgroups too small");
    mica_conv_params p = {.x_start = -mica__gpu_low(x),
                          .x_batch = s.x_batch,
                          .x_channel = s.x_channel,
                          .w_start = -mica__gpu_low(w),
                          .w_out = s.w_out,
                          .w_channel = s.w_channel,
                          .batch = (uint32_t)s.batch,
                          .groups = (uint32_t)s.groups,
                          .channels = (uint32_t)s.channels,
                          .outs = (uint32_t)s.outs,
                          .count = (uint32_t)mica__spec_size(&l->out->spec)};
    for (int i = 0; i < 2; i++) {
        /* positions have 32 bits: the CPU runs convolutions with larger padding */
        const int64_t reach =
            s.out[i] * s.stride[i] + s.kernel[i] * s.dilation[i] + (s.pad[i] < 0 ? -s.pad[i] : s.pad[i]);
        if (reach > INT32_MAX || s.size[i] * s.input_dilation[i] > INT32_MAX)
            return mica__gpu_refuse(list, "more than 2^31 positions");
        p.x_step[i] = s.x_step[i];
        p.w_step[i] = s.w_step[i];
        p.size[i] = (int32_t)s.size[i];
        p.kernel[i] = (int32_t)s.kernel[i];
        p.out[i] = (int32_t)s.out[i];
        p.stride[i] = (int32_t)s.stride[i];
        p.pad[i] = (int32_t)s.pad[i];
        p.dilation[i] = (int32_t)s.dilation[i];
        p.input_dilation[i] = (int32_t)s.input_dilation[i];
    }
    mica__gpu_dispatch *d = mica__gpu_add(list, "conv", tile->name);
    mica__gpu_constant_uint(d, MICA_CONV_DTYPE, (uint32_t)x->spec.dtype);
    mica__gpu_operand(d, l, 0);
    mica__gpu_operand(d, l, 1);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, mica__gpu_parts(positions, tile->n), mica__gpu_parts(s.outs, tile->m), (uint32_t)images,
                   32 * tile->simds, 1, 1);
    d->finishes = true;
    return MICA_OK;
}
