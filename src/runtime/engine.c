/* Opens and closes engines, and keeps their scopes, nodes and runners for reuse. */
#include "runtime/engine.h"

#include "base/alloc.h"
#include "base/cores.h"
#include "base/cpu.h"
#include "base/env.h"
#include "base/fork.h"
#include "kernels/matmul/gemm_accelerate.h"
#include "memory/packed.h"
#include "runtime/stream.h"

enum {
    MAX_THREADS = 256,
    SPARE_NODES = 8192, /* most free nodes that are kept: 3 MB */
#if defined(MICA_DEBUG)
    SCOPES_REUSED = false /* so that the use of an ended scope is detected */
#else
    SCOPES_REUSED = true
#endif
};

/* ---------------------------------------------------------------- open ---- */

void mica_engine_options_init(mica_engine_options *options)
{
    if (!options) return;
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->passes = MICA_PASS_ALL;
    options->cache_limit = (uint64_t)1 << 30;
    options->plan_cache_limit = 512;
    options->prepack = true;
}

/* A GPU if there is one. A software device that replaces a GPU is never preferred. */
static const mica__backend *preferred_backend(void)
{
    for (const mica__backend *const *b = mica__backends; *b; b++)
        if ((*b)->is_preferred && (*b)->is_preferred()) return *b;
    return &mica__backend_cpu;
}

static mica_status pick_backend(const char *asked, const mica__backend **out)
{
    const char *name = asked ? asked : mica__env(MICA__ENV_DEVICE);
    const mica__backend *b = name ? mica__backend_find(name) : preferred_backend();
    const char *why = NULL;
    if (!b) return mica__fail(MICA_ERR_ARGUMENT, "open: backend \"%.40s\" is not cpu, metal or ref", name);
    if (!b->is_available(&why))
        return mica__fail(MICA_ERR_UNSUPPORTED, "open: backend %s cannot run here: %s", b->name, why);
    *out = b;
    return MICA_OK;
}

static mica_status pick_threads(int asked, int *out)
{
    const long n = asked ? asked : mica__env_integer(MICA__ENV_THREADS, mica__cores());
    if (n < 1 || n > MAX_THREADS)
        return mica__fail(MICA_ERR_ARGUMENT, "open: %ld threads; allowed are 1 to %d", n, MAX_THREADS);
    *out = (int)n;
    return MICA_OK;
}

/* The words of MICA_PASSES in base/env.def: one for each bit of MICA_PASS_ALL, then "all" and "none". */
enum { PASS_WORD_ALL = MICA_PASS_ALL + 1 };

/* The environment variable overrides the option: it is for finding a pass that is wrong. */
static uint32_t pick_passes(uint32_t asked)
{
    if (!mica__env(MICA__ENV_PASSES)) return asked;
    const uint32_t words = mica__env_words(MICA__ENV_PASSES);
    return words & PASS_WORD_ALL ? (uint32_t)MICA_PASS_ALL : words & MICA_PASS_ALL;
}

static mica_status fill(mica_engine *e, const mica_engine_options *o)
{
    MICA_TRY(mica__env_check_all());
    MICA_TRY(mica__cpu_check());
    MICA_TRY(mica__accelerate_check());
    MICA_TRY(pick_backend(o->backend, &e->backend));
    MICA_TRY(pick_threads(o->threads, &e->threads));
    e->passes = pick_passes(o->passes);
    MICA_TRY(mica__memory_new(o->memory_limit, o->cache_limit, &e->memory));
    if (e->backend->open) {
        MICA_TRY(e->backend->open(&e->device));
        mica__memory_on_release(e->memory, e->backend->release_buffer);
    }
    atomic_store(&mica__memory_packed(e->memory)->on, o->prepack && mica__env_flag(MICA__ENV_PREPACK, true));
    MICA_TRY(mica__plan_cache_new(o->plan_cache_limit, &e->plans));
    return mica__pool_new(e->threads, &e->pool);
}

