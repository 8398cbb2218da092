/* Thin products of narrow operands: dot products if the large side is contiguous along k; otherwise two of its rows at
 * a time are added to all sums. */
#include "kernels/matmul/gemv_narrow.h"

enum { THIN_DEPTH = MICA__LINES_MOST }; /* elements of k at a time */

/* Accumulators, or elements of `few` widened to the type in which they are multiplied. */
typedef union thin_line {
    int32_t sum_int[MICA__THIN_MANY];
    float sum_float[MICA__THIN_MANY];
} thin_line;

typedef union thin_few {
    int16_t x_int[THIN_DEPTH];
    float x_float[THIN_DEPTH];
} thin_few;

typedef struct thin_tiles {
    thin_line sums[MICA__THIN_FEW];
    thin_few x[MICA__THIN_FEW], plain;
    char buffer[THIN_DEPTH * sizeof(float)];
} thin_tiles;

static bool thin_is_int(const mica__thin *t) { return !mica__is_float(t->dtype); }

/* The dtype in which dot products read `few`. */
static mica_dtype thin_x_dtype(const mica__thin *t)
{
    if (thin_is_int(t)) return MICA_I16;
    return t->few.dtype == t->many.dtype ? t->few.dtype : MICA_F32;
}

/* n elements of a view with stride `step`: in place if they are contiguous, else copied. */
static const char *thin_elements(const mica__gemm_view *view, int64_t offset, int64_t n, int64_t step, char *buffer)
{
    const size_t size = mica_dtype_size(view->dtype);
    const char *from = view->data + offset * (int64_t)size;
    if (step == 1) return from;
    mica__copy_row(size, n, buffer, 1, from, step);
    return buffer;
}

/* Adds a sum for each row of `few`, for column j of `many`. */
static void thin_add(const mica__thin *t, thin_line *sums, int64_t j, const void *sum)
{
    uint32_t whole;
    float number;
    memcpy(&whole, sum, sizeof whole);
    memcpy(&number, sum, sizeof number);
    if (thin_is_int(t)) sums->sum_int[j] = (int32_t)((uint32_t)sums->sum_int[j] + whole);
    else sums->sum_float[j] += number;
}

/* x: `depth` elements from k of each row of `few`. If `many` is contiguous along k, four of its lines, a quarter of
 * the range apart, are read together: a few long streams get more memory bandwidth than one. */
static void thin_dots(const mica__thin *t, thin_tiles *tiles, int64_t k, int64_t depth, int64_t i, int64_t n)
{
    const thin_few *x = tiles->x;
    thin_line *sums = tiles->sums;
    uint32_t sum[4]; /* or floats */
    const mica__gemm_view *many = &t->many;
    const int64_t quarter = many->k_step == 1 ? n / 4 : 0;
    const int64_t size = (int64_t)mica_dtype_size(many->dtype), step = quarter * many->i_step * size;
    for (int64_t j = 0; j < quarter; j++)
        for (int64_t f = 0; f < t->n_few; f++) {
            t->lines->dots(thin_x_dtype(t), many->dtype, depth, &x[f], many->data + (k + (i + j) * many->i_step) * size,
                           step, sum);
            for (int64_t r = 0; r < 4; r++) thin_add(t, &sums[f], j + r * quarter, &sum[r]);
        }
    for (int64_t j = 4 * quarter; j < n; j++) {
        const char *line =
            thin_elements(many, k * many->k_step + (i + j) * many->i_step, depth, many->k_step, tiles->buffer);
        for (int64_t f = 0; f < t->n_few; f++) {
            t->lines->dot(thin_x_dtype(t), many->dtype, depth, &x[f], line, sum);
            thin_add(t, &sums[f], j, sum);
        }
    }
}

static void thin_rows(const mica__thin *t, const thin_few *x, int64_t k, int64_t depth, int64_t i, int64_t n,
                      thin_line *sums)
{
    const mica__gemm_view *many = &t->many;
    const int64_t row = many->k_step * (int64_t)mica_dtype_size(many->dtype);
    const char *from = many->data + (k * many->k_step + i) * (int64_t)mica_dtype_size(many->dtype);
    static const char zeros[MICA__THIN_MANY * sizeof(float)];
    for (int64_t kk = 0; kk < depth; kk += 2)
        for (int64_t f = 0; f < t->n_few; f++) {
            /* an odd last row is paired with 0 times 0, so that an infinity in the row does not give NaN */
            const char *next = kk + 1 < depth ? from + (kk + 1) * row : zeros;
            if (thin_is_int(t)) {
                const int16_t pair[2] = {x[f].x_int[kk], kk + 1 < depth ? x[f].x_int[kk + 1] : 0};
                t->lines->axpy(many->dtype, n, pair, from + kk * row, next, &sums[f]);
            } else {
                const float pair[2] = {x[f].x_float[kk], kk + 1 < depth ? x[f].x_float[kk + 1] : 0};
                t->lines->axpy(many->dtype, n, pair, from + kk * row, next, &sums[f]);
            }
        }
}

static void thin_store(const mica__thin *t, int64_t i, int64_t n, const thin_line *sums)
{
    const int64_t size = (int64_t)mica_dtype_size(t->dtype);
    for (int64_t f = 0; f < t->n_few; f++) {
        char *to = t->out + (f * t->few_step + i * t->many_step) * size;
        if (size == 4) mica__copy_row(4, n, to, t->many_step, (const char *)&sums[f], 1);
        else if (t->many_step == 1) t->lines->narrow(t->dtype, n, sums[f].sum_float, to);
        else mica__store_f32(t->dtype, n, to, t->many_step, sums[f].sum_float);
    }
}

void mica__thin_part(const mica__thin *t, int64_t i, int64_t n)
{
    thin_tiles *tiles = mica__scratch_alloc(sizeof *tiles);
    thin_line *sums = tiles->sums;
    thin_few *x = tiles->x;
    const bool by_rows = t->many.i_step == 1 && t->many.k_step != 1;
    memset(sums, 0, sizeof tiles->sums);
    for (int64_t k = 0; k < t->k; k += THIN_DEPTH) {
        const int64_t depth = mica__min_i64(THIN_DEPTH, t->k - k);
        for (int64_t f = 0; f < t->n_few; f++) {
            const char *line =
                thin_elements(&t->few, k * t->few.k_step + f * t->few.i_step, depth, t->few.k_step, tiles->buffer);
            if (by_rows) {
                t->lines->widen(t->few.dtype, depth, line, &x[f]);
            } else if (!thin_is_int(t) && t->few.dtype == t->many.dtype) {
                memcpy(&x[f], line, (size_t)depth * mica_dtype_size(t->few.dtype));
            } else {
                t->lines->widen(t->few.dtype, depth, line, &tiles->plain);
                t->lines->spread(t->many.dtype, depth, &tiles->plain, &x[f]);
            }
        }
        if (by_rows) thin_rows(t, x, k, depth, i, n, sums);
        else thin_dots(t, tiles, k, depth, i, n);
    }
    thin_store(t, i, n, sums);
    mica__scratch_release(tiles);
}
