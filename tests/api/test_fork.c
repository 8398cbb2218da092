/* What a child of fork() may do with the objects of its parent, and that no call of the child
 * blocks.
 *
 * runs: unsanitized */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "api.h"

#undef mica_close /* children do not report dispatches (kit/on_device.h) */

enum { CHILD_SECONDS = 60 };

/* Objects that exist in both processes. */
typedef struct world {
    mica_engine *e;
    mica_scope *s;
    mica_array *ready, *lazy, *pending;
    mica_event *event;
    mica_function *function;
} world;

/* The child ends with 0, or with the line of the check that failed. */
#define CHILD_CHECK(x)                                                                     \
    do {                                                                                   \
        if (!(x)) {                                                                        \
            fprintf(stderr, "child: line %d: %s (%s)\n", __LINE__, #x, mica_last_error()); \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

/* Runs body in a child. Fails if it does not end in time. */
static void in_child(void (*body)(world *), world *w)
{
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body(w);
        _exit(0);
    }
    int status = 0;
    for (int i = 0; i < 100 * CHILD_SECONDS; i++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            EXPECT_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %#x", status);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    EXPECT_MSG(false, "the child did not end within %d s", CHILD_SECONDS);
}

static mica_status twice(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out, void *user)
{
    (void)n_in, (void)n_out, (void)user;
    out[0] = mica_add(s, in[0], in[0]);
    return mica_scope_status(s);
}

/* An engine with an evaluated, a lazy and a pending array. The pending one takes long enough to be
 * running when the child is created. */
static world world_open(const char *backend)
{
    world w = {.e = open_engine(backend)};
    const int64_t n = strcmp(backend, "cpu") == 0 && !on_metal() ? 512 : 96;
    w.s = mica_scope_begin(w.e);
    w.ready = mica_square(w.s, count_up(w.s, 8, 0));
    EXPECT_OK(mica_eval(w.s, &w.ready, 1));
    w.lazy = mica_add(w.s, w.ready, w.ready);
    EXPECT_OK(mica_compile(w.e, twice, NULL, &w.function));
    mica_array *big = mica_random_normal(w.s, MICA_F32, SHAPE(n, n), 7);
    w.pending = mica_matmul(w.s, mica_matmul(w.s, big, big), big);
    EXPECT_OK(mica_eval_async(w.s, &w.pending, 1, &w.event));
    return w;
}

/* The fork has no effect on the parent. */
static void world_close(world *w)
{
    CHECK_OK(mica_wait(w->event));
    CHECK_OK(mica_eval(w->s, &w->lazy, 1));
    EXPECT_CLOSE(element(w->lazy, 3), 18, 0, 0);
    mica_event_free(w->event);
    mica_function_free(w->function);
    mica_scope_end(w->s);
    mica_close(w->e);
}

static void child_uses(world *w)
{
    mica_array *out;
    mica_event *event;
    /* an evaluated array can be read */
    CHILD_CHECK(element(w->ready, 3) == 9);
    float copy[8];
    CHILD_CHECK(mica_copy_out(w->ready, copy, sizeof copy) == MICA_OK && copy[7] == 49);
    /* every other call returns an error status */
    CHILD_CHECK(mica_eval(w->s, &w->lazy, 1) == MICA_ERR_STATE && strstr(mica_last_error(), "fork()"));
    CHILD_CHECK(mica_eval_async(w->s, &w->lazy, 1, &event) == MICA_ERR_STATE);
    CHILD_CHECK(mica_prepare(w->s, &w->lazy, 1) == MICA_ERR_STATE);
    CHILD_CHECK(mica_wait(w->event) == MICA_ERR_STATE);
    CHILD_CHECK(mica_data(w->pending) == NULL || mica_array_is_ready(w->pending));
    CHILD_CHECK(mica_add(w->s, w->ready, w->ready) == NULL && strstr(mica_last_error(), "fork()"));
    CHILD_CHECK(mica_from_data(w->s, MICA_F32, SHAPE(8), copy) == NULL);
    CHILD_CHECK(mica_scope_begin(w->e) == NULL && strstr(mica_last_error(), "fork()"));
    CHILD_CHECK(mica_call(w->s, w->function, &w->ready, 1, &out, 1) == MICA_ERR_STATE);
    CHILD_CHECK(mica_engine_trim(w->e) == 0 && mica_engine_profile_count(w->e) == 0);
    double ratio;
    CHILD_CHECK(mica_measure_two_threads(w->e, &ratio) == MICA_ERR_STATE);
    mica_stats stats = {.struct_size = sizeof stats, .evals = 77};
    mica_engine_stats(w->e, &stats);
    CHILD_CHECK(stats.evals == 77);
}

static void child_frees(world *w)
{
    mica_drop(mica_keep(w->ready));
    mica_drop(mica_keep(w->pending));
    mica_event_free(w->event);
    mica_function_free(w->function);
    mica_scope_end(w->s);
    mica_close(w->e);
}

static void child_closes_first(world *w)
{
    mica_close(w->e);
    mica_close(w->e);
    mica_scope_end(w->s);
    CHILD_CHECK(element(w->ready, 2) == 4);
    CHILD_CHECK(mica_scope_begin(w->e) == NULL);
}

/* A new engine in the child works, with threads and asynchronously. */
static void child_opens(world *w)
{
    for (size_t i = 0; i < COUNT(backends); i++) {
        mica_engine_options o;
        mica_engine *e;
        mica_event *event;
        mica_engine_options_init(&o);
        o.backend = backends[i];
        o.threads = 2;
        CHILD_CHECK(mica_open(&o, &e) == MICA_OK);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(64, 64), 3), *y = mica_matmul(s, x, x);
        CHILD_CHECK(mica_eval_async(s, &y, 1, &event) == MICA_OK && mica_wait(event) == MICA_OK);
        mica_array *mixed = mica_add(s, y, w->ready);
        CHILD_CHECK(mixed == NULL || mica_eval(s, &mixed, 1) != MICA_OK); /* w->ready belongs to another engine */
        mica_event_free(event);
        mica_scope_end(s);
        mica_close(e);
    }
    child_frees(w);
}

static void child_opens_metal(world *w)
{
    mica_engine_options o;
    mica_engine *e;
    char text[4096];
    mica_engine_options_init(&o);
    o.backend = "metal";
    CHILD_CHECK(mica_open(&o, &e) == MICA_ERR_UNSUPPORTED && !e);
    CHILD_CHECK(mica_tune(NULL, NULL, 0) == MICA_ERR_UNSUPPORTED);
    CHILD_CHECK(mica_doctor_text(text, sizeof text) > 0);
    child_frees(w);
}

/* Also runs the handlers of exit(). */
static void child_exits(world *w)
{
    child_frees(w);
    exit(0);
}

static void child_forks(world *w)
{
    child_uses(w);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
        child_uses(w);
        child_opens(w);
        _exit(0);
    }
    int status;
    CHILD_CHECK(waitpid(grandchild, &status, 0) == grandchild && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void try_all(const char *backend)
{
    static void (*const bodies[])(world *) = {child_uses,        child_frees, child_closes_first, child_opens,
                                              child_opens_metal, child_exits, child_forks};
    for (size_t i = 0; i < COUNT(bodies); i++) {
        world w = world_open(backend);
        in_child(bodies[i], &w);
        world_close(&w);
    }
}

TEST(a_forked_child_of_the_cpu_backend) { try_all("cpu"); }
TEST(a_forked_child_of_the_reference_backend) { try_all("ref"); }

TEST(a_forked_child_of_metal)
{
    mica_engine_options o;
    mica_engine *e;
    mica_engine_options_init(&o);
    o.backend = "metal";
    if (mica_open(&o, &e) != MICA_OK) SKIP("no Metal: %s", mica_last_error());
    mica_close(e);
    try_all("metal");
}

/* Forks while other threads of the parent evaluate, so that locks may be held at that time. */
typedef struct busy {
    mica_engine *e;
    atomic_bool stop;
} busy;

static void *evaluate_for_ever(void *user)
{
    busy *b = user;
    while (!atomic_load(&b->stop)) {
        mica_scope *s = mica_scope_begin(b->e);
        mica_array *x = mica_exp(s, count_up(s, 4096, 0)), *y = mica_sum(s, x, NULL, 0, false);
        if (mica_eval(s, &y, 1) != MICA_OK) atomic_store(&b->stop, true);
        mica_scope_end(s);
    }
    return NULL;
}

TEST(a_fork_while_other_threads_evaluate)
{
    world w = world_open("cpu");
    busy b = {.e = w.e};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, evaluate_for_ever, &b) == 0);
    for (int i = 0; i < 20; i++) in_child(i % 2 ? child_opens : child_frees, &w);
    EXPECT(!atomic_load(&b.stop));
    atomic_store(&b.stop, true);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    world_close(&w);
}
