/* Random numbers through the public calls: the same bits on every backend and for any number of
 * threads, each value a function of seed and index only, ranges, moments and frequencies. Seeds are
 * fixed: a test that passes once passes always. Statistical bounds are five standard deviations.
 *
 * runs: arm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica.h"
#include "test.h"

static mica_engine *open_engine(const char *backend, int threads)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = backend;
    options.threads = threads;
    mica_engine *e = NULL;
    if (mica_open(&options, &e) != MICA_OK) test_fail(__FILE__, __LINE__, "%s", mica_last_error());
    return e;
}

/* ------------------------------------------------------- distributions ---- */

typedef mica_array *(*maker)(mica_scope *s, mica_dtype dtype, int64_t n, uint64_t seed);

static mica_array *make_uniform(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_random_uniform(s, d, 1, &n, -1.5, 2.5, seed);
}
static mica_array *make_normal(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_random_normal(s, d, 1, &n, seed);
}
static mica_array *make_truncated(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_random_truncated_normal(s, d, 1, &n, -1, 2, seed);
}
static mica_array *make_tail(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_random_truncated_normal(s, d, 1, &n, 3, 4, seed);
}
static mica_array *make_far(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_random_truncated_normal(s, d, 1, &n, 30, 31, seed);
}
static mica_array *make_far_below(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_random_truncated_normal(s, d, 1, &n, -INFINITY, -8, seed);
}
static mica_array *make_bernoulli(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_cast(s, mica_random_bernoulli(s, 1, &n, 0.3, seed), d);
}
static mica_array *make_randint(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    return mica_cast(s, mica_random_randint(s, MICA_I32, 1, &n, -5, 12, seed), d);
}
static mica_array *make_bits32(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    (void)d;
    return mica_random_bits(s, MICA_U32, 1, &n, seed);
}
static mica_array *make_bits64(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    (void)d;
    return mica_random_bits(s, MICA_U64, 1, &n, seed);
}
static mica_array *make_permutation(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    (void)d;
    return mica_random_permutation(s, n, seed);
}
/* n draws of one row of logits */
static mica_array *make_categorical(mica_scope *s, mica_dtype d, int64_t n, uint64_t seed)
{
    const float logits[] = {0, 1, -2, 0.5f, -INFINITY};
    mica_array *row = mica_cast(s, mica_from_data(s, MICA_F32, 1, (int64_t[]){5}, logits), d);
    return mica_random_categorical(s, mica_broadcast_to(s, row, 2, (int64_t[]){n, 5}), seed);
}

/* Mean, variance and range of the distribution; no moments if another test checks
 * them. */
static const struct {
    const char *name;
    maker make;
    bool has_moments;
    double mean, variance, low, high;
    bool open;                   /* high itself does not occur           */
} distributions[] = {
    {"uniform", make_uniform, true, 0.5, 16.0 / 12, -1.5, 2.5, true},
    {"normal", make_normal, true, 0, 1, -7, 7, false},
    /* mean (phi(a) - phi(b)) / Z, variance 1 + (a phi(a) - b phi(b)) / Z - mean^2, Z = Phi(b) - Phi(a) */
    {"truncated normal", make_truncated, true, 0.2296372, 0.5197625, -1, 2, false},
    {"truncated normal, a tail", make_tail, true, 3.2604543, 0.0492778, 3, 4, false},
    {"bernoulli", make_bernoulli, true, 0.3, 0.21, 0, 1, false},
    {"randint", make_randint, true, 3, 24, -5, 11, false},
    {"bits, u32", make_bits32, false, 0, 0, 0, 0x1p32, true},
    {"bits, u64", make_bits64, false, 0, 0, 0, 0x1p64, false},
    {"permutation", make_permutation, false, 0, 0, 0, 1e9, false},
    {"categorical", make_categorical, false, 0, 0, 0, 3, false},
    {"truncated normal, far", make_far, false, 0, 0, 30, 31, false},
    {"truncated normal, far below", make_far_below, false, 0, 0, -12, -8, false},
};
enum { N_DIST = sizeof distributions / sizeof distributions[0] };

