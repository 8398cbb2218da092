/* The Metal backend as a whole: a graph gives the results of ref, parts that a GPU cannot compute
 * run on the CPU in between and are counted, a replay allocates nothing, and nothing leaks. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "array/dtype.h"
#include "base/alloc.h"
#include "metal_kit.h"

static mica_array *numbers(mica_scope *s, int64_t rows, int64_t cols, double from)
{
    mica_array *x = mica_arange(s, MICA_F32, 0, (double)(rows * cols), 1);
    x = mica_sin(s, mica_add(s, x, mica_scalar(s, from)));
    return mica_reshape(s, x, 2, (int64_t[]){rows, cols});
}

typedef size_t (*graph_fn)(mica_scope *s, mica_array **out);

static size_t fused(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, 20, 15, 1), *y = numbers(s, 20, 15, 2);
    out[0] = mica_mul(s, mica_add(s, x, y), mica_scalar(s, 0.5));
    out[1] = mica_gelu(s, mica_fma(s, x, y, x));
    out[2] = mica_cast(s, mica_mul(s, x, mica_scalar(s, 100)), MICA_I8);
    out[3] = mica_exp(s, mica_cast(s, y, MICA_F16));
    out[4] = mica_add(s, x, mica_transpose(s, numbers(s, 15, 20, 3)));
    return 5;
}

static size_t reduced(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, 7, 200, 1);
    out[0] = mica_sum(s, x, (int[]){1}, 1, false);
    out[1] = mica_max(s, x, (int[]){0}, 1, false);
    out[2] = mica_mean(s, mica_square(s, x), NULL, 0, false);
    out[3] = mica_sum(s, mica_cast(s, mica_mul(s, x, mica_scalar(s, 1000)), MICA_I32), (int[]){1}, 1, true);
    out[4] = mica_any(s, mica_greater(s, x, mica_scalar(s, 0.9999)), (int[]){1}, 1, false);
    return 5;
}

/* f64 ops and families between dispatches: each change of device waits. */
static size_t mixed(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, 16, 16, 1), *w = mica_exp(s, numbers(s, 16, 16, 5));
    mica_array *y = mica_relu(s, mica_matmul(s, mica_add(s, x, w), mica_tanh(s, w)));
    mica_array *d = mica_sqrt(s, mica_add(s, mica_cast(s, mica_square(s, y), MICA_F64), mica_scalar(s, 1)));
    out[0] = mica_softmax(s, y, 1);
    out[1] = mica_mul(s, mica_cast(s, d, MICA_F32), x);
    out[2] = mica_take(s, y, mica_cast(s, mica_argmax(s, y, 1, false), MICA_I32), 0);
    out[3] = mica_cumsum(s, mica_neg(s, x), 1);
    return 4;
}

static mica_status turn(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                        mica_array **y_out, void *user)
{
    (void)user;
    carry_out[0] = mica_tanh(s, mica_add(s, mica_mul(s, carry[0], mica_scalar(s, 0.7)), x[0]));
    y_out[0] = mica_mul(s, mica_softmax(s, carry_out[0], 0), mica_scalar(s, 2));
    return mica_scope_status(s);
}

/* A loop in which each step depends on the previous one, with a part on the CPU. */
static size_t looped(mica_scope *s, mica_array **out)
{
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    mica_array *x = numbers(s, 9, 33, 1), *h = mica_sum(s, numbers(s, 2, 33, 7), (int[]){0}, 1, false);
    mica_scan(s, turn, NULL, &o, &h, &x, &out[0], &out[1]);
    out[2] = mica_add(s, out[0], mica_max(s, out[1], (int[]){0}, 1, false));
    return 3;
}

static size_t updated(mica_scope *s, mica_array **out)
{
    mica_array *state = mica_state(s, MICA_F32, 2, (int64_t[]){8, 5});
    mica_array *two = mica_cast(s, mica_scalar(s, 2), MICA_I32);
    mica_array *now = mica_update(s, state, numbers(s, 3, 5, 1), two, 0);
    out[0] = mica_mul(s, now, mica_scalar(s, 3));
    return 1;
}

