/* Weights that are multiplied repeatedly are kept packed. The results have the same bits as without
 * packing, the statistics show it, the packed copy is freed with its array or when memory is short,
 * and a failure to pack is never an error. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mica.h"
#include "test.h"

enum { OUT = 500, IN = 400, BATCH = 20 }; /* sizes of a linear layer with 200,000 weights */

/* Accelerate does not use packed weights. */
__attribute__((constructor)) static void without_accelerate(void) { setenv("MICA_ACCELERATE", "0", 1); }

static mica_engine *open_engine(bool prepack, uint64_t limit)
{
    mica_engine *e = NULL;
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = "cpu";
    o.threads = 2;
    o.prepack = prepack;
    o.memory_limit = limit;
    EXPECT_MSG(mica_open(&o, &e) == MICA_OK, "%s", mica_last_error());
    return e;
}

static mica_stats stats_of(const mica_engine *e)
{
    mica_stats s = {.struct_size = sizeof s};
    mica_engine_stats(e, &s);
    return s;
}

/* Random numbers in memory of the engine, evaluated in a separate scope. */
static mica_array *given(mica_engine *e, int64_t rows, int64_t cols, uint64_t seed)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_keep(mica_random_normal(s, MICA_F32, 2, (int64_t[]){rows, cols}, seed));
    EXPECT_MSG(mica_eval(s, &x, 1) == MICA_OK, "%s", mica_last_error());
    mica_scope_end(s);
    return x;
}

/* x times the transpose of w, plus 1, into y. */
static bool linear(mica_engine *e, mica_array *x, mica_array *w, float *y)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *out = mica_add(s, mica_matmul(s, x, mica_transpose(s, w)), mica_scalar(s, 1));
    const bool ok = mica_eval(s, &out, 1) == MICA_OK && mica_copy_out(out, y, mica_array_nbytes(out)) == MICA_OK;
    mica_scope_end(s);
    return ok;
}

typedef struct layer {
    mica_engine *e;
    mica_array *x, *w;
    float y[BATCH * OUT];
} layer;

static layer *layer_new(bool prepack, uint64_t limit)
{
    layer *l = calloc(1, sizeof *l);
    l->e = open_engine(prepack, limit);
    l->x = given(l->e, BATCH, IN, 1);
    l->w = given(l->e, OUT, IN, 2);
    return l;
}

static void layer_free(layer *l)
{
    mica_drop(l->x);
    mica_drop(l->w);
    mica_close(l->e);
    free(l);
}

static bool run(layer *l) { return linear(l->e, l->x, l->w, l->y); }

TEST(packed_at_the_second_use)
{
    layer *with = layer_new(true, 0), *without = layer_new(false, 0);
    for (int i = 0; i < 4; i++) {
        test_case("use %d", i + 1);
        EXPECT(run(with) && run(without));
        EXPECT(memcmp(with->y, without->y, sizeof with->y) == 0);
        EXPECT_INT(stats_of(with->e).packed_weights, i > 0);
        EXPECT_INT(stats_of(without->e).packed_weights, 0);
    }
    const mica_stats before = stats_of(with->e);
    EXPECT(before.bytes_packed >= OUT * IN * sizeof(float) && before.bytes_packed < 2 * OUT * IN * sizeof(float));
    /* the copy is freed with its array */
    mica_drop(with->w);
    const mica_stats after = stats_of(with->e);
    EXPECT_INT(after.packed_weights, 0);
    EXPECT_INT(after.bytes_packed, 0);
    EXPECT(before.bytes_in_use - after.bytes_in_use >= before.bytes_packed + OUT * IN * sizeof(float));
    /* new elements in the old memory are new weights */
    with->w = given(with->e, OUT, IN, 3);
    mica_drop(without->w);
    without->w = given(without->e, OUT, IN, 3);
    for (int i = 0; i < 3; i++) {
        EXPECT(run(with) && run(without));
        EXPECT(memcmp(with->y, without->y, sizeof with->y) == 0);
    }
    layer_free(with);
    layer_free(without);
}

TEST(another_view_is_another_copy)
{
    layer *l = layer_new(true, 0);
    mica_array *x = given(l->e, BATCH, OUT, 5);
    float *y = malloc(BATCH * IN * sizeof *y), *first = malloc(BATCH * IN * sizeof *y);
    for (int i = 0; i < 3; i++) {
        mica_scope *s = mica_scope_begin(l->e);
        mica_array *z = mica_matmul(s, x, l->w);
        EXPECT(mica_eval(s, &z, 1) == MICA_OK && mica_copy_out(z, i ? y : first, BATCH * IN * sizeof *y) == MICA_OK);
        EXPECT(run(l));
        mica_scope_end(s);
        if (i) EXPECT(memcmp(y, first, BATCH * IN * sizeof *y) == 0);
    }
    EXPECT_INT(stats_of(l->e).packed_weights, 2);
    EXPECT(mica_engine_trim(l->e) > 0);
    EXPECT_INT(stats_of(l->e).packed_weights, 0);
    EXPECT(run(l));
    EXPECT_INT(stats_of(l->e).packed_weights, 1); /* it now counts as a weight */
    mica_drop(x);
    free(y);
    free(first);
    layer_free(l);
}

