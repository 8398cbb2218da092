/* The reference backend: defines the right answer. One thread, one op a kernel,
 * no pass of the optimiser, every element by the scalar definition. It shares
 * no code with what it checks. */
#include "backend/backend.h"
#include "backend/family_launch.h"
#include "backend/ref/ref_kernel.h"

static bool ref_takes_epilogue(mica__op op)
{
    (void)op;
    return false;
}

static const mica__target ref_target = {
    .name = "ref",
    .passes = 0,
    .max_operands = 4,
    .max_nodes = 1,
    .takes_epilogue = ref_takes_epilogue,
    .workspace = mica__family_workspace,
};

static bool ref_available(const char **why_not)
{
    *why_not = NULL;
    return true;
}

static mica_status ref_prepare(mica__plan *plan, mica__step *step)
{
    if (step->kind == MICA__STEP_FAMILY) MICA_TRY(mica__family_check(plan, step));
    mica__kernel *k;
    MICA_TRY(mica__kernel_build(plan, step, &plan->arena, &k));
    if (k && k->n_inst > MICA__REF_MAX_INST)
        return mica__fail(MICA_ERR_UNSUPPORTED, "ref: a kernel of %u instructions, at most %d", k->n_inst,
                          MICA__REF_MAX_INST);
    step->code = k;
    return MICA_OK;
}

static mica_status ref_run(const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    if (step->kind == MICA__STEP_FAMILY) {
        mica__launch launch;
        mica__family_launch(plan, step, exec, &launch);
        launch.pool = NULL;
        MICA_TRY(mica__family_get((mica__op)plan->graph->node[step->node[0]].op)->ref(&launch));
    }
    const mica__kernel *k = step->code;
    if (!k) return MICA_OK;
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    mica__ref_kernel(k, exec->block, 0, mica__kernel_outer(k), &fault);
    return mica__index_fault_status(&fault);
}

const mica__backend mica__backend_ref = {
    .name = "ref",
    .title = "reference: one thread, one op at a time, defines the right answer",
    .target = &ref_target,
    .available = ref_available,
    .prepare = ref_prepare,
    .run = ref_run,
};
