/* f32 matrix products: every variant that this CPU can run, and every path that calls it. A sum
 * over k is one chain of multiply-adds in order, so most results must equal, bit for bit, the chain
 * in this file. Only products of rows of both operands, which are computed as dot products, have a
 * tolerance. Buffers have exactly the size they need, so that a sanitizer reports a read or write
 * past the end.
 *
 * runs: arm, check */
#include <math.h>
#include <stdlib.h>

#include "kernels/matmul/gemm_accelerate.h"
#include "kernels/matmul/gemv.h"
#include "kernels/matmul/matmul.h"
#include "kernel_scratch.h"
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

/* Without fused multiply-adds the portable variant rounds twice. */
static bool is_fused(const mica__gemm_variant *v)
{
#if defined(__x86_64__)
    return v->needs != 0;
#else
    (void)v;
    return true;
#endif
}

static float element(const mica__gemm_view *v, int64_t k, int64_t i)
{
    return ((const float *)(const void *)v->data)[k * v->k_step + i * v->i_step];
}

static float chain(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t i,
                   int64_t j, int64_t k)
{
    float sum = 0;
    for (int64_t p = 0; p < k; p++) {
        const float x = element(a, p, i), y = element(b, p, j);
        if (is_fused(v)) {
            sum = fmaf(x, y, sum);
        } else {
            volatile float product = x * y; /* volatile, so that the compiler must round it */
            sum += product;
        }
    }
    return sum;
}

static bool same_bits(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

static void check_chains(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m,
                         int64_t n, int64_t k, const float *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const float want = chain(v, a, b, i, j, k);
            CHECK_MSG(same_bits(c[i * n + j], want), "(%lld, %lld): %.9g, not %.9g", (long long)i, (long long)j,
                      (double)c[i * n + j], (double)want);
        }
}

/* |error| <= (k + 2) eps sum |a||b|: every sum and product may round. */
static void check_close(const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n, int64_t k,
                        const float *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t p = 0; p < k; p++) {
                const double term = (double)element(a, p, i) * (double)element(b, p, j);
                sum += term;
                magnitude += fabs(term);
            }
            CHECK_MSG(fabs((double)c[i * n + j] - sum) <= (double)(k + 2) * 6e-8 * magnitude + 1e-30,
                      "(%lld, %lld): %g, not %g", (long long)i, (long long)j, (double)c[i * n + j], sum);
        }
}

/* a (m, k) and b (k, n) in one of four layouts: bit 0: a transposed, bit 1: b. */
typedef struct pair {
    float *x, *y;
    mica__gemm_view a, b;
} pair;

static pair pair_new(int64_t m, int64_t n, int64_t k, int layout)
{
    pair p = {random_floats((size_t)(m * k), 1), random_floats((size_t)(k * n), 2), {0}, {0}};
    p.a = (mica__gemm_view){(const char *)p.x, MICA_F32, layout & 1 ? m : 1, layout & 1 ? 1 : k};
    p.b = (mica__gemm_view){(const char *)p.y, MICA_F32, layout & 2 ? 1 : n, layout & 2 ? k : 1};
    return p;
}

static void pair_free(pair *p)
{
    free(p->x);
    free(p->y);
}

/* --------------------------------------------------------------- variants --- */

