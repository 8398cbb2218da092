/* Ownership and lifetime: scopes, keep and drop, foreign memory, and an engine that is closed while
 * its arrays still exist.
 *
 * runs: metal, check */
#include "api.h"
#include "base/alloc.h"

/* -------------------------------------------------------- foreign memory --- */

TEST(wrapped_memory_is_released_once)
{
    mica_engine *e = open_engine("cpu");
    float data[6] = {0, 1, 2, 3, 4, 5};

    test_case("at the end of the scope");
    released r = {data, 0, 0};
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_wrap(s, MICA_F32, SHAPE(2, 3), NULL, data, count_release, &r);
    mica_array *y = mica_neg(s, x);
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT(mica_data(x) == (const void *)data);
    EXPECT_INT(r.times, 0);
    mica_scope_end(s);
    EXPECT_INT(r.times, 1);
    EXPECT_INT(r.strangers, 0);

    test_case("with the last view");
    r = (released){data, 0, 0};
    s = mica_scope_begin(e);
    x = mica_wrap(s, MICA_F32, SHAPE(2, 3), NULL, data, count_release, &r);
    y = mica_keep(mica_flip(s, x, 1));
    CHECK_OK(mica_eval(s, &y, 1));
    mica_scope_end(s);
    EXPECT_INT(r.times, 0);
    EXPECT_VALUES(y, 2, 1, 0, 5, 4, 3);
    mica_drop(y);
    EXPECT_INT(r.times, 1);

    test_case("with the scope, though what was computed from it stays");
    r = (released){data, 0, 0};
    s = mica_scope_begin(e);
    y = mica_keep(mica_neg(s, mica_wrap(s, MICA_F32, SHAPE(2, 3), NULL, data, count_release, &r)));
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT_INT(r.times, 0); /* kept, because a gradient may still be requested */
    mica_scope_end(s);
    EXPECT_INT(r.times, 1);
    EXPECT_VALUES(y, 0, -1, -2, -3, -4, -5);
    mica_drop(y);

    test_case("with a lazy array that needs it");
    r = (released){data, 0, 0};
    s = mica_scope_begin(e);
    y = mica_keep(mica_neg(s, mica_wrap(s, MICA_F32, SHAPE(2, 3), NULL, data, count_release, &r)));
    mica_scope_end(s);
    EXPECT_INT(r.times, 0);
    s = mica_scope_begin(e);
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT_VALUES(y, 0, -1, -2, -3, -4, -5);
    EXPECT_INT(r.times, 1); /* its scope has ended, so no gradient can be requested */
    mica_scope_end(s);
    mica_drop(y);
    EXPECT_INT(r.times, 1);

    test_case("after the engine was closed");
    r = (released){data, 0, 0};
    s = mica_scope_begin(e);
    x = mica_keep(mica_wrap(s, MICA_F32, SHAPE(3, 2), (int64_t[]){1, 3}, data, count_release, &r));
    mica_scope_end(s);
    mica_close(e);
    EXPECT_INT(r.times, 0);
    EXPECT_VALUES(x, 0, 3, 1, 4, 2, 5);
    mica_drop(x);
    EXPECT_INT(r.times, 1);
    EXPECT_INT(r.strangers, 0);
}

TEST(wrapping_that_fails_releases_once_too)
{
    const int64_t live = live_blocks();
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    static float data[16];
    released r = {data, 0, 0};
    const int64_t big = INT64_MAX / 2;
    int cases = 0;
#define WRAP_FAILS(scope, dtype, ndim, shape, strides, pointer)                             \
    do {                                                                                    \
        test_case("%s, %s, %s, %s", #dtype, #ndim, #shape, #strides);                       \
        r = (released){(void *)(uintptr_t)(pointer), 0, 0};                                 \
        EXPECT(!mica_wrap(scope, dtype, ndim, shape, strides, pointer, count_release, &r)); \
        EXPECT_INT(r.times, 1);                                                             \
        EXPECT_INT(r.strangers, 0);                                                         \
        EXPECT(strstr(mica_last_error(), "wrap"));                                          \
        EXPECT(!mica_wrap(scope, dtype, ndim, shape, strides, pointer, NULL, NULL));        \
        mica_scope_clear_error(s);                                                          \
        cases++;                                                                            \
    } while (0)
    WRAP_FAILS(NULL, MICA_F32, 1, (int64_t[]){4}, NULL, data);
    WRAP_FAILS(s, (mica_dtype)99, 1, (int64_t[]){4}, NULL, data);
    WRAP_FAILS(s, (mica_dtype)-1, 1, (int64_t[]){4}, NULL, data);
    WRAP_FAILS(s, MICA_F32, -1, (int64_t[]){4}, NULL, data);
    WRAP_FAILS(s, MICA_F32, 9, ((int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}), NULL, data);
    WRAP_FAILS(s, MICA_F32, 1, NULL, NULL, data);
    WRAP_FAILS(s, MICA_F32, 1, (int64_t[]){-4}, NULL, data);
    WRAP_FAILS(s, MICA_F32, 2, ((int64_t[]){big, big}), NULL, data);
    WRAP_FAILS(s, MICA_F32, 1, (int64_t[]){4}, (int64_t[]){INT64_MAX / 4}, data);
    WRAP_FAILS(s, MICA_F32, 1, (int64_t[]){4}, (int64_t[]){INT64_MIN}, data);
    WRAP_FAILS(s, MICA_F32, 1, (int64_t[]){4}, NULL, NULL);
    WRAP_FAILS(s, MICA_F32, 1, (int64_t[]){2}, NULL, (char *)data + 1);
    EXPECT_INT(cases, 12);
    mica_scope_end(s);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);
}

