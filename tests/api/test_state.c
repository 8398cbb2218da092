/* Arrays that change: the guarantees of mica_state, mica_update and mica_attention_cached on both
 * backends; order of updates, errors, reuse of plans.
 *
 * runs: metal-unsanitized */
#include <math.h>

#include "api.h"

static mica_array *integer(mica_scope *s, int64_t value) { return mica_from_data(s, MICA_I64, 0, NULL, &value); }

#define EACH_BACKEND(e)                             \
    for (size_t b_ = 0; b_ < COUNT(backends); b_++) \
        for (mica_engine *e = (test_case("%s", backends[b_]), open_engine(backends[b_])); e; mica_close(e), e = NULL)

TEST(a_state_is_zeros_and_is_written_in_place)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_state(s, MICA_F32, SHAPE(6));
        CHECK(mica_array_is_ready(state));
        EXPECT_VALUES(state, 0, 0, 0, 0, 0, 0);
        const void *where = mica_data(state);
        mica_array *after = mica_update(s, state, count_up(s, 2, 7), integer(s, 3), 0);
        CHECK_OK(mica_eval(s, &after, 1));
        EXPECT(mica_data(after) == where);
        EXPECT_VALUES(after, 0, 0, 0, 7, 8, 0);
        EXPECT_VALUES(state, 0, 0, 0, 7, 8, 0);
        mica_scope_end(s);
    }
}

TEST(every_axis_and_dtype)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16, MICA_F64, MICA_I8, MICA_U8, MICA_I32, MICA_I64};
    EACH_BACKEND(e)
    {
        for (size_t t = 0; t < COUNT(dtypes); t++)
            for (int axis = 0; axis < 3; axis++) {
                mica_scope *s = mica_scope_begin(e);
                int64_t shape[] = {3, 4, 5}, part[] = {3, 4, 5};
                part[axis] = 2;
                mica_array *state = mica_state(s, dtypes[t], 3, shape);
                mica_array *values = mica_reshape(s, count_up(s, part[0] * part[1] * part[2], 1.25f), 3, part);
                mica_array *after = mica_update(s, state, values, integer(s, 1), axis - (axis == 2 ? 3 : 0));
                mica_array *wide = mica_cast(s, after, MICA_F32);
                mica_array *narrow = mica_cast(s, mica_cast(s, values, dtypes[t]), MICA_F32);
                CHECK_OK(mica_eval(s, ARRAYS(wide, narrow)));
                int wrong = 0;
                for (int64_t i = 0; i < 60; i++) {
                    int64_t at[] = {i / 20, i / 5 % 4, i % 5};
                    float want = 0;
                    at[axis] -= 1;
                    if (at[axis] >= 0 && at[axis] < 2)
                        want = element(narrow, (at[0] * part[1] + at[1]) * part[2] + at[2]);
                    wrong += element(wide, i) != want;
                }
                EXPECT_MSG(wrong == 0, "%s axis %d: %d wrong", mica_dtype_name(dtypes[t]), axis, wrong);
                mica_scope_end(s);
            }
    }
}

