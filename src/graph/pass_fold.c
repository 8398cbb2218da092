/* Constant folding: a node that depends only on constants becomes a constant. A FULL
 * needs no memory for any shape, so nothing is too large to fold. The arithmetic is
 * that of scalar.h, which defines the ops. */
#include <math.h>

#include "base/checked.h"
#include "graph/pass.h"
#include "graph/scalar.h"
#include "graph/simplify.h"

static mica_status fold_map(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    mica__number args[3];
    if (node->n_in > 3) return MICA_OK;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (!mica__graph_constant(rw->g, node->in[k], &args[k])) return MICA_OK;
    const mica__gnode *operand = &rw->g->node[node->in[node->op == MICA__OP_WHERE ? 1 : 0]];
    bool bad_index = false;
    const mica__number value = mica__scalar_map((mica__op)node->op, (mica_dtype)operand->spec.dtype,
                                                (mica_dtype)node->spec.dtype, args, node->attr, &bad_index);
    /* a bad index is an error at run time, and only if there are elements */
    return bad_index ? MICA_OK : mica__rewrite_by_full(rw, id, value);
}

/* Are value, 2 value, ... n value all exact in every dtype that an accumulator may
 * have (f32 has 24 bits)? */
static bool fold_sum_exact(double value, int64_t n)
{
    int exponent;
    if (value == 0.0) return !signbit(value);
    if (!isfinite(value)) return true;
    double odd = frexp(fabs(value), &exponent);
    while (odd != floor(odd)) odd *= 2.0;
    return n <= 1 << 24 && odd * (double)n <= 0x1p24;
}

/* The reduction of n equal numbers; false if it is not known to be exact. */
static bool fold_reduced(mica__op op, mica_dtype in, mica_dtype out, mica__number x, int64_t n, mica__number *result)
{
    if (n == 0) {
        *result = mica__scalar_identity(op, in);
        return true;
    }
    const mica__number count = {.f = (double)n, .i = n};
    switch ((int)op) {
    case MICA__OP_SUM:
        if (!mica__is_float(in)) {
            *result = mica__scalar_map(MICA__OP_MUL, out, out, (mica__number[]){x, count}, NULL, NULL);
            return true;
        }
        *result = (mica__number){.f = isfinite(x.f) ? x.f * count.f : x.f};
        return fold_sum_exact(x.f, n) && mica__round_f64(out, result->f) == result->f;
    case MICA__OP_PROD:
        if (!mica__is_float(in)) {
            *result = mica__scalar_map(MICA__OP_POW, out, out, (mica__number[]){x, count}, NULL, NULL);
            return true;
        }
        *result = x;
        return x.f == 1.0 || (x.f == 0.0 && !signbit(x.f)) || isnan(x.f);
    default: *result = x; return true; /* MAX MIN ANY ALL */
    }
}

static mica_status fold_reduce(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    const mica__spec *in = &rw->g->node[node->in[0]].spec;
    const int64_t axes = ((const mica__attr_reduce *)node->attr)->axes;
    mica__number value, result;
    int64_t n = 1;
    if (!mica__graph_constant(rw->g, node->in[0], &value)) return MICA_OK;
    for (int d = 0; d < in->ndim; d++)
        if ((axes >> d & 1) && !mica__mul_i64(n, in->shape[d], &n)) return MICA_OK;
    if (!fold_reduced((mica__op)node->op, (mica_dtype)in->dtype, (mica_dtype)node->spec.dtype, value, n, &result))
        return MICA_OK;
    return mica__rewrite_by_full(rw, id, result);
}

/* The range in which a dtype holds every whole number; false for bool. */
static bool fold_range(mica_dtype dtype, int64_t *low, int64_t *high)
{
    static const int digits[] = {[MICA_F16] = 11, [MICA_BF16] = 8, [MICA_F32] = 24, [MICA_F64] = 53};
    if (dtype == MICA_BOOL) return false;
    if (mica__is_float(dtype)) {
        *high = (int64_t)1 << digits[dtype];
        *low = -*high;
    } else {
        *low = mica__scalar_identity(MICA__OP_MAX, dtype).i;
        *high = dtype == MICA_U64 ? INT64_MAX : mica__scalar_identity(MICA__OP_MIN, dtype).i;
    }
    return true;
}

static bool fold_whole(mica_dtype dtype, mica__number x, int64_t *whole)
{
    if (!mica__is_float(dtype)) {
        *whole = x.i;
        return true;
    }
    if (!(fabs(x.f) <= 0x1p53) || x.f != floor(x.f)) return false;
    *whole = (int64_t)x.f;
    return true;
}

/* cast(iota) becomes an iota of the other dtype if every number is whole and exact in both. */
static mica_status fold_cast_iota(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    const mica__gnode *iota = &rw->g->node[node->in[0]];
    mica__attr_iota attr = *(const mica__attr_iota *)iota->attr;
    const mica_dtype in = (mica_dtype)iota->spec.dtype, out = (mica_dtype)node->spec.dtype;
    const int64_t n = iota->spec.shape[attr.axis];
    int64_t start, step, last, low_in, high_in, low_out, high_out;
    if (!fold_whole(in, attr.start, &start) || !fold_whole(in, attr.step, &step)) return MICA_OK;
    if (!mica__mul_i64(n > 0 ? n - 1 : 0, step, &last) || !mica__add_i64(start, last, &last)) return MICA_OK;
    if (!fold_range(in, &low_in, &high_in) || !fold_range(out, &low_out, &high_out)) return MICA_OK;
    const int64_t low = mica__max_i64(low_in, low_out), high = mica__min_i64(high_in, high_out);
    if (start < low || start > high || last < low || last > high) return MICA_OK;
    attr.spec = node->spec;
    attr.start = mica__is_float(out) ? (mica__number){.f = (double)start} : (mica__number){.i = start};
    attr.step = mica__is_float(out) ? (mica__number){.f = (double)step} : (mica__number){.i = step};
    return mica__rewrite_by(rw, id, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

static mica_status fold_rule(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    mica__number value;
    switch (mica__op_get(node->op)->kind) {
    case MICA__VIEW:
        if (!mica__graph_constant(rw->g, node->in[0], &value)) return MICA_OK;
        return mica__rewrite_by_full(rw, id, value);
    case MICA__MAP:
        if (node->op == MICA__OP_CAST && rw->g->node[node->in[0]].op == MICA__OP_IOTA) return fold_cast_iota(rw, id);
        return fold_map(rw, id);
    case MICA__REDUCE: return fold_reduce(rw, id);
    default: return MICA_OK;
    }
}

mica_status mica__pass_fold(mica__graph *g, bool *changed) { return mica__rewrite_run(g, fold_rule, changed); }
