/* The inner kernels of f32 matrix products: every variant this CPU can run, and
 * the ways that feed them, against sums in double. Buffers have exactly the size
 * they need, so that a sanitizer sees a read or write beyond. */
#include <math.h>
#include <stdlib.h>

#include "kernels/matmul/gemm.h"
#include "test.h"

static float *random_floats(size_t n, unsigned seed)
{
    float *x = malloc((n ? n : 1) * sizeof *x);
    for (size_t i = 0; i < n && x; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

/* |error| <= (k + 2) eps sum |a||b|: every sum and product may round. */
static bool close_enough(float got, double want, double magnitude, int64_t k)
{
    return fabs((double)got - want) <= (double)(k + 2) * 6e-8 * magnitude + 1e-30;
}

/* Element (k, i) of a view, as packing reads it. */
static double at(const mica__gemm_view *v, int64_t k, int64_t i)
{
    return mica__get_f64(v->dtype, v->data, k * v->k_step + i * v->i_step);
}

static void check_product(const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n, int64_t k,
                          const float *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t p = 0; p < k; p++) {
                const double term = at(a, p, i) * at(b, p, j);
                sum += term;
                magnitude += fabs(term);
            }
            CHECK_MSG(close_enough(c[i * n + j], sum, magnitude, k), "(%lld, %lld): %g, not %g", (long long)i,
                      (long long)j, (double)c[i * n + j], sum);
        }
}

TEST(variants_in_place)
{
    size_t n_variant;
    const mica__gemm_variant *table = mica__gemm_variants(&n_variant);
    for (size_t v = 0; v < n_variant; v++)
        for (int64_t n = 1; n <= 70; n += 3)
            for (int64_t m = 1; m <= 13; m += 2) {
                const int64_t k = 1 + (n * 7 + m * 3) % 40;
                test_case("%s: %lld x %lld x %lld", table[v].name, (long long)m, (long long)k, (long long)n);
                float *x = random_floats((size_t)(m * k), 1), *y = random_floats((size_t)(k * n), 2);
                float *c = malloc((size_t)(m * n) * sizeof *c);
                const mica__gemm_view a = {(const char *)x, MICA_F32, 1, k}, b = {(const char *)y, MICA_F32, n, 1};
                mica__gemm_direct(&table[v], &a, &b, 0, m, n, k, c);
                check_product(&a, &b, m, n, k, c);
                free(x);
                free(y);
                free(c);
            }
}

TEST(variants_packed)
{
    size_t n_variant;
    const mica__gemm_variant *table = mica__gemm_variants(&n_variant);
    for (size_t v = 0; v < n_variant; v++)
        for (int64_t depth = 0; depth <= 9; depth++)
            for (int add = 0; add < 2; add++) {
                const int mr = table[v].mr, nr = table[v].nr;
                test_case("%s: depth %lld, %s", table[v].name, (long long)depth, add ? "added" : "alone");
                float *a = random_floats((size_t)(depth * mr), 3), *b = random_floats((size_t)(depth * nr), 4);
                float *c = random_floats((size_t)(mr * nr), 5), *old = random_floats((size_t)(mr * nr), 5);
                table[v].packed(depth, a, b, c, nr, add != 0);
                for (int i = 0; i < mr * nr; i++) {
                    double sum = 0;
                    for (int64_t k = 0; k < depth; k++) sum += (double)a[k * mr + i / nr] * (double)b[k * nr + i % nr];
                    CHECK_CLOSE(c[i], sum + (add ? (double)old[i] : 0.0), 1e-5, 1e-5);
                }
                free(a);
                free(b);
                free(c);
                free(old);
            }
}

static void count_elements(const mica__epilogue *epilogue, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) ((int *)(uintptr_t)epilogue->context)[i]++;
}

/* Blocks of k (384) and of columns (1024), edges of both, any layout and dtype. */
TEST(blocked)
{
    static const int64_t shape[][3] = {{97, 130, 300}, {100, 385, 200}, {7, 900, 1100},
                                       {200, 1, 33},   {13, 384, 1024}, {6, 769, 16}};
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int layout = 0; layout < 4; layout++) {
            const int64_t m = shape[s][0], k = shape[s][1], n = shape[s][2];
            test_case("%lld x %lld x %lld, layout %d", (long long)m, (long long)k, (long long)n, layout);
            float *x = random_floats((size_t)(m * k), 6), *y = random_floats((size_t)(k * n), 7);
            float *c = malloc((size_t)(m * n) * sizeof *c);
            int *told = calloc((size_t)(m * n), sizeof *told);
            const mica__gemm_view a = {(const char *)x, MICA_F32, layout & 1 ? m : 1, layout & 1 ? 1 : k};
            const mica__gemm_view b = {(const char *)y, MICA_F32, layout & 2 ? 1 : n, layout & 2 ? k : 1};
            const mica__epilogue epilogue = {count_elements, told};
            void *scratch = malloc(mica__gemm_scratch(&a, m, n, k));
            mica__gemm_blocked_run(NULL, &(mica__gemm_blocked){.variant = mica__gemm_best(),
                                                               .a = a,
                                                               .b = b,
                                                               .m = m,
                                                               .n = n,
                                                               .k = k,
                                                               .out = c,
                                                               .scratch = scratch,
                                                               .epilogue = &epilogue});
            check_product(&a, &b, m, n, k, c);
            for (int64_t i = 0; i < m * n; i++) CHECK_INT(told[i], 1);
            free(x);
            free(y);
            free(c);
            free(told);
            free(scratch);
        }
}
