/* Parity cases of element-wise ops: where the operands of each come from. Built
 * as nodes, so that every dtype the shape rule allows is tried, not only those
 * the constructors make. */
#include "parity_cases.h"

/* Outside of a domain are still the special numbers; what an op makes of them
 * is part of its definition. */
typedef struct map_row {
    bool listed;
    parity_domain in[3];
} map_row;

#define FLOATS(low, high) {low, high, 0, 0, PARITY_SPECIAL}
#define BOTH(low, high, int_low, int_high) {low, high, int_low, int_high, PARITY_SPECIAL}
#define WIDE FLOATS(-100, 100)

static const map_row map_rows[MICA__OP_COUNT] = {
    [MICA__OP_CAST] = {true, {FLOATS(-70000, 70000)}},
    [MICA__OP_COPY] = {true, {WIDE}},
    [MICA__OP_NEG] = {true, {WIDE}},
    [MICA__OP_ABS] = {true, {WIDE}},
    [MICA__OP_SIGN] = {true, {WIDE}},
    [MICA__OP_SQUARE] = {true, {WIDE}},
    [MICA__OP_FLOOR] = {true, {WIDE}},
    [MICA__OP_CEIL] = {true, {WIDE}},
    [MICA__OP_ROUND] = {true, {WIDE}},
    [MICA__OP_RELU] = {true, {WIDE}},
    [MICA__OP_RELU2] = {true, {WIDE}},
    [MICA__OP_EXP] = {true, {FLOATS(-100, 88)}},
    [MICA__OP_EXPM1] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_LOG] = {true, {FLOATS(0, 20)}},
    [MICA__OP_LOG1P] = {true, {FLOATS(-1, 20)}},
    [MICA__OP_LOG2] = {true, {FLOATS(0, 20)}},
    [MICA__OP_SQRT] = {true, {FLOATS(0, 100)}},
    [MICA__OP_RSQRT] = {true, {FLOATS(0, 100)}},
    [MICA__OP_RECIPROCAL] = {true, {WIDE}},
    [MICA__OP_SIN] = {true, {WIDE}},
    [MICA__OP_COS] = {true, {WIDE}},
    [MICA__OP_TAN] = {true, {WIDE}},
    [MICA__OP_ASIN] = {true, {FLOATS(-1, 1)}},
    [MICA__OP_ACOS] = {true, {FLOATS(-1, 1)}},
    [MICA__OP_ATAN] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_SINH] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_COSH] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_TANH] = {true, {FLOATS(-5, 5)}},
    [MICA__OP_ERF] = {true, {FLOATS(-4, 4)}},
    [MICA__OP_ERFINV] = {true, {FLOATS(-1, 1)}},
    [MICA__OP_SIGMOID] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_GELU] = {true, {FLOATS(-8, 8)}},
    [MICA__OP_GELU_TANH] = {true, {FLOATS(-8, 8)}},
    [MICA__OP_SILU] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_SOFTPLUS] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_LEAKY_RELU] = {true, {WIDE}},
    [MICA__OP_ELU] = {true, {FLOATS(-20, 20)}},
    [MICA__OP_LECUN_TANH] = {true, {FLOATS(-5, 5)}},
    [MICA__OP_ISNAN] = {true, {WIDE}},
    [MICA__OP_ISINF] = {true, {WIDE}},
    [MICA__OP_ISFINITE] = {true, {WIDE}},
    [MICA__OP_LOGICAL_NOT] = {true, {WIDE}},
    [MICA__OP_BITWISE_NOT] = {true, {WIDE}},
    [MICA__OP_CHECK_INDEX] = {true, {{0, 0, -40, 39, PARITY_SPECIAL}}},
    [MICA__OP_ADD] = {true, {WIDE, WIDE}},
    [MICA__OP_SUB] = {true, {WIDE, WIDE}},
    [MICA__OP_MUL] = {true, {WIDE, WIDE}},
    [MICA__OP_DIV] = {true, {WIDE, WIDE}},
    [MICA__OP_FLOOR_DIV] = {true, {WIDE, BOTH(-10, 10, -9, 9)}},
    [MICA__OP_MOD] = {true, {WIDE, BOTH(-10, 10, -9, 9)}},
    [MICA__OP_POW] = {true, {FLOATS(-2, 6), BOTH(-6, 6, -4, 9)}},
    [MICA__OP_MINIMUM] = {true, {WIDE, WIDE}},
    [MICA__OP_MAXIMUM] = {true, {WIDE, WIDE}},
    [MICA__OP_ATAN2] = {true, {WIDE, WIDE}},
    [MICA__OP_HYPOT] = {true, {WIDE, WIDE}},
    /* few different numbers, so that some are equal */
    [MICA__OP_EQUAL] = {true, {BOTH(-2, 2, -2, 2), BOTH(-2, 2, -2, 2)}},
    [MICA__OP_NOT_EQUAL] = {true, {BOTH(-2, 2, -2, 2), BOTH(-2, 2, -2, 2)}},
    [MICA__OP_LESS] = {true, {WIDE, WIDE}},
    [MICA__OP_LESS_EQUAL] = {true, {WIDE, WIDE}},
    [MICA__OP_GREATER] = {true, {WIDE, WIDE}},
    [MICA__OP_GREATER_EQUAL] = {true, {WIDE, WIDE}},
    [MICA__OP_LOGICAL_AND] = {true, {WIDE, WIDE}},
    [MICA__OP_LOGICAL_OR] = {true, {WIDE, WIDE}},
    [MICA__OP_LOGICAL_XOR] = {true, {WIDE, WIDE}},
    [MICA__OP_BITWISE_AND] = {true, {WIDE, WIDE}},
    [MICA__OP_BITWISE_OR] = {true, {WIDE, WIDE}},
    [MICA__OP_BITWISE_XOR] = {true, {WIDE, WIDE}},
    [MICA__OP_SHIFT_LEFT] = {true, {WIDE, {0, 0, -3, 70, PARITY_SPECIAL}}},
    [MICA__OP_SHIFT_RIGHT] = {true, {WIDE, {0, 0, -3, 70, PARITY_SPECIAL}}},
    [MICA__OP_WHERE] = {true, {WIDE, WIDE, WIDE}},
    [MICA__OP_FMA] = {true, {WIDE, WIDE, WIDE}},
};