/* Readers of the state see the old values, readers of the update the new ones, in any program order. */
TEST(readers_see_what_they_name)
{
    EACH_BACKEND(e)
    {
        for (int passes = 0; passes < 2; passes++) {
            mica_engine_options o = options_for(mica_engine_backend(e), 2);
            o.passes = passes ? MICA_PASS_ALL : 0;
            mica_engine *f = open_with(&o);
            mica_scope *s = mica_scope_begin(f);
            mica_array *state = mica_state(s, MICA_F32, SHAPE(3));
            mica_array *one = mica_update(s, state, count_up(s, 3, 1), integer(s, 0), 0);
            CHECK_OK(mica_eval(s, &one, 1));
            mica_array *two = mica_update(s, one, count_up(s, 2, 10), integer(s, 1), 0);
            mica_array *new_sum = mica_sum(s, two, NULL, 0, false);
            mica_array *old_sum = mica_sum(s, one, NULL, 0, false);         /* built last, runs first */
            mica_array *state_sum = mica_sum(s, mica_neg(s, state), NULL, 0, false); /* the same memory */
            mica_array *mixed = mica_add(s, mica_mul(s, two, mica_scalar(s, 2)), mica_square(s, one));
            CHECK_OK(mica_eval(s, ARRAYS(new_sum, old_sum, state_sum, mixed)));
            EXPECT_CLOSE(item_of(new_sum), 22, 0, 0);
            EXPECT_CLOSE(item_of(old_sum), 6, 0, 0);
            EXPECT_CLOSE(item_of(state_sum), -6, 0, 0);
            EXPECT_VALUES(mixed, 3, 24, 31);
            EXPECT(mica_array_is_ready(two));
            EXPECT_VALUES(state, 1, 10, 11);
            mica_scope_end(s);
            mica_close(f);
        }
    }
}

TEST(updates_in_sequence)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_state(s, MICA_F32, SHAPE(4));
        mica_array *a = mica_update(s, state, count_up(s, 2, 1), integer(s, 0), 0);
        mica_array *between = mica_mul(s, a, mica_scalar(s, 10));
        mica_array *b = mica_update(s, a, count_up(s, 2, 5), integer(s, 1), 0);
        /* the written values may be a shifted part of the state itself */
        mica_array *c = mica_update(s, b, mica_slice_axis(s, b, 0, 0, 3, 1), integer(s, 1), 0);
        mica_array *last = mica_mul(s, c, mica_scalar(s, 1));
        CHECK_OK(mica_eval(s, ARRAYS(last, between)));
        EXPECT_VALUES(between, 10, 20, 0, 0);
        EXPECT_VALUES(last, 1, 1, 5, 6);
        EXPECT_VALUES(state, 1, 1, 5, 6);
        /* equal updates run once */
        mica_array *v = count_up(s, 1, 9), *at = integer(s, 3);
        mica_array *x = mica_update(s, state, v, at, 0), *y = mica_update(s, state, v, at, 0);
        if (strcmp(mica_engine_backend(e), "cpu") == 0) {
            CHECK_OK(mica_eval(s, ARRAYS(x, y)));
            EXPECT_VALUES(y, 1, 1, 5, 9);
        }
        mica_scope_end(s);
    }
}

/* A write that ran is not repeated by later evaluations. */
TEST(a_write_runs_once)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_state(s, MICA_F32, SHAPE(2));
        mica_array *more = mica_add(s, state, mica_scalar(s, 1)); /* reads the old values */
        mica_array *after = mica_update(s, state, more, integer(s, 0), 0);
        mica_array *first = mica_sum(s, after, NULL, 0, false), *second = mica_max(s, after, NULL, 0, false);
        CHECK_OK(mica_eval(s, &first, 1));
        EXPECT(mica_array_is_ready(after));
        CHECK_OK(mica_eval(s, &second, 1));
        EXPECT_CLOSE(item_of(first), 2, 0, 0);
        EXPECT_CLOSE(item_of(second), 1, 0, 0);
        mica_event *event = NULL;
        after = mica_update(s, after, mica_add(s, after, mica_scalar(s, 1)), integer(s, 0), 0);
        mica_array *third = mica_sum(s, after, NULL, 0, false);
        CHECK_OK(mica_eval_async(s, &third, 1, &event));
        mica_array *fourth = mica_max(s, after, NULL, 0, false);
        CHECK_OK(mica_eval(s, &fourth, 1));
        CHECK_OK(mica_wait(event));
        mica_event_free(event);
        EXPECT_CLOSE(item_of(third), 4, 0, 0);
        EXPECT_CLOSE(item_of(fourth), 2, 0, 0);
        mica_scope_end(s);
    }
}