TEST(variants_in_place)
{
    size_t n_variant;
    const mica__gemm_variant *table = mica__gemm_variants(&n_variant);
    for (size_t v = 0; v < n_variant; v++)
        for (int64_t n = 1; n <= 70; n += n < 40 ? 1 : 7)
            for (int64_t m = 1; m <= 27; m += m < 17 ? 1 : 5) {
                const int64_t k = 1 + (n * 7 + m * 3) % 40;
                const int layout = (int)(m + n) % 2;
                test_case("%s: %lld x %lld x %lld, layout %d", table[v].name, (long long)m, (long long)k, (long long)n,
                          layout);
                pair p = pair_new(m, n, k, layout);
                float *c = malloc((size_t)(m * n) * sizeof *c);
                mica__gemm_direct(&table[v], &p.a, &p.b, 0, m, n, k, c);
                check_chains(&table[v], &p.a, &p.b, m, n, k, c);
                pair_free(&p);
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

TEST(variants_of_few_rows)
{
    size_t n_variant;
    const mica__gemm_variant *table = mica__gemm_variants(&n_variant);
    for (size_t v = 0; v < n_variant; v++)
        for (int64_t few = 1; few <= MICA__GEMM_FEW; few++)
            for (int layout = 0; layout < 3; layout += 2)
                for (int64_t n = 1; n <= 37; n += 4) {
                    const int64_t k = 1 + (n * 5 + few * 11) % 67;
                    test_case("%s: %lld x %lld x %lld, %s", table[v].name, (long long)few, (long long)k, (long long)n,
                              layout ? "dots" : "rows");
                    pair p = pair_new(few, n, k, layout);
                    float *c = malloc((size_t)(few * n) * sizeof *c);
                    const mica__gemv gemv = {&table[v], few, k, p.a, p.b, (char *)c, n, 1};
                    const bool dots = layout == 2 || n == 1; /* one column is always contiguous along k */
                    CHECK(mica__gemv_streams(&gemv) && mica__gemv_by_dots(&gemv) == dots);
                    mica__gemv_part(&gemv, 0, n / 2);
                    mica__gemv_part(&gemv, n / 2, n - n / 2);
                    if (dots) check_close(&p.a, &p.b, few, n, k, c);
                    else check_chains(&table[v], &p.a, &p.b, few, n, k, c);
                    pair_free(&p);
                    free(c);
                }
}

/* ---------------------------------------------------------------- packing --- */

TEST(packing)
{
    static const int widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 32};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int64_t depth = 0; depth <= 37; depth += depth < 6 ? 1 : 31)
            for (int layout = 0; layout < 4; layout++) {
                const int width = widths[w];
                const int64_t n = layout & 1 ? width : (width + 1) / 2;
                test_case("width %d, %lld of them, depth %lld, layout %d", width, (long long)n, (long long)depth,
                          layout);
                float *x = random_floats((size_t)(n * depth), 8);
                float *to = malloc(((size_t)(width * depth) + 1) * sizeof *to);
                const mica__gemm_view view = {(const char *)x, MICA_F32, layout & 2 ? 1 : n, layout & 2 ? depth : 1};
                mica__gemm_pack_view(&view, 0, depth, 0, n, width, to);
                for (int64_t k = 0; k < depth; k++)
                    for (int64_t i = 0; i < width; i++)
                        CHECK(same_bits(to[k * width + i], i < n ? element(&view, k, i) : 0.0f));
                free(x);
                free(to);
            }
}

/* ---------------------------------------------------------------- blocked --- */

static void count_elements(const mica__epilogue *epilogue, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) ((int *)(uintptr_t)epilogue->context)[i]++;
}

static void check_blocked(const mica__gemm_variant *v, mica__pool *pool, int64_t m, int64_t n, int64_t k, int layout,
                          bool prepacked)
{
    test_case("%s: %lld x %lld x %lld, layout %d%s%s", v->name, (long long)m, (long long)k, (long long)n, layout,
              prepacked ? ", prepacked" : "", pool ? ", threads" : "");
    pair p = pair_new(m, n, k, layout);
    float *c = malloc((size_t)(m * n) * sizeof *c), *packed = NULL;
    int *told = calloc((size_t)(m * n), sizeof *told);
    void *scratch = malloc(mica__gemm_scratch(&p.a, m, n, k) + 1);
    const mica__epilogue epilogue = {count_elements, told};
    if (prepacked) {
        packed = malloc(mica__gemm_packed_floats(v, n, k) * sizeof *packed);
        mica__gemm_pack_all(pool, v, &p.b, n, k, packed);
    }
    mica__gemm_blocked_run(pool, &(mica__gemm_blocked){.variant = v,
                                                       .a = p.a,
                                                       .b = p.b,
                                                       .packed = packed,
                                                       .m = m,
                                                       .n = n,
                                                       .k = k,
                                                       .out = c,
                                                       .scratch = prepacked ? NULL : scratch,
                                                       .epilogue = &epilogue});
    check_chains(v, &p.a, &p.b, m, n, k, c);
    for (int64_t i = 0; i < m * n; i++)
        if (told[i] != 1) {
            EXPECT_INT(told[i], 1);
            break;
        }
    pair_free(&p);
    free(c);
    free(packed);
    free(told);
    free(scratch);
}