static void count_release(void *data, void *user)
{
    (void)data;
    ++*(int *)user;
}

TEST(wrapped_memory)
{
    layer *l = layer_new(true, 0);
    float *memory = malloc(OUT * IN * sizeof *memory), *want = malloc(sizeof l->y);
    int released = 0;
    EXPECT(mica_copy_out(l->w, memory, OUT * IN * sizeof *memory) == MICA_OK && run(l));
    memcpy(want, l->y, sizeof l->y);
    mica_scope *s = mica_scope_begin(l->e);
    mica_array *w = mica_wrap(s, MICA_F32, 2, (int64_t[]){OUT, IN}, NULL, memory, count_release, &released);
    for (int i = 0; i < 3; i++) {
        EXPECT(linear(l->e, l->x, w, l->y));
        EXPECT(memcmp(want, l->y, sizeof l->y) == 0);
    }
    EXPECT_INT(stats_of(l->e).packed_weights, 1);
    mica_scope_end(s);
    EXPECT_INT(released, 1);
    EXPECT_INT(stats_of(l->e).packed_weights, 0);
    free(memory);
    free(want);
    layer_free(l);
}

/* A temporary, and a weight that is too small, are not kept. */
TEST(what_is_not_packed)
{
    layer *l = layer_new(true, 0);
    mica_array *small = given(l->e, 64, IN, 7);
    for (int i = 0; i < 3; i++) {
        mica_scope *s = mica_scope_begin(l->e);
        mica_array *y = mica_matmul(s, l->x, mica_transpose(s, mica_exp(s, l->w)));
        mica_array *z = mica_matmul(s, l->x, mica_transpose(s, small));
        EXPECT(mica_eval(s, (mica_array *[]){y, z}, 2) == MICA_OK);
        mica_scope_end(s);
    }
    EXPECT_INT(stats_of(l->e).packed_weights, 0);
    mica_drop(small);
    layer_free(l);
}

TEST(within_the_limit)
{
    enum { WEIGHTS = OUT * IN * sizeof(float) };
    /* no room for a copy */
    layer *l = layer_new(true, WEIGHTS + 200 * 1024);
    for (int i = 0; i < 3; i++) EXPECT_MSG(run(l), "%s", mica_last_error());
    EXPECT_INT(stats_of(l->e).packed_weights, 0);
    EXPECT_STR(mica_last_error(), "");
    layer_free(l);
    /* room for one, until something else needs it */
    l = layer_new(true, 2 * WEIGHTS + 200 * 1024);
    for (int i = 0; i < 3; i++) EXPECT_MSG(run(l), "%s", mica_last_error());
    EXPECT_INT(stats_of(l->e).packed_weights, 1);
    mica_array *big = given(l->e, OUT, IN, 9);
    EXPECT_INT(stats_of(l->e).packed_weights, 0);
    EXPECT_MSG(run(l), "%s", mica_last_error());
    mica_drop(big);
    layer_free(l);
}

/* The second use allocates a record and the copy, and also works if either fails. Which
 * allocations these are depends on the build: debug builds reuse no nodes. */
TEST(allocations_that_fail)
{
    int without = 0;
    for (uint64_t n = 1; n <= 20; n++) {
        layer *l = layer_new(true, 0);
        float first[BATCH * OUT];
        EXPECT(run(l));
        memcpy(first, l->y, sizeof first);
        EXPECT(run(l)); /* packed */
        const int64_t size = (int64_t)(stats_of(l->e).bytes_packed / sizeof(float));
        mica_drop(l->w);
        l->w = given(l->e, OUT, IN, 2);
        EXPECT(run(l));
        mica_array *taken = given(l->e, 1, size, 4); /* occupies the memory of that copy */
        mica__alloc_fail_at(n);
        const bool ok = run(l);
        mica__alloc_fail_at(0);
        if (ok) {
            without += stats_of(l->e).packed_weights == 0;
            EXPECT(memcmp(first, l->y, sizeof first) == 0);
        }
        EXPECT(run(l) && run(l));
        EXPECT_INT(stats_of(l->e).packed_weights, 1); /* tried again */
        EXPECT(memcmp(first, l->y, sizeof first) == 0);
        mica_drop(taken);
        layer_free(l);
    }
    EXPECT_INT(without, 2);
}

typedef struct worker {
    layer *l;
    float y[BATCH * OUT];
    bool ok;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    w->ok = true;
    for (int i = 0; i < 12; i++) {
        float y[BATCH * OUT];
        w->ok = w->ok && linear(w->l->e, w->l->x, w->l->w, y);
        if (i) w->ok = w->ok && memcmp(y, w->y, sizeof y) == 0;
        memcpy(w->y, y, sizeof y);
        if (i == 7) mica_engine_trim(w->l->e); /* while others use the copy */
    }
    return NULL;
}

