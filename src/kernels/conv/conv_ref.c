/* Convolution as it is written down. */
#include "kernels/conv/conv.h"

double mica__conv_element(const mica__conv_sizes *s, mica_dtype dtype, const char *x, const char *w, int64_t y0,
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

mica_status mica__conv_ref(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *w = &launch->in[1];
    const mica_dtype dtype = mica__dtype_of(x);
    const mica__conv_sizes s = mica__conv_sizes_of(launch);
    const int64_t outs = s.groups * s.outs;
    int64_t index = 0;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t o = 0; o < outs; o++) {
            const int64_t channel = o / s.outs * s.channels;
            const char *from = mica__element(x, b * s.x_batch + channel * s.x_channel);
            const char *weight = mica__element(w, o * s.w_out);
            for (int64_t y0 = 0; y0 < s.out[0]; y0++)
                for (int64_t y1 = 0; y1 < s.out[1]; y1++, index++)
                    mica__set_f64(dtype, launch->out->data, index, mica__conv_element(&s, dtype, from, weight, y0, y1));
        }
    return MICA_OK;
}