static mica_status zero_vjp(mica_scope *s, mica_array *ct, mica_array *const *in, size_t n, mica_array **grads,
                            void *user)
{
    (void)s, (void)ct, (void)in, (void)user;
    for (size_t i = 0; i < n; i++) grads[i] = NULL;
    return MICA_OK;
}

TEST(custom_grad_releases_once)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    released r = {&r, 0, 0};
    mica_array *x = count_up(s, 3, 1), *y = mica_square(s, x);
    mica_array *c = mica_custom_grad(s, y, &x, 1, zero_vjp, &r, count_release), *grad;
    CHECK_OK(mica_grad(s, mica_sum(s, c, NULL, 0, false), &x, 1, &grad));
    CHECK_OK(mica_eval(s, &grad, 1));
    EXPECT_VALUES(grad, 0, 0, 0);
    EXPECT_INT(r.times, 0);
    mica_scope_end(s);
    EXPECT_INT(r.times, 1);

    s = mica_scope_begin(e);
    x = count_up(s, 3, 1);
    EXPECT(!mica_custom_grad(s, NULL, &x, 1, zero_vjp, &r, count_release));
    EXPECT_INT(r.times, 2);
    mica_scope_clear_error(s);
    EXPECT(!mica_custom_grad(s, x, &x, 1, NULL, &r, count_release));
    EXPECT_INT(r.times, 3);
    mica_scope_clear_error(s);
    EXPECT(!mica_custom_grad(s, x, NULL, 1, zero_vjp, &r, count_release));
    EXPECT_INT(r.times, 4);
    EXPECT(!mica_custom_grad(NULL, x, &x, 1, zero_vjp, &r, count_release));
    EXPECT_INT(r.times, 5);
    EXPECT_INT(r.strangers, 0);
    mica_scope_end(s);
    EXPECT_INT(r.times, 5);
    mica_close(e);
}

static void release_and_drop(void *data, void *user)
{
    mica_array **other = user;
    (void)data;
    mica_drop(*other);
    *other = NULL;
}

TEST(a_release_may_drop_other_arrays)
{
    const int64_t live = live_blocks();
    mica_engine *e = open_engine("cpu");
    float data[3] = {1, 2, 3};
    mica_scope *s = mica_scope_begin(e);
    mica_array *kept = mica_keep(count_up(s, 3, 0));
    mica_wrap(s, MICA_F32, SHAPE(3), NULL, data, release_and_drop, &kept);
    mica_scope_end(s);
    EXPECT(!kept);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);
}

TEST(from_data_copies)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    float data[3] = {1, 2, 3};
    mica_array *x = mica_from_data(s, MICA_F32, SHAPE(3), data);
    mica_array *empty = mica_from_data(s, MICA_F32, SHAPE(0), NULL);
    memset(data, 0, sizeof data);
    EXPECT_VALUES(x, 1, 2, 3);
    EXPECT(mica_array_is_ready(empty));
    EXPECT_INT(stats_of(e).copies, 2);
    EXPECT_INT(stats_of(e).bytes_copied, sizeof data);
    uint8_t odd[3] = {0, 2, 255}; /* not valid bools of C: they are converted to 0 and 1 */
    mica_array *b = mica_from_data(s, MICA_BOOL, SHAPE(3), odd);
    const unsigned char *bytes = (const unsigned char *)mica_data_bool(b);
    EXPECT(bytes[0] == 0 && bytes[1] == 1 && bytes[2] == 1);
    mica_scope_end(s);
    mica_close(e);
}

/* ------------------------------------------------------------ references --- */

