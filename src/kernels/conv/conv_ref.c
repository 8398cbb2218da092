/* Reference of convolution: plain loops. */
#include "kernels/conv/conv.h"

/* Products in the order of channel and kernel. */
static double conv_element(const mica__conv_sizes *s, mica_dtype dtype, const char *x, const char *w, int64_t y0,
                           int64_t y1)
{
    double sum = 0;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t t0 = 0; t0 < s->kernel[0]; t0++)
            for (int64_t t1 = 0; t1 < s->kernel[1]; t1++) {
                const int64_t x0 = mica__conv_source(s, 0, y0, t0), x1 = mica__conv_source(s, 1, y1, t1);
                if (x0 < 0 || x1 < 0) continue;
                sum += mica__get_f64(dtype, x, c * s->x_channel + x0 * s->x_step[0] + x1 * s->x_step[1]) *
                       mica__get_f64(dtype, w, c * s->w_channel + t0 * s->w_step[0] + t1 * s->w_step[1]);
            }
    return sum;
}

void mica__conv_rows(const void *launch, int64_t begin, int64_t end)
{
    const mica__launch *l = launch;
    const mica__tensor *x = &l->in[0], *w = &l->in[1];
    const mica_dtype dtype = mica__dtype_of(x);
    const mica__conv_sizes s = mica__conv_sizes_of(x, w, l->attr, &l->out->spec);
    const int64_t outs = s.groups * s.outs;
    for (int64_t row = begin; row < end; row++) {
        const int64_t y0 = row % s.out[0], o = row / s.out[0] % outs, batch = row / s.out[0] / outs;
        const int64_t channel = o / s.outs * s.channels;
        const char *from = mica__element(x, batch * s.x_batch + channel * s.x_channel);
        const char *weight = mica__element(w, o * s.w_out);
        for (int64_t y1 = 0; y1 < s.out[1]; y1++)
            mica__set_f64(dtype, l->out->data, row * s.out[1] + y1, conv_element(&s, dtype, from, weight, y0, y1));
    }
}

mica_status mica__conv_ref(const mica__launch *launch)
{
    mica__conv_rows(launch, 0, mica__row_count(&launch->out->spec));
    return MICA_OK;
}
