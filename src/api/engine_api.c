/* Public functions of engines and scopes: they check the arguments and call src/runtime. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/fork.h"
#include "kernels/matmul/gemm_accelerate.h"
#include "runtime/engine.h"
#include "runtime/machine.h"

mica_status mica_open(const mica_engine_options *options, mica_engine **out)
{
    mica_engine_options o;
    if (!out) return mica__fail(MICA_ERR_ARGUMENT, "open: out is NULL");
    *out = NULL;
    mica_engine_options_init(&o);
    MICA_TRY(mica_struct_read("open: mica_engine_options", &o, sizeof o, options));
    if (o.threads < 0) return mica__fail(MICA_ERR_ARGUMENT, "open: %d threads; 0 is automatic", o.threads);
    return mica__engine_open(&o, out);
}

void mica_close(mica_engine *engine)
{
    if (engine) mica__engine_close(engine);
}

const char *mica_engine_backend(const mica_engine *engine) { return engine ? engine->backend->name : ""; }

const char *mica_engine_device(const mica_engine *engine)
{
    if (!engine) return "";
    return mica__engine_device(engine).name;
}

mica_status mica_engine_describe(const mica_engine *engine, mica_engine_info *info)
{
    if (!engine) return mica__fail(MICA_ERR_ARGUMENT, "engine_describe: engine is NULL");
    const mica__device_facts facts = mica__engine_device(engine);
    const mica_engine_info full = {
        .backend = engine->backend->name,
        .device = facts.name,
        .threads = engine->threads,
        .is_gpu = facts.is_gpu,
        .is_software = facts.is_software,
        .is_reference = engine->backend == &mica__backend_ref,
        .unified_memory = facts.unified_memory,
    };
    return mica_struct_write("engine_describe: mica_engine_info", info, &full, sizeof full);
}

int mica_engine_threads(const mica_engine *engine) { return engine ? engine->threads : 0; }

uint64_t mica_engine_trim(mica_engine *engine)
{
    if (mica__engine_check(engine, "engine_trim") != MICA_OK) return 0;
    mica__engine_trim_nodes(engine);
    return mica__memory_trim(engine->memory);
}

void mica_engine_reset_peak(mica_engine *engine)
{
    if (mica__engine_check(engine, "engine_reset_peak") == MICA_OK) mica__memory_reset_peak(engine->memory);
}

void mica_engine_stats(const mica_engine *engine, mica_stats *stats)
{
    if (!engine || !stats) return;
    mica_engine *e = (mica_engine *)(uintptr_t)engine;
    if (e->process != mica__fork_count()) {
        (void)mica__fork_fail("engine_stats");
        return;
    }
    mica__memory_stats m;
    mica__plan_cache_stats p = {0};
    mica__memory_stats_get(e->memory, &m);
    if (e->plans) mica__plan_cache_stats_get(e->plans, &p);
    mica_stats s = {
        .evals = atomic_load(&e->evals),
        .kernels = atomic_load(&e->kernels),
        .plan_hits = p.hits,
        .plan_misses = p.misses,
        .plan_evictions = p.evictions,
        .plans_cached = p.count,
        .compiles = atomic_load(&e->compiles),
        .copies = atomic_load(&e->copies),
        .bytes_copied = atomic_load(&e->bytes_copied),
        .conversions = atomic_load(&e->conversions),
        .conversions_zero_copy = atomic_load(&e->conversions_zero_copy),
        .bytes_in_use = m.in_use,
        .bytes_peak = m.peak,
        .bytes_cached = m.cached,
        .bytes_allocated = m.allocated,
        .bytes_freed = m.freed,
        .pool_hits = m.hits,
        .pool_misses = m.misses,
        .pool_evictions = m.evictions,
        .largest_cached = m.largest_cached,
        .packed_weights = m.packed,
        .bytes_packed = m.packed_bytes,
    };
    if (e->device) e->backend->add_stats(e->device, &s);
    if (mica_struct_write("engine_stats: mica_stats", stats, &s, sizeof s) != MICA_OK) return; /* mica_last_error */
}

