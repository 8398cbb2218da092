/* Products of narrow operands: every variant that this CPU can run, in every layout and pair of
 * dtypes. Integers must be exact for all values; floats are compared with sums in double. Buffers
 * have exactly the size they need, so that a sanitizer reports a read or write past the end.
 *
 * runs: arm */
#include "base/cpu.h"
#include "gemm_dot_check.h"

/* Edges of tiles, of a block of rows (96), of columns (1024), of k (128 ... 1024). */
static const int64_t dot_shapes[][3] = {{1, 1, 1},     {4, 8, 16},    {5, 7, 9},    {13, 131, 33}, {97, 70, 50},
                                        {8, 1030, 32}, {7, 2100, 19}, {3, 5, 1029}, {100, 17, 40}};

TEST(integers_are_exact)
{
    size_t n;
    const mica__dot_variant *v = mica__dot_variants(&n);
    for (size_t i = 0; i < n; i++)
        if (v[i].kind == MICA__DOT_INT && (v[i].needs & ~mica__cpu_features()) == 0)
            for (size_t s = 0; s < COUNT_OF(dot_shapes); s++) check_int_variant(&v[i], dot_shapes[s]);
}

/* The extremes of both dtypes in all combinations, and mixed with other values. */
TEST(extreme_integers_are_exact)
{
    size_t n;
    const mica__dot_variant *v = mica__dot_variants(&n);
    for (size_t i = 0; i < n; i++)
        if (v[i].kind == MICA__DOT_INT && (v[i].needs & ~mica__cpu_features()) == 0) check_int_extremes(&v[i]);
}

TEST(floats_are_close)
{
    size_t n;
    const mica__dot_variant *v = mica__dot_variants(&n);
    for (size_t i = 0; i < n; i++)
        if (v[i].kind != MICA__DOT_INT && (v[i].needs & ~mica__cpu_features()) == 0)
            for (size_t s = 0; s < COUNT_OF(dot_shapes); s++) check_float_variant(&v[i], dot_shapes[s]);
}

/* More rows than the scratch holds sums for at once (768). */
TEST(many_rows)
{
    const int64_t shape[3] = {800, 300, 20};
    check_int_variant(mica__dot_best(MICA__DOT_INT), shape);
    check_float_variant(mica__dot_best(MICA__DOT_HALF), shape);
}

/* The same bits for any number of threads. */
TEST(threads)
{
    const int64_t m = 210, k = 600, n = 300;
    mica__pool *pool;
    CHECK(mica__pool_new(3, &pool) == MICA_OK);
    static const mica_dtype dtypes[][2] = {{MICA_I8, MICA_I32}, {MICA_BF16, MICA_BF16}, {MICA_F16, MICA_F32}};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        const mica_dtype in = dtypes[d][0], out = dtypes[d][1];
        const size_t bytes = (size_t)(m * n) * mica_dtype_size(out);
        char *a = random_elements(in, m * k, 1), *b = random_elements(in, k * n, 2), *one = malloc(bytes),
             *many = malloc(bytes);
        const mica__dot_variant *v = mica__dot_best(in == MICA_I8 ? MICA__DOT_INT : MICA__DOT_HALF);
        mica__dot_product p = {.v = v, .lines = mica__lines_best(), .m = m, .n = n, .k = k, .dtype = out};
        p.a = (mica__gemm_view){a, in, 1, k};
        p.b = (mica__gemm_view){b, in, n, 1};
        void *scratch = malloc(mica__dot_scratch(v, out, m, n));
        p.out = one;
        mica__dot_run(NULL, &p, scratch);
        p.out = many;
        mica__dot_run(pool, &p, scratch);
        EXPECT_MSG(memcmp(one, many, bytes) == 0, "%s differs between 1 and 3 threads", mica_dtype_name(in));
        free(a);
        free(b);
        free(one);
        free(many);
        free(scratch);
    }
    mica__pool_free(pool);
}

/* ------------------------------------------------------------------- lines --- */

/* Widens every f16 and bf16, and narrows floats around each of them. */
TEST(lines_convert_every_half)
{
    size_t n;
    const mica__lines *lines = mica__lines_variants(&n);
    static const mica_dtype halves[] = {MICA_F16, MICA_BF16};
    uint16_t *half = malloc(65536 * sizeof *half), *got = malloc(65536 * sizeof *got),
             *want = malloc(65536 * sizeof *want);
    float *wide = malloc(65536 * sizeof *wide), *same = malloc(65536 * sizeof *same);
    for (uint32_t i = 0; i < 65536; i++) half[i] = (uint16_t)i;
    for (size_t v = 0; v < n; v++)
        for (size_t d = 0; d < 2 && (lines[v].needs & ~mica__cpu_features()) == 0; d++) {
            test_case("%s of %s", lines[v].name, mica_dtype_name(halves[d]));
            lines[v].widen(halves[d], 65536, (const char *)half, wide);
            mica__load_f32(halves[d], 65536, same, (const char *)half, 1);
            EXPECT(memcmp(wide, same, 65536 * sizeof *wide) == 0);
            for (int nudge = -2; nudge <= 2; nudge++) {
                for (uint32_t i = 0; i < 65536; i++) {
                    uint32_t bits;
                    memcpy(&bits, &same[i], sizeof bits);
                    bits += (uint32_t)(nudge * 0x800);
                    memcpy(&wide[i], &bits, sizeof bits);
                }
                lines[v].narrow(halves[d], 65536, wide, (char *)got);
                mica__store_f32(halves[d], 65536, (char *)want, 1, wide);
                EXPECT_MSG(memcmp(got, want, 65536 * sizeof *got) == 0, "nudged by %d", nudge);
            }
        }
    free(half);
    free(got);
    free(want);
    free(wide);
    free(same);
}

TEST(lines_multiply)
{
    size_t n;
    const mica__lines *lines = mica__lines_variants(&n);
    for (size_t v = 0; v < n; v++)
        if ((lines[v].needs & ~mica__cpu_features()) == 0) {
            check_lines(&lines[v]);
            check_mixed_bytes(&lines[v]);
        }
}