/* Functions that differ for bool and for integers. */
static size_t integers(mica_scope *s, mica_array **out)
{
    static const bool a[] = {false, false, true, true}, b[] = {false, true, false, true};
    static const int64_t large[] = {(1ll << 40) + 1, -(1ll << 62) - 12345, 7, 0};
    const int64_t four = 4;
    mica_array *x = mica_from_data(s, MICA_BOOL, 1, &four, a), *y = mica_from_data(s, MICA_BOOL, 1, &four, b);
    mica_array *i = mica_arange(s, MICA_I32, -2, 2, 1);
    out[0] = mica_bitwise_not(s, x);
    out[1] = mica_floor_div(s, x, y);
    out[2] = mica_mod(s, x, y);
    out[3] = mica_pow(s, x, y);
    out[4] = mica_pow(s, mica_fma(s, i, i, mica_sub(s, i, i)), i);
    out[5] = mica_cast(s, mica_cast(s, mica_from_data(s, MICA_I64, 1, &four, large), MICA_BF16), MICA_F32);
    out[6] = mica_add(s, mica_maximum(s, mica_abs(s, i), mica_add(s, i, mica_scalar(s, 1))),
                      mica_floor_div(s, i, mica_minimum(s, i, mica_scalar(s, -1))));
    mica_array *f = mica_cast(s, i, MICA_F32);
    out[7] = mica_add(s, mica_maximum(s, f, mica_neg(s, f)), mica_minimum(s, f, mica_scalar(s, 0.5)));
    return 8;
}

/* Intervals with few numbers, where values that round out of the interval are moved back; also far tails. */
static size_t drawn(mica_scope *s, mica_array **out)
{
    const int64_t n = 100;
    out[0] = mica_random_uniform(s, MICA_F32, 1, &n, 1, 1 + 0x1p-22, 3);
    out[1] = mica_random_uniform(s, MICA_F16, 1, &n, 1.0002, 1 + 0x1p-9, 4);
    out[2] = mica_random_uniform(s, MICA_BF16, 1, &n, -1 - 0x1p-6, -1, 5);
    out[3] = mica_random_truncated_normal(s, MICA_F32, 1, &n, 6.5, 9, 6);
    out[4] = mica_random_truncated_normal(s, MICA_F16, 1, &n, -9, -6.5, 7);
    out[5] = mica_random_truncated_normal(s, MICA_F32, 1, &n, 30, 31, 8);
    out[6] = mica_random_truncated_normal(s, MICA_F32, 1, &n, -INFINITY, -8, 9);
    out[7] = mica_random_truncated_normal(s, MICA_BF16, 1, &n, 100, 103, 10);
    return 8;
}

static const struct {
    const char *name;
    graph_fn build;
} graphs[] = {{"fused", fused},     {"reduced", reduced},   {"mixed", mixed}, {"looped", looped},
              {"updated", updated}, {"integers", integers}, {"drawn", drawn}};

enum { MAX_OUT = 8 };

static double element(mica_dtype dtype, const void *data, int64_t i)
{
    return mica__is_float(dtype) ? mica__get_f64(dtype, data, i) : (double)mica__get_i64(dtype, data, i);
}

static void expect_same(mica_array *got, mica_array *want)
{
    const mica_dtype dtype = mica_array_dtype(want);
    const size_t nbytes = mica_array_nbytes(want);
    CHECK_INT(mica_array_nbytes(got), nbytes);
    CHECK_INT(mica_array_dtype(got), dtype);
    void *a = malloc(nbytes), *b = malloc(nbytes);
    if (EXPECT(a && b && mica_copy_out(got, a, nbytes) == MICA_OK && mica_copy_out(want, b, nbytes) == MICA_OK)) {
        const double rtol = dtype == MICA_F16 ? 1e-3 : 3e-6;
        for (int64_t i = 0; i < mica_array_size(want); i++) {
            const double x = element(dtype, a, i), y = element(dtype, b, i);
            if (!EXPECT_MSG(test_close(x, y, rtol, 1e-5), "element %d is %.9g, not %.9g", (int)i, x, y)) break;
        }
    }
    free(a);
    free(b);
}

