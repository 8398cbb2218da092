/* Ternary and one-bit formats: a scale times small integers.
 *
 * They differ only in where the code of element i is stored, so each is a row of a table:
 * the order of two-bit codes in bytes, the number of bytes with five trits, or one bit per
 * element. A byte of trits t0..t4 is the fraction (81 t0 + 27 t1 + 9 t2 + 3 t3 + t4) / 243
 * in units of 1/256, rounded up. Multiplied by 3, its integer part is the next trit. */
#include "quant/quant_blocks.h"

#include <math.h>
#include <string.h>

typedef mica__ternary_layout ternary_format;

static const ternary_format format_tq1_0 = {MICA__CODES_TRITS, 256, 54, 52, 0, 0, 0, false, {32, 16, 4}};
static const ternary_format format_ptq1_0 = {MICA__CODES_TRITS, 128, 28, 26, 0, 0, 0, false, {16, 8, 2}};
static const ternary_format format_tq2_0 = {MICA__CODES_TWO_BITS, 256, 66, 64, 0, 128, 32, false, {0}};
static const ternary_format format_i2_s = {MICA__CODES_TWO_BITS, 128, 32, -1, 0, 128, 32, true, {0}};
static const ternary_format format_i2_s_arm = {MICA__CODES_TWO_BITS, 64, 16, -1, 0, 64, 16, true, {0}};
static const ternary_format format_q2_0 = {MICA__CODES_TWO_BITS, 64, 18, 0, 2, 4, 1, false, {0}};
static const ternary_format format_pq2_0 = {MICA__CODES_TWO_BITS, 128, 34, 0, 2, 4, 1, false, {0}};
static const ternary_format format_q1_0 = {MICA__CODES_BITS, 128, 18, 0, 2, 0, 0, false, {0}};
static const ternary_format format_q1_0_g32 = {MICA__CODES_BITS, 32, 6, 0, 2, 0, 0, false, {0}};

const mica__ternary_layout *mica__ternary_layout_of(mica__quant_id id)
{
    switch (id) {
    case MICA__QUANT_TQ1_0: return &format_tq1_0;
    case MICA__QUANT_PTQ1_0: return &format_ptq1_0;
    case MICA__QUANT_TQ2_0: return &format_tq2_0;
    case MICA__QUANT_I2_S: return &format_i2_s;
    case MICA__QUANT_I2_S_ARM: return &format_i2_s_arm;
    case MICA__QUANT_Q2_0: return &format_q2_0;
    case MICA__QUANT_PQ2_0: return &format_pq2_0;
    case MICA__QUANT_Q1_0: return &format_q1_0;
    case MICA__QUANT_Q1_0_G32: return &format_q1_0_g32;
    default: return NULL;
    }
}

/* ---------------------------------------------------------------- unpack --- */

static void trits_out(const ternary_format *f, const uint8_t *b, int8_t *codes)
{
    for (int r = 0; r < 3; r++) {
        const int trits = r < 2 ? 5 : 4;
        for (int j = 0; j < f->run[r]; j++) {
            unsigned byte = b[j];
            for (int n = 0; n < trits; n++, byte = byte * 3 & 255)
                codes[n * f->run[r] + j] = (int8_t)((int)(byte * 3 >> 8) - 1);
        }
        b += f->run[r];
        codes += trits * f->run[r];
    }
}

/* Two-bit codes are stored in runs: `stride` consecutive elements have the same shift. */
static int two_bit_shift(const ternary_format *f, int place) { return 2 * (f->high_first ? 3 - place : place); }

void mica__two_bits(const uint8_t *b, int64_t n, int shift, int8_t *codes)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t v;
        memcpy(&v, b + i, sizeof v);
        v = (v >> shift & 0x0303030303030303u) + 0x7f7f7f7f7f7f7f7fu; /* 0x7f is -1, and no byte carries */
        v ^= 0x8080808080808080u;
        memcpy(codes + i, &v, sizeof v);
    }
    for (; i < n; i++) codes[i] = (int8_t)((b[i] >> shift & 3) - 1);
}

static void two_bits_out(const ternary_format *f, const uint8_t *b, int8_t *codes)
{
    for (int i = 0; i < f->block; i += f->span, b += f->stride)
        for (int place = 0; place < 4; place++, codes += f->stride)
            mica__two_bits(b, f->stride, two_bit_shift(f, place), codes);
}

static void block_codes(const ternary_format *f, const uint8_t *b, int8_t *codes)
{
    b += f->codes;
    if (f->kind == MICA__CODES_TRITS) trits_out(f, b, codes);
    else if (f->kind == MICA__CODES_TWO_BITS) two_bits_out(f, b, codes);
    else
        for (int i = 0; i < f->block; i++) codes[i] = (int8_t)((b[i / 8] >> i % 8 & 1) * 2 - 1);
}

static float block_scale(const ternary_format *f, const uint8_t *b)
{
    if (f->scale < 0) return 1;
    mica__f16 d;
    memcpy(&d, b + f->scale, 2);
    return mica__f16_get(d);
}

static void codes_blocks(const ternary_format *f, const void *blocks, int8_t *codes, float *scales, size_t n_blocks)
{
    const uint8_t *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, b += f->bytes, codes += f->block) {
        block_codes(f, b, codes);
        scales[k] = block_scale(f, b);
    }
}

