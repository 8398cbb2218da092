/* Row kernels against sums in long double: every variant that this CPU can run, and the code for
 * 64-byte vectors compiled without the flags of a CPU that has them. Memory has exactly the size it
 * needs, so that a sanitizer reports a read or write past the end.
 *
 * runs: arm, first, wide-vectors */
#define SIMD_BYTES 64
#define ROWS_NAME(kind) mica__rows_##kind##_test
#include "kernels/rows/rows.h"
mica__rows_kernel mica__rows_softmax_test, mica__rows_log_softmax_test, mica__rows_logsumexp_test,
    mica__rows_layer_norm_test, mica__rows_rms_norm_test;
#include "kernels/rows/rows_body.inc"
#include "kernels_util.h"

static const char *const kind_names[] = {"softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm"};

enum { MOST_VARIANTS = 8 };

static size_t all_variants(mica__rows_variant *table)
{
    static const mica__rows_variant wide = {"64 bytes",
                                            0,
                                            {mica__rows_softmax_test, mica__rows_log_softmax_test,
                                             mica__rows_logsumexp_test, mica__rows_layer_norm_test,
                                             mica__rows_rms_norm_test}};
    size_t n;
    const mica__rows_variant *own = mica__rows_variants(&n);
    for (size_t i = 0; i < n && i + 1 < MOST_VARIANTS; i++) table[i] = own[i];
    table[n] = wide;
    return n + 1;
}

/* ------------------------------------------------------------------ oracle -- */

/* Computes the results of a row x and their tolerances. */
static void oracle(mica__row_kind kind, const double *x, int64_t n, double eps, long double *y, double *atol,
                   double *rtol)
{
    long double top = -INFINITY, sum = 0, mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((long double)x[i] > top) top = x[i];
        mean += (long double)x[i] / (long double)n;
    }
    if (kind == MICA__ROW_RMS_NORM) mean = 0;
    for (int64_t i = 0; i < n; i++) {
        const long double d = (long double)x[i] - mean;
        squares += d * d / (long double)n;
        sum += expl((long double)x[i] - top);
    }
    const long double root = sqrtl(squares + (long double)eps);
    for (int64_t i = 0; i < (kind == MICA__ROW_LOGSUMEXP ? 1 : n); i++) {
        const double away = (double)(top - (long double)x[i]);
        atol[i] = 0;
        switch (kind) {
        case MICA__ROW_SOFTMAX:
            y[i] = expl((long double)x[i] - top) / sum;
            /* the difference is rounded before exp; results below 1e-38 may be 0 */
            rtol[i] = 1.2e-6 + (isfinite(away) ? 7e-8 * away : 0);
            atol[i] = 2e-38;
            break;
        case MICA__ROW_LOG_SOFTMAX:
            y[i] = ((long double)x[i] - top) - logl(sum);
            rtol[i] = 2e-7;
            atol[i] = 4e-7 + 2e-7 * (double)fabsl(logl(sum)) + (isfinite(away) ? 7e-8 * away : 0);
            break;
        case MICA__ROW_LOGSUMEXP:
            y[i] = logl(sum) + top;
            rtol[i] = 2e-7;
            atol[i] = 3e-7;
            break;
        default:
            y[i] = ((long double)x[i] - mean) / root;
            rtol[i] = 1e-6;
            /* the effect of one ulp of the inputs */
            atol[i] = 1e-6 + 6e-8 * (double)(fabsl(mean) / root) * 0x1p-10;
            break;
        }
    }
}

static void expect_rows(mica__row_kind kind, const mica__rows *r, const char *x, int64_t x_row, const char *y,
                        int64_t count)
{
    const int64_t n = r->n, per_row = kind == MICA__ROW_LOGSUMEXP ? 1 : n;
    double *row = malloc((size_t)(n + 1) * sizeof *row), *atol = malloc((size_t)(n + 1) * sizeof *atol),
           *rtol = malloc((size_t)(n + 1) * sizeof *rtol);
    long double *want = malloc((size_t)(n + 1) * sizeof *want);
    if (!row || !atol || !rtol || !want) abort();
    /* one rounding to the dtype of the result */
    const double step = r->out == MICA_F32 ? 0 : r->out == MICA_F16 ? 0x1p-11 : 0x1p-8;
    for (int64_t k = 0; k < count; k++) {
        for (int64_t i = 0; i < n; i++) row[i] = mica__get_f64(r->in, x + k * x_row, i * r->step);
        oracle(kind, row, n, r->eps, want, atol, rtol);
        for (int64_t i = 0; i < per_row; i++) {
            const double got = mica__get_f64(r->out, y, k * per_row + i);
            const double small = r->out == MICA_F16 ? 0x1p-25 : 0;
            const bool ok =
                (got != got && want[i] != want[i]) || test_close(got, (double)want[i], rtol[i] + step, atol[i] + small);
            if (!EXPECT_MSG(ok, "row %lld, element %lld: %.9g, not %.9Lg", (long long)k, (long long)i, got, want[i]))
                goto done;
        }
    }
done:
    free(row);
    free(atol);
    free(rtol);
    free(want);
}