TEST(out_of_bounds_writes_nothing)
{
    EACH_BACKEND(e)
    {
        static const int64_t starts[] = {-1, 3, 4, INT64_MAX, INT64_MIN};
        for (size_t i = 0; i < COUNT(starts); i++) {
            mica_scope *s = mica_scope_begin(e);
            mica_array *state = mica_state(s, MICA_F16, SHAPE(4));
            mica_array *after = mica_update(s, state, count_up(s, 2, 1), integer(s, starts[i]), 0);
            EXPECT_FAILS(mica_eval(s, &after, 1), MICA_ERR_INDEX, "update");
            const uint16_t *data = mica_data_f16(state);
            for (int k = 0; k < 4; k++) EXPECT_INT(data[k], 0);
            mica_scope_end(s);
        }
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_state(s, MICA_F32, SHAPE(4));
        mica_array *none = mica_update(s, state, mica_zeros(s, MICA_F32, SHAPE(0)), integer(s, 4), 0);
        EXPECT_OK(mica_eval(s, &none, 1));
        mica_scope_end(s);
    }
}

TEST(what_cannot_be_ordered_is_refused)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_state(s, MICA_F32, SHAPE(3)), *at = integer(s, 0);
        mica_array *a = mica_update(s, state, count_up(s, 1, 1), at, 0);
        mica_array *b = mica_update(s, state, count_up(s, 1, 2), at, 0);
        EXPECT_FAILS(mica_eval(s, ARRAYS(a, b)), MICA_ERR_STATE, "update");
        mica_array *both = mica_mul(s, a, state); /* one op cannot read both: the old values are overwritten by then */
        EXPECT_FAILS(mica_eval(s, &both, 1), MICA_ERR_STATE, "old value");
        EXPECT_VALUES(state, 0, 0, 0);
        /* an evaluated part shares its memory */
        mica_array *part = mica_slice_axis(s, state, 0, 0, 2, 1);
        CHECK_OK(mica_eval(s, &part, 1));
        mica_array *sum = mica_add(s, mica_sum(s, part, NULL, 0, false), mica_sum(s, a, NULL, 0, false));
        EXPECT_FAILS(mica_eval(s, &sum, 1), MICA_ERR_STATE, "part");
        mica_scope_end(s);
    }
}

/* Rows of one large state, each used as a separate state. */
TEST(evaluated_parts_are_states)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *all = mica_state(s, MICA_F32, SHAPE(2, 3)), *row[2];
        for (int i = 0; i < 2; i++) {
            row[i] = mica_reshape(s, mica_slice_axis(s, all, 0, i, i + 1, 1), SHAPE(3));
            CHECK_OK(mica_eval(s, &row[i], 1));
        }
        mica_array *at = integer(s, 1);
        mica_array *a = mica_update(s, row[0], count_up(s, 2, 1), at, 0);
        mica_array *b = mica_update(s, row[1], mica_slice_axis(s, a, 0, 0, 2, 1), at, 0);
        CHECK_OK(mica_eval(s, ARRAYS(a, b)));
        EXPECT_VALUES(all, 0, 1, 2, 0, 0, 1);
        mica_scope_end(s);
    }
}

TEST(gradients_and_loops_are_refused)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *state = mica_state(s, MICA_F32, SHAPE(3)), *x = count_up(s, 1, 1), *grad = NULL;
    mica_array *loss = mica_sum(s, mica_update(s, state, x, integer(s, 0), 0), NULL, 0, false);
    EXPECT_FAILS(mica_grad(s, loss, &x, 1, &grad), MICA_ERR_UNSUPPORTED, "update");
    mica_scope_end(s);
    mica_close(e);
}

static mica_status write_step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                              mica_array **y_out, void *user)
{
    (void)y_out;
    mica_array *after = mica_update(s, user, mica_reshape(s, x[0], SHAPE(1)), integer(s, 0), 0);
    carry_out[0] = mica_add(s, carry[0], mica_sum(s, after, NULL, 0, false));
    return mica_scope_status(s);
}

