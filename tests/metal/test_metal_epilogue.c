/* Element-wise ops after a family that are compiled into its last kernel, and activations that are quantised once
 * for all products that read them. The bits equal those of separate kernels, the results match ref, and there
 * are fewer dispatches. */
#include <math.h>
#include <stdlib.h>

#include "array/dtype.h"
#include "base/alloc.h"
#include "metal_kit.h"

static mica_array *numbers(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, double from)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    mica_array *x = mica_sin(s, mica_add(s, mica_arange(s, MICA_F32, 0, (double)n, 1), mica_scalar(s, from)));
    return mica_cast(s, mica_reshape(s, x, ndim, shape), dtype);
}

static mica_array *matrix(mica_scope *s, mica_dtype dtype, int64_t rows, int64_t cols, double from)
{
    return numbers(s, dtype, 2, (int64_t[]){rows, cols}, from);
}

/* Ops after y: a bias per column, a function, and the sum with an array of y's shape. */
static mica_array *with_epilogue(mica_scope *s, mica_array *y)
{
    const mica_dtype dtype = mica_array_dtype(y);
    const int ndim = mica_array_ndim(y);
    const int64_t *shape = mica_array_shape(y);
    mica_array *bias = numbers(s, dtype, 1, &shape[ndim - 1], 3), *more = numbers(s, dtype, ndim, shape, 5);
    return mica_add(s, mica_gelu(s, mica_add(s, y, bias)), more);
}

/* ---------------------------------------------------------------- graphs --- */

static mica_array *product(mica_scope *s, mica_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    return mica_matmul(s, matrix(s, dtype, m, k, 1), matrix(s, dtype, k, n, 2));
}
static mica_array *tiles(mica_scope *s) { return with_epilogue(s, product(s, MICA_F32, 37, 45, 20)); }
static mica_array *tiles_f16(mica_scope *s) { return with_epilogue(s, product(s, MICA_F16, 33, 35, 19)); }
static mica_array *tiles_bf16(mica_scope *s) { return with_epilogue(s, product(s, MICA_BF16, 33, 35, 19)); }
static mica_array *parts_of_k(mica_scope *s) { return with_epilogue(s, product(s, MICA_F32, 16, 16, 2080)); }
static mica_array *beside(mica_scope *s) { return with_epilogue(s, product(s, MICA_F32, 2, 70, 33)); }
static mica_array *lines(mica_scope *s)
{
    mica_array *w = mica_transpose(s, matrix(s, MICA_F32, 21, 40, 2));
    return with_epilogue(s, mica_matmul(s, matrix(s, MICA_F32, 3, 40, 1), w));
}
static mica_array *batches(mica_scope *s)
{
    mica_array *a = numbers(s, MICA_F32, 3, (int64_t[]){3, 12, 10}, 1);
    return with_epilogue(s, mica_matmul(s, a, numbers(s, MICA_F32, 3, (int64_t[]){3, 10, 14}, 2)));
}
/* Converted to another type, with a transposed operand and a scalar. */
static mica_array *turned(mica_scope *s)
{
    mica_array *y = mica_add(s, product(s, MICA_F32, 20, 30, 12), mica_transpose(s, matrix(s, MICA_F32, 30, 20, 4)));
    return mica_cast(s, mica_mul(s, y, mica_scalar(s, 3)), MICA_F16);
}
static mica_array *rms(mica_scope *s)
{
    return mica_silu(
        s, mica_rms_norm(s, matrix(s, MICA_F32, 5, 70, 1), numbers(s, MICA_F32, 1, (int64_t[]){70}, 2), 1e-5));
}
static mica_array *layer(mica_scope *s)
{
    mica_array *w = numbers(s, MICA_F16, 1, (int64_t[]){33}, 2), *b = numbers(s, MICA_F16, 1, (int64_t[]){33}, 3);
    return mica_layer_norm(s, matrix(s, MICA_F16, 6, 33, 1), w, b, 1e-5);
}
static mica_array *soft(mica_scope *s)
{
    return mica_mul(s, mica_softmax(s, matrix(s, MICA_F32, 4, 50, 1), 1), matrix(s, MICA_F32, 4, 50, 2));
}
static mica_array *log_sum(mica_scope *s)
{
    return mica_neg(s, mica_logsumexp(s, matrix(s, MICA_F32, 9, 50, 1), (int[]){1}, 1, false));
}
static mica_array *convolution(mica_scope *s)
{
    mica_array *x = numbers(s, MICA_F32, 4, (int64_t[]){2, 3, 9, 8}, 1);
    mica_array *w = numbers(s, MICA_F32, 4, (int64_t[]){5, 3, 3, 3}, 2);
    mica_array *bias = numbers(s, MICA_F32, 3, (int64_t[]){5, 1, 1}, 3);
    return mica_relu(s, mica_add(s, mica_conv2d(s, x, w, NULL), bias));
}
enum { ROWS = 24, COLS = 128 };

