/* The kernels of a fixed set of graphs, as dumps and as Metal text, must equal the text in golden/,
 * so that no change is accidental. To accept a change:
 *
 *     MICA_UPDATE_GOLDEN=1 build/tests/codegen/test_kernel_text
 *
 * Read the difference before you commit it.
 *
 * runs: check */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica.h"
#include "test.h"

#ifndef MICA_TEST_DIR
#define MICA_TEST_DIR "tests"
#endif

enum { TEXT_CAP = 1 << 16 };

typedef struct text_case {
    const char *name;
    size_t (*build)(mica_scope *s, mica_array **out);
} text_case;

/* Memory that looks like an array; nothing here is ever run. */
static mica_array *leaf(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols)
{
    static const char zeros[1 << 14];
    return mica_wrap(s, dtype, cols ? 2 : 1, (int64_t[]){rows, cols}, NULL, zeros, NULL, NULL);
}

static mica_array *number(mica_scope *s, double x) { return mica_scalar(s, x); }

static size_t build_gelu_chain(mica_scope *s, mica_array **out)
{
    mica_array *x = mica_add(s, mica_mul(s, leaf(s, MICA_F32, 1000, 0), leaf(s, MICA_F32, 1000, 0)), number(s, 0.1));
    *out = mica_sub(s, mica_mul(s, mica_gelu_tanh(s, x), number(s, 3)), number(s, INFINITY));
    return 1;
}

static size_t build_bias_relu(mica_scope *s, mica_array **out)
{
    *out = mica_relu(s, mica_add(s, leaf(s, MICA_F32, 8, 5), leaf(s, MICA_F32, 5, 0)));
    return 1;
}

static size_t build_transposed(mica_scope *s, mica_array **out)
{
    *out = mica_add(s, leaf(s, MICA_F32, 6, 4), mica_transpose(s, leaf(s, MICA_F32, 4, 6)));
    return 1;
}

static size_t build_slices(mica_scope *s, mica_array **out)
{
    mica_array *x = leaf(s, MICA_I32, 10, 12);
    mica_array *part = mica_slice(s, x, (int64_t[]){8, 1}, (int64_t[]){0, 11}, (int64_t[]){-2, 3});
    *out = mica_neg(s, mica_add(s, mica_flip(s, part, 1), number(s, 7)));
    return 1;
}

static size_t build_sums(mica_scope *s, mica_array **out)
{
    mica_array *x = leaf(s, MICA_F32, 30, 20);
    out[0] = mica_sum(s, x, (int[]){1}, 1, false);
    out[1] = mica_sum(s, x, (int[]){0}, 1, true);
    out[2] = mica_sum(s, mica_square(s, x), NULL, 0, false);
    return 3;
}

/* Before a fold, the fold, after it. */
static size_t build_row_norm(mica_scope *s, mica_array **out)
{
    mica_array *x = leaf(s, MICA_F32, 30, 20);
    *out = mica_rsqrt(s, mica_add(s, mica_sum(s, mica_square(s, x), (int[]){1}, 1, true), number(s, 1e-5)));
    return 1;
}

static size_t build_reductions(mica_scope *s, mica_array **out)
{
    out[0] = mica_max(s, leaf(s, MICA_I8, 9, 7), (int[]){1}, 1, false);
    out[1] = mica_min(s, leaf(s, MICA_U64, 9, 7), (int[]){0}, 1, false);
    out[2] = mica_any(s, leaf(s, MICA_BOOL, 9, 7), NULL, 0, false);
    out[3] = mica_all(s, mica_less(s, leaf(s, MICA_F32, 9, 7), number(s, 2)), (int[]){1}, 1, false);
    out[4] = mica_prod(s, leaf(s, MICA_BF16, 9, 7), (int[]){1}, 1, false);
    return 5;
}

static size_t build_image(mica_scope *s, mica_array **out)
{
    mica_array *x = mica_cast(s, leaf(s, MICA_U8, 16, 3), MICA_F16);
    *out = mica_div(s, mica_sub(s, x, number(s, 127.5)), leaf(s, MICA_F16, 3, 0));
    return 1;
}

static size_t build_casts(mica_scope *s, mica_array **out)
{
    mica_array *x = leaf(s, MICA_F32, 40, 0);
    out[0] = mica_cast(s, x, MICA_I8);
    out[1] = mica_cast(s, x, MICA_BOOL);
    out[2] = mica_cast(s, leaf(s, MICA_I64, 40, 0), MICA_BF16);
    out[3] = mica_cast(s, leaf(s, MICA_F16, 40, 0), MICA_F32);
    return 4;
}

static size_t build_select(mica_scope *s, mica_array **out)
{
    mica_array *x = leaf(s, MICA_F32, 50, 0), *y = leaf(s, MICA_F32, 50, 0);
    mica_array *inside = mica_logical_and(s, mica_greater(s, x, number(s, -1)), mica_isfinite(s, y));
    *out = mica_where(s, inside, mica_fma(s, x, y, y), mica_leaky_relu(s, x, 0.01));
    return 1;
}

static size_t build_integers(mica_scope *s, mica_array **out)
{
    mica_array *a = leaf(s, MICA_U16, 60, 0), *b = leaf(s, MICA_U16, 60, 0);
    mica_array *q = mica_mod(s, mica_floor_div(s, a, b), number(s, 10));
    *out = mica_bitwise_xor(s, mica_shift_left(s, q, b), mica_bitwise_not(s, a));
    return 1;
}

