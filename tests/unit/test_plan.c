/* The contents of plans: the number of kernels, how often a plan is made, which passes ran.
 *
 * runs: check */
#include <math.h>

#include "plan_graphs.h"

/* ---------------------------------------------------------------- fusion ---- */

typedef struct world {
    mica_engine *e;
    mica_scope *s;
    mica_array *a, *b, *c;   /* f32 (16, 32) */
    mica_array *w;           /* f32 (32, 32) */
    mica_array *bias;        /* f32 (32)     */
} world;

static world world_begin(uint32_t passes)
{
    mica_engine_options o = options_for("cpu", 1);
    o.passes = passes;
    world w = {.e = open_with(&o)};
    w.s = mica_scope_begin(w.e);
    w.a = count_up_2d(w.s, 16, 32);
    w.b = mica_random_normal(w.s, MICA_F32, SHAPE(16, 32), 1);
    w.c = mica_random_normal(w.s, MICA_F32, SHAPE(16, 32), 2);
    w.w = mica_random_normal(w.s, MICA_F32, SHAPE(32, 32), 3);
    w.bias = mica_random_normal(w.s, MICA_F32, SHAPE(32), 4);
    EXPECT_OK(mica_eval(w.s, ARRAYS(w.a, w.b, w.c, w.w, w.bias)));
    return w;
}

static void world_end(const world *w)
{
    mica_scope_end(w->s);
    mica_close(w->e);
}

/* The plan has, and the evaluation runs, this number of kernels. */
static void expect_kernels(const world *w, const char *name, mica_array *y, uint64_t want)
{
    test_case("%s", name);
    const uint64_t before = stats_of(w->e).kernels;
    const mica_plan_info info = info_of(w->s, &y, 1);
    EXPECT_INT(info.kernels, want);
    EXPECT_OK(mica_eval(w->s, &y, 1));
    EXPECT_INT(stats_of(w->e).kernels - before, want);
}

TEST(what_is_one_kernel)
{
    world w = world_begin(MICA_PASS_ALL);
    mica_scope *s = w.s;
    mica_array *a = w.a, *b = w.b, *c = w.c;
    expect_kernels(&w, "gelu(a*b+c)", mica_gelu(s, mica_add(s, mica_mul(s, a, b), c)), 1);
    expect_kernels(&w, "broadcast bias", mica_relu(s, mica_add(s, a, w.bias)), 1);
    expect_kernels(&w, "casts", mica_cast(s, mica_exp(s, mica_cast(s, a, MICA_F64)), MICA_F16), 1);
    expect_kernels(&w, "constants", mica_mul(s, mica_add(s, a, mica_scalar(s, 2)), mica_arange(s, MICA_F32, 0, 32, 1)),
                   1);
    expect_kernels(&w, "comparison and where", mica_where(s, mica_less(s, a, b), mica_neg(s, a), c), 1);
    expect_kernels(&w, "views before",
                   mica_exp(s, mica_flip(s, mica_transpose(s, mica_slice_axis(s, a, 0, 0, 8, 1)), 0)), 1);
    expect_kernels(&w, "views between",
                   mica_exp(s, mica_transpose(s, mica_flip(s, mica_transpose(s, mica_sin(s, a)), 1))), 1);
    expect_kernels(&w, "reshape between", mica_tanh(s, mica_reshape(s, mica_sin(s, a), SHAPE(8, 64))), 1);
    expect_kernels(&w, "a node used twice", mica_mul(s, mica_sin(s, a), mica_add(s, mica_sin(s, a), b)), 1);
    expect_kernels(&w, "sum of squares", mica_sum(s, mica_square(s, mica_sub(s, a, b)), (int[]){1}, 1, false), 1);
    expect_kernels(&w, "mean, then element-wise", mica_sqrt(s, mica_mean(s, mica_square(s, a), (int[]){1}, 1, false)),
                   1);
    expect_kernels(&w, "softmax", mica_softmax(s, a, -1), 1);
    expect_kernels(&w, "layer_norm", mica_layer_norm(s, a, NULL, NULL, 1e-5), 1);
    expect_kernels(&w, "layer_norm with weights", mica_layer_norm(s, a, w.bias, w.bias, 1e-5), 1);
    expect_kernels(&w, "rms_norm with weights", mica_rms_norm(s, a, w.bias, 1e-5), 1);
    expect_kernels(&w, "softmax, then element-wise", mica_add(s, mica_mul(s, mica_softmax(s, a, -1), b), c), 1);
    expect_kernels(&w, "logsumexp", mica_logsumexp(s, a, (int[]){1}, 1, false), 1);
    expect_kernels(&w, "softmax over another axis", mica_transpose(s, mica_softmax(s, mica_transpose(s, a), 0)), 1);
    expect_kernels(&w, "matmul, bias, activation", mica_gelu(s, mica_add(s, mica_matmul(s, a, w.w), w.bias)), 1);
    expect_kernels(&w, "matmul of transposed", mica_matmul(s, mica_transpose(s, w.w), mica_transpose(s, a)), 1);
    world_end(&w);
}

