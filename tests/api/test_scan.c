/* Scans: a body that is planned once and run many times computes the same as the unrolled loop, on
 * every backend, and a second run plans and allocates nothing.
 *
 * runs: metal, check */
#include "api.h"
#include "base/alloc.h"

/* A recurrence, run as a scan and as an unrolled loop. */
typedef struct loop {
    const char *name;
    mica_scan_fn step;
    size_t n_carry, n_x, n_y;
    int64_t length;              /* 0: as long as xs */
    bool reverse;
} loop;

enum { T = 5, N = 3, MOST = 4 };

/* Arrays from outside the body, passed by user. */
typedef struct outside {
    mica_array *w, *b;
} outside;

static mica_status rnn(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                       void *user)
{
    const outside *o = user;
    co[0] = mica_tanh(s, mica_add(s, mica_matmul(s, c[0], o->w), mica_mul(s, x[0], o->b)));
    y[0] = mica_sum(s, co[0], (int[]){-1}, 1, true);
    return MICA_OK;
}

static mica_status swap(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                        void *user)
{
    (void)s, (void)x, (void)user;
    co[0] = c[1];
    co[1] = c[0];
    y[0] = c[0];
    return MICA_OK;
}

static mica_status pass_through(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                                mica_array **y, void *user)
{
    (void)s, (void)user;
    co[0] = c[0];
    y[0] = x[0];
    y[1] = c[0];
    return MICA_OK;
}

static mica_status constant_y(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    const outside *o = user;
    co[0] = mica_add(s, c[0], x[0]);
    y[0] = mica_full(s, MICA_F32, SHAPE(2), 7);
    y[1] = o->b;
    y[2] = mica_transpose(s, o->w);
    return MICA_OK;
}

static mica_status two_carries(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                               mica_array **y, void *user)
{
    (void)user;
    co[0] = mica_add(s, c[0], c[1]);
    co[1] = mica_mul(s, c[1], mica_scalar(s, 0.5));
    y[0] = mica_sub(s, co[0], x[0]);
    y[1] = co[0]; /* a result twice */
    return MICA_OK;
}

static mica_status only_carry(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    (void)x, (void)y, (void)user;
    co[0] = mica_mul(s, c[0], mica_scalar(s, 1.5));
    return MICA_OK;
}

static mica_status only_y(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                          void *user)
{
    (void)c, (void)co, (void)user;
    y[0] = mica_cumsum(s, mica_add(s, x[0], x[1]), -1);
    return MICA_OK;
}

static mica_status sum_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                            void *user)
{
    const outside *o = user;
    co[0] = mica_add(s, mica_mul(s, c[0], o->b), x[0]);
    y[0] = co[0];
    return MICA_OK;
}

static mica_status nested(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                          void *user)
{
    /* the inner scan iterates over the inputs of the outer step and captures both */
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    outside in = {NULL, x[0]};
    mica_array *inner, *ys, *start = mica_sum(s, c[0], NULL, 0, false);
    mica_array *along = mica_stack(s, (mica_array *[]){c[0], x[0]}, 2, 0);
    start = mica_broadcast_to(s, start, SHAPE(N));
    (void)user;
    const mica_status status = mica_scan(s, sum_step, &in, &o, &start, &along, &inner, &ys);
    co[0] = mica_tanh(s, inner);
    y[0] = mica_sum(s, ys, (int[]){0}, 1, false);
    return status;
}

static const loop loops[] = {
    {"recurrent net", rnn, 1, 1, 1, 0, false},
    {"recurrent net, reverse", rnn, 1, 1, 1, 0, true},
    {"swapped carries", swap, 2, 0, 1, 5, false},
    {"swapped carries, even", swap, 2, 0, 1, 4, false},
    {"carry and x passed through", pass_through, 1, 1, 2, 0, true},
    {"constant ys", constant_y, 1, 1, 3, 0, false},
    {"two carries", two_carries, 2, 1, 2, 0, false},
    {"no ys", only_carry, 1, 0, 0, 6, false},
    {"one step", only_carry, 1, 0, 0, 1, false},
    {"no carry", only_y, 0, 2, 1, 0, false},
    {"captured", sum_step, 1, 1, 1, 0, true},
    {"nested", nested, 1, 1, 1, 0, false},
};

