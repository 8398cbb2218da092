/* Asynchronous evaluation: events, pending arrays, errors that the waiting thread gets, and objects
 * that may be freed before the work is done.
 *
 * runs: metal, check */
#include <pthread.h>

#include "api.h"
#include "base/alloc.h"

/* Enough work that the caller is usually ahead of the stream. */
static mica_array *long_work(mica_scope *s, uint64_t seed)
{
    mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(96, 96), seed);
    for (int i = 0; i < 4; i++) x = mica_tanh(s, mica_matmul(s, x, mica_transpose(s, x)));
    return mica_sum(s, x, NULL, 0, false);
}

static mica_array *bad_take(mica_scope *s, mica_array *x)
{
    return mica_take(s, x, mica_from_data(s, MICA_I64, SHAPE(2), (int64_t[]){0, 99}), 0);
}

TEST(evaluate_and_wait)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = count_up(s, 4, 1), *y = mica_square(s, x), *z = mica_neg(s, y);
        mica_event *event = NULL;
        CHECK_OK(mica_eval_async(s, ARRAYS(z, y, z), &event));
        CHECK(event != NULL);
        CHECK_OK(mica_wait(event));
        EXPECT(mica_array_is_ready(y) && mica_array_is_ready(z));
        EXPECT_VALUES(z, -1, -4, -9, -16);
        EXPECT_INT(stats_of(e).evals, 1);
        CHECK_OK(mica_wait(event)); /* may be called repeatedly */
        mica_event_free(event);

        /* events for arrays that are ready, and for no array */
        CHECK_OK(mica_eval_async(s, ARRAYS(x, z), &event));
        CHECK_OK(mica_wait(event));
        mica_event_free(event);
        CHECK_OK(mica_eval_async(s, NULL, 0, &event));
        CHECK_OK(mica_wait(event));
        mica_event_free(event);
        mica_event_free(NULL);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(pending_arrays_can_be_built_on)
{
    mica_engine *e = open_engine("cpu");
    for (int round = 0; round < 20; round++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *slow = long_work(s, 1);
        mica_array *x = mica_broadcast_to(s, slow, SHAPE(3)); /* its strides are known when it is ready */
        mica_event *event;
        CHECK_OK(mica_eval_async(s, ARRAYS(x, slow), &event));
        mica_array *y = mica_sub(s, mica_add(s, x, mica_ones(s, MICA_F32, SHAPE(3))), slow);
        mica_array *view = mica_flip(s, x, 0);
        EXPECT_INT(mica_array_size(y), 3);
        if (round % 2) CHECK_OK(mica_eval(s, ARRAYS(y, view)));
        else {
            mica_event *second;
            CHECK_OK(mica_eval_async(s, ARRAYS(y, view), &second));
            CHECK_OK(mica_wait(second));
            mica_event_free(second);
        }
        EXPECT(mica_array_is_ready(x));
        EXPECT_CLOSE(element(y, 0), 1, 1e-5, 1e-3);
        EXPECT(element(view, 2) == element(slow, 0));
        mica_event_free(event);
        mica_scope_end(s);
    }
    /* a pending array uses the same plan as a ready one */
    EXPECT_INT(stats_of(e).plan_misses, 2);
    mica_close(e);
}

/* A plan made while a leaf was pending must not be used for a leaf of another
 * layout. */
TEST(the_layout_of_a_pending_array_counts)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_event *event;
    mica_array *x =
        mica_add(s, mica_broadcast_to(s, long_work(s, 2), SHAPE(1000)), mica_arange(s, MICA_F32, 0, 1000, 1));
    CHECK_OK(mica_eval_async(s, &x, 1, &event));
    mica_array *y = mica_neg(s, x);
    CHECK_OK(mica_eval(s, &y, 1));
    mica_array *one = mica_from_data(s, MICA_F32, 0, NULL, &(float){5});
    mica_array *wide = mica_broadcast_to(s, one, SHAPE(1000));
    CHECK_OK(mica_eval(s, &wide, 1)); /* strides 0 over one element */
    mica_array *z = mica_neg(s, wide);
    CHECK_OK(mica_eval(s, &z, 1));
    EXPECT(element(z, 0) == -5 && element(z, 999) == -5);
    EXPECT(element(y, 999) == -element(x, 999));
    mica_event_free(event);
    mica_scope_end(s);
    mica_close(e);
}

