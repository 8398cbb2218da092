/* The Metal backend: encodes the dispatches that prepare_step lowered, step by step. Steps that the
 * CPU runs are executed in between, on the same memory. */
#include "backend/metal/metal_lower.h"
#include "kernels/qmatmul/qmatmul_gpu.h"
#include "backend/metal/metal_residency.h"
#include "base/clock.h"

static bool metal_takes_epilogue(mica__op op)
{
    const mica__family *family = mica__family_get(op);
    return family && family->takes_epilogue && family->gpu;
}

static bool metal_can_follow(const mica__graph *g, uint32_t family, uint32_t node)
{
    const char *why;
    const mica__metal_device *device = mica__metal_get(&why);
    return !device || mica__metal_can_follow(&device->limits, g, family, node);
}

static size_t metal_scratch(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr,
                            const mica__spec *out)
{
    const char *why;
    const mica__metal_device *device = mica__metal_get(&why);
    return device ? mica__metal_workspace(device, op, in, n_in, attr, out) : 0;
}

/* Scratch for the partial results of a long reduction, 8 bytes each. */
static size_t metal_fold_scratch(int64_t results, int64_t folded)
{
    const char *why;
    const mica__metal_device *device = mica__metal_get(&why);
    if (!device) return 0;
    const mica__msl_shape shape = mica__metal_shape(&device->limits, results);
    const int64_t parts = mica__msl_fold_parts(&shape, results, folded);
    return parts > 1 ? (size_t)(results * parts) * sizeof(int64_t) : 0;
}

static const mica__target metal_target = {
    .name = "metal",
    .passes = MICA_PASS_ALL,
    .max_operands = 28, /* Metal has 31 buffers */
    .max_nodes = 64,
    .takes_epilogue = metal_takes_epilogue,
    .can_follow = metal_can_follow,
    .workspace = metal_scratch,
    .fold_scratch = metal_fold_scratch,
    .can_share_scratch = mica__gpu_shares_rounded,
};

static bool metal_available(const char **why_not) { return mica__metal_get(why_not) != NULL; }

static bool metal_preferred(void)
{
    const char *why;
    const mica__metal_device *device = mica__metal_get(&why);
    return device && !device->limits.software;
}

static mica_status metal_device_get(const mica__metal_device **out)
{
    const char *why;
    *out = mica__metal_get(&why);
    return *out ? MICA_OK : mica__fail(MICA_ERR_DEVICE, "metal: %s", why);
}

static mica_status metal_open(void **state)
{
    const mica__metal_device *device;
    mica__metal_engine *engine;
    MICA_TRY(metal_device_get(&device));
    MICA_TRY(mica__metal_engine_open(device, &engine));
    *state = engine;
    return MICA_OK;
}

static void metal_close(void *state) { mica__metal_engine_close(state); }

static void metal_describe(void *state, mica__device_facts *facts)
{
    const mica__gpu_limits *limits = &((const mica__metal_engine *)state)->device->limits;
    *facts = (mica__device_facts){
        .name = limits->name, .is_gpu = true, .is_software = limits->software, .unified_memory = true};
}

static void metal_count(void *state, mica_stats *stats)
{
    mica__metal_counters *c = &((mica__metal_engine *)state)->counters;
    mica__pipeline_stats p;
    mica__pipeline_stats_get(&p);
    stats->gpu_kernels = atomic_load(&c->dispatches);
    stats->gpu_cpu_steps = atomic_load(&c->cpu_steps);
    stats->gpu_waits = atomic_load(&c->waits);
    stats->gpu_commands = atomic_load(&c->commands);
    stats->gpu_ns = atomic_load(&c->gpu_ns);
    stats->gpu_overlaps = atomic_load(&c->overlaps);
    stats->gpu_pipelines = p.alive;
    stats->gpu_compiles = p.compiles;
    stats->gpu_compile_hits = p.hits;
    stats->gpu_archive_hits = p.loaded;
    stats->gpu_compile_ns = p.compile_ns;
    stats->gpu_saved_ns = p.saved_ns;
    stats->gpu_buffers = mica__metal_buffers();
    mica__residency_count(&stats->gpu_bytes_resident, &stats->gpu_bytes_left_out);
}

static mica_status metal_prepare(mica__plan *plan, mica__step *step)
{
    const mica__metal_device *device;
    MICA_TRY(metal_device_get(&device));
    return mica__metal_lower(device, plan, step);
}

static mica_status metal_begin(void *state, void **work)
{
    mica__metal_work *w;
    MICA_TRY(mica__metal_begin(state, &w));
    *work = w;
    return MICA_OK;
}

static mica_status metal_end(void *work) { return mica__metal_end(work); }

static bool metal_is_async(const mica__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_step; i++) {
        const mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN ? !metal_is_async(step->body)
                                          : ((const mica__metal_code *)step->code)->cpu != NULL)
            return false;
    }
    return true;
}

static void metal_submit(void *work) { mica__metal_flush(work); }

static void metal_order_after(void *work, void *earlier)
{
    mica__metal_work *w = work;
    const mica__metal_work *b = earlier;
    if (!b->fence_set) return; /* nothing was encoded */
    w->before = b->fence;
    atomic_fetch_add_explicit(&w->engine->counters.overlaps, 1, memory_order_relaxed);
}

static mica_status metal_run(const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    const mica__metal_code *code = step->code;
    mica__metal_work *work = exec->work;
    mica__metal_counters *counters = &work->engine->counters;
    if (code->cpu) {
        if (code->wait && (work->command || work->n_committed)) {
            atomic_fetch_add_explicit(&counters->waits, 1, memory_order_relaxed);
            MICA_TRY(mica__metal_finish(work));
            if (exec->times) exec->times->time[exec->times->n - 1].start_ns = mica__now_ns();
        }
        atomic_fetch_add_explicit(&counters->cpu_steps, 1, memory_order_relaxed);
        return mica__backend_cpu.run_step(plan, code->cpu, exec);
    }
    MICA_TRY(mica__metal_encode(work, plan, step, code->dispatch, code->n, exec));
    atomic_fetch_add_explicit(&counters->dispatches, code->n, memory_order_relaxed);
    return MICA_OK;
}

const mica__backend mica__backend_metal = {
    .name = "metal",
    .title = "Metal: the GPU of Apple Silicon",
    .target = &metal_target,
    .is_available = metal_available,
    .is_preferred = metal_preferred,
    .prepare_step = metal_prepare,
    .run_step = metal_run,
    .open = metal_open,
    .close = metal_close,
    .describe = metal_describe,
    .add_stats = metal_count,
    .release_buffer = mica__metal_buffer_release,
    .finish_plan = mica__metal_order,
    .release_plan = mica__metal_code_free,
    .begin_run = metal_begin,
    .end_run = metal_end,
    .is_async = metal_is_async,
    .submit = metal_submit,
    .order_after = metal_order_after,
    .print_info = mica__metal_print,
};