/* Blocks of k (256), regions of rows (36, 288) and columns (64, 1024), rounds of
 * k (1024), edges of each, any layout, packed before or not. */
TEST(blocked)
{
    static const int64_t shape[][3] = {{1, 1, 1},      {5, 17, 3},     {9, 64, 256},   {37, 65, 257},
                                       {97, 130, 300}, {300, 33, 512}, {7, 1100, 300}, {290, 20, 1030}};
    size_t n_variant;
    const mica__gemm_variant *table = mica__gemm_variants(&n_variant);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
            for (int layout = 0; layout < 4; layout++)
                for (int prepacked = 0; prepacked < 2; prepacked++)
                    check_blocked(&table[v], NULL, shape[s][0], shape[s][1], shape[s][2], layout, prepacked != 0);
}

TEST(blocked_on_threads)
{
    const mica__gemm_variant *v = mica__gemm_best();
    for (int threads = 2; threads <= 5; threads += 3) {
        mica__pool *pool = NULL;
        CHECK(mica__pool_new(threads, &pool) == MICA_OK);
        for (int layout = 0; layout < 4; layout++)
            for (int prepacked = 0; prepacked < 2; prepacked++) {
                check_blocked(v, pool, 100, 300, 77, layout, prepacked != 0);
                check_blocked(v, pool, 300, 70, 260, layout, prepacked != 0);
                check_blocked(v, pool, 30, 200, 512, layout, prepacked != 0);
            }
        mica__pool_free(pool);
    }
}

/* ---------------------------------------------------------- whole products --- */

static mica__tensor tensor_of(const float *data, int64_t batch, int64_t rows, int64_t cols, bool transposed,
                              bool shared)
{
    mica__tensor t = {.data = (char *)(uintptr_t)data, .spec = {MICA_F32, 3, {batch, rows, cols}}};
    t.strides[0] = shared ? 0 : rows * cols;
    t.strides[1] = transposed ? 1 : cols;
    t.strides[2] = transposed ? rows : 1;
    return t;
}

static void check_matmul(mica__pool *pool, int64_t batch, int64_t m, int64_t n, int64_t k, int layout, bool shared)
{
    test_case("%lld times %lld x %lld x %lld, layout %d%s%s", (long long)batch, (long long)m, (long long)k,
              (long long)n, layout, shared ? ", b shared" : "", pool ? ", threads" : "");
    float *x = random_floats((size_t)(batch * m * k), 11), *y = random_floats((size_t)(batch * k * n), 12);
    float *c = malloc((size_t)(batch * m * n) * sizeof *c);
    int *told = calloc((size_t)(batch * m * n), sizeof *told);
    const mica__tensor in[2] = {tensor_of(x, batch, m, k, layout & 1, false),
                                tensor_of(y, batch, k, n, layout & 2, shared)};
    const mica__tensor out = tensor_of(c, batch, m, n, false, false);
    const size_t nbytes = mica__matmul_f32_workspace(in, &out.spec);
    void *scratch = nbytes ? malloc(nbytes) : NULL;
    const mica__epilogue epilogue = {count_elements, told};
    const mica__launch launch = {
        .in = in, .n_in = 2, .out = &out, .workspace = scratch, .pool = pool, .epilogue = &epilogue};
    mica__matmul_f32(&launch);
    const int64_t few = m < n ? m : n;
    const bool dots = few <= MICA__GEMM_FEW || mica__accelerate_sgemm(); /* possibly */
    for (int64_t b = 0; b < batch; b++) {
        const mica__gemm_view va = mica__matmul_view(&launch, 0, b), vb = mica__matmul_view(&launch, 1, b);
        if (dots) check_close(&va, &vb, m, n, k, c + b * m * n);
        else check_chains(mica__gemm_best(), &va, &vb, m, n, k, c + b * m * n);
    }
    for (int64_t i = 0; i < batch * m * n; i++)
        if (told[i] != 1) {
            EXPECT_INT(told[i], 1);
            break;
        }
    free(x);
    free(y);
    free(c);
    free(told);
    free(scratch);
}

