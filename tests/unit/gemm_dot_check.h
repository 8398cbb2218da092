/* Checks of one variant of a narrow product, for the variants in the library and
 * for those that only a test has (test_gemm_dot.c, test_gemm_dot_emulated.c). */
#ifndef MICA_TEST_GEMM_DOT_CHECK_H
#define MICA_TEST_GEMM_DOT_CHECK_H

#include <math.h>
#include <stdlib.h>

#include "kernels/matmul/gemm_dot.h"
#include "test.h"

#define COUNT_OF(x) (sizeof(x) / sizeof *(x))

/* Any byte; floats of -1 ... 1. */
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

/* One layout of both operands, two bits: whether each is transposed; 4: neither is
 * side by side in either direction. */
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

/* Runs it; every element must have been given to the epilogue once. */
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

/* Rows of A and columns of B are made of the extremes in all combinations, so that
 * every pair meets every pair, with signs that add up and that cancel. */
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

/* |error| <= (k + 2) eps sum |a||b|, every sum and product may round; and half a
 * unit of the result's last place. */
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

/* Lines of 1 ... 100 elements. */
static inline void check_lines(const mica__lines *lines)
{
    static const mica_dtype dtypes[] = {MICA_I8, MICA_U8, MICA_F16, MICA_BF16, MICA_F32};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++)
        for (int64_t n = 1; n <= 300; n = n * 5 / 4 + 1) {
            const mica_dtype dtype = dtypes[d];
            const bool is_float = mica__is_float(dtype);
            test_case("%s: %lld of %s", lines->name, (long long)n, mica_dtype_name(dtype));
            char *w0 = random_elements(dtype, n, 1), *w1 = random_elements(dtype, n, 2);
            char *x = random_elements(dtype, n, 3), *wide = malloc((size_t)n * (is_float ? 4 : 2));
            char *y = calloc((size_t)n, 4), sum[4];
            lines->widen(dtype, n, x, wide);
            lines->dot(dtype, n, wide, w0, sum);
            const char two[8] = {0};
            memcpy((char *)(uintptr_t)two, wide, n > 1 ? (is_float ? 8 : 4) : (is_float ? 4 : 2));
            lines->axpy(dtype, n, two, w0, w1, y);
            lines->axpy(dtype, n, two, w1, w1, y);
            double want = 0, magnitude = 0;
            for (int64_t i = 0; i < n; i++) {
                want += mica__get_f64(dtype, x, i) * mica__get_f64(dtype, w0, i);
                magnitude += fabs(mica__get_f64(dtype, x, i) * mica__get_f64(dtype, w0, i));
                const double x0 = mica__get_f64(dtype, x, 0), x1 = n > 1 ? mica__get_f64(dtype, x, 1) : 0;
                const double b0 = mica__get_f64(dtype, w0, i), b1 = mica__get_f64(dtype, w1, i);
                CHECK_CLOSE(mica__get_f64(is_float ? MICA_F32 : MICA_I32, y, i), x0 * (b0 + b1) + 2 * x1 * b1,
                            is_float ? 1e-6 : 0, is_float ? 1e-6 : 0);
            }
            CHECK_CLOSE(mica__get_f64(is_float ? MICA_F32 : MICA_I32, sum, 0), want, 0,
                        is_float ? 1e-6 * magnitude * 10 : 0);
            free(w0);
            free(w1);
            free(x);
            free(wide);
            free(y);
        }
}

#endif