static void inputs_of(mica_scope *s, const loop *l, mica_array **carry, mica_array **xs, outside *o)
{
    o->w = mica_reshape(s, count_up(s, N * N, -4), SHAPE(N, N));
    o->b = mica_flip(s, mica_mul(s, count_up(s, N, 1), mica_scalar(s, 0.25)), 0);
    for (size_t i = 0; i < l->n_carry; i++) carry[i] = mica_add(s, count_up(s, N, 0), mica_scalar(s, (double)i));
    /* read backwards and across: not row-major */
    for (size_t i = 0; i < l->n_x; i++)
        xs[i] = mica_flip(s, mica_transpose(s, mica_reshape(s, count_up(s, N * T, (float)i), SHAPE(N, T))), 0);
}

static mica_status run_scan(mica_scope *s, const loop *l, mica_array **last, mica_array **ys)
{
    outside o;
    mica_array *carry[MOST], *xs[MOST];
    inputs_of(s, l, carry, xs, &o);
    mica_scan_options options;
    mica_scan_options_init(&options);
    options.n_carry = l->n_carry;
    options.n_x = l->n_x;
    options.n_y = l->n_y;
    options.length = l->length;
    options.reverse = l->reverse;
    return mica_scan(s, l->step, &o, &options, carry, xs, last, ys);
}

static void run_unrolled(mica_scope *s, const loop *l, mica_array **last, mica_array **ys)
{
    outside o;
    mica_array *xs[MOST], *x[MOST], *next[MOST], *y[MOST], *all[MOST][16];
    inputs_of(s, l, last, xs, &o);
    const int64_t length = l->length ? l->length : T;
    for (int64_t t = 0; t < length; t++) {
        const int64_t at = l->reverse ? length - 1 - t : t;
        for (size_t i = 0; i < l->n_x; i++) x[i] = mica_squeeze(s, mica_slice_axis(s, xs[i], 0, at, at + 1, 1), 0);
        l->step(s, last, x, next, y, &o);
        for (size_t i = 0; i < l->n_carry; i++) last[i] = next[i];
        for (size_t i = 0; i < l->n_y; i++) all[i][at] = y[i];
    }
    for (size_t i = 0; i < l->n_y; i++) ys[i] = mica_stack(s, all[i], (size_t)length, 0);
}

TEST(a_scan_is_the_unrolled_loop)
{
    for (size_t b = 0; b < COUNT(backends); b++)
        for (size_t i = 0; i < COUNT(loops); i++) {
            const loop *l = &loops[i];
            test_case("%s: %s", backends[b], l->name);
            mica_engine *e = open_engine(backends[b]);
            mica_scope *s = mica_scope_begin(e);
            mica_array *last[2 * MOST], *want[2 * MOST];
            CHECK_OK(run_scan(s, l, last, last + l->n_carry));
            run_unrolled(s, l, want, want + l->n_carry);
            const size_t n = l->n_carry + l->n_y;
            CHECK_OK(mica_eval(s, last, n));
            CHECK_OK(mica_eval(s, want, n));
            for (size_t k = 0; k < n; k++) EXPECT_MSG(close_arrays(last[k], want[k]), "result %zu differs", k);
            mica_scope_end(s);
            mica_close(e);
        }
}

/* Evaluates each result alone: what only other results need must not matter. */
TEST(parts_of_a_scan_alone)
{
    for (size_t b = 0; b < COUNT(backends); b++)
        for (size_t i = 0; i < COUNT(loops); i++)
            for (size_t k = 0; k < loops[i].n_carry + loops[i].n_y; k++) {
                const loop *l = &loops[i];
                test_case("%s: %s, result %zu", backends[b], l->name, k);
                mica_engine *e = open_engine(backends[b]);
                mica_scope *s = mica_scope_begin(e);
                mica_array *last[2 * MOST], *want[2 * MOST];
                CHECK_OK(run_scan(s, l, last, last + l->n_carry));
                run_unrolled(s, l, want, want + l->n_carry);
                /* also with an op after it */
                mica_array *y = mica_neg(s, last[k]), *z = mica_neg(s, want[k]);
                CHECK_OK(mica_eval(s, ARRAYS(last[k], y)));
                CHECK_OK(mica_eval(s, ARRAYS(want[k], z)));
                EXPECT(close_arrays(last[k], want[k]) && close_arrays(y, z));
                mica_scope_end(s);
                mica_close(e);
            }
}

