/* See ref_kernel.h. The shortest correct code: no vectors, no blocking; every
 * address is computed from the loop index. */
#include "backend/ref/ref_kernel.h"

#include <string.h>

#include "base/scratch.h"
#include "graph/scalar.h"

typedef struct ref_walk {
    const mica__kernel *k;
    char *const *block;
    mica__index_fault *fault;
    int64_t index[MICA_MAX_DIMS];
    int64_t position;
    mica__number value[MICA__REF_MAX_INST];
} ref_walk;

/* Sets the indices of loops [first, last), outermost first, from the flat index. */
static void ref_unflatten(ref_walk *w, int first, int last, int64_t flat)
{
    for (int d = last; d-- > first;) {
        w->index[d] = flat % w->k->size[d];
        flat /= w->k->size[d];
    }
}

static int64_t ref_offset(const ref_walk *w, const mica__access *a)
{
    int64_t at = a->offset;
    for (int d = 0; d < w->k->ndim; d++) at += w->index[d] * a->strides[d];
    return at;
}

static mica__number ref_iota(const mica__kinst *inst, int64_t at)
{
    if (mica__is_float(inst->dtype))
        return (mica__number){.f = mica__round_f64(inst->dtype, inst->value.f + (double)at * inst->step.f)};
    const uint64_t value = (uint64_t)inst->value.i + (uint64_t)at * (uint64_t)inst->step.i;
    return (mica__number){.i = mica__wrap_i64(inst->dtype, (int64_t)value)};
}

static mica__number ref_map(ref_walk *w, const mica__kinst *inst)
{
    mica__number arg[3] = {{0}};
    for (uint32_t i = 0; i < inst->n_arg; i++) arg[i] = w->value[inst->arg[i]];
    bool bad = false;
    const mica__number result = mica__scalar_map(inst->op, inst->in_dtype, inst->dtype, arg, inst->attr, &bad);
    if (bad) mica__index_fault_record(w->fault, w->position, arg[0].i, inst->in_dtype == MICA_U64, inst->attr);
    return result;
}

/* Runs instructions [first, last) at the current index. */
static void ref_instructions(ref_walk *w, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++) {
        const mica__kinst *inst = &w->k->inst[i];
        const mica__access *a = &w->k->access[inst->access];
        switch (inst->code) {
        case MICA__K_CONST: w->value[i] = inst->value; break;
        case MICA__K_IOTA: w->value[i] = ref_iota(inst, ref_offset(w, a)); break;
        case MICA__K_LOAD: w->value[i] = mica__scalar_load(a->dtype, w->block[a->block], ref_offset(w, a)); break;
        case MICA__K_MAP: w->value[i] = ref_map(w, inst); break;
        case MICA__K_FOLD: break; /* computed by ref_fold */
        case MICA__K_STORE:
            mica__scalar_store(a->dtype, w->block[a->block], ref_offset(w, a), w->value[inst->arg[0]]);
            break;
        }
    }
}

static void ref_fold(ref_walk *w, int64_t outer)
{
    const mica__kernel *k = w->k;
    const mica__kinst *fold = &k->inst[k->fold];
    const int64_t folded = mica__kernel_folded(k);
    mica__number acc = mica__scalar_identity(fold->op, fold->in_dtype);
    for (int64_t i = 0; i < folded; i++) {
        ref_unflatten(w, k->ndim - k->n_fold, k->ndim, i);
        w->position = outer * folded + i;
        ref_instructions(w, 0, k->fold);
        acc = mica__scalar_fold(fold->op, fold->in_dtype, acc, w->value[fold->arg[0]]);
    }
    if (mica__is_float(fold->dtype)) acc.f = mica__round_f64(fold->dtype, acc.f);
    else acc.i = mica__wrap_i64(fold->dtype, acc.i);
    w->value[k->fold] = acc;
}

void mica__ref_kernel(const mica__kernel *k, char *const *block, int64_t begin, int64_t end, mica__index_fault *fault)
{
    ref_walk *w = mica__scratch_alloc(sizeof *w);
    w->k = k;
    w->block = block;
    w->fault = fault;
    memset(w->index, 0, sizeof w->index);
    for (int64_t outer = begin; outer < end; outer++) {
        ref_unflatten(w, 0, k->ndim - k->n_fold, outer);
        if (k->fold < k->n_inst) ref_fold(w, outer);
        w->position = outer;
        ref_instructions(w, k->fold < k->n_inst ? k->fold : 0, k->n_inst);
    }
    mica__scratch_release(w);
}
