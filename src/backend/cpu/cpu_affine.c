/* See cpu_affine.h. */
#include "backend/cpu/cpu_affine.h"

/* Reads the instructions of a kernel in order and compares them with the expected ones. */
typedef struct affine_reader {
    const mica__kernel *k;
    int64_t n;
    uint32_t at;
} affine_reader;

static bool is_weight_dtype(mica_dtype dtype) { return dtype == MICA_F32 || dtype == MICA_F16 || dtype == MICA_BF16; }

/* The access reads one row, the same for every row of the result. */
static bool is_one_row(const affine_reader *r, const mica__access *a)
{
    const mica__kernel *k = r->k;
    if (k->ndim == 0 || k->size[k->ndim - 1] != r->n || a->strides[k->ndim - 1] != 1) return false;
    for (int d = 0; d + 1 < k->ndim; d++)
        if (a->strides[d] != 0) return false;
    return true;
}

static const mica__kinst *next_inst(affine_reader *r) { return r->at < r->k->n_inst ? &r->k->inst[r->at++] : NULL; }

static bool next_is_map(const affine_reader *r, mica__op op)
{
    return r->at < r->k->n_inst && r->k->inst[r->at].code == MICA__K_MAP && r->k->inst[r->at].op == op;
}

/* Reads: a load of one row, a cast to f32 if it is narrower, then op of it and *value.
 * *value becomes the result. */
static bool read_term(affine_reader *r, mica__op op, uint32_t *value, const mica__access **access)
{
    const mica__kinst *load = next_inst(r);
    uint32_t term = r->at - 1;
    if (!load || load->code != MICA__K_LOAD || !is_weight_dtype(load->dtype)) return false;
    *access = &r->k->access[load->access];
    if (!is_one_row(r, *access)) return false;
    if (load->dtype != MICA_F32) {
        const mica__kinst *cast = next_is_map(r, MICA__OP_CAST) ? next_inst(r) : NULL;
        if (!cast || cast->arg[0] != term || cast->dtype != MICA_F32) return false;
        term = r->at - 1;
    }
    const mica__kinst *map = next_is_map(r, op) ? next_inst(r) : NULL;
    if (!map || map->dtype != MICA_F32) return false;
    const bool fits = (map->arg[0] == *value && map->arg[1] == term) || (map->arg[1] == *value && map->arg[0] == term);
    *value = r->at - 1;
    return fits;
}

bool mica__affine_match(const mica__kernel *k, int64_t n, mica__affine_plan *plan)
{
    affine_reader r = {.k = k, .n = n};
    const mica__kinst *anchor = next_inst(&r);
    uint32_t value = 0;
    *plan = (mica__affine_plan){0};
    if (!anchor || anchor->code != MICA__K_LOAD || anchor->dtype != MICA_F32) return false;
    if (!read_term(&r, MICA__OP_MUL, &value, &plan->scale)) return false;
    if (r.at < k->n_inst && k->inst[r.at].code == MICA__K_LOAD && !read_term(&r, MICA__OP_ADD, &value, &plan->shift))
        return false;
    if (next_is_map(&r, MICA__OP_CAST)) {
        if (next_inst(&r)->arg[0] != value) return false;
        value = r.at - 1;
    }
    const mica__kinst *store = next_inst(&r);
    if (!store || store->code != MICA__K_STORE || store->arg[0] != value || !is_weight_dtype(store->dtype))
        return false;
    plan->out = &k->access[store->access];
    return r.at == k->n_inst;
}

static char *access_data(const mica__access *a, char *const *block)
{
    return block[a->block] + a->offset * (int64_t)mica_dtype_size(a->dtype);
}

mica__affine mica__affine_bind(const mica__affine_plan *plan, char *const *block)
{
    mica__affine bound = {.scale = {access_data(plan->scale, block), plan->scale->dtype},
                          .out = access_data(plan->out, block),
                          .dtype = plan->out->dtype};
    if (plan->shift) bound.shift = (mica__affine_term){access_data(plan->shift, block), plan->shift->dtype};
    return bound;
}
