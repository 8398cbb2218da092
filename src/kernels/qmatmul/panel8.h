/* Matrices of 4 to 8 bits in panels, and their products with 16-bit rows.
 *
 * A panel is 16 rows, stored as a sequence of records of 32 columns. A record holds pairs of columns as bytes (row 0:
 * columns 0 and 1, row 1: columns 0 and 1, ...), then f32 scales of the 16 rows, one each or two (one per 16 columns),
 * then their offsets if the format has them: value = scale * code - offset.
 *
 * Rows of x have at most 16 bits and one scale per 32 columns. A pair of x is one 32-bit number that is broadcast to
 * all rows. The dot products of 16 or 32 columns are exact integers, one per row. They are scaled by both scales and
 * added in f32, in the order of the columns. */
#ifndef MICA_KERNELS_QMATMUL_PANEL8_H
#define MICA_KERNELS_QMATMUL_PANEL8_H

#include "quant/quant.h"

enum {
    MICA__P8_ROWS = 16,
    MICA__P8_COLS = 32,
    MICA__P8_BYTES = MICA__P8_ROWS * MICA__P8_COLS, /* codes of a record                  */
    MICA__P8_TILE = 4,                              /* rows of x at a time                */
    MICA__P8_DOT_ROWS = 8,                          /* rows of a plain matrix at a time   */
    MICA__P8_DOT_TOKENS = 64                        /* and rows of x: fit the L2 cache    */
};

/* What the records of a format hold after the codes. */
typedef struct mica__p8_format {
    int scales;                  /* 1 or 2 per row; 0: format not supported               */
    bool offsets;
} mica__p8_format;

mica__p8_format mica__p8_format_of(mica__quant_id id);
static inline int64_t mica__p8_record(mica__p8_format f)
{
    return MICA__P8_BYTES + (f.scales + f.offsets) * MICA__P8_ROWS * (int64_t)sizeof(float);
}
static inline int64_t mica__p8_records(int64_t cols) { return (cols + MICA__P8_COLS - 1) / MICA__P8_COLS; }
/* Writes panel p of a matrix as records; missing rows and columns are 0. */
void mica__p8_pack(const mica__quant_matrix *m, int64_t p, char *to);

/* A row of x. */
typedef struct mica__p8_x {
    int16_t *q;                  /* (cols)                                                */
    float *d;                    /* (cols / 32): value = q d                              */
    float *sum;                  /* (cols / 32): sums of the values                       */
} mica__p8_x;

/* Size of a row in bytes; cols is a multiple of 32. */
static inline size_t mica__p8_x_bytes(int64_t cols)
{
    return ((size_t)cols * 2 + (size_t)cols / MICA__P8_COLS * 8 + 63) / 64 * 64;
}
static inline mica__p8_x mica__p8_x_at(char *memory, int64_t cols)
{
    float *d = (float *)(void *)(memory + 2 * cols);
    return (mica__p8_x){(int16_t *)(void *)memory, d, d + cols / MICA__P8_COLS};
}

typedef struct mica__p8_variant {
    const char *name;
    unsigned needs;              /* CPU features                                          */
    /* y[tokens][16]: a panel times up to MICA__P8_TILE rows of x */
    void (*tile)(mica__p8_format f, int64_t records, const char *panel, const mica__p8_x *x, int64_t tokens, float *y);
    /* Rounds a row of n floats to integers of at most `top` in size. step: columns per scale (a multiple of 32, like
     * n). least: lower bound of the largest size. signs: the largest element becomes -top. */
    void (*round)(int64_t n, const float *x, int top, int64_t step, float least, bool signs, const mica__p8_x *to);
    /* sums[t * step + r] = row r of w (f32, f16, bf16; w_step bytes apart) times row t of x; n is a multiple of 64. At
     * most MICA__P8_DOT_ROWS and MICA__P8_DOT_TOKENS. The bits of a sum do not depend on the other rows. */
    void (*dots)(mica_dtype dtype, int rows, int tokens, int64_t n, const char *w, int64_t w_step, const float *x,
                 int64_t x_step, float *sums, int64_t step);
} mica__p8_variant;

/* The best for this CPU (respects MICA_CPU); all variants, better ones later, for tests. */
const mica__p8_variant *mica__p8_best(void);
const mica__p8_variant *mica__p8_variants(size_t *n);

#endif
