/* Many threads on one engine, each with separate scopes: mixed work over a plan cache that is far
 * too small, with shared arrays, one shared function, failures, statistics and trimming in between.
 * Most useful under TSan.
 *
 * runs: metal, check */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api.h"
#include "base/alloc.h"

enum { THREADS = 8, ROUNDS = 40, N = 64 };

typedef struct shared {
    mica_engine *e;
    mica_function *f;
    mica_array *table;          /* f32 (N, N), evaluated; rows count up from their number */
    mica_array *pending;        /* being evaluated while the threads begin                */
    atomic_int wrong;
} shared;

typedef struct worker {
    shared *all;
    int number;
    uint32_t dice;
} worker;

static int next(worker *w, int sides)
{
    w->dice = w->dice * 1664525u + 1013904223u;
    return (int)(w->dice >> 16) % sides;
}

static void expect(worker *w, bool ok, const char *what)
{
    if (ok) return;
    atomic_fetch_add(&w->all->wrong, 1);
    test_fail(__FILE__, __LINE__, "thread %d: %s: %s", w->number, what, mica_last_error());
}

/* ------------------------------------------------------------------ work ---- */

static void work_chain(worker *w, mica_scope *s)
{
    const int length = 1 + next(w, 12); /* many different plans */
    mica_array *x = mica_from_data(s, MICA_F32, SHAPE(2), (float[]){(float)w->number, 2});
    for (int i = 0; i < length; i++) x = mica_add(s, x, mica_scalar(s, 1));
    expect(w, mica_eval(s, &x, 1) == MICA_OK && mica_data_f32(x)[0] == (float)(w->number + length), "chain");
}

static void work_shared(worker *w, mica_scope *s)
{
    const int row = next(w, N);
    mica_array *slice = mica_slice_axis(s, w->all->table, 0, row, row + 1, 1);
    mica_array *sum = mica_sum(s, mica_matmul(s, slice, mica_ones(s, MICA_F32, SHAPE(N, 3))), NULL, 0, false);
    const double want = 3.0 * (N * row + N * (N - 1) / 2);
    expect(w, mica_eval(s, &sum, 1) == MICA_OK && item_of(sum) == want, "shared array");
}

static void work_pending(worker *w, mica_scope *s)
{
    mica_array *y = mica_sub(s, w->all->pending, w->all->pending);
    mica_array *z = mica_sum(s, y, NULL, 0, false);
    expect(w, mica_eval(s, &z, 1) == MICA_OK && item_of(z) == 0, "pending array of another thread");
}

static void work_async(worker *w, mica_scope *s)
{
    mica_event *events[3];
    mica_array *y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = mica_mul(s, w->all->table, mica_scalar(s, i));
        if (mica_eval_async(s, &y[i], 1, &events[i]) != MICA_OK) {
            expect(w, false, "async");
            return;
        }
    }
    mica_array *sum = mica_add(s, y[0], mica_add(s, y[1], y[2]));
    expect(w, mica_eval(s, &sum, 1) == MICA_OK && element(sum, N + 1) == 3 * 2.0f, "on top of pending ones");
    for (int i = 0; i < 3; i++) {
        if (i) expect(w, mica_wait(events[i]) == MICA_OK, "wait");
        mica_event_free(events[i]);
    }
}

static void work_failure(worker *w, mica_scope *s)
{
    const int64_t bad = 1000 + w->number;
    mica_array *y = mica_take(s, w->all->table, mica_from_data(s, MICA_I64, SHAPE(1), &bad), 0);
    char number[16];
    snprintf(number, sizeof number, "%d", (int)bad);
    mica_status status;
    if (next(w, 2)) {
        mica_event *event;
        status = mica_eval_async(s, &y, 1, &event);
        if (status == MICA_OK) status = mica_wait(event);
        mica_event_free(event);
    } else {
        status = mica_eval(s, &y, 1);
    }
    /* each thread gets its own error */
    expect(w, status == MICA_ERR_INDEX && strstr(mica_last_error(), number), "failure");
    expect(w, !mica_add(s, w->all->table, mica_zeros(s, MICA_F32, SHAPE(3))), "shapes");
    expect(w, mica_scope_status(s) == MICA_ERR_SHAPE, "status of the scope");
}

static void work_call(worker *w, mica_scope *s)
{
    const int64_t n = 1 + next(w, 4);
    mica_array *x = mica_full(s, MICA_F32, 1, &n, w->number), *out;
    const mica_status status = mica_call(s, w->all->f, &x, 1, &out, 1);
    expect(w, status == MICA_OK && item_of(out) == (double)(n * w->number * w->number), "call");
}

static void work_grad(worker *w, mica_scope *s)
{
    const int64_t n = 5 + next(w, 2);
    mica_array *x = mica_full(s, MICA_F32, 1, &n, 3), *grad = NULL;
    mica_array *loss = mica_sum(s, mica_mul(s, mica_square(s, x), mica_scalar(s, 2)), NULL, 0, false);
    const mica_status status = mica_grad(s, loss, &x, 1, &grad);
    expect(w, status == MICA_OK && mica_eval(s, &grad, 1) == MICA_OK && element(grad, 4) == 12, "grad");
}

static mica_status count_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    (void)user;
    co[0] = mica_add(s, c[0], x[0]);
    y[0] = mica_neg(s, co[0]);
    return MICA_OK;
}

