/* Prints a plan as text: its steps, their costs and the place of their results. */
#include "plan/planner.h"

static const char *kind_name(const mica__step *step)
{
    switch (step->kind) {
    case MICA__STEP_MAP: return "map";
    case MICA__STEP_REDUCE: return "reduce";
    case MICA__STEP_FAMILY: return "family";
    case MICA__STEP_SCAN: return "scan";
    }
    return "?";
}

static void print_place(const mica__plan *plan, uint32_t id, mica__text *text)
{
    const mica__block *b = &plan->block[id];
    if (b->place == MICA__AT_LEAF) mica__text_add(text, "leaf %u", b->index);
    else if (b->place == MICA__AT_OUTPUT) mica__text_add(text, "output %u", b->index);
    else mica__text_add(text, "arena+%zu", b->offset);
}

void mica__step_name(const mica__plan *plan, const mica__step *step, mica__text *text)
{
    for (uint32_t i = 0; i < step->n_node; i++)
        mica__text_add(text, "%s%s", i ? "+" : "", mica__op_get(plan->graph->node[step->node[i]].op)->name);
}

static void print_step(const mica__plan *plan, uint32_t number, int indent, mica__text *text)
{
    const mica__step *step = &plan->step[number];
    char shape[MICA__SHAPE_TEXT];
    mica__text_add(text, "%*s%4u %-7s", indent, "", number, kind_name(step));
    mica__step_name(plan, step, text);
    for (uint32_t i = 0; i < step->n_out; i++) {
        const mica__operand *o = &step->out[i];
        mica__text_add(text, "  -> %s%s at ", mica_dtype_name((mica_dtype)o->spec.dtype),
                       mica__shape_text(shape, o->spec.ndim, o->spec.shape));
        print_place(plan, o->block, text);
        for (uint32_t k = 0; k < step->n_in; k++)
            if (step->in[k].block == o->block) {
                mica__text_add(text, " (in place)");
                break;
            }
    }
    mica__text_add(text, "  %llu flops, %llu B read, %llu B written", (unsigned long long)step->flops,
                   (unsigned long long)step->bytes_read, (unsigned long long)step->bytes_written);
    if (step->body && step->body->lanes > 1) mica__text_add(text, "  [the batch in %u parts]", step->body->lanes);
    mica__text_add(text, step->note ? "  [%s]\n" : "%.0s\n", step->note ? step->note : "");
}

static void print_steps(const mica__plan *plan, int indent, mica__text *text)
{
    for (uint32_t i = 0; i < plan->n_step; i++) {
        print_step(plan, i, indent, text);
        if (plan->step[i].body) print_steps(plan->step[i].body, indent + 4, text);
    }
}

void mica__plan_print(const mica__plan *plan, mica__text *text)
{
    mica__text_add(text, "plan: %llu kernels, %llu flops, %llu B read, %llu B written\n",
                   (unsigned long long)plan->n_kernels, (unsigned long long)plan->flops,
                   (unsigned long long)plan->bytes_read, (unsigned long long)plan->bytes_written);
    mica__text_add(text, "memory: arena %zu B + outputs %llu B, planned peak %llu B\n", plan->arena_bytes,
                   (unsigned long long)plan->sum_output_bytes, (unsigned long long)plan->peak_bytes);
    print_steps(plan, 0, text);
}
