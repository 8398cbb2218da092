/* See family_launch.h. */
#include "backend/family_launch.h"

#include <string.h>

static const mica__gnode *anchor_of(const mica__plan *plan, const mica__step *step)
{
    return &plan->graph->node[step->node[0]];
}

mica_status mica__family_check(const mica__plan *plan, const mica__step *step)
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

static void tensor_of(const mica__operand *operand, char *block, mica__tensor *tensor)
{
    const int64_t nbytes = operand->offset * (int64_t)mica_dtype_size((mica_dtype)operand->spec.dtype);
    tensor->data = block ? block + nbytes : NULL; /* an empty array may have no memory */
    tensor->spec = operand->spec;
    memcpy(tensor->strides, operand->strides, sizeof tensor->strides);
}

void mica__family_launch(const mica__plan *plan, const mica__step *step, const mica__exec *exec, mica__launch *launch)
{
    const mica__gnode *anchor = anchor_of(plan, step);
    mica__tensor *tensor = exec->scratch;
    for (uint32_t i = 0; i < step->n_anchor_in; i++)
        tensor_of(&step->in[i], exec->block[step->in[i].block], &tensor[i]);
    mica__operand result = {.block = step->anchor_block, .spec = anchor->spec};
    mica__row_major(&anchor->spec, result.strides);
    if (result.block == MICA__NO_BLOCK) result = step->out[0];
    tensor_of(&result, exec->block[result.block], &tensor[step->n_anchor_in]);
    *launch = (mica__launch){
        .in = tensor,
        .n_in = step->n_anchor_in,
        .out = &tensor[step->n_anchor_in],
        .attr = anchor->attr,
        .workspace = step->workspace == MICA__NO_BLOCK ? NULL : exec->block[step->workspace],
        .pool = exec->pool,
    };
}

size_t mica__family_workspace(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr,
                              const mica__spec *out)
{
    /* More inputs than any family that asks for scratch has. */
    enum { MOST = 8 };
    const mica__family *family = mica__family_get(op);
    if (!family || !family->workspace || n_in > MOST) return 0;
    mica__tensor tensor[MOST];
    for (uint32_t i = 0; i < n_in; i++) tensor_of(&in[i], NULL, &tensor[i]);
    return family->workspace(tensor, n_in, attr, out);
}
