/* See family_launch.h. */
#include "backend/family_launch.h"

#include <string.h>

static const mica__gnode *anchor_of(const mica__plan *plan, const mica__step *step)
{
    return &plan->graph->node[step->node[0]];
}

static mica_status family_check(const mica__plan *plan, const mica__step *step)
{
    const mica__gnode *anchor = anchor_of(plan, step);
    const char *name = mica__op_get(anchor->op)->name;
    if (!mica__family_get((mica__op)anchor->op)) return mica__fail(MICA_ERR_INTERNAL, "%s: no kernel family", name);
    if (step->n_out == 0) return mica__fail(MICA_ERR_INTERNAL, "%s: a step without a result", name);
    for (uint32_t i = 0; i < step->n_anchor_in; i++)
        if (step->in[i].block == MICA__NO_BLOCK)
            return mica__fail(MICA_ERR_INTERNAL, "%s: operand %u has no memory", name, i);
    return MICA_OK;
}

static int64_t tensor_place(const mica__operand *operand)
{
    return operand->offset * (int64_t)mica_dtype_size((mica_dtype)operand->spec.dtype);
}

static void tensor_of(const mica__operand *operand, mica__tensor *tensor)
{
    tensor->data = NULL;
    tensor->spec = operand->spec;
    memcpy(tensor->strides, operand->strides, sizeof tensor->strides);
}

mica_status mica__family_prepare(mica__plan *plan, const mica__step *step, const mica__family_code **out)
{
    MICA_TRY(family_check(plan, step));
    const mica__gnode *anchor = anchor_of(plan, step);
    const uint32_t n_in = step->n_anchor_in;
    mica__family_code *code = mica__arena_alloc(&plan->arena, sizeof *code);
    mica__tensor *tensor = mica__arena_array(&plan->arena, n_in + 1, sizeof *tensor);
    struct mica__family_place *place = mica__arena_array(&plan->arena, n_in + 1, sizeof *place);
    if (plan->arena.failed) return mica__fail_memory("a kernel's operands", (n_in + 1) * sizeof *tensor);
    mica__operand result = {.block = step->anchor_block, .spec = anchor->spec};
    mica__row_major(&anchor->spec, result.strides);
    if (result.block == MICA__NO_BLOCK) result = step->out[0];
    for (uint32_t i = 0; i <= n_in; i++) {
        const mica__operand *operand = i < n_in ? &step->in[i] : &result;
        tensor_of(operand, &tensor[i]);
        place[i] = (struct mica__family_place){operand->block, tensor_place(operand)};
    }
    *code = (mica__family_code){.family = mica__family_get((mica__op)anchor->op),
                                .attr = anchor->attr,
                                .n_in = n_in,
                                .workspace = step->workspace,
                                .tensor = tensor,
                                .place = place};
    *out = code;
    return MICA_OK;
}

void mica__family_launch(const mica__family_code *code, const mica__exec *exec, mica__launch *launch)
{
    mica__tensor *tensor = exec->scratch;
    for (uint32_t i = 0; i <= code->n_in; i++) {
        char *block = exec->block[code->place[i].block];
        tensor[i] = code->tensor[i];
        tensor[i].data = block ? block + code->place[i].nbytes : NULL; /* an empty array may have no memory */
    }
    *launch = (mica__launch){
        .in = tensor,
        .n_in = code->n_in,
        .out = &tensor[code->n_in],
        .attr = code->attr,
        .workspace = code->workspace == MICA__NO_BLOCK ? NULL : exec->block[code->workspace],
        .pool = exec->pool,
        .weight = code->n_in > 1 ? exec->owner[code->place[1].block] : NULL,
    };
}

size_t mica__family_workspace(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr,
                              const mica__spec *out)
{
    /* More inputs than any family with a workspace has. */
    enum { MOST = 8 };
    const mica__family *family = mica__family_get(op);
    if (!family || !family->workspace || n_in > MOST) return 0;
    mica__tensor tensor[MOST];
    for (uint32_t i = 0; i < n_in; i++) tensor_of(&in[i], &tensor[i]);
    return family->workspace(tensor, n_in, attr, out);
}
