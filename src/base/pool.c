/* The fork-join pool.
 *
 * One atomic word holds the state of the current job: its number, whether it is
 * open, and how many workers are inside. A worker enters an open job by
 * incrementing the count, and may read the job's fields only while it is inside.
 * The caller closes the job when no task is left to claim, and waits until no
 * worker is inside. So a job never changes while a worker reads it, and the
 * caller never waits for a worker that is still asleep. */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/scratch.h"
#include "base/thread.h"

enum { POOL_THREADS_MAX = 1024 };

#define POOL_INSIDE 0xffffull       /* workers inside                      */
#define POOL_OPEN (1ull << 16)      /* workers may enter                   */
#define POOL_WAITED (1ull << 17)    /* caller sleeps: last worker wakes it */
#define POOL_STOP (1ull << 18)      /* workers exit                        */
#define POOL_JOB (1ull << 19)       /* number of the job, from this bit up */

/* Waking a sleeping thread takes about this long. Spinning longer than the time
 * that it can save only wastes power. */
static const uint64_t pool_spin_ns = 30000;

typedef struct pool_worker {
    mica__pool *pool;
    pthread_t thread;
    mica__scratch *scratch;
} pool_worker;

struct mica__pool {
    int threads;
    bool spin;
    mica__task_fn fn;               /* the job: written while no worker is inside */
    void *context;
    int64_t n;
    pthread_mutex_t lock;
    pthread_cond_t wake;            /* workers: there is a job               */
    pthread_cond_t done;            /* caller: the last worker left          */
    char pad0[128];                 /* each hot word below has its own line  */
    _Atomic uint64_t state;
    char pad1[128];
    _Atomic int64_t next;           /* the next task to claim                */
    char pad2[128];
    atomic_int busy;                /* a job is running                      */
    atomic_int sleepers;            /* workers that may need a wake-up       */
    pool_worker workers[];
};

static inline void spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* "yield" is a no-op on most cores */
#endif
}

static void claim_tasks(mica__pool *pool)
{
    const mica__task_fn fn = pool->fn;
    void *context = pool->context;
    const int64_t n = pool->n;
    for (;;) {
        const int64_t task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (task >= n) return;
        fn(context, task);
    }
}

/* The state of a spinning thread. It reads the awaited word after every pause,
 * because the word stays in its cache while no thread writes it, and reads the clock
 * only every 64 pauses. */
typedef struct spin_wait {
    uint64_t start;
    unsigned pauses;
} spin_wait;

/* Pauses; false when pool_spin_ns have passed. */
static bool spin_on(spin_wait *wait)
{
    spin_hint();
    if (++wait->pauses % 64) return true;
    const uint64_t now = mica__now_ns();
    if (wait->start == 0) wait->start = now;
    return now - wait->start < pool_spin_ns;
}

static bool job_to_enter(uint64_t state, uint64_t last) { return (state & POOL_OPEN) && state / POOL_JOB != last; }

/* Waits for a job other than last, or for the pool to stop; returns the state. */
static uint64_t await_job(mica__pool *pool, uint64_t last)
{
    uint64_t state = atomic_load(&pool->state);
    spin_wait wait = {0};
    while (pool->spin && !(state & POOL_STOP) && !job_to_enter(state, last) && spin_on(&wait))
        state = atomic_load_explicit(&pool->state, memory_order_acquire);
    if ((state & POOL_STOP) || job_to_enter(state, last)) return state;

    /* The worker increments sleepers before it reads the state a last time; the caller
     * changes the state before it reads sleepers. So at least one sees the other's write. */
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (state = atomic_load(&pool->state), !(state & POOL_STOP) && !job_to_enter(state, last))
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
    return state;
}