/* A matrix of arbitrary ternary codes, with the scale at the end. */
static mica_array *ternary(mica_scope *s, mica_array *x, mica_act act)
{
    static uint8_t bytes[ROWS * COLS / 4 + 32];
    const float scale = 0.37f;
    for (int i = 0; i < ROWS * COLS / 4; i++) bytes[i] = (uint8_t)((i * 37 + 11) % 3 * 0x15 + (i * 7 + 1) % 3 * 0x40);
    memcpy(bytes + ROWS * COLS / 4, &scale, sizeof scale);
    const int64_t n = sizeof bytes;
    const mica_quant w = {.struct_size = sizeof w,
                          .format = "I2_S",
                          .rows = ROWS,
                          .cols = COLS,
                          .data = mica_from_data(s, MICA_U8, 1, &n, bytes)};
    return mica_quant_matmul(s, x, &w, act);
}
static mica_array *packed(mica_scope *s, int64_t rows_of_x)
{
    return with_epilogue(s, ternary(s, matrix(s, MICA_F32, rows_of_x, COLS, 1), MICA_ACT_TOKEN));
}
static mica_array *packed_few(mica_scope *s) { return packed(s, 3); }
static mica_array *packed_many(mica_scope *s) { return packed(s, 11); }
/* No fusion: the integer kernel stores its results without an epilogue. */
static mica_array *integers(mica_scope *s)
{
    mica_array *a = mica_reshape(s, mica_arange(s, MICA_I32, 0, 60, 1), 2, (int64_t[]){6, 10});
    return mica_add(s, mica_matmul(s, a, mica_transpose(s, a)), mica_scalar(s, 7));
}

static const struct {
    const char *name;
    mica_array *(*build)(mica_scope *s);
    int dispatches;             /* of the family and the ops after it                    */
} cases[] = {{"tiles", tiles, 1},
             {"tiles of f16", tiles_f16, 1},
             {"tiles of bf16", tiles_bf16, 1},
             {"parts of k", parts_of_k, 2},
             {"beside", beside, 1},
             {"lines", lines, 1},
             {"batches", batches, 1},
             {"turned", turned, 1},
             {"rms norm", rms, 1},
             {"layer norm", layer, 1},
             {"softmax", soft, 1},
             {"log-sum-exp", log_sum, 1},
             {"convolution", convolution, 1},
             {"few rows", packed_few, 2},
             {"many rows", packed_many, 2},
             {"integers", integers, 2}};

/* ------------------------------------------------------------------ runs --- */

enum { MOST_BYTES = 1 << 16 };

/* Bytes of the result; 0: it failed. passes 0: all. */
static size_t result_on(const char *backend, uint32_t passes, size_t number, void *out, mica_dtype *dtype)
{
    mica_engine_options o;
    mica_engine *e = NULL;
    mica_engine_options_init(&o);
    o.backend = backend;
    if (passes) o.passes = passes;
    if (!EXPECT_MSG(mica_open(&o, &e) == MICA_OK, "%s", mica_last_error())) return 0;
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = cases[number].build(s);
    size_t n = 0;
    if (EXPECT_MSG(mica_eval(s, &y, 1) == MICA_OK, "%s", mica_last_error())) {
        n = mica_array_nbytes(y);
        *dtype = mica_array_dtype(y);
        EXPECT(n <= MOST_BYTES && mica_copy_out(y, out, n) == MICA_OK);
    }
    EXPECT_INT(stats_of(e).gpu_cpu_steps, 0);
    mica_scope_end(s);
    mica_close(e);
    return n;
}