TEST(every_way)
{
    static const int64_t shape[][3] = {{1, 1, 0},     {3, 5, 0},      {1, 300, 77},    {300, 1, 77},
                                       {2, 9, 300},   {4, 70, 1100},  {8, 40, 513},    {1, 20, 9000},
                                       {300, 7, 100}, {9, 9, 9},      {33, 33, 33},    {63, 65, 127},
                                       {65, 63, 100}, {100, 300, 77}, {37, 1030, 300}, {30, 512, 520}};
    mica__pool *pool = NULL;
    CHECK(mica__pool_new(3, &pool) == MICA_OK);
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int layout = 0; layout < 4; layout++) {
            check_matmul(NULL, 1, shape[s][0], shape[s][1], shape[s][2], layout, false);
            check_matmul(pool, 1, shape[s][0], shape[s][1], shape[s][2], layout, false);
        }
    for (int layout = 0; layout < 4; layout++) {
        check_matmul(pool, 7, 20, 30, 40, layout, false);
        check_matmul(pool, 3, 20, 30, 40, layout, true);
        check_matmul(pool, 2, 40, 80, 300, layout, true);
        check_matmul(pool, 12, 33, 17, 65, layout, false);
        check_matmul(pool, 5, 1, 100, 33, layout, true);
    }
    mica__pool_free(pool);
}

/* Values that are not finite affect only their row and column. */
TEST(not_finite)
{
    static const int64_t shape[][3] = {{2, 40, 50}, {20, 20, 20}, {50, 130, 300}};
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int layout = 0; layout < 4; layout++) {
            const int64_t m = shape[s][0], n = shape[s][1], k = shape[s][2];
            test_case("%lld x %lld x %lld, layout %d", (long long)m, (long long)k, (long long)n, layout);
            pair p = pair_new(m, n, k, layout);
            float *c = malloc((size_t)(m * n) * sizeof *c);
            p.x[p.a.k_step * (k - 1) + p.a.i_step * (m - 1)] = NAN;
            p.y[p.b.k_step * (k / 2) + p.b.i_step * (n - 1)] = INFINITY;
            const mica__tensor in[2] = {tensor_of(p.x, 1, m, k, layout & 1, false),
                                        tensor_of(p.y, 1, k, n, layout & 2, false)};
            const mica__tensor out = tensor_of(c, 1, m, n, false, false);
            const size_t nbytes = mica__matmul_f32_workspace(in, &out.spec);
            void *scratch = nbytes ? malloc(nbytes) : NULL;
            mica__matmul_f32(&(mica__launch){.in = in, .n_in = 2, .out = &out, .workspace = scratch});
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    const float got = c[i * n + j];
                    if (i == m - 1) CHECK(isnan(got));
                    else if (j == n - 1) CHECK(isinf(got));
                    else CHECK(isfinite(got));
                }
            pair_free(&p);
            free(c);
            free(scratch);
        }
}

/* -------------------------------------------------------------- Accelerate --- */

/* cblas_sgemm by its definition; counts its calls. */
static int sgemm_calls;
static void fake_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                       const float *b, int ldb, float beta, float *c, int ldc)
{
    sgemm_calls++;
    EXPECT(order == 101 && (trans_a == 111 || trans_a == 112) && (trans_b == 111 || trans_b == 112));
    EXPECT(lda >= (trans_a == 111 ? k : m) && ldb >= (trans_b == 111 ? n : k) && ldc >= n && beta == 0.0f);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += (trans_a == 111 ? a[i * lda + p] : a[p * lda + i]) *
                       (trans_b == 111 ? b[p * ldb + j] : b[j * ldb + p]);
            c[i * ldc + j] = alpha * sum;
        }
}

