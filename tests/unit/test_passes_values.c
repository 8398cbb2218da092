/* No pass changes a result: random graphs are computed element by element, then again after each
 * pass alone and after all of them, and compared bit by bit (any NaN equals any NaN). Also: passes
 * on large graphs, and with every allocation failing in turn. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "graph/scalar.h"
#include "graph_builder.h"

/* ------------------------------------------------------------ interpreter --- */

/* The values of a node, row-major. */
typedef mica__number *values;

static uint64_t random_state;

static uint64_t random_u64(void) { return mica__hash_u64(random_state += 0x9e3779b97f4a7c15ull); }
static uint32_t below(uint32_t n) { return (uint32_t)(random_u64() % n); }

static bool step_index(const mica__spec *s, int64_t *index)
{
    for (int d = s->ndim - 1; d >= 0; d--) {
        if (++index[d] < s->shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

static int64_t flat(const mica__spec *s, const int64_t *index, const int64_t *strides)
{
    int64_t at = 0;
    for (int d = 0; d < s->ndim; d++) at += index[d] * strides[d];
    return at;
}

/* Numbers for leaf k: small ones, and special values that break careless rules. */
static mica__number leaf_value(mica_dtype dtype, int32_t k, int64_t i)
{
    static const double special[] = {0.0, -0.0, 1, -1, 0.5, -2.5, 7, -0.0, 1e-3, 3, 100, 0.1, -1e30, INFINITY, NAN};
    const uint64_t r = mica__hash_u64((uint64_t)k * 1000003u + (uint64_t)i);
    if (mica__is_float(dtype)) return (mica__number){.f = mica__round_f64(dtype, special[r % 15])};
    return (mica__number){.i = mica__wrap_i64(dtype, r & 1 ? (int64_t)(r >> 1) : (int64_t)(r >> 1) % 5 - 2)};
}

static void compute_view(const mica__graph *g, const mica__gnode *node, const values *v, values out)
{
    const mica__spec *in = &g->node[node->in[0]].spec;
    int64_t strides[MICA_MAX_DIMS], offset, index[MICA_MAX_DIMS] = {0}, i = 0;
    mica__row_major(in, strides);
    if (!mica__view_apply(node, in, strides, 0, strides, &offset)) abort(); /* always possible for row-major input */
    do out[i++] = v[node->in[0]][offset + flat(&node->spec, index, strides)];
    while (step_index(&node->spec, index));
}

/* Starts with the first element instead of the identity, so that the sum of one -0 is
 * -0: a pass that removes axes of size 1 may keep it. */
static void compute_reduce(const mica__graph *g, const mica__gnode *node, const values *v, values out)
{
    const mica__spec *in = &g->node[node->in[0]].spec;
    const mica__attr_reduce *a = node->attr;
    const mica_dtype dtype = (mica_dtype)in->dtype, to = (mica_dtype)node->spec.dtype;
    int64_t strides[MICA_MAX_DIMS] = {0}, index[MICA_MAX_DIMS] = {0}, stride = 1, i = 0;
    bool seen[4096] = {false};
    for (int d = in->ndim - 1; d >= 0; d--) {
        strides[d] = a->axes >> d & 1 ? 0 : stride;
        if (!(a->axes >> d & 1)) stride *= in->shape[d];
    }
    for (int64_t k = 0; k < mica__spec_size(&node->spec); k++)
        out[k] = mica__scalar_identity((mica__op)node->op, dtype);
    if (mica__spec_size(in) > 0) {
        do {
            const int64_t at = flat(in, index, strides);
            const mica__number x = v[node->in[0]][i++];
            out[at] = seen[at] ? mica__scalar_fold((mica__op)node->op, dtype, out[at], x) : x;
            seen[at] = true;
        } while (step_index(in, index));
    }
    for (int64_t k = 0; k < mica__spec_size(&node->spec); k++)
        out[k] = mica__is_float(to) ? (mica__number){.f = mica__round_f64(to, out[k].f)}
                                    : (mica__number){.i = mica__wrap_i64(to, out[k].i)};
}

static void compute_iota(const mica__gnode *node, values out)
{
    const mica__attr_iota *a = node->attr;
    const mica_dtype dtype = (mica_dtype)node->spec.dtype;
    int64_t index[MICA_MAX_DIMS] = {0}, i = 0;
    do {
        const int64_t k = index[a->axis];
        out[i++] = mica__is_float(dtype)
                       ? (mica__number){.f = mica__round_f64(dtype, a->start.f + (double)k * a->step.f)}
                       : (mica__number){.i = mica__wrap_i64(dtype, a->start.i + k * a->step.i)};
    } while (step_index(&node->spec, index));
}

static void compute_node(const mica__graph *g, uint32_t id, const values *v)
{
    const mica__gnode *node = &g->node[id];
    const mica_dtype dtype = (mica_dtype)node->spec.dtype;
    const int64_t n = mica__spec_size(&node->spec);
    const mica__op_kind kind = mica__op_get(node->op)->kind;
    if (kind == MICA__REDUCE) compute_reduce(g, node, v, v[id]);
    else if (n == 0) return;
    else if (kind == MICA__VIEW) compute_view(g, node, v, v[id]);
    else if (node->op == MICA__OP_IOTA) compute_iota(node, v[id]);
    for (int64_t i = 0; i < n; i++) {
        if (kind == MICA__SOURCE) v[id][i] = leaf_value(dtype, node->leaf, i);
        if (node->op == MICA__OP_FULL) mica__graph_constant(g, id, &v[id][i]);
        if (kind == MICA__ALIAS) v[id][i] = v[node->in[0]][i];
        if (kind != MICA__MAP) continue;
        mica__number args[3];
        for (uint32_t k = 0; k < node->n_in; k++) args[k] = v[node->in[k]][i];
        const mica__spec *operand = &g->node[node->in[node->op == MICA__OP_WHERE ? 1 : 0]].spec;
        v[id][i] = mica__scalar_map((mica__op)node->op, (mica_dtype)operand->dtype, dtype, args, node->attr, NULL);
    }
}

/* The values of all results, one after the other; *n of them. */
static values compute(const mica__graph *g, size_t *n)
{
    values *v = calloc(g->n, sizeof *v), all = calloc(1 << 16, sizeof *all);
    *n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        v[i] = calloc((size_t)mica__spec_size(&g->node[i].spec) + 1, sizeof *v[i]);
        compute_node(g, i, v);
    }
    for (uint32_t k = 0; k < g->n_out; k++) {
        const size_t size = (size_t)mica__spec_size(&g->node[g->out[k]].spec);
        memcpy(all + *n, v[g->out[k]], size * sizeof *all);
        *n += size;
    }
    for (uint32_t i = 0; i < g->n; i++) free(v[i]);
    free(v);
    return all;
}

static bool same_number(mica__number a, mica__number b)
{
    if (isnan(a.f) || isnan(b.f)) return isnan(a.f) && isnan(b.f);
    return memcmp(&a, &b, sizeof a) == 0;
}

/* ----------------------------------------------------------- random graphs --- */

static const mica_dtype some_dtypes[] = {MICA_F32,  MICA_F32, MICA_F32, MICA_F64,
                                         MICA_BF16, MICA_I32, MICA_U8,  MICA_BOOL};
static const double some_numbers[] = {0.0, -0.0, 1, -1, 2, 0.5, 4, 3, 255, INFINITY};

/* Mostly a recent node, so that graphs grow deep; often the newest, so that views are combined. */
static uint32_t random_node(const builder *b)
{
    return b->g->n - 1 - (below(3) ? below(b->g->n < 20 ? b->g->n : 20) : 0);
}

/* A node of this shape and dtype: an old one, or a view or cast of one, or a constant. */
static uint32_t random_like(builder *b, const mica__spec *spec)
{
    for (int tries = 0; tries < 6; tries++) {
        const uint32_t id = random_node(b);
        if (mica__spec_equal(&b->g->node[id].spec, spec)) return id;
        if (mica__shape_equal(&b->g->node[id].spec, spec) && below(2)) return to_dtype(b, id, (mica_dtype)spec->dtype);
    }
    if (below(2)) {
        mica__spec row = *spec;
        for (int d = 0; d < row.ndim; d++)
            if (below(2)) row.shape[d] = 1;
        const uint32_t c = below(2)   ? full(b, (mica_dtype)spec->dtype, some_numbers[below(10)], row.ndim, row.shape)
                           : row.ndim ? iota(b, (mica_dtype)spec->dtype, 0, below(3), below(3), row.ndim, row.shape)
                                      : full(b, (mica_dtype)spec->dtype, 1, SCALAR);
        return to_shape(b, MICA__OP_BROADCAST, c, spec->ndim, spec->shape);
    }
    return full(b, (mica_dtype)spec->dtype, some_numbers[below(10)], spec->ndim, spec->shape);
}

static void random_view(builder *b, uint32_t x)
{
    const mica__spec s = b->g->node[x].spec;
    int64_t axes[MICA_MAX_DIMS], parts[MICA_MAX_DIMS][3], shape[MICA_MAX_DIMS + 1];
    switch (below(5)) {
    case 0:
        for (int d = 0; d < s.ndim; d++) axes[d] = d;
        for (int d = s.ndim - 1; d > 0; d--) {
            const uint32_t e = below((uint32_t)d + 1);
            const int64_t t = axes[d];
            axes[d] = axes[e];
            axes[e] = t;
        }
        permute(b, x, s.ndim, axes);
        break;
    case 1:
        for (int d = 0; d < s.ndim; d++) {
            const int64_t n = s.shape[d], size = n ? 1 + below((uint32_t)n) : 0;
            parts[d][0] = size < n ? below((uint32_t)(n - size + 1)) : 0;
            parts[d][1] = 1;
            parts[d][2] = size;
            if (size == n && n > 0 && below(3) == 0) parts[d][0] = n - 1, parts[d][1] = -1;
            if (size == n && n > 3 && below(3) == 0) parts[d][0] = 1, parts[d][1] = 2, parts[d][2] = n / 2;
        }
        slice(b, x, s.ndim, (const int64_t(*)[3])parts);
        break;
    case 2: { /* size-1 axes stretched, a new axis in front */
        const bool small = mica__spec_size(&s) < 200;
        const int more = s.ndim < 3 && small && below(2);
        shape[0] = 2;
        for (int d = 0; d < s.ndim; d++) shape[d + more] = s.shape[d] == 1 && small ? 3 : s.shape[d];
        to_shape(b, MICA__OP_BROADCAST, x, s.ndim + more, shape);
        break;
    }
    default: { /* flattened, or with one more axis of size 1 */
        const int64_t n = mica__spec_size(&s);
        const int at = (int)below((uint32_t)s.ndim + 1);
        for (int d = 0; d <= s.ndim; d++) shape[d] = d < at ? s.shape[d] : d == at ? 1 : s.shape[d - 1];
        if (s.ndim == 4 || below(3) == 0) to_shape(b, MICA__OP_RESHAPE, x, 1, &n);
        else if (n % 2 == 0 && below(2)) to_shape(b, MICA__OP_RESHAPE, x, SHAPE(n / 2, 2));
        else to_shape(b, MICA__OP_RESHAPE, x, s.ndim + 1, shape);
        break;
    }
    }
}

static void random_step(builder *b)
{
    const uint32_t x = random_node(b), kind = below(10);
    const mica__spec s = b->g->node[x].spec;
    if (kind < 3) {
        random_view(b, x);
    } else if (kind == 3) {
        to_dtype(b, x, some_dtypes[below(8)]);
    } else if (kind == 4 && mica__spec_size(&s) > 0) {
        const mica__op op =
            s.dtype == MICA_BOOL ? (below(2) ? MICA__OP_ANY : MICA__OP_ALL) : (mica__op)(MICA__OP_SUM + (int)below(4));
        reduce(b, op, x, below(1u << s.ndim), below(2));
    } else if (kind == 5) {
        mica__spec c = s;
        c.dtype = MICA_BOOL;
        uint32_t condition = random_like(b, &c);
        if (below(2)) condition = build1(b, MICA__OP_LOGICAL_NOT, condition);
        build3(b, MICA__OP_WHERE, condition, x, random_like(b, &s));
    } else { /* any element-wise op that takes this dtype */
        static const uint8_t likely[] = {MICA__OP_NEG,         MICA__OP_ADD,         MICA__OP_SUB, MICA__OP_MUL,
                                         MICA__OP_DIV,         MICA__OP_LOGICAL_NOT, MICA__OP_POW, MICA__OP_MINIMUM,
                                         MICA__OP_BITWISE_AND, MICA__OP_BITWISE_OR,  MICA__OP_ABS, MICA__OP_LESS,
                                         MICA__OP_SQUARE};
        for (;;) {
            const mica__op op = (mica__op)(below(4) ? likely[below(sizeof likely)] : below(MICA__OP_COUNT));
            const mica__op_info *info = mica__op_get((uint16_t)op);
            const mica__attr_value attr = {0.5};
            const mica__spec *in[] = {&s, &s, &s};
            mica__spec out;
            if (info->kind != MICA__MAP || op == MICA__OP_CAST || op == MICA__OP_CHECK_INDEX || op == MICA__OP_WHERE)
                continue;
            if (info->shape(info, in, (size_t)info->n_in, &attr, &out) != MICA_OK) continue;
            uint32_t args[3] = {x, x, x};
            for (int k = 1; k < info->n_in; k++) args[k] = below(5) ? random_like(b, &s) : x;
            if (info->n_in == 2 && below(2)) args[0] = args[1], args[1] = x;
            build(b, op, args, (uint32_t)info->n_in, &attr, sizeof attr);
            break;
        }
    }
}

static void random_graph(builder *b, uint64_t seed, uint32_t nodes)
{
    random_state = seed * 77777;
    build_begin(b);
    leaf(b, MICA_F32, SHAPE(2, 3));
    leaf(b, MICA_F32, SHAPE(3, 1, 4));
    leaf(b, MICA_I32, SHAPE(2, 3));
    leaf(b, MICA_BOOL, SHAPE(4));
    leaf(b, MICA_U8, SCALAR);
    leaf(b, MICA_F32, SHAPE(2, 0));
    while (b->g->n < nodes) random_step(b);
    for (uint32_t k = 0; k < 4; k++) result(b, b->g->n - 1 - k * (nodes / 8));
}

TEST(passes_keep_every_bit_of_random_graphs)
{
    static const uint32_t masks[] = {
        0, MICA_PASS_FOLD, MICA_PASS_ALGEBRA, MICA_PASS_MOVEMENT, MICA_PASS_CSE, MICA_PASS_ALL};
    uint32_t removed = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        for (int m = 0; m < 6; m++) {
            builder b;
            size_t n, n_after;
            test_case("seed %d, passes 0x%x", (int)seed, masks[m]);
            random_graph(&b, seed, 50);
            CHECK_MSG(mica__graph_verify(b.g, "building") == MICA_OK, "%s", mica_last_error());
            values before = compute(b.g, &n);
            CHECK(mica__graph_sweep(b.g) == MICA_OK);
            const uint32_t nodes = b.g->n;
            CHECK_MSG(mica__simplify(b.g, masks[m]) == MICA_OK, "%s", mica_last_error());
            CHECK_MSG(mica__graph_verify(b.g, "simplify") == MICA_OK, "%s", mica_last_error());
            removed += nodes - b.g->n;
            values after = compute(b.g, &n_after);
            CHECK_INT(n_after, n);
            for (size_t i = 0; i < n; i++)
                CHECK_MSG(same_number(before[i], after[i]), "value %zu: %.17g (%lld) became %.17g (%lld)", i,
                          before[i].f, (long long)before[i].i, after[i].f, (long long)after[i].i);
            free(before);
            free(after);
            build_end(&b);
        }
    }
    CHECK(removed > 1000);
}

/* ------------------------------------------------------------ large, failing --- */

/* A stack of views over a chain of ops, long enough to reveal recursion or a run time
 * proportional to the product of the two. */
TEST(large_graphs)
{
    builder b;
    build_begin(&b);
    uint32_t y = leaf(&b, MICA_F32, SHAPE(30, 40));
    for (int k = 0; k < 100000; k++) {
        if (k % 10 == 9) y = permute(&b, y, SHAPE(1, 0));
        else y = k % 3 ? build1(&b, MICA__OP_NEG, y) : build2(&b, MICA__OP_ADD, y, y);
    }
    result(&b, y);
    CHECK(mica__simplify(b.g, MICA_PASS_ALL) == MICA_OK);
    CHECK(mica__graph_verify(b.g, "simplify") == MICA_OK);
    build_end(&b);
}

TEST(no_memory_is_a_status)
{
    const int64_t live = mica__alloc_live();
    for (uint64_t at = 1;; at++) {
        builder b;
        test_case("allocation %d", (int)at);
        random_graph(&b, 3, 60);
        mica__alloc_fail_at(at);
        const mica_status status = mica__simplify(b.g, MICA_PASS_ALL);
        mica__alloc_fail_at(0);
        CHECK(status == MICA_OK || status == MICA_ERR_MEMORY);
        build_end(&b);
        CHECK_INT(mica__alloc_live(), live);
        if (status == MICA_OK) break;
        CHECK(at < 10000);
    }
}
