/* Ternary (two-bit) matrices in panels, and their products with 8-bit rows.
 *
 * A panel is 16 rows, stored as a sequence of units of 64 bytes with 16 columns each. Byte 4 r + j holds columns
 * j, 4 + j, 8 + j and 12 + j of row r, two bits each, low bits first, as code + 1:
 *
 *   unit   row 0: [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]   row 1: ...   row 15: ...
 *
 * So one mask extracts four columns of 16 rows as bytes. The matching four elements of x are one 32-bit number, the
 * same for all rows: a vector of weights is multiplied with a splat, which gives one sum per row without shuffles.
 * Panels are contiguous, so a thread reads one stream. Missing rows and columns have code 0 and are multiplied with
 * x = 0.
 *
 * Sums are over code + 1, which is never negative; the caller subtracts the sum of x. They fit in 32 bits for up to
 * MICA__TERNARY_UNITS units. */
#ifndef MICA_KERNELS_QMATMUL_TERNARY_H
#define MICA_KERNELS_QMATMUL_TERNARY_H

#include "quant/quant.h"

enum {
    MICA__PANEL_ROWS = 16,
    MICA__UNIT_COLS = 16,
    MICA__UNIT_BYTES = 64,
    MICA__TRITS_BYTES = 832,     /* of 16 rows by 256 columns in MICA_T1                  */
    MICA__TERNARY_BLOCK = 16,    /* units whose x is contiguous: 256 columns              */
    MICA__TERNARY_TOKENS = 192,  /* rows of x at a time: a multiple of every group        */
    MICA__TERNARY_PANELS = 2,    /* panels that share the x in the L1 cache               */
    MICA__TERNARY_UNITS = 4096   /* per call: 65,536 columns                              */
};

/* Layout of x for the kernels. A single row is plain. Several rows are stored in blocks of 256 columns; a block holds
 * groups of `group` rows (the last may have fewer); a group interleaves cells of `cell` columns of its rows. */
typedef struct mica__ternary_x {
    const int8_t *q;
    int64_t tokens;              /* MICA__TERNARY_TOKENS at most                          */
} mica__ternary_x;

typedef struct mica__ternary_variant {
    const char *name;
    unsigned needs;              /* CPU features                                          */
    int group;                   /* rows of x that share unpacked weights                 */
    int cell;                    /* contiguous columns of one row of x: 4 or 8            */
    /* sums[16] of one row of x; x points to the column of the first unit. top: largest code + 1, 2 or 3. */
    void (*one)(int64_t units, const uint8_t *panel, const int8_t *x, int top, int32_t *sums);
    /* sums[panels][tokens][16] of units from, from + 1, ... of up to MICA__TERNARY_PANELS panels, `next` bytes apart.
     * The units are within one block, or from is at the start of a block. trits: panels of MICA_T1 (five trits per
     * byte), from at the start of a block; also for one row of x. */
    void (*many)(int64_t from, int64_t units, const uint8_t *panel, int64_t next, int64_t panels, bool trits,
                 const mica__ternary_x *x, int top, int32_t *sums);
    /* out[tokens][16] += ((sums - less[t]) * w[16]) * d[t], in double. */
    void (*scale)(int64_t tokens, const int32_t *sums, const int32_t *less, int64_t less_step, const float *w,
                  const float *d, int64_t d_step, double *out);
    /* y[tokens][16] = sums * a[t] */
    void (*finish)(int64_t tokens, const double *sums, const float *a, float *y);
    /* scale and finish in one call, for sums of one piece: y[tokens][16], rows y_step apart. */
    void (*write)(int64_t tokens, const int32_t *sums, const int32_t *less, const float *w, const float *d,
                  int64_t d_step, const float *a, float *y, int64_t y_step);
    /* Multiplies n elements, a multiple of 64, by `times` and rounds to nearest integers, which fit 8 bits. */
    void (*round)(int64_t n, const float *x, float times, int8_t *q);
    /* The largest |x|; NaN or infinite if an element is. */
    float (*largest)(int64_t n, const float *x);
} mica__ternary_variant;

/* The best for this CPU (respects MICA_CPU); all variants, better ones later, for tests. */
const mica__ternary_variant *mica__ternary_best(void);
const mica__ternary_variant *mica__ternary_variants(size_t *n);

/* --------------------------------------------------------------- packing ---- */

static inline int64_t mica__ternary_units(int64_t cols) { return (cols + MICA__UNIT_COLS - 1) / MICA__UNIT_COLS; }
static inline int64_t mica__ternary_panels(int64_t rows) { return (rows + MICA__PANEL_ROWS - 1) / MICA__PANEL_ROWS; }

/* Scratch bytes of mica__ternary_panel for a row of `cols` columns. */
static inline size_t mica__ternary_scratch(int64_t cols)
{
    return (size_t)mica__ternary_units(cols) * MICA__UNIT_COLS + ((size_t)cols / 32 + 16) * sizeof(float);
}
/* Packs panel `p` of a matrix with codes; scales (steps, 16): for each row, one per `step` columns. Returns the
 * largest code + 1: 3 if the format has code 2, or the file has invalid trits. */
int mica__ternary_panel(const mica__quant_matrix *m, int64_t p, uint8_t *panel, float *scales, void *scratch);

#endif
