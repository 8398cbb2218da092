/* See stream.h. */
#include "runtime/stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fork.h"
#include "base/thread.h"

struct mica_event {
    atomic_int refs;
    unsigned process;           /* mica__fork_count() when it was made */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    mica__error error;          /* MICA_OK: no failure */
};

typedef struct job {
    struct job *next;
    mica__run run;
    mica__started_run started;
    mica_event *event;
    size_t n_out, n_leaf;
    mica_array **out, **leaf;   /* references; the arrays follow the struct in memory */
} job;

struct mica__stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *first, **last;
    bool stop;
};

/* -------------------------------------------------------------- events ---- */

static mica_event *event_new(void)
{
    mica_event *v = mica__alloc_zero(1, sizeof *v);
    if (!v) return NULL;
    atomic_init(&v->refs, 1);
    v->process = mica__fork_count();
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->changed, NULL);
    return v;
}

static mica_event *event_keep(mica_event *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void mica__event_drop(mica_event *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) return;
    if (v->process != mica__fork_count()) return;
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->changed);
    mica__free(v);
}

static void event_signal(mica_event *v)
{
    pthread_mutex_lock(&v->lock);
    v->done = true;
    pthread_cond_broadcast(&v->changed);
    pthread_mutex_unlock(&v->lock);
}

mica_status mica__event_wait(mica_event *v)
{
    if (v->process != mica__fork_count()) return mica__fork_fail("wait");
    pthread_mutex_lock(&v->lock);
    while (!v->done) pthread_cond_wait(&v->changed, &v->lock);
    pthread_mutex_unlock(&v->lock);
    return v->error.status == MICA_OK ? MICA_OK : mica__error_raise(&v->error);
}

mica_status mica__event_settle(mica_array *a)
{
    const mica__state state = mica__array_state(a);
    return state == MICA__PENDING || state == MICA__FAILED ? mica__event_wait(a->event) : MICA_OK;
}

/* ---------------------------------------------------------------- jobs ---- */

/* Waits for the run, stores its results or its failure, and signals the event. */
static void job_finish(job *j)
{
    const mica_status status = mica__run_finish(&j->run, &j->started);
    if (status == MICA_OK) {
        for (uint32_t i = 0; i < j->n_out; i++)
            if (mica__array_state(j->out[i]) == MICA__PENDING) mica__run_result(&j->run, i, j->leaf, j->out[i]);
    } else {
        mica__error_capture(&j->event->error, status);
        for (size_t i = 0; i < j->n_out; i++)
            atomic_store_explicit(&j->out[i]->state, MICA__FAILED, memory_order_release);
    }
    mica__run_end(&j->run);
    for (size_t i = 0; i < j->n_out; i++) mica_drop(j->out[i]);
    for (size_t i = 0; i < j->n_leaf; i++) mica_drop(j->leaf[i]);
    mica_event *event = j->event;
    mica__free(j);
    event_signal(event); /* last: a waiting thread then finds all references dropped */
    mica__event_drop(event);
}

/* Starts j while the device may still work on another job (running), then finishes that one. Returns
 * the job that the device works on now, or NULL. A job whose steps need this thread starts only
 * after the other job has finished. */
static job *job_start(job *j, job *running)
{
    const bool is_async = mica__run_is_async(&j->run);
    if (running && !is_async) {
        job_finish(running);
        running = NULL;
    }
    mica__run_start(&j->run, running ? &running->started : NULL, &j->started);
    if (running) job_finish(running);
    if (is_async) return j;
    job_finish(j);
    return NULL;
}

static void *stream_main(void *arg)
{
    mica__stream *t = arg;
    job *running = NULL;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->first && !t->stop && !running) pthread_cond_wait(&t->changed, &t->lock);
        job *j = t->first;
        if (!j && !running) break;
        if (j) t->first = j->next;
        if (!t->first) t->last = &t->first;
        pthread_mutex_unlock(&t->lock);
        if (j) {
            running = job_start(j, running);
        } else {
            job_finish(running);
            running = NULL;
        }
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static mica_status stream_get(mica_engine *e, mica__stream **out)
{
    mica_status status = MICA_OK;
    pthread_mutex_lock(&e->lock);
    if (!e->stream) {
        mica__stream *t = mica__alloc_zero(1, sizeof *t);
        if (t) {
            t->last = &t->first;
            pthread_mutex_init(&t->lock, NULL);
            pthread_cond_init(&t->changed, NULL);
            if (mica__thread_start(&t->thread, stream_main, t) != 0) {
                pthread_mutex_destroy(&t->lock);
                pthread_cond_destroy(&t->changed);
                mica__free(t);
                t = NULL;
                status = mica__fail(MICA_ERR_DEVICE, "eval_async: the system cannot create a thread");
            }
        } else {
            status = mica__fail_memory("eval_async: a stream", sizeof *t);
        }
        e->stream = t;
    }
    *out = e->stream;
    pthread_mutex_unlock(&e->lock);
    return status;
}

void mica__stream_free(mica__stream *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    mica__free(t);
}

mica_status mica__stream_submit(mica__run *run, mica_array *const *outs, size_t n_out, mica_array *const *leaf,
                                size_t n_leaf, mica_event **event)
{
    mica__stream *t;
    MICA_TRY(stream_get(run->engine, &t));
    mica_event *v = event_new();
    job *j = v ? mica__alloc_zero(1, sizeof *j + (n_out + n_leaf) * sizeof(mica_array *)) : NULL;
    if (!j) {
        mica__event_drop(v);
        return mica__fail_memory("eval_async: an event", sizeof *j);
    }
    j->run = *run;
    j->event = event_keep(v);
    j->n_out = n_out;
    j->n_leaf = n_leaf;
    j->out = (mica_array **)(void *)(j + 1);
    j->leaf = j->out + n_out;
    for (size_t i = 0; i < n_leaf; i++) j->leaf[i] = mica_keep(leaf[i]);
    for (size_t i = 0; i < n_out; i++) {
        j->out[i] = mica_keep(outs[i]);
        if (!outs[i]->event) outs[i]->event = event_keep(v);
        atomic_store_explicit(&outs[i]->state, MICA__PENDING, memory_order_release);
    }
    for (size_t i = 0; i < n_out; i++) mica__run_detach_result(outs[i]);
    pthread_mutex_lock(&t->lock);
    *t->last = j;
    t->last = &j->next;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    *event = v;
    return MICA_OK;
}