/* The bytes of n values; malloc. */
static char *draw(mica_engine *e, int dist, mica_dtype dtype, int64_t n, uint64_t seed, size_t *nbytes)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = distributions[dist].make(s, dtype, n, seed);
    char *bytes = NULL;
    if (mica_eval(s, &x, 1) == MICA_OK) {
        *nbytes = mica_array_nbytes(x);
        bytes = malloc(*nbytes + 1);
        if (bytes && mica_copy_out(x, bytes, *nbytes) != MICA_OK) free(bytes), bytes = NULL;
    }
    if (!bytes) test_fail(__FILE__, __LINE__, "%s", mica_last_error());
    mica_scope_end(s);
    return bytes;
}

/* The same as doubles. */
static double *draw_f64(mica_engine *e, int dist, mica_dtype dtype, int64_t n, uint64_t seed)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_cast(s, distributions[dist].make(s, dtype, n, seed), MICA_F64);
    double *values = malloc((size_t)n * sizeof *values + 1);
    if (!values || mica_eval(s, &x, 1) != MICA_OK || mica_copy_out(x, values, (size_t)n * sizeof *values) != MICA_OK) {
        test_fail(__FILE__, __LINE__, "%s", mica_last_error());
        free(values);
        values = NULL;
    }
    mica_scope_end(s);
    return values;
}

/* ------------------------------------------------------ the same bits ----- */

TEST(same_bits_on_all_engines)
{
    mica_engine *engines[] = {open_engine("ref", 1), open_engine("cpu", 1), open_engine("cpu", 2),
                              open_engine("cpu", 8)};
    static const char *const names[] = {"ref", "cpu, 1 thread", "cpu, 2 threads", "cpu, 8 threads"};
    const int64_t n = 40001; /* enough to be split into tasks */
    for (int dist = 0; dist < N_DIST; dist++)
        for (int d = MICA_F16; d <= MICA_F64; d++) {
            test_case("%s %s", distributions[dist].name, mica_dtype_name((mica_dtype)d));
            size_t want_bytes = 0, got_bytes = 0;
            char *want = draw(engines[0], dist, (mica_dtype)d, n, 77, &want_bytes);
            for (int i = 1; i < 4 && want; i++) {
                char *got = draw(engines[i], dist, (mica_dtype)d, n, 77, &got_bytes);
                if (!got || got_bytes != want_bytes || memcmp(got, want, want_bytes) != 0)
                    test_fail(__FILE__, __LINE__, "%s differs from ref", names[i]);
                free(got);
            }
            free(want);
        }
    for (int i = 0; i < 4; i++) mica_close(engines[i]);
}

/* A shorter array is the beginning of a longer one; the shape does not matter. */
TEST(value_from_seed_and_index)
{
    mica_engine *e = open_engine("cpu", 2);
    mica_scope *s = mica_scope_begin(e);
    for (int d = MICA_F16; d <= MICA_F64; d++) {
        test_case("%s", mica_dtype_name((mica_dtype)d));
        const int64_t tall[] = {7, 11, 13}, flat[] = {1001}, shorter[] = {333};
        mica_array *x[4] = {mica_random_normal(s, (mica_dtype)d, 3, tall, 5),
                            mica_random_normal(s, (mica_dtype)d, 1, flat, 5),
                            mica_random_normal(s, (mica_dtype)d, 1, shorter, 5), NULL};
        x[3] = mica_slice_axis(s, mica_flatten(s, mica_random_normal(s, (mica_dtype)d, 3, tall, 5)), 0, 1000, MICA_AUTO,
                               1);
        CHECK_MSG(mica_eval(s, x, 4) == MICA_OK, "%s", mica_last_error());
        const size_t size = mica_dtype_size((mica_dtype)d);
        CHECK(memcmp(mica_data(x[0]), mica_data(x[1]), 1001 * size) == 0);
        CHECK(memcmp(mica_data(x[1]), mica_data(x[2]), 333 * size) == 0);
        CHECK(memcmp((const char *)mica_data(x[1]) + 1000 * size, mica_data(x[3]), size) == 0);
    }
    mica_scope_end(s);
    mica_close(e);
}