/* An operand counts once, however often it is read, and values that the kernel computes
 * do not count. So a kernel can have the maximum number of ops. */
TEST(repeated_operands_do_not_split_a_kernel)
{
    world w = world_begin(MICA_PASS_ALL);
    mica_array *y = w.a;
    for (int i = 0; i < 32; i++) y = mica_minimum(w.s, mica_add(w.s, y, w.b), w.c);
    expect_kernels(&w, "64 ops on three arrays", y, 1);
    y = w.a;
    for (int i = 0; i < 500; i++) y = mica_minimum(w.s, mica_add(w.s, y, w.b), w.c);
    expect_kernels(&w, "1,000 ops on three arrays", y, 16);
    mica_array *z = w.a;
    for (int i = 0; i < 80; i++) z = mica_maximum(w.s, z, count_up_2d(w.s, 16, 32));
    test_case("80 arrays");
    EXPECT_INT(info_of(w.s, &z, 1).kernels, 2); /* 64 operands each, including the result */
    world_end(&w);
}

/* The gradient of relu uses the result of relu, so its input need not be kept: bias and
 * relu stay the epilogue of their product. */
TEST(relu_stays_an_epilogue_under_a_gradient)
{
    world w = world_begin(MICA_PASS_ALL);
    mica_scope *s = w.s;
    mica_array *hidden = mica_relu(s, mica_add(s, mica_matmul(s, w.a, w.w), w.bias)), *grads[2];
    mica_array *loss = mica_sum(s, mica_mul(s, hidden, w.b), NULL, 0, false);
    CHECK_OK(mica_grad(s, loss, (mica_array *[]){w.w, w.bias}, 2, grads));
    char text[4096];
    CHECK_OK(mica_plan_text(s, ARRAYS(loss, grads[0], grads[1]), MICA_DUMP_PLAN, text, sizeof text, NULL));
    EXPECT_MSG(strstr(text, "matmul+add+relu"), "%s", text);
    world_end(&w);
}

TEST(what_needs_none)
{
    world w = world_begin(MICA_PASS_ALL);
    mica_scope *s = w.s;
    expect_kernels(&w, "a leaf", w.a, 0);
    expect_kernels(&w, "a view", mica_transpose(s, w.a), 0);
    expect_kernels(&w, "x * 1 / 1", mica_div(s, mica_mul(s, w.a, mica_scalar(s, 1)), mica_scalar(s, 1)), 0);
    expect_kernels(&w, "x - 0", mica_sub(s, w.a, mica_scalar(s, 0)), 0);
    expect_kernels(&w, "--x", mica_neg(s, mica_neg(s, w.a)), 0);
    expect_kernels(&w, "two transposes", mica_transpose(s, mica_transpose(s, w.a)), 0);
    world_end(&w);
}

TEST(several_results_of_one_group)
{
    world w = world_begin(MICA_PASS_ALL);
    mica_array *h = mica_sin(w.s, w.a), *y = mica_exp(w.s, h), *z = mica_neg(w.s, y);
    mica_array *out[] = {h, y, z};
    EXPECT_INT(info_of(w.s, out, 3).kernels, 1);
    EXPECT_OK(mica_eval(w.s, out, 3));
    for (int i = 0; i < 16 * 32; i += 37) {
        EXPECT_CLOSE(element(h, i), sinf((float)i), 1e-5, 1e-5);
        EXPECT_CLOSE(element(z, i), -expf(sinf((float)i)), 1e-5, 1e-5);
    }
    world_end(&w);
}