/* Adds a runner to the list; NULL is allowed. */
static void runner_list(mica_engine *e, mica__runner *r)
{
    if (!r) return;
    pthread_mutex_lock(&e->lock);
    r->next = e->runners;
    e->runners = r;
    pthread_mutex_unlock(&e->lock);
}

static void release_parts(mica_engine *e)
{
    mica__stream_free(e->stream);
    e->stream = NULL;
    runner_list(e, atomic_exchange(&e->runner, NULL));
    for (mica__runner *r = e->runners, *next; r; r = next) {
        next = r->next;
        mica__capture_free(&r->capture);
        mica__free(r->want);
        mica__free(r->block);
        mica__free(r->owner);
        mica__free(r->home);
        mica__free(r->output);
        mica__free(r->tensors);
        mica__scratch_free(r->tiles);
        mica__free(r);
    }
    e->runners = NULL;
    mica__step_times_free(&e->times);
    mica__plan_cache_free(e->plans);
    e->plans = NULL;
    mica__pool_free(e->pool);
    e->pool = NULL;
    if (e->device) e->backend->close(e->device);
    e->device = NULL;
}

void mica__engine_release(mica_engine *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
    if (e->process != mica__fork_count()) return;
    for (mica_scope *s = e->scopes, *next; s; s = next) {
        next = s->next;
        mica__free(s);
    }
    mica__node_list_trim(&e->spare, 0);
    mica__memory_free(e->memory);
    pthread_mutex_destroy(&e->lock);
    mica__free(e);
}

mica_status mica__engine_open(const mica_engine_options *options, mica_engine **out)
{
    *out = NULL;
    MICA_TRY(mica__fork_watch());
    mica_engine *e = mica__alloc_zero(1, sizeof *e);
    if (!e) return mica__fail_memory("open: the engine", sizeof *e);
    atomic_init(&e->refs, 1);
    e->process = mica__fork_count();
    pthread_mutex_init(&e->lock, NULL);
    const mica_status status = fill(e, options);
    if (status != MICA_OK) {
        mica__engine_close(e);
        return status;
    }
    *out = e;
    return MICA_OK;
}

mica_status mica__engine_check(const mica_engine *e, const char *op)
{
    if (!e) return mica__fail(MICA_ERR_ARGUMENT, "%s: engine is NULL", op);
    if (e->process != mica__fork_count()) return mica__fork_fail(op);
    if (atomic_load(&e->closed)) return mica__fail(MICA_ERR_STATE, "%s: the engine was closed", op);
    return MICA_OK;
}

/* In a forked child it frees nothing: base/fork.h. */
void mica__engine_close(mica_engine *e)
{
    if (atomic_exchange(&e->closed, true) || e->process != mica__fork_count()) return;
    release_parts(e);
    mica__engine_release(e);
}

mica__device_facts mica__engine_device(const mica_engine *e)
{
    mica__device_facts facts = {.name = e->backend->device, .unified_memory = true};
    if (e->device) e->backend->describe(e->device, &facts);
    return facts;
}

/* -------------------------------------------------------------- scopes ---- */

static void return_spare_nodes(mica_engine *e, mica__node_list *spare, mica_scope *ended)
{
    pthread_mutex_lock(&e->lock);
    mica__node_list_move(spare, &e->spare);
    /* Nodes above the limit are freed after the lock is released. */
    mica__node_list more = {0};
    if (spare->n > SPARE_NODES) more = *spare, *spare = (mica__node_list){0};
    mica__node_list_move(&e->spare, spare);
    if (ended) {
        ended->next = e->scopes;
        e->scopes = ended;
    }
    pthread_mutex_unlock(&e->lock);
    if (more.n == 0) return;
    mica__node_list_trim(&more, SPARE_NODES);
    pthread_mutex_lock(&e->lock);
    mica__node_list_move(&e->spare, &more);
    pthread_mutex_unlock(&e->lock);
}

