/* A matrix of any block format, read in file layout, and the rows of x that it is multiplied by: what the quant_ shaders
 * share. A format is described by function constants: a kind, and offsets within a block (quant_blocks.h). */
#ifndef MICA_QUANT_MATRIX_METAL
#define MICA_QUANT_MATRIX_METAL

#include "common.metal"
#include "qmatmul_params.h"

constant uint kind [[function_constant(MICA_QMATMUL_KIND)]];
constant int block [[function_constant(MICA_QMATMUL_BLOCK)]]; /* elements, bytes */
constant int bytes [[function_constant(MICA_QMATMUL_BYTES)]];
constant int scale_place [[function_constant(MICA_QMATMUL_SCALE_PLACE)]]; /* offset of an f16; -1: one for the matrix */
constant int code_place [[function_constant(MICA_QMATMUL_CODE_PLACE)]];
constant int layout_a [[function_constant(MICA_QMATMUL_LAYOUT_A)]]; /* span, run 0, bits */
constant int layout_b [[function_constant(MICA_QMATMUL_LAYOUT_B)]]; /* stride, run 1, group, minimum */
constant int layout_c [[function_constant(MICA_QMATMUL_LAYOUT_C)]]; /* high first, run 2, high bits */
constant uint scale_type [[function_constant(MICA_QMATMUL_SCALE_TYPE)]]; /* dtype of scales that are operands */
constant bool scale_divides [[function_constant(MICA_QMATMUL_SCALE_DIVIDES)]];
constant uint act [[function_constant(MICA_QMATMUL_ACT)]]; /* mica_act */

enum : uint {
#define X(name, code) name = code,
    MICA_QMATMUL_KINDS(X)
    MICA_QMATMUL_ACTS(X)
#undef X
};

/* Reads bytes: nothing in a block is aligned. */
inline float f16_at(device const uchar *p) { return float(as_type<half>(ushort(p[0] | p[1] << 8))); }
inline float f32_at(device const uchar *p)
{
    return as_type<float>(uint(p[0]) | uint(p[1]) << 8 | uint(p[2]) << 16 | uint(p[3]) << 24);
}

/* --------------------------------------------------------------- matrices --- */

constant constexpr uint PANEL = 16;                   /* rows per block of T2, T1, PANEL8 */

/* The block of row r that column c is in. */
inline device const uchar *block_of(device const uchar *w, constant mica_qmatmul_params &p, uint r, uint c)
{
    if (kind == T2 || kind == T1 || kind == PANEL8) {
        const uint wide = (p.cols + uint(block) - 1) / uint(block);
        return w + (ulong(r / PANEL) * wide + c / uint(block)) * uint(bytes);
    }
    return w + (ulong(r) * (p.cols / uint(block)) + c / uint(block)) * uint(bytes);
}

/* A matrix of any format. */
struct quant_matrix {
    device const uchar *w;                            /* blocks or codes                 */
    device const uchar *scales, *biases;              /* operands of HF and AFFINE       */
    float one;                                        /* its scale, if it has a single one, else 1 */
};

/* The scale of a matrix with a single one. */
inline float matrix_scale(device const uchar *w, device const uchar *scales, constant mica_qmatmul_params &p)
{
    if (kind != HF) return f32_at(w + p.tail);
    const float s = load_float(scale_type, scales, 0);
    return scale_divides ? 1.0f / s : s;
}

/* Element i of a block with codes. */
inline int code_in(device const uchar *b, int i)
{
    b += code_place;
    if (kind == BITS) return (b[i / 8] >> (i % 8) & 1) * 2 - 1;
    if (kind == TWO_BITS) {
        const int within = i % layout_a, place = within / layout_b;
        const int byte = b[i / layout_a * layout_b + within % layout_b];
        return (byte >> 2 * (layout_c ? 3 - place : place) & 3) - 1;
    }
    int run = layout_a;
    if (i >= 5 * run) {
        b += run;
        i -= 5 * run;
        run = layout_b;
        if (i >= 5 * run) {
            b += run;
            i -= 5 * run;
            run = layout_c;
        }
    }
    int byte = b[i % run];
    for (int n = i / run; n > 0; n--) byte = byte * 3 & 255;
    return (byte * 3 >> 8) - 1;
}

inline int hf_code(device const uchar *w, constant mica_qmatmul_params &p, uint r, uint c)
{
    const uint quarter = (p.rows + 3) / 4;
    return (w[ulong(r % quarter) * p.cols + c] >> 2 * (r / quarter) & 3) - 1;
}

/* Element (r, c) of a block of T2. */
inline int t2_code(device const uchar *b, uint r, uint c) { return (b[4 * r + c % 4] >> 2 * (c / 4) & 3) - 1; }

/* Element (r, c) of a block of T1: five trits per byte, parts of 20 columns in 64 bytes. */
inline int t1_code(device const uchar *b, uint r, uint c)
{
    int byte = b[c / 20 * 64 + 4 * r + c % 4];
    for (uint f = c % 20 / 4; f > 0; f--) byte = byte * 3 & 255;
    return (byte * 3 >> 8) - 1;
}