static const parity_shape map_shapes_1[] = {
    {0, {0}},     {1, {1}},       {1, {2}},          {1, {3}},    {1, {5}},      {1, {17}},   {1, {33}},
    {1, {65}},    {1, {130}},     {1, {0}},          {2, {0, 5}}, {2, {5, 0}},   {2, {1, 1}}, {2, {5, 17}},
    {2, {33, 3}}, {3, {3, 5, 7}}, {4, {2, 3, 1, 5}}, {1, {1031}}, {2, {2, 517}},
};

static mica_array *build_map(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__op op = call->c->op;
    const mica__attr_cast cast = {.dtype = call->variant};
    const mica__attr_value value = {.value = 0.3};
    const mica__attr_index index = {.size = 40};
    const void *attr = NULL;
    size_t attr_size = 0;
    switch ((int)op) {
    case MICA__OP_CAST: attr = &cast, attr_size = sizeof cast; break;
    case MICA__OP_LEAKY_RELU:
    case MICA__OP_ELU: attr = &value, attr_size = sizeof value; break;
    case MICA__OP_CHECK_INDEX: attr = &index, attr_size = sizeof index; break;
    default: break;
    }
    return mica__build(s, op, x, (size_t)call->c->n_in, attr, attr_size);
}

/* The same row for each of up to three inputs. */
static const parity_shape *map_shapes(int n_in)
{
    enum { N = PARITY_COUNT(map_shapes_1) };
    static parity_shape twice[2 * N], thrice[3 * N];
    if (n_in == 1) return map_shapes_1;
    parity_shape *rows = n_in == 2 ? twice : thrice;
    for (int i = 0; i < N * n_in; i++) rows[i] = map_shapes_1[i / n_in];
    return rows;
}

