/* Checks of one variant of a narrow product, for the variants in the library and for those that
 * exist only in tests (test_gemm_dot.c, test_gemm_dot_emulated.c). */
#ifndef MICA_TEST_GEMM_DOT_CHECK_H
#define MICA_TEST_GEMM_DOT_CHECK_H

#include <math.h>
#include <stdlib.h>

#include "kernels/matmul/gemm_dot.h"
#include "kernel_scratch.h"
#include "test.h"

#define COUNT_OF(x) (sizeof(x) / sizeof *(x))

/* Random bytes, or floats in -1 ... 1. */
static inline char *random_elements(mica_dtype dtype, int64_t n, unsigned seed)
{
    char *x = malloc((size_t)(n ? n : 1) * mica_dtype_size(dtype));
    for (int64_t i = 0; i < n && x; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (mica__is_float(dtype)) mica__set_f64(dtype, x, i, (double)(seed >> 8) / 8388608.0 - 1.0);
        else x[i] = (char)(seed >> 24);
    }
    return x;
}

/* One layout of both operands. Bits 0 and 1: the operand is transposed. 4: neither is contiguous
 * in either direction. */
typedef struct dot_case {
    char *memory_a, *memory_b, *out;
    mica__dot_product p;
} dot_case;

static inline dot_case dot_begin(const mica__dot_variant *v, const int64_t *shape, mica_dtype a, mica_dtype b,
                                 mica_dtype out, int layout)
{
    const int64_t m = shape[0], k = shape[1], n = shape[2], gap = layout == 4 ? 2 : 1;
    dot_case c = {.memory_a = random_elements(a, m * k * gap - gap + 1, 6),
                  .memory_b = random_elements(b, k * n * gap - gap + 1, 7),
                  .out = malloc((size_t)(m * n) * mica_dtype_size(out))};
    c.p = (mica__dot_product){.v = v, .lines = mica__lines_best(), .m = m, .n = n, .k = k, .dtype = out, .out = c.out};
    c.p.a = (mica__gemm_view){c.memory_a, a, gap * (layout & 1 ? m : 1), gap * (layout & 1 ? 1 : k)};
    c.p.b = (mica__gemm_view){c.memory_b, b, gap * (layout & 2 ? 1 : n), gap * (layout & 2 ? k : 1)};
    test_case("%s: %lld x %lld x %lld, %s and %s into %s, layout %d", v->name, (long long)m, (long long)k, (long long)n,
              mica_dtype_name(a), mica_dtype_name(b), mica_dtype_name(out), layout);
    return c;
}

static inline void dot_count(const mica__epilogue *epilogue, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) ((int *)(uintptr_t)epilogue->context)[i]++;
}

/* Runs the product; every element must be passed to the epilogue once. */
static inline void dot_run_case(dot_case *c)
{
    void *scratch = malloc(mica__dot_scratch(c->p.v, c->p.dtype, c->p.m, c->p.n));
    int *told = calloc((size_t)(c->p.m * c->p.n), sizeof *told);
    const mica__epilogue epilogue = {dot_count, told};
    c->p.epilogue = &epilogue;
    mica__dot_run(NULL, &c->p, scratch);
    for (int64_t i = 0; i < c->p.m * c->p.n; i++)
        if (told[i] != 1) {
            EXPECT_INT(told[i], 1);
            break;
        }
    free(told);
    free(scratch);
}

static inline void dot_end(dot_case *c)
{
    free(c->memory_a);
    free(c->memory_b);
    free(c->out);
}

static inline int64_t dot_at_int(const mica__gemm_view *v, int64_t k, int64_t i)
{
    return mica__get_i64(v->dtype, v->data, k * v->k_step + i * v->i_step);
}

static inline double dot_at(const mica__gemm_view *v, int64_t k, int64_t i)
{
    return mica__get_f64(v->dtype, v->data, k * v->k_step + i * v->i_step);
}

static inline void dot_compare_int(const dot_case *c)
{
    for (int64_t i = 0; i < c->p.m; i++)
        for (int64_t j = 0; j < c->p.n; j++) {
            uint32_t want = 0, got;
            for (int64_t k = 0; k < c->p.k; k++)
                want += (uint32_t)(dot_at_int(&c->p.a, k, i) * dot_at_int(&c->p.b, k, j));
            memcpy(&got, c->out + (i * c->p.n + j) * 4, sizeof got);
            CHECK_MSG(got == want, "(%lld, %lld): %d, not %d", (long long)i, (long long)j, (int)got, (int)want);
        }
}

