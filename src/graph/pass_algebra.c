/* Algebraic identities that hold for every value, including NaN, infinities, -0 and
 * integers that wrap. No rule changes a bit of a result, except the payload of a NaN.
 * Identities that are not exact are left out: x + 0.0 turns -0 into 0, x * 0.0 is not 0
 * for infinities, 1 / sqrt(x) rounds twice. */
#include <math.h>

#include "graph/pass.h"
#include "graph/simplify.h"

/* A MAP node, its operands and their values if they are constants. */
typedef struct algebra {
    mica__rewrite *rw;
    uint32_t id;
    uint16_t op;
    mica_dtype dtype;          /* of the operands           */
    uint32_t a, b;             /* operands; b = a if unary  */
    bool const_a, const_b;
    mica__number va, vb;
} algebra;

static mica_status algebra_keep(const algebra *x, uint32_t by)
{
    mica__rewrite_replace(x->rw, x->id, by);
    return MICA_OK;
}

static mica_status algebra_one(const algebra *x, mica__op op, uint32_t a)
{
    return mica__rewrite_by(x->rw, x->id, op, &a, 1, NULL, 0);
}

static mica_status algebra_two(const algebra *x, mica__op op, uint32_t a, uint32_t b)
{
    return mica__rewrite_by(x->rw, x->id, op, (uint32_t[]){a, b}, 2, NULL, 0);
}

static mica_status algebra_constant(const algebra *x, int64_t value)
{
    const bool is_float = mica__is_float((mica_dtype)x->rw->g->node[x->id].spec.dtype);
    const mica__number number = {.f = is_float ? (double)value : 0.0, .i = is_float ? 0 : value};
    return mica__rewrite_by_full(x->rw, x->id, number);
}

static uint16_t algebra_op_of(const algebra *x, uint32_t id) { return x->rw->g->node[id].op; }
static uint32_t algebra_input(const algebra *x, uint32_t id) { return x->rw->g->node[id].in[0]; }
static bool algebra_is_signed(mica_dtype d) { return mica__is_float(d) || mica__dtype_kind(d) == MICA__KIND_INT; }

/* ------------------------------------------------------------- two inputs ---- */

/* Does the constant operand have this value? Compared as stored: -1 is the
 * largest value of an unsigned dtype. */
static bool algebra_is(const algebra *x, bool known, mica__number value, int64_t want)
{
    if (!known) return false;
    return mica__is_float(x->dtype) ? value.f == (double)want : value.i == mica__wrap_i64(x->dtype, want);
}

static bool algebra_b_is(const algebra *x, int64_t want) { return algebra_is(x, x->const_b, x->vb, want); }

/* The other operand, if one of the two is a constant of this value. */
static bool algebra_other(const algebra *x, int64_t want, uint32_t *other)
{
    *other = algebra_b_is(x, want) ? x->a : x->b;
    return algebra_b_is(x, want) || algebra_is(x, x->const_a, x->va, want);
}

static mica_status algebra_mul(const algebra *x)
{
    uint32_t other;
    if (algebra_other(x, 1, &other)) return algebra_keep(x, other);
    if (algebra_other(x, -1, &other)) return algebra_one(x, MICA__OP_NEG, other);
    if (!mica__is_float(x->dtype) && algebra_other(x, 0, &other)) return algebra_constant(x, 0);
    return MICA_OK;
}

/* a + -b is a - b and a - -b is a + b, bit for bit (but not on bool). */
static mica_status algebra_signs(const algebra *x)
{
    if (x->dtype == MICA_BOOL) return MICA_OK;
    const bool add = x->op == MICA__OP_ADD;
    if (algebra_op_of(x, x->b) == MICA__OP_NEG)
        return algebra_two(x, add ? MICA__OP_SUB : MICA__OP_ADD, x->a, algebra_input(x, x->b));
    if (add && algebra_op_of(x, x->a) == MICA__OP_NEG)
        return algebra_two(x, MICA__OP_SUB, x->b, algebra_input(x, x->a));
    return MICA_OK;
}

