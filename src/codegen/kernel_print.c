/* Prints a kernel as text, for dumps and for the codegen tests:
 *
 *     kernel norm: 128 outer x 64 folded
 *       loop i0 128, fold i1 64
 *       v0    f32  load a0[64*i0 + i1]
 *       v1    f32  square v0
 *       v2    f32  fold sum v1
 *                  store a1[i0] = v2
 */
#include "codegen/kernel.h"

#include <inttypes.h>

static void print_constant(mica_dtype dtype, mica__number value, mica__text *text)
{
    if (mica__is_float(dtype)) mica__text_add(text, "%.17g", value.f);
    else if (dtype == MICA_U64) mica__text_add(text, "%" PRIu64, (uint64_t)value.i);
    else mica__text_add(text, "%" PRId64, value.i);
}

static void print_index(const mica__kernel *k, const mica__access *a, mica__text *text)
{
    bool any = false;
    if (a->offset) {
        mica__text_add(text, "%" PRId64, a->offset);
        any = true;
    }
    for (int d = 0; d < k->ndim; d++) {
        const int64_t s = a->strides[d];
        if (s == 0) continue;
        const char *sign = s < 0 ? (any ? " - " : "-") : (any ? " + " : "");
        const uint64_t size = s < 0 ? 0 - (uint64_t)s : (uint64_t)s;
        if (size == 1) mica__text_add(text, "%si%d", sign, d);
        else mica__text_add(text, "%s%" PRIu64 "*i%d", sign, size, d);
        any = true;
    }
    if (!any) mica__text_add(text, "0");
}

static void print_attr(const mica__kinst *inst, mica__text *text)
{
    if (inst->op == MICA__OP_LEAKY_RELU || inst->op == MICA__OP_ELU)
        mica__text_add(text, " %.17g", ((const mica__attr_value *)inst->attr)->value);
    else if (inst->op == MICA__OP_CHECK_INDEX)
        mica__text_add(text, " size %" PRId64, ((const mica__attr_index *)inst->attr)->size);
    else if (inst->op == MICA__OP_CAST) mica__text_add(text, " from %s", mica_dtype_name(inst->in_dtype));
}

static void print_inst(const mica__kernel *k, uint32_t number, mica__text *text)
{
    const mica__kinst *inst = &k->inst[number];
    if (inst->code == MICA__K_STORE) {
        mica__text_add(text, "  %11sstore a%u[", "", inst->access);
        print_index(k, &k->access[inst->access], text);
        mica__text_add(text, "] = v%u\n", inst->arg[0]);
        return;
    }
    mica__text_add(text, "  v%-4u %-4s ", number, mica_dtype_name(inst->dtype));
    switch (inst->code) {
    case MICA__K_CONST: print_constant(inst->dtype, inst->value, text); break;
    case MICA__K_IOTA:
        mica__text_add(text, "iota ");
        print_constant(inst->dtype, inst->value, text);
        mica__text_add(text, " step ");
        print_constant(inst->dtype, inst->step, text);
        mica__text_add(text, " at ");
        print_index(k, &k->access[inst->access], text);
        break;
    case MICA__K_LOAD:
        mica__text_add(text, "load a%u[", inst->access);
        print_index(k, &k->access[inst->access], text);
        mica__text_add(text, "]");
        break;
    default:
        mica__text_add(text, "%s%s", inst->code == MICA__K_FOLD ? "fold " : "", mica__op_get((uint16_t)inst->op)->name);
        for (uint32_t i = 0; i < inst->n_arg; i++) mica__text_add(text, " v%u", inst->arg[i]);
        if (inst->code == MICA__K_MAP) print_attr(inst, text);
        break;
    }
    mica__text_add(text, "\n");
}

void mica__kernel_print(const mica__kernel *k, const char *name, mica__text *text)
{
    mica__text_add(text, "kernel %s: %" PRId64 " outer", name, mica__kernel_outer(k));
    if (k->fold < k->n_inst) mica__text_add(text, " x %" PRId64 " folded", mica__kernel_folded(k));
    mica__text_add(text, "\n");
    for (int d = 0; d < k->ndim; d++)
        mica__text_add(text, "%s%s i%d %" PRId64 "%s", d ? ", " : "  ", d < k->ndim - k->n_fold ? "loop" : "fold", d,
                       k->size[d], d + 1 == k->ndim ? "\n" : "");
    for (uint32_t i = 0; i < k->n_inst; i++) print_inst(k, i, text);
}