TEST(scopes_own_what_is_made_through_them)
{
    const int64_t live = live_blocks();
    mica_engine *e = open_engine("cpu");
    for (int round = 0; round < 3; round++) {
        mica_scope *s = mica_scope_begin(e), *t = mica_scope_begin(e);
        mica_array *x = count_up(s, 10, 1), *y = mica_exp(t, mica_neg(s, x));
        CHECK_OK(mica_eval(t, &y, 1));
        mica_scope_end(round ? s : t); /* in either order */
        mica_scope_end(round ? t : s);
        EXPECT_INT(stats_of(e).bytes_in_use, 0);
    }
    mica_scope_end(NULL);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);
}

TEST(keep_and_drop_across_the_end_of_a_scope)
{
    const int64_t live = live_blocks();
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 4, 1);
    mica_array *ready = mica_keep(mica_square(s, x)), *lazy = mica_keep(mica_neg(s, mica_square(s, x)));
    EXPECT(mica_keep(ready) == ready); /* twice */
    EXPECT(!mica_keep(NULL));
    CHECK_OK(mica_eval(s, &ready, 1));
    mica_scope_end(s);
    EXPECT_VALUES(ready, 1, 4, 9, 16);
    EXPECT(!mica_array_is_ready(lazy));
    mica_drop(ready);

    s = mica_scope_begin(e);
    mica_array *y = mica_add(s, ready, lazy);
    CHECK_OK(mica_eval(s, ARRAYS(y, lazy)));
    EXPECT_VALUES(y, 0, 0, 0, 0);
    EXPECT_VALUES(lazy, -1, -4, -9, -16);
    mica_scope_end(s);
    EXPECT_VALUES(ready, 1, 4, 9, 16);
    mica_drop(ready);
    mica_drop(lazy);
    mica_drop(NULL);
    EXPECT_INT(stats_of(e).bytes_in_use, 0);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);
}

/* The loop of every training program: the state of a step is kept lazily and
 * evaluated in the next scope. The arrays it was computed from must not accumulate. */
TEST(a_chain_of_kept_arrays_does_not_grow)
{
    for (int async = 0; async <= 1; async++) {
        test_case("%s", async ? "async" : "eval");
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        mica_array *state = mica_keep(count_up(s, 100, 0));
        mica_scope_end(s);
        uint64_t in_use = 0;
        int64_t live = 0;
        for (int step = 0; step < 20; step++) {
            s = mica_scope_begin(e);
            mica_array *next = mica_keep(mica_add(s, state, mica_scalar(s, 1)));
            mica_scope_end(s);
            mica_drop(state);
            state = next;
            s = mica_scope_begin(e);
            if (async) {
                mica_event *event;
                CHECK_OK(mica_eval_async(s, &state, 1, &event));
                CHECK_OK(mica_wait(event));
                mica_event_free(event);
            } else {
                CHECK_OK(mica_eval(s, &state, 1));
            }
            mica_scope_end(s);
            if (step == 5) in_use = stats_of(e).bytes_in_use, live = live_blocks();
        }
        EXPECT_INT(stats_of(e).bytes_in_use, in_use);
#if !defined(MICA_DEBUG) /* debug builds keep the records of ended scopes */
        EXPECT(llabs(live_blocks() - live) <= 1); /* the stream may still be about to free the last event */
#else
        (void)live;
#endif
        EXPECT(element(state, 0) == 20 && element(state, 99) == 119);
        mica_drop(state);
        mica_close(e);
    }
}

TEST(arrays_outlive_the_engine)
{
    const int64_t live = live_blocks();
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e), *open = mica_scope_begin(e);
    mica_array *y = mica_keep(mica_square(s, count_up(s, 4, 1)));
    mica_array *view = mica_keep(mica_flip(s, y, 0)), *lazy = mica_keep(mica_neg(s, y));
    CHECK_OK(mica_eval(s, ARRAYS(y, view)));
    mica_scope_end(s);
    mica_close(e);
    EXPECT_VALUES(y, 1, 4, 9, 16);
    EXPECT_VALUES(view, 16, 9, 4, 1);
    EXPECT(!mica_array_is_ready(lazy));
    EXPECT_INT(mica_array_size(lazy), 4);

    /* A scope that is still open has no error and can build arrays, but evaluates nothing. */
    mica_array *sum = mica_add(open, y, lazy);
    EXPECT(sum && count_up(open, 3, 1));
    EXPECT_FAILS(mica_eval(open, &sum, 1), MICA_ERR_STATE, "closed");
    mica_event *event;
    EXPECT_FAILS(mica_eval_async(open, &sum, 1, &event), MICA_ERR_STATE, "closed");
    EXPECT(!event);
    mica_plan_info info = {.struct_size = sizeof info};
    EXPECT_FAILS(mica_plan_query(open, &sum, 1, &info), MICA_ERR_STATE, "closed");
    mica_scope_end(open);
    mica_drop(y);
    mica_drop(lazy);
    EXPECT_VALUES(view, 16, 9, 4, 1);
    mica_drop(view);
    EXPECT_INT(live_blocks(), live);
}

