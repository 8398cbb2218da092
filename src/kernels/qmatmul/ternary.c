/* The table of variants (ternary.def), the choice among them, and packing. */
#include "kernels/qmatmul/ternary.h"

#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"

#define MICA_TERNARY(name, needs, group, cell)                                                                      \
    void mica__ternary_one_##name(int64_t units, const uint8_t *panel, const int8_t *x, int top, int32_t *sums);    \
    void mica__ternary_many_##name(int64_t from, int64_t units, const uint8_t *panel, int64_t next, int64_t panels, \
                                   bool trits, const mica__ternary_x *x, int top, int32_t *sums);                   \
    void mica__ternary_scale_##name(int64_t tokens, const int32_t *sums, const int32_t *less, int64_t less_step,    \
                                    const float *w, const float *d, int64_t d_step, double *out);                   \
    void mica__ternary_finish_##name(int64_t tokens, const double *sums, const float *a, float *y);                 \
    void mica__ternary_write_##name(int64_t tokens, const int32_t *sums, const int32_t *less, const float *w,       \
                                    const float *d, int64_t d_step, const float *a, float *y, int64_t y_step);      \
    void mica__ternary_round_##name(int64_t n, const float *x, float times, int8_t *q);                             \
    float mica__ternary_largest_##name(int64_t n, const float *x);
#include "kernels/qmatmul/ternary.def"
#undef MICA_TERNARY

static const mica__ternary_variant ternary_table[] = {
#define MICA_TERNARY(name, needs, group, cell) \
    {#name,                                    \
     needs,                                    \
     group,                                    \
     cell,                                     \
     mica__ternary_one_##name,                 \
     mica__ternary_many_##name,                \
     mica__ternary_scale_##name,               \
     mica__ternary_finish_##name,              \
     mica__ternary_write_##name,               \
     mica__ternary_round_##name,               \
     mica__ternary_largest_##name},
#include "kernels/qmatmul/ternary.def"
#undef MICA_TERNARY
};

const mica__ternary_variant *mica__ternary_variants(size_t *n)
{
    *n = sizeof ternary_table / sizeof *ternary_table;
    return ternary_table;
}

const mica__ternary_variant *mica__ternary_best(void)
{
    const unsigned have = mica__cpu_features();
    size_t i = sizeof ternary_table / sizeof *ternary_table - 1;
    while (i > 0 && (ternary_table[i].needs & ~have) != 0) i--;
    return &ternary_table[i];
}

int mica__ternary_panel(const mica__quant_matrix *m, int64_t p, uint8_t *panel, float *scales, void *scratch)
{
    int8_t *codes = scratch;
    const int64_t units = mica__ternary_units(m->cols), first = p * MICA__PANEL_ROWS;
    const int64_t n = mica__min_i64(MICA__PANEL_ROWS, m->rows - first);
    if (n < MICA__PANEL_ROWS) memset(panel, 0, (size_t)(units * MICA__UNIT_BYTES));
    memset(codes + m->cols, -1, (size_t)(units * MICA__UNIT_COLS - m->cols));
    uint32_t both = 0; /* set if both bits of a code are set */
    float *own = (float *)(void *)(codes + units * MICA__UNIT_COLS);
    for (int64_t r = 0; r < n; r++) {
        int64_t step;
        (void)mica__quant_codes_row(m, first + r, codes, own, &step);
        for (int64_t s = 0; s * step < m->cols; s++) scales[s * MICA__PANEL_ROWS + r] = own[s];
        for (int64_t u = 0; u < units; u++) {
            uint32_t c[4];
            memcpy(c, codes + u * MICA__UNIT_COLS, sizeof c);
            /* code + 1 of four columns at once: no byte of the sum carries into the next */
            for (int f = 0; f < 4; f++) c[f] = ((c[f] & 0x7f7f7f7fu) + 0x01010101u) ^ (c[f] & 0x80808080u);
            for (int f = 0; f < 4; f++) both |= c[f] & c[f] >> 1;
            const uint32_t unit = c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6;
            memcpy(panel + u * MICA__UNIT_BYTES + 4 * r, &unit, sizeof unit);
        }
    }
    return both & 0x01010101u ? 3 : 2;
}
