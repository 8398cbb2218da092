/* The super-blocks of 256: scales of sub-blocks are themselves quantised.
 *
 * Packing looks for the scale (and minimum) of each sub-block by least squares:
 * a few grids near the plain one are tried, each is fitted to the codes it gives,
 * and the one with the smallest squared error wins, the plain one if none is
 * better. So a block that is exactly representable comes back as it was. */
#include "quant/quant_blocks.h"

#include <math.h>
#include <string.h>

enum { SUPER = 256, SUB = 32, N_SUB = SUPER / SUB, SUB6 = 16, N_SUB6 = SUPER / SUB6, GRIDS = 8 };

/* To nearest even, cut; NaN, from a scale that overflows, is low. What lies between
 * the bounds is small: added to 1.5 * 2^52 and taken off again it is rounded,
 * without a call of nearbyint. */
static int code_at(double x, int low, int high)
{
    const double shift = 6755399441055744.0;
    if (!(x > low)) return low;
    return x >= high ? high : (int)((x + shift) - shift);
}

/* x ~ scale * q + offset with q in 0..top and offset <= 0. */
typedef struct affine_fit {
    double scale, offset, error;
} affine_fit;

static affine_fit fit_of_grid(const float *x, int n, int top, double scale, double offset, bool solve)
{
    double sq = 0, sqq = 0, sx = 0, sqx = 0;
    for (int i = 0; i < n && solve; i++) {
        const int q = code_at(((double)x[i] - offset) / scale, 0, top);
        sq += q;
        sqq += (double)q * q;
        sx += (double)x[i];
        sqx += q * (double)x[i];
    }
    const double det = n * sqq - sq * sq;
    if (solve && det > 0) {
        scale = (n * sqx - sq * sx) / det;
        offset = (sx - scale * sq) / n;
        if (offset > 0) {
            offset = 0;
            scale = sqx / sqq;
        }
    }
    affine_fit fit = {scale, offset, 0};
    if (!(scale > 0)) return fit.error = INFINITY, fit;
    for (int i = 0; i < n; i++) {
        const double d = (double)x[i] - (scale * code_at(((double)x[i] - offset) / scale, 0, top) + offset);
        fit.error += d * d;
    }
    return fit;
}

static affine_fit fit_affine(const float *x, int n, int top)
{
    float least = 0, most = x[0];
    for (int i = 0; i < n; i++) { /* as f32: gcc 12 for ARM fails on the same in double */
        least = fminf(least, x[i]);
        most = fmaxf(most, x[i]);
    }
    const double low = (double)least, high = (double)most;
    if (high <= low) return (affine_fit){0, low, 0};
    affine_fit best = fit_of_grid(x, n, top, (high - low) / top, low, false);
    for (int g = -GRIDS; g <= GRIDS; g++) {
        const affine_fit fit = fit_of_grid(x, n, top, (high - low) / (top + 0.1 * g), low, true);
        if (fit.error < best.error) best = fit;
    }
    return best;
}

/* x ~ scale * q with q in -half..half-1; the extreme of x may be q = -half. */
static double fit_symmetric(const float *x, int n, int half)
{
    double extreme = 0;
    for (int i = 0; i < n; i++)
        if (fabs((double)x[i]) > fabs(extreme)) extreme = (double)x[i];
    if (extreme == 0) return 0;
    double best = 0, best_error = INFINITY;
    for (int g = 0; g <= 2 * GRIDS; g++) {
        /* the plain grid first: 0, -1, 1, -2, 2, ... */
        const double grid = half + 0.1 * (g % 2 ? -(g + 1) / 2 : g / 2);
        double scale = -extreme / grid, sqq = 0, sqx = 0, error = 0;
        for (int i = 0; i < n && g; i++) {
            const int q = code_at((double)x[i] / scale, -half, half - 1);
            sqq += (double)q * q;
            sqx += q * (double)x[i];
        }
        if (g && sqq > 0) scale = sqx / sqq;
        if (scale == 0) continue;
        for (int i = 0; i < n; i++) {
            const double d = (double)x[i] - scale * code_at((double)x[i] / scale, -half, half - 1);
            error += d * d;
        }
        if (error < best_error) {
            best = scale;
            best_error = error;
        }
    }
    return best;
}

/* -------------------------------------------------------- Q4_K and Q5_K ---- */

/* Six-bit scales and minima: the first four in the low bits of bytes 0-3 and
 * 4-7, the others as nibbles of bytes 8-11 with two bits on top of the former. */