/* --------------------------------------------------------------- failures -- */

TEST(null_in_null_out_and_the_first_failure_stays)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    EXPECT_INT(mica_scope_status(s), MICA_OK);
    EXPECT_STR(mica_scope_error(s), "");
    mica_array *a = count_up(s, 4, 1), *b = count_up(s, 5, 1);
    mica_array *bad = mica_add(s, a, b);
    EXPECT(!bad);
    EXPECT_INT(mica_scope_status(s), MICA_ERR_SHAPE);
    EXPECT_STR(mica_scope_error(s), "add: shapes (4) and (5) do not broadcast");
    EXPECT_STR(mica_last_error(), mica_scope_error(s));
    /* the enclosing expression */
    mica_array *y = mica_sum(s, mica_exp(s, mica_mul(s, bad, a)), NULL, 0, false);
    EXPECT(!y);
    EXPECT_INT(mica_scope_status(s), MICA_ERR_SHAPE);
    /* a second failure does not hide the first */
    EXPECT(!mica_zeros(s, MICA_F32, SHAPE(-1)));
    EXPECT(strstr(mica_last_error(), "-1"));
    EXPECT_FAILS(mica_eval(s, &y, 1), MICA_ERR_SHAPE, "add: shapes (4) and (5)");
    EXPECT_FAILS(mica_eval(s, &a, 1), MICA_ERR_SHAPE, "add: shapes (4) and (5)");
    mica_array *grad;
    EXPECT_FAILS(mica_grad(s, y, &a, 1, &grad), MICA_ERR_SHAPE, "add: shapes (4) and (5)");
    EXPECT_INT(stats_of(e).kernels, 0);

    mica_scope_clear_error(s);
    EXPECT_INT(mica_scope_status(s), MICA_OK);
    EXPECT_STR(mica_scope_error(s), "");
    y = mica_neg(s, a);
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT_VALUES(y, -1, -2, -3, -4);
    EXPECT_FAILS(mica_eval(s, (mica_array *[]){y, NULL}, 2), MICA_ERR_ARGUMENT, "NULL");
    mica_scope_end(s);

    /* other scopes are not affected */
    s = mica_scope_begin(e);
    EXPECT_INT(mica_scope_status(s), MICA_OK);
    EXPECT_STR(mica_scope_error(s), "");
    mica_scope_end(s);
    mica_close(e);
}

TEST(arrays_of_another_engine_are_refused)
{
    mica_engine *e = open_engine("cpu"), *f = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e), *t = mica_scope_begin(f);
    mica_array *x = count_up(s, 4, 1), *y = count_up(t, 4, 1), *lazy = mica_neg(t, y);
    EXPECT(!mica_add(s, x, y));
    EXPECT(strstr(mica_scope_error(s), "add") && strstr(mica_scope_error(s), "another engine"));
    mica_scope_clear_error(s);
    EXPECT_FAILS(mica_eval(s, &lazy, 1), MICA_ERR_ARGUMENT, "another engine");
    mica_array *list[] = {x, y}, *grad;
    EXPECT(!mica_concat(s, list, 2, 0));
    mica_scope_clear_error(s);
    EXPECT(!mica_checkpoint(s, x, &y, 1));
    mica_scope_clear_error(s);
    EXPECT_FAILS(mica_grad(s, mica_sum(s, x, NULL, 0, false), &y, 1, &grad), MICA_ERR_ARGUMENT, "another engine");
    mica_scope_end(s);
    mica_scope_end(t);
    mica_close(e);
    mica_close(f);
}

TEST(an_ended_scope_is_refused)
{
#if defined(MICA_DEBUG)
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_keep(count_up(s, 4, 1)), *grad = x;
    mica_scope_end(s);
    EXPECT(!mica_neg(s, x));
    EXPECT_STR(mica_last_error(), "neg: the scope has ended");
    EXPECT(!mica_zeros(s, MICA_F32, 0, NULL));
    EXPECT(!mica_from_data(s, MICA_F32, SHAPE(1), &(float){1}));
    EXPECT_FAILS(mica_eval(s, &x, 1), MICA_ERR_STATE, "eval: the scope has ended");
    EXPECT_FAILS(mica_grad(s, x, &x, 1, &grad), MICA_ERR_STATE, "grad: the scope has ended");
    mica_scope_end(s);
    EXPECT(strstr(mica_last_error(), "scope_end: the scope has ended"));
    float data[1] = {0};
    released r = {data, 0, 0};
    EXPECT(!mica_wrap(s, MICA_F32, SHAPE(1), NULL, data, count_release, &r));
    EXPECT_INT(r.times, 1);
    mica_drop(x);
    mica_close(e);
#else
    SKIP("only debug builds never use the memory of a scope again");
#endif
}