/* --------------------------------------------------- ranges and moments --- */

TEST(ranges)
{
    mica_engine *e = open_engine("cpu", 2);
    const int64_t n = 100000;
    for (int dist = 0; dist < N_DIST; dist++)
        for (int d = MICA_F16; d <= MICA_F64; d++) {
            test_case("%s %s", distributions[dist].name, mica_dtype_name((mica_dtype)d));
            double *x = draw_f64(e, dist, (mica_dtype)d, n, 3);
            double least = INFINITY, most = -INFINITY;
            for (int64_t i = 0; i < n && x; i++) {
                if (!(x[i] >= least)) least = x[i]; /* NaN becomes the least value */
                if (x[i] > most) most = x[i];
            }
            free(x);
            const double low = distributions[dist].low, high = distributions[dist].high;
            if (!(least >= low && (distributions[dist].open ? most < high : most <= high)))
                test_fail(__FILE__, __LINE__, "values from %.17g to %.17g", least, most);
        }
    mica_close(e);
}

/* The variance of the mean of n values is variance / n. That of the sample variance is at
 * most (fourth moment - variance^2) / n, which is 2 variance^2 / n for the normal and less
 * for the bounded distributions here, except bernoulli with 3.8. */
TEST(moments)
{
    mica_engine *e = open_engine("cpu", 2);
    const int64_t n = 200000;
    for (int dist = 0; dist < N_DIST; dist++)
        for (int d = MICA_F16; d <= MICA_F64; d++) {
            if (!distributions[dist].has_moments) continue;
            test_case("%s %s", distributions[dist].name, mica_dtype_name((mica_dtype)d));
            const double mean = distributions[dist].mean, variance = distributions[dist].variance;
            double *x = draw_f64(e, dist, (mica_dtype)d, n, 8), sum = 0, squares = 0;
            for (int64_t i = 0; i < n && x; i++) sum += x[i];
            for (int64_t i = 0; i < n && x; i++) squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
            free(x);
            /* rounding to 8 digits moves the mean of numbers around 3.3 by up to 2^-8 */
            const double rounding = d == MICA_BF16 ? 0x1p-8 : d == MICA_F16 ? 0x1p-11 : 0;
            EXPECT_CLOSE(sum / (double)n, mean, 0, 5 * sqrt(variance / (double)n) + rounding);
            EXPECT_CLOSE(squares / (double)n, variance, 0, 5 * sqrt(4 * variance * variance / (double)n) + rounding);
        }
    mica_close(e);
}

/* The share of normal numbers below some points. */
TEST(normal_quantiles)
{
    static const double points[] = {-3, -2, -1, -0.5, 0, 0.25, 1, 1.5, 2.5, 3.5};
    mica_engine *e = open_engine("cpu", 2);
    const int64_t n = 400000;
    for (int d = MICA_F32; d <= MICA_F64; d++) {
        test_case("%s", mica_dtype_name((mica_dtype)d));
        double *x = draw_f64(e, 1, (mica_dtype)d, n, 21);
        for (size_t p = 0; p < sizeof points / sizeof points[0] && x; p++) {
            int64_t below = 0;
            for (int64_t i = 0; i < n; i++) below += x[i] < points[p];
            const double want = 0.5 * erfc(-points[p] / sqrt(2));
            EXPECT_CLOSE((double)below / (double)n, want, 0, 5 * sqrt(want * (1 - want) / (double)n));
        }
        free(x);
    }
    mica_close(e);
}

/* Quantiles of truncated normal distributions far from 0, computed by mpmath with 60 digits: a number is below the
 * quantile x exactly if its random probability is below u. Negative intervals are the mirror image. */
