/* See function.h. A trace is made in a separate scope, with parameters instead of the
 * inputs. It keeps the arrays from outside that it uses. */
#include "runtime/function.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fork.h"
#include "graph/build.h"

typedef struct trace {
    struct trace *next;
    mica__cached *entry;
    size_t n_in, n_out, n_leaf;
    mica__spec *in;             /* shapes and dtypes of the inputs of this trace        */
    mica__spec *out;
    mica_array **leaf;          /* [0, n_in): set by each call; the rest: arrays that are kept */
} trace;

struct mica_function {
    mica_engine *engine;
    mica_trace_fn fn;
    void *user;
    pthread_mutex_t lock;       /* held while tracing                                   */
    _Atomic(trace *) traces;    /* newest first; traces are added and never removed     */
};

static void trace_free(trace *t)
{
    if (!t) return;
    for (size_t i = t->n_in; i < t->n_leaf && t->leaf; i++) mica_drop(t->leaf[i]);
    mica__cached_drop(t->entry);
    mica__free(t->in);
    mica__free(t->out);
    mica__free(t->leaf);
    mica__free(t);
}

mica_status mica__function_new(mica_engine *e, mica_trace_fn fn, void *user, mica_function **out)
{
    mica_function *f = mica__alloc_zero(1, sizeof *f);
    *out = f;
    if (!f) return mica__fail_memory("compile: a function", sizeof *f);
    f->engine = e;
    f->fn = fn;
    f->user = user;
    pthread_mutexattr_t checked; /* an error if a function calls itself while it is traced */
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&f->lock, &checked);
    pthread_mutexattr_destroy(&checked);
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return MICA_OK;
}

void mica__function_free(mica_function *f)
{
    if (!f || f->engine->process != mica__fork_count()) return;
    for (trace *t = atomic_load(&f->traces), *next; t; t = next) {
        next = t->next;
        trace_free(t);
    }
    pthread_mutex_destroy(&f->lock);
    mica__engine_release(f->engine);
    mica__free(f);
}

mica_engine *mica__function_engine(const mica_function *f) { return f->engine; }

/* --------------------------------------------------------------- trace ---- */

static mica_status trace_body(mica_function *f, mica_scope *s, trace *t, mica__runner *r, mica_array **param,
                              mica_array **result)
{
    for (size_t i = 0; i < t->n_in; i++) {
        param[i] = mica__param(s, &t->in[i], (int64_t)i);
        if (!param[i]) return mica_scope_status(s);
    }
    MICA_TRY(f->fn(s, param, t->n_in, result, t->n_out, f->user));
    if (mica_scope_status(s) != MICA_OK) return mica__error_raise(&s->error);
    for (size_t i = 0; i < t->n_out; i++) {
        if (!result[i])
            return mica__fail(MICA_ERR_ARGUMENT, "call: the traced function set no result %zu of %zu", i, t->n_out);
        t->out[i] = result[i]->spec;
    }
    MICA_TRY(mica__capture_run(&r->capture, result, t->n_out, param, t->n_in));
    const size_t n_leaf = r->capture.n_leaf;
    t->leaf = mica__alloc_zero(n_leaf + 1, sizeof *t->leaf);
    if (!t->leaf) return mica__fail_memory("call: a trace", n_leaf * sizeof *t->leaf);
    for (t->n_leaf = t->n_in; t->n_leaf < n_leaf; t->n_leaf++)
        t->leaf[t->n_leaf] = mica_keep(r->capture.leaf[t->n_leaf]);
    mica__arena arena;
    mica__graph *g;
    mica__plan *plan;
    mica__arena_init(&arena);
    mica_status status = mica__capture_graph(&r->capture, result, t->n_out, false, &arena, &g);
    if (status == MICA_OK) status = mica__run_make_plan(f->engine, g, &plan);
    if (status == MICA_OK) status = mica__cached_new(NULL, 0, plan, &t->entry);
    mica__arena_free(&arena);
    return status;
}

static mica_status trace_new(mica_function *f, mica_array *const *in, size_t n_in, size_t n_out, trace **out)
{
    mica_engine *e = f->engine;
    mica__runner *r = NULL;
    mica_status status = MICA_OK;
    trace *t = mica__alloc_zero(1, sizeof *t);
    mica_array **array = mica__alloc_zero(n_in + n_out + 1, sizeof *array);
    mica_scope *s = mica__scope_open(e);
    if (t) {
        t->n_in = n_in;
        t->n_out = n_out;
        t->in = mica__alloc_zero(n_in + 1, sizeof *t->in);
        t->out = mica__alloc_zero(n_out + 1, sizeof *t->out);
    }
    if (!t || !t->in || !t->out || !array || !s)
        status = mica__fail_memory("call: a trace", (n_in + n_out) * sizeof *t->in);
    if (status == MICA_OK) status = mica__runner_acquire(e, &r);
    if (status == MICA_OK) {
        for (size_t i = 0; i < n_in; i++) t->in[i] = in[i]->spec;
        status = trace_body(f, s, t, r, array, array + n_in);
    }
    if (r) mica__runner_release(e, r);
    if (s) {
        mica__error keep;
        if (status != MICA_OK) mica__error_capture(&keep, status);
        mica__scope_close(s);
        if (status != MICA_OK) mica__error_raise(&keep);
    }
    mica__free(array);
    if (status != MICA_OK) {
        trace_free(t);
        return status;
    }
    atomic_fetch_add_explicit(&e->compiles, 1, memory_order_relaxed);
    *out = t;
    return MICA_OK;
}