static mica_status algebra_add(const algebra *x)
{
    if (mica__is_float(x->dtype)) {
        if (algebra_b_is(x, 0) && signbit(x->vb.f)) return algebra_keep(x, x->a);
        if (algebra_is(x, x->const_a, x->va, 0) && signbit(x->va.f)) return algebra_keep(x, x->b);
    } else {
        uint32_t other;
        if (algebra_other(x, 0, &other)) return algebra_keep(x, other);
    }
    return algebra_signs(x);
}

static mica_status algebra_sub(const algebra *x)
{
    if (algebra_b_is(x, 0) && !signbit(x->vb.f)) return algebra_keep(x, x->a);
    if (!mica__is_float(x->dtype)) {
        if (x->a == x->b) return algebra_constant(x, 0);
        if (algebra_is(x, x->const_a, x->va, 0)) return algebra_one(x, MICA__OP_NEG, x->b);
    }
    return algebra_signs(x);
}

/* Division by a power of two is multiplication by its inverse, which is exact
 * unless it is subnormal. */
static mica_status algebra_div(const algebra *x)
{
    static const double smallest[] = {
        [MICA_F16] = 0x1p-14, [MICA_BF16] = 0x1p-126, [MICA_F32] = 0x1p-126, [MICA_F64] = 0x1p-1022};
    if (algebra_b_is(x, 1)) return algebra_keep(x, x->a);
    if (algebra_b_is(x, -1)) return algebra_one(x, MICA__OP_NEG, x->a);
    int exponent;
    if (!x->const_b || !isfinite(x->vb.f) || fabs(frexp(x->vb.f, &exponent)) != 0.5) return MICA_OK;
    const mica__number inverse = {.f = 1.0 / x->vb.f};
    if (!(fabs(inverse.f) >= smallest[x->dtype]) || !isfinite(mica__round_f64(x->dtype, inverse.f))) return MICA_OK;
    const mica__attr_full attr = {x->rw->g->node[x->id].spec, inverse};
    uint32_t full;
    MICA_TRY(mica__rewrite_add(x->rw, MICA__OP_FULL, NULL, 0, &attr, sizeof attr, &full));
    return algebra_two(x, MICA__OP_MUL, x->a, full);
}

/* pow computes in double, where squares of f16, bf16 and f32 are exact, so SQUARE rounds
 * the same number. In f64 the last bit of pow may differ. */
static mica_status algebra_pow(const algebra *x)
{
    if (algebra_b_is(x, 0)) return algebra_constant(x, 1);
    if (algebra_b_is(x, 1)) return algebra_keep(x, x->a);
    return algebra_b_is(x, 2) && x->dtype != MICA_F64 ? algebra_one(x, MICA__OP_SQUARE, x->a) : MICA_OK;
}

static mica_status algebra_extreme(const algebra *x)
{
    if (x->a == x->b) return algebra_keep(x, x->a);
    if (!mica__is_float(x->dtype)) return MICA_OK;
    const double neutral = x->op == MICA__OP_MINIMUM ? INFINITY : -INFINITY;
    if (x->const_b && x->vb.f == neutral) return algebra_keep(x, x->a);
    if (x->const_a && x->va.f == neutral) return algebra_keep(x, x->b);
    return MICA_OK;
}

/* The same rules hold for bitwise ops on integers and bool and for logical ops on bool. */
static mica_status algebra_bits(const algebra *x)
{
    const int64_t ones = x->dtype == MICA_BOOL ? 1 : -1;
    uint32_t other;
    switch ((int)x->op) {
    case MICA__OP_LOGICAL_AND:
    case MICA__OP_BITWISE_AND:
        if (x->a == x->b || algebra_other(x, ones, &other)) return algebra_keep(x, x->a == x->b ? x->a : other);
        return algebra_other(x, 0, &other) ? algebra_constant(x, 0) : MICA_OK;
    case MICA__OP_LOGICAL_OR:
    case MICA__OP_BITWISE_OR:
        if (x->a == x->b || algebra_other(x, 0, &other)) return algebra_keep(x, x->a == x->b ? x->a : other);
        if (!algebra_other(x, ones, &other)) return MICA_OK;
        return algebra_constant(x, mica__wrap_i64(x->dtype, ones));
    default: /* XOR */
        if (x->a == x->b) return algebra_constant(x, 0);
        return algebra_other(x, 0, &other) ? algebra_keep(x, other) : MICA_OK;
    }
}