TEST(bits_of_a_kernel_of_its_own)
{
    SKIP_WITHOUT_METAL();
    static char fused[MOST_BYTES], apart[MOST_BYTES], want[MOST_BYTES];
    for (size_t i = 0; i < COUNT(cases); i++) {
        mica_dtype dtype = MICA_F32;
        test_case("%s", cases[i].name);
        const size_t n = result_on("metal", 0, i, fused, &dtype);
        if (!EXPECT(n > 0) ||
            !EXPECT_INT(result_on("metal", MICA_PASS_ALL & ~(uint32_t)MICA_PASS_FUSE, i, apart, &dtype), n))
            continue;
        EXPECT(memcmp(fused, apart, n) == 0);
        if (!EXPECT_INT(result_on("ref", 0, i, want, &dtype), n)) continue;
        const double rtol = dtype == MICA_F32 ? 3e-6 : dtype == MICA_BF16 ? 8e-3 : 1e-3;
        for (int64_t k = 0; k < (int64_t)(n / mica_dtype_size(dtype)); k++) {
            const bool is_float = mica__is_float(dtype);
            const double a = is_float ? mica__get_f64(dtype, fused, k) : (double)mica__get_i64(dtype, fused, k);
            const double b = is_float ? mica__get_f64(dtype, want, k) : (double)mica__get_i64(dtype, want, k);
            if (!EXPECT_MSG(test_close(a, b, rtol, 10 * rtol), "element %d is %.9g, not %.9g", (int)k, a, b)) break;
        }
    }
}