static const double far_u[] = {1.0 / 1024, 0.25, 0.5, 0.75, 1023.0 / 1024};
static const struct {
    double low, high, x[5];
} far_quantiles[] = {
    {8, INFINITY, {8.0001203039317351, 8.03534703595483, 8.0849110073915441, 8.1689643586629265, 8.8133107559487284}},
    {8, 9, {8.0001202820960447, 8.0353396219050172, 8.0848888990181664, 8.1688987085648934, 8.7942139481789402}},
    {12, 13, {12.000080865396016, 12.023787022319995, 12.057234273343929, 12.114201442090894, 12.56048510156958}},
    {13, 14, {13.000074719543106, 13.021982301092712, 13.052902455684296, 13.10559369521788, 13.519719180200188}},
    {30, 31, {30.000032531903965, 30.009577257491085, 30.023070467827309, 30.046123260403519, 30.229914123727814}},
    {30, 30.001, {30.000000962073179, 30.000247201549558, 30.000496250078358, 30.000747173409581, 30.000999008655883}},
    {37,
     INFINITY,
     {37.000026387220808, 37.007768709688421, 37.018715326832193, 37.037421210395264, 37.186730026485059}},
    {100,
     INFINITY,
     {100.00000976941925, 100.00287649176595, 100.00693053875243, 100.01386059734374, 100.06928379223999}},
    {1000, 1001, {1000.0000009770387, 1000.0002876817434, 1000.0006931462472, 1000.0013862920139, 1000.0069314408518}},
};

/* The probabilities and the numbers of one draw. */
static bool far_draw(mica_engine *e, mica_dtype dtype, double low, double high, int64_t n, double *u, double *x)
{
    mica_scope *s = mica_scope_begin(e);
    const bool wide = dtype == MICA_F64;
    mica_array *out[] = {mica_random_bits(s, wide ? MICA_U64 : MICA_U32, 1, &n, 12),
                         mica_random_truncated_normal(s, dtype, 1, &n, low, high, 12)};
    out[0] = mica_mul(s, mica_cast(s, out[0], MICA_F64), mica_scalar(s, wide ? 0x1p-64 : 0x1p-32));
    out[1] = mica_cast(s, out[1], MICA_F64);
    const size_t nbytes = (size_t)n * sizeof *x;
    const bool done = mica_eval(s, out, 2) == MICA_OK && mica_copy_out(out[0], u, nbytes) == MICA_OK &&
                      mica_copy_out(out[1], x, nbytes) == MICA_OK;
    if (!done) test_fail(__FILE__, __LINE__, "%s", mica_last_error());
    mica_scope_end(s);
    return done;
}

TEST(far_quantiles_of_truncated_normals)
{
    enum { N = 50000 };
    static double u[N], x[N];
    for (int i = 0; i < 2; i++) {
        mica_engine *e = open_engine(i ? "ref" : "cpu", 2);
        for (int k = 0; k < 2 * (int)(sizeof far_quantiles / sizeof *far_quantiles); k++)
            for (int d = MICA_F32; d <= MICA_F64; d++) {
                const double sign = k % 2 ? -1 : 1, low = far_quantiles[k / 2].low, high = far_quantiles[k / 2].high;
                test_case("%s, %s, %g to %g", i ? "ref" : "cpu", mica_dtype_name((mica_dtype)d), sign * low,
                          sign * high);
                if (!far_draw(e, (mica_dtype)d, k % 2 ? -high : low, k % 2 ? -low : high, N, u, x)) continue;
                const double room = d == MICA_F64 ? 1e-14 : 2e-7;
                size_t wrong = 0;
                for (int q = 0; q < 5; q++)
                    for (int64_t j = 0; j < N; j++) {
                        const double want = far_quantiles[k / 2].x[q], got = sign * x[j];
                        const bool below = (k % 2 ? 1 - u[j] : u[j]) < far_u[q];
                        wrong += !(below ? got <= want * (1 + room) : got >= want * (1 - room));
                    }
                EXPECT_INT(wrong, 0);
            }
        mica_close(e);
    }
}

