/* Formats with super-blocks of 256 elements (Q4_K, Q5_K, Q6_K): the scales of sub-blocks are
 * quantised too.
 *
 * Packing searches the scale (and minimum) of each sub-block by least squares. It tries several
 * grids near the plain grid (the range divided evenly), fits scale and minimum to the codes of
 * each grid, and takes the one with the smallest squared error. The plain grid is kept unless
 * another is better by more than rounding. So an exactly representable block is unpacked unchanged.
 *
 * The search uses f32 vectors of four, which every supported CPU has, and a fixed order of sums,
 * so the bytes are the same on every machine. Values whose squares overflow get the plain grid;
 * f16 cannot represent their scales. */
#include "quant/quant_blocks.h"

#include <math.h>
#include <string.h>

enum { SUPER = 256, SUB = 32, N_SUB = SUPER / SUB, SUB6 = 16, N_SUB6 = SUPER / SUB6, GRIDS = 8 };

/* Rounds to nearest even and clamps to [low, high]; NaN, from a scale that overflows, gives low.
 * Values between the bounds are small: adding and subtracting 1.5 * 2^52 rounds them, without a
 * call of nearbyint. */
static int code_at(double x, int low, int high)
{
    const double shift = 6755399441055744.0;
    if (!(x > low)) return low;
    return x >= high ? high : (int)((x + shift) - shift);
}

typedef float k_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t k_mask __attribute__((vector_size(16)));

static inline k_four k_select(k_mask which, k_four a, k_four b)
{
    return (k_four)((which & (k_mask)a) | (~which & (k_mask)b));
}
static inline k_four k_splat(float x) { return (k_four){x, x, x, x}; }
static inline float k_total(k_four x) { return (x[0] + x[1]) + (x[2] + x[3]); }

/* code_at for four floats; clamped values are small enough for 1.5 * 2^23. */
static inline k_four k_codes(k_four x, float low, float high)
{
    const k_four shift = k_splat(0x1.8p23f), least = k_splat(low), most = k_splat(high);
    x = k_select(x > least, x, least);
    x = k_select(x < most, x, most);
    return (x + shift) - shift;
}

/* x ~ scale * q + offset with q in 0..top and offset <= 0. */
typedef struct affine_fit {
    float scale, offset, error;
} affine_fit;

/* Sums over the codes of a grid: of q, q * q and q * x. */
typedef struct grid_sums {
    float q, qq, qx;
} grid_sums;

static inline grid_sums sums_of_grid(const float *x, int n, float times, float offset, float low, float high)
{
    k_four q = k_splat(0), qq = q, qx = q;
    for (int i = 0; i < n; i += 4) {
        const k_four v = *(const k_four *)(x + i), code = k_codes((v - offset) * times, low, high);
        q += code;
        qq += code * code;
        qx += code * v;
    }
    return (grid_sums){k_total(q), k_total(qq), k_total(qx)};
}

/* The squared error of a scale and an offset with the nearest codes. */
static inline float grid_error(const float *x, int n, float scale, float offset, float low, float high)
{
    k_four error = k_splat(0);
    const float times = 1 / scale;
    for (int i = 0; i < n; i += 4) {
        const k_four v = *(const k_four *)(x + i);
        const k_four d = v - (k_codes((v - offset) * times, low, high) * scale + offset);
        error += d * d;
    }
    return k_total(error);
}

/* The amount by which the error of another grid must be smaller. */
static inline float error_margin(float squares) { return 1e-6f * squares; }

static affine_fit fit_affine(const float *x, int n, int top)
{
    k_four least = k_splat(0), most = k_splat(x[0]), sum = k_splat(0), squares = sum;
    for (int i = 0; i < n; i += 4) {
        const k_four v = *(const k_four *)(x + i);
        least = k_select(v < least, v, least);
        most = k_select(v > most, v, most);
        sum += v;
        squares += v * v;
    }
    float low = 0, high = x[0];
    for (int l = 0; l < 4; l++) {
        low = least[l] < low ? least[l] : low;
        high = most[l] > high ? most[l] : high;
    }
    if (high <= low) return (affine_fit){0, low, 0};
    const float sx = k_total(sum), margin = error_margin(k_total(squares)), count = (float)n, highest = (float)top;
    affine_fit best = {(high - low) / highest, low, 0};
    best.error = grid_error(x, n, best.scale, low, 0, highest) - margin;
    for (int g = -GRIDS; g <= GRIDS; g++) {
        const grid_sums s = sums_of_grid(x, n, (highest + 0.1f * (float)g) / (high - low), low, 0, highest);
        const float det = count * s.qq - s.q * s.q;
        if (!(det > 0)) continue;
        affine_fit fit = {.scale = (count * s.qx - s.q * sx) / det};
        fit.offset = (sx - fit.scale * s.q) / count;
        if (fit.offset > 0) {
            fit.offset = 0;
            fit.scale = s.qx / s.qq;
        }
        if (!(fit.scale > 0)) continue;
        fit.error = grid_error(x, n, fit.scale, fit.offset, 0, highest);
        if (fit.error < best.error) best = fit;
    }
    return best;
}