/* --------------------------------------------------------------- any shape -- */

static char *result_memory(int64_t count, int64_t per_row, mica_dtype dtype, size_t *nbytes)
{
    void *y = NULL;
    *nbytes = (size_t)(count * per_row) * mica_dtype_size(dtype);
    if (posix_memalign(&y, 64, *nbytes ? *nbytes : 1)) abort();
    memset(y, 0x5a, *nbytes);
    return y;
}

static void check_kind(const mica__rows_variant *v, mica__row_kind kind, mica__rows r, const char *x, int64_t x_row,
                       int64_t count)
{
    size_t nbytes, again_bytes;
    const int64_t per_row = kind == MICA__ROW_LOGSUMEXP ? 1 : r.n;
    char *y = result_memory(count, per_row, r.out, &nbytes),
         *again = result_memory(count, per_row, r.out, &again_bytes);
    test_case("%s %s: %lld rows of %lld, %s, step %lld", v->name, kind_names[kind], (long long)count, (long long)r.n,
              mica_dtype_name(r.in), (long long)r.step);
    v->kernel[kind](&r, x, x_row, y, count);
    expect_rows(kind, &r, x, x_row, y, count);
    /* with streaming stores, and one row at a time: the same bits */
    r.stream = kind != MICA__ROW_LOGSUMEXP && mica__rows_can_stream(&r, again);
    v->kernel[kind](&r, x, x_row, again, count);
    (void)EXPECT_MSG(memcmp(y, again, nbytes) == 0, "streamed, other bits");
    r.stream = false;
    memset(again, 0x5a, nbytes);
    for (int64_t k = 0; k < count; k++)
        v->kernel[kind](&r, x + k * x_row, x_row, again + k * per_row * (int64_t)mica_dtype_size(r.out), 1);
    (void)EXPECT_MSG(memcmp(y, again, nbytes) == 0, "row by row, other bits");
    free(y);
    free(again);
}

/* Random rows in memory of exactly their size. */
static char *random_rows(mica_dtype dtype, int64_t n, int64_t step, int64_t count, double spread)
{
    const int64_t reach = count * ((n - 1) * step + 1);
    char *x = malloc((size_t)(reach > 0 ? reach : 1) * mica_dtype_size(dtype));
    if (!x) abort();
    for (int64_t i = 0; i < reach; i++) mica__set_f64(dtype, x, i, util_real(-spread, spread));
    return x;
}

TEST(sizes)
{
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 8192, 8209};
    mica__rows_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int t = 0; t < 3; t++)
                for (int64_t step = 1; step < 4; step += 2) {
                    const int64_t n = sizes[i], count = 1 + (int64_t)i % 3,
                                  size = (int64_t)mica_dtype_size(util_floats[t]);
                    char *x = random_rows(util_floats[t], n, step, count, 6);
                    const mica__rows r = {
                        .n = n, .in = util_floats[t], .out = util_floats[t], .step = step, .eps = 1e-5};
                    for (int kind = 0; kind < MICA__ROW_KINDS; kind++)
                        check_kind(&table[v], (mica__row_kind)kind, r, x, ((n - 1) * step + 1) * size, count);
                    free(x);
                }
}

/* Rows longer than the buffer are processed in pieces. */
TEST(long_rows)
{
    static const int64_t sizes[] = {MICA__ROW_PIECE, MICA__ROW_PIECE + 1, 100003};
    mica__rows_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (int i = 0; i < 3; i++)
            for (int t = 0; t < 3; t++) {
                char *x = random_rows(util_floats[t], sizes[i], 1, 2, 3);
                /* the maximum comes late, after only -inf, or is so large that it is subtracted first */
                const int64_t n = sizes[i];
                mica__set_f64(util_floats[t], x, n - 2, 20);
                mica__set_f64(util_floats[t], x, n + n - 3, 60000);
                const mica__rows r = {.n = n, .in = util_floats[t], .out = util_floats[t], .step = 1, .eps = 1e-5};
                for (int kind = 0; kind < MICA__ROW_KINDS; kind++)
                    check_kind(&table[v], (mica__row_kind)kind, r, x, n * (int64_t)mica_dtype_size(r.in), 2);
                for (int64_t k = 0; k < MICA__ROW_PIECE && n > MICA__ROW_PIECE; k++)
                    mica__set_f64(util_floats[t], x, k, -INFINITY);
                for (int kind = 0; kind < MICA__ROW_LAYER_NORM; kind++)
                    check_kind(&table[v], (mica__row_kind)kind, r, x, n * (int64_t)mica_dtype_size(r.in), 1);
                free(x);
            }
}

