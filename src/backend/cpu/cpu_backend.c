/* The CPU backend. Element-wise kernels and reductions run as op chains (codegen/chain.h);
 * families have separate kernels. Element-wise ops after a family run as its epilogue while
 * the rows are still in cache. */
#include "backend/backend.h"
#include "backend/cpu/cpu_affine.h"
#include "backend/family_launch.h"
#include "backend/ref/ref_kernel.h"
#include "base/scratch.h"
#include "codegen/chain.h"

/* step->code, filled in by prepare_step. */
typedef struct cpu_code {
    const mica__family_code *family; /* NULL: not a family                               */
    const mica__kernel *k;      /* NULL: a family without epilogue                       */
    const mica__chain *chain;   /* NULL: k is too large for a chain, the interpreter runs it */
    bool is_affine;             /* k is an affine epilogue (cpu_affine.h)                */
    mica__affine_plan affine;
} cpu_code;

/* An epilogue, bound to the memory of one run. */
typedef struct cpu_epilogue {
    const cpu_code *code;
    mica__chain_run run;
} cpu_epilogue;

static bool cpu_takes_epilogue(mica__op op)
{
    const mica__family *family = mica__family_get(op);
    return family && family->takes_epilogue;
}

static const mica__target cpu_target = {
    .name = "cpu",
    .passes = MICA_PASS_ALL,
    .max_operands = 64,
    .max_nodes = 64,
    .takes_epilogue = cpu_takes_epilogue,
    .workspace = mica__family_workspace,
    .splits_scans = true,
};

static bool cpu_available(const char **why_not)
{
    *why_not = NULL;
    return true;
}

static mica_status cpu_prepare(mica__plan *plan, mica__step *step)
{
    cpu_code *code = mica__arena_alloc(&plan->arena, sizeof *code);
    if (!code) return mica__fail_memory("cpu: a step", sizeof *code);
    if (step->kind == MICA__STEP_FAMILY) MICA_TRY(mica__family_prepare(plan, step, &code->family));
    mica__kernel *k;
    mica__chain *chain = NULL;
    MICA_TRY(mica__kernel_build(plan, step, &plan->arena, &k));
    if (k) MICA_TRY(mica__chain_build(k, &plan->arena, &chain));
    if (k && !chain && k->n_inst > MICA__REF_MAX_INST)
        return mica__fail(MICA_ERR_UNSUPPORTED, "cpu: a kernel of %u instructions, at most %d", k->n_inst,
                          MICA__REF_MAX_INST);
    code->k = k;
    code->chain = chain;
    if (k && step->kind == MICA__STEP_FAMILY) {
        const mica__spec *spec = &plan->graph->node[step->node[0]].spec;
        const int64_t n = spec->ndim > 0 ? spec->shape[spec->ndim - 1] : 1;
        code->is_affine = mica__affine_match(k, n, &code->affine);
    }
    step->code = code;
    return MICA_OK;
}

static void cpu_task(void *context, int64_t task) { mica__chain_task(context, task); }

static void run_in_parts(mica__chain_run *run, int64_t n, mica__pool *pool)
{
    run->part = mica__scratch_alloc(MICA__CHAIN_MAX_PARTS * sizeof *run->part);
    mica__pool_run(pool, n, cpu_task, run);
    mica__chain_finish(run);
    mica__scratch_release(run->part);
}

static void run_kernel(const cpu_code *code, mica__chain_run *run, mica__pool *pool)
{
    if (!code->chain) {
        mica__ref_kernel(code->k, run->block, 0, mica__kernel_outer(code->k), run->fault);
        return;
    }
    const int64_t n = mica__chain_tasks(code->chain);
    if (mica__chain_parts(code->chain)) run_in_parts(run, n, pool);
    else mica__pool_run(n > 1 ? pool : NULL, n, cpu_task, run);
}

static void run_epilogue(const mica__epilogue *epilogue, int64_t begin, int64_t end)
{
    const cpu_epilogue *bound = epilogue->context;
    if (bound->code->chain) mica__chain_range(&bound->run, begin, end);
    else mica__ref_kernel(bound->code->k, bound->run.block, begin, end, bound->run.fault);
}

/* The packed copy of the second operand, if the family wants one and that operand is an array of the
 * caller; else NULL. at_once: pack it now, not at its second use. */
static mica__buffer *packed_weight(const mica__family *family, const mica__launch *launch, bool at_once)
{
    mica__prepack wish = {.at_once = false};
    if (!family->prepack || !launch->weight || !family->prepack(launch, &wish)) return NULL;
    const mica__packed_key key = {.format = wish.format,
                                  .offset = launch->in[1].data - (const char *)launch->weight->data,
                                  .size = {wish.size[0], wish.size[1]},
                                  .step = {wish.step[0], wish.step[1]}};
    const mica__packing packing = {wish.nbytes, wish.fill, launch, at_once || wish.at_once, wish.replaces};
    return mica__packed_get(launch->weight, &key, &packing);
}

/* Packs at the first use, which is this call. */
static mica_status cpu_prepack(const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    (void)plan;
    const cpu_code *code = step->code;
    mica__launch launch;
    if (!code->family) return MICA_OK;
    mica__family_launch(code->family, exec, &launch);
    mica__buffer_drop(packed_weight(code->family->family, &launch, true));
    return MICA_OK;
}

static mica_status run_family(const cpu_code *code, const mica__exec *exec, const mica__epilogue *epilogue, bool *taken)
{
    mica__launch launch;
    mica__affine affine;
    mica__family_launch(code->family, exec, &launch);
    if (epilogue && code->is_affine && mica__spec_size(&launch.out->spec) > 0) {
        affine = mica__affine_bind(&code->affine, exec->block);
        launch.affine = &affine;
    }
    launch.epilogue = epilogue;
    launch.epilogue_taken = taken;
    mica__buffer *packed = packed_weight(code->family->family, &launch, false);
    if (packed) launch.packed = packed->data;
    const mica_status status = code->family->family->cpu(&launch);
    mica__buffer_drop(packed);
    return status;
}

static mica_status cpu_run(const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    (void)plan;
    const cpu_code *code = step->code;
    bool done = code->k == NULL;
    if (done) return run_family(code, exec, NULL, &done);
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    cpu_epilogue bound = {code, {.chain = code->chain, .block = exec->block, .fault = &fault}};
    const mica__epilogue epilogue = {.run = run_epilogue, .context = &bound};
    if (code->family) MICA_TRY(run_family(code, exec, &epilogue, &done));
    if (!done) run_kernel(code, &bound.run, exec->pool);
    return mica__index_fault_status(&fault);
}

const mica__backend mica__backend_cpu = {
    .name = "cpu",
    .title = "CPU: fused kernels on vectors and threads",
    .device = "CPU",
    .target = &cpu_target,
    .is_available = cpu_available,
    .prepare_step = cpu_prepare,
    .prepack_step = cpu_prepack,
    .run_step = cpu_run,
};
