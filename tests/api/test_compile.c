/* Traced functions: how often they are traced, which arguments they accept, what they capture, and
 * how they fail.
 *
 * runs: metal, check */
#include <pthread.h>

#include "api.h"
#include "base/alloc.h"

/* out[0] = a * b + captured (if there is one), out[1] = -out[0]. */
typedef struct model {
    int traces;
    mica_array *captured;
    int64_t seen;                /* size of the first input when it was last traced */
} model;

static mica_status affine(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out, void *user)
{
    model *m = user;
    m->traces++;
    m->seen = n_in ? mica_array_size(in[0]) : 0;
    mica_array *y = n_in == 2 ? mica_mul(s, in[0], in[1]) : n_in == 1 ? in[0] : mica_ones(s, MICA_F32, SHAPE(2));
    if (m->captured) y = mica_add(s, y, m->captured);
    out[0] = y;
    if (n_out > 1) out[1] = mica_neg(s, y);
    return MICA_OK;
}

TEST(one_trace_for_each_combination_of_shapes)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        model m = {0};
        mica_function *f;
        CHECK_OK(mica_compile(e, affine, &m, &f));
        EXPECT_INT(m.traces, 0);
        mica_array *x4 = count_up(s, 4, 1), *y4 = count_up(s, 4, 10), *out[2];
        for (int i = 0; i < 5; i++) CHECK_OK(mica_call(s, f, ARRAYS(x4, y4), out, 2));
        EXPECT_VALUES(out[0], 10, 22, 36, 52);
        EXPECT_VALUES(out[1], -10, -22, -36, -52);
        EXPECT_INT(m.traces, 1);
        EXPECT_INT(stats_of(e).compiles, 1);

        mica_array *x5 = count_up(s, 5, 0); /* another shape */
        CHECK_OK(mica_call(s, f, ARRAYS(x5, x5), out, 2));
        EXPECT_VALUES(out[0], 0, 1, 4, 9, 16);
        EXPECT_INT(stats_of(e).compiles, 2);
        EXPECT_INT(m.seen, 5);
        mica_array *w4 = mica_cast(s, x4, MICA_F64); /* another dtype */
        CHECK_OK(mica_call(s, f, ARRAYS(w4, x4), out, 2));
        EXPECT_INT(mica_array_dtype(out[0]), MICA_F64);
        EXPECT_INT(stats_of(e).compiles, 3);
        CHECK_OK(mica_call(s, f, ARRAYS(x4, y4), out, 1)); /* fewer results */
        EXPECT_INT(stats_of(e).compiles, 4);
        CHECK_OK(mica_call(s, f, NULL, 0, out, 1)); /* no inputs */
        EXPECT_VALUES(out[0], 1, 1);
        EXPECT_INT(stats_of(e).compiles, 5);
        /* all traces are still cached */
        CHECK_OK(mica_call(s, f, ARRAYS(x5, x5), out, 2));
        CHECK_OK(mica_call(s, f, ARRAYS(w4, x4), out, 2));
        CHECK_OK(mica_call(s, f, ARRAYS(y4, x4), out, 2));
        EXPECT_VALUES(out[0], 10, 22, 36, 52);
        EXPECT_INT(stats_of(e).compiles, 5);
        EXPECT_INT(m.traces, 5);
        mica_function_free(f);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(a_repeated_call_plans_and_allocates_nothing)
{
    mica_engine *e = open_engine("cpu");
    model m = {0};
    mica_function *f;
    CHECK_OK(mica_compile(e, affine, &m, &f));
    mica_scope *outer = mica_scope_begin(e);
    mica_array *x = count_up(outer, 1000, 1);
    for (int i = 0; i < 5; i++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *out[2];
        const mica_stats before = stats_of(e);
        const uint64_t allocations = mica__alloc_count();
        CHECK_OK(mica_call(s, f, ARRAYS(x, x), out, 2));
        const mica_stats after = stats_of(e);
        if (i >= 2) {
#if defined(MICA_DEBUG)
            EXPECT_INT(mica__alloc_count() - allocations, 2); /* two result nodes: debug builds reuse no blocks */
#else
            EXPECT_INT(mica__alloc_count() - allocations, 0);
#endif
            EXPECT_INT(after.bytes_allocated, before.bytes_allocated);
            EXPECT_INT(after.plan_misses, before.plan_misses);
            EXPECT_INT(after.plan_hits, before.plan_hits);
        }
        mica_scope_end(s);
    }
    mica_scope_end(outer);
    mica_function_free(f);
    mica_close(e);
}

