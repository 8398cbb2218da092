/* The thread pool: every task runs exactly once, even if other threads use the pool.
 *
 * runs: check */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/pool.h"
#include "test.h"

enum { TASKS = 10000 };

static void count_task(void *context, int64_t task) { ((int *)context)[task]++; }

/* Not atomic on purpose: if a task runs twice, or if its effect is not visible to the
 * caller, the thread sanitizer reports a data race. */
static bool each_once(mica__pool *pool, int64_t n)
{
    static _Thread_local int ran[TASKS];
    memset(ran, 0, sizeof ran);
    mica__pool_run(pool, n, count_task, ran);
    for (int64_t i = 0; i < TASKS; i++)
        if (ran[i] != (i < n)) return false;
    return true;
}

TEST(every_task_runs_exactly_once)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 100, TASKS, -5};
    const int64_t live = mica__alloc_live();
    for (int threads = 1; threads <= 8; threads++) {
        test_case("%d threads", threads);
        mica__pool *pool;
        CHECK_MSG(mica__pool_new(threads, &pool) == MICA_OK, "%s", mica_last_error());
        CHECK_INT(mica__pool_threads(pool), threads);
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                CHECK_MSG(each_once(pool, sizes[i]), "%d tasks", (int)sizes[i]);
        mica__pool_free(pool);
        CHECK_INT(mica__alloc_live(), live);
    }
}

TEST(no_pool_runs_inline)
{
    CHECK(each_once(NULL, 100));
    CHECK_INT(mica__pool_threads(NULL), 1);
    mica__pool_free(NULL);
}

TEST(short_jobs_in_a_row)
{
    mica__pool *pool;
    CHECK_INT(mica__pool_new(4, &pool), MICA_OK);
    int ran[4] = {0};
    for (int i = 0; i < 20000; i++) mica__pool_run(pool, 4, count_task, ran);
    for (int i = 0; i < 4; i++) EXPECT_INT(ran[i], 20000);
    mica__pool_free(pool);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

TEST(workers_wake_after_sleeping)
{
    mica__pool *pool;
    CHECK_INT(mica__pool_new(3, &pool), MICA_OK);
    for (int i = 0; i < 20; i++) {
        pause_ms(i % 3);
        CHECK(each_once(pool, 50));
    }
    mica__pool_free(pool);
}

/* Two tasks that wait for each other finish only if two threads run them. */
static void meet(void *context, int64_t task)
{
    (void)task;
    atomic_int *arrived = context;
    atomic_fetch_add(arrived, 1);
    const uint64_t start = mica__now_ns();
    while (atomic_load(arrived) < 2 && mica__now_ns() - start < 20000000000u) pause_ms(1);
}

TEST(tasks_run_at_the_same_time)
{
    mica__pool *pool;
    CHECK_INT(mica__pool_new(2, &pool), MICA_OK);
    for (int i = 0; i < 20; i++) {
        atomic_int arrived = 0;
        const uint64_t start = mica__now_ns();
        mica__pool_run(pool, 2, meet, &arrived);
        CHECK_MSG(mica__now_ns() - start < 20000000000u, "the worker did not come");
    }
    mica__pool_free(pool);
}

/* The caller waits for a slow worker. */
typedef struct slow_work {
    pthread_t caller;
    int ran[100];
} slow_work;

static void slow_on_worker(void *context, int64_t task)
{
    slow_work *work = context;
    pause_ms(pthread_equal(pthread_self(), work->caller) ? 0 : 5);
    work->ran[task]++;
}

TEST(caller_waits_for_slow_workers)
{
    mica__pool *pool;
    CHECK_INT(mica__pool_new(3, &pool), MICA_OK);
    slow_work work = {.caller = pthread_self()};
    for (int i = 1; i <= 20; i++) {
        mica__pool_run(pool, 100, slow_on_worker, &work);
        for (int k = 0; k < 100; k++) CHECK_INT(work.ran[k], i);
    }
    mica__pool_free(pool);
}

typedef struct nest {
    mica__pool *pool, *other;
    atomic_int inner;
} nest;

static void add_one(void *context, int64_t task)
{
    (void)task;
    atomic_fetch_add((atomic_int *)context, 1);
}

static void outer_task(void *context, int64_t task)
{
    nest *n = context;
    mica__pool_run(task % 2 ? n->pool : n->other, 10, add_one, &n->inner);
}

TEST(nested_jobs_run_inline)
{
    nest n = {0};
    CHECK_INT(mica__pool_new(4, &n.pool), MICA_OK);
    CHECK_INT(mica__pool_new(2, &n.other), MICA_OK);
    for (int i = 0; i < 50; i++) {
        atomic_store(&n.inner, 0);
        mica__pool_run(n.pool, 40, outer_task, &n);
        CHECK_INT(atomic_load(&n.inner), 400);
    }
    mica__pool_free(n.pool);
    mica__pool_free(n.other);
}

static void *host_thread(void *pool)
{
    for (int i = 0; i < 200; i++)
        if (!each_once(pool, 1 + i % 60)) return NULL;
    return pool;
}

TEST(many_host_threads_share_one_pool)
{
    mica__pool *pool;
    CHECK_INT(mica__pool_new(4, &pool), MICA_OK);
    pthread_t hosts[16];
    for (int i = 0; i < 16; i++) CHECK_INT(pthread_create(&hosts[i], NULL, host_thread, pool), 0);
    int good = 0;
    for (int i = 0; i < 16; i++) {
        void *result = NULL;
        pthread_join(hosts[i], &result);
        good += result == pool;
    }
    mica__pool_free(pool);
    CHECK_INT(good, 16);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

TEST(an_idle_pool_uses_no_processor)
{
    mica__pool *pool;
    CHECK_INT(mica__pool_new(4, &pool), MICA_OK);
    CHECK(each_once(pool, 100));
    pause_ms(20);
    const double before = cpu_seconds();
    pause_ms(300);
    const double used = cpu_seconds() - before;
    mica__pool_free(pool);
    CHECK_MSG(used < 0.1, "%.3f s of processor time in 0.3 s", used);
}

TEST(impossible_pools_are_refused)
{
    static const int bad[] = {0, -1, 1025};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica__pool *pool = (mica__pool *)&pool;
        CHECK_INT(mica__pool_new(bad[i], &pool), MICA_ERR_ARGUMENT);
        CHECK(!pool);
    }
    CHECK_STR(mica_last_error(), "thread pool: 1025 threads is out of range (1 to 1024)");
    mica__alloc_fail_at(1);
    mica__pool *pool;
    CHECK_INT(mica__pool_new(2, &pool), MICA_ERR_MEMORY);
    CHECK(!pool);
}

TEST(a_thread_that_cannot_start_is_an_error)
{
#ifdef __GLIBC__
    pthread_attr_t before, huge;
    CHECK_INT(pthread_getattr_default_np(&before), 0);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, (size_t)1 << 50);
    CHECK_INT(pthread_setattr_default_np(&huge), 0);
    const int64_t live = mica__alloc_live();
    mica__pool *pool;
    const mica_status status = mica__pool_new(3, &pool);
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&huge);
    CHECK_INT(status, MICA_ERR_MEMORY);
    CHECK(!pool);
    CHECK(strstr(mica_last_error(), "thread pool: thread 2 of 3 could not be started"));
    CHECK_INT(mica__alloc_live(), live);
#else
    SKIP("no way to make pthread_create fail here");
#endif
}
