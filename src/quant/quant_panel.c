/* The panel formats of mica. A matrix is a sequence of panels of 16 rows, each a sequence of
 * blocks. Missing rows and columns at the end are zero bits. A kernel that computes 16 rows at
 * once reads one contiguous stream, directly from the file.
 *
 *   MICA_T2   16 columns in 64 bytes: byte 4 r + j contains the columns j, 4 + j,
 *             8 + j, 12 + j of row r, two bits each, low bits first: 0, 1, 2 for
 *             -1, 0, 1. After all blocks 64 bytes: the scale (f32), then zeros.
 *   MICA_T1   256 columns in 13 parts of 64 bytes: byte 4 r + j of part k contains the
 *             columns 20 k + j, 20 k + 4 + j, ... 20 k + 16 + j of row r, five trits as
 *             in TQ1_0; columns from 256 on are not used. The scale as in MICA_T2.
 *   MICA_Q8   32 columns in 576 bytes: bytes 32 k + 2 r and 32 k + 2 r + 1 are the
 *             columns 2 k and 2 k + 1 of row r, signed; then 16 scales (f32). */
#include "quant/quant_panel.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "quant/quant_blocks.h"

enum { PANEL_HEIGHT = 16, Q8_WIDTH = 32, Q8_SCALES = PANEL_HEIGHT * Q8_WIDTH };
enum { T1_WIDTH = 256, T1_PARTS = 13, T1_PART = 64, T1_FIVE = 20 }; /* columns, parts, bytes and columns of a part */

/* Block k of the panel that contains row r. */
static const char *panel_block(const mica__quant_matrix *m, const mica__quant *q, int64_t r, int64_t k)
{
    const int64_t wide = (m->cols + q->block - 1) / q->block;
    return (const char *)m->data + (size_t)(r / PANEL_HEIGHT * wide + k) * q->bytes;
}

/* Subtracts 1 from four codes at once: no byte of the sum carries into the next. */
static void t2_codes(const char *at, int8_t codes[16])
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    for (int f = 0; f < 4; f++) {
        const uint32_t four = ((word >> 2 * f & 0x03030303u) + 0x7f7f7f7fu) ^ 0x80808080u;
        memcpy(codes + 4 * f, &four, sizeof four);
    }
}

static void t1_codes(const char *at, int8_t codes[T1_WIDTH])
{
    int8_t all[T1_PARTS * T1_FIVE];
    for (int k = 0; k < T1_PARTS; k++)
        for (int j = 0; j < 4; j++) {
            unsigned byte = (uint8_t)at[k * T1_PART + j];
            for (int f = 0; f < 5; f++, byte = byte * 3 & 255)
                all[k * T1_FIVE + 4 * f + j] = (int8_t)((int)(byte * 3 >> 8) - 1);
        }
    memcpy(codes, all, T1_WIDTH);
}

void mica__panel_codes(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, int8_t *codes)
{
    const mica__quant *q = mica__quant_get(m->id);
    const int64_t row = r % PANEL_HEIGHT;
    for (int64_t c = 0; c < n; c += q->block) {
        const char *b = panel_block(m, q, r, (from + c) / q->block);
        int8_t block[T1_WIDTH];
        if (m->id == MICA__QUANT_MICA_T1) t1_codes(b + 4 * row, block);
        else if (m->id == MICA__QUANT_MICA_T2) t2_codes(b + 4 * row, block);
        else
            for (int i = 0; i < Q8_WIDTH; i += 2) memcpy(block + i, b + i * PANEL_HEIGHT + 2 * row, 2);
        memcpy(codes + c, block, (size_t)mica__min_i64(q->block, n - c));
    }
}

void mica__panel_unpack(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, float scale, float *out)
{
    const mica__quant *q = mica__quant_get(m->id);
    int8_t codes[MICA__QUANT_BLOCK_MAX];
    mica__panel_codes(m, r, from, n, codes);
    for (int64_t c = 0; c < n; c++) {
        if (!q->tail && c % q->block == 0)
            memcpy(&scale, panel_block(m, q, r, (from + c) / q->block) + Q8_SCALES + 4 * (r % PANEL_HEIGHT), 4);
        out[c] = (float)codes[c] * scale;
    }
}