inline int code_at(device const uchar *w, constant mica_qmatmul_params &p, uint r, uint c)
{
    if (kind == T1) return t1_code(block_of(w, p, r, c), r % PANEL, c % 256);
    if (kind == T2) return t2_code(block_of(w, p, r, c), r % PANEL, c % 16);
    return kind == HF ? hf_code(w, p, r, c) : code_in(block_of(w, p, r, c), int(c) % block);
}

inline float k45_value(device const uchar *b, int i)
{
    const bool five = layout_a == 5;
    device const uchar *s = b + 4, *qs = b + (five ? 48 : 16);
    const int j = i / 32;
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    const int least = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
    int q = qs[i / 64 * 32 + i % 32] >> (j % 2 ? 4 : 0) & 15;
    if (five) q |= (b[16 + i % 32] >> j & 1) << 4;
    return f16_at(b) * float(scale) * float(q) - f16_at(b + 2) * float(least);
}

inline float q6_value(device const uchar *b, int i)
{
    const int part = i % 128 / 32, l = i % 32;
    const int low = b[i / 128 * 64 + part % 2 * 32 + l] >> (part / 2 * 4) & 15;
    const int high = b[128 + i / 128 * 32 + l] >> (2 * part) & 3;
    return f16_at(b + 208) * float(char(b[192 + i / 16])) * float((low | high << 4) - 32);
}

inline float small_value(device const uchar *b, int i)
{
    int q = b[code_place + i % 16] >> (i < 16 ? 0 : 4) & 15;
    if (layout_c >= 0) q |= (b[layout_c + i / 8] >> (i % 8) & 1) << 4;
    if (layout_b >= 0) return float(q) * f16_at(b) + f16_at(b + layout_b);
    return float(q - (1 << (layout_a - 1))) * f16_at(b);
}

inline float affine_value(thread const quant_matrix &m, constant mica_qmatmul_params &p, uint r, uint c)
{
    device const uchar *row = m.w + ulong(r) * (p.cols / 8 * uint(layout_a));
    const uint bit = c * uint(layout_a), at = bit / 8, shift = bit % 8;
    uint q = row[at];
    if (shift + uint(layout_a) > 8) q |= uint(row[at + 1]) << 8;
    q = q >> shift & ((1u << layout_a) - 1);
    const ulong g = ulong(r) * (p.cols / uint(layout_b)) + c / uint(layout_b);
    return load_float(scale_type, m.scales, g) * float(q) + load_float(scale_type, m.biases, g);
}

/* Any element as f32. */
inline float value_at(thread const quant_matrix &m, constant mica_qmatmul_params &p, uint r, uint c)
{
    if (kind == AFFINE) return affine_value(m, p, r, c);
    if (kind == HF) return float(hf_code(m.w, p, r, c)) * m.one;
    device const uchar *b = block_of(m.w, p, r, c);
    const int i = int(c) % block;
    if (kind == T2) return float(t2_code(b, r % PANEL, uint(i))) * m.one;
    if (kind == T1) return float(t1_code(b, r % PANEL, uint(i))) * m.one;
    if (kind == PANEL8)
        return float(char(b[uint(i) / 2 * 32 + 2 * (r % PANEL) + uint(i) % 2])) * f32_at(b + 512 + 4 * (r % PANEL));
    if (kind == SMALL) return small_value(b, i);
    if (kind == Q8_0) return float(char(b[2 + i])) * f16_at(b);
    if (kind == K45) return k45_value(b, i);
    if (kind == Q6_K) return q6_value(b, i);
    if (kind == PLAIN && layout_a == 32) return f32_at(b);
    if (kind == PLAIN) return layout_a == 16 ? f16_at(b) : bf16_to_float(ushort(b[0] | b[1] << 8));
    return float(code_in(b, i)) * (scale_place < 0 ? m.one : f16_at(b + scale_place));
}

inline bool has_one_scale() { return kind == HF || kind == T2 || kind == T1 || (kind <= TRITS && scale_place < 0); }

/* The scale of the matrix if it has a single one, else 1. */
inline float one_scale(device const uchar *w, device const uchar *scales, constant mica_qmatmul_params &p)
{
    return has_one_scale() ? matrix_scale(w, scales, p) : 1.0f;
}

/* ---------------------------------------------------------------------- x --- */

/* The activations, rounded or not. */
struct quant_acts {
    device const float *x;                            /* not rounded                     */
    device const char *codes;                         /* what quant_round wrote: codes   */
    device const float *scales;                       /* and scales                      */
};

/* Element c of row t of the activations; the row of x begins at `from`. */
inline float act_at(thread const quant_acts &in, constant mica_qmatmul_params &p, long from, uint t, uint c)
{
    if (act == ACT_NONE) return c < p.n ? in.x[from + long(c) * p.step] : 0.0f;
    const float q = float(in.codes[ulong(t) * p.pitch + c]);
    if (act == ACT_TOKEN) return q * in.scales[ulong(t) * p.acts];
    return q * in.scales[ulong(t) * p.acts + 1 + c / 256];
}

constant constexpr short ROWS_OF_X = 4;               /* rows of x at a time             */

/* part * w * d as a pair. */
inline float_pair piece_of(int part, float w, float d)
{
    const float_pair whole = pair_sum(float(part & ~4095), float(part & 4095));
    return pair_times(pair_times(whole, w), d);
}

#endif