TEST(no_update_in_a_scan)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *state = mica_state(s, MICA_F32, SHAPE(3)), *xs = count_up(s, 4, 1);
    mica_array *start = mica_zeros(s, MICA_F32, 0, NULL), *out = NULL;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = 1;
    mica_status status = mica_scan(s, write_step, state, &o, &start, &xs, &out, NULL);
    if (status == MICA_OK) status = mica_eval(s, &out, 1);
    EXPECT_INT(status, MICA_ERR_STATE);
    EXPECT(strstr(mica_last_error(), "scan") != NULL);
    mica_scope_end(s);
    mica_close(e);
}

/* ----------------------------------------------------------- plans ---------- */

TEST(one_plan_for_every_start)
{
    EACH_BACKEND(e)
    {
        mica_scope *outer = mica_scope_begin(e);
        mica_array *state = mica_state(outer, MICA_F16, SHAPE(8, 2));
        uint64_t misses = 0;
        for (int64_t i = 0; i < 8; i++) {
            mica_scope *s = mica_scope_begin(e);
            mica_array *row = mica_reshape(s, count_up(s, 2, (float)i), SHAPE(1, 2));
            mica_array *after = mica_update(s, state, row, integer(s, i), 0);
            mica_array *sum = mica_sum(s, mica_cast(s, after, MICA_F32), NULL, 0, false);
            CHECK_OK(mica_eval(s, &sum, 1));
            EXPECT_CLOSE(item_of(sum), (double)((i + 1) * (i + 1)), 0, 0);
            if (i == 0) misses = stats_of(e).plan_misses;
            mica_scope_end(s);
        }
        EXPECT_INT(stats_of(e).plan_misses, misses);
        mica_scope_end(outer);
    }
}

/* user is a state of the function; the first input is a state too. */
static mica_status step_of(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                           void *user)
{
    (void)n_in, (void)n_out;
    mica_array *given = mica_update(s, in[0], in[1], in[2], 0);
    mica_array *own = mica_update(s, user, in[1], in[2], 0);
    out[0] = mica_add(s, mica_sum(s, given, NULL, 0, false), mica_sum(s, own, NULL, 0, false));
    return mica_scope_status(s);
}

TEST(states_of_compiled_functions)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *own = mica_state(s, MICA_F32, SHAPE(4)), *first = mica_state(s, MICA_F32, SHAPE(4));
        mica_array *second = mica_state(s, MICA_F32, SHAPE(4)), *out = NULL;
        mica_function *f = NULL;
        CHECK_OK(mica_compile(e, step_of, own, &f));
        for (int64_t i = 0; i < 4; i++)
            CHECK_OK(
                mica_call(s, f, ARRAYS(i % 2 ? second : first, count_up(s, 1, (float)i + 1), integer(s, i)), &out, 1));
        EXPECT_INT(stats_of(e).compiles, 1);
        EXPECT_VALUES(own, 1, 2, 3, 4);
        EXPECT_VALUES(first, 1, 0, 3, 0);
        EXPECT_VALUES(second, 0, 2, 0, 4);
        EXPECT_CLOSE(item_of(out), 16, 0, 0);
        mica_array *none = count_up(s, 4, 0);
        EXPECT_FAILS(mica_call(s, f, ARRAYS(none, count_up(s, 1, 1), integer(s, 0)), &out, 1), MICA_ERR_STATE,
                     "not a state");
        EXPECT_FAILS(mica_call(s, f, ARRAYS(own, count_up(s, 1, 1), integer(s, 0)), &out, 1), MICA_ERR_STATE,
                     "another");
        EXPECT_FAILS(mica_call(s, f, ARRAYS(first, count_up(s, 1, 1), integer(s, 4)), &out, 1), MICA_ERR_INDEX,
                     "update");
        EXPECT_VALUES(own, 1, 2, 3, 4);
        mica_function_free(f);
        mica_scope_end(s);
    }
}