TEST(inputs_of_any_layout_and_state)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        model m = {0};
        mica_function *f;
        CHECK_OK(mica_compile(e, affine, &m, &f));
        mica_array *x = count_up_2d(s, 2, 3), *ones = mica_ones(s, MICA_F32, SHAPE(3, 2)), *out;
        mica_array *t = mica_transpose(s, x), *ready = mica_transpose(s, x);
        CHECK_OK(mica_eval(s, &ready, 1));
        CHECK_OK(mica_call(s, f, ARRAYS(t, ones), &out, 1)); /* lazy: a view, a constant */
        EXPECT_VALUES(out, 0, 3, 1, 4, 2, 5);
        CHECK_OK(mica_call(s, f, ARRAYS(ready, ones), &out, 1)); /* ready, not row-major */
        EXPECT_VALUES(out, 0, 3, 1, 4, 2, 5);
        mica_array *wide = mica_broadcast_to(s, mica_from_data(s, MICA_F32, 0, NULL, &(float){2}), SHAPE(3, 2));
        CHECK_OK(mica_eval(s, &wide, 1));
        CHECK_OK(mica_call(s, f, ARRAYS(ready, wide), &out, 1)); /* strides 0 */
        EXPECT_VALUES(out, 0, 6, 2, 8, 4, 10);
        mica_array *computed = mica_exp(s, mica_log(s, mica_add(s, ready, mica_scalar(s, 1))));
        CHECK_OK(mica_call(s, f, ARRAYS(computed, computed), &out, 1)); /* lazy, twice the same */
        EXPECT_VALUES(out, 1, 16, 4, 25, 9, 36);
        mica_event *event;
        mica_array *pending = mica_add(s, mica_exp(s, computed), t);
        CHECK_OK(mica_eval_async(s, &pending, 1, &event));
        CHECK_OK(mica_call(s, f, ARRAYS(ones, mica_sub(s, pending, mica_exp(s, computed))), &out, 1));
        EXPECT_CLOSE(element(out, 1), 3, 1e-4, 1e-4);
        mica_event_free(event);
        EXPECT_INT(stats_of(e).compiles, 1);
        /* the result is the input itself: shared, not copied */
        const uint64_t copies = stats_of(e).copies;
        mica_array *flat = count_up(s, 4, 1);
        CHECK_OK(mica_call(s, f, &flat, 1, &out, 1));
        EXPECT(out && mica_data(out) == mica_data(flat));
        EXPECT_INT(stats_of(e).copies, copies + 1); /* the copy of count_up */
        mica_function_free(f);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(captured_arrays_are_kept_with_the_function)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        const int64_t live = live_blocks();
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        float data[4] = {100, 200, 300, 400};
        released r = {data, 0, 0};
        model m = {.captured = mica_flip(s, mica_wrap(s, MICA_F32, SHAPE(4), NULL, data, count_release, &r), 0)};
        mica_function *f;
        CHECK_OK(mica_compile(e, affine, &m, &f));
        mica_array *x = count_up(s, 4, 1), *out;
        CHECK_OK(mica_call(s, f, ARRAYS(x, x), &out, 1));
        EXPECT_VALUES(out, 401, 304, 209, 116);
        mica_scope_end(s);
        m.captured = NULL; /* freed with its scope */
        EXPECT_INT(r.times, 0);
        s = mica_scope_begin(e);
        x = count_up(s, 4, 0);
        CHECK_OK(mica_call(s, f, ARRAYS(x, x), &out, 1));
        EXPECT_VALUES(out, 400, 301, 204, 109);
        mica_scope_end(s);
        mica_function_free(f);
        EXPECT_INT(r.times, 1);
        mica_close(e);
        EXPECT_INT(live_blocks(), live);
    }
}

/* Results: one twice, an input, a view of an input, a constant, a captured array. */
static mica_status all_kinds(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                             void *user)
{
    (void)n_in, (void)n_out;
    out[0] = out[1] = mica_neg(s, in[0]);
    out[2] = in[0];
    out[3] = mica_transpose(s, in[0]);
    out[4] = mica_full(s, MICA_F32, SHAPE(2), 7);
    out[5] = user;
    out[6] = mica_flip(s, out[0], 1);
    return MICA_OK;
}

