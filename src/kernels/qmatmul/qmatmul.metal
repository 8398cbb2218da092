/* QMATMUL and QROWS (qmatmul.h) on blocks in file layout.
 *
 * A format is described by function constants: a kind, and offsets within a block (quant_blocks.h). Sums of codes are
 * exact integers; pairs of floats replace the doubles of the CPU. */
#include "common.metal"
#include "qmatmul_params.h"
#include "round_rows.metal"

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

/* ------------------------------------------------------------------- rows --- */

/* grid: one thread per element of the result. */
kernel void quant_rows(device const long *ids [[buffer(0)]], device const uchar *w [[buffer(1)]],
                       device const uchar *scales [[buffer(2)]], device const uchar *biases [[buffer(3)]],
                       device float *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]],
                       uint i [[thread_position_in_grid]])
{
    if (i >= p.count * p.cols) return;
    long r = ids[view_at(p.x, i / p.cols)];
    if (r < 0) r += p.rows;
    if (r < 0 || r >= long(p.rows)) {
        out[i] = 0; /* index_check reports it */
        return;
    }
    const quant_matrix m = {w, scales, biases, one_scale(w, scales, p)};
    out[i] = value_at(m, p, uint(r), i % p.cols);
}

/* -------------------------------------------------------------- rounded x --- */

/* A row of x: its codes, zero-padded to the pitch, and its scales: a, then one per 256 columns (BLOCK256). a is NaN if
 * an element of x is not finite. grid: one row per threadgroup, 32 * n threads. threadgroup memory: one float per
 * simdgroup. */
