/* Ternary (two-bit) matrices in panels, and their products with 8-bit rows.
 *
 * A panel is 16 rows. It is a run of units of 64 bytes, each 16 columns: byte 4 r + j holds of row r the columns j,
 * 4 + j, 8 + j and 12 + j, two bits each, low bits first, as code + 1:
 *
 *   unit   row 0: [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]   row 1: ...   row 15: ...
 *
 * So one mask leaves four columns of 16 rows as bytes, and the four elements of x that belong to them are one 32-bit
 * number, the same for all rows: a vector of weights meets a splat, what comes out is one sum a row, and nothing is
 * shuffled. Panels follow each other: a thread reads one stream. Missing rows and columns have code 0 and meet x = 0.
 *
 * Sums are over code + 1, which is never negative; who asks subtracts the sum of x. 32 bits hold them for
 * MICA__TERNARY_UNITS units. */
#ifndef MICA_KERNELS_QMATMUL_TERNARY_H
#define MICA_KERNELS_QMATMUL_TERNARY_H

#include "quant/quant.h"

enum {
    MICA__PANEL_ROWS = 16,
    MICA__UNIT_COLS = 16,
    MICA__UNIT_BYTES = 64,
    MICA__TRITS_BYTES = 832,     /* of 16 rows by 256 columns in MICA_T1                  */
    MICA__TERNARY_BLOCK = 16,    /* units whose x lies together: 256 columns              */
    MICA__TERNARY_TOKENS = 192,  /* rows of x at a time: a multiple of every group        */
    MICA__TERNARY_PANELS = 2,    /* that share what of x is in the first cache            */
    MICA__TERNARY_UNITS = 4096   /* of one call: 65,536 columns                           */
};

/* x as kernels want it. Of one row: as it is. Of more: blocks of 256 columns, in each groups of `group` rows (the last
 * may have fewer), in each `cell` columns of one row after those of the other. */
typedef struct mica__ternary_x {
    const int8_t *q;
    int64_t tokens;              /* MICA__TERNARY_TOKENS at most                          */
} mica__ternary_x;

typedef struct mica__ternary_variant {
    const char *name;
    unsigned needs;              /* CPU features                                          */
    int group;                   /* rows of x that share what was unpacked                */
    int cell;                    /* columns of one row of x that lie together: 4 or 8     */
    /* sums[16] of one row of x; x is at the first of the units. top: largest code + 1, 2 or 3. */
    void (*one)(int64_t units, const uint8_t *panel, const int8_t *x, int top, int32_t *sums);
    /* sums[panels][tokens][16] of units from, from + 1, ... of up to MICA__TERNARY_PANELS panels, `next` bytes apart;
     * units of one block, or from is at a block's start. trits: panels of MICA_T1, five to a byte, at a block's start;
     * also for one row of x. */
    void (*many)(int64_t from, int64_t units, const uint8_t *panel, int64_t next, int64_t panels, bool trits,
                 const mica__ternary_x *x, int top, int32_t *sums);
    /* out[tokens][16] += ((sums - less[t]) * w[16]) * d[t], in double. */
    void (*scale)(int64_t tokens, const int32_t *sums, const int32_t *less, int64_t less_step, const float *w,
                  const float *d, int64_t d_step, double *out);
    /* y[tokens][16] = sums * a[t] */
    void (*finish)(int64_t tokens, const double *sums, const float *a, float *y);
    /* Both at once, of a sum that has one piece: y[tokens][16], rows y_step apart. */
    void (*write)(int64_t tokens, const int32_t *sums, const int32_t *less, const float *w, const float *d,
                  int64_t d_step, const float *a, float *y, int64_t y_step);
    /* n elements, a multiple of 64, times `times`, to the nearest integers, which fit 8 bits. */
    void (*round)(int64_t n, const float *x, float times, int8_t *q);
    /* The largest |x|; NaN or infinite if one of them is. */
    float (*largest)(int64_t n, const float *x);
} mica__ternary_variant;

/* The best for this CPU (MICA_CPU considered); all there are, the better ones later, for tests. */
const mica__ternary_variant *mica__ternary_best(void);
const mica__ternary_variant *mica__ternary_variants(size_t *n);

/* --------------------------------------------------------------- packing ---- */

static inline int64_t mica__ternary_units(int64_t cols) { return (cols + MICA__UNIT_COLS - 1) / MICA__UNIT_COLS; }
static inline int64_t mica__ternary_panels(int64_t rows) { return (rows + MICA__PANEL_ROWS - 1) / MICA__PANEL_ROWS; }

/* Scratch of the next for a row of so many columns. */
static inline size_t mica__ternary_scratch(int64_t cols)
{
    return (size_t)mica__ternary_units(cols) * MICA__UNIT_COLS + ((size_t)cols / 32 + 16) * sizeof(float);
}
/* Panel `p` of a matrix with codes; scales (steps, 16): of each row, one for each `step` columns of it. The largest
 * code + 1: 3 where a format has 2 too, or a file has what is no ternary digit. */
int mica__ternary_panel(const mica__quant_matrix *m, int64_t p, uint8_t *panel, float *scales, void *scratch);

#endif