TEST(results_of_all_kinds)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e), *t = mica_scope_begin(e);
        mica_array *captured = count_up(s, 3, 5), *x = count_up_2d(s, 2, 2), *out[7];
        mica_function *f;
        CHECK_OK(mica_compile(e, all_kinds, captured, &f));
        for (int i = 0; i < 2; i++) CHECK_OK(mica_call(t, f, &x, 1, out, 7));
        for (int i = 0; i < 7; i++) mica_keep(out[i]);
        mica_scope_end(t);
        mica_scope_end(s);
        mica_function_free(f);
        mica_close(e); /* the results do not depend on these objects */
        EXPECT_VALUES(out[0], 0, -1, -2, -3);
        EXPECT_VALUES(out[1], 0, -1, -2, -3);
        EXPECT_VALUES(out[2], 0, 1, 2, 3);
        EXPECT_VALUES(out[3], 0, 2, 1, 3);
        EXPECT_VALUES(out[4], 7, 7);
        EXPECT_VALUES(out[5], 5, 6, 7);
        EXPECT_VALUES(out[6], -1, 0, -3, -2);
        for (int i = 0; i < 7; i++) mica_drop(out[i]);
    }
}

/* -------------------------------------------------------------- failures --- */

typedef struct nested {
    mica_function *other;
    mica_array *constant;
    bool with_parameter;
    mica_status status;
} nested;

static mica_status calls_another(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                                 void *user)
{
    (void)n_in, (void)n_out;
    nested *n = user;
    mica_array *y = NULL;
    n->status = mica_call(s, n->other, n->with_parameter ? in : &n->constant, 1, &y, 1);
    out[0] = n->status == MICA_OK ? mica_add(s, in[0], y) : in[0];
    return MICA_OK;
}

TEST(calls_inside_traces)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    model m = {0};
    nested n = {.constant = count_up(s, 4, 1)};
    mica_function *f, *g;
    mica_array *x = count_up(s, 4, 1), *out;
    CHECK_OK(mica_compile(e, affine, &m, &f));
    CHECK_OK(mica_compile(e, calls_another, &n, &g));
    test_case("of what is known");
    n.other = f;
    CHECK_OK(mica_call(s, g, &x, 1, &out, 1));
    EXPECT_INT(n.status, MICA_OK);
    EXPECT_VALUES(out, 2, 4, 6, 8);
    test_case("of a parameter");
    n.with_parameter = true;
    mica_array *longer = count_up(s, 5, 1);
    CHECK_OK(mica_call(s, g, &longer, 1, &out, 1));
    EXPECT_INT(n.status, MICA_ERR_STATE);
    test_case("of itself");
    n.other = g;
    n.with_parameter = false;
    mica_array *longest = count_up(s, 6, 1);
    n.constant = longest; /* while it is being traced */
    CHECK_OK(mica_call(s, g, &longest, 1, &out, 1));
    EXPECT_INT(n.status, MICA_ERR_STATE);
    mica_function_free(g);
    mica_function_free(f);
    mica_scope_end(s);
    mica_close(e);
}

typedef enum mistake { SHAPES, RETURNS, LEAVES_OUT, INDEX, NOTHING } mistake;

static mica_status mistaken(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                            void *user)
{
    (void)n_in, (void)n_out;
    switch (*(mistake *)user) {
    case SHAPES: out[0] = mica_add(s, in[0], mica_zeros(s, MICA_F32, SHAPE(77))); return MICA_OK;
    case RETURNS: return MICA_ERR_UNSUPPORTED;
    case LEAVES_OUT: return MICA_OK;
    case INDEX: out[0] = mica_take(s, in[0], mica_cast(s, in[0], MICA_I64), 0); return MICA_OK;
    case NOTHING: out[0] = mica_neg(s, in[0]); return MICA_OK;
    }
    return MICA_OK;
}

TEST(failures_of_the_traced_function)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mistake what = SHAPES;
    mica_function *f;
    CHECK_OK(mica_compile(e, mistaken, &what, &f));
    mica_array *x = count_up(s, 4, 1), *out = x;
    EXPECT_FAILS(mica_call(s, f, &x, 1, &out, 1), MICA_ERR_SHAPE, "add: shapes (4) and (77)");
    EXPECT(!out);
    what = RETURNS;
    EXPECT_INT(mica_call(s, f, &x, 1, &out, 1), MICA_ERR_UNSUPPORTED);
    what = LEAVES_OUT;
    EXPECT_FAILS(mica_call(s, f, &x, 1, &out, 1), MICA_ERR_ARGUMENT, "result 0");
    EXPECT_INT(stats_of(e).compiles, 0);
    EXPECT_INT(mica_scope_status(s), MICA_OK); /* the caller's scope has no error */
    what = NOTHING; /* the same shapes, now without the failure */
    CHECK_OK(mica_call(s, f, &x, 1, &out, 1));
    EXPECT_VALUES(out, -1, -2, -3, -4);
    EXPECT_INT(stats_of(e).compiles, 1);

    /* a failure of the run: index 4 is outside 4 elements */
    what = INDEX;
    mica_array *y = mica_reshape(s, x, SHAPE(4, 1)), *big = count_up(s, 5, 0);
    EXPECT_FAILS(mica_call(s, f, &y, 1, &out, 1), MICA_ERR_INDEX, "4");
    EXPECT(!out);
    CHECK_OK(mica_call(s, f, &big, 1, &out, 1));
    EXPECT_VALUES(out, 0, 1, 2, 3, 4);
    mica_function_free(f);
    mica_scope_end(s);
    mica_close(e);
}

