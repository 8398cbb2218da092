/* The CPU backend (for now on the reference interpreter). */
#include "backend/backend.h"
#include "backend/family_launch.h"
#include "backend/ref/ref_kernel.h"

static bool cpu_takes_epilogue(mica__op op)
{
    const mica__family *family = mica__family_get(op);
    return family && family->takes_epilogue;
}

static const mica__target cpu_target = {
    .name = "cpu",
    .passes = MICA_PASS_ALL,
    .max_operands = 32,
    .max_nodes = 64,
    .takes_epilogue = cpu_takes_epilogue,
    .workspace = mica__family_workspace,
};

static bool cpu_available(const char **why_not)
{
    *why_not = NULL;
    return true;
}

static mica_status cpu_prepare(mica__plan *plan, mica__step *step)
{
    if (step->kind == MICA__STEP_FAMILY) MICA_TRY(mica__family_check(plan, step));
    mica__kernel *k;
    MICA_TRY(mica__kernel_build(plan, step, &plan->arena, &k));
    step->code = k;
    return MICA_OK;
}

static mica_status cpu_run(const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    if (step->kind == MICA__STEP_FAMILY) {
        mica__launch launch;
        mica__family_launch(plan, step, exec, &launch);
        MICA_TRY(mica__family_get((mica__op)plan->graph->node[step->node[0]].op)->cpu(&launch));
    }
    const mica__kernel *k = step->code;
    if (!k) return MICA_OK;
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    mica__ref_kernel(k, exec->block, 0, mica__kernel_outer(k), &fault);
    return mica__index_fault_status(&fault);
}

static void cpu_print(const mica__plan *plan, const mica__step *step, mica__text *text)
{
    (void)plan;
    if (step->code) mica__kernel_print(step->code, "kernel", text);
}

const mica__backend mica__backend_cpu = {
    .name = "cpu",
    .title = "CPU: fused kernels on vectors and threads",
    .target = &cpu_target,
    .available = cpu_available,
    .prepare = cpu_prepare,
    .run = cpu_run,
    .print = cpu_print,
};