/* All results of a graph from one engine, as kept arrays. */
static size_t evaluate(mica_engine *e, graph_fn build, mica_array **out)
{
    mica_scope *s = mica_scope_begin(e);
    const size_t n = build(s, out);
    EXPECT_MSG(mica_eval(s, out, n) == MICA_OK, "%s", mica_last_error());
    for (size_t i = 0; i < n; i++) mica_keep(out[i]);
    mica_scope_end(s);
    return n;
}

static void drop_all(mica_array **list, size_t n)
{
    for (size_t i = 0; i < n; i++) mica_drop(list[i]);
}

TEST(a_graph_gives_what_ref_gives)
{
    SKIP_WITHOUT_METAL();
    mica_engine *metal = open_on("metal"), *ref = open_on("ref");
    for (size_t g = 0; g < COUNT(graphs); g++) {
        mica_array *got[MAX_OUT], *want[MAX_OUT];
        test_case("%s", graphs[g].name);
        const size_t n = evaluate(metal, graphs[g].build, got);
        evaluate(ref, graphs[g].build, want);
        for (size_t i = 0; i < n; i++) expect_same(got[i], want[i]);
        drop_all(got, n);
        drop_all(want, n);
    }
    mica_close(metal);
    mica_close(ref);
}

/* A position that is not finite makes its row NaN, and no other row. */
TEST(a_turn_by_infinity)
{
    SKIP_WITHOUT_METAL();
    static const float at[] = {1, INFINITY, 3, NAN};
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_rope_options o;
    mica_rope_options_init(&o);
    mica_array *y = mica_rope(s, numbers(s, 4, 8, 1), mica_from_data(s, MICA_F32, 1, (int64_t[]){4}, at), &o);
    CHECK_INT(mica_eval(s, &y, 1), MICA_OK);
    EXPECT_INT(stats_of(e).gpu_cpu_steps, 0); /* its table is f64, which the kernel computes with integers */
    for (int i = 0; i < 32; i++)
        EXPECT_MSG(isnan(mica_data_f32(y)[i]) == !isfinite(at[i / 8]), "element %d is %g", i,
                   (double)mica_data_f32(y)[i]);
    mica_scope_end(s);
    mica_close(e);
}

/* Indices are checked on the GPU. The first of several invalid ones is reported, with the error
 * message of the CPU, and the next evaluation works. */
static mica_status take_at(mica_engine *e, mica_dtype dtype, int64_t n, int64_t bad, int64_t value, char *said,
                           size_t cap)
{
    mica_scope *s = mica_scope_begin(e);
    int64_t *index = malloc((size_t)n * sizeof *index);
    for (int64_t i = 0; i < n; i++) index[i] = i % 40 - (dtype == MICA_U64 ? 0 : 20);
    for (int64_t i = bad; bad >= 0 && i < n; i += 7) index[i] = i == bad ? value : 1000 + i;
    mica_array *at = mica_cast(s, mica_from_data(s, MICA_I64, 1, &n, index), dtype);
    mica_array *twice = mica_add(s, at, mica_cast(s, mica_scalar(s, 0), dtype));
    mica_array *y = mica_take_along_axis(s, mica_arange(s, MICA_F32, 0, 40, 1), twice, 0);
    const mica_status status = mica_eval(s, &y, 1);
    snprintf(said, cap, "%s", status == MICA_OK ? "" : mica_last_error());
    if (status == MICA_OK)
        for (int64_t i = 0; i < n; i++)
            if (!EXPECT_CLOSE(mica_data_f32(y)[i], (index[i] + 40) % 40, 0, 0)) break;
    mica_scope_end(s);
    free(index);
    return status;
}