TEST(bad_calls)
{
    mica_engine *e = open_engine("cpu"), *other = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e), *t = mica_scope_begin(other);
    model m = {0};
    mica_function *f = NULL;
    EXPECT_FAILS(mica_compile(NULL, affine, &m, &f), MICA_ERR_ARGUMENT, "compile");
    EXPECT_FAILS(mica_compile(e, NULL, &m, &f), MICA_ERR_ARGUMENT, "compile");
    EXPECT(!f);
    EXPECT_FAILS(mica_compile(e, affine, &m, NULL), MICA_ERR_ARGUMENT, "compile");
    CHECK_OK(mica_compile(e, affine, &m, &f));
    mica_array *x = count_up(s, 4, 1), *y = count_up(t, 4, 1), *out;
    EXPECT_FAILS(mica_call(NULL, f, ARRAYS(x, x), &out, 1), MICA_ERR_ARGUMENT, "call");
    EXPECT_FAILS(mica_call(s, NULL, ARRAYS(x, x), &out, 1), MICA_ERR_ARGUMENT, "call");
    EXPECT_FAILS(mica_call(s, f, ARRAYS(x, NULL), &out, 1), MICA_ERR_ARGUMENT, "call");
    EXPECT_FAILS(mica_call(s, f, NULL, 2, &out, 1), MICA_ERR_ARGUMENT, "call");
    EXPECT_FAILS(mica_call(s, f, ARRAYS(x, x), NULL, 1), MICA_ERR_ARGUMENT, "call");
    EXPECT_FAILS(mica_call(s, f, ARRAYS(x, y), &out, 1), MICA_ERR_ARGUMENT, "another engine");
    EXPECT_FAILS(mica_call(t, f, ARRAYS(y, y), &out, 1), MICA_ERR_ARGUMENT, "another engine");
    EXPECT_INT(m.traces, 0);
    mica_function_free(NULL);
    /* a scope that failed reports that first */
    EXPECT(!mica_add(s, x, mica_zeros(s, MICA_F32, SHAPE(3))));
    EXPECT_FAILS(mica_call(s, f, ARRAYS(x, x), &out, 1), MICA_ERR_SHAPE, "add");
    mica_scope_clear_error(s);
    /* after the engine was closed it can only be freed */
    mica_close(e);
    EXPECT_FAILS(mica_call(s, f, ARRAYS(x, x), &out, 1), MICA_ERR_STATE, "closed");
    mica_scope_end(s);
    mica_function_free(f);
    mica_scope_end(t);
    mica_close(other);
}

/* --------------------------------------------------------------- threads --- */

enum { THREADS = 6, CALLS = 60 };

typedef struct caller {
    mica_engine *engine;
    mica_function *function;
    int number, wrong;
} caller;

static mica_status slow_trace(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_in, (void)n_out;
    __atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED);
    usleep(1000);
    out[0] = mica_sum(s, mica_mul(s, in[0], in[0]), NULL, 0, false);
    return MICA_OK;
}

static void *call_often(void *arg)
{
    caller *c = arg;
    for (int i = 0; i < CALLS; i++) {
        mica_scope *s = mica_scope_begin(c->engine);
        const int64_t n = 1 + (i + c->number) % 3;
        mica_array *x = count_up(s, n, 1), *out;
        const double want = n == 1 ? 1 : n == 2 ? 5 : 14;
        if (mica_call(s, c->function, &x, 1, &out, 1) != MICA_OK || item_of(out) != want) c->wrong++;
        mica_scope_end(s);
    }
    return NULL;
}

TEST(called_from_several_threads)
{
    mica_engine *e = open_engine("cpu");
    mica_function *f;
    int traces = 0;
    CHECK_OK(mica_compile(e, slow_trace, &traces, &f));
    pthread_t thread[THREADS];
    caller callers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){e, f, i, 0};
        CHECK_INT(pthread_create(&thread[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        EXPECT_INT(callers[i].wrong, 0);
    }
    EXPECT_INT(traces, 3);
    EXPECT_INT(stats_of(e).compiles, 3);
    mica_function_free(f);
    mica_close(e);
}
