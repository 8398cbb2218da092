/* See conv_planes.h. */
#include "kernels/conv/conv_planes.h"

#include "base/cpu.h"

/* ---------------------------------------------------------------- variants -- */

typedef struct conv_entry {
    const char *name;
    unsigned needs; /* CPU features */
    const mica__conv_variant *variant;
} conv_entry;

static const conv_entry conv_table[] = {
#define MICA_CONV(name, needs) {#name, needs, &mica__conv_##name},
#include "kernels/conv/conv.def"
#undef MICA_CONV
};

const mica__conv_variant *mica__conv_variant_at(size_t i, const char **name)
{
    const unsigned have = mica__cpu_features();
    if (i >= sizeof conv_table / sizeof *conv_table || (conv_table[i].needs & ~have)) return NULL;
    if (name) *name = conv_table[i].name;
    return conv_table[i].variant;
}

const mica__conv_variant *mica__conv_best(void)
{
    const mica__conv_variant *best = NULL, *next;
    for (size_t i = 0; (next = mica__conv_variant_at(i, NULL)) != NULL; i++) best = next;
    return best;
}

/* ------------------------------------------------------------------ planes -- */

/* Rounds n up to an odd number of cache lines, so that the same element of all channels does
 * not map to a few cache sets. */
static int64_t conv_spread(int64_t n)
{
    const int64_t line = 16, lines = (n + line - 1) / line;
    return (lines + (lines % 2 == 0)) * line;
}

mica__conv_planes mica__conv_planes_of(const mica__conv_sizes *s, mica_dtype dtype, bool swapped, int strip)
{
    mica__conv_planes p = {.in_place = dtype == MICA_F32 && !swapped && s->channels > 0};
    for (int i = 0; i < 2; i++) {
        p.longer[i] = swapped ? s->kernel[i] : s->out[i];
        p.step[i] = swapped ? s->dilation[i] : s->stride[i];
        p.shorter[i] = swapped ? s->out[i] : s->kernel[i];
        p.skip[i] = swapped ? s->stride[i] : s->dilation[i];
        p.phases[i] = p.shorter[i] > 1 ? p.step[i] : 1;
        p.size[i] = p.longer[i] + (p.shorter[i] - 1) * p.skip[i] / p.step[i];
        if (s->pad[i] != 0 || s->input_dilation[i] != 1 || p.step[i] != 1 || p.size[i] != s->size[i])
            p.in_place = false;
    }
    /* strips are read as whole vectors: the last one begins earlier, which needs at least one strip of positions */
    if ((s->size[1] > 1 && s->x_step[1] != 1) || (s->size[0] > 1 && s->x_step[0] != s->size[1]) ||
        (p.longer[0] - 1) * p.size[1] + p.longer[1] < strip)
        p.in_place = false;
    p.channel = p.in_place ? s->x_channel : conv_spread(p.phases[0] * p.phases[1] * p.size[0] * p.size[1]);
    return p;
}

/* Writes a line of the plane of phase r1 from a line of the image; elements outside the image are 0. */
static void conv_fill_line(const mica__conv_planes *p, const mica__conv_sizes *s, mica_dtype dtype, const char *line,
                           int64_t r1, float *to)
{
    const int64_t size = (int64_t)mica_dtype_size(dtype), step = p->step[1], n = p->size[1],
                  spread = s->input_dilation[1];
    if (spread != 1) {
        memset(to, 0, (size_t)n * sizeof *to);
        for (int64_t w = 0; w < n; w++) {
            const int64_t at = w * step + r1 - s->pad[1];
            if (at >= 0 && at % spread == 0 && at / spread < s->size[1])
                mica__load_f32(dtype, 1, to + w, line + at / spread * s->x_step[1] * size, 1);
        }
        return;
    }
    /* w * step + r1 - pad in 0 ... size-1 */
    const int64_t shift = s->pad[1] - r1, room = s->size[1] + shift;
    const int64_t first = mica__min_i64(n, shift > 0 ? (shift + step - 1) / step : 0);
    const int64_t end = mica__max_i64(first, room > 0 ? mica__min_i64(n, (room + step - 1) / step) : 0);
    for (int64_t w = 0; w < first; w++) to[w] = 0;
    for (int64_t w = end; w < n; w++) to[w] = 0;
    if (first < end)
        mica__load_f32(dtype, end - first, to + first, line + (first * step - shift) * s->x_step[1] * size,
                       step * s->x_step[1]);
}

void mica__conv_fill(const mica__conv_planes *p, const mica__conv_sizes *s, mica_dtype dtype, const char *x, float *to)
{
    const int64_t size = (int64_t)mica_dtype_size(dtype), spread = s->input_dilation[0];
    for (int64_t r0 = 0; r0 < p->phases[0]; r0++)
        for (int64_t r1 = 0; r1 < p->phases[1]; r1++)
            for (int64_t h = 0; h < p->size[0]; h++, to += p->size[1]) {
                const int64_t at = h * p->step[0] + r0 - s->pad[0];
                if (at < 0 || at % spread != 0 || at / spread >= s->size[0])
                    memset(to, 0, (size_t)p->size[1] * sizeof *to);
                else conv_fill_line(p, s, dtype, x + at / spread * s->x_step[0] * size, r1, to);
            }
}
