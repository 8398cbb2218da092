/* Splitting the batch of a scan over threads (graph/batch.h): which steps are split and which are
 * not. Splitting must not change the results, nor the errors of a step that fails. */
#include "api.h"
#include "base/alloc.h"

enum { LENGTH = 24, BATCH = 64, WIDTH = 32, MOST_PARTS = 4 };

typedef struct outside {
    mica_array *w, *b, *params[4], *source, *first, *listed[4]; /* parameters of a block, parameters of lists */
} outside;

#define LANES_STEP(name)                                                                                \
    static mica_status name(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, \
                            mica_array **y, void *user)

static mica_array *product(mica_scope *s, mica_array *h, void *user) { return mica_matmul(s, h, ((outside *)user)->w); }

LANES_STEP(rnn)
{
    mica_array *z = mica_add(s, mica_add(s, product(s, c[0], user), ((outside *)user)->b), x[0]);
    y[0] = co[0] = mica_tanh(s, mica_mul(s, z, mica_scalar(s, 0.5)));
    return MICA_OK;
}
LANES_STEP(halves_swapped)
{
    mica_array *z = product(s, c[0], user), *both[2] = {mica_slice_axis(s, z, 1, WIDTH / 2, WIDTH, 1),
                                                        mica_sigmoid(s, mica_slice_axis(s, z, 1, 0, WIDTH / 2, 1))};
    co[0] = mica_sub(s, mica_concat(s, both, 2, 1), x[0]);
    mica_array *cube = mica_reshape(s, co[0], 3, (int64_t[]){BATCH, 4, WIDTH / 4});
    y[0] = mica_permute(s, cube, (const int[]){0, 2, 1});
    return MICA_OK;
}
LANES_STEP(padded)
{
    mica_array *z = mica_pad(s, mica_slice_axis(s, product(s, c[0], user), 1, 0, WIDTH - 3, 1), (int64_t[]){0, 1},
                             (int64_t[]){0, 2}, 0);
    co[0] = mica_cos(s, mica_add(s, z, mica_mul(s, x[0], mica_slice_axis(s, c[0], 1, 0, 1, 1))));
    y[0] = mica_greater(s, co[0], x[0]);
    return MICA_OK;
}
LANES_STEP(synapse_block)
{
    const outside *o = user;
    mica_array *z = mica_synapses(s, c[0], NULL, NULL, o->params[0], o->params[1], o->params[2], o->params[3]);
    co[0] = mica_add(s, mica_mul(s, x[0], mica_scalar(s, 0.1)), mica_squeeze(s, mica_slice_axis(s, z, 1, 0, 1, 1), 1));
    y[0] = co[0];
    return MICA_OK;
}
LANES_STEP(synapse_lists)
{
    const outside *o = user;
    mica_array *z = mica_synapses(s, c[0], o->source, o->first, o->listed[0], o->listed[1], o->listed[2], o->listed[3]);
    co[0] = mica_add(s, mica_mul(s, x[0], mica_scalar(s, 0.1)), mica_squeeze(s, mica_slice_axis(s, z, 1, 0, 1, 1), 1));
    y[0] = co[0];
    return MICA_OK;
}

/* Steps in which rows of the batch depend on each other. */
LANES_STEP(rows_meet)
{
    co[0] = mica_sub(s, mica_sin(s, product(s, c[0], user)), mica_mean(s, x[0], (const int[]){0}, 1, true));
    y[0] = co[0];
    return MICA_OK;
}
LANES_STEP(rows_turned)
{
    co[0] = mica_tanh(s, mica_add(s, product(s, c[0], user), mica_flip(s, x[0], 0)));
    y[0] = co[0];
    return MICA_OK;
}
LANES_STEP(batch_as_columns)
{
    y[0] = mica_transpose(s, mica_slice_axis(s, c[0], 0, 0, WIDTH, 1));
    co[0] = mica_tanh(s, mica_add(s, product(s, c[0], user), x[0]));
    return MICA_OK;
}
LANES_STEP(gram)
{
    mica_array *all = mica_matmul(s, c[0], mica_transpose(s, c[0]));
    co[0] = mica_tanh(s, mica_add(s, mica_matmul(s, all, x[0]), product(s, c[0], user)));
    y[0] = co[0];
    return MICA_OK;
}
LANES_STEP(same_for_all)
{
    co[0] = mica_tanh(s, mica_add(s, product(s, c[0], user), x[0]));
    y[0] = mica_exp(s, ((outside *)user)->b);
    return MICA_OK;
}