/* ----------------------------------------------------------- special rows --- */

typedef struct special_row {
    const char *name;
    double (*value)(int64_t i);
} special_row;

static double row_equal(int64_t i) { return i < 0 ? 0 : 3.7f; }
static double row_offset(int64_t i) { return 10000.0 + (double)(i * i % 11) / 16; }
static double row_two_steps(int64_t i) { return i % 2 ? 1.0 : 1.0 + 0x1p-23; }
static double row_below_two(int64_t i) { return i % 3 ? 2.0 : 2.0 - 0x1p-23; }
static double row_outlier(int64_t i) { return i == 0 ? 1e4 : (double)(i % 7) - 3; } /* a bad first estimate */
static double row_outliers(int64_t i) { return i < 16 ? -3e3 : (double)(i % 7); }
static double row_large(int64_t i) { return i % 3 ? 1000.0 + (double)(i % 5) : -1000.0; }
static double row_larger(int64_t i) { return 2e4 + (double)(i % 9); }
static double row_huge(int64_t i) { return i % 2 ? -1e30 : 1e30; }
static double row_far_apart(int64_t i) { return -(double)i; } /* exp underflows at -87 */
static double row_masked(int64_t i) { return i % 2 ? -INFINITY : (double)(i % 5); }
static double row_nothing(int64_t i) { return i < 0 ? 0 : -INFINITY; }
static double row_infinite(int64_t i) { return i == 3 ? INFINITY : 1.0; }
static double row_nan(int64_t i) { return i == 5 ? NAN : 1.0; }
static double row_nan_below(int64_t i) { return i == 5 ? NAN : -INFINITY; }
static double row_nan_infinite(int64_t i) { return i == 5 ? NAN : i == 2 ? INFINITY : 0.0; }

TEST(special_rows)
{
    static const special_row rows[] = {
        {"equal", row_equal},         {"offset", row_offset},
        {"two steps", row_two_steps}, {"below two", row_below_two},
        {"outlier", row_outlier},     {"outliers", row_outliers},
        {"large", row_large},         {"larger", row_larger},
        {"huge", row_huge},           {"far apart", row_far_apart},
        {"masked", row_masked},       {"nothing", row_nothing},
        {"infinite", row_infinite},   {"nan", row_nan},
        {"nan below", row_nan_below}, {"nan infinite", row_nan_infinite},
    };
    mica__rows_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (int64_t n = 7; n < 400; n = 3 * n + 11) {
                float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
                if (!x || !y) abort();
                for (int64_t k = 0; k < n; k++) x[k] = (float)rows[i].value(k);
                for (int kind = 0; kind < MICA__ROW_KINDS; kind++) {
                    /* f32 squares overflow, as norm.h documents */
                    if (rows[i].value == row_huge && kind >= MICA__ROW_LAYER_NORM) continue;
                    mica__rows r = {.n = n, .in = MICA_F32, .out = MICA_F32, .step = 1, .eps = 1e-12};
                    test_case("%s %s: %s, %lld", table[v].name, kind_names[kind], rows[i].name, (long long)n);
                    table[v].kernel[kind](&r, (const char *)x, n * 4, (char *)y, 1);
                    if (kind == MICA__ROW_LOGSUMEXP && rows[i].value == row_nothing) CHECK(y[0] == -INFINITY);
                    else if (kind == MICA__ROW_LOGSUMEXP && rows[i].value == row_infinite) CHECK(y[0] == INFINITY);
                    else expect_rows((mica__row_kind)kind, &r, (const char *)x, n * 4, (const char *)y, 1);
                    if (kind == MICA__ROW_SOFTMAX && rows[i].value == row_masked) CHECK(y[1] == 0.0f && y[2] > 0.0f);
                }
                free(x);
                free(y);
            }
}

/* A NaN may have any sign and payload, and must stay a NaN. */
TEST(nan_payloads)
{
    static const uint32_t patterns[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff812345u, 0x7fffffffu, 0xffffffffu};
    mica__rows_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
            for (int kind = 0; kind < MICA__ROW_KINDS; kind++)
                for (int64_t at = 0; at < 37; at += 6) {
                    float x[37], y[37];
                    for (int64_t k = 0; k < 37; k++) x[k] = (float)(k % 5);
                    memcpy(&x[at], &patterns[i], sizeof *x);
                    test_case("%s %s: %08x at %lld", table[v].name, kind_names[kind], patterns[i], (long long)at);
                    const mica__rows r = {.n = 37, .in = MICA_F32, .out = MICA_F32, .step = 1, .eps = 1e-5};
                    table[v].kernel[kind](&r, (const char *)x, sizeof x, (char *)y, 1);
                    for (int64_t k = 0; k < (kind == MICA__ROW_LOGSUMEXP ? 1 : 37); k++) CHECK(y[k] != y[k]);
                }
}

