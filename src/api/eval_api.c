/* Public functions of evaluation, plans and traced functions. */
#include "runtime/dump.h"
#include "runtime/function.h"
#include "runtime/run.h"
#include "runtime/stream.h"

/* Checks that the scope is usable and has no failure, the engine is open, and no array is NULL. */
static mica_status ready_to_run(mica_scope *s, const char *op, mica_array *const *arrays, size_t n)
{
    MICA_TRY(mica__scope_check(s, op));
    if (s->error.status != MICA_OK) return mica__error_raise(&s->error);
    MICA_TRY(mica__engine_check(s->engine, op));
    if (n && !arrays) return mica__fail(MICA_ERR_ARGUMENT, "%s: arrays is NULL", op);
    for (size_t i = 0; i < n; i++) {
        if (!arrays[i]) return mica__fail(MICA_ERR_ARGUMENT, "%s: array %zu of %zu is NULL", op, i, n);
        if (arrays[i]->engine != s->engine)
            return mica__fail(MICA_ERR_ARGUMENT, "%s: array %zu belongs to another engine", op, i);
    }
    return MICA_OK;
}

mica_status mica_eval(mica_scope *s, mica_array *const *arrays, size_t n)
{
    MICA_TRY(ready_to_run(s, "eval", arrays, n));
    return mica__evaluate(s, arrays, n, NULL);
}

mica_status mica_eval_async(mica_scope *s, mica_array *const *arrays, size_t n, mica_event **event)
{
    if (!event) return mica__fail(MICA_ERR_ARGUMENT, "eval_async: event is NULL");
    *event = NULL;
    MICA_TRY(ready_to_run(s, "eval_async", arrays, n));
    return mica__evaluate(s, arrays, n, event);
}

mica_status mica_wait(mica_event *event)
{
    return event ? mica__event_wait(event) : mica__fail(MICA_ERR_ARGUMENT, "wait: event is NULL");
}

void mica_event_free(mica_event *event) { mica__event_drop(event); }

/* --------------------------------------------------------------- plans ---- */

mica_status mica_prepare(mica_scope *s, mica_array *const *arrays, size_t n)
{
    MICA_TRY(ready_to_run(s, "prepare", arrays, n));
    return mica__prepare(s, arrays, n);
}

mica_status mica_plan_query(mica_scope *s, mica_array *const *arrays, size_t n, mica_plan_info *info)
{
    MICA_TRY(ready_to_run(s, "plan_query", arrays, n));
    mica__runner *r;
    mica__cached *entry = NULL;
    MICA_TRY(mica__runner_acquire(s->engine, &r));
    const mica_status status = mica__run_plan_lazy(s->engine, r, arrays, n, &entry);
    mica__runner_release(s->engine, r);
    MICA_TRY(status);
    const mica__plan *p = entry->plan;
    mica_plan_info i = {
        .kernels = p->n_kernels,
        .flops = p->flops,
        .bytes_read = p->bytes_read,
        .bytes_written = p->bytes_written,
        .arena_bytes = p->arena_bytes,
        .output_bytes = p->sum_output_bytes,
        .peak_bytes = p->peak_bytes,
    };
    for (uint32_t k = 0; k < p->n_step; k++) i.nodes += p->step[k].n_node;
    mica__cached_drop(entry);
    return mica_struct_write("plan_query: mica_plan_info", info, &i, sizeof i);
}

static mica_status graph_text(mica__runner *r, mica__text *text)
{
    mica__arena arena;
    mica__graph *g;
    mica__arena_init(&arena);
    const mica_status status = mica__capture_graph(&r->capture, r->want, r->n_want, false, &arena, &g);
    if (status == MICA_OK) mica__graph_print(g, text);
    mica__arena_free(&arena);
    return status;
}

mica_status mica_plan_text(mica_scope *s, mica_array *const *arrays, size_t n, mica_dump what, char *buffer, size_t cap,
                           size_t *length)
{
    mica__text text;
    mica__runner *r;
    mica__cached *entry = NULL;
    if (length) *length = 0;
    mica__text_init(&text, buffer, cap);
    MICA_TRY(ready_to_run(s, "plan_text", arrays, n));
    MICA_TRY(mica__runner_acquire(s->engine, &r));
    mica_status status = mica__run_plan_lazy(s->engine, r, arrays, n, &entry);
    if (status == MICA_OK)
        status = what == MICA_DUMP_GRAPH ? graph_text(r, &text) : mica__dump_text(entry->plan, what, &text);
    mica__runner_release(s->engine, r);
    mica__cached_drop(entry);
    if (length) *length = text.length;
    return status;
}

/* ----------------------------------------------------------- functions ---- */

mica_status mica_compile(mica_engine *engine, mica_trace_fn fn, void *user, mica_function **out)
{
    if (!out) return mica__fail(MICA_ERR_ARGUMENT, "compile: out is NULL");
    *out = NULL;
    MICA_TRY(mica__engine_check(engine, "compile"));
    if (!fn) return mica__fail(MICA_ERR_ARGUMENT, "compile: fn is NULL");
    return mica__function_new(engine, fn, user, out);
}

mica_status mica_call(mica_scope *s, mica_function *function, mica_array *const *in, size_t n_in, mica_array **out,
                      size_t n_out)
{
    for (size_t i = 0; i < n_out && out; i++) out[i] = NULL;
    if (!function || (n_out && !out))
        return mica__fail(MICA_ERR_ARGUMENT, "call: %s is NULL", function ? "out" : "function");
    MICA_TRY(ready_to_run(s, "call", in, n_in));
    if (mica__function_engine(function) != s->engine)
        return mica__fail(MICA_ERR_ARGUMENT, "call: the function belongs to another engine than the scope");
    return mica__function_call(s, function, in, n_in, out, n_out);
}

void mica_function_free(mica_function *function) { mica__function_free(function); }