void mica_engine_profile(mica_engine *engine, bool on)
{
    if (engine) atomic_store(&engine->profiled, on);
}

size_t mica_engine_profile_count(const mica_engine *engine)
{
    mica_engine *e = (mica_engine *)(uintptr_t)engine;
    if (mica__engine_check(e, "engine_profile_count") != MICA_OK) return 0;
    pthread_mutex_lock(&e->lock);
    const size_t n = e->times.n;
    pthread_mutex_unlock(&e->lock);
    return n;
}

mica_status mica_engine_profile_step(const mica_engine *engine, size_t index, mica_profile_step *step)
{
    mica_engine *e = (mica_engine *)(uintptr_t)engine;
    static const char what[] = "engine_profile_step: mica_profile_step";
    mica_profile_step full = {.struct_size = sizeof full};
    MICA_TRY(mica__engine_check(e, "engine_profile_step"));
    if (!step) return mica__fail(MICA_ERR_ARGUMENT, "engine_profile_step: step is NULL");
    MICA_TRY(mica_struct_write(what, step, &full, sizeof full));
    pthread_mutex_lock(&e->lock);
    const size_t n = e->times.n;
    if (index < n) {
        const mica__step_time *time = &e->times.time[index];
        snprintf(full.name, sizeof full.name, "%s", time->name);
        snprintf(full.device, sizeof full.device, "%s", time->on_device || !e->device ? mica_engine_device(e) : "CPU");
        full.start_ns = time->start_ns;
        full.end_ns = time->end_ns;
    }
    pthread_mutex_unlock(&e->lock);
    if (index >= n)
        return mica__fail(MICA_ERR_ARGUMENT, "engine_profile_step: index %zu, but there are %zu steps", index, n);
    return mica_struct_write(what, step, &full, sizeof full);
}

size_t mica_doctor_text(char *buffer, size_t cap)
{
    mica__text text;
    mica__text_init(&text, buffer, cap);
    mica__text_add(&text, "mica %s\n", mica_version());
    mica__machine_print(&text);
    for (const mica__backend *const *b = mica__backends; *b; b++) {
        const char *why = NULL;
        const bool ok = (*b)->is_available(&why);
        mica__text_add(&text, "backend %s: %s%s%s\n", (*b)->name, (*b)->title,
                       ok ? "" : "; not available: ", ok ? "" : why);
        if (ok && (*b)->print_info) (*b)->print_info(&text);
    }
    mica__text_add(&text, "BLAS: %s\n", mica__accelerate_note());
    mica__env_print(&text);
    return text.length;
}

/* --------------------------------------------------------------- scope ---- */

mica_scope *mica_scope_begin(mica_engine *engine)
{
    if (engine) return mica__scope_open(engine);
    mica__fail(MICA_ERR_ARGUMENT, "scope_begin: engine is NULL");
    return NULL;
}

void mica_scope_end(mica_scope *scope)
{
    if (scope && mica__scope_check(scope, "scope_end") == MICA_OK) mica__scope_close(scope);
}

mica_status mica_scope_status(const mica_scope *scope)
{
    return scope ? scope->error.status : mica__fail(MICA_ERR_ARGUMENT, "scope_status: scope is NULL");
}

const char *mica_scope_error(const mica_scope *scope) { return scope ? scope->error.text : ""; }

void mica_scope_clear_error(mica_scope *scope)
{
    if (!scope) return;
    scope->error.status = MICA_OK;
    scope->error.text[0] = 0;
}

/* MICA_OK is not a failure: passing it is a bug of the caller, reported as MICA_ERR_INTERNAL. */
static mica_status fail_with(mica_status status, const char *format, va_list args)
{
    char text[MICA__ERROR_TEXT];
    if (!format || vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
    return mica__fail(status == MICA_OK ? MICA_ERR_INTERNAL : status, "%s", text);
}

mica_status mica_fail(mica_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = fail_with(status, format, args);
    va_end(args);
    return status;
}

mica_array *mica_scope_fail(mica_scope *scope, mica_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = fail_with(status, format, args);
    va_end(args);
    return mica__scope_failed(scope, status);
}