TEST(sgemm_of_another_library)
{
    for (int layout = 0; layout < 4; layout++) {
        const int64_t m = 70, n = 90, k = 61;
        test_case("layout %d", layout);
        pair p = pair_new(m, n, k, layout);
        float *c = malloc((size_t)(m * n) * sizeof *c);
        sgemm_calls = 0;
        CHECK(mica__gemm_by_sgemm(fake_sgemm, &p.a, &p.b, m, n, k, c));
        CHECK_INT(sgemm_calls, 1);
        check_close(&p.a, &p.b, m, n, k, c);
        /* a part of the rows and of the sum: strides are larger than the sizes */
        CHECK(mica__gemm_by_sgemm(fake_sgemm, &p.a, &p.b, m - 2, n, k - 3, c));
        check_close(&p.a, &p.b, m - 2, n, k - 3, c);
        /* too small; no function; columns and rows with gaps, negative or zero strides */
        CHECK(!mica__gemm_by_sgemm(fake_sgemm, &p.a, &p.b, 5, 5, 5, c));
        CHECK(!mica__gemm_by_sgemm(NULL, &p.a, &p.b, m, n, k, c));
        mica__gemm_view gaps = p.a, back = p.b, again = p.b;
        gaps.i_step *= 2;
        gaps.k_step *= 2;
        back.k_step = -back.k_step;
        again.i_step = 0;
        CHECK(!mica__gemm_by_sgemm(fake_sgemm, &gaps, &p.b, m, n, k, c)); /* refused before it is read */
        CHECK(!mica__gemm_by_sgemm(fake_sgemm, &p.a, &back, m, n, k, c));
        CHECK(!mica__gemm_by_sgemm(fake_sgemm, &p.a, &again, m, n, k, c));
        CHECK_INT(sgemm_calls, 2);
        pair_free(&p);
        free(c);
    }
}

/* f16 operands in any layout are widened: the same as the f32 product of their values. */
TEST(sgemm_of_widened_operands)
{
    static const mica_dtype result[] = {MICA_F32, MICA_F16, MICA_BF16};
    const int64_t m = 70, n = 90, k = 61;
    for (int layout = 0; layout < 4; layout++)
        for (int r = 0; r < 3; r++) {
            const mica_dtype out = result[r];
            test_case("layout %d, result %s", layout, mica_dtype_name(out));
            pair p = pair_new(m, n, k, layout);
            char *half_a = malloc((size_t)(m * k) * 2), *half_b = malloc((size_t)(k * n) * 2);
            mica__store_f32(MICA_F16, m * k, half_a, 1, p.x);
            mica__store_f32(MICA_BF16, k * n, half_b, 1, p.y);
            mica__load_f32(MICA_F16, m * k, p.x, half_a, 1);
            mica__load_f32(MICA_BF16, k * n, p.y, half_b, 1);
            mica__gemm_view a = p.a, b = p.b;
            a.data = half_a;
            a.dtype = MICA_F16;
            b.data = half_b;
            b.dtype = MICA_BF16;
            const size_t nbytes = mica__sgemm_scratch(out, m, n, k);
            CHECK(nbytes == (size_t)((m + n) * k + (out == MICA_F32 ? 0 : m * n)) * sizeof(float));
            void *scratch = malloc(nbytes);
            char *c = malloc((size_t)(m * n) * mica_dtype_size(out));
            sgemm_calls = 0;
            mica__gemm_by_wide_sgemm(fake_sgemm, NULL, &a, &b, m, n, k, c, out, scratch);
            CHECK_INT(sgemm_calls, 1);
            float *sums = malloc((size_t)(m * n) * sizeof *sums), *got = malloc((size_t)(m * n) * sizeof *got);
            CHECK(mica__gemm_by_sgemm(fake_sgemm, &p.a, &p.b, m, n, k, sums));
            check_close(&p.a, &p.b, m, n, k, sums);
            mica__load_f32(out, m * n, got, c, 1);
            for (int64_t i = 0; i < m * n; i++) {
                const double unit = out == MICA_F32 ? 0 : out == MICA_F16 ? 0x1p-11 : 0x1p-8;
                EXPECT(fabs((double)got[i] - (double)sums[i]) <= unit * fabs((double)sums[i]) + 1e-7);
            }
            free(half_a);
            free(half_b);
            free(scratch);
            free(c);
            free(sums);
            free(got);
            pair_free(&p);
        }
    CHECK(mica__sgemm_scratch(MICA_F16, 5, 5, 5) == 0);
    CHECK(mica__sgemm_scratch(MICA_F16, INT32_MAX, INT32_MAX, INT32_MAX) == 0);
}