static void *worker_main(void *argument)
{
    const pool_worker *worker = argument;
    mica__pool *pool = worker->pool;
    uint64_t last = 0;
    (void)mica__scratch_use(worker->scratch);
    for (;;) {
        uint64_t state = await_job(pool, last);
        if (state & POOL_STOP) return NULL;
        if (!atomic_compare_exchange_weak(&pool->state, &state, state + 1)) continue;
        last = state / POOL_JOB;
        claim_tasks(pool);
        state = atomic_fetch_sub(&pool->state, 1);
        if ((state & POOL_WAITED) && (state & POOL_INSIDE) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

static void wake_workers(mica__pool *pool, int64_t wanted)
{
    const int sleepers = atomic_load(&pool->sleepers);
    if (sleepers == 0) return;
    pthread_mutex_lock(&pool->lock);
    if (wanted >= sleepers) pthread_cond_broadcast(&pool->wake);
    else
        for (int64_t i = 0; i < wanted; i++) pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void await_workers(mica__pool *pool)
{
    if ((atomic_fetch_and(&pool->state, ~POOL_OPEN) & POOL_INSIDE) == 0) return;
    spin_wait wait = {0};
    while (pool->spin && spin_on(&wait))
        if ((atomic_load_explicit(&pool->state, memory_order_acquire) & POOL_INSIDE) == 0) return;

    pthread_mutex_lock(&pool->lock);
    atomic_fetch_or(&pool->state, POOL_WAITED);
    while (atomic_load(&pool->state) & POOL_INSIDE) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void mica__pool_run(mica__pool *pool, int64_t n, mica__task_fn fn, void *context)
{
    /* busy is also set when a task of this pool runs a job: it runs inline too. */
    if (!pool || pool->threads == 1 || n < 2 || atomic_exchange(&pool->busy, 1)) {
        for (int64_t task = 0; task < n; task++) fn(context, task);
        return;
    }
    pool->fn = fn;
    pool->context = context;
    pool->n = n;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    const uint64_t job = atomic_load(&pool->state) / POOL_JOB + 1;
    atomic_store(&pool->state, job * POOL_JOB | POOL_OPEN);
    wake_workers(pool, n - 1);
    claim_tasks(pool);
    await_workers(pool);
    atomic_store(&pool->busy, 0);
}

static void stop_workers(mica__pool *pool, int started)
{
    atomic_fetch_or(&pool->state, POOL_STOP);
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < started; i++) {
        pthread_join(pool->workers[i].thread, NULL);
        mica__scratch_free(pool->workers[i].scratch);
    }
}

/* Workers block all signals, so that the program's threads handle them, except
 * signals for faults of the thread itself and the signal of profilers. */
static int start_workers(mica__pool *pool, int *started)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    for (*started = 0; *started < pool->threads - 1; ++*started) {
        pool_worker *worker = &pool->workers[*started];
        worker->pool = pool;
        worker->scratch = mica__scratch_new();
        error = worker->scratch ? mica__thread_start(&worker->thread, worker_main, worker) : ENOMEM;
        if (error) {
            mica__scratch_free(worker->scratch);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static bool init_locks(mica__pool *pool)
{
    if (pthread_mutex_init(&pool->lock, NULL)) return false;
    if (pthread_cond_init(&pool->wake, NULL)) goto no_wake;
    if (pthread_cond_init(&pool->done, NULL)) goto no_done;
    return true;
no_done:
    pthread_cond_destroy(&pool->wake);
no_wake:
    pthread_mutex_destroy(&pool->lock);
    return false;
}

static void free_locks(mica__pool *pool)
{
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
}

mica_status mica__pool_new(int threads, mica__pool **out)
{
    *out = NULL;
    if (threads < 1 || threads > POOL_THREADS_MAX)
        return mica__fail(MICA_ERR_ARGUMENT, "thread pool: %d threads is out of range (1 to %d)", threads,
                          POOL_THREADS_MAX);
    const size_t nbytes = sizeof(mica__pool) + (size_t)(threads - 1) * sizeof(pool_worker);
    mica__pool *pool = mica__alloc_zero(1, nbytes);
    if (!pool) return mica__fail_memory("the thread pool", nbytes);
    pool->threads = threads;
    /* With more threads than cores a spinning thread takes a core from a working one. */
    pool->spin = threads <= mica__cores();
    atomic_init(&pool->state, 0);
    atomic_init(&pool->next, 0);
    atomic_init(&pool->busy, 0);
    atomic_init(&pool->sleepers, 0);
    if (!init_locks(pool)) {
        mica__free(pool);
        return mica__fail(MICA_ERR_MEMORY, "out of memory: the locks of the thread pool");
    }
    int started;
    const int error = start_workers(pool, &started);
    if (error) {
        stop_workers(pool, started);
        free_locks(pool);
        mica__free(pool);
        return mica__fail(MICA_ERR_MEMORY, "thread pool: thread %d of %d could not be started (error %d)", started + 2,
                          threads, error);
    }
    *out = pool;
    return MICA_OK;
}

void mica__pool_free(mica__pool *pool)
{
    if (!pool) return;
    stop_workers(pool, pool->threads - 1);
    free_locks(pool);
    mica__free(pool);
}

int mica__pool_threads(const mica__pool *pool) { return pool ? pool->threads : 1; }