static mica_status algebra_compare(const algebra *x)
{
    if (x->a != x->b || mica__is_float(x->dtype)) return MICA_OK;
    const bool holds = x->op == MICA__OP_EQUAL || x->op == MICA__OP_LESS_EQUAL || x->op == MICA__OP_GREATER_EQUAL;
    return algebra_constant(x, holds);
}

/* ---------------------------------------------------------------- one input --- */

/* Can dtype `to` represent every value of `from`? */
static bool algebra_lossless(mica_dtype from, mica_dtype to)
{
    static const int digits[] = {[MICA_F16] = 11, [MICA_BF16] = 8, [MICA_F32] = 24, [MICA_F64] = 53};
    if (from == to || from == MICA_BOOL) return true;
    if (to == MICA_BOOL) return false;
    if (mica__is_float(from)) return to == MICA_F64 || (to == MICA_F32 && from != MICA_F64);
    const int bits = (int)(8 * mica_dtype_size(from)) - (mica__dtype_kind(from) == MICA__KIND_INT);
    if (mica__is_float(to)) return bits <= digits[to];
    if (mica__dtype_kind(from) == MICA__KIND_INT && mica__dtype_kind(to) == MICA__KIND_UINT) return false;
    return bits <= (int)(8 * mica_dtype_size(to)) - (mica__dtype_kind(to) == MICA__KIND_INT);
}

static mica_status algebra_cast(const algebra *x)
{
    const mica__graph *g = x->rw->g;
    const mica_dtype to = (mica_dtype)g->node[x->id].spec.dtype;
    if (to == x->dtype) return algebra_keep(x, x->a);
    if (algebra_op_of(x, x->a) != MICA__OP_CAST) return MICA_OK;
    const uint32_t first = algebra_input(x, x->a);
    const mica_dtype from = (mica_dtype)g->node[first].spec.dtype;
    if (!algebra_lossless(from, x->dtype)) return MICA_OK;
    /* an integer that is cast through a float saturates instead of wrapping */
    const bool saturates = mica__is_int(from) && mica__is_float(x->dtype) && mica__is_int(to);
    if (saturates && !algebra_lossless(from, to)) return MICA_OK;
    if (to == from) return algebra_keep(x, first);
    const mica__attr_cast attr = {to};
    return mica__rewrite_by(x->rw, x->id, MICA__OP_CAST, &first, 1, &attr, sizeof attr);
}

static mica_status algebra_unary(const algebra *x)
{
    const uint16_t inner = algebra_op_of(x, x->a);
    switch ((int)x->op) {
    case MICA__OP_NEG:
    case MICA__OP_LOGICAL_NOT:
    case MICA__OP_BITWISE_NOT: return inner == x->op ? algebra_keep(x, algebra_input(x, x->a)) : MICA_OK;
    case MICA__OP_ABS:
    case MICA__OP_SQUARE:
        if (inner == MICA__OP_NEG && algebra_is_signed(x->dtype))
            return algebra_one(x, (mica__op)x->op, algebra_input(x, x->a));
        if (x->op == MICA__OP_SQUARE) return MICA_OK;
        return inner == x->op || !algebra_is_signed(x->dtype) ? algebra_keep(x, x->a) : MICA_OK;
    case MICA__OP_RELU: return inner == x->op || !algebra_is_signed(x->dtype) ? algebra_keep(x, x->a) : MICA_OK;
    case MICA__OP_SIGN: return inner == x->op ? algebra_keep(x, x->a) : MICA_OK;
    default:
        if (mica__op_get(x->op)->ctor != MICA__CTOR_WHOLE) return MICA_OK;
        return inner == x->op || !mica__is_float(x->dtype) ? algebra_keep(x, x->a) : MICA_OK;
    }
}

static mica_status algebra_where(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    const uint32_t condition = node->in[0], a = node->in[1], b = node->in[2];
    mica__number value, other;
    if (a == b) {
        mica__rewrite_replace(rw, id, a);
        return MICA_OK;
    }
    if (mica__graph_constant(rw->g, condition, &value)) {
        mica__rewrite_replace(rw, id, value.i ? a : b);
        return MICA_OK;
    }
    if (rw->g->node[condition].op == MICA__OP_LOGICAL_NOT)
        return mica__rewrite_by(rw, id, MICA__OP_WHERE, (uint32_t[]){rw->g->node[condition].in[0], b, a}, 3, NULL, 0);
    if (node->spec.dtype == MICA_BOOL && mica__graph_constant(rw->g, a, &value) &&
        mica__graph_constant(rw->g, b, &other) && value.i && !other.i)
        mica__rewrite_replace(rw, id, condition);
    return MICA_OK;
}