/* Every value of [low, high) is equally frequent; the range may be that of the dtype. */
TEST(randint)
{
    mica_engine *e = open_engine("cpu", 2);
    const int64_t n = 170000;
    test_case("frequencies");
    double *x = draw_f64(e, 5, MICA_F64, n, 4);
    int64_t count[17] = {0};
    for (int64_t i = 0; i < n && x; i++)
        if (x[i] >= -5 && x[i] <= 11) count[(int)x[i] + 5]++;
    free(x);
    double chi2 = 0;
    for (int k = 0; k < 17; k++) chi2 += ((double)count[k] - 10000) * ((double)count[k] - 10000) / 10000;
    (void)EXPECT_MSG(chi2 < 16 + 5 * sqrt(32), "chi-squared %g of 16 degrees of freedom", chi2);

    static const struct {
        mica_dtype dtype;
        int64_t low, high;
    } rows[] = {{MICA_I8, -128, 128},     {MICA_U8, 0, 256},        {MICA_I64, INT64_MIN, INT64_MAX},
                {MICA_U64, 0, INT64_MAX}, {MICA_U16, 65535, 65536}, {MICA_I32, -3, -2}};
    mica_scope *s = mica_scope_begin(e);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        test_case("%s from %lld", mica_dtype_name(rows[r].dtype), (long long)rows[r].low);
        mica_array *y = mica_random_randint(s, rows[r].dtype, 1, (int64_t[]){4000}, rows[r].low, rows[r].high, 6);
        mica_array *ends[2] = {mica_min(s, y, NULL, 0, false), mica_max(s, y, NULL, 0, false)};
        CHECK_MSG(mica_eval(s, ends, 2) == MICA_OK, "%s", mica_last_error());
        double least, most;
        CHECK(mica_item(ends[0], &least) == MICA_OK && mica_item(ends[1], &most) == MICA_OK);
        const double width = (double)rows[r].high - (double)rows[r].low;
        CHECK(least >= (double)rows[r].low && most <= (double)(rows[r].high - 1));
        CHECK(most - least >= 0.98 * (width - 1));
    }
    mica_scope_end(s);
    mica_close(e);
}

TEST(bits_are_even)
{
    mica_engine *e = open_engine("cpu", 2);
    mica_scope *s = mica_scope_begin(e);
    const int64_t n = 65536;
    mica_array *x[2] = {mica_random_bits(s, MICA_U32, 1, &n, 1), mica_random_bits(s, MICA_U64, 1, &n, 1)};
    CHECK_MSG(mica_eval(s, x, 2) == MICA_OK, "%s", mica_last_error());
    const uint32_t *narrow = mica_data_u32(x[0]);
    const uint64_t *wide = mica_data_u64(x[1]);
    for (int bit = 0; bit < 96; bit++) {
        int64_t ones = 0, changes = 0;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t one = bit < 32 ? narrow[i] >> bit & 1 : wide[i] >> (bit - 32) & 1;
            const uint64_t next = bit < 32 ? narrow[(i + 1) % n] >> bit & 1 : wide[(i + 1) % n] >> (bit - 32) & 1;
            ones += one != 0;
            changes += one != next;
        }
        CHECK_CLOSE(ones, 0.5 * (double)n, 0, 5 * 0.5 * sqrt((double)n));
        CHECK_CLOSE(changes, 0.5 * (double)n, 0, 5 * 0.5 * sqrt((double)n));
    }
    mica_scope_end(s);
    mica_close(e);
}

/* ---------------------------------------------- permutation, categorical --- */