/* Fused and unfused, with each pass and without it: the same numbers. */
TEST(passes_change_kernels_not_results)
{
    enum { GRAPHS = 40 };
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        float *want[MAX_RESULTS] = {NULL};
        uint64_t kernels_all = 0, kernels_none = 0;
        for (int off = -2; off < 9; off++) { /* all passes, none, all but one, ref */
            if (off == 8 && seed % 3 == 0) continue; /* gradients of nearly equal maxima depend on the last bit */
            test_case("seed %d, %s %d", (int)seed, off < 0 ? "set" : off == 8 ? "ref" : "without pass", off);
            mica_engine_options o = options_for(off == 8 ? "ref" : "cpu", 2);
            o.passes = off == -2 ? MICA_PASS_ALL : off == -1 ? 0 : MICA_PASS_ALL & ~(1u << off);
            mica_engine *e = open_with(&o);
            mica_scope *s = mica_scope_begin(e);
            mica_array *results[MAX_RESULTS];
            size_t n = 0;
            CHECK_OK(random_graph(s, seed, 30, results, &n));
            CHECK_OK(mica_eval(s, results, n));
            if (off == -2) kernels_all = stats_of(e).kernels;
            if (off == -1) kernels_none = stats_of(e).kernels;
            for (size_t i = 0; i < n; i++) {
                const size_t size = mica_array_nbytes(results[i]);
                float *got = malloc(size + 1);
                CHECK_OK(mica_copy_out(results[i], got, size));
                if (!want[i]) {
                    want[i] = got;
                    continue;
                }
                for (size_t k = 0; k < size / sizeof *got; k++)
                    if (!(got[k] == want[i][k] || (got[k] != got[k] && want[i][k] != want[i][k]) ||
                          test_close((double)got[k], (double)want[i][k], 2e-4, 1e-4))) {
                        EXPECT_MSG(false, "element %zu of result %zu is %g, not %g", k, i, (double)got[k],
                                   (double)want[i][k]);
                        break;
                    }
                free(got);
            }
            mica_scope_end(s);
            mica_close(e);
        }
        EXPECT(kernels_all <= kernels_none);
        for (size_t i = 0; i < MAX_RESULTS; i++) free(want[i]);
    }
}

/* Every kind of dump of any graph. */
TEST(random_graphs_have_text)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        mica_engine *e = open_engine(seed % 2 ? "cpu" : "ref");
        mica_scope *s = mica_scope_begin(e);
        mica_array *results[MAX_RESULTS];
        size_t n = 0;
        CHECK_OK(random_graph(s, seed, 20, results, &n));
        for (int what = MICA_DUMP_GRAPH; what <= MICA_DUMP_MSL; what++) {
            size_t length = 0, again = 0;
            CHECK_OK(mica_plan_text(s, results, n, (mica_dump)what, NULL, 0, &length));
            char *text = malloc(length + 1);
            CHECK_OK(mica_plan_text(s, results, n, (mica_dump)what, text, length + 1, &again));
            EXPECT(length == again && strlen(text) == length);
            free(text);
        }
        mica_scope_end(s);
        mica_close(e);
    }
}

/* ----------------------------------------------------------------- cache ---- */

static void run_kind(mica_engine *e, int kind)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 8, 1);
    for (int i = 0; i <= kind; i++) x = mica_sin(s, x);
    EXPECT_OK(mica_eval(s, &x, 1));
    mica_scope_end(s);
}

#define EXPECT_CACHE(e, want_hits, want_misses, want_evictions, want_cached) \
    do {                                                                     \
        const mica_stats s_ = stats_of(e);                                   \
        EXPECT_INT(s_.plan_hits, want_hits);                                 \
        EXPECT_INT(s_.plan_misses, want_misses);                             \
        EXPECT_INT(s_.plan_evictions, want_evictions);                       \
        EXPECT_INT(s_.plans_cached, want_cached);                            \
    } while (0)

TEST(script_of_plan_hits_misses_and_evictions)
{
    mica_engine_options o = options_for("cpu", 1);
    o.plan_cache_limit = 2;
    mica_engine *e = open_with(&o);
    EXPECT_CACHE(e, 0, 0, 0, 0);
    run_kind(e, 0);
    EXPECT_CACHE(e, 0, 1, 0, 1);
    run_kind(e, 0);
    EXPECT_CACHE(e, 1, 1, 0, 1);
    run_kind(e, 1);
    EXPECT_CACHE(e, 1, 2, 0, 2);
    run_kind(e, 0); /* 0 is now the newest */
    EXPECT_CACHE(e, 2, 2, 0, 2);
    run_kind(e, 2); /* 1 is evicted */
    EXPECT_CACHE(e, 2, 3, 1, 2);
    run_kind(e, 0);
    EXPECT_CACHE(e, 3, 3, 1, 2);
    run_kind(e, 1); /* 2 is evicted */
    EXPECT_CACHE(e, 3, 4, 2, 2);
    run_kind(e, 1);
    run_kind(e, 0);
    EXPECT_CACHE(e, 5, 4, 2, 2);
    run_kind(e, 2);
    EXPECT_CACHE(e, 5, 5, 3, 2);
    mica_close(e);

    o.plan_cache_limit = 0; /* one is always needed */
    e = open_with(&o);
    run_kind(e, 0);
    run_kind(e, 1);
    run_kind(e, 0);
    EXPECT_CACHE(e, 0, 3, 2, 1);
    mica_close(e);
}