typedef struct lanes_case {
    const char *name;
    mica_scan_fn step;
    bool cut, grad;
} lanes_case;

static const lanes_case lanes_cases[] = {
    {"rnn", rnn, true, true},
    {"halves swapped", halves_swapped, true, true},
    {"padded", padded, true, false},
    {"synapse block", synapse_block, true, false},
    {"synapse lists", synapse_lists, true, false},
    {"rows meet", rows_meet, false, false},
    {"rows turned", rows_turned, false, false},
    {"batch as columns", batch_as_columns, false, false},
    {"gram", gram, false, false},
    {"the same for all rows", same_for_all, false, false},
};

static mica_engine *engine_of(int threads, uint32_t passes)
{
    mica_engine_options o;
    mica_engine *e = NULL;
    mica_engine_options_init(&o);
    o.backend = "cpu";
    o.threads = threads;
    o.passes = passes;
    EXPECT_OK(mica_open(&o, &e));
    return e;
}

static outside make_outside(mica_scope *s)
{
    outside o = {.w = mica_mul(s, mica_random_normal(s, MICA_F32, SHAPE(WIDTH, WIDTH), 3), mica_scalar(s, 0.2)),
                 .b = mica_random_normal(s, MICA_F32, SHAPE(WIDTH), 4)};
    int32_t first[WIDTH + 1] = {0}, source[WIDTH * WIDTH];
    for (int c = 0; c < WIDTH; c++) first[c + 1] = first[c] + c * 5 % 7; /* lists of 0 to 6 synapses */
    for (int k = 0; k < first[WIDTH]; k++) source[k] = k * 11 % WIDTH;
    o.first = mica_from_data(s, MICA_I32, SHAPE(WIDTH + 1), first);
    o.source = mica_from_data(s, MICA_I32, SHAPE(first[WIDTH]), source);
    for (int i = 0; i < 4; i++) {
        o.params[i] = mica_random_normal(s, MICA_F32, SHAPE(WIDTH, WIDTH), 5 + (uint64_t)i);
        o.listed[i] = mica_random_normal(s, MICA_F32, SHAPE(first[WIDTH]), 5 + (uint64_t)i);
    }
    return o;
}

/* Fills out with the last carry, the ys and, if the case has them, gradients for w and x. Returns their number. */
static size_t scan_results(mica_scope *s, const lanes_case *k, outside *o, bool reverse, mica_array **out)
{
    mica_array *h = mica_random_normal(s, MICA_F32, SHAPE(BATCH, WIDTH), 1);
    mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(LENGTH, BATCH, WIDTH), 2);
    mica_scan_options options;
    mica_scan_options_init(&options);
    options.n_carry = options.n_x = options.n_y = 1;
    options.reverse = reverse;
    EXPECT_OK(mica_scan(s, k->step, o, &options, &h, &x, out, out + 1));
    if (!k->grad) return 2;
    mica_array *wrt[2] = {o->w, x}, *loss = mica_sum(s, mica_square(s, out[1]), NULL, 0, false);
    EXPECT_OK(mica_grad(s, loss, wrt, 2, out + 2));
    return 4;
}

enum { ROOM = LENGTH * BATCH * WIDTH };
static float lanes_got[4][ROOM], lanes_want[4][ROOM];

static void run_case(const lanes_case *k, int threads, uint32_t passes, bool reverse, bool cut, float (*to)[ROOM])
{
    static char text[1 << 16];
    mica_engine *e = engine_of(threads, passes);
    mica_scope *s = mica_scope_begin(e);
    outside o = make_outside(s);
    mica_array *out[4];
    const size_t n = scan_results(s, k, &o, reverse, out);
    EXPECT_OK(mica_plan_text(s, out, n, MICA_DUMP_PLAN, text, sizeof text, NULL));
    EXPECT_MSG(!strstr(text, "[the batch in") == !cut, "%s, %d threads: cut %d is wrong", k->name, threads, !cut);
    EXPECT_OK(mica_eval(s, out, n));
    memset(to, 0, sizeof lanes_got);
    for (size_t i = 0; i < n; i++) EXPECT_OK(mica_copy_out(out[i], to[i], mica_array_nbytes(out[i])));
    mica_scope_end(s);
    mica_close(e);
}

