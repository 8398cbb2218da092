/* Long reductions with few results, which are split into two kernels: they match ref, for every
 * reduction and type. Also the quantisation of weights by their mean magnitude, which is such a
 * reduction followed by one kernel. */
#include <math.h>
#include <mica_nn.h>
#include <stdlib.h>

#include "array/dtype.h"
#include "codegen/emit_msl.h"
#include "metal_kit.h"

TEST(parts_are_by_size)
{
    EXPECT_INT(mica__msl_fold_parts(&mica__msl_usual, 1, 8191), 1);
    EXPECT_INT(mica__msl_fold_parts(&mica__msl_usual, 1, 16384), 2);
    EXPECT_INT(mica__msl_fold_parts(&mica__msl_usual, 1, 1 << 24), 256);
    EXPECT_INT(mica__msl_fold_parts(&mica__msl_usual, 100, 1 << 24), 2);
    EXPECT_INT(mica__msl_fold_parts(&mica__msl_usual, 200, 1 << 24), 1);
    EXPECT_INT(mica__msl_fold_parts(&mica__msl_usual, 0, 0), 1);
}

static mica_array *numbers(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols)
{
    mica_array *x = mica_arange(s, MICA_I32, 0, (double)(rows * cols), 1);
    x = mica_sub(s,
                 mica_mod(s, mica_mul(s, x, mica_cast(s, mica_scalar(s, 7919), MICA_I32)),
                          mica_cast(s, mica_scalar(s, 203), MICA_I32)),
                 mica_cast(s, mica_scalar(s, 101), MICA_I32));
    x = mica_reshape(s, x, 2, (int64_t[]){rows, cols});
    return mica__is_float(dtype) ? mica_mul(s, mica_cast(s, x, dtype), mica_cast(s, mica_scalar(s, 0.01), dtype))
                                 : mica_cast(s, x, dtype);
}

enum { FOLDS = 8, ROWS = 3, COLS = 20001 };

/* Results of one element, of a row, of a short column; most with ops before and after. */
static void folds_of(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, MICA_F32, ROWS, COLS);
    out[0] = mica_sqrt(s, mica_mean(s, mica_square(s, x), NULL, 0, false));
    out[1] = mica_max(s, mica_sin(s, x), (int[]){1}, 1, true);
    out[2] = mica_sum(s, numbers(s, MICA_I32, ROWS, COLS), (int[]){1}, 1, false);
    out[3] = mica_sum(s, numbers(s, MICA_I64, ROWS, COLS), NULL, 0, false);
    out[4] = mica_any(s, mica_greater(s, x, mica_scalar(s, 1.005)), (int[]){1}, 1, false);
    out[5] = mica_sum(s, numbers(s, MICA_F16, COLS, ROWS), (int[]){0}, 1, false);
    out[6] = mica_min(s, mica_transpose(s, numbers(s, MICA_I8, COLS, 2)), (int[]){1}, 1, false);
    mica_array *total = mica_sum(s, mica_abs(s, x), (int[]){1}, 1, true);
    out[7] = mica_add(s, mica_mul(s, total, mica_scalar(s, 1e-4)), mica_sum(s, x, (int[]){1}, 1, true));
}

TEST(long_folds)
{
    SKIP_WITHOUT_METAL();
    mica_engine *e[2] = {open_on("metal"), open_on("ref")};
    mica_scope *s[2];
    mica_array *out[2][FOLDS];
    for (int i = 0; i < 2; i++) {
        s[i] = mica_scope_begin(e[i]);
        folds_of(s[i], out[i]);
        EXPECT_MSG(mica_eval(s[i], out[i], FOLDS) == MICA_OK, "%s", mica_last_error());
    }
    EXPECT_INT(stats_of(e[0]).gpu_cpu_steps, 0);
    for (int k = 0; k < FOLDS; k++) {
        const mica_dtype dtype = mica_array_dtype(out[1][k]);
        char got[64], want[64];
        const size_t n = mica_array_nbytes(out[1][k]);
        test_case("fold %d", k);
        if (!EXPECT(n <= 64 && mica_copy_out(out[0][k], got, n) == MICA_OK &&
                    mica_copy_out(out[1][k], want, n) == MICA_OK))
            continue;
        if (!mica__is_float(dtype)) EXPECT(memcmp(got, want, n) == 0);
        else
            for (int64_t i = 0; i < mica_array_size(out[1][k]); i++)
                EXPECT_CLOSE(mica__get_f64(dtype, got, i), mica__get_f64(dtype, want, i),
                             dtype == MICA_F16 ? 1e-3 : 3e-6, 1e-3);
    }
    for (int i = 0; i < 2; i++) {
        mica_scope_end(s[i]);
        mica_close(e[i]);
    }
}

/* NaN and rows without numbers pass through both kernels. */
TEST(long_folds_of_what_is_not_finite)
{
    SKIP_WITHOUT_METAL();
    static float x[40000];
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    const int64_t n = 40000;
    x[12345] = NAN;
    mica_array *given = mica_from_data(s, MICA_F32, 1, &n, x),
               *out[] = {mica_max(s, given, NULL, 0, false), mica_sum(s, given, NULL, 0, false)};
    EXPECT_MSG(mica_eval(s, out, 2) == MICA_OK, "%s", mica_last_error());
    EXPECT(isnan(mica_data_f32(out[0])[0]) && isnan(mica_data_f32(out[1])[0]));
    mica_scope_end(s);
    mica_close(e);
}

/* round(w / mean |w|) in [-1, 1], as BitLinear trains. The mean is one step and the codes are another, whatever uses
 * them. The codes equal those of the CPU. */
TEST(weights_by_their_mean)
{
    SKIP_WITHOUT_METAL();
    enum { SIDE = 160 };
    static float codes[2][SIDE * SIDE];
    for (int i = 0; i < 2; i++) {
        mica_engine *e = open_on(i ? "cpu" : "metal");
        mica_scope *s = mica_scope_begin(e);
        mica_array *w = numbers(s, MICA_F32, SIDE, SIDE), *scale;
        EXPECT_MSG(mica_eval(s, &w, 1) == MICA_OK, "%s", mica_last_error());
        mica_array *q = mica_ternary_codes(s, w, &scale);
        mica_plan_info info = {.struct_size = sizeof info};
        EXPECT_INT(mica_plan_query(s, &q, 1, &info), MICA_OK);
        EXPECT_INT(info.kernels, 2);
        const uint64_t before = stats_of(e).gpu_kernels;
        EXPECT_MSG(mica_eval(s, &q, 1) == MICA_OK, "%s", mica_last_error());
        if (i == 0) EXPECT_INT(stats_of(e).gpu_kernels - before, 3); /* partial sums, the mean, the codes */
        EXPECT_INT(mica_copy_out(q, codes[i], sizeof codes[i]), MICA_OK);
        mica_scope_end(s);
        mica_close(e);
    }
    EXPECT(memcmp(codes[0], codes[1], sizeof codes[0]) == 0);
    int seen[3] = {0};
    for (int k = 0; k < SIDE * SIDE; k++) seen[(int)codes[0][k] + 1]++;
    EXPECT(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}