static size_t build_counting(mica_scope *s, mica_array **out)
{
    mica_array *x = leaf(s, MICA_F32, 4, 6);
    out[0] = mica_mul(s, x, mica_arange(s, MICA_F32, 1, 7, 1));
    out[1] = mica_tri(s, MICA_I32, 4, 6, 0);
    return 2;
}

static size_t build_matmul_epilogue(mica_scope *s, mica_array **out)
{
    mica_array *y = mica_matmul(s, leaf(s, MICA_F32, 8, 16), leaf(s, MICA_F32, 16, 12));
    *out = mica_relu(s, mica_add(s, y, leaf(s, MICA_F32, 12, 0)));
    return 1;
}

static size_t build_two_results(mica_scope *s, mica_array **out)
{
    mica_array *x = mica_exp(s, leaf(s, MICA_F32, 70, 0));
    out[0] = x;
    out[1] = mica_tanh(s, x);
    return 2;
}

static const text_case cases[] = {
    {"gelu_chain", build_gelu_chain},
    {"bias_relu", build_bias_relu},
    {"transposed", build_transposed},
    {"slices", build_slices},
    {"sums", build_sums},
    {"row_norm", build_row_norm},
    {"reductions", build_reductions},
    {"image", build_image},
    {"casts", build_casts},
    {"select", build_select},
    {"integers", build_integers},
    {"counting", build_counting},
    {"matmul_epilogue", build_matmul_epilogue},
    {"two_results", build_two_results},
};

/* ------------------------------------------------------------- comparing --- */

/* Line of the first difference, and both lines. */
static void first_difference(const char *got, const char *want, int *line, char a[200], char b[200])
{
    *line = 1;
    for (;;) {
        const size_t n = strcspn(got, "\n"), m = strcspn(want, "\n");
        snprintf(a, 200, "%.*s", (int)n, got);
        snprintf(b, 200, "%.*s", (int)m, want);
        if (n != m || memcmp(got, want, n) != 0 || !got[n] || !want[m]) return;
        got += n + 1;
        want += m + 1;
        ++*line;
    }
}

static void compare_golden(const char *name, const char *got)
{
    char path[1024], a[200], b[200];
    int line;
    const char *dir = getenv("MICA_TEST_DIR");
    snprintf(path, sizeof path, "%s/codegen/golden/%s.txt", dir && *dir ? dir : MICA_TEST_DIR, name);
    const char *update = getenv("MICA_UPDATE_GOLDEN");
    if (update && *update) {
        FILE *f = fopen(path, "wb");
        CHECK_MSG(f && fputs(got, f) >= 0, "%s: cannot be written", path);
        CHECK(fclose(f) == 0);
        return;
    }
    FILE *f = fopen(path, "rb");
    CHECK_MSG(f, "%s: cannot be read; MICA_UPDATE_GOLDEN=1 makes it", path);
    char *want = calloc(1, TEXT_CAP);
    const size_t n = want ? fread(want, 1, TEXT_CAP - 1, f) : 0;
    fclose(f);
    first_difference(got, want ? want : "", &line, a, b);
    const bool same = want && n == strlen(got) && memcmp(want, got, n) == 0;
    free(want);
    CHECK_MSG(same, "%s:%d: \"%s\", stored is \"%s\"; if that is wanted, run with MICA_UPDATE_GOLDEN=1", path, line, a,
              b);
}

static void check_text(mica_engine *e, const text_case *tc)
{
    char *text = calloc(1, TEXT_CAP);
    mica_array *out[8] = {NULL};
    mica_scope *s = mica_scope_begin(e);
    CHECK(text && s);
    const size_t n_out = tc->build(s, out);
    size_t length = 0, more = 0;
    mica_status status = mica_plan_text(s, out, n_out, MICA_DUMP_KERNELS, text, TEXT_CAP, &length);
    CHECK_MSG(status == MICA_OK && length < TEXT_CAP - 1, "%s", mica_last_error());
    text[length++] = '\n';
    status = mica_plan_text(s, out, n_out, MICA_DUMP_MSL, text + length, TEXT_CAP - length, &more);
    CHECK_MSG(status == MICA_OK && length + more < TEXT_CAP, "%s", mica_last_error());
    compare_golden(tc->name, text);
    mica_scope_end(s);
    free(text);
}

TEST(kernel_text)
{
    mica_engine_options options;
    mica_engine *e;
    mica_engine_options_init(&options);
    options.backend = "cpu";
    options.passes = MICA_PASS_ALL;
    CHECK_MSG(mica_open(&options, &e) == MICA_OK, "%s", mica_last_error());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_case("%s", cases[i].name);
        check_text(e, &cases[i]);
    }
    mica_close(e);
}

TEST(metal_has_no_f64)
{
    mica_engine *e;
    CHECK(mica_open(NULL, &e) == MICA_OK);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_neg(s, leaf(s, MICA_F64, 10, 0));
    CHECK_INT(mica_plan_text(s, &x, 1, MICA_DUMP_MSL, NULL, 0, NULL), MICA_ERR_UNSUPPORTED);
    CHECK_STR(mica_last_error(), "msl: Metal has no f64");
    mica_scope_end(s);
    mica_close(e);
}