/* The step of the family is the whole rest of the plan; else the plan's text has "epilogue apart". */
TEST(one_dispatch_less)
{
    SKIP_WITHOUT_METAL();
    for (size_t i = 0; i < COUNT(cases); i++) {
        static char text[1 << 16];
        mica_engine *e = open_on("metal");
        mica_scope *s = mica_scope_begin(e);
        mica_array *y = cases[i].build(s);
        test_case("%s", cases[i].name);
        EXPECT_MSG(mica_plan_text(s, &y, 1, MICA_DUMP_PLAN, text, sizeof text, NULL) == MICA_OK, "%s",
                   mica_last_error());
        EXPECT_INT(strstr(text, "[epilogue apart: ") != NULL, cases[i].build == integers);
        mica_plan_info info = {.struct_size = sizeof info};
        EXPECT_INT(mica_plan_query(s, &y, 1, &info), MICA_OK);
        const uint64_t before = stats_of(e).gpu_kernels;
        EXPECT_INT(mica_eval(s, &y, 1), MICA_OK);
        EXPECT_INT(stats_of(e).gpu_kernels - before, info.kernels - 1 + (uint64_t)cases[i].dispatches);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* Ops after a product that the CPU must run are a separate step: the product stays on the GPU, for which its scratch
 * was planned. After a product on the CPU they are fused there. */
static mica_array *wider(mica_scope *s) { return mica_cast(s, product(s, MICA_F16, 9, 35, 19), MICA_F64); }
static mica_array *wider_bf16(mica_scope *s) { return mica_cast(s, product(s, MICA_BF16, 9, 35, 19), MICA_F64); }
static mica_array *counted(mica_scope *s)
{
    mica_array *tenths = mica_reshape(s, mica_arange(s, MICA_F32, 0, 30, 0.1), 2, (int64_t[]){20, 15});
    return mica_cast(s, mica_add(s, product(s, MICA_F32, 20, 15, 12), tenths), MICA_F64);
}
static mica_array *wide(mica_scope *s)
{
    mica_array *y = mica_matmul(s, matrix(s, MICA_F64, 9, 19, 1), matrix(s, MICA_F64, 19, 35, 2));
    return mica_add(s, mica_exp(s, y), mica_scalar(s, 1));
}

TEST(cpu_ops_after_a_product)
{
    SKIP_WITHOUT_METAL();
    static const struct {
        const char *name, *step; /* in the plan's text */
        mica_array *(*build)(mica_scope *s);
    } rows[] = {{"f16 to f64", "family matmul  ->", wider},
                {"bf16 to f64", "family matmul  ->", wider_bf16},
                {"counts in doubles", "family matmul  ->", counted},
                {"f64 itself", "family matmul+exp+add  ->", wide}};
    mica_engine *metal = open_on("metal"), *ref = open_on("ref");
    for (size_t i = 0; i < COUNT(rows); i++) {
        static char text[1 << 16];
        mica_scope *s = mica_scope_begin(metal), *r = mica_scope_begin(ref);
        mica_array *y = rows[i].build(s), *want = rows[i].build(r);
        test_case("%s", rows[i].name);
        EXPECT_INT(mica_plan_text(s, &y, 1, MICA_DUMP_PLAN, text, sizeof text, NULL), MICA_OK);
        EXPECT_MSG(strstr(text, rows[i].step) && strstr(text, "[on the CPU: "), "no \"%s\" in %s", rows[i].step, text);
        if (EXPECT_MSG(mica_eval(s, &y, 1) == MICA_OK, "%s", mica_last_error()) &&
            EXPECT_INT(mica_eval(r, &want, 1), MICA_OK)) {
            const double *a = mica_data_f64(y), *b = mica_data_f64(want);
            for (int64_t k = 0; k < mica_array_size(y); k++)
                if (!EXPECT_CLOSE(a[k], b[k], 1e-2, 1e-2)) break;
        }
        mica_scope_end(s);
        mica_scope_end(r);
    }
    mica_close(metal);
    mica_close(ref);
}

/* ------------------------------------------------------ quantised once ----- */

typedef struct rounding_case {
    const char *name;
    int norm;                   /* 1 rms, 2 layer, 0 none                                */
    int64_t rows;
    mica_act act;
    bool odd;                   /* x has an infinity                                     */
    int more;                   /* dispatches minus steps: 1 if quantisation is separate */
} rounding_case;

static const rounding_case roundings[] = {
    {"rms norm, one row", 1, 1, MICA_ACT_TOKEN, false, 0}, {"rms norm, many rows", 1, 11, MICA_ACT_TOKEN, false, 0},
    {"layer norm", 2, 3, MICA_ACT_TOKEN, false, 0},        {"not finite", 1, 3, MICA_ACT_TOKEN, true, 0},
    {"no norm", 0, 3, MICA_ACT_TOKEN, false, 1},           {"in blocks", 1, 3, MICA_ACT_BLOCK256, false, 1},
};

enum { PRODUCTS = 3 };

/* Products of one x, followed by different functions so that CSE does not merge them. */
static bool products_on(const char *backend, const rounding_case *c, bool fuse, float *out, mica_plan_info *info,
                        uint64_t *dispatches)
{
    mica_engine_options o;
    mica_engine *e = NULL;
    mica_engine_options_init(&o);
    o.backend = backend;
    if (!fuse) o.passes = MICA_PASS_ALL & ~(uint32_t)MICA_PASS_FUSE;
    if (!EXPECT_MSG(mica_open(&o, &e) == MICA_OK, "%s", mica_last_error())) return false;
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = matrix(s, MICA_F32, c->rows, COLS, 1), *y[PRODUCTS];
    if (c->odd)
        x = mica_div(s, x, mica_abs(s, mica_sub(s, matrix(s, MICA_F32, c->rows, COLS, 1), mica_scalar(s, sinf(9)))));
    mica_array *w = numbers(s, MICA_F32, 1, (int64_t[]){COLS}, 2);
    if (c->norm == 1) x = mica_rms_norm(s, x, w, 1e-5);
    if (c->norm == 2) x = mica_layer_norm(s, x, w, numbers(s, MICA_F32, 1, (int64_t[]){COLS}, 3), 1e-5);
    y[0] = ternary(s, x, c->act);
    y[1] = mica_silu(s, ternary(s, x, c->act));
    y[2] = mica_add(s, ternary(s, x, c->act), mica_scalar(s, 1));
    for (int i = 0; i < PRODUCTS; i++) y[i] = mica_mul(s, y[i], mica_scalar(s, i + 1));
    *info = (mica_plan_info){.struct_size = sizeof *info};
    bool good = EXPECT_INT(mica_plan_query(s, y, PRODUCTS, info), MICA_OK);
    const uint64_t before = stats_of(e).gpu_kernels;
    good = good && EXPECT_MSG(mica_eval(s, y, PRODUCTS) == MICA_OK, "%s", mica_last_error());
    *dispatches = stats_of(e).gpu_kernels - before;
    EXPECT_INT(stats_of(e).gpu_cpu_steps, 0);
    for (int i = 0; good && i < PRODUCTS; i++)
        good =
            EXPECT_INT(mica_copy_out(y[i], out + i * c->rows * ROWS, (size_t)(c->rows * ROWS) * sizeof *out), MICA_OK);
    mica_scope_end(s);
    mica_close(e);
    return good;
}

TEST(rows_are_rounded_once)
{
    SKIP_WITHOUT_METAL();
    static float once[PRODUCTS * 11 * ROWS], each[PRODUCTS * 11 * ROWS];
    for (size_t i = 0; i < COUNT(roundings); i++) {
        const rounding_case *c = &roundings[i];
        mica_plan_info info, apart;
        uint64_t n, m;
        test_case("%s", c->name);
        if (!products_on("metal", c, true, once, &info, &n) || !products_on("metal", c, false, each, &apart, &m))
            continue;
        EXPECT(memcmp(once, each, (size_t)(PRODUCTS * c->rows * ROWS) * sizeof *once) == 0);
        EXPECT_INT(n, info.kernels + (uint64_t)c->more);
        EXPECT_INT(m, apart.kernels + PRODUCTS);
    }
}

/* -------------------------------------------------------------- no memory -- */

enum { FUSED_OUT = 4 };

/* A fused epilogue, a separate one, rows quantised by a norm, a reduction in two kernels. */
static void fused_graph(mica_scope *s, mica_array **out)
{
    mica_array *x =
        mica_rms_norm(s, matrix(s, MICA_F32, 3, COLS, 1), numbers(s, MICA_F32, 1, (int64_t[]){COLS}, 2), 1e-5);
    out[0] = mica_silu(s, ternary(s, x, MICA_ACT_TOKEN));
    out[1] = mica_add(s, ternary(s, x, MICA_ACT_TOKEN), mica_scalar(s, 1));
    out[2] = integers(s);
    out[3] = mica_sum(s, matrix(s, MICA_F32, 130, 130, 1), NULL, 0, false);
}

/* Live blocks without those of pipelines (two each), which are kept for the next plan. */
static int64_t blocks_alive(void)
{
    mica__pipeline_stats p;
    mica__pipeline_stats_get(&p);
    return mica__alloc_live() - 2 * (int64_t)p.alive;
}

/* Each allocation fails in turn: a status is returned, nothing leaks, and the next evaluation is correct. */
TEST(each_allocation_of_a_fused_plan_fails_once)
{
    SKIP_WITHOUT_METAL();
    float want = 0;
    int64_t live = 0;
    for (uint64_t n = 0, last = 1; n <= last; n++) { /* n = 0: no failure; creates the pipelines */
        mica_engine *e = open_on("metal");
        mica_array *out[FUSED_OUT];
        mica_scope *s = mica_scope_begin(e);
        const uint64_t before = mica__alloc_count();
        mica__alloc_fail_at(n);
        fused_graph(s, out);
        const mica_status status = mica_eval(s, out, FUSED_OUT);
        mica__alloc_fail_at(0);
        const uint64_t asked = mica__alloc_count() - before;
        last = asked > last ? asked : last;
        if (status != MICA_OK) EXPECT_INT(status, MICA_ERR_MEMORY);
        mica_scope_end(s);
        s = mica_scope_begin(e);
        fused_graph(s, out);
        float got = 0;
        if (EXPECT_MSG(mica_eval(s, out, FUSED_OUT) == MICA_OK, "allocation %d: %s", (int)n, mica_last_error()))
            got = mica_data_f32(out[0])[7] + mica_data_f32(out[1])[9] + mica_data_f32(out[3])[0];
        want = n == 0 ? got : want;
        if (!EXPECT_MSG(got == want, "allocation %d: %g, not %g", (int)n, (double)got, (double)want)) last = 0;
        mica_scope_end(s);
        mica_close(e);
        if (n == 0) live = blocks_alive();
        EXPECT_MSG(blocks_alive() == live, "allocation %d: %d blocks lost", (int)n, (int)(blocks_alive() - live));
    }
}