TEST(equal_scans_use_one_plan_and_allocate_nothing)
{
    mica_engine *e = open_engine("cpu");
    for (size_t i = 0; i < COUNT(loops); i++) {
        test_case("%s", loops[i].name);
        for (int round = 0; round < 4; round++) {
            mica_scope *s = mica_scope_begin(e);
            mica_array *out[2 * MOST];
            CHECK_OK(run_scan(s, &loops[i], out, out + loops[i].n_carry));
            const mica_stats before = stats_of(e);
            const uint64_t allocations = mica__alloc_count();
            CHECK_OK(mica_eval(s, out, loops[i].n_carry + loops[i].n_y));
            const mica_stats after = stats_of(e);
            EXPECT_INT(after.plan_misses - before.plan_misses, round == 0);
            EXPECT_INT(after.plan_hits - before.plan_hits, round > 0);
            if (round > 1) {
                EXPECT_INT(mica__alloc_count() - allocations, 0);
                EXPECT_INT(after.bytes_allocated, before.bytes_allocated);
            }
            mica_scope_end(s);
        }
    }
    mica_close(e);
}

TEST(lengths)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_scan_options o;
        mica_scan_options_init(&o);
        o.n_carry = 1;
        o.n_x = o.n_y = 1;
        outside out = {NULL, mica_scalar(s, 1)};

        test_case("%s: 0", backends[b]);
        mica_array *c = count_up(s, 3, 5), *xs = mica_zeros(s, MICA_F32, SHAPE(0, 3)), *last, *ys;
        CHECK_OK(mica_scan(s, sum_step, &out, &o, &c, &xs, &last, &ys));
        CHECK_OK(mica_eval(s, ARRAYS(last, ys)));
        EXPECT_VALUES(last, 5, 6, 7);
        EXPECT_INT(mica_array_ndim(ys), 2);
        EXPECT(mica_array_shape(ys)[0] == 0 && mica_array_shape(ys)[1] == 3);

        test_case("%s: carries without elements", backends[b]);
        c = mica_zeros(s, MICA_F32, SHAPE(0));
        xs = mica_zeros(s, MICA_F32, SHAPE(4, 0));
        CHECK_OK(mica_scan(s, sum_step, &out, &o, &c, &xs, &last, &ys));
        CHECK_OK(mica_eval(s, ARRAYS(last, ys)));
        EXPECT(mica_array_shape(ys)[0] == 4 && mica_array_shape(ys)[1] == 0);

        test_case("%s: 10000", backends[b]);
        c = mica_zeros(s, MICA_F64, 0, NULL);
        xs = mica_arange(s, MICA_F64, 0, 10000, 1);
        CHECK_OK(mica_scan(s, sum_step, &out, &o, &c, &xs, &last, &ys));
        CHECK_OK(mica_eval(s, ARRAYS(last, ys)));
        EXPECT(item_of(last) == 49995000 && mica_data_f64(ys)[9999] == 49995000);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* ------------------------------------------------- mistakes and corners ----- */

static mica_status wrong_shape(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                               mica_array **y, void *user)
{
    (void)x, (void)y, (void)user;
    co[0] = mica_concat(s, (mica_array *[]){c[0], c[0]}, 2, 0);
    return MICA_OK;
}

static mica_status wrong_dtype(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                               mica_array **y, void *user)
{
    (void)x, (void)y, (void)user;
    co[0] = mica_cast(s, c[0], MICA_F64);
    return MICA_OK;
}

static mica_status left_out(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                            void *user)
{
    (void)s, (void)c, (void)x, (void)co, (void)y, (void)user;
    return MICA_OK;
}

static mica_status gives_up(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                            void *user)
{
    (void)s, (void)c, (void)x, (void)co, (void)y, (void)user;
    return MICA_ERR_UNSUPPORTED;
}

static mica_status evaluates(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                             void *user)
{
    (void)x, (void)y;
    co[0] = mica_neg(s, c[0]);
    const mica_status status = mica_eval(s, co, 1);
    snprintf(user, 256, "%s", mica_last_error());
    return status;
}

TEST(mistakes_in_steps)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = 1;
    o.length = 3;
    mica_array *c = count_up(s, 4, 1), *last = c;
    char inside[256] = "";