TEST(the_same_bits_in_any_number_of_parts)
{
    for (size_t i = 0; i < sizeof lanes_cases / sizeof *lanes_cases; i++)
        for (int reverse = 0; reverse < 2; reverse++) {
            const lanes_case *k = &lanes_cases[i];
            run_case(k, 1, MICA_PASS_ALL, reverse, false, lanes_want);
            for (int threads = 2; threads <= MOST_PARTS + 1; threads++) {
                run_case(k, threads, MICA_PASS_ALL, reverse, k->cut, lanes_got);
                EXPECT_MSG(memcmp(lanes_got, lanes_want, sizeof lanes_got) == 0, "%s: %d threads", k->name, threads);
            }
            run_case(k, 2, MICA_PASS_ALL & ~(uint32_t)MICA_PASS_LANES, reverse, false, lanes_got);
            EXPECT_MSG(memcmp(lanes_got, lanes_want, sizeof lanes_got) == 0, "%s: not cut", k->name);
        }
}

/* A source index out of range: the step of a part fails with its own error message. */
TEST(a_failing_part_reports_its_error)
{
    static const lanes_case bad = {"an invalid source", synapse_lists, true, false};
    mica_engine *e = engine_of(2, MICA_PASS_ALL);
    mica_scope *s = mica_scope_begin(e);
    outside o = make_outside(s);
    mica_array *out[4];
    o.source = mica_full(s, MICA_I32, 1, mica_array_shape(o.source), WIDTH + 7);
    EXPECT_INT(scan_results(s, &bad, &o, false, out), 2);
    EXPECT_FAILS(mica_eval(s, out, 2), MICA_ERR_INDEX, "source 39 of 32");
    mica_scope_end(s);
    s = mica_scope_begin(e);
    o = make_outside(s);
    EXPECT_INT(scan_results(s, &lanes_cases[0], &o, false, out), 4);
    EXPECT_OK(mica_eval(s, out, 4));
    mica_scope_end(s);
    mica_close(e);
}

/* With timing, steps run one after the other, and each is timed. */
TEST(times_of_parts)
{
    mica_engine *e = engine_of(2, MICA_PASS_ALL);
    mica_scope *s = mica_scope_begin(e);
    outside o = make_outside(s);
    mica_array *out[4];
    mica_stats before, after;
    EXPECT_INT(scan_results(s, &lanes_cases[0], &o, false, out), 4);
    mica_engine_profile(e, true);
    before.struct_size = after.struct_size = sizeof before;
    mica_engine_stats(e, &before);
    EXPECT_OK(mica_eval(s, out, 4));
    mica_engine_stats(e, &after);
    EXPECT_INT(mica_engine_profile_count(e), after.kernels - before.kernels);
    mica_scope_end(s);
    mica_close(e);
}

/* Returns true if planning and running did not reach the injected failure. */
static bool planned(uint64_t n)
{
    mica_engine *e = engine_of(2, MICA_PASS_ALL);
    mica_scope *s = mica_scope_begin(e);
    outside o = make_outside(s);
    mica_array *out[4];
    EXPECT_INT(scan_results(s, &lanes_cases[0], &o, false, out), 4);
    mica__alloc_fail_at(n);
    const mica_status status = mica_eval(s, out, 4);
    mica__alloc_fail_at(0);
    EXPECT_MSG(status == MICA_OK || status == MICA_ERR_MEMORY, "allocation %d: %s", (int)n, mica_last_error());
    mica_scope_end(s);
    mica_close(e);
    return status == MICA_OK;
}

TEST(every_allocation_of_its_plan_may_fail)
{
    uint64_t n = 1;
    const int64_t live = mica__alloc_live();
    while (n < 5000 && !planned(n)) n++;
    EXPECT_MSG(n > 20 && n < 5000, "%d allocations", (int)n);
    EXPECT_INT(mica__alloc_live(), live);
}
