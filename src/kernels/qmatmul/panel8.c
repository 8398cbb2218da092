/* The table of variants (panel8.def), the choice among them, and packing. */
#include "kernels/qmatmul/panel8.h"

#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "quant/quant_blocks.h"

#define MICA_P8(name, needs)                                                                                    \
    void mica__p8_tile_##name(mica__p8_format f, int64_t records, const char *panel, const mica__p8_x *x,       \
                              int64_t tokens, float *y);                                                        \
    void mica__p8_round_##name(int64_t n, const float *x, int top, int64_t step, float least, bool signs,       \
                               const mica__p8_x *to);                                                           \
    void mica__p8_dots_##name(mica_dtype dtype, int rows, int tokens, int64_t n, const char *w, int64_t w_step, \
                              const float *x, int64_t x_step, float *sums, int64_t step);
#include "kernels/qmatmul/panel8.def"
#undef MICA_P8

static const mica__p8_variant p8_table[] = {
#define MICA_P8(name, needs) {#name, needs, mica__p8_tile_##name, mica__p8_round_##name, mica__p8_dots_##name},
#include "kernels/qmatmul/panel8.def"
#undef MICA_P8
};

const mica__p8_variant *mica__p8_variants(size_t *n)
{
    *n = sizeof p8_table / sizeof *p8_table;
    return p8_table;
}

const mica__p8_variant *mica__p8_best(void)
{
    const unsigned have = mica__cpu_features();
    size_t i = sizeof p8_table / sizeof *p8_table - 1;
    while (i > 0 && (p8_table[i].needs & ~have) != 0) i--;
    return &p8_table[i];
}

/* --------------------------------------------------------------- packing --- */

mica__p8_format mica__p8_format_of(mica__quant_id id)
{
    switch ((int)id) {
    case MICA__QUANT_MICA_Q8:
    case MICA__QUANT_Q8_0:
    case MICA__QUANT_Q5_0:
    case MICA__QUANT_Q4_0: return (mica__p8_format){1, false};
    case MICA__QUANT_Q6_K: return (mica__p8_format){2, false};
    case MICA__QUANT_Q4_1:
    case MICA__QUANT_Q5_1:
    case MICA__QUANT_Q4_K:
    case MICA__QUANT_Q5_K: return (mica__p8_format){1, true};
    default: return (mica__p8_format){0, false};
    }
}

/* 32 columns of a row. */
typedef struct p8_part {
    int8_t code[MICA__P8_COLS];
    float scale[2], offset;
} p8_part;

static void q6_part(const mica__block_q6_k *b, int part, p8_part *to)
{
    const int half = part / 4, group = part % 4;
    for (int i = 0; i < MICA__P8_COLS; i++) {
        const int low = b->ql[half * 64 + group % 2 * 32 + i] >> group / 2 * 4 & 15;
        to->code[i] = (int8_t)((low | (b->qh[half * 32 + i] >> 2 * group & 3) << 4) - 32);
    }
    for (int i = 0; i < 2; i++) to->scale[i] = mica__f16_get(b->d) * (float)b->scales[2 * part + i];
}

/* Q4_K and Q5_K: six-bit scales and minima (quant_k.c). */
static void nibbles_part(const uint8_t *s, const uint8_t *qs, const uint8_t *qh, float d, float dmin, int j,
                         p8_part *to)
{
    const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    const int min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
    for (int i = 0; i < MICA__P8_COLS; i++)
        to->code[i] = (int8_t)((qs[j / 2 * 32 + i] >> j % 2 * 4 & 15) | (qh ? (qh[i] >> j & 1) << 4 : 0));
    to->scale[0] = d * (float)scale;
    to->offset = dmin * (float)min;
}

/* Blocks of 32: element i low, i + 16 high, the fifth bit in qh. */
static void small_part(const uint8_t *qs, const uint8_t *qh, int zero, mica__f16 d, p8_part *to)
{
    for (int i = 0; i < MICA__P8_COLS; i++) {
        const int nibble = qs[i % 16] >> i / 16 * 4 & 15, high = qh ? (qh[i / 8] >> i % 8 & 1) << 4 : 0;
        to->code[i] = (int8_t)((nibble | high) - zero);
    }
    to->scale[0] = mica__f16_get(d);
}