#define SCAN_FAILS(step, user, status, part)                                             \
    do {                                                                                 \
        test_case("%s", #step);                                                          \
        last = c;                                                                        \
        EXPECT_FAILS(mica_scan(s, step, user, &o, &c, NULL, &last, NULL), status, part); \
        EXPECT(!last);                                                                   \
        EXPECT_INT(mica_scope_status(s), status);                                        \
        mica_scope_clear_error(s);                                                       \
    } while (0)
    SCAN_FAILS(wrong_shape, NULL, MICA_ERR_SHAPE, "scan: carry 0 is f32 (4)");
    SCAN_FAILS(wrong_dtype, NULL, MICA_ERR_DTYPE, "scan: carry 0");
    SCAN_FAILS(left_out, NULL, MICA_ERR_ARGUMENT, "scan: array 0 is NULL");
    SCAN_FAILS(gives_up, NULL, MICA_ERR_UNSUPPORTED, "scan: the step returned");
    SCAN_FAILS(evaluates, inside, MICA_ERR_STATE, "scan: the step returned");
    EXPECT_STR(inside, "eval: a parameter of a scan step or of a traced function cannot be evaluated");
    SCAN_FAILS(NULL, NULL, MICA_ERR_ARGUMENT, "scan: step is NULL");
    o.length = -1;
    SCAN_FAILS(only_carry, NULL, MICA_ERR_ARGUMENT, "scan: length");
    o.length = 0;
    SCAN_FAILS(only_carry, NULL, MICA_ERR_ARGUMENT, "scan: a length is needed");
    o.n_carry = SIZE_MAX;
    EXPECT_FAILS(mica_scan(s, only_carry, NULL, &o, &c, NULL, &last, NULL), MICA_ERR_ARGUMENT, "2^20");
    mica_scope_clear_error(s);
    EXPECT_FAILS(mica_scan(s, only_carry, NULL, NULL, &c, NULL, &last, NULL), MICA_ERR_ARGUMENT, "options is NULL");
    mica_scope_clear_error(s);
    mica_scope_end(s);
    mica_close(e);
}

/* An index that is bad in one step only. */
static mica_status pick(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                        void *user)
{
    (void)user;
    co[0] = c[0];
    y[0] = mica_take(s, c[0], x[0], 0);
    return MICA_OK;
}

TEST(a_step_that_fails_while_it_runs)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_scan_options o;
        mica_scan_options_init(&o);
        o.n_carry = o.n_x = o.n_y = 1;
        mica_array *c = count_up(s, 4, 1), *last, *ys;
        mica_array *good = mica_from_data(s, MICA_I64, SHAPE(3), (int64_t[]){3, 0, -1});
        mica_array *bad = mica_from_data(s, MICA_I64, SHAPE(3), (int64_t[]){3, 77, -1});
        CHECK_OK(mica_scan(s, pick, NULL, &o, &c, &good, &last, &ys));
        CHECK_OK(mica_eval(s, &ys, 1));
        EXPECT_VALUES(ys, 4, 1, 4);
        CHECK_OK(mica_scan(s, pick, NULL, &o, &c, &bad, &last, &ys));
        EXPECT_FAILS(mica_eval(s, &ys, 1), MICA_ERR_INDEX, "77");
        mica_event *event;
        CHECK_OK(mica_eval_async(s, &ys, 1, &event));
        EXPECT_FAILS(mica_wait(event), MICA_ERR_INDEX, "77");
        mica_event_free(event);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* A step leaks a node of its body that does not depend on carry or x; the
 * caller evaluates it before the scan. */
static mica_status leaks(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                         void *user)
{
    (void)x, (void)y;
    mica_array **leaked = user;
    leaked[0] = mica_exp(s, leaked[1]);
    leaked[2] = mica_full(s, MICA_F32, SHAPE(4), 2);
    co[0] = mica_mul(s, leaked[2], mica_add(s, c[0], leaked[0]));
    return MICA_OK;
}

TEST(what_a_step_leaked_may_be_evaluated_first)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_scan_options o;
        mica_scan_options_init(&o);
        o.n_carry = 1;
        o.length = 3;
        mica_array *c = count_up(s, 4, 1), *leaked[3] = {NULL, mica_zeros(s, MICA_F32, SHAPE(4)), NULL}, *last;
        CHECK_OK(mica_scan(s, leaks, leaked, &o, &c, NULL, &last, NULL));
        CHECK_OK(mica_eval(s, ARRAYS(leaked[0], leaked[2])));
        CHECK_OK(mica_eval(s, &last, 1));
        EXPECT_VALUES(last, 22, 30, 38, 46);

        /* the scan outlives its scope, so the leaked array can no longer be computed: it must be
         * refused, not read from the wrong memory */
        CHECK_OK(mica_scan(s, leaks, leaked, &o, &c, NULL, &last, NULL));
        CHECK_OK(mica_eval(s, &leaked[0], 1));
        mica_keep(last);
        mica_scope_end(s);
        s = mica_scope_begin(e);
        EXPECT_FAILS(mica_eval(s, &last, 1), MICA_ERR_STATE, "scan");
        mica_drop(last);
        mica_scope_end(s);
        mica_close(e);
    }
}
