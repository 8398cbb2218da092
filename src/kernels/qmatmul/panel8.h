/* Matrices of 4 to 8 bits in panels, and their products with 16-bit rows.
 *
 * A panel is 16 rows, a run of records of 32 columns each: pairs of columns as bytes (row 0: columns 0 and 1, row 1:
 * columns 0 and 1, ...), then the scales of the 16 rows as f32, one each or two (one for each 16 columns), then their
 * offsets if the format has them: value = scale * code - offset.
 *
 * x is rows of at most 16 bits with a scale for each 32 columns. So a pair of x is one 32-bit number for all rows, products of 16 or 32 columns
 * are exact integers, one sum a row, and these are added up in f32 with both scales, in the order of the columns. */
#ifndef MICA_KERNELS_QMATMUL_PANEL8_H
#define MICA_KERNELS_QMATMUL_PANEL8_H

#include "quant/quant.h"

enum {
    MICA__P8_ROWS = 16,
    MICA__P8_COLS = 32,
    MICA__P8_BYTES = MICA__P8_ROWS * MICA__P8_COLS, /* of the codes of a record           */
    MICA__P8_TILE = 4,                              /* rows of x at a time                */
    MICA__P8_DOT_ROWS = 8,                          /* of a plain matrix at a time        */
    MICA__P8_DOT_TOKENS = 64                        /* and of x: in the second cache      */
};

/* What the records of a format have behind the codes. */
typedef struct mica__p8_format {
    int scales;                  /* 1 or 2 for each row; 0: no such format                */
    bool offsets;
} mica__p8_format;

mica__p8_format mica__p8_format_of(mica__quant_id id);
static inline int64_t mica__p8_record(mica__p8_format f)
{
    return MICA__P8_BYTES + (f.scales + f.offsets) * MICA__P8_ROWS * (int64_t)sizeof(float);
}
static inline int64_t mica__p8_records(int64_t cols) { return (cols + MICA__P8_COLS - 1) / MICA__P8_COLS; }
/* Panel p of a matrix, in records; what is missing is 0. */
void mica__p8_pack(const mica__quant_matrix *m, int64_t p, char *to);

/* A row of x. */
typedef struct mica__p8_x {
    int16_t *q;                  /* (cols)                                                */
    float *d;                    /* (cols / 32): value = q d                              */
    float *sum;                  /* (cols / 32): of the values                            */
} mica__p8_x;

/* In memory for so many bytes, cols a multiple of 32. */
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
    /* A row of n floats to integers of at most `top`. step: columns of one scale (a multiple of 32, as n is); least: a
     * smaller largest size counts as this much; signs: the largest becomes -top. */
    void (*round)(int64_t n, const float *x, int top, int64_t step, float least, bool signs, const mica__p8_x *to);
    /* sums[t * step + r] = row r of w (f32, f16, bf16; w_step bytes apart) times row t of x, n a multiple of 64. At
     * most MICA__P8_DOT_ROWS and MICA__P8_DOT_TOKENS. The bits do not depend on what else is computed. */
    void (*dots)(mica_dtype dtype, int rows, int tokens, int64_t n, const char *w, int64_t w_step,
                 const float *x, int64_t x_step, float *sums, int64_t step);
} mica__p8_variant;

/* The best for this CPU (MICA_CPU considered); all there are, the better ones later, for tests. */
const mica__p8_variant *mica__p8_best(void);
const mica__p8_variant *mica__p8_variants(size_t *n);

#endif