/* -------------------------------------------------------- weights and bias -- */

static float rounded(mica_dtype dtype, float x)
{
    return dtype == MICA_F16    ? mica_f16_to_f32(mica_f16_from_f32(x))
           : dtype == MICA_BF16 ? mica_bf16_to_f32(mica_bf16_from_f32(x))
                                : x;
}

/* Fused weight and bias give the same bits as the norm followed by a separately rounded product and sum. */
TEST(weights_are_ops)
{
    static const int64_t sizes[] = {1, 5, 16, 100, 1024, 1027, MICA__ROW_PIECE + 5};
    mica__rows_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int way = 0; way < 2 * 3 * 3 * 2; way++) {
                const mica__row_kind kind = way % 2 ? MICA__ROW_RMS_NORM : MICA__ROW_LAYER_NORM;
                const mica_dtype weights = util_floats[way / 2 % 3], out = util_floats[way / 6 % 3];
                const bool shift = way / 18 != 0;
                const int64_t n = sizes[i], count = 3;
                test_case("%s %s of %lld: weights %s, result %s%s", table[v].name, kind_names[kind], (long long)n,
                          mica_dtype_name(weights), mica_dtype_name(out), shift ? ", bias" : "");
                char *x = random_rows(MICA_F32, n, 1, count, 4), *w = random_rows(weights, n, 1, 1, 2),
                     *b = random_rows(weights, n, 1, 1, 2);
                mica__rows r = {.n = n, .in = MICA_F32, .out = MICA_F32, .step = 1, .eps = 1e-5};
                size_t plain_bytes, nbytes;
                float *plain = (float *)(void *)result_memory(count, n, MICA_F32, &plain_bytes);
                char *y = result_memory(count, n, out, &nbytes);
                table[v].kernel[kind](&r, x, n * 4, (char *)plain, count);
                r.out = out;
                r.affine.scale = (mica__affine_term){w, weights};
                if (shift) r.affine.shift = (mica__affine_term){b, weights};
                r.stream = mica__rows_can_stream(&r, y);
                table[v].kernel[kind](&r, x, n * 4, y, count);
                for (int64_t k = 0; k < count * n; k++) {
                    volatile float value = plain[k] * (float)mica__get_f64(weights, w, k % n);
                    if (shift) value = value + (float)mica__get_f64(weights, b, k % n);
                    const double got = mica__get_f64(out, y, k), want = (double)rounded(out, value);
                    if (!EXPECT_MSG(got == want, "element %lld: %.9g, not %.9g", (long long)k, got, want)) break;
                }
                free(x);
                free(w);
                free(b);
                free(plain);
                free(y);
            }
}

/* ------------------------------------------------------------------ halves -- */

TEST(halves_to_floats)
{
    uint16_t in[SIMD_LANES];
    float f16[SIMD_LANES], bf16[SIMD_LANES];
    for (uint32_t bits = 0; bits < 0x10000; bits += SIMD_LANES) {
        for (int i = 0; i < SIMD_LANES; i++) in[i] = (uint16_t)(bits + (uint32_t)i);
        vf_store(f16, vf_from_f16(in));
        vf_store(bf16, vf_from_bf16(in));
        for (int i = 0; i < SIMD_LANES; i++) {
            const float a = mica_f16_to_f32(in[i]), b = mica_bf16_to_f32(in[i]);
            CHECK_MSG(memcmp(&a, &f16[i], 4) == 0 && memcmp(&b, &bf16[i], 4) == 0, "%04x: %g %g", in[i], (double)f16[i],
                      (double)bf16[i]);
        }
    }
}

TEST(floats_to_halves)
{
    float in[SIMD_LANES];
    uint16_t f16[SIMD_LANES], bf16[SIMD_LANES];
    /* every exponent and sign, and the neighbourhood of every tie */
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += SIMD_LANES * 1021) {
        for (int i = 0; i < SIMD_LANES; i++) {
            uint32_t one = (uint32_t)bits + (uint32_t)i * 1021u;
            if (i % 4 == 0) one = (one & 0xfffff000u) + (uint32_t)i / 4 - 1;
            memcpy(&in[i], &one, sizeof one);
        }
        vf_to_f16(f16, vf_load(in));
        vf_to_bf16(bf16, vf_load(in));
        for (int i = 0; i < SIMD_LANES; i++)
            CHECK_MSG(f16[i] == mica_f16_from_f32(in[i]) && bf16[i] == mica_bf16_from_f32(in[i]), "%a: %04x %04x",
                      (double)in[i], f16[i], bf16[i]);
    }
}