kernel void quant_round(device const float *x [[buffer(0)]], device char *codes [[buffer(1)]],
                        device float *acts [[buffer(2)]], constant mica_qmatmul_params &p [[buffer(3)]],
                        uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                        uint3 threads [[threads_per_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float scratch[32];
    const uint simds = threads.x / 32;
    const long from = view_at(p.x, group.x);
    device char *to = codes + ulong(group.x) * p.pitch;
    device float *mine = acts + ulong(group.x) * p.acts;
    row_range range = {0.0f, 0.0f};
    for (uint c = at; c < p.n; c += threads.x) range = range_with(range, x[from + long(c) * p.step]);
    range = range_of_row(range, scratch, simd, lane, simds);
    const float odd = range.odd;
    if (act == ACT_TOKEN) {
        for (uint c = at; c < p.pitch; c += threads.x)
            to[c] = c < p.n ? round_code(range, x[from + long(c) * p.step]) : char(0);
        if (at == 0) mine[0] = round_scale(range);
        return;
    }
    if (at == 0) mine[0] = odd != 0 ? NAN : 1.0f;
    if (act == ACT_NONE) return;
    /* a simdgroup processes a block of 256, 8 elements per lane */
    for (uint b = simd; b * 256 < p.pitch; b += simds) {
        float v[8], top = 0;
        uint where = ~0u;
        for (uint j = 0; j < 8; j++) {
            const uint c = b * 256 + j * 32 + lane;
            v[j] = c < p.n && odd == 0 ? x[from + long(c) * p.step] : 0.0f;
            top = max(top, fabs(v[j]));
        }
        top = simd_max(top);
        for (uint j = 8; j-- > 0;)
            if (fabs(v[j]) == top) where = j * 32 + lane;
        where = simd_min(where);
        float first = 0; /* the first of the largest elements: its sign is used */
        for (uint j = 0; j < 8; j++)
            if (where == j * 32 + lane) first = v[j];
        first = simd_sum(first);
        const float times = top < 1e-30f ? 0.0f : -127.0f / first;
        for (uint j = 0; j < 8; j++) {
            const uint c = b * 256 + j * 32 + lane;
            if (c < p.pitch) to[c] = char(clamp(rint(v[j] * times), -128.0f, 127.0f));
        }
        if (lane == 0) mine[1 + b] = times == 0 ? 0.0f : 1.0f / times;
    }
}

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

/* ---------------------------------------------------------- few rows of x --- */

constant constexpr short ROWS_OF_X = 4;               /* rows of x at a time             */

/* part * w * d as a pair. */
inline float_pair piece_of(int part, float w, float d)
{
    const float_pair whole = pair_sum(float(part & ~4095), float(part & 4095));
    return pair_times(pair_times(whole, w), d);
}

/* Dot product of bytes 4 g ... of a two-bit block with x; x points to the first column of the block. */
inline int dot_two_bits(device const uchar *b, int g, device const char *x)
{
    int sum = 0;
    b += code_place + 4 * g;
    if (layout_b == 1) {
        for (int j = 0; j < 4; j++)
            for (int place = 0; place < 4; place++)
                sum += ((b[j] >> 2 * (layout_c ? 3 - place : place) & 3) - 1) * x[4 * (4 * g + j) + place];
        return sum;
    }
    const int unit = 4 * g / layout_b, first = 4 * g % layout_b;
    for (int place = 0; place < 4; place++)
        for (int j = 0; j < 4; j++)
            sum += ((b[j] >> 2 * (layout_c ? 3 - place : place) & 3) - 1) *
                   x[unit * layout_a + place * layout_b + first + j];
    return sum;
}

inline int dot_codes(device const uchar *b, int g, device const char *x)
{
    if (kind == TWO_BITS) return dot_two_bits(b, g, x);
    int sum = 0;
    for (int j = 0; j < 16; j++) sum += code_in(b, 16 * g + j) * x[16 * g + j];
    return sum;
}

/* Codes with rounded x: exact sums of 16 products, then float pairs; with a single scale only at the end. grid: (rows
 * of the matrix / simdgroups, rows of x / 4), threads (32, simdgroups). */
kernel void quant_codes(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                        device const char *codes [[buffer(2)]], device const float *acts [[buffer(3)]],
                        device uchar *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]] MICA_EPILOGUE_6,
                        uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                        uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint r = group.x * threads.y + simd, first = group.y * ROWS_OF_X, each = uint(block) / 16;
    if (r >= p.rows) return;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const bool late = has_one_scale() && act == ACT_TOKEN;
    int whole[ROWS_OF_X] = {0, 0, 0, 0};
    float_pair sum[ROWS_OF_X];
    for (short i = 0; i < ROWS_OF_X; i++) sum[i] = float_pair{0.0f, 0.0f};
    const float one = one_scale(w, scales, p);
    for (uint at = lane; at < p.cols / 16; at += 32) {
        const uint c = at / each * uint(block);
        device const uchar *b = block_of(w, p, r, c);
        const float scale = late ? 1.0f : scale_place < 0 ? one : f16_at(b + scale_place);
        for (short i = 0; i < ROWS_OF_X; i++) {
            if (i >= n) break;
            const int part = dot_codes(b, int(at % each), codes + ulong(first + i) * p.pitch + c);
            const float d = act == ACT_TOKEN ? 1.0f : acts[ulong(first + i) * p.acts + 1 + at * 16 / 256];
            if (late) whole[i] += part;
            else sum[i] = pair_add(sum[i], piece_of(part, scale, d));
        }
    }
    for (short i = 0; i < ROWS_OF_X; i++) {
        if (i >= n) break;
        const float a = acts[ulong(first + i) * p.acts];
        const float_pair s = late ? piece_of(simd_sum(whole[i]), one, 1.0f) : simd_pair_sum(sum[i]);
        const float_pair y = pair_times(s, a);
        if (lane == 0) store_result(F32, out, ulong(first + i) * p.rows + r, isnan(a) ? a : y.high + y.low);
    }
}

/* A byte of HF holds four rows of the matrix: computes all four together. grid: (rows / 4 / simdgroups, rows of x / 4),
 * threads (32, simdgroups). */
kernel void quant_hf(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                     device const char *codes [[buffer(2)]], device const float *acts [[buffer(3)]],
                     device uchar *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]] MICA_EPILOGUE_6,
                     uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                     uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint quarter = (p.rows + 3) / 4, line = group.x * threads.y + simd, first = group.y * ROWS_OF_X;
    if (line >= quarter) return;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    device const uchar *row = w + ulong(line) * p.cols;
    const float one = matrix_scale(w, scales, p);
    int whole[ROWS_OF_X][4];
    float_pair sum[ROWS_OF_X][4];
    for (short i = 0; i < ROWS_OF_X; i++)
        for (short k = 0; k < 4; k++) {
            whole[i][k] = 0;
            sum[i][k] = float_pair{0.0f, 0.0f};
        }
    for (uint b = 0; b * 256 < p.cols; b++) {
        const uint end = min(p.cols, b * 256 + 256);
        for (uint c = b * 256 + lane; c < end; c += 32) {
            const int byte = row[c];
            for (short i = 0; i < ROWS_OF_X; i++) {
                if (i >= n) break;
                const int q = codes[ulong(first + i) * p.pitch + c];
                for (short k = 0; k < 4; k++) whole[i][k] += ((byte >> 2 * k & 3) - 1) * q;
            }
        }
        if (act == ACT_TOKEN) continue;
        for (short i = 0; i < ROWS_OF_X; i++)
            for (short k = 0; k < 4; k++) {
                const float d = i < n ? acts[ulong(first + i) * p.acts + 1 + b] : 0.0f;
                sum[i][k] = pair_add(sum[i][k], piece_of(whole[i][k], one, d));
                whole[i][k] = 0;
            }
    }
    for (short i = 0; i < ROWS_OF_X; i++)
        for (short k = 0; k < 4; k++) {
            if (i >= n) break;
            const float a = acts[ulong(first + i) * p.acts];
            const float_pair s =
                act == ACT_TOKEN ? piece_of(simd_sum(whole[i][k]), one, 1.0f) : simd_pair_sum(sum[i][k]);
            const float_pair y = pair_times(s, a);
            const uint r = line + k * quarter;
            if (lane == 0 && r < p.rows)
                store_result(F32, out, ulong(first + i) * p.rows + r, isnan(a) ? a : y.high + y.low);
        }
}