TEST(permutation)
{
    static const int64_t sizes[] = {0, 1, 2, 17, 1000, 30011};
    mica_engine *e = open_engine("cpu", 2);
    mica_scope *s = mica_scope_begin(e);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const int64_t n = sizes[k];
        test_case("%lld", (long long)n);
        mica_array *x = mica_random_permutation(s, n, 12), *other = mica_random_permutation(s, n, 13);
        CHECK_MSG(mica_eval(s, (mica_array *[]){x, other}, 2) == MICA_OK, "%s", mica_last_error());
        CHECK_INT(mica_array_size(x), n);
        CHECK_INT(mica_array_dtype(x), MICA_I64);
        bool *seen = calloc((size_t)n + 1, 1);
        const int64_t *p = mica_data_i64(x), *q = mica_data_i64(other);
        int64_t n_seen = 0, fixed = 0, equal = 0;
        for (int64_t i = 0; i < n && seen; i++) {
            if (p[i] >= 0 && p[i] < n && !seen[p[i]]) seen[p[i]] = true, n_seen++;
            fixed += p[i] == i;
            equal += p[i] == q[i];
        }
        free(seen);
        CHECK_INT(n_seen, n);
        /* on average one element is fixed, and two permutations agree in one */
        if (n > 2)
            (void)EXPECT_MSG(fixed < 8 && equal < 8, "%lld in place, %lld equal", (long long)fixed, (long long)equal);
    }
    mica_scope_end(s);
    mica_close(e);
}

/* The position of 0 is uniformly distributed. */
TEST(permutation_is_uniform)
{
    mica_engine *e = open_engine("cpu", 1);
    enum { N = 8, TRIALS = 4000 };
    int count[N] = {0};
    for (int t = 0; t < TRIALS; t++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = mica_random_permutation(s, N, mica_seed_split(99, (uint64_t)t));
        CHECK_MSG(mica_eval(s, &x, 1) == MICA_OK, "%s", mica_last_error());
        for (int i = 0; i < N; i++)
            if (mica_data_i64(x)[i] == 0) count[i]++;
        mica_scope_end(s);
    }
    double chi2 = 0, want = (double)TRIALS / (double)N;
    for (int i = 0; i < N; i++) chi2 += (count[i] - want) * (count[i] - want) / want;
    (void)EXPECT_MSG(chi2 < 7 + 5 * sqrt(14), "chi-squared %g of 7 degrees of freedom", chi2);
    mica_close(e);
}

TEST(categorical_frequencies)
{
    mica_engine *e = open_engine("cpu", 2);
    const int64_t n = 200000;
    const double logits[] = {0, 1, -2, 0.5};
    double total = 0;
    for (int k = 0; k < 4; k++) total += exp(logits[k]);
    for (int d = MICA_F16; d <= MICA_F64; d++) {
        test_case("%s", mica_dtype_name((mica_dtype)d));
        int64_t count[5] = {0};
        double *x = draw_f64(e, 9, (mica_dtype)d, n, 17);
        for (int64_t i = 0; i < n && x; i++)
            if (x[i] >= 0 && x[i] < 5) count[(int)x[i]]++;
        free(x);
        for (int k = 0; k < 4; k++) {
            const double p = exp(logits[k]) / total;
            EXPECT_CLOSE((double)count[k] / (double)n, p, 0, 5 * sqrt(p * (1 - p) / (double)n));
        }
        EXPECT_INT(count[4], 0); /* -infinity is never chosen */
    }
    mica_close(e);
}