bool parity_map_case(mica__op op, parity_case *out)
{
    const mica__op_info *info = mica__op_get((uint16_t)op);
    const map_row *row = &map_rows[op];
    if (info->kind != MICA__MAP || !row->listed) return false;
    *out = (parity_case){
        .op = op,
        .name = info->name,
        .build = build_map,
        .n_variant = op == MICA__OP_CAST ? MICA__DTYPE_COUNT : 1,
        .n_in = info->n_in,
        .shapes = map_shapes(info->n_in),
        .n_shape = PARITY_COUNT(map_shapes_1),
        .terms = 1,
    };
    for (int i = 0; i < info->n_in; i++) out->in[i].domain = row->in[i];
    if (op == MICA__OP_WHERE) out->in[0].dtype = MICA_BOOL + 1;
    return true;
}

/* --------------------------------------------------------- shape rules ---- */

/* What the rules of shape_*.c are meant to allow, by the rule's name. */
uint32_t parity_rule_dtypes(mica__op op)
{
    static const struct {
        const char *rule;
        uint32_t dtypes;
    } rules[] = {
        {"given", PARITY_ALL},
        {"same", PARITY_ALL},
        {"floating", PARITY_FLOATS},
        {"predicate", PARITY_FLOATS},
        {"compare", PARITY_ALL},
        {"logical", PARITY_BOOL},
        {"integer", PARITY_INTS | PARITY_BOOL},
        {"check_index", 1 << MICA_I64 | 1 << MICA_U64},
        {"where", PARITY_ALL},
        {"alias", PARITY_ALL},
        {"reshape", PARITY_ALL},
        {"permute", PARITY_ALL},
        {"broadcast", PARITY_ALL},
        {"slice", PARITY_ALL},
        {"window", PARITY_ALL},
        {"sum", PARITY_ALL},
        {"extreme", PARITY_ALL},
        {"anyall", PARITY_BOOL},
        {"argmax", PARITY_ALL},
        {"cumulative", PARITY_ALL},
        {"rows", PARITY_FLOATS},
        {"rows_any", PARITY_ALL},
        {"argsort", PARITY_ALL},
        {"logsumexp", PARITY_FLOATS},
        {"norm", PARITY_FLOATS},
        {"matmul", PARITY_NUMBERS},
        {"qmatmul", 1 << MICA_F32},
        {"qrows", 1 << MICA_F32},
        {"conv", PARITY_FLOATS},
        {"attention", PARITY_FLOATS},
        {"attention_cached", PARITY_FLOATS},
        {"attention_grad", PARITY_FLOATS},
        {"synapses", PARITY_FLOATS},
        {"synapses_grad", PARITY_FLOATS},
        {"rope_table", PARITY_NUMBERS},
        {"rope", PARITY_FLOATS},
        {"pad", PARITY_ALL},
        {"concat", PARITY_ALL},
        {"unwindow", PARITY_ALL},
        {"take", PARITY_ALL},
        {"scatter", PARITY_ALL},
        {"update", PARITY_ALL},
    };
    static const char *const rule_of[MICA__OP_COUNT] = {
#define MICA_OP(NAME, name, kind, n_in, rule, flops, cost, msl, vjp) [MICA__OP_##NAME] = #rule,
#include "graph/ops.def"
#undef MICA_OP
    };
    if (op == MICA__OP_SHIFT_LEFT || op == MICA__OP_SHIFT_RIGHT) return PARITY_INTS;
    for (int i = 0; i < PARITY_COUNT(rules); i++)
        if (strcmp(rules[i].rule, rule_of[op]) == 0) return rules[i].dtypes;
    return 0; /* a new rule: no dtype is a failure of the test */
}