/* A product keeps a packed copy of a weight, but not of a state. */
TEST(no_stale_copies_of_a_state)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *outer = mica_scope_begin(e);
    enum { N = 64 };
    mica_array *w = mica_state(outer, MICA_F32, SHAPE(N, N));
    for (int i = 1; i < 6; i++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *now = mica_update(s, w, mica_full(s, MICA_F32, SHAPE(N, N), i), integer(s, 0), 0);
        mica_array *y = mica_matmul(s, mica_ones(s, MICA_F32, SHAPE(N, N)), now);
        CHECK_OK(mica_eval(s, &y, 1));
        EXPECT_CLOSE(element(y, 5), N * i, 0, 0);
        mica_scope_end(s);
    }
    mica_scope_end(outer);
    mica_close(e);
}

/* ------------------------------------------------------------ attention ----- */

typedef struct cache_case {
    int64_t heads, kv_heads, times, room, dims;
    mica_dtype dtype;
    bool causal;
} cache_case;

static mica_array *random_of(mica_scope *s, mica_dtype dtype, const int64_t *shape, uint64_t seed)
{
    return mica_cast(s, mica_random_normal(s, MICA_F32, 4, shape, seed), dtype);
}

/* Compares with mica_attention in f32 over the first `length` keys. The rest of the cache holds NaN. */
static void check_cache(mica_engine *e, const cache_case *c, int64_t length)
{
    mica_scope *s = mica_scope_begin(e);
    const int64_t kv[] = {2, c->kv_heads, length, c->dims}, rest[] = {2, c->kv_heads, c->room - length, c->dims};
    mica_array *q = random_of(s, MICA_F32, (int64_t[]){2, c->heads, c->times, c->dims}, 1);
    mica_array *cache[2], *plain[2];
    for (int i = 0; i < 2; i++) {
        mica_array *x = random_of(s, c->dtype, kv, 2 + (uint64_t)i);
        cache[i] = mica_state(s, c->dtype, 4, (int64_t[]){2, c->kv_heads, c->room, c->dims});
        cache[i] = mica_update(s, cache[i], mica_full(s, MICA_F32, 4, rest, NAN), integer(s, length), 2);
        cache[i] = mica_update(s, cache[i], x, integer(s, 0), 2);
        plain[i] = mica_cast(s, x, MICA_F32);
    }
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = c->causal;
    mica_array *got = mica_attention_cached(s, q, cache[0], cache[1], integer(s, length), &o);
    mica_array *want = mica_attention(s, q, plain[0], plain[1], NULL, &o);
    CHECK_OK(mica_eval(s, ARRAYS(got, want)));
    EXPECT_INT(mica_array_dtype(got), MICA_F32);
    EXPECT(close_arrays(got, want));
    mica_scope_end(s);
}

static const cache_case cache_cases[] = {
    {20, 5, 1, 70, 128, MICA_F16, true}, {4, 1, 1, 600, 64, MICA_BF16, true},  {8, 8, 1, 40, 48, MICA_F32, true},
    {4, 2, 17, 64, 32, MICA_F16, true},  {4, 2, 40, 300, 16, MICA_F16, false}, {3, 3, 1, 33, 20, MICA_F16, true},
    {2, 1, 5, 33, 7, MICA_BF16, true},   {6, 2, 3, 20, 16, MICA_F32, false},
};

TEST(attention_over_a_cache)
{
    EACH_BACKEND(e)
    {
        for (size_t i = 0; i < COUNT(cache_cases); i++) {
            const cache_case *c = &cache_cases[i];
            const int64_t lengths[] = {0, 1, 3, c->room / 2, c->room - 1, c->room};
            for (size_t k = 0; k < COUNT(lengths); k++) check_cache(e, c, lengths[k]);
        }
    }
}