TEST(indices_are_checked)
{
    static const struct {
        mica_dtype dtype;
        int64_t n, bad, value;
    } rows_of[] = {{MICA_I32, 5, -1, 0},      {MICA_I64, 700, -1, 0},     {MICA_I32, 700, 3, 40},
                   {MICA_I64, 700, 699, -41}, {MICA_I64, 3000, 300, -50}, {MICA_U64, 300, 10, -1},
                   {MICA_I8, 9, 0, 100},      {MICA_U64, 300, -1, 0}};
    SKIP_WITHOUT_METAL();
    mica_engine *metal = open_on("metal"), *cpu = open_on("cpu");
    for (size_t i = 0; i < COUNT(rows_of); i++) {
        char got[200], want[200];
        test_case("%d indices of dtype %d, the bad one at %d", (int)rows_of[i].n, (int)rows_of[i].dtype,
                  (int)rows_of[i].bad);
        const mica_status status =
            take_at(metal, rows_of[i].dtype, rows_of[i].n, rows_of[i].bad, rows_of[i].value, got, sizeof got);
        EXPECT_INT(status, rows_of[i].bad < 0 ? MICA_OK : MICA_ERR_INDEX);
        EXPECT_INT(take_at(cpu, rows_of[i].dtype, rows_of[i].n, rows_of[i].bad, rows_of[i].value, want, sizeof want),
                   status);
        EXPECT_STR(got, want);
    }
    EXPECT_INT(stats_of(metal).gpu_cpu_steps, 0);
    mica_close(metal);
    mica_close(cpu);
}

/* A kernel with many registers may allow fewer threads per threadgroup than the device reports.
 * Threadgroups become smaller if possible; else the CPU runs the step, and the plan's text has the numbers. */
TEST(pipelines_with_few_threads)
{
    static const char *const most[] = {"32", "64", "96", "160", "832"};
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    mica_engine *ref = open_on("ref");
    for (size_t m = 0; m < COUNT(most); m++) {
        mica__pipeline_trim();
        setenv("SM_MAXTHREADS", most[m], 1);
        mica_engine *metal = open_on("metal");
        for (size_t g = 0; g < COUNT(graphs); g++) {
            mica_array *got[MAX_OUT], *want[MAX_OUT];
            test_case("%s with %s threads", graphs[g].name, most[m]);
            const size_t n = evaluate(metal, graphs[g].build, got);
            evaluate(ref, graphs[g].build, want);
            for (size_t i = 0; i < n; i++) expect_same(got[i], want[i]);
            drop_all(got, n);
            drop_all(want, n);
        }
        EXPECT(stats_of(metal).gpu_kernels > 0);
        mica_close(metal);
    }
    unsetenv("SM_MAXTHREADS");
    mica__pipeline_trim(); /* otherwise the next test would use them */
    mica_close(ref);
}

