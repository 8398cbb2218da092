/* Thin products of narrow operands: whole dot products where the large side lies
 * along k, else two rows of it at a time are added to all sums. */
#include "kernels/matmul/gemv_narrow.h"

enum { THIN_DEPTH = 4096 }; /* elements of k at a time */

/* Sums, and elements of the few as wide as they are multiplied. */
typedef union thin_line {
    int32_t sum_int[MICA__THIN_MANY];
    float sum_float[MICA__THIN_MANY];
} thin_line;

typedef union thin_few {
    int16_t x_int[THIN_DEPTH];
    float x_float[THIN_DEPTH];
} thin_few;

static bool thin_is_int(const mica__thin *t) { return !mica__is_float(t->dtype); }

/* n elements of a view, `step` apart: where they are if that is side by side. */
static const char *thin_elements(const mica__gemm_view *view, int64_t offset, int64_t n, int64_t step, char *buffer)
{
    const size_t size = mica_dtype_size(view->dtype);
    const char *from = view->data + offset * (int64_t)size;
    if (step == 1) return from;
    mica__copy_row(size, n, buffer, 1, from, step);
    return buffer;
}

/* f: which of the few; x: `depth` elements of it from k. */
static void thin_dots(const mica__thin *t, const thin_few *x, int64_t k, int64_t depth, int64_t i, int64_t n,
                      thin_line *sums)
{
    char buffer[THIN_DEPTH * sizeof(float)];
    const mica__gemm_view *many = &t->many;
    for (int64_t j = 0; j < n; j++) {
        const char *line = thin_elements(many, k * many->k_step + (i + j) * many->i_step, depth, many->k_step, buffer);
        for (int64_t f = 0; f < t->n_few; f++) {
            union {
                int32_t i;
                float f;
            } sum;
            t->lines->dot(many->dtype, depth, &x[f], line, &sum);
            if (thin_is_int(t)) sums[f].sum_int[j] = (int32_t)((uint32_t)sums[f].sum_int[j] + (uint32_t)sum.i);
            else sums[f].sum_float[j] += sum.f;
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
            /* an odd last row: 0 times 0, which no infinity of the row before disturbs */
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
    thin_line sums[MICA__THIN_FEW];
    thin_few x[MICA__THIN_FEW];
    memset(sums, 0, sizeof sums);
    for (int64_t k = 0; k < t->k; k += THIN_DEPTH) {
        const int64_t depth = mica__min_i64(THIN_DEPTH, t->k - k);
        for (int64_t f = 0; f < t->n_few; f++) {
            char buffer[THIN_DEPTH * sizeof(float)];
            const char *line =
                thin_elements(&t->few, k * t->few.k_step + f * t->few.i_step, depth, t->few.k_step, buffer);
            t->lines->widen(t->few.dtype, depth, line, &x[f]);
        }
        if (t->many.i_step == 1 && t->many.k_step != 1) thin_rows(t, x, k, depth, i, n, sums);
        else thin_dots(t, x, k, depth, i, n, sums);
    }
    thin_store(t, i, n, sums);
}