/* The same with an i8 cache. The result equals f32 attention over the decoded values, and
 * differs from attention over the original values by at most half a scale. */
static void check_bytes(mica_engine *e, const cache_case *c, int64_t length)
{
    mica_scope *s = mica_scope_begin(e);
    const int64_t kv[] = {2, c->kv_heads, length, c->dims};
    mica_array *q = random_of(s, MICA_F32, (int64_t[]){2, c->heads, c->times, c->dims}, 1);
    mica_array *cache[2], *scale[2], *plain[2], *x[2];
    for (int i = 0; i < 2; i++) {
        mica_array *codes = NULL, *scales = NULL, *at = integer(s, 0);
        x[i] = random_of(s, MICA_F32, kv, 2 + (uint64_t)i);
        CHECK_OK(mica_rows_to_i8(s, x[i], &codes, &scales));
        cache[i] = mica_state(s, MICA_I8, 4, (int64_t[]){2, c->kv_heads, c->room, c->dims});
        scale[i] = mica_state(s, MICA_F32, 3, (int64_t[]){2, c->kv_heads, c->room});
        scale[i] = mica_update(s, scale[i], mica_full(s, MICA_F32, SHAPE(2, c->kv_heads, c->room), NAN), at, 2);
        cache[i] = mica_update(s, cache[i], codes, at, 2);
        scale[i] = mica_update(s, scale[i], scales, at, 2);
        plain[i] = mica_mul(s, mica_cast(s, codes, MICA_F32), mica_expand_dims(s, scales, -1));
    }
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = c->causal;
    mica_array *want = mica_attention(s, q, plain[0], plain[1], NULL, &o);
    mica_array *wide = mica_attention(s, q, x[0], x[1], NULL, &o);
    o.k_scale = scale[0];
    o.v_scale = scale[1];
    mica_array *got = mica_attention_cached(s, q, cache[0], cache[1], integer(s, length), &o);
    CHECK_OK(mica_eval(s, ARRAYS(got, want, wide)));
    EXPECT(close_arrays(got, want));
    double worst = 0;
    for (int64_t i = 0; i < mica_array_size(got); i++) {
        const double d = fabs((double)element(got, i) - (double)element(wide, i));
        if (!(d <= worst)) worst = d;
    }
    /* Rows of normal numbers have a scale of up to 4.5 / 127. A value is off by half of that;
     * a score, by sqrt(dims) errors of a third of it, moves a weight by some 2 %, and a sum
     * of values of about 1 by less than that. */
    EXPECT_MSG(worst < 0.1, "%g from f32", worst);
    mica_scope_end(s);
}

TEST(attention_over_a_cache_of_bytes)
{
    EACH_BACKEND(e)
    {
        for (size_t i = 0; i < COUNT(cache_cases); i++) {
            const cache_case *c = &cache_cases[i];
            const int64_t lengths[] = {1, 3, c->room / 2, c->room};
            for (size_t k = 0; k < COUNT(lengths); k++) check_bytes(e, c, lengths[k]);
        }
    }
}

TEST(rows_to_bytes)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *x =
            mica_from_data(s, MICA_F32, SHAPE(4, 3), (float[]){1, -2, 0.5f, 0, 0, 0, 127, 126.5f, -125.5f, NAN, 1, 2});
        mica_array *codes = NULL, *scales = NULL;
        CHECK_OK(mica_rows_to_i8(s, x, &codes, &scales));
        CHECK_OK(mica_eval(s, ARRAYS(codes, scales)));
        static const int8_t want[] = {64, -127, 32, 0, 0, 0, 127, 126, -126};
        for (int i = 0; i < 9; i++) EXPECT_INT(mica_data_i8(codes)[i], want[i]);
        const float *scale = mica_data_f32(scales);
        EXPECT_CLOSE(scale[0], 2.0 / 127, 1e-7, 0);
        EXPECT_CLOSE(scale[1], 0, 0, 0);
        EXPECT_CLOSE(scale[2], 1, 0, 0);
        EXPECT(scale[3] != scale[3]);
        mica_scope_end(s);
    }
}