static void unpack_blocks(const ternary_format *f, const void *blocks, float *x, size_t n_blocks)
{
    const uint8_t *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, b += f->bytes, x += f->block) {
        int8_t codes[MICA__QUANT_BLOCK_MAX];
        block_codes(f, b, codes);
        const float d = block_scale(f, b);
        for (int i = 0; i < f->block; i++) x[i] = (float)codes[i] * d;
    }
}

/* ------------------------------------------------------------------ pack --- */

static void trits_in(const ternary_format *f, const int8_t *codes, uint8_t *b)
{
    for (int r = 0; r < 3; r++) {
        const int trits = r < 2 ? 5 : 4;
        for (int j = 0; j < f->run[r]; j++) {
            int v = 0;
            for (int n = 0; n < trits; n++) v = v * 3 + codes[n * f->run[r] + j] + 1;
            if (trits == 4) v *= 3;
            b[j] = (uint8_t)((v * 256 + 242) / 243);
        }
        b += f->run[r];
        codes += trits * f->run[r];
    }
}

static void two_bits_in(const ternary_format *f, const int8_t *codes, uint8_t *b)
{
    for (int i = 0; i < f->block; i += f->span, b += f->stride)
        for (int place = 0; place < 4; place++) {
            const int shift = two_bit_shift(f, place);
            for (int j = 0; j < f->stride; j++) b[j] |= (uint8_t)((*codes++ + 1) << shift);
        }
}

static void put_codes(const ternary_format *f, const int8_t *codes, uint8_t *b)
{
    b += f->codes;
    if (f->kind == MICA__CODES_TRITS) trits_in(f, codes, b);
    else if (f->kind == MICA__CODES_TWO_BITS) two_bits_in(f, codes, b);
    else
        for (int i = 0; i < f->block; i++) b[i / 8] |= (uint8_t)((codes[i] > 0) << i % 8);
}

/* roundf for small values, without a call. */
static int nearest_code(float v)
{
    const int whole = (int)v;
    const float rest = v - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* The scale is the largest magnitude, as in the original implementations. Weights that are
 * ternary already (mica__ternary_absmean) are packed without loss. One-bit formats use the
 * mean magnitude, which has the smallest squared error for signs. */
static void pack_blocks(const ternary_format *f, const float *x, void *blocks, size_t n_blocks)
{
    uint8_t *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, b += f->bytes, x += f->block) {
        float top = 0;
        double sum = 0;
        for (int i = 0; i < f->block; i++) {
            const float size = fabsf(x[i]);
            top = size > top ? size : top;
        }
        for (int i = 0; i < f->block && f->kind == MICA__CODES_BITS; i++) sum += (double)fabsf(x[i]);
        const float d = f->scale < 0 ? 1 : f->kind == MICA__CODES_BITS ? (float)(sum / f->block) : top;
        const float inverse = mica__inverse(d);
        int8_t codes[MICA__QUANT_BLOCK_MAX];
        for (int i = 0; i < f->block; i++)
            codes[i] = (int8_t)(f->kind == MICA__CODES_BITS ? (x[i] < 0 ? -1 : 1) : nearest_code(x[i] * inverse));
        memset(b, 0, (size_t)f->bytes);
        put_codes(f, codes, b);
        const mica__f16 half = mica__f16_make(d);
        if (f->scale >= 0) memcpy(b + f->scale, &half, 2);
    }
}

#define TERNARY(name)                                                                                       \
    void mica__pack_##name(const float *x, void *b, size_t n) { pack_blocks(&format_##name, x, b, n); }     \
    void mica__unpack_##name(const void *b, float *x, size_t n) { unpack_blocks(&format_##name, b, x, n); } \
    void mica__codes_##name(const void *b, int8_t *codes, float *scales, size_t n)                          \
    {                                                                                                       \
        codes_blocks(&format_##name, b, codes, scales, n);                                                  \
    }
TERNARY(tq1_0)
TERNARY(ptq1_0)
TERNARY(tq2_0)
TERNARY(i2_s)
TERNARY(i2_s_arm)
TERNARY(q2_0)
TERNARY(pq2_0)
TERNARY(q1_0)
TERNARY(q1_0_g32)
#undef TERNARY

/* ------------------------------------------------------------- matrices ---- */

void mica__pack_hf_ternary(const int8_t *codes, int64_t rows, int64_t cols, uint8_t *out)
{
    const int64_t quarter = (rows + 3) / 4;
    memset(out, 0, (size_t)(quarter * cols));
    for (int64_t r = 0; r < 4 * quarter; r++)
        for (int64_t c = 0; c < cols; c++)
            out[r % quarter * cols + c] |= (uint8_t)(((r < rows ? codes[r * cols + c] : -1) + 1) << 2 * (r / quarter));
}

float mica__ternary_absmean(const float *x, size_t n, int8_t *codes)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)fabsf(x[i]);
    const float mean = n ? (float)(sum / (double)n) : 0, scale = mean > 1e-5f || mean != mean ? mean : 1e-5f;
    for (size_t i = 0; i < n; i++) {
        const float r = nearbyintf(x[i] / scale);
        codes[i] = (int8_t)(r >= 1 ? 1 : r <= -1 ? -1 : 0);
    }
    return scale;
}