/* ---------------------------------------------------------------------------- */

static mica_status algebra_binary(const algebra *x)
{
    switch ((int)x->op) {
    case MICA__OP_ADD: return algebra_add(x);
    case MICA__OP_SUB: return algebra_sub(x);
    case MICA__OP_MUL: return algebra_mul(x);
    case MICA__OP_DIV: return algebra_div(x);
    case MICA__OP_POW: return algebra_pow(x);
    case MICA__OP_MINIMUM:
    case MICA__OP_MAXIMUM: return algebra_extreme(x);
    case MICA__OP_FLOOR_DIV: return !mica__is_float(x->dtype) && algebra_b_is(x, 1) ? algebra_keep(x, x->a) : MICA_OK;
    case MICA__OP_MOD: return !mica__is_float(x->dtype) && algebra_b_is(x, 1) ? algebra_constant(x, 0) : MICA_OK;
    case MICA__OP_SHIFT_LEFT:
    case MICA__OP_SHIFT_RIGHT: return algebra_b_is(x, 0) ? algebra_keep(x, x->a) : MICA_OK;
    case MICA__OP_LOGICAL_AND:
    case MICA__OP_LOGICAL_OR:
    case MICA__OP_LOGICAL_XOR:
    case MICA__OP_BITWISE_AND:
    case MICA__OP_BITWISE_OR:
    case MICA__OP_BITWISE_XOR: return algebra_bits(x);
    case MICA__OP_EQUAL:
    case MICA__OP_NOT_EQUAL:
    case MICA__OP_LESS:
    case MICA__OP_LESS_EQUAL:
    case MICA__OP_GREATER:
    case MICA__OP_GREATER_EQUAL: return algebra_compare(x);
    default: return MICA_OK;
    }
}

/* A reduction over axes of size 1 is a reshape (and for some sums a cast). */
static mica_status algebra_reduce(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    const mica__spec *in = &rw->g->node[node->in[0]].spec;
    const int64_t axes = ((const mica__attr_reduce *)node->attr)->axes;
    uint32_t x = node->in[0];
    for (int d = 0; d < in->ndim; d++)
        if ((axes >> d & 1) && in->shape[d] != 1) return MICA_OK;
    if (in->dtype != node->spec.dtype) {
        const mica__attr_cast attr = {node->spec.dtype};
        MICA_TRY(mica__rewrite_add(rw, MICA__OP_CAST, &x, 1, &attr, sizeof attr, &x));
    }
    if (!mica__shape_equal(&rw->g->node[x].spec, &rw->g->node[id].spec)) return mica__rewrite_by_reshape(rw, id, x);
    mica__rewrite_replace(rw, id, x);
    return MICA_OK;
}

static mica_status algebra_rule(mica__rewrite *rw, uint32_t id)
{
    const mica__gnode *node = &rw->g->node[id];
    const mica__op_kind kind = mica__op_get(node->op)->kind;
    if (kind == MICA__REDUCE) return algebra_reduce(rw, id);
    if (kind != MICA__MAP) return MICA_OK;
    if (node->op == MICA__OP_WHERE) return algebra_where(rw, id);
    algebra x = {.rw = rw, .id = id, .op = node->op, .dtype = (mica_dtype)rw->g->node[node->in[0]].spec.dtype};
    x.a = node->in[0];
    x.b = node->in[node->n_in > 1 ? 1 : 0];
    if (node->op == MICA__OP_CAST) return algebra_cast(&x);
    if (node->n_in == 1) return algebra_unary(&x);
    if (node->n_in != 2) return MICA_OK;
    x.const_a = mica__graph_constant(rw->g, x.a, &x.va);
    x.const_b = mica__graph_constant(rw->g, x.b, &x.vb);
    return algebra_binary(&x);
}

mica_status mica__pass_algebra(mica__graph *g, bool *changed) { return mica__rewrite_run(g, algebra_rule, changed); }