TEST(getters_wait_for_pending_arrays)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *a = long_work(s, 3), *b = long_work(s, 3), *c = long_work(s, 4);
    mica_event *events[3];
    CHECK_OK(mica_eval_async(s, &a, 1, &events[0]));
    CHECK_OK(mica_eval_async(s, &b, 1, &events[1]));
    CHECK_OK(mica_eval_async(s, &c, 1, &events[2]));
    EXPECT(mica_data_f32(c) != NULL);
    float value;
    CHECK_OK(mica_copy_out(b, &value, sizeof value));
    EXPECT(value == (float)item_of(a));
    for (int i = 0; i < 3; i++) mica_event_free(events[i]);
    mica_scope_end(s);
    mica_close(e);
}

/* -------------------------------------------------------------- failures --- */

typedef struct waiter {
    mica_event *event;
    mica_status status;
    char text[256];
} waiter;

static void *wait_elsewhere(void *arg)
{
    waiter *w = arg;
    w->status = mica_wait(w->event);
    snprintf(w->text, sizeof w->text, "%s", mica_last_error());
    return NULL;
}

TEST(a_failure_comes_back_from_the_wait)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = count_up(s, 4, 1), *bad = bad_take(s, x), *good = mica_neg(s, x);
        mica_event *event;
        CHECK_OK(mica_eval_async(s, ARRAYS(bad, good), &event));

        /* on a thread that did not start the evaluation */
        pthread_t thread;
        waiter w = {event, MICA_OK, ""};
        CHECK_INT(pthread_create(&thread, NULL, wait_elsewhere, &w), 0);
        pthread_join(thread, NULL);
        EXPECT_INT(w.status, MICA_ERR_INDEX);
        EXPECT_MSG(strstr(w.text, "99"), "\"%s\" does not name the index", w.text);

        EXPECT_FAILS(mica_wait(event), MICA_ERR_INDEX, "99");
        EXPECT_FAILS(mica_wait(event), MICA_ERR_INDEX, "99");
        /* the scope has no error */
        EXPECT_INT(mica_scope_status(s), MICA_OK);

        /* later uses of the failed arrays return the same error */
        EXPECT(!mica_array_is_ready(bad) && !mica_array_is_ready(good));
        EXPECT_FAILS(mica_eval(s, &bad, 1), MICA_ERR_INDEX, "99");
        EXPECT_FAILS(mica_eval(s, &good, 1), MICA_ERR_INDEX, "99");
        mica_array *y = mica_neg(s, bad);
        EXPECT(y != NULL);
        EXPECT_FAILS(mica_eval(s, &y, 1), MICA_ERR_INDEX, "99");
        mica_event *second;
        EXPECT_FAILS(mica_eval_async(s, &y, 1, &second), MICA_ERR_INDEX, "99");
        EXPECT(!second);
        EXPECT(!mica_data(bad));
        EXPECT(strstr(mica_last_error(), "99"));
        double value;
        EXPECT_FAILS(mica_item(bad, &value), MICA_ERR_INDEX, "99");
        mica_plan_info info = {.struct_size = sizeof info};
        EXPECT_FAILS(mica_plan_query(s, &y, 1, &info), MICA_ERR_INDEX, "99");
        mica_event_free(event);

        /* the engine stays usable */
        y = mica_neg(s, x);
        CHECK_OK(mica_eval(s, &y, 1));
        EXPECT_VALUES(y, -1, -2, -3, -4);
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(evaluating_a_pending_array_again_does_not_lose_its_failure)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *slow = long_work(s, 5), *bad = bad_take(s, mica_broadcast_to(s, slow, SHAPE(4)));
    mica_event *first, *second = NULL;
    CHECK_OK(mica_eval_async(s, &bad, 1, &first));
    mica_status status = mica_eval_async(s, &bad, 1, &second);
    if (status == MICA_OK) status = mica_wait(second);
    EXPECT_INT(status, MICA_ERR_INDEX);
    mica_event_free(first);
    mica_event_free(second);
    mica_scope_end(s);
    mica_close(e);
}