/* ------------------------------------------------------------------ pack --- */

/* Packs up to 16 columns of a row; n columns are left. */
static uint32_t t2_word(const float *x, int64_t n, float top, float inverse)
{
    uint32_t word = 0;
    for (int64_t i = 0; i < mica__min_i64(16, n); i++) {
        const float v = mica__in_units(x[i], top, inverse);
        word |= (uint32_t)(1 + (v >= 0.5f) - (v <= -0.5f)) << (8 * (i % 4) + 2 * (i / 4));
    }
    return word;
}

/* Packs up to 256 columns of a row; n columns are left. Missing columns are zero bits. */
static void t1_row(const float *x, int64_t n, float top, float inverse, int64_t row, char *block)
{
    for (int k = 0; k < T1_PARTS; k++)
        for (int j = 0; j < 4; j++) {
            int value = 0;
            for (int f = 0; f < 5; f++) {
                const int64_t c = k * T1_FIVE + 4 * f + j;
                const float v = c < T1_WIDTH && c < n ? mica__in_units(x[c], top, inverse) : -1;
                value = 3 * value + 1 + (v >= 0.5f) - (v <= -0.5f);
            }
            block[k * T1_PART + 4 * row + j] = (char)((value * 256 + 242) / 243);
        }
}

/* Rounds to nearest, halves away from 0, as Q8_0; the scale is an f32. */
static void q8_row(const float *x, int64_t n, int64_t row, char *block)
{
    float top = 0;
    const int64_t width = mica__min_i64(Q8_WIDTH, n);
    for (int64_t i = 0; i < width; i++) top = fmaxf(top, fabsf(x[i]));
    const float scale = top / 127, inverse = mica__inverse(scale);
    for (int64_t i = 0; i < width; i++) {
        /* a subnormal scale is itself rounded: the quotient may be above 127 */
        const float v = mica__in_units(x[i], scale, inverse);
        const int8_t code = (int8_t)roundf(fmaxf(fminf(v, 127), -127));
        memcpy(block + i / 2 * 2 * PANEL_HEIGHT + 2 * row + i % 2, &code, 1);
    }
    memcpy(block + Q8_SCALES + 4 * row, &scale, sizeof scale);
}

void mica__panel_pack(mica__quant_id id, const float *x, int64_t rows, int64_t cols, float top, void *out)
{
    const mica__quant *q = mica__quant_get(id);
    const float inverse = mica__inverse(top);
    char *b = out;
    for (int64_t first = 0; first < rows && cols; first += PANEL_HEIGHT)
        for (int64_t c = 0; c < cols; c += q->block, b += q->bytes) {
            memset(b, 0, q->bytes);
            for (int64_t r = 0; r < mica__min_i64(PANEL_HEIGHT, rows - first); r++) {
                const float *from = x + (first + r) * cols + c;
                const uint32_t word = id == MICA__QUANT_MICA_T2 ? t2_word(from, cols - c, top, inverse) : 0;
                if (id == MICA__QUANT_MICA_T2) memcpy(b + 4 * r, &word, sizeof word);
                else if (id == MICA__QUANT_MICA_T1) t1_row(from, cols - c, top, inverse, r, b);
                else q8_row(from, cols - c, r, b);
            }
        }
    if (!q->tail) return;
    memset(b, 0, q->tail);
    memcpy(b, &top, sizeof top);
}

size_t mica__panel_first_bad(mica__quant_id id, const void *blocks, size_t n_blocks)
{
    const mica__quant *q = mica__quant_get(id);
    const char *b = blocks;
    for (size_t k = 0; k < n_blocks; k++, b += q->bytes) {
        for (int i = 0; id == MICA__QUANT_MICA_T2 && i < q->bytes; i++)
            if (b[i] & b[i] >> 1 & 0x55) return k; /* two bits that are both set */
        for (int i = Q8_SCALES; id == MICA__QUANT_MICA_Q8 && i < q->bytes; i += 4) {
            float scale;
            memcpy(&scale, b + i, sizeof scale);
            if (!isfinite(scale)) return k;
        }
    }
    return n_blocks;
}