void mica__engine_trim_nodes(mica_engine *e)
{
    mica__node_list spare = {0};
    pthread_mutex_lock(&e->lock);
    mica__node_list_move(&spare, &e->spare);
    pthread_mutex_unlock(&e->lock);
    mica__node_list_trim(&spare, 0);
}

/* An ended scope, or NULL, and all free nodes: a loop that opens one scope after
 * the other uses the memory of the previous one. */
static mica_scope *scope_reuse(mica_engine *e, mica__node_list *spare)
{
    pthread_mutex_lock(&e->lock);
    mica_scope *s = e->scopes;
    if (s) e->scopes = s->next;
    mica__node_list_move(spare, &e->spare);
    pthread_mutex_unlock(&e->lock);
    return s;
}

mica_scope *mica__scope_open(mica_engine *e)
{
    mica_scope *s = NULL;
    mica__node_list spare = {0};
    if (mica__engine_check(e, "scope_begin") != MICA_OK) return NULL;
    if (SCOPES_REUSED) s = scope_reuse(e, &spare);
    if (!s) s = mica__alloc(sizeof *s);
    if (!s) {
        return_spare_nodes(e, &spare, NULL);
        mica__fail_memory("scope_begin: a scope", sizeof *s);
        return NULL;
    }
    s->magic = MICA__SCOPE_OPEN;
    s->id = atomic_fetch_add_explicit(&e->n_scope, 1, memory_order_relaxed) + 1;
    s->engine = e;
    s->memory = e->memory;
    s->nodes = NULL;
    s->spare = spare;
    s->error.status = MICA_OK;
    s->error.text[0] = 0;
    s->reverses = 0;
    s->process = e->process;
    s->next = NULL;
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return s;
}

/* Drops the scope's reference to each of its nodes. A node with other references becomes
 * independent of the scope; if it is evaluated, it drops its inputs. */
void mica__scope_close(mica_scope *s)
{
    mica_engine *e = s->engine;
    mica__node_list *sink = mica__node_sink(&s->spare);
    for (mica_array *a = s->nodes, *next; a; a = next) {
        next = a->scope_next;
        a->scope_next = NULL;
        if (mica__array_state(a) != MICA__LAZY) mica__array_detach(a);
        if (atomic_load_explicit(&a->refs, memory_order_acquire) > 1) {
            atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
            a->escaped = true;
        }
        mica_drop(a);
    }
    mica__node_sink(sink);
    s->nodes = NULL;
    s->magic = MICA__SCOPE_ENDED;
    return_spare_nodes(e, &s->spare, s);
    mica__engine_release(e);
}

/* ------------------------------------------------------------- runners ---- */

/* With one thread the runner is always in e->runner, without a lock; only concurrent
 * evaluations need the list. */
mica_status mica__runner_acquire(mica_engine *e, mica__runner **out)
{
    mica__runner *r = atomic_exchange_explicit(&e->runner, NULL, memory_order_acquire);
    if (!r) {
        pthread_mutex_lock(&e->lock);
        r = e->runners;
        if (r) e->runners = r->next;
        pthread_mutex_unlock(&e->lock);
    }
    if (!r) r = mica__alloc_zero(1, sizeof *r);
    if (!r) return mica__fail_memory("eval: scratch", sizeof *r);
    r->n_want = 0;
    *out = r;
    return MICA_OK;
}

void mica__runner_release(mica_engine *e, mica__runner *r)
{
    runner_list(e, atomic_exchange_explicit(&e->runner, r, memory_order_acq_rel));
}

/* ------------------------------------------------------------ counters ---- */

void mica__count_copy(mica_engine *e, uint64_t nbytes)
{
    atomic_fetch_add_explicit(&e->copies, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->bytes_copied, nbytes, memory_order_relaxed);
}

void mica__count_conversion(mica_engine *e, bool zero_copy)
{
    atomic_fetch_add_explicit(&e->conversions, 1, memory_order_relaxed);
    if (zero_copy) atomic_fetch_add_explicit(&e->conversions_zero_copy, 1, memory_order_relaxed);
}