static const mica_dtype dot_bytes[][2] = {
    {MICA_I8, MICA_I8}, {MICA_U8, MICA_I8}, {MICA_I8, MICA_U8}, {MICA_U8, MICA_U8}};

static inline void check_int_variant(const mica__dot_variant *v, const int64_t *shape)
{
    for (size_t d = 0; d < COUNT_OF(dot_bytes); d++)
        for (int layout = 0; layout < 5; layout++) {
            dot_case c = dot_begin(v, shape, dot_bytes[d][0], dot_bytes[d][1], MICA_I32, layout);
            dot_run_case(&c);
            dot_compare_int(&c);
            dot_end(&c);
        }
}

/* Rows of A and columns of B contain the extremes in all combinations, so that every
 * pair is multiplied with every pair, with signs that add up and that cancel. */
static inline void check_int_extremes(const mica__dot_variant *v)
{
    static const char values[] = {(char)-128, 127, (char)-127, 0, 1, (char)-1};
    const int64_t shape[3] = {36, 40, 36};
    for (size_t d = 0; d < COUNT_OF(dot_bytes); d++)
        for (int layout = 0; layout < 4; layout++) {
            dot_case c = dot_begin(v, shape, dot_bytes[d][0], dot_bytes[d][1], MICA_I32, layout);
            for (int64_t i = 0; i < 36; i++)
                for (int64_t k = 0; k < 40; k++) {
                    const char x = values[k % 2 ? i / 6 : i % 6];
                    c.memory_a[k * c.p.a.k_step + i * c.p.a.i_step] = x;
                    c.memory_b[k * c.p.b.k_step + i * c.p.b.i_step] = x;
                }
            dot_run_case(&c);
            dot_compare_int(&c);
            dot_end(&c);
        }
}

/* |error| <= (k + 2) eps sum |a||b|, because every sum and product may round, plus half
 * an ulp of the result. */
static inline void dot_compare_float(const dot_case *c)
{
    const double unit = c->p.dtype == MICA_F16 ? 0x1p-11 : c->p.dtype == MICA_BF16 ? 0x1p-8 : 0;
    for (int64_t i = 0; i < c->p.m; i++)
        for (int64_t j = 0; j < c->p.n; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < c->p.k; k++) {
                const double term = dot_at(&c->p.a, k, i) * dot_at(&c->p.b, k, j);
                sum += term;
                magnitude += fabs(term);
            }
            const double got = mica__get_f64(c->p.dtype, c->out, i * c->p.n + j);
            const double most = (double)(c->p.k + 2) * 0x1p-23 * magnitude + unit * fabs(sum) + 1e-30;
            CHECK_MSG(fabs(got - sum) <= most, "(%lld, %lld): %g, not %g", (long long)i, (long long)j, got, sum);
        }
}

static inline void check_float_variant(const mica__dot_variant *v, const int64_t *shape)
{
    static const mica_dtype dtypes[][3] = {{MICA_BF16, MICA_BF16, MICA_BF16}, {MICA_F16, MICA_F16, MICA_F16},
                                           {MICA_BF16, MICA_BF16, MICA_F32},  {MICA_F32, MICA_BF16, MICA_F32},
                                           {MICA_F16, MICA_F32, MICA_F32},    {MICA_F16, MICA_BF16, MICA_F32}};
    for (size_t d = 0; d < (v->kind == MICA__DOT_BF16 ? 1 : COUNT_OF(dtypes)); d++)
        for (int layout = 0; layout < 5; layout++) {
            dot_case c = dot_begin(v, shape, dtypes[d][0], dtypes[d][1], dtypes[d][2], layout);
            dot_run_case(&c);
            dot_compare_float(&c);
            dot_end(&c);
        }
}

/* Lines of n elements, compared with sums in double; floats in -1 ... 1 have a small error. */
typedef struct line_case {
    const mica__lines *lines;
    mica_dtype dtype, wide, sums; /* dtypes of x and w; of widened x; of results */
    int64_t n;
    char *x, *w0, *w1, *spread, *y;
    double slack;
} line_case;

static inline double line_sum(const line_case *c, const char *sum) { return mica__get_f64(c->sums, sum, 0); }