/* x ~ scale * q with q in -half..half-1; the plain grid maps the largest magnitude of x to q = -half. */
static float fit_symmetric(const float *x, int n, int half)
{
    float extreme = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
        squares += x[i] * x[i];
    }
    if (extreme == 0) return 0;
    const float low = (float)-half, high = (float)(half - 1);
    float best = -extreme / (float)half, best_error = grid_error(x, n, best, 0, low, high) - error_margin(squares);
    for (int g = -GRIDS; g <= GRIDS; g++) {
        const grid_sums s = sums_of_grid(x, n, -((float)half + 0.1f * (float)g) / extreme, 0, low, high);
        if (!(s.qq > 0) || s.qx == 0) continue;
        const float scale = s.qx / s.qq, error = grid_error(x, n, scale, 0, low, high);
        if (error < best_error) {
            best = scale;
            best_error = error;
        }
    }
    return best;
}

/* -------------------------------------------------------- Q4_K and Q5_K ---- */

/* Six-bit scales and minima. Those of sub-blocks 0-3 are the low bits of bytes 0-3 and 4-7. Those
 * of sub-blocks 4-7 have four bits in bytes 8-11 and two in the high bits of bytes 0-7. */
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

/* Computes d, dmin and the packed scales of a Q4_K or Q5_K super-block. */
static void pack_scales(const float *x, int top, mica__f16 *d, mica__f16 *dmin, uint8_t scales[12])
{
    affine_fit fit[N_SUB];
    float scale = 0, min = 0;
    for (int j = 0; j < N_SUB; j++) {
        fit[j] = fit_affine(x + j * SUB, SUB, top);
        scale = fmaxf(scale, fit[j].scale);
        min = fmaxf(min, -fit[j].offset);
    }
    *d = mica__f16_make(scale / 63);
    *dmin = mica__f16_make(min / 63);
    const double unit = (double)mica__f16_get(*d), unit_min = (double)mica__f16_get(*dmin);
    memset(scales, 0, 12);
    for (int j = 0; j < N_SUB; j++)
        put_scale_min(scales, j, unit > 0 ? code_at((double)fit[j].scale / unit, 0, 63) : 0,
                      unit_min > 0 ? code_at((double)-fit[j].offset / unit_min, 0, 63) : 0);
}

static void pack_nibbles(const float *x, int top, mica__f16 d, mica__f16 dmin, const uint8_t scales[12],
                         uint8_t qs[128], uint8_t *qh)
{
    const double unit = (double)mica__f16_get(d), unit_min = (double)mica__f16_get(dmin);
    memset(qs, 0, SUPER / 2);
    if (qh) memset(qh, 0, SUB);
    for (int j = 0; j < N_SUB; j++) {
        int scale, min;
        get_scale_min(scales, j, &scale, &min);
        const double step = unit * scale, offset = unit_min * min, times = step > 0 ? 1 / step : 0;
        for (int i = 0; i < SUB; i++) {
            const int q = code_at(((double)x[j * SUB + i] + offset) * times, 0, top);
            qs[j / 2 * SUB + i] |= (uint8_t)((q & 15) << (j % 2 ? 4 : 0));
            if (qh) qh[i] |= (uint8_t)((q >> 4) << j);
        }
    }
}

static void unpack_nibbles(mica__f16 d, mica__f16 dmin, const uint8_t scales[12], const uint8_t qs[128],
                           const uint8_t *qh, float *x)
{
    const float unit = mica__f16_get(d), unit_min = mica__f16_get(dmin);
    for (int j = 0; j < N_SUB; j++) {
        int scale, min;
        get_scale_min(scales, j, &scale, &min);
        const float step = unit * (float)scale, offset = unit_min * (float)min;
        for (int i = 0; i < SUB; i++) {
            const int q = qs[j / 2 * SUB + i] >> (j % 2 ? 4 : 0) & 15, high = qh ? (qh[i] >> j & 1) << 4 : 0;
            x[j * SUB + i] = step * (float)(q | high) - offset;
        }
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

/* Where the low nibble and the two high bits of element i are stored: halves of 128, four groups of 32. */
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
    float scale[N_SUB6], top = 0;
    for (int j = 0; j < N_SUB6; j++) {
        scale[j] = fit_symmetric(x + j * SUB6, SUB6, 32);
        if (fabsf(scale[j]) > fabsf(top)) top = scale[j];
    }
    memset(b, 0, sizeof *b);
    /* The largest scale gets the code -128, which has no positive counterpart. */
    b->d = mica__f16_make(top / -128);
    const double unit = (double)mica__f16_get(b->d);
    for (int j = 0; j < N_SUB6; j++)
        b->scales[j] = (int8_t)(unit != 0 ? code_at((double)scale[j] / unit, -128, 127) : 0);
    double times[N_SUB6];
    for (int j = 0; j < N_SUB6; j++) times[j] = unit * b->scales[j] != 0 ? 1 / (unit * b->scales[j]) : 0;
    for (int i = 0; i < SUPER; i++) {
        const int q = code_at((double)x[i] * times[i / SUB6], -32, 31) + 32;
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
    for (size_t k = 0; k < n_blocks; k++, x += SUPER) {
        const float d = mica__f16_get(b[k].d);
        for (int i = 0; i < SUPER; i++) {
            int ql, ql_shift, qh, qh_shift;
            q6_place(i, &ql, &ql_shift, &qh, &qh_shift);
            const int q = (b[k].ql[ql] >> ql_shift & 15) | (b[k].qh[qh] >> qh_shift & 3) << 4;
            x[i] = d * (float)b[k].scales[i / SUB6] * (float)(q - 32);
        }
    }
}