static void expect_refused(mica_engine *e, mica_scope *s, mica_array *y, const char *why)
{
    char text[8192];
    const uint64_t before = stats_of(e).gpu_cpu_steps;
    EXPECT_INT(mica_plan_text(s, &y, 1, MICA_DUMP_PLAN, text, sizeof text, NULL), MICA_OK);
    EXPECT_MSG(strstr(text, why), "no \"%s\" in\n%s", why, text);
    EXPECT_MSG(mica_eval(s, &y, 1) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(stats_of(e).gpu_cpu_steps, before + 1);
}

/* A convolution has a fixed threadgroup size; no kernel has less than a simdgroup. */
TEST(few_threads_are_reported)
{
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    const char *why;
    mica__gpu_limits *limits = (mica__gpu_limits *)&mica__metal_get(&why)->limits;
    mica__pipeline_trim();
    setenv("SM_MAXTHREADS", "32", 1);
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_array *image = mica_reshape(s, numbers(s, 8, 64, 1), 4, (int64_t[]){1, 8, 8, 8});
    mica_array *filter = mica_reshape(s, numbers(s, 8, 72, 1), 4, (int64_t[]){8, 8, 3, 3});
    expect_refused(e, s, mica_conv2d(s, image, filter, NULL),
                   "[on the CPU: conv_tile_32x32 wants 128 threads in a group, may have 32]");
    limits->simd_width = 64;
    expect_refused(e, s, mica_softmax(s, numbers(s, 3, 700, 1), 1),
                   "[on the CPU: softmax_rows wants 192 threads in a group, may have 32]");
    mica_scope_end(s);
    mica_close(e);
    limits->simd_width = 32;
    unsetenv("SM_MAXTHREADS");
    mica__pipeline_trim();
}

TEST(cpu_steps_are_reported)
{
    SKIP_WITHOUT_METAL();
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    char text[4096];
    mica_array *x = mica_cast(s, mica_exp(s, numbers(s, 4, 4, 1)), MICA_F64);
    mica_array *y = mica_cast(s, mica_sqrt(s, x), MICA_F32);
    EXPECT_INT(mica_plan_text(s, &y, 1, MICA_DUMP_PLAN, text, sizeof text, NULL), MICA_OK);
    EXPECT_MSG(strstr(text, "[on the CPU: Metal has no f64]"), "%s", text);
    EXPECT_INT(mica_eval(s, &y, 1), MICA_OK);
    const mica_stats stats = stats_of(e);
    EXPECT(stats.gpu_cpu_steps >= 1);
    EXPECT_STR(mica_engine_backend(e), "metal");
    mica_scope_end(s);
    mica_close(e);
}

TEST(a_replay_allocates_and_compiles_nothing)
{
    SKIP_WITHOUT_METAL();
    mica_engine *e = open_on("metal");
    for (size_t g = 0; g < COUNT(graphs); g++) {
        test_case("%s", graphs[g].name);
        uint64_t count = 0;
        mica_stats before = {0};
        for (int turn_number = 0; turn_number < 4; turn_number++) {
            mica_array *out[MAX_OUT];
            mica_scope *s = mica_scope_begin(e);
            const size_t n = graphs[g].build(s, out);
            count = mica__alloc_count();
            before = stats_of(e);
            EXPECT_INT(mica_eval(s, out, n), MICA_OK);
            count = mica__alloc_count() - count;
            mica_scope_end(s);
        }
        const mica_stats after = stats_of(e);
        EXPECT_INT(count, 0);
        EXPECT_INT(after.gpu_compiles, before.gpu_compiles);
        EXPECT(after.gpu_kernels > before.gpu_kernels && after.gpu_commands > before.gpu_commands);
    }
    mica_close(e);
}

/* The order of a threadgroup's sum depends on sizes only: equal bits in each run. */
TEST(the_same_bits_each_time)
{
    SKIP_WITHOUT_METAL();
    mica_engine *e = open_on("metal");
    mica_array *first[MAX_OUT], *again[MAX_OUT];
    const size_t n = evaluate(e, reduced, first);
    evaluate(e, reduced, again);
    for (size_t i = 0; i < n; i++) {
        char a[4096], b[4096];
        const size_t nbytes = mica_array_nbytes(first[i]);
        CHECK(nbytes <= sizeof a && mica_copy_out(first[i], a, nbytes) == MICA_OK &&
              mica_copy_out(again[i], b, nbytes) == MICA_OK);
        EXPECT(memcmp(a, b, nbytes) == 0);
    }
    drop_all(first, n);
    drop_all(again, n);
    mica_close(e);
}

typedef struct worker {
    mica_engine *engine;
    mica_array *out[MAX_OUT];
    size_t n;
} worker;

static void *worker_main(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < 5; i++) {
        if (i > 0) drop_all(w->out, w->n);
        w->n = evaluate(w->engine, mixed, w->out);
    }
    return NULL;
}