/* Which graphs have the same plan, and which do not. */
TEST(plans_are_keyed_by_structure)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    float data[2][6] = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
    mica_array *x = mica_from_data(s, MICA_F32, SHAPE(2, 3), data[0]),
               *y = mica_from_data(s, MICA_F32, SHAPE(2, 3), data[1]);
    mica_array *t = mica_transpose(s, mica_from_data(s, MICA_F32, SHAPE(3, 2), data[0]));
    CHECK_OK(mica_eval(s, &t, 1));
    mica_array *k = mica_from_data(s, MICA_I32, SHAPE(2, 3), data[0]);
    const struct {
        const char *name;
        mica_array *graph;
        bool known;
    } cases[] = {
        {"first", mica_exp(s, mica_add(s, x, y)), false},
        {"again", mica_exp(s, mica_add(s, x, y)), true},
        {"other data", mica_exp(s, mica_add(s, y, x)), true},
        {"one leaf twice", mica_exp(s, mica_add(s, x, x)), false},
        {"another op", mica_sin(s, mica_add(s, x, y)), false},
        {"another layout", mica_exp(s, mica_add(s, x, t)), false},
        {"another dtype", mica_exp(s, mica_add(s, x, k)), false},
        {"a constant", mica_exp(s, mica_add(s, x, mica_scalar(s, 1))), false},
        {"another constant", mica_exp(s, mica_add(s, x, mica_scalar(s, 2))), false},
        {"the constant again", mica_exp(s, mica_add(s, x, mica_scalar(s, 2))), true},
        {"leaky 0.1", mica_leaky_relu(s, x, 0.1), false},
        {"leaky 0.2", mica_leaky_relu(s, x, 0.2), false},
        {"sum over 0", mica_sum(s, x, (int[]){0}, 1, false), false},
        {"sum over 1", mica_sum(s, x, (int[]){1}, 1, false), false},
        {"sum over 1, kept", mica_sum(s, x, (int[]){1}, 1, true), false},
        {"sum over -1", mica_sum(s, x, (int[]){-1}, 1, false), true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s", cases[i].name);
        const mica_stats before = stats_of(e);
        mica_array *a = cases[i].graph;
        CHECK_OK(mica_eval(s, &a, 1));
        EXPECT_INT(stats_of(e).plan_hits - before.plan_hits, cases[i].known);
        EXPECT_INT(stats_of(e).plan_misses - before.plan_misses, !cases[i].known);
    }
    mica_scope_end(s);
    mica_close(e);
}

/* A queried plan is the plan that runs. */
TEST(asking_for_a_plan_makes_it)
{
    world w = world_begin(MICA_PASS_ALL);
    mica_array *y = mica_exp(w.s, mica_add(w.s, w.a, w.b));
    const mica_stats before = stats_of(w.e);
    const mica_plan_info info = info_of(w.s, &y, 1);
    EXPECT(!mica_array_is_ready(y));
    EXPECT_INT(stats_of(w.e).kernels, before.kernels);
    EXPECT_INT(stats_of(w.e).plan_misses - before.plan_misses, 1);
    EXPECT_OK(mica_eval(w.s, &y, 1));
    EXPECT_INT(stats_of(w.e).plan_misses - before.plan_misses, 1);
    EXPECT_INT(stats_of(w.e).plan_hits - before.plan_hits, 1);
    EXPECT_INT(info.kernels, 1);
    EXPECT_INT(info.nodes, 2);
    EXPECT_INT(info.bytes_read, 2 * 16 * 32 * 4);
    EXPECT_INT(info.bytes_written, 16 * 32 * 4);
    EXPECT_INT(info.output_bytes, 16 * 32 * 4);
    EXPECT_INT(info.arena_bytes, 0);
    EXPECT_INT(info.peak_bytes, info.output_bytes);
    EXPECT(info.flops >= 2 * 16 * 32);
    world_end(&w);
}
