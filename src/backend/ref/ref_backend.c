/* The reference backend, which defines the right answer: one thread, one op per kernel, no
 * optimiser passes, every element computed by the scalar definition. It shares no code with
 * the kernels that it checks. */
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

/* step->code, filled in by prepare_step. */
typedef struct ref_code {
    const mica__family_code *family; /* NULL: not a family                               */
    const mica__kernel *k;           /* NULL: a family without epilogue                  */
} ref_code;

static mica_status ref_prepare(mica__plan *plan, mica__step *step)
{
    ref_code *code = mica__arena_alloc(&plan->arena, sizeof *code);
    if (!code) return mica__fail_memory("ref: a step", sizeof *code);
    if (step->kind == MICA__STEP_FAMILY) MICA_TRY(mica__family_prepare(plan, step, &code->family));
    mica__kernel *k;
    MICA_TRY(mica__kernel_build(plan, step, &plan->arena, &k));
    if (k && k->n_inst > MICA__REF_MAX_INST)
        return mica__fail(MICA_ERR_UNSUPPORTED, "ref: a kernel of %u instructions, at most %d", k->n_inst,
                          MICA__REF_MAX_INST);
    code->k = k;
    step->code = code;
    return MICA_OK;
}

static mica_status ref_run(const mica__plan *plan, const mica__step *step, const mica__exec *exec)
{
    (void)plan;
    const ref_code *code = step->code;
    if (code->family) {
        mica__launch launch;
        mica__family_launch(code->family, exec, &launch);
        launch.pool = NULL;
        MICA_TRY(code->family->family->ref(&launch));
    }
    const mica__kernel *k = code->k;
    if (!k) return MICA_OK;
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    mica__ref_kernel(k, exec->block, 0, mica__kernel_outer(k), &fault);
    return mica__index_fault_status(&fault);
}

const mica__backend mica__backend_ref = {
    .name = "ref",
    .title = "reference: one thread, one op at a time, defines the right answer",
    .device = "CPU (reference backend)",
    .target = &ref_target,
    .is_available = ref_available,
    .prepare_step = ref_prepare,
    .run_step = ref_run,
};
