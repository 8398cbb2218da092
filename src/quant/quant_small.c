/* Plain types, and the formats with blocks of 32 elements. Q4_0, Q4_1, Q5_0 and Q5_1 share one
 * implementation; a layout states the number of bits, whether there is a minimum, and where the
 * fifth bits are. */
#include "quant/quant_blocks.h"

#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------- plain --- */

void mica__pack_f32(const float *x, void *blocks, size_t n) { memcpy(blocks, x, n * sizeof *x); }
void mica__unpack_f32(const void *blocks, float *x, size_t n) { memcpy(x, blocks, n * sizeof *x); }

void mica__pack_f64(const float *x, void *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double wide = (double)x[i];
        memcpy((char *)blocks + 8 * i, &wide, 8);
    }
}

void mica__unpack_f64(const void *blocks, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double wide;
        memcpy(&wide, (const char *)blocks + 8 * i, 8);
        x[i] = (float)wide;
    }
}

static uint16_t u16_at(const void *p, size_t i)
{
    uint16_t v;
    memcpy(&v, (const char *)p + 2 * i, 2);
    return v;
}

static void set_u16_at(void *p, size_t i, uint16_t v) { memcpy((char *)p + 2 * i, &v, 2); }

void mica__pack_f16(const float *x, void *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) set_u16_at(blocks, i, mica_f16_from_f32(x[i]));
}

/* Four at a time and without branches. Exponent and mantissa are shifted to their f32 positions; the factor 2^112
 * corrects the exponent bias exactly, also for subnormals. Infinity and NaN get the f32 exponent by a mask. */
void mica__unpack_f16(const void *blocks, float *x, size_t n)
{
    typedef uint32_t four_bits __attribute__((vector_size(16)));
    typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const four_bits half = {u16_at(blocks, i), u16_at(blocks, i + 1), u16_at(blocks, i + 2), u16_at(blocks, i + 3)};
        const four_bits size = half & 0x7fff, endless = (four_bits)(size > 0x7bff), none = (four_bits)(size > 0x7c00);
        const four_bits value = (four_bits)((four_floats)(size << 13) * 0x1p112f);
        *(four_floats *)(x + i) =
            (four_floats)(value | (endless & 0x7f800000) | (none & 0x400000) | (half & 0x8000) << 16);
    }
    for (; i < n; i++) x[i] = mica_f16_to_f32(u16_at(blocks, i));
}

void mica__pack_bf16(const float *x, void *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) set_u16_at(blocks, i, mica_bf16_from_f32(x[i]));
}

void mica__unpack_bf16(const void *blocks, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = mica_bf16_to_f32(u16_at(blocks, i));
}

/* ----------------------------------------------------------- blocks of 32 -- */

enum { SMALL = 32 };

void mica__pack_q8_0(const float *x, void *blocks, size_t n_blocks)
{
    mica__block_q8_0 *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SMALL) {
        float top = 0;
        for (int i = 0; i < SMALL; i++) top = fmaxf(top, fabsf(x[i]));
        const float d = top / 127, inverse = mica__inverse(d);
        b[k].d = mica__f16_make(d);
        for (int i = 0; i < SMALL; i++) b[k].qs[i] = (int8_t)roundf(x[i] * inverse);
    }
}

void mica__unpack_q8_0(const void *blocks, float *x, size_t n_blocks)
{
    const mica__block_q8_0 *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, x += SMALL)
        for (int i = 0; i < SMALL; i++) x[i] = (float)b[k].qs[i] * mica__f16_get(b[k].d);
}

typedef mica__small_layout small_format;

static const small_format small_q4_0 = {18, 4, -1, -1, 2}, small_q4_1 = {20, 4, 2, -1, 4},
                          small_q5_0 = {22, 5, -1, 2, 6}, small_q5_1 = {24, 5, 2, 4, 8};

const mica__small_layout *mica__small_layout_of(mica__quant_id id)
{
    switch (id) {
    case MICA__QUANT_Q4_0: return &small_q4_0;
    case MICA__QUANT_Q4_1: return &small_q4_1;
    case MICA__QUANT_Q5_0: return &small_q5_0;
    case MICA__QUANT_Q5_1: return &small_q5_1;
    default: return NULL;
    }
}

static void put_f16(uint8_t *p, float v)
{
    const mica__f16 h = mica__f16_make(v);
    memcpy(p, &h, 2);
}

static float get_f16(const uint8_t *p)
{
    mica__f16 h;
    memcpy(&h, p, 2);
    return mica__f16_get(h);
}

static void pack_small(small_format f, const float *x, void *blocks, size_t n_blocks)
{
    uint8_t *b = blocks;
    const int top = (1 << f.bits) - 1, middle = 1 << (f.bits - 1);
    for (size_t k = 0; k < n_blocks; k++, x += SMALL, b += f.bytes) {
        float low = x[0], high = x[0], extreme = 0;
        for (int i = 0; i < SMALL; i++) {
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
            if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
        }
        /* Without a minimum the value of largest magnitude gets the code 0, which represents it exactly. */
        const float d = f.min >= 0 ? (high - low) / (float)top : extreme / (float)-middle;
        const float inverse = mica__inverse(d);
        memset(b, 0, (size_t)f.bytes);
        put_f16(b, d);
        if (f.min >= 0) put_f16(b + f.min, low);
        for (int i = 0; i < SMALL; i++) {
            const float scaled = f.min >= 0 ? (x[i] - low) * inverse + 0.5f : x[i] * inverse + ((float)middle + 0.5f);
            const int q = (int)fminf(scaled, (float)top);
            b[f.low + i % 16] |= (uint8_t)((q & 15) << (i < 16 ? 0 : 4));
            if (f.high >= 0) b[f.high + i / 8] |= (uint8_t)((q >> 4) << i % 8);
        }
    }
}

static void unpack_small(small_format f, const void *blocks, float *x, size_t n_blocks)
{
    const uint8_t *b = blocks;
    const int middle = 1 << (f.bits - 1);
    for (size_t k = 0; k < n_blocks; k++, x += SMALL, b += f.bytes) {
        const float d = get_f16(b), m = f.min >= 0 ? get_f16(b + f.min) : 0;
        for (int i = 0; i < SMALL; i++) {
            int q = b[f.low + i % 16] >> (i < 16 ? 0 : 4) & 15;
            if (f.high >= 0) q |= (b[f.high + i / 8] >> i % 8 & 1) << 4;
            x[i] = f.min >= 0 ? (float)q * d + m : (float)(q - middle) * d;
        }
    }
}

void mica__pack_q4_0(const float *x, void *b, size_t n) { pack_small(small_q4_0, x, b, n); }
void mica__pack_q4_1(const float *x, void *b, size_t n) { pack_small(small_q4_1, x, b, n); }
void mica__pack_q5_0(const float *x, void *b, size_t n) { pack_small(small_q5_0, x, b, n); }
void mica__pack_q5_1(const float *x, void *b, size_t n) { pack_small(small_q5_1, x, b, n); }
void mica__unpack_q4_0(const void *b, float *x, size_t n) { unpack_small(small_q4_0, b, x, n); }
void mica__unpack_q4_1(const void *b, float *x, size_t n) { unpack_small(small_q4_1, b, x, n); }
void mica__unpack_q5_0(const void *b, float *x, size_t n) { unpack_small(small_q5_0, b, x, n); }
void mica__unpack_q5_1(const void *b, float *x, size_t n) { unpack_small(small_q5_1, b, x, n); }
