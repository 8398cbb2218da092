/* Generated kernels with every number of threads and elements that a tuner may choose
 * (kernels/gpu_tune.def): they match ref under softmetal's checker, with another thread order for
 * each candidate. */
#include <stdlib.h>

#include "array/dtype.h"
#include "backend/metal/metal_lower.h"
#include "metal_kit.h"

enum { ROWS = 128, COLS = 132, MOST = 4 }; /* enough for several elements per thread */

static mica_array *numbers(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols)
{
    static char data[8 * 40002];
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t value = i * 7919 % 203 - 101;
        if (mica__is_float(dtype)) mica__set_f64(dtype, data, i, 0.01 * (double)value);
        else mica__set_i64(dtype, data, i, value);
    }
    return mica_from_data(s, dtype, 2, (int64_t[]){rows, cols}, data);
}

/* Contiguous, with row and column broadcasts; with a tail; transposed; of another element size. */
static int elements_of(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, MICA_F32, ROWS, COLS), *row = numbers(s, MICA_F32, 1, COLS),
               *column = numbers(s, MICA_F32, ROWS, 1);
    mica_array *count = mica_reshape(s, mica_arange(s, MICA_F32, 0, ROWS * COLS, 1), 2, (int64_t[]){ROWS, COLS});
    out[0] = mica_where(s, mica_greater(s, x, mica_scalar(s, 0.25)), mica_add(s, mica_mul(s, x, row), column), count);
    out[1] = mica_exp(s, numbers(s, MICA_F32, 129, 131));
    out[2] = mica_add(s, mica_transpose(s, x), mica_scalar(s, 1));
    out[3] = mica_square(s, numbers(s, MICA_F16, ROWS, COLS));
    return 4;
}

/* Along memory; across it, with 8-byte elements; and the index check, which is one threadgroup too. */
static int folds_of(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, MICA_F32, 3, 700), *at = mica_arange(s, MICA_I32, 0, 700, 1);
    out[0] = mica_sum(s, mica_square(s, x), (int[]){1}, 1, false);
    out[1] = mica_sum(s, numbers(s, MICA_I64, 200, 3), (int[]){0}, 1, false);
    out[2] = mica_take_along_axis(s, mica_reshape(s, x, 1, (int64_t[]){2100}), mica_add(s, at, at), 0);
    return 3;
}

static int long_folds_of(mica_scope *s, mica_array **out)
{
    out[0] = mica_sum(s, mica_square(s, numbers(s, MICA_F32, 1, 40000)), NULL, 0, false);
    out[1] = mica_max(s, numbers(s, MICA_I64, 2, 20001), (int[]){1}, 1, false);
    return 2;
}

static void expect_same(mica_array *got, mica_array *want)
{
    const mica_dtype dtype = mica_array_dtype(want);
    const size_t n = mica_array_nbytes(want);
    char *a = malloc(n), *b = malloc(n);
    CHECK(a && b);
    if (EXPECT(mica_array_nbytes(got) == n && mica_copy_out(got, a, n) == MICA_OK &&
               mica_copy_out(want, b, n) == MICA_OK)) {
        const double close = dtype == MICA_F16 ? 2e-3 : 3e-6;
        bool same = mica__is_float(dtype) || memcmp(a, b, n) == 0;
        for (int64_t i = 0; same && mica__is_float(dtype) && i < mica_array_size(want); i++)
            same = EXPECT_CLOSE(mica__get_f64(dtype, a, i), mica__get_f64(dtype, b, i), close, close);
        EXPECT(same);
    }
    free(a);
    free(b);
}

static void every_candidate(mica__gpu_knob knob, int (*build)(mica_scope *s, mica_array **out))
{
    static const char *const seeds[] = {"0", "17", "4242"};
    const mica__gpu_knob_info info = mica__gpu_knob_get(knob);
    mica_engine *ref = open_on("ref");
    mica_scope *r = mica_scope_begin(ref);
    mica_array *want[MOST], *got[MOST];
    const int n = build(r, want);
    EXPECT_MSG(mica_eval(r, want, (size_t)n) == MICA_OK, "%s", mica_last_error());
    for (uint32_t i = 0; i < info.n; i++) {
        mica__gpu_tuning tuning = {{0}};
        tuning.candidate[knob] = (uint8_t)(i + 1);
        EXPECT_INT(mica__metal_tune(&tuning), MICA_OK);
        setenv("SM_SEED", seeds[i % COUNT(seeds)], 1);
        mica_engine *e = open_on("metal");
        mica_scope *s = mica_scope_begin(e);
        (void)build(s, got);
        test_case("%s", info.shape[i].name);
        EXPECT_MSG(mica_eval(s, got, (size_t)n) == MICA_OK, "%s", mica_last_error());
        EXPECT_INT(stats_of(e).gpu_cpu_steps, 0);
        for (int k = 0; k < n; k++) {
            test_case("%s, result %d", info.shape[i].name, k);
            expect_same(got[k], want[k]);
        }
        mica_scope_end(s);
        mica_close(e);
    }
    unsetenv("SM_SEED");
    EXPECT_INT(mica__metal_tune(&(mica__gpu_tuning){{0}}), MICA_OK);
    mica_scope_end(r);
    mica_close(ref);
}

#define CHECKED() setenv("SM_CHECK", "1", 0) /* races, bounds, uninitialised memory */

TEST(elements_in_every_shape)
{
    CHECKED();
    SKIP_WITHOUT_METAL();
    every_candidate(MICA__KNOB_ELEMENTS, elements_of);
}

TEST(folds_in_every_shape)
{
    CHECKED();
    SKIP_WITHOUT_METAL();
    every_candidate(MICA__KNOB_FOLD, folds_of);
}

TEST(long_folds_in_every_shape)
{
    CHECKED();
    SKIP_WITHOUT_METAL();
    every_candidate(MICA__KNOB_LONG_FOLD, long_folds_of);
}