TEST(attention_over_a_cache_refuses)
{
    EACH_BACKEND(e)
    {
        mica_scope *s = mica_scope_begin(e);
        mica_array *q = mica_ones(s, MICA_F32, SHAPE(1, 2, 1, 16)), *k = mica_state(s, MICA_F16, SHAPE(1, 1, 8, 16));
        static const int64_t lengths[] = {-1, 9, INT64_MAX};
        for (size_t i = 0; i < COUNT(lengths); i++) {
            mica_array *y = mica_attention_cached(s, q, k, k, integer(s, lengths[i]), NULL);
            EXPECT_FAILS(mica_eval(s, &y, 1), MICA_ERR_INDEX, "attention_cached");
        }
        mica_array *at = integer(s, 1), *grad = NULL;
        mica_array *loss = mica_sum(s, mica_attention_cached(s, q, k, k, at, NULL), NULL, 0, false);
        EXPECT_FAILS(mica_grad(s, loss, &q, 1, &grad), MICA_ERR_UNSUPPORTED, "attention_cached");
        mica_scope_end(s);
    }
}

/* T queries at once, and one after the other as in text generation, with one thread and
 * with several: equal bits. */
static void decode(int threads, int64_t times, int64_t total, float *out)
{
    mica_engine_options o = options_for("cpu", threads);
    mica_engine *e = open_with(&o);
    mica_scope *outer = mica_scope_begin(e);
    enum { H = 4, G = 2, D = 32 };
    mica_array *cache[2];
    for (int i = 0; i < 2; i++) cache[i] = mica_state(outer, MICA_F16, SHAPE(1, G, total, D));
    mica_array *q = mica_random_normal(outer, MICA_F32, SHAPE(1, H, total, D), 1);
    mica_array *kv[] = {mica_random_normal(outer, MICA_F32, SHAPE(1, G, total, D), 2),
                        mica_random_normal(outer, MICA_F32, SHAPE(1, G, total, D), 3)};
    CHECK_OK(mica_eval(outer, ARRAYS(q, kv[0], kv[1])));
    mica_attention_options a;
    mica_attention_options_init(&a);
    a.causal = true;
    for (int64_t t = 0; t < total; t += times) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *now[2];
        for (int i = 0; i < 2; i++)
            now[i] = mica_update(s, cache[i], mica_slice_axis(s, kv[i], 2, t, t + times, 1), integer(s, t), 2);
        mica_array *y = mica_attention_cached(s, mica_slice_axis(s, q, 2, t, t + times, 1), now[0], now[1],
                                              integer(s, t + times), &a);
        CHECK_OK(mica_eval(s, &y, 1));
        for (int64_t h = 0; h < H; h++)
            memcpy(out + (h * total + t) * D, mica_data_f32(y) + h * times * D, (size_t)(times * D) * sizeof *out);
        mica_scope_end(s);
    }
    mica_scope_end(outer);
    mica_close(e);
}

TEST(a_batch_equals_single_ones)
{
    enum { TOTAL = 600, SIZE = 4 * TOTAL * 32 }; /* longer than one part of 512 */
    static float one[SIZE], other[SIZE];
    decode(1, 1, TOTAL, one);
    static const int64_t batches[] = {1, 2, 3, 8, 50, TOTAL};
    for (size_t i = 0; i < COUNT(batches); i++) {
        decode(2, batches[i], TOTAL, other);
        int differ = 0;
        /* a GPU uses other kernels for many queries */
        const double near = on_metal() ? 1e-5 : 0;
        for (int k = 0; k < SIZE; k++) differ += !test_close(other[k], one[k], near, near);
        EXPECT_MSG(differ == 0, "%d at a time: %d differ", (int)batches[i], differ);
    }
}