/* Panels of 16 rows: a lane computes a row. Half-simdgroups and simdgroups split the blocks, so that neighbouring lanes
 * read neighbouring bytes. MICA_T2 and the parts of MICA_T1, with rounded x. grid: (panels, rows of x / 4), threads
 * (32, simdgroups <= 8). */
kernel void quant_panels(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                     device const char *codes [[buffer(2)]], device const float *acts [[buffer(3)]],
                     device uchar *out [[buffer(4)]], constant mica_qmatmul_params &p [[buffer(5)]] MICA_EPILOGUE_6,
                     uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                     uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]])
{
    threadgroup int wholes[8][ROWS_OF_X][PANEL];
    threadgroup float2 sums[8][ROWS_OF_X][PANEL];
    const uint blocks = kind == T1 ? (p.cols + 255) / 256 * 13 : (p.cols + 15) / 16;
    const uint first = group.y * ROWS_OF_X, row = lane % PANEL;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const float one = matrix_scale(w, scales, p);
    int whole[ROWS_OF_X] = {0, 0, 0, 0};
    float_pair sum[ROWS_OF_X];
    for (short i = 0; i < ROWS_OF_X; i++) sum[i] = float_pair{0.0f, 0.0f};
    for (uint k = simd * 2 + lane / PANEL; k < blocks; k += threads.y * 2) {
        device const uchar *b = w + (ulong(group.x) * blocks + k) * 64 + 4 * row;
        const uint c = kind == T1 ? k / 13 * 256 + k % 13 * 20 : k * 16;
        const short digits = kind == T1 && k % 13 != 12 ? 5 : 4; /* 256 is 12 * 20 + 16 */
        for (short i = 0; i < ROWS_OF_X; i++) {
            if (i >= n) break;
            /* rows of codes are 16-byte aligned */
            device const char4 *x = (device const char4 *)(codes + ulong(first + i) * p.pitch + c);
            int4 byte = int4(b[0], b[1], b[2], b[3]);
            int part = 0;
            for (short f = 0; f < digits; f++) {
                const int4 products = ((kind == T1 ? byte * 3 >> 8 : byte & 3) - 1) * int4(x[f]);
                part += (products.x + products.y) + (products.z + products.w);
                byte = kind == T1 ? byte * 3 & 255 : byte >> 2;
            }
            if (act == ACT_TOKEN) whole[i] += part;
            else sum[i] = pair_add(sum[i], piece_of(part, one, acts[ulong(first + i) * p.acts + 1 + c / 256]));
        }
    }
    for (short i = 0; i < ROWS_OF_X; i++) {
        whole[i] += simd_shuffle_xor(whole[i], 16);
        sum[i] = pair_add(sum[i], float_pair{simd_shuffle_xor(sum[i].high, 16), simd_shuffle_xor(sum[i].low, 16)});
        if (lane < PANEL) {
            wholes[simd][i][row] = whole[i];
            sums[simd][i][row] = float2(sum[i].high, sum[i].low);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = at; e < uint(n) * PANEL; e += threads.x * threads.y) {
        const uint i = e / PANEL, r = e % PANEL;
        if (group.x * PANEL + r >= p.rows) continue;
        int all = 0;
        float_pair s = {0.0f, 0.0f};
        for (uint j = 0; j < threads.y; j++) {
            all += wholes[j][i][r];
            s = pair_add(s, float_pair{sums[j][i][r].x, sums[j][i][r].y});
        }
        if (act == ACT_TOKEN) s = piece_of(all, one, 1.0f);
        const float a = acts[ulong(first + i) * p.acts];
        const float_pair y = pair_times(s, a);
        store_result(F32, out, ulong(first + i) * p.rows + group.x * PANEL + r, isnan(a) ? a : y.high + y.low);
    }
}

/* MICA_Q8, any x. grid: as quant_panels. */
kernel void quant_panel8(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                         device const uchar *biases [[buffer(2)]], device const float *x [[buffer(3)]],
                         device const char *codes [[buffer(4)]], device const float *acts [[buffer(5)]],
                         device uchar *out [[buffer(6)]], constant mica_qmatmul_params &p [[buffer(7)]] MICA_EPILOGUE_8,
                         uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                         uint at [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float sums[8][ROWS_OF_X][PANEL];
    const uint blocks = (p.cols + 31) / 32, first = group.y * ROWS_OF_X, row = lane % PANEL;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const quant_acts in = {x, codes, acts};
    long from[ROWS_OF_X];
    float sum[ROWS_OF_X] = {0, 0, 0, 0};
    for (short i = 0; i < ROWS_OF_X; i++) from[i] = i < n ? view_at(p.x, first + i) : 0;
    for (uint k = simd * 2 + lane / PANEL; k < blocks; k += threads.y * 2) {
        device const uchar *b = w + (ulong(group.x) * blocks + k) * 576;
        float part[ROWS_OF_X] = {0, 0, 0, 0};
        for (uint c = 0; c < min(32u, p.cols - 32 * k); c++) {
            const float q = float(char(b[c / 2 * 32 + 2 * row + c % 2]));
            for (short i = 0; i < ROWS_OF_X; i++)
                if (i < n) part[i] = fma(q, act_at(in, p, from[i], first + i, 32 * k + c), part[i]);
        }
        const float scale = f32_at(b + 512 + 4 * row);
        for (short i = 0; i < ROWS_OF_X; i++) sum[i] = fma(scale, part[i], sum[i]);
    }
    for (short i = 0; i < ROWS_OF_X; i++) {
        sum[i] += simd_shuffle_xor(sum[i], 16);
        if (lane < PANEL) sums[simd][i][row] = sum[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = at; e < uint(n) * PANEL; e += threads.x * threads.y) {
        const uint i = e / PANEL, r = e % PANEL;
        if (group.x * PANEL + r >= p.rows) continue;
        float all = 0;
        for (uint j = 0; j < threads.y; j++) all += sums[j][i][r];
        const float a = acts[ulong(first + i) * p.acts];
        store_result(F32, out, ulong(first + i) * p.rows + group.x * PANEL + r, isnan(a) ? a : all);
    }
}

/* All other cases, 8 columns per lane at a time. grid: as quant_codes. */
kernel void quant_values(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                         device const uchar *biases [[buffer(2)]], device const float *x [[buffer(3)]],
                         device const char *codes [[buffer(4)]], device const float *acts [[buffer(5)]],
                         device uchar *out [[buffer(6)]], constant mica_qmatmul_params &p [[buffer(7)]] MICA_EPILOGUE_8,
                         uint3 group [[threadgroup_position_in_grid]], uint3 threads [[threads_per_threadgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    const uint r = group.x * threads.y + simd, first = group.y * ROWS_OF_X;
    if (r >= p.rows) return;
    const short n = short(min(uint(ROWS_OF_X), p.count - first));
    const quant_matrix m = {w, scales, biases, one_scale(w, scales, p)};
    const quant_acts in = {x, codes, acts};
    long from[ROWS_OF_X];
    float sum[ROWS_OF_X] = {0, 0, 0, 0};
    for (short i = 0; i < ROWS_OF_X; i++) from[i] = i < n ? view_at(p.x, first + i) : 0;
    for (uint c = lane * 8; c < p.cols; c += 256)
        for (uint j = 0; j < 8 && c + j < p.cols; j++) {
            const float weight = value_at(m, p, r, c + j);
            for (short i = 0; i < ROWS_OF_X; i++)
                if (i < n) sum[i] = fma(weight, act_at(in, p, from[i], first + i, c + j), sum[i]);
        }
    for (short i = 0; i < ROWS_OF_X; i++) {
        const float whole = simd_sum(sum[i]);
        if (lane != 0 || i >= n) continue;
        const float a = acts[ulong(first + i) * p.acts];
        store_result(F32, out, ulong(first + i) * p.rows + r, isnan(a) ? a : whole);
    }
}

/* --------------------------------------------------------- many rows of x --- */

constant bool exact [[function_constant(MICA_QMATMUL_EXACT)]]; /* codes in both operands, one scale each */

constant constexpr short DEPTH = 32, LINE = 36;       /* columns at a time; pitch of their lines */

/* Tiles of simdgroup matrices: M rows of x times N rows of the matrix, which are unpacked into threadgroup memory. More
 * rows of x per tile mean less unpacking. exact: both are integers, and so are the sums (below 2^24). grid: (tiles of
 * rows of the matrix, tiles of rows of x), threads 128 = 2 x 2 simdgroups. threadgroup memory: both tiles, 64 floats
 * per simdgroup. */
template <short M, short N>
kernel void quant_tile(device const uchar *w [[buffer(0)]], device const uchar *scales [[buffer(1)]],
                       device const uchar *biases [[buffer(2)]], device const float *x [[buffer(3)]],
                       device const char *codes [[buffer(4)]], device const float *acts [[buffer(5)]],
                       device uchar *out [[buffer(6)]], constant mica_qmatmul_params &p [[buffer(7)]] MICA_EPILOGUE_8,
                       uint3 group [[threadgroup_position_in_grid]], uint at [[thread_index_in_threadgroup]],
                       uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]])
{
    constexpr short rows = M / 16, cols = N / 16;     /* 8 x 8 matrices per simdgroup */
    threadgroup float x_tile[M * LINE];
    threadgroup float w_tile[N * LINE];
    threadgroup float place[4 * 64];
    const uint row = group.y * M, col = group.x * N;
    const short my_row = short(simd / 2) * (M / 2), my_col = short(simd % 2) * (N / 2);
    const quant_matrix m = {w, scales, biases, one_scale(w, scales, p)};
    const quant_acts in = {x, codes, acts};

    simdgroup_matrix<float, 8, 8> sum[rows][cols];
    for (short i = 0; i < rows; i++)
        for (short j = 0; j < cols; j++) sum[i][j] = simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k0 = 0; k0 < p.cols; k0 += DEPTH) {
        for (short i = at; i < M * DEPTH; i += 128) {
            const uint r = i / DEPTH, c = i % DEPTH, k = k0 + c;
            float left = 0;
            if (row + r < p.count && k < p.cols)
                left = exact ? float(codes[ulong(row + r) * p.pitch + k])
                             : act_at(in, p, view_at(p.x, row + r), row + r, k);
            x_tile[r * LINE + c] = left;
        }
        for (short i = at; i < N * DEPTH; i += 128) {
            const uint r = i / DEPTH, c = i % DEPTH, k = k0 + c;
            float right = 0;
            if (col + r < p.rows && k < p.cols)
                right = exact ? float(code_at(w, p, col + r, k)) : value_at(m, p, col + r, k);
            w_tile[r * LINE + c] = right;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (short k = 0; k < DEPTH; k += 8) {
            simdgroup_matrix<float, 8, 8> left[rows], right[cols];
            for (short i = 0; i < rows; i++) simdgroup_load(left[i], x_tile + (my_row + i * 8) * LINE + k, LINE);
            for (short j = 0; j < cols; j++)
                simdgroup_load(right[j], w_tile + (my_col + j * 8) * LINE + k, LINE, ulong2(0, 0), true);
            for (short i = 0; i < rows; i++)
                for (short j = 0; j < cols; j++) simdgroup_multiply_accumulate(sum[i][j], left[i], right[j], sum[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    threadgroup float *mine = place + simd * 64;
    for (short i = 0; i < rows; i++)
        for (short j = 0; j < cols; j++) {
            simdgroup_store(sum[i][j], mine, 8);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (short e = lane; e < 64; e += 32) {
                const uint r = row + my_row + i * 8 + e / 8, c = col + my_col + j * 8 + e % 8;
                if (r >= p.count || c >= p.rows) continue;
                const float a = acts[ulong(r) * p.acts];
                float y = mine[e];
                if (exact) {
                    const float_pair s = pair_times(piece_of(int(y), m.one, 1.0f), a);
                    y = s.high + s.low;
                }
                store_result(F32, out, ulong(r) * p.rows + c, isnan(a) ? a : y);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
}

#define QUANT_TILE(name, M, N) \
    template [[host_name(name)]] kernel decltype(quant_tile<M, N>) quant_tile<M, N>;
QUANT_TILE("quant_tile_64x64", 64, 64)
QUANT_TILE("quant_tile_64x32", 64, 32)
QUANT_TILE("quant_tile_32x32", 32, 32)