static void work_scan(worker *w, mica_scope *s)
{
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    mica_array *zero = mica_zeros(s, MICA_F32, SHAPE(N)), *last, *ys;
    mica_array *table = w->all->table;
    const mica_status status = mica_scan(s, count_step, NULL, &o, &zero, &table, &last, &ys);
    const float want = N * (N - 1) / 2;
    expect(w,
           status == MICA_OK && mica_eval(s, ARRAYS(last, ys)) == MICA_OK && element(last, 0) == want &&
               element(ys, (N - 1) * N) == -want,
           "scan");
}

static void work_wide(worker *w, mica_scope *s)
{
    /* large enough for several tasks of the pool, which another thread may be using */
    mica_array *x = mica_random_uniform(s, MICA_F32, SHAPE(200, 200), 0, 1, 1 + (uint64_t)next(w, 2));
    mica_array *y = mica_mean(s, mica_sqrt(s, x), NULL, 0, false);
    expect(w, mica_eval(s, &y, 1) == MICA_OK && fabs(item_of(y) - 2.0 / 3) < 0.01, "wide");
}

static void work_look(worker *w, mica_scope *s)
{
    const mica_stats stats = stats_of(w->all->e);
    expect(w, stats.plans_cached <= 4 && stats.bytes_peak >= stats.bytes_in_use, "statistics");
    mica_engine_trim(w->all->e);
    mica_array *y = mica_exp(s, w->all->table);
    mica_plan_info info = {.struct_size = sizeof info};
    size_t length;
    expect(w, mica_plan_query(s, &y, 1, &info) == MICA_OK && info.kernels == 1, "plan");
    expect(w, mica_plan_text(s, &y, 1, MICA_DUMP_KERNELS, NULL, 0, &length) == MICA_OK && length > 0, "text");
}

static void *work(void *arg)
{
    worker *w = arg;
    static void (*const kinds[])(worker *, mica_scope *) = {
        work_chain, work_shared, work_pending, work_async, work_failure,
        work_call,  work_grad,   work_scan,    work_wide,  work_look,
    };
    for (int i = 0; i < ROUNDS; i++) {
        mica_scope *s = mica_scope_begin(w->all->e);
        kinds[(i + w->number) % (int)COUNT(kinds)](w, s);
        if (next(w, 3) == 0) { /* also in a nested scope */
            mica_scope *inner = mica_scope_begin(w->all->e);
            work_chain(w, inner);
            mica_scope_end(inner);
        }
        mica_scope_end(s);
    }
    return NULL;
}

static mica_status sum_of_squares(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                                  void *user)
{
    (void)n_in, (void)n_out, (void)user;
    out[0] = mica_sum(s, mica_square(s, in[0]), NULL, 0, false);
    return MICA_OK;
}

TEST(eight_threads_one_engine)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        const int64_t live = live_blocks();
        mica_engine_options o = options_for(backends[b], 3);
        o.plan_cache_limit = 4;
        o.cache_limit = 1 << 18;
        shared all = {.e = open_with(&o)};
        CHECK_OK(mica_compile(all.e, sum_of_squares, NULL, &all.f));
        mica_scope *s = mica_scope_begin(all.e);
        mica_array *rows = mica_reshape(s, count_up(s, N, 0), SHAPE(N, 1));
        all.table = mica_keep(mica_add(s, rows, count_up(s, N, 0)));
        all.pending = mica_keep(mica_random_normal(s, MICA_F32, SHAPE(300, 300), 9));
        CHECK_OK(mica_eval(s, &all.table, 1));
        mica_event *event;
        CHECK_OK(mica_eval_async(s, &all.pending, 1, &event));
        mica_scope_end(s);

        pthread_t thread[THREADS];
        worker workers[THREADS];
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){&all, i, 12345u * (uint32_t)(i + 1)};
            CHECK_INT(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        EXPECT_INT(all.wrong, 0);
        EXPECT_INT(stats_of(all.e).compiles, 4);
        EXPECT(stats_of(all.e).plan_evictions > 0);
        EXPECT_OK(mica_wait(event));
        mica_event_free(event);
        mica_function_free(all.f);
        mica_drop(all.table);
        mica_drop(all.pending);
        EXPECT_INT(stats_of(all.e).bytes_in_use, 0);
        mica_close(all.e);
        EXPECT_INT(live_blocks(), live);
    }
}

/* Threads open and close engines concurrently. */
static void *open_and_close(void *arg)
{
    for (int i = 0; i < 10; i++) {
        mica_engine *e = open_engine(i % 2 ? "cpu" : "ref");
        mica_scope *s = mica_scope_begin(e);
        mica_array *y = mica_exp(s, count_up(s, 10, 0));
        mica_event *event;
        if (mica_eval_async(s, &y, 1, &event) != MICA_OK) ++*(int *)arg;
        if (i % 3 == 0) mica_event_free(event), event = NULL;
        mica_scope_end(s);
        mica_close(e);
        mica_event_free(event);
    }
    return NULL;
}

TEST(engines_side_by_side)
{
    pthread_t thread[4];
    int failed[4] = {0};
    for (int i = 0; i < 4; i++) CHECK_INT(pthread_create(&thread[i], NULL, open_and_close, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        EXPECT_INT(failed[i], 0);
    }
}