static void get_scale_min(const uint8_t s[12], int j, int *scale, int *min)
{
    *scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    *min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

static void put_scale_min(uint8_t s[12], int j, int scale, int min)
{
    if (j < 4) {
        s[j] |= (uint8_t)scale;
        s[j + 4] |= (uint8_t)min;
    } else {
        s[j + 4] |= (uint8_t)((scale & 15) | (min & 15) << 4);
        s[j - 4] |= (uint8_t)(scale >> 4 << 6);
        s[j] |= (uint8_t)(min >> 4 << 6);
    }
}

/* d, dmin and the packed scales of one super-block of bits 4 or 5. */
static void pack_scales(const float *x, int top, mica__f16 *d, mica__f16 *dmin, uint8_t scales[12])
{
    affine_fit fit[N_SUB];
    double scale = 0, min = 0;
    for (int j = 0; j < N_SUB; j++) {
        fit[j] = fit_affine(x + j * SUB, SUB, top);
        scale = fmax(scale, fit[j].scale);
        min = fmax(min, -fit[j].offset);
    }
    *d = mica__f16_make((float)(scale / 63));
    *dmin = mica__f16_make((float)(min / 63));
    const double unit = (double)mica__f16_get(*d), unit_min = (double)mica__f16_get(*dmin);
    memset(scales, 0, 12);
    for (int j = 0; j < N_SUB; j++)
        put_scale_min(scales, j, unit > 0 ? code_at(fit[j].scale / unit, 0, 63) : 0,
                      unit_min > 0 ? code_at(-fit[j].offset / unit_min, 0, 63) : 0);
}

static void pack_nibbles(const float *x, int top, mica__f16 d, mica__f16 dmin, const uint8_t scales[12],
                         uint8_t qs[128], uint8_t *qh)
{
    for (int i = 0; i < SUPER; i++) {
        int scale, min;
        get_scale_min(scales, i / SUB, &scale, &min);
        const double step = (double)mica__f16_get(d) * scale, offset = (double)mica__f16_get(dmin) * min;
        const int q = step > 0 ? code_at(((double)x[i] + offset) / step, 0, top) : 0;
        const int at = i / 64 * 32 + i % 32, high = i / 32 % 2;
        qs[at] = (uint8_t)(high ? qs[at] | (q & 15) << 4 : q & 15);
        if (qh) qh[i % 32] = (uint8_t)((i < 32 ? 0 : qh[i % 32]) | (q >> 4) << i / 32);
    }
}

static void unpack_nibbles(mica__f16 d, mica__f16 dmin, const uint8_t scales[12], const uint8_t qs[128],
                           const uint8_t *qh, float *x)
{
    const float unit = mica__f16_get(d), unit_min = mica__f16_get(dmin);
    for (int i = 0; i < SUPER; i++) {
        int scale, min;
        get_scale_min(scales, i / SUB, &scale, &min);
        int q = qs[i / 64 * 32 + i % 32] >> (i / 32 % 2 ? 4 : 0) & 15;
        if (qh) q |= (qh[i % 32] >> i / 32 & 1) << 4;
        x[i] = unit * (float)scale * (float)q - unit_min * (float)min;
    }
}

void mica__pack_q4_k(const float *x, void *blocks, size_t n_blocks)
{
    mica__block_q4_k *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SUPER) {
        pack_scales(x, 15, &b[k].d, &b[k].dmin, b[k].scales);
        pack_nibbles(x, 15, b[k].d, b[k].dmin, b[k].scales, b[k].qs, NULL);
    }
}

void mica__unpack_q4_k(const void *blocks, float *x, size_t n_blocks)
{
    const mica__block_q4_k *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SUPER) unpack_nibbles(b[k].d, b[k].dmin, b[k].scales, b[k].qs, NULL, x);
}

void mica__pack_q5_k(const float *x, void *blocks, size_t n_blocks)
{
    mica__block_q5_k *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SUPER) {
        pack_scales(x, 31, &b[k].d, &b[k].dmin, b[k].scales);
        pack_nibbles(x, 31, b[k].d, b[k].dmin, b[k].scales, b[k].qs, b[k].qh);
    }
}

void mica__unpack_q5_k(const void *blocks, float *x, size_t n_blocks)
{
    const mica__block_q5_k *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SUPER)
        unpack_nibbles(b[k].d, b[k].dmin, b[k].scales, b[k].qs, b[k].qh, x);
}

/* ------------------------------------------------------------------ Q6_K --- */

/* Element i: nibble and two high bits, in halves of 128 with four groups of 32. */
static void q6_place(int i, int *ql, int *ql_shift, int *qh, int *qh_shift)
{
    const int half = i / 128, group = i % 128 / 32, l = i % 32;
    *ql = half * 64 + group % 2 * 32 + l;
    *ql_shift = group / 2 * 4;
    *qh = half * 32 + l;
    *qh_shift = 2 * group;
}

static void pack_q6_block(const float *x, mica__block_q6_k *b)
{
    double scale[N_SUB6], top = 0;
    for (int j = 0; j < N_SUB6; j++) {
        scale[j] = fit_symmetric(x + j * SUB6, SUB6, 32);
        if (fabs(scale[j]) > fabs(top)) top = scale[j];
    }
    memset(b, 0, sizeof *b);
    /* The largest scale becomes -128, the code that has no positive partner. */
    b->d = mica__f16_make((float)(top / -128));
    const double unit = (double)mica__f16_get(b->d);
    for (int j = 0; j < N_SUB6; j++) b->scales[j] = (int8_t)(unit != 0 ? code_at(scale[j] / unit, -128, 127) : 0);
    for (int i = 0; i < SUPER; i++) {
        const double step = unit * b->scales[i / SUB6];
        const int q = (step != 0 ? code_at((double)x[i] / step, -32, 31) : 0) + 32;
        int ql, ql_shift, qh, qh_shift;
        q6_place(i, &ql, &ql_shift, &qh, &qh_shift);
        b->ql[ql] |= (uint8_t)((q & 15) << ql_shift);
        b->qh[qh] |= (uint8_t)(q >> 4 << qh_shift);
    }
}

void mica__pack_q6_k(const float *x, void *blocks, size_t n_blocks)
{
    mica__block_q6_k *b = blocks;
    for (size_t k = 0; k < n_blocks; k++) pack_q6_block(x + k * SUPER, b + k);
}

void mica__unpack_q6_k(const void *blocks, float *x, size_t n_blocks)
{
    const mica__block_q6_k *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SUPER)
        for (int i = 0; i < SUPER; i++) {
            int ql, ql_shift, qh, qh_shift;
            q6_place(i, &ql, &ql_shift, &qh, &qh_shift);
            const int q = (b[k].ql[ql] >> ql_shift & 15) | (b[k].qh[qh] >> qh_shift & 3) << 4;
            x[i] = mica__f16_get(b[k].d) * (float)b[k].scales[i / SUB6] * (float)(q - 32);
        }
}
