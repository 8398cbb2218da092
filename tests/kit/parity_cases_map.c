/* Parity cases of element-wise ops: the domain of each operand. The cases build nodes directly, so
 * that every dtype that the shape rule allows is tested, not only the dtypes that the constructors
 * produce. */
#include "op_facts.h"
#include "parity_cases.h"

/* Special numbers are tested even if they are outside a domain: their results are part of
 * the definition of an op. Domains of ops with a constructor are in ops.def; these are
 * the others. */
typedef struct map_row {
    mica__op op;
    parity_domain in[3];
} map_row;

#define WIDE {-100, 100, 0, 0, PARITY_SPECIAL}

static const map_row map_rows[] = {
    {MICA__OP_CAST, {{-70000, 70000, 0, 0, PARITY_SPECIAL}}},
    {MICA__OP_COPY, {WIDE}},
    {MICA__OP_CHECK_INDEX, {{0, 0, -40, 39, PARITY_SPECIAL}}},
    {MICA__OP_WHERE, {WIDE, WIDE, WIDE}},
    {MICA__OP_FMA, {WIDE, WIDE, WIDE}},
};

static bool map_domains(mica__op op, parity_domain in[3])
{
    for (int i = 0; i < PARITY_COUNT(map_rows); i++)
        if (map_rows[i].op == op) {
            memcpy(in, map_rows[i].in, sizeof map_rows[i].in);
            return true;
        }
    const op_facts *facts = op_facts_of(op);
    if (!facts) return false;
    for (int i = 0; i < facts->n_in; i++) {
        const op_range r = facts->test.in[i], whole = facts->test.ints[i];
        const bool wide = r.low == 0 && r.high == 0;
        in[i] = (parity_domain){wide ? -100 : r.low, wide ? 100 : r.high, (int64_t)whole.low, (int64_t)whole.high,
                                PARITY_SPECIAL};
    }
    return true;
}

static const parity_shape map_shapes_1[] = {
    {0, {0}},     {1, {1}},       {1, {2}},          {1, {3}},    {1, {5}},      {1, {17}},   {1, {33}},
    {1, {65}},    {1, {130}},     {1, {0}},          {2, {0, 5}}, {2, {5, 0}},   {2, {1, 1}}, {2, {5, 17}},
    {2, {33, 3}}, {3, {3, 5, 7}}, {4, {2, 3, 1, 5}}, {1, {1031}}, {2, {2, 517}},
};

static mica_array *build_map(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const mica__op op = call->c->op;
    const mica__attr_cast cast = {.dtype = call->variant};
    const mica__attr_value value = {.value = OP_VALUE};
    const mica__attr_index index = {.size = 40};
    const void *attr = NULL;
    size_t attr_size = 0;
    switch ((int)op) {
    case MICA__OP_CAST: attr = &cast, attr_size = sizeof cast; break;
    case MICA__OP_CHECK_INDEX: attr = &index, attr_size = sizeof index; break;
    default:
        if (mica__op_get((uint16_t)op)->ctor == MICA__CTOR_VALUE) attr = &value, attr_size = sizeof value;
    }
    return mica__build(s, op, x, (size_t)call->c->n_in, attr, attr_size);
}

/* The same shape for each of up to three inputs. */
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
    parity_domain in[3];
    if (info->kind != MICA__MAP || !map_domains(op, in)) return false;
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
    for (int i = 0; i < info->n_in; i++) out->in[i].domain = in[i];
    if (op == MICA__OP_WHERE) out->in[0].dtype = MICA_BOOL + 1;
    return true;
}

/* --------------------------------------------------------- shape rules ---- */

/* The dtypes that the rules of shape_*.c should allow, by the rule's name. */
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
#define MICA_OP(NAME, name, kind, n_in, rule, ...) [MICA__OP_##NAME] = #rule,
#include "graph/ops.def"
    };
    if (op == MICA__OP_SHIFT_LEFT || op == MICA__OP_SHIFT_RIGHT) return PARITY_INTS;
    for (int i = 0; i < PARITY_COUNT(rules); i++)
        if (strcmp(rules[i].rule, rule_of[op]) == 0) return rules[i].dtypes;
    return 0; /* a new rule: no dtype is a failure of the test */
}