static void read_part(mica__quant_id id, const char *row, int64_t k, p8_part *to)
{
    switch ((int)id) {
    case MICA__QUANT_Q8_0: {
        const mica__block_q8_0 *b = (const mica__block_q8_0 *)(const void *)row + k;
        memcpy(to->code, b->qs, sizeof to->code);
        to->scale[0] = mica__f16_get(b->d);
        break;
    }
    case MICA__QUANT_Q4_0: {
        const mica__block_q4_0 *b = (const mica__block_q4_0 *)(const void *)row + k;
        small_part(b->qs, NULL, 8, b->d, to);
        break;
    }
    case MICA__QUANT_Q5_0: {
        const mica__block_q5_0 *b = (const mica__block_q5_0 *)(const void *)row + k;
        small_part(b->qs, b->qh, 16, b->d, to);
        break;
    }
    case MICA__QUANT_Q4_1: {
        const mica__block_q4_1 *b = (const mica__block_q4_1 *)(const void *)row + k;
        small_part(b->qs, NULL, 0, b->d, to);
        to->offset = -mica__f16_get(b->m);
        break;
    }
    case MICA__QUANT_Q5_1: {
        const mica__block_q5_1 *b = (const mica__block_q5_1 *)(const void *)row + k;
        small_part(b->qs, b->qh, 0, b->d, to);
        to->offset = -mica__f16_get(b->m);
        break;
    }
    case MICA__QUANT_Q6_K: q6_part((const mica__block_q6_k *)(const void *)row + k / 8, (int)(k % 8), to); break;
    case MICA__QUANT_Q4_K: {
        const mica__block_q4_k *b = (const mica__block_q4_k *)(const void *)row + k / 8;
        nibbles_part(b->scales, b->qs, NULL, mica__f16_get(b->d), mica__f16_get(b->dmin), (int)(k % 8), to);
        break;
    }
    default: {
        const mica__block_q5_k *b = (const mica__block_q5_k *)(const void *)row + k / 8;
        nibbles_part(b->scales, b->qs, b->qh, mica__f16_get(b->d), mica__f16_get(b->dmin), (int)(k % 8), to);
        break;
    }
    }
}

void mica__p8_pack(const mica__quant_matrix *m, int64_t p, char *to)
{
    const mica__p8_format f = mica__p8_format_of(m->id);
    const mica__quant *q = mica__quant_get(m->id);
    const int64_t records = mica__p8_records(m->cols), size = mica__p8_record(f), first = p * MICA__P8_ROWS;
    const int64_t n = mica__min_i64(MICA__P8_ROWS, m->rows - first);
    if (m->id == MICA__QUANT_MICA_Q8) { /* stored as panels; the copy aligns their floats */
        memcpy(to, (const char *)m->data + p * records * size, (size_t)(records * size));
        return;
    }
    if (n < MICA__P8_ROWS) memset(to, 0, (size_t)(records * size));
    for (int64_t r = 0; r < n; r++) {
        const char *row = (const char *)m->data + (size_t)((first + r) * m->cols / q->block) * q->bytes;
        for (int64_t k = 0; k < records; k++) {
            p8_part part;
            read_part(m->id, row, k, &part);
            char *record = to + k * size;
            for (int64_t i = 0; i < MICA__P8_COLS; i += 2)
                memcpy(record + (i / 2 * MICA__P8_ROWS + r) * 2, part.code + i, 2);
            float *numbers = (float *)(void *)(record + MICA__P8_BYTES) + r;
            for (int i = 0; i < f.scales; i++) numbers[i * MICA__P8_ROWS] = part.scale[i];
            if (f.offsets) numbers[f.scales * MICA__P8_ROWS] = part.offset;
        }
    }
}