/* The dot product of one line, and of the same line four times. */
static inline void check_line_dots(const line_case *c)
{
    char one[4], four[16], narrow[16];
    double want = 0;
    for (int64_t i = 0; i < c->n; i++) want += mica__get_f64(c->dtype, c->x, i) * mica__get_f64(c->dtype, c->w0, i);
    c->lines->dot(c->wide, c->dtype, c->n, c->spread, c->w0, one);
    c->lines->dots(c->wide, c->dtype, c->n, c->spread, c->w0, 0, four);
    EXPECT_CLOSE(line_sum(c, one), want, 0, c->slack);
    EXPECT_CLOSE(line_sum(c, four), want, 0, c->slack);
    for (int r = 1; r < 4; r++) EXPECT(memcmp(four + 4 * r, four, 4) == 0);
    if (c->dtype != MICA_F16 && c->dtype != MICA_BF16) return;
    /* narrow x: the same products in the same order */
    c->lines->dot(c->dtype, c->dtype, c->n, c->x, c->w0, narrow);
    EXPECT(memcmp(narrow, one, 4) == 0);
    c->lines->dots(c->dtype, c->dtype, c->n, c->x, c->w0, 0, narrow);
    EXPECT(memcmp(narrow, four, 16) == 0);
}

/* y = x0 w0 + x1 w1, then x0 w1 + x1 w1 is added. */
static inline void check_line_axpy(const line_case *c, const void *pair)
{
    memset(c->y, 0, (size_t)c->n * 4);
    c->lines->axpy(c->dtype, c->n, pair, c->w0, c->w1, c->y);
    c->lines->axpy(c->dtype, c->n, pair, c->w1, c->w1, c->y);
    const double x0 = mica__get_f64(c->wide, pair, 0), x1 = mica__get_f64(c->wide, pair, 1);
    for (int64_t i = 0; i < c->n; i++) {
        const double b0 = mica__get_f64(c->dtype, c->w0, i), b1 = mica__get_f64(c->dtype, c->w1, i);
        CHECK_CLOSE(mica__get_f64(c->sums, c->y, i), x0 * (b0 + b1) + 2 * x1 * b1, 0, c->slack);
    }
}

static inline void check_lines(const mica__lines *lines)
{
    static const mica_dtype dtypes[] = {MICA_I8, MICA_U8, MICA_F16, MICA_BF16, MICA_F32};
    static const int64_t sizes[] = {1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 300, MICA__LINES_MOST};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++)
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            const int64_t n = sizes[k];
            const bool is_float = mica__is_float(dtypes[d]);
            line_case c = {.lines = lines, .dtype = dtypes[d], .n = n, .slack = is_float ? 1e-6 * (double)(n + 9) : 0};
            c.wide = is_float ? MICA_F32 : MICA_I16;
            c.sums = is_float ? MICA_F32 : MICA_I32;
            test_case("%s: %lld of %s", lines->name, (long long)n, mica_dtype_name(c.dtype));
            c.x = random_elements(c.dtype, n, 3);
            c.w0 = random_elements(c.dtype, n, 1);
            c.w1 = random_elements(c.dtype, n, 2);
            c.y = malloc((size_t)n * 4);
            c.spread = malloc((size_t)n * mica_dtype_size(c.wide));
            char *wide = malloc((size_t)(n + 1) * mica_dtype_size(c.wide));
            memset(wide, 0, (size_t)(n + 1) * mica_dtype_size(c.wide));
            lines->widen(c.dtype, n, c.x, wide);
            lines->spread(c.dtype, n, wide, c.spread);
            check_line_dots(&c);
            check_line_axpy(&c, wide);
            /* the largest and the smallest possible sums of bytes */
            for (int sign = 0; sign < 2 && !is_float; sign++) {
                memset(c.x, sign ? 0x7f : 0x80, (size_t)n);
                memset(c.w0, 0x80, (size_t)n);
                if (c.dtype == MICA_U8) memset(c.x, 0xff, (size_t)n), memset(c.w0, 0xff, (size_t)n);
                lines->widen(c.dtype, n, c.x, wide);
                lines->spread(c.dtype, n, wide, c.spread);
                check_line_dots(&c);
            }
            free(c.x);
            free(c.w0);
            free(c.w1);
            free(c.y);
            free(c.spread);
            free(wide);
        }
}

/* u8 with i8: the largest products of the even bytes, which are scaled by 256. */
static inline void check_mixed_bytes(const mica__lines *lines)
{
    enum { N = MICA__LINES_MOST };
    static int16_t x[N], spread[N];
    static char w[N];
    for (int value = -128; value < 128; value += 255) {
        for (int i = 0; i < N; i++) x[i] = 255;
        memset(w, value, N);
        lines->spread(MICA_I8, N, x, spread);
        int32_t one, four[4];
        lines->dot(MICA_I16, MICA_I8, N, spread, w, &one);
        lines->dots(MICA_I16, MICA_I8, N, spread, w, 0, four);
        EXPECT_INT(one, 255 * value * N);
        for (int r = 0; r < 4; r++) EXPECT_INT(four[r], 255 * value * N);
    }
}

#endif