TEST(bernoulli_ends)
{
    mica_engine *e = open_engine("cpu", 1);
    mica_scope *s = mica_scope_begin(e);
    const int64_t n = 50000;
    mica_array *x[2] = {mica_any(s, mica_random_bernoulli(s, 1, &n, 0, 1), NULL, 0, false),
                        mica_all(s, mica_random_bernoulli(s, 1, &n, 1, 1), NULL, 0, false)};
    CHECK_MSG(mica_eval(s, x, 2) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(*mica_data_bool(x[0]), false);
    EXPECT_INT(*mica_data_bool(x[1]), true);
    mica_scope_end(s);
    mica_close(e);
}

/* ----------------------------------------------------------------- seeds --- */

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Seeds of many streams of many seeds, neighbours among them, all differ. */
TEST(split_seeds_differ)
{
    enum { SEEDS = 100, STREAMS = 1000 };
    uint64_t *all = malloc(SEEDS * STREAMS * sizeof *all);
    CHECK(all);
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (uint64_t i = 0; i < STREAMS; i++) all[seed * STREAMS + i] = mica_seed_split(seed, i);
    qsort(all, SEEDS * STREAMS, sizeof *all, compare_u64);
    int equal = 0;
    for (int i = 1; i < SEEDS * STREAMS; i++) equal += all[i] == all[i - 1];
    free(all);
    EXPECT_INT(equal, 0);
}

static double correlation(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum / (double)n;
}

/* Streams of neighbouring indices and seeds, and neighbouring plain seeds, are not
 * correlated: products of standard normals average to 0. */
TEST(streams_are_independent)
{
    enum { N_STREAM = 8 };
    mica_engine *e = open_engine("cpu", 2);
    const int64_t n = 50000;
    double *x[N_STREAM];
    for (int i = 0; i < N_STREAM; i++)
        x[i] = draw_f64(e, 1, MICA_F32, n, i < 4 ? mica_seed_split(1, (uint64_t)i) : (uint64_t)i);
    for (int i = 0; i < N_STREAM; i++)
        for (int k = 0; k < i; k++) {
            test_case("streams %d and %d", i, k);
            if (!x[i] || !x[k]) continue;
            EXPECT_CLOSE(correlation(x[i], x[k], n), 0, 0, 5 / sqrt((double)n));
            EXPECT_CLOSE(correlation(x[i] + 1, x[k], n - 1), 0, 0, 5 / sqrt((double)n)); /* shifted */
        }
    for (int i = 0; i < N_STREAM; i++) free(x[i]);
    mica_close(e);
}

/* ---------------------------------------------------------------- errors --- */

TEST(bad_arguments)
{
    mica_engine *e = open_engine("cpu", 1);
    mica_scope *s = mica_scope_begin(e);
    const int64_t n = 3, minus = -1;
#define EXPECT_FAIL(call, status)                 \
    do {                                          \
        (void)EXPECT((call) == NULL);             \
        EXPECT_INT(mica_scope_status(s), status); \
        mica_scope_clear_error(s);                \
    } while (0)
    EXPECT_FAIL(mica_random_bits(s, MICA_I32, 1, &n, 1), MICA_ERR_DTYPE);
    EXPECT_FAIL(mica_random_normal(s, MICA_I32, 1, &n, 1), MICA_ERR_DTYPE);
    EXPECT_FAIL(mica_random_uniform(s, MICA_BOOL, 1, &n, 0, 1, 1), MICA_ERR_DTYPE);
    EXPECT_FAIL(mica_random_uniform(s, MICA_F32, 1, &n, 1, 0, 1), MICA_ERR_ARGUMENT);
    EXPECT_FAIL(mica_random_uniform(s, MICA_F32, 1, &n, 0, NAN, 1), MICA_ERR_ARGUMENT);
    EXPECT_FAIL(mica_random_uniform(s, MICA_F32, 1, &minus, 0, 1, 1), MICA_ERR_SHAPE);
    EXPECT_FAIL(mica_random_truncated_normal(s, MICA_F32, 1, &n, 2, 2, 1), MICA_ERR_ARGUMENT);
    EXPECT_FAIL(mica_random_bernoulli(s, 1, &n, 1.5, 1), MICA_ERR_ARGUMENT);
    EXPECT_FAIL(mica_random_randint(s, MICA_F32, 1, &n, 0, 3, 1), MICA_ERR_DTYPE);
    EXPECT_FAIL(mica_random_randint(s, MICA_I32, 1, &n, 3, 3, 1), MICA_ERR_ARGUMENT);
    EXPECT_FAIL(mica_random_randint(s, MICA_I8, 1, &n, 0, 129, 1), MICA_ERR_ARGUMENT);
    EXPECT_FAIL(mica_random_categorical(s, mica_scalar(s, 1), 1), MICA_ERR_SHAPE);
    EXPECT_FAIL(mica_random_permutation(s, -1, 1), MICA_ERR_SHAPE);
#undef EXPECT_FAIL
    mica_scope_end(s);
    mica_close(e);
}