TEST(a_failing_evaluation_changes_nothing)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = count_up(s, 4, 1), *bad = bad_take(s, x), *good = mica_neg(s, x);
        const uint64_t in_use = stats_of(e).bytes_in_use;
        EXPECT_FAILS(mica_eval(s, ARRAYS(bad, good)), MICA_ERR_INDEX, "99");
        EXPECT(!mica_array_is_ready(bad) && !mica_array_is_ready(good));
        EXPECT_INT(stats_of(e).bytes_in_use, in_use);
        CHECK_OK(mica_eval(s, &good, 1));
        EXPECT_FAILS(mica_eval(s, &bad, 1), MICA_ERR_INDEX, "99");
        mica_scope_end(s);
        mica_close(e);
    }
}

/* ----------------------------------------- objects that are freed first ----- */

TEST(events_scopes_and_engines_may_end_first)
{
    const int64_t live = live_blocks();
    float data[4] = {1, 2, 3, 4};

    test_case("the event");
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = long_work(s, 6);
    mica_event *event;
    CHECK_OK(mica_eval_async(s, &y, 1, &event));
    mica_event_free(event);
    EXPECT(mica_data_f32(y) != NULL);
    mica_scope_end(s);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);

    test_case("the scope");
    released r = {data, 0, 0};
    e = open_engine("cpu");
    s = mica_scope_begin(e);
    mica_array *x = mica_wrap(s, MICA_F32, SHAPE(4), NULL, data, count_release, &r);
    y = mica_add(s, long_work(s, 7), x);
    CHECK_OK(mica_eval_async(s, &y, 1, &event));
    mica_scope_end(s);
    CHECK_OK(mica_wait(event));
    EXPECT_INT(r.times, 1); /* the run released it before the wait ended */
    EXPECT_INT(stats_of(e).bytes_in_use, 0);
    mica_event_free(event);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);

    test_case("the scope, but a result was kept");
    e = open_engine("cpu");
    s = mica_scope_begin(e);
    y = mica_keep(long_work(s, 8));
    CHECK_OK(mica_eval_async(s, &y, 1, &event));
    mica_scope_end(s);
    EXPECT(mica_data_f32(y) != NULL);
    mica_event_free(event);
    mica_close(e);
    mica_drop(y);
    EXPECT_INT(live_blocks(), live);

    test_case("the engine: what is queued is done");
    e = open_engine("cpu");
    s = mica_scope_begin(e);
    mica_array *results[8];
    mica_event *events[8];
    for (int i = 0; i < 8; i++) {
        results[i] = mica_keep(long_work(s, 9));
        CHECK_OK(mica_eval_async(s, &results[i], 1, &events[i]));
    }
    mica_scope_end(s);
    mica_close(e);
    for (int i = 0; i < 8; i++) {
        EXPECT(mica_array_is_ready(results[i]));
        EXPECT_OK(mica_wait(events[i]));
        EXPECT(element(results[i], 0) == element(results[0], 0));
        mica_event_free(events[i]);
    }
    for (int i = 0; i < 8; i++) mica_drop(results[i]);
    EXPECT_INT(live_blocks(), live);

    test_case("the engine, with a failure that no thread waited for");
    e = open_engine("cpu");
    s = mica_scope_begin(e);
    mica_array *bad = mica_keep(bad_take(s, count_up(s, 4, 1)));
    CHECK_OK(mica_eval_async(s, &bad, 1, &event));
    mica_scope_end(s);
    mica_close(e);
    EXPECT_FAILS(mica_wait(event), MICA_ERR_INDEX, "99");
    EXPECT(!mica_data(bad));
    mica_event_free(event);
    mica_drop(bad);
    EXPECT_INT(live_blocks(), live);
}

TEST(many_runs_in_a_row_keep_their_order)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_keep(count_up(s, 8, 0));
    mica_event *last = NULL;
    for (int i = 0; i < 200; i++) {
        mica_array *next = mica_keep(mica_add(s, x, mica_scalar(s, 1)));
        mica_event_free(last);
        CHECK_OK(mica_eval_async(s, &next, 1, &last));
        mica_drop(x);
        x = next;
        if (i % 50 == 49) {
            mica_scope_end(s);
            s = mica_scope_begin(e);
        }
    }
    CHECK_OK(mica_wait(last));
    EXPECT_VALUES(x, 200, 201, 202, 203, 204, 205, 206, 207);
    EXPECT_INT(stats_of(e).plan_misses, 1);
    mica_event_free(last);
    mica_drop(x);
    mica_scope_end(s);
    mica_close(e);
}