TEST(several_evaluations_at_once)
{
    enum { THREADS = 4 };
    layer *l = layer_new(true, 0);
    pthread_t thread[THREADS];
    worker *w = calloc(THREADS, sizeof *w);
    for (int i = 0; i < THREADS; i++) {
        w[i].l = l;
        CHECK(pthread_create(&thread[i], NULL, work, &w[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        EXPECT(w[i].ok);
        EXPECT(memcmp(w[i].y, w[0].y, sizeof w[0].y) == 0);
    }
    EXPECT(stats_of(l->e).packed_weights <= 1);
    free(w);
    layer_free(l);
}

TEST(on_the_stream)
{
    layer *l = layer_new(true, 0);
    EXPECT(run(l));
    for (int i = 0; i < 3; i++) {
        mica_scope *s = mica_scope_begin(l->e);
        mica_array *y = mica_add(s, mica_matmul(s, l->x, mica_transpose(s, l->w)), mica_scalar(s, 1));
        mica_event *event = NULL;
        EXPECT_MSG(mica_eval_async(s, &y, 1, &event) == MICA_OK, "%s", mica_last_error());
        EXPECT(mica_wait(event) == MICA_OK);
        EXPECT(memcmp(mica_data_f32(y), l->y, sizeof l->y) == 0);
        mica_event_free(event);
        mica_scope_end(s);
    }
    EXPECT_INT(stats_of(l->e).packed_weights, 1);
    layer_free(l);
}

/* The body of a scan uses weights from outside in each step; they are packed in the second step. */
static mica_status step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **next,
                        mica_array **y, void *user)
{
    (void)x;
    next[0] = mica_tanh(s, mica_matmul(s, carry[0], user));
    y[0] = next[0];
    return MICA_OK;
}

TEST(weights_of_a_recurrence)
{
    float *want = NULL;
    for (int prepack = 0; prepack < 2; prepack++) {
        mica_engine *e = open_engine(prepack, 0);
        mica_array *w = given(e, IN, IN, 2), *h = given(e, BATCH, IN, 1), *xs = given(e, 5, 1, 3), *carry, *ys;
        mica_scope *s = mica_scope_begin(e);
        mica_scan_options o;
        mica_scan_options_init(&o);
        o.n_carry = o.n_x = o.n_y = 1;
        EXPECT_MSG(mica_scan(s, step, w, &o, &h, &xs, &carry, &ys) == MICA_OK, "%s", mica_last_error());
        EXPECT_MSG(mica_eval(s, &carry, 1) == MICA_OK, "%s", mica_last_error());
        EXPECT_INT(stats_of(e).packed_weights, prepack);
        if (prepack) EXPECT(memcmp(want, mica_data_f32(carry), BATCH * IN * sizeof *want) == 0);
        want = want ? want : malloc(BATCH * IN * sizeof *want);
        memcpy(want, mica_data_f32(carry), BATCH * IN * sizeof *want);
        mica_scope_end(s);
        mica_drop(w);
        mica_drop(h);
        mica_drop(xs);
        mica_close(e);
    }
    free(want);
}

TEST(switched_off_from_outside)
{
    setenv("MICA_PREPACK", "0", 1);
    layer *l = layer_new(true, 0);
    for (int i = 0; i < 3; i++) EXPECT(run(l));
    EXPECT_INT(stats_of(l->e).packed_weights, 0);
    layer_free(l);
    setenv("MICA_PREPACK", "often", 1);
    mica_engine *e;
    CHECK_INT(mica_open(NULL, &e), MICA_ERR_ARGUMENT);
    EXPECT(strstr(mica_last_error(), "MICA_PREPACK") != NULL);
    unsetenv("MICA_PREPACK");
}

TEST(prepare_plans_and_packs_without_running)
{
    layer *l = layer_new(true, 0), *plain = layer_new(false, 0);
    const mica_stats before = stats_of(l->e);
    mica_scope *s = mica_scope_begin(l->e);
    mica_array *out = mica_add(s, mica_matmul(s, l->x, mica_transpose(s, l->w)), mica_scalar(s, 1));
    CHECK_MSG(mica_prepare(s, &out, 1) == MICA_OK, "%s", mica_last_error());
    EXPECT(!mica_array_is_ready(out));
    mica_scope_end(s);
    const mica_stats prepared = stats_of(l->e);
    EXPECT_INT(prepared.evals, before.evals);
    EXPECT_INT(prepared.kernels, before.kernels);
    EXPECT_INT(prepared.plan_misses, before.plan_misses + 1);
    EXPECT_INT(prepared.packed_weights, before.packed_weights + 1); /* at once, not at the second use */
    CHECK(run(l) && run(plain));
    const mica_stats after = stats_of(l->e);
    EXPECT_INT(after.plan_misses, prepared.plan_misses);
    EXPECT_INT(after.packed_weights, prepared.packed_weights);
    EXPECT(memcmp(l->y, plain->y, sizeof l->y) == 0);
    layer_free(l);
    layer_free(plain);
}