TEST(several_threads_at_once)
{
    SKIP_WITHOUT_METAL();
    enum { WORKERS = 4 };
    mica_engine *e = open_on("metal"), *ref = open_on("ref");
    mica_array *want[MAX_OUT];
    worker w[WORKERS];
    pthread_t thread[WORKERS];
    const size_t n = evaluate(ref, mixed, want);
    for (int i = 0; i < WORKERS; i++) {
        w[i] = (worker){.engine = e};
        CHECK_INT(pthread_create(&thread[i], NULL, worker_main, &w[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK_INT(pthread_join(thread[i], NULL), 0);
        for (size_t k = 0; k < n; k++) expect_same(w[i].out[k], want[k]);
        drop_all(w[i].out, w[i].n);
    }
    drop_all(want, n);
    mica_close(e);
    mica_close(ref);
}

TEST(an_event_can_be_waited_for)
{
    SKIP_WITHOUT_METAL();
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_event *event = NULL;
    mica_array *out[MAX_OUT];
    const size_t n = mixed(s, out);
    CHECK_INT(mica_eval_async(s, out, n, &event), MICA_OK);
    EXPECT_INT(mica_wait(event), MICA_OK);
    EXPECT(mica_data_f32(out[0]) != NULL);
    mica_event_free(event);
    mica_scope_end(s);
    mica_close(e);
}

/* Queued evaluations: the next one is encoded while the GPU runs the previous one. One reads a
 * state and the next writes it: the first must read the old values. */
TEST(evaluations_overlap)
{
    SKIP_WITHOUT_METAL();
    enum { PAIRS = 4, TRIES = 200 };
    mica_engine *e = open_on("metal");
    for (int try = 0; try < TRIES && (try == 0 || stats_of(e).gpu_overlaps == 0); try++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_state(s, MICA_F32, 1, (int64_t[]){4096}), *out[PAIRS];
        mica_event *event[2 * PAIRS] = {NULL};
        CHECK_INT(mica_eval(s, &state, 1), MICA_OK);
        for (int i = 0; i < PAIRS; i++) {
            out[i] = mica_sum(s, mica_sqrt(s, mica_square(s, state)), NULL, 0, false);
            CHECK_MSG(mica_eval_async(s, &out[i], 1, &event[2 * i]) == MICA_OK, "%s", mica_last_error());
            mica_array *from = mica_full_i64(s, MICA_I32, 0, NULL, 0);
            state = mica_update(s, state, mica_full(s, MICA_F32, 1, (int64_t[]){4096}, i + 1), from, 0);
            CHECK_MSG(mica_eval_async(s, &state, 1, &event[2 * i + 1]) == MICA_OK, "%s", mica_last_error());
        }
        for (int i = 0; i < 2 * PAIRS; i++) {
            EXPECT_MSG(mica_wait(event[i]) == MICA_OK, "%s", mica_last_error());
            mica_event_free(event[i]);
        }
        for (int i = 0; i < PAIRS; i++) EXPECT_CLOSE(mica_data_f32(out[i])[0], 4096 * i, 0, 0);
        mica_scope_end(s);
    }
    EXPECT_MSG(stats_of(e).gpu_overlaps > 0, "none of %d tries", TRIES);
    mica_close(e);
}

/* One of the queued evaluations fails: its event reports it, later ones are not affected. */
TEST(one_of_the_queued_fails)
{
    SKIP_WITHOUT_METAL();
    if (!inject(NULL)) SKIP("not softmetal");
    enum { QUEUED = 5 };
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_array *out[QUEUED];
    mica_event *event[QUEUED] = {NULL};
    int failed = 0;
    inject("command=2");
    for (int i = 0; i < QUEUED; i++) {
        out[i] = mica_sum(s, mica_exp(s, mica_full(s, MICA_F32, 1, (int64_t[]){100 + i}, 0)), NULL, 0, false);
        CHECK_INT(mica_eval_async(s, &out[i], 1, &event[i]), MICA_OK);
    }
    for (int i = 0; i < QUEUED; i++) {
        const mica_status status = mica_wait(event[i]);
        failed += status != MICA_OK;
        if (status == MICA_OK) EXPECT_CLOSE(mica_data_f32(out[i])[0], 100 + i, 0, 0);
        else EXPECT_INT(status, MICA_ERR_DEVICE);
        mica_event_free(event[i]);
    }
    inject(NULL);
    EXPECT_INT(failed, 1);
    mica_scope_end(s);
    mica_close(e);
}

/* Caller memory at any offset in a page, and arrays that outlive the engine. */
TEST(memory_is_seen_where_it_is)
{
    SKIP_WITHOUT_METAL();
    const int buffers = objects_alive("MTLBuffer");
    static float given[3000];
    for (int i = 0; i < 3000; i++) given[i] = (float)i;
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_wrap(s, MICA_F32, 1, (int64_t[]){2000}, NULL, given + 7, NULL, NULL);
    mica_array *y = mica_mul(s, mica_flip(s, x, 0), mica_scalar(s, 2));
    CHECK_INT(mica_eval(s, &y, 1), MICA_OK);
    EXPECT_CLOSE(mica_data_f32(y)[0], 2 * 2006, 0, 0);
    EXPECT_CLOSE(mica_data_f32(y)[1999], 2 * 7, 0, 0);
    EXPECT_INT(stats_of(e).copies, 0);
    mica_keep(y);
    mica_scope_end(s);
    mica_close(e);
    EXPECT_CLOSE(mica_data_f32(y)[0], 2 * 2006, 0, 0);
    mica_drop(y);
    /* one buffer, used for arrays without elements, remains */
    EXPECT_MSG(objects_alive("MTLBuffer") <= buffers + 1, "%d buffers before, %d after", buffers,
               objects_alive("MTLBuffer"));
}

/* Small arrays share a Metal buffer, which is released with the last of them. */
TEST(small_arrays_share_a_buffer)
{
    SKIP_WITHOUT_METAL();
    enum { N = 100 };
    mica_engine *e = open_on("metal");
    mica_array *kept[N];
    evaluate(e, fused, kept); /* creates the buffer for empty arrays */
    drop_all(kept, 5);
    mica_engine_trim(e);
    const uint64_t before = stats_of(e).gpu_buffers;
    for (int i = 0; i < N; i++) {
        mica_scope *s = mica_scope_begin(e);
        kept[i] = mica_exp(s, mica_full(s, MICA_F32, 1, (int64_t[]){1 + 9 * i}, 0.5 * i));
        CHECK_INT(mica_eval(s, &kept[i], 1), MICA_OK);
        mica_keep(kept[i]);
        mica_scope_end(s);
    }
    const uint64_t between = stats_of(e).gpu_buffers;
    EXPECT_MSG(between <= before + 2, "%d buffers more for %d arrays", (int)(between - before), N);
    for (int i = 0; i < N; i++) EXPECT_CLOSE(mica_data_f32(kept[i])[9 * i], exp(0.5 * i), 1e-6, 0);
    drop_all(kept, N);
    mica_engine_trim(e);
    EXPECT_INT(stats_of(e).gpu_buffers, before);
    mica_close(e);
}

/* Buffers that do not fit into the working set can still be bound. */
TEST(a_working_set_that_is_too_small)
{
    SKIP_WITHOUT_METAL();
    const char *why;
    const mica__metal_device *device = mica__metal_get(&why);
    if (!device->residency) SKIP("no residency sets");
    mica__gpu_limits *limits = (mica__gpu_limits *)&device->limits;
    const uint64_t budget = limits->budget_bytes;
    mica_engine *ref = open_on("ref");
    for (int all = 0; all < 2; all++) {
        mica_array *got[MAX_OUT], *want[MAX_OUT];
        test_case(all ? "the whole budget" : "less than one buffer");
        mica_engine *e = open_on("metal");
        mica_stats before = stats_of(e), after;
        limits->budget_bytes = all ? budget : before.gpu_bytes_resident + 4096;
        const size_t n = evaluate(e, reduced, got);
        evaluate(ref, reduced, want);
        after = stats_of(e);
        for (size_t i = 0; i < n; i++) expect_same(got[i], want[i]);
        EXPECT_INT(after.gpu_bytes_left_out == before.gpu_bytes_left_out, all);
        EXPECT_INT(after.gpu_bytes_resident > before.gpu_bytes_resident + 4096, all);
        drop_all(got, n);
        drop_all(want, n);
        mica_close(e);
        limits->budget_bytes = budget;
        e = open_on("metal");
        after = stats_of(e);
        EXPECT_INT(after.gpu_bytes_left_out, before.gpu_bytes_left_out);
        EXPECT(after.gpu_bytes_resident <= before.gpu_bytes_resident + 16384); /* the buffer for empty arrays */
        mica_close(e);
    }
    mica_close(ref);
}

TEST(arrays_without_elements)
{
    SKIP_WITHOUT_METAL();
    mica_engine *e = open_on("metal");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_wrap(s, MICA_F32, 2, (int64_t[]){0, 5}, NULL, "", NULL, NULL);
    mica_array *out[] = {mica_exp(s, x), mica_sum(s, x, (int[]){0}, 1, false), mica_softmax(s, x, 1)};
    CHECK_MSG(mica_eval(s, out, 3) == MICA_OK, "%s", mica_last_error());
    for (int i = 0; i < 5; i++) EXPECT_CLOSE(mica_data_f32(out[1])[i], 0, 0, 0);
    mica_scope_end(s);
    mica_close(e);
}
