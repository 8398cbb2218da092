/* Affine groups of MLX: value = scale * q + bias, one scale and one bias per group.
 *
 * The codes of a row are one bit stream, low bits first. With 2, 4 and 8 bits this is
 * equal to values in u32 words; with 3, 5 and 6 bits it is equal to MLX's groups of
 * 3, 5 and 3 bytes. */
#include "quant/quant_affine.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

mica_status mica__affine_check(const mica__quant_matrix *m, const char *what)
{
    if (!(m->bits >= 2 && m->bits <= 8 && m->bits != 7) || !(m->group == 32 || m->group == 64 || m->group == 128))
        return mica__fail(MICA_ERR_UNSUPPORTED,
                          "%s: affine groups of %d with %d bits; supported are 32, 64 and 128 with 2 to 6 or 8 bits",
                          what, m->group, m->bits);
    if (m->cols % m->group)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: rows of %" PRId64 " are not a multiple of the group of %d", what,
                          m->cols, m->group);
    int64_t bits;
    if (__builtin_mul_overflow(m->rows, m->cols, &bits) || bits > INT64_MAX / 8)
        return mica__fail(MICA_ERR_SIZE, "%s: %" PRId64 " x %" PRId64 " is too large", what, m->rows, m->cols);
    return MICA_OK;
}

static unsigned bits_at(const uint8_t *b, size_t bit, int bits)
{
    unsigned v = b[bit / 8];
    if (bit % 8 + (size_t)bits > 8) v |= (unsigned)b[bit / 8 + 1] << 8;
    return v >> bit % 8 & ((1u << bits) - 1);
}

static float affine_scale(mica__quant_id type, const void *p, size_t i)
{
    float v;
    const mica__quant *q = mica__quant_get(type);
    q->unpack((const char *)p + i * q->bytes, &v, 1);
    return v;
}

void mica__affine_unpack(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, float *out)
{
    const size_t row_bytes = (size_t)m->cols / 8 * (size_t)m->bits, groups = (size_t)(m->cols / m->group);
    const uint8_t *row = (const uint8_t *)m->data + (size_t)r * row_bytes;
    for (int64_t c = 0; c < n; c++) {
        const size_t at = (size_t)(from + c), g = (size_t)r * groups + at / (size_t)m->group;
        const float q = (float)bits_at(row, at * (size_t)m->bits, m->bits);
        out[c] = affine_scale(m->scale_type, m->scales, g) * q + affine_scale(m->scale_type, m->biases, g);
    }
}

/* The end of the range with the larger magnitude is represented exactly: it is the bias, and
 * the sign of the scale points from it to the other end. */
static void affine_group(const float *x, int n, float top, float *scale, float *bias)
{
    float low = x[0], high = x[0];
    for (int i = 1; i < n; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    const bool low_end = fabsf(low) > fabsf(high);
    const float edge = low_end ? low : high, step = fmaxf((high - low) / top, 1e-7f);
    const float s = low_end ? step : -step, zero = nearbyintf(edge / s);
    *scale = zero != 0 ? edge / zero : s;
    *bias = zero != 0 ? edge : 0;
}

void mica__pack_affine(const float *x, int64_t rows, int64_t cols, int bits, int group, uint8_t *out, float *scales,
                       float *biases)
{
    const float top = (float)((1 << bits) - 1);
    const size_t row_bytes = (size_t)cols / 8 * (size_t)bits, groups = (size_t)(cols / group);
    memset(out, 0, (size_t)rows * row_bytes);
    for (size_t r = 0; r < (size_t)rows; r++, x += cols)
        for (size_t g = 0; g < groups; g++) {
            float *scale = scales + r * groups + g, *bias = biases + r * groups + g;
            affine_group(x + g * (size_t)group, group, top, scale, bias);
            for (size_t i = g * (size_t)group; i < (g + 1) * (size_t)group; i++) {
                const unsigned q = (unsigned)fminf(fmaxf(nearbyintf((x[i] - *bias) / *scale), 0), top);
                const size_t bit = i * (size_t)bits;
                uint8_t *b = out + r * row_bytes + bit / 8;
                b[0] |= (uint8_t)(q << bit % 8);
                if (bit % 8 + (size_t)bits > 8) b[1] |= (uint8_t)(q << bit % 8 >> 8);
            }
        }
}