static trace *trace_find(const mica_function *f, mica_array *const *in, size_t n_in, size_t n_out)
{
    for (trace *t = atomic_load_explicit(&f->traces, memory_order_acquire); t; t = t->next) {
        bool fits = t->n_in == n_in && t->n_out == n_out;
        for (size_t i = 0; i < n_in && fits; i++) fits = mica__spec_equal(&t->in[i], &in[i]->spec);
        if (fits) return t;
    }
    return NULL;
}

/* Traces are never removed before the function is freed, so finding one needs no
 * lock. Tracing happens under it: the same shapes are traced once even if two
 * threads call at the same time. */
static mica_status trace_get(mica_function *f, mica_array *const *in, size_t n_in, size_t n_out, trace **out)
{
    mica_status status = MICA_OK;
    *out = trace_find(f, in, n_in, n_out);
    if (*out) return MICA_OK;
    if (pthread_mutex_lock(&f->lock) != 0)
        return mica__fail(MICA_ERR_STATE, "call: a function calls itself while it is traced");
    trace *t = trace_find(f, in, n_in, n_out);
    if (!t) {
        status = trace_new(f, in, n_in, n_out, &t);
        if (status == MICA_OK) {
            t->next = atomic_load_explicit(&f->traces, memory_order_relaxed);
            atomic_store_explicit(&f->traces, t, memory_order_release);
        }
    }
    pthread_mutex_unlock(&f->lock);
    *out = t;
    return status;
}

/* ---------------------------------------------------------------- call ---- */

/* Makes the inputs evaluated and row-major, as the trace assumes. */
static mica_status ready_inputs(mica_scope *s, mica_array *const *in, size_t n, mica_array **ready)
{
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        ready[i] = in[i];
        all = all && mica__array_state(in[i]) == MICA__READY && mica__is_row_major(&in[i]->spec, in[i]->strides);
    }
    if (all) return MICA_OK;
    for (size_t i = 0; i < n; i++) {
        if (mica__array_state(in[i]) == MICA__READY && !mica__is_row_major(&in[i]->spec, in[i]->strides))
            ready[i] = mica_contiguous(s, in[i]);
        if (!ready[i]) return mica_scope_status(s);
    }
    MICA_TRY(mica__evaluate(s, ready, n, NULL));
    for (size_t i = 0; i < n; i++)
        if (!mica__is_row_major(&ready[i]->spec, ready[i]->strides)) { /* it was evaluated as a view */
            ready[i] = mica_contiguous(s, ready[i]);
            if (!ready[i]) return mica_scope_status(s);
            MICA_TRY(mica__evaluate(s, &ready[i], 1, NULL));
        }
    return MICA_OK;
}

static mica_status call(mica_scope *s, mica_function *f, mica_array **leaf, size_t n_in, mica_array **out, size_t n_out,
                        trace *t, mica__runner *r)
{
    mica__run run;
    memcpy(leaf + n_in, t->leaf + n_in, (t->n_leaf - n_in) * sizeof *leaf);
    atomic_fetch_add_explicit(&t->entry->refs, 1, memory_order_relaxed);
    mica_status status = mica__run_begin(&run, f->engine, r, t->entry, leaf);
    if (status == MICA_OK) status = mica__run_steps(&run);
    for (uint32_t i = 0; i < n_out && status == MICA_OK; i++) {
        mica_array *a = mica__array_from(&s->spare, MICA__OP_LEAF, &t->out[i], NULL, 0, NULL, 0);
        if (!a) {
            status = mica__fail_memory("call: a result", sizeof *a);
            break;
        }
        mica__run_result(&run, i, leaf, a);
        out[i] = mica__scope_own(s, a);
    }
    mica__run_end(&run);
    for (size_t i = 0; i < n_out && status != MICA_OK; i++) out[i] = NULL; /* the scope owns those that were made */
    return status;
}

mica_status mica__function_call(mica_scope *s, mica_function *f, mica_array *const *in, size_t n_in, mica_array **out,
                                size_t n_out)
{
    trace *t;
    mica__runner *r;
    MICA_TRY(mica__runner_acquire(f->engine, &r));
    mica_status status = mica__runner_want(r, n_in);
    if (status == MICA_OK) status = ready_inputs(s, in, n_in, r->want);
    if (status == MICA_OK) status = trace_get(f, r->want, n_in, n_out, &t);
    if (status == MICA_OK) status = mica__runner_want(r, t->n_leaf);
    if (status != MICA_OK) {
        mica__runner_release(f->engine, r);
        return status;
    }
    return call(s, f, r->want, n_in, out, n_out, t, r);
}
