/* Each pass on small graphs: what it rewrites, what it must not change, that the graph stays valid
 * and that the pass reaches a fixed point. test_passes_values.c tests on random graphs that results
 * stay the same.
 *
 * runs: check */
#include <inttypes.h>
#include <math.h>

#include "graph_builder.h"

/* --------------------------------------------------------------- algebra --- */

enum { VANISHES = MICA__OP_LEAF };

/* x op c, and the op that replaces it. */
static const struct {
    mica_dtype dtype;
    mica__op op;
    double c;
    bool left;
    int becomes;
} with_constant[] = {
    {MICA_F32, MICA__OP_MUL, 1, false, VANISHES},
    {MICA_F32, MICA__OP_MUL, 1, true, VANISHES},
    {MICA_F16, MICA__OP_MUL, -1, false, MICA__OP_NEG},
    {MICA_F32, MICA__OP_MUL, 0, false, MICA__OP_MUL},
    {MICA_F32, MICA__OP_ADD, 0.0, false, MICA__OP_ADD},
    {MICA_F32, MICA__OP_ADD, -0.0, false, VANISHES},
    {MICA_F32, MICA__OP_ADD, -0.0, true, VANISHES},
    {MICA_F32, MICA__OP_SUB, 0.0, false, VANISHES},
    {MICA_F32, MICA__OP_SUB, -0.0, false, MICA__OP_SUB},
    {MICA_F32, MICA__OP_SUB, 0.0, true, MICA__OP_SUB},
    {MICA_F32, MICA__OP_DIV, 1, false, VANISHES},
    {MICA_F32, MICA__OP_DIV, 1, true, MICA__OP_DIV},
    {MICA_F32, MICA__OP_DIV, -1, false, MICA__OP_NEG},
    {MICA_F32, MICA__OP_DIV, 4, false, MICA__OP_MUL},
    {MICA_F32, MICA__OP_DIV, -0.25, false, MICA__OP_MUL},
    {MICA_F32, MICA__OP_DIV, 3, false, MICA__OP_DIV},
    {MICA_F32, MICA__OP_DIV, 0.0, false, MICA__OP_DIV},
    {MICA_F32, MICA__OP_DIV, 0x1p127, false, MICA__OP_DIV},
    {MICA_F16, MICA__OP_DIV, 0x1p-20, false, MICA__OP_DIV},
    {MICA_F32, MICA__OP_POW, 1, false, VANISHES},
    {MICA_F32, MICA__OP_POW, 2, false, MICA__OP_SQUARE},
    {MICA_F64, MICA__OP_POW, 2, false, MICA__OP_POW},
    {MICA_F32, MICA__OP_POW, 0, false, MICA__OP_FULL},
    {MICA_F32, MICA__OP_POW, 0.5, false, MICA__OP_POW},
    {MICA_F32, MICA__OP_MINIMUM, INFINITY, false, VANISHES},
    {MICA_F32, MICA__OP_MAXIMUM, -INFINITY, true, VANISHES},
    {MICA_F32, MICA__OP_MAXIMUM, INFINITY, false, MICA__OP_MAXIMUM},
    {MICA_F32, MICA__OP_MOD, 1, false, MICA__OP_MOD},
    {MICA_I32, MICA__OP_ADD, 0, true, VANISHES},
    {MICA_I32, MICA__OP_SUB, 0, true, MICA__OP_NEG},
    {MICA_I32, MICA__OP_MUL, 0, true, MICA__OP_FULL},
    {MICA_U8, MICA__OP_MUL, 255, false, MICA__OP_NEG},
    {MICA_I32, MICA__OP_FLOOR_DIV, 1, false, VANISHES},
    {MICA_I32, MICA__OP_FLOOR_DIV, 0, false, MICA__OP_FLOOR_DIV},
    {MICA_I32, MICA__OP_MOD, 1, false, MICA__OP_FULL},
    {MICA_I32, MICA__OP_POW, 2, false, MICA__OP_SQUARE},
    {MICA_I32, MICA__OP_SHIFT_LEFT, 0, false, VANISHES},
    {MICA_I32, MICA__OP_SHIFT_LEFT, 0, true, MICA__OP_SHIFT_LEFT},
    {MICA_U16, MICA__OP_BITWISE_AND, 0xffff, false, VANISHES},
    {MICA_I32, MICA__OP_BITWISE_AND, 0, true, MICA__OP_FULL},
    {MICA_I8, MICA__OP_BITWISE_OR, -1, false, MICA__OP_FULL},
    {MICA_I8, MICA__OP_BITWISE_OR, 0, false, VANISHES},
    {MICA_I8, MICA__OP_BITWISE_XOR, -1, false, MICA__OP_BITWISE_XOR},
    {MICA_BOOL, MICA__OP_LOGICAL_AND, 1, false, VANISHES},
    {MICA_BOOL, MICA__OP_LOGICAL_AND, 0, false, MICA__OP_FULL},
    {MICA_BOOL, MICA__OP_LOGICAL_OR, 1, true, MICA__OP_FULL},
    {MICA_BOOL, MICA__OP_LOGICAL_XOR, 0, true, VANISHES},
    {MICA_BOOL, MICA__OP_MUL, 1, true, VANISHES},
};

TEST(algebra_with_a_constant)
{
    for (size_t r = 0; r < sizeof with_constant / sizeof with_constant[0]; r++) {
        builder b;
        const mica_dtype d = with_constant[r].dtype;
        const mica__op op = with_constant[r].op;
        test_case("%s %s %s%g", mica__op_get((uint16_t)op)->name, mica_dtype_name(d),
                  with_constant[r].left ? "left " : "", with_constant[r].c);
        build_begin(&b);
        const uint32_t x = leaf(&b, d, SHAPE(4)), c = full(&b, d, with_constant[r].c, SHAPE(4));
        result(&b, with_constant[r].left ? build2(&b, op, c, x) : build2(&b, op, x, c));
        EXPECT_INT(run_pass(&b, mica__pass_algebra), with_constant[r].becomes != (int)op);
        EXPECT_STR(mica__op_get(result_node(&b, 0)->op)->name, mica__op_get((uint16_t)with_constant[r].becomes)->name);
        build_end(&b);
    }
}

/* outer(inner(x)), and its replacement: an op of x, x itself, or inner(x). */
TEST(algebra_of_one_op_on_another)
{
    static const struct {
        mica_dtype dtype;
        mica__op outer, inner;
        int becomes;
    } rows[] = {
        {MICA_F32, MICA__OP_NEG, MICA__OP_NEG, VANISHES},
        {MICA_BOOL, MICA__OP_LOGICAL_NOT, MICA__OP_LOGICAL_NOT, VANISHES},
        {MICA_U8, MICA__OP_BITWISE_NOT, MICA__OP_BITWISE_NOT, VANISHES},
        {MICA_F32, MICA__OP_ABS, MICA__OP_NEG, MICA__OP_ABS},
        {MICA_I8, MICA__OP_SQUARE, MICA__OP_NEG, MICA__OP_SQUARE},
        {MICA_U8, MICA__OP_ABS, MICA__OP_NEG, MICA__OP_NEG},
        {MICA_F32, MICA__OP_RELU, MICA__OP_RELU, MICA__OP_RELU},
        {MICA_I32, MICA__OP_FLOOR, MICA__OP_ROUND, VANISHES},
        {MICA_F32, MICA__OP_EXP, MICA__OP_LOG, MICA__OP_EXP},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        builder b;
        test_case("%s of %s", mica__op_get((uint16_t)rows[r].outer)->name, mica__op_get((uint16_t)rows[r].inner)->name);
        build_begin(&b);
        result(&b, build1(&b, rows[r].outer, build1(&b, rows[r].inner, leaf(&b, rows[r].dtype, SHAPE(3)))));
        run_pass(&b, mica__pass_algebra);
        EXPECT_STR(mica__op_get(result_node(&b, 0)->op)->name, mica__op_get((uint16_t)rows[r].becomes)->name);
        EXPECT_INT(b.g->n, rows[r].becomes == VANISHES ? 1 : rows[r].outer == MICA__OP_EXP ? 3 : 2);
        build_end(&b);
    }
}

TEST(algebra_casts)
{
    static const struct {
        mica_dtype from, by, to;
        int nodes;
    } rows[] = {
        {MICA_F32, MICA_F32, MICA_F32, 1},  {MICA_F32, MICA_F64, MICA_F32, 1},  {MICA_F64, MICA_F32, MICA_F64, 3},
        {MICA_I8, MICA_I32, MICA_I8, 1},    {MICA_I8, MICA_I32, MICA_U8, 2},    {MICA_I8, MICA_U32, MICA_I8, 3},
        {MICA_F16, MICA_F32, MICA_BF16, 2}, {MICA_F16, MICA_BF16, MICA_F32, 3}, {MICA_U8, MICA_BF16, MICA_U8, 1},
        {MICA_U16, MICA_F16, MICA_F32, 3},  {MICA_I32, MICA_F64, MICA_F32, 2},  {MICA_I32, MICA_F32, MICA_F64, 3},
        {MICA_I32, MICA_F64, MICA_I8, 3},   {MICA_I32, MICA_F64, MICA_I64, 2},  {MICA_BOOL, MICA_F16, MICA_I64, 2},
        {MICA_I32, MICA_BOOL, MICA_I32, 3}, {MICA_U32, MICA_I64, MICA_F32, 2},  {MICA_F32, MICA_F64, MICA_I8, 2},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        builder b;
        test_case("%s to %s to %s", mica_dtype_name(rows[r].from), mica_dtype_name(rows[r].by),
                  mica_dtype_name(rows[r].to));
        build_begin(&b);
        result(&b, to_dtype(&b, to_dtype(&b, leaf(&b, rows[r].from, SHAPE(3)), rows[r].by), rows[r].to));
        run_pass(&b, mica__pass_algebra);
        EXPECT_INT(b.g->n, rows[r].nodes);
        EXPECT_INT(result_node(&b, 0)->spec.dtype, rows[r].to);
        build_end(&b);
    }
}

TEST(algebra_of_equal_operands_and_where)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(3)), y = leaf(&b, MICA_F32, SHAPE(3)), i = leaf(&b, MICA_I32, SHAPE(3));
    const uint32_t c = leaf(&b, MICA_BOOL, SHAPE(3)), yes = full(&b, MICA_BOOL, 1, SHAPE(3));
    result(&b, build2(&b, MICA__OP_MAXIMUM, x, x));
    result(&b, build3(&b, MICA__OP_WHERE, c, y, y));
    result(&b, build3(&b, MICA__OP_WHERE, yes, x, y));
    result(&b, build3(&b, MICA__OP_WHERE, build1(&b, MICA__OP_LOGICAL_NOT, c), x, y));
    result(&b, build2(&b, MICA__OP_SUB, i, i));
    result(&b, build2(&b, MICA__OP_SUB, x, x)); /* NaN - NaN: stays */
    result(&b, build2(&b, MICA__OP_ADD, x, build1(&b, MICA__OP_NEG, y)));
    result(&b, build2(&b, MICA__OP_LESS_EQUAL, i, i));
    CHECK(run_pass(&b, mica__pass_algebra));
    static const uint16_t want[] = {MICA__OP_LEAF, MICA__OP_LEAF, MICA__OP_LEAF, MICA__OP_WHERE,
                                    MICA__OP_FULL, MICA__OP_SUB,  MICA__OP_SUB,  MICA__OP_FULL};
    for (uint32_t k = 0; k < 8; k++)
        EXPECT_STR(mica__op_get(result_node(&b, k)->op)->name, mica__op_get(want[k])->name);
    EXPECT_INT(result_node(&b, 0)->leaf, 0);
    EXPECT_INT(result_node(&b, 1)->leaf, 1);
    EXPECT_INT(result_node(&b, 2)->leaf, 0);
    EXPECT_INT(input_node(&b, result_node(&b, 3), 1)->leaf, 1); /* branches swapped */
    build_end(&b);
}

TEST(algebra_of_reductions_that_fold_nothing)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(4, 1, 3)), i = leaf(&b, MICA_I8, SHAPE(1, 3));
    result(&b, reduce(&b, MICA__OP_SUM, x, 2, false));
    result(&b, reduce(&b, MICA__OP_MAX, x, 2, true));
    result(&b, reduce(&b, MICA__OP_SUM, i, 1, false));
    result(&b, reduce(&b, MICA__OP_SUM, x, 3, false));
    CHECK(run_pass(&b, mica__pass_algebra));
    EXPECT_INT(result_node(&b, 0)->op, MICA__OP_RESHAPE);
    EXPECT_INT(result_node(&b, 1)->op, MICA__OP_LEAF);
    EXPECT_INT(result_node(&b, 2)->op, MICA__OP_RESHAPE);
    EXPECT_INT(input_node(&b, result_node(&b, 2), 0)->op, MICA__OP_CAST);
    EXPECT_INT(result_node(&b, 3)->op, MICA__OP_SUM);
    build_end(&b);
}

/* ------------------------------------------------------------------ fold --- */

static bool constant_is(const builder *b, uint32_t k, double want)
{
    mica__number value = {0};
    const mica__gnode *node = result_node(b, k);
    if (node->op != MICA__OP_FULL || !mica__graph_constant(b->g, b->g->out[k], &value)) return false;
    return mica__is_float((mica_dtype)node->spec.dtype) ? value.f == want : value.i == (int64_t)want;
}

TEST(fold_constants)
{
    builder b;
    build_begin(&b);
    const uint32_t two = full(&b, MICA_F32, 2, SCALAR), x = leaf(&b, MICA_F32, SHAPE(2, 3));
    const uint32_t wide = to_shape(&b, MICA__OP_BROADCAST, build1(&b, MICA__OP_SQRT, two), SHAPE(2, 3));
    result(&b, build2(&b, MICA__OP_MUL, wide, wide));
    result(&b, build2(&b, MICA__OP_ADD, x, wide));
    result(&b, build3(&b, MICA__OP_WHERE, full(&b, MICA_BOOL, 0, SHAPE(3)), full(&b, MICA_I8, 1, SHAPE(3)),
                      full(&b, MICA_I8, 7, SHAPE(3))));
    result(&b, to_dtype(&b, full(&b, MICA_F32, 300.5, SHAPE(3)), MICA_U8));
    CHECK(run_pass(&b, mica__pass_fold));
    CHECK(constant_is(&b, 0, (double)((float)sqrt(2.0) * (float)sqrt(2.0))));
    EXPECT_INT(result_node(&b, 1)->op, MICA__OP_ADD);
    EXPECT_INT(input_node(&b, result_node(&b, 1), 1)->op, MICA__OP_FULL);
    CHECK(constant_is(&b, 2, 7));
    CHECK(constant_is(&b, 3, 255));
    EXPECT_INT(b.g->n, 6);
    build_end(&b);
}

TEST(fold_leaves_bad_indices_to_the_run)
{
    builder b;
    build_begin(&b);
    const mica__attr_index size = {.size = 5};
    const uint32_t good = full(&b, MICA_I64, -2, SHAPE(3)), bad = full(&b, MICA_I64, 5, SHAPE(3));
    result(&b, build(&b, MICA__OP_CHECK_INDEX, &good, 1, &size, sizeof size));
    result(&b, build(&b, MICA__OP_CHECK_INDEX, &bad, 1, &size, sizeof size));
    run_pass(&b, mica__pass_fold);
    CHECK(constant_is(&b, 0, 3));
    EXPECT_INT(result_node(&b, 1)->op, MICA__OP_CHECK_INDEX);
    build_end(&b);
}

TEST(fold_reductions)
{
    static const struct {
        mica_dtype dtype;
        mica__op op;
        double x;
        int64_t n;
        bool folds;
        double want;
    } rows[] = {
        {MICA_F32, MICA__OP_SUM, 1, 1000, true, 1000},
        {MICA_F32, MICA__OP_SUM, 0.1, 10, false, 0},
        {MICA_F32, MICA__OP_SUM, 0.5, 1 << 20, true, 1 << 19},
        {MICA_F32, MICA__OP_SUM, 3, 1 << 24, false, 0},
        {MICA_F16, MICA__OP_SUM, 1, 2049, false, 0},
        {MICA_F16, MICA__OP_SUM, 1, 2050, true, 2050},
        {MICA_F32, MICA__OP_SUM, -0.0, 4, false, 0},
        {MICA_F32, MICA__OP_SUM, INFINITY, 4, true, INFINITY},
        {MICA_F32, MICA__OP_SUM, 5, 0, true, 0},
        {MICA_I64, MICA__OP_SUM, -3, 5, true, -15},
        {MICA_BOOL, MICA__OP_SUM, 1, 9, true, 9},
        {MICA_F32, MICA__OP_PROD, 1, 9, true, 1},
        {MICA_F32, MICA__OP_PROD, 2, 3, false, 0},
        {MICA_I64, MICA__OP_PROD, 3, 4, true, 81},
        {MICA_F32, MICA__OP_PROD, 7, 0, true, 1},
        {MICA_F32, MICA__OP_MAX, 0.1, 9, true, (double)0.1f},
        {MICA_U8, MICA__OP_MIN, 9, 9, true, 9},
        {MICA_BOOL, MICA__OP_ANY, 1, 9, true, 1},
        {MICA_BOOL, MICA__OP_ALL, 1, 0, true, 1},
        {MICA_BOOL, MICA__OP_ANY, 1, 0, true, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        builder b;
        test_case("%s %s of %" PRId64 " times %g", mica__op_get((uint16_t)rows[r].op)->name,
                  mica_dtype_name(rows[r].dtype), rows[r].n, rows[r].x);
        build_begin(&b);
        result(&b, reduce(&b, rows[r].op, full(&b, rows[r].dtype, rows[r].x, SHAPE(2, rows[r].n)), 2, false));
        EXPECT_INT(run_pass(&b, mica__pass_fold), rows[r].folds);
        if (rows[r].folds) CHECK(constant_is(&b, 0, rows[r].want));
        build_end(&b);
    }
}

TEST(fold_casts_of_counting)
{
    static const struct {
        mica_dtype from;
        double start, step;
        int64_t n;
        mica_dtype to;
        bool folds;
    } rows[] = {
        {MICA_I64, 0, 1, 100, MICA_F32, true},    {MICA_I64, 0, 1, 300, MICA_U8, false},
        {MICA_I64, 255, -1, 256, MICA_U8, true},  {MICA_I64, 0, -1, 3, MICA_U32, false},
        {MICA_I64, 0, 1, 2049, MICA_F16, true},   {MICA_I64, 0, 1, 2050, MICA_F16, false},
        {MICA_F32, 0, 1, 100, MICA_I32, true},    {MICA_F32, 0, 0.5, 100, MICA_I32, false},
        {MICA_F32, 0, 0.1, 100, MICA_F64, false}, {MICA_F32, 0, 3, 10, MICA_F64, true},
        {MICA_I64, 1, 1, 2, MICA_BOOL, false},    {MICA_F32, 0, 1, 1 << 25, MICA_I64, false},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        builder b;
        test_case("%g by %g, %" PRId64 ", %s", rows[r].start, rows[r].step, rows[r].n, mica_dtype_name(rows[r].to));
        build_begin(&b);
        result(&b, to_dtype(&b, iota(&b, rows[r].from, 0, rows[r].start, rows[r].step, SHAPE(rows[r].n)), rows[r].to));
        EXPECT_INT(run_pass(&b, mica__pass_fold), rows[r].folds);
        EXPECT_INT(result_node(&b, 0)->op, rows[r].folds ? MICA__OP_IOTA : MICA__OP_CAST);
        build_end(&b);
    }
}

/* ------------------------------------------------------------------- cse --- */

TEST(cse_merges_equal_nodes_only)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(3)), y = leaf(&b, MICA_F32, SHAPE(3));
    const mica__attr_value slope = {0.1}, other = {0.2};
    const uint32_t e1 = build1(&b, MICA__OP_EXP, x), e2 = build1(&b, MICA__OP_EXP, x);
    result(&b, build2(&b, MICA__OP_ADD, e1, y));
    result(&b, build2(&b, MICA__OP_ADD, y, e2));
    result(&b, build2(&b, MICA__OP_SUB, e1, y));
    result(&b, build2(&b, MICA__OP_SUB, y, e2));
    result(&b, build(&b, MICA__OP_LEAKY_RELU, &x, 1, &slope, sizeof slope));
    result(&b, build(&b, MICA__OP_LEAKY_RELU, &x, 1, &other, sizeof other));
    result(&b, build2(&b, MICA__OP_AFTER, x, e1));
    result(&b, build2(&b, MICA__OP_AFTER, x, e2));
    CHECK(run_pass(&b, mica__pass_cse));
    EXPECT_INT(b.out[0], b.out[1]);
    CHECK(b.out[2] != b.out[3] && b.out[4] != b.out[5] && b.out[6] != b.out[7]);
    EXPECT_INT(b.g->n, 2 + 1 + 1 + 2 + 2 + 2);
    build_end(&b);
}

TEST(cse_random_and_constants)
{
    builder b;
    build_begin(&b);
    mica__attr_random r = {.spec = make_spec(MICA_F32, SHAPE(3)), .dist = MICA__DIST_NORMAL, .seed = 7};
    result(&b, build(&b, MICA__OP_RANDOM, NULL, 0, &r, sizeof r));
    result(&b, build(&b, MICA__OP_RANDOM, NULL, 0, &r, sizeof r));
    r.seed = 8;
    result(&b, build(&b, MICA__OP_RANDOM, NULL, 0, &r, sizeof r));
    result(&b, full(&b, MICA_F32, 0.0, SHAPE(3)));
    result(&b, full(&b, MICA_F32, -0.0, SHAPE(3)));
    result(&b, full(&b, MICA_F32, 0.0, SHAPE(4)));
    result(&b, full(&b, MICA_F64, 0.0, SHAPE(3)));
    CHECK(run_pass(&b, mica__pass_cse));
    EXPECT_INT(b.out[0], b.out[1]);
    EXPECT_INT(b.g->n, 6);
    build_end(&b);
}

/* ---------------------------------------------------------------- narrow --- */

/* The casts are removed; views of a cast become views of its input. */
TEST(narrow_leaves_out_casts_under_views)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_I8, SHAPE(2, 3)), w = leaf(&b, MICA_U8, SHAPE(4, 3));
    const uint32_t y = permute(&b, to_dtype(&b, w, MICA_I32), SHAPE(1, 0));
    result(&b, build2(&b, MICA__OP_MATMUL, to_dtype(&b, x, MICA_I32), y));
    CHECK(run_pass(&b, mica__pass_narrow));
    const mica__gnode *node = result_node(&b, 0);
    EXPECT_INT(b.g->n, 4);
    EXPECT_INT(node->op, MICA__OP_MATMUL);
    EXPECT_INT(node->spec.dtype, MICA_I32);
    EXPECT_INT(b.g->node[node->in[0]].spec.dtype, MICA_I8);
    EXPECT_INT(b.g->node[node->in[1]].op, MICA__OP_PERMUTE);
    EXPECT_INT(b.g->node[node->in[1]].spec.dtype, MICA_U8);
    EXPECT(!run_pass(&b, mica__pass_narrow));
    build_end(&b);
}

/* Whether matmul is narrowed, by the dtypes before and after the casts (equal: no cast). */
TEST(narrow_knows_its_dtypes)
{
    static const struct {
        mica_dtype a, b, wide;
        bool narrows;
    } cases[] = {
        {MICA_I8, MICA_I8, MICA_I32, true},     {MICA_U8, MICA_I8, MICA_U32, true},
        {MICA_I8, MICA_I32, MICA_I32, false},   {MICA_I16, MICA_I8, MICA_I32, false},
        {MICA_I8, MICA_I8, MICA_I64, false},    {MICA_BOOL, MICA_I8, MICA_I32, false},
        {MICA_BF16, MICA_BF16, MICA_F32, true}, {MICA_F32, MICA_F16, MICA_F32, true},
        {MICA_F32, MICA_F32, MICA_F32, false},  {MICA_F16, MICA_F16, MICA_F64, false},
        {MICA_I8, MICA_I8, MICA_F32, false},    {MICA_F64, MICA_F64, MICA_F32, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        builder b;
        build_begin(&b);
        test_case("%s and %s into %s", mica_dtype_name(cases[i].a), mica_dtype_name(cases[i].b),
                  mica_dtype_name(cases[i].wide));
        uint32_t x = leaf(&b, cases[i].a, SHAPE(2, 3)), y = leaf(&b, cases[i].b, SHAPE(3, 4));
        if (cases[i].a != cases[i].wide) x = to_dtype(&b, x, cases[i].wide);
        if (cases[i].b != cases[i].wide) y = to_dtype(&b, y, cases[i].wide);
        result(&b, build2(&b, MICA__OP_MATMUL, x, y));
        EXPECT(run_pass(&b, mica__pass_narrow) == cases[i].narrows);
        EXPECT_INT(result_node(&b, 0)->spec.dtype, cases[i].wide);
        EXPECT_INT(b.g->n, cases[i].narrows ? 3 : 3 + (cases[i].a != cases[i].wide) + (cases[i].b != cases[i].wide));
        build_end(&b);
    }
}

/* --------------------------------------------------- aliases, copies, bodies --- */

TEST(aliases_vanish_but_after)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(3)), y = build1(&b, MICA__OP_EXP, x);
    const uint32_t stop = build1(&b, MICA__OP_STOP_GRADIENT, y);
    const uint32_t point = build(&b, MICA__OP_CHECKPOINT, (uint32_t[]){stop, x}, 2, NULL, 0);
    result(&b, build(&b, MICA__OP_CUSTOM_GRAD, (uint32_t[]){point, x, x}, 3, NULL, 0));
    result(&b, build2(&b, MICA__OP_AFTER, x, point));
    CHECK(run_pass(&b, mica__pass_alias));
    EXPECT_INT(b.g->n, 3);
    EXPECT_INT(result_node(&b, 0)->op, MICA__OP_EXP);
    EXPECT_INT(result_node(&b, 1)->op, MICA__OP_AFTER);
    build_end(&b);
}

/* A copy of x * 1 must be kept: when the 1 is removed it copies a leaf, which may have
 * any layout. */
TEST(copies_vanish_where_they_copy_nothing)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(2, 3));
    result(&b, build1(&b, MICA__OP_COPY, build1(&b, MICA__OP_EXP, x)));
    result(&b, build1(&b, MICA__OP_COPY, build2(&b, MICA__OP_MUL, x, full(&b, MICA_F32, 1, SHAPE(2, 3)))));
    result(&b, build1(&b, MICA__OP_COPY, permute(&b, x, SHAPE(1, 0))));
    CHECK(mica__simplify(b.g, MICA_PASS_ALL) == MICA_OK);
    CHECK(mica__graph_verify(b.g, "simplify") == MICA_OK);
    EXPECT_INT(result_node(&b, 0)->op, MICA__OP_EXP);
    EXPECT_INT(result_node(&b, 1)->op, MICA__OP_COPY);
    EXPECT_INT(result_node(&b, 2)->op, MICA__OP_COPY);
    build_end(&b);
}

/* scan of carry + x * 1, built by hand */
static void build_scan(builder *b, builder *body)
{
    build_begin(b);
    build_begin(body);
    const uint32_t carry = leaf(body, MICA_F32, SHAPE(3)), x = leaf(body, MICA_F32, SHAPE(3));
    const uint32_t one = full(body, MICA_F32, 1, SHAPE(3));
    result(body, build2(body, MICA__OP_ADD, carry, build2(body, MICA__OP_MUL, x, one)));

    const uint32_t in[] = {leaf(b, MICA_F32, SHAPE(3)), leaf(b, MICA_F32, SHAPE(5, 3))};
    const mica__spec spec = make_spec(MICA_F32, SHAPE(3));
    const mica__attr_scan scan = {.spec = spec, .n_carry = 1, .n_x = 1, .length = 5};
    const mica__attr_part part = {.spec = spec, .index = 0};
    const uint32_t node = build(b, MICA__OP_SCAN, in, 2, &scan, sizeof scan);
    b->g->node[node].body = body->g;
    result(b, build(b, MICA__OP_PART, &node, 1, &part, sizeof part));
}

TEST(bodies_of_scans_are_simplified)
{
    builder b, body;
    build_scan(&b, &body);
    CHECK_MSG(mica__graph_verify(b.g, "building") == MICA_OK, "%s", mica_last_error());
    CHECK(mica__simplify(b.g, MICA_PASS_ALL) == MICA_OK);
    EXPECT_INT(b.g->n, 4);
    EXPECT_INT(body.g->n, 3);
    char text[1000];
    mica__text t;
    mica__text_init(&t, text, sizeof text);
    mica__graph_print(b.g, &t);
    EXPECT_STR(text, "%0 = leaf f32 (3) #0\n"
                     "%1 = leaf f32 (5, 3) #1\n"
                     "%2 = scan f32 (3) %0 %1 length=5 carry=1 x=1 y=0 captured=0\n"
                     "    %0 = leaf f32 (3) #0\n"
                     "    %1 = leaf f32 (3) #1\n"
                     "    %2 = add f32 (3) %0 %1\n"
                     "    results %2\n"
                     "%3 = part f32 (3) %2 index=0\n"
                     "results %3\n");
    build_end(&b);
    build_end(&body);
}

/* ---------------------------------------------------------------- verifier --- */

TEST(verifier_finds_what_is_broken)
{
    for (int harm = 0; harm < 14; harm++) {
        test_case("harm %d", harm);
        builder b, body;
        build_scan(&b, &body);
        mica__graph *g = b.g;
        const uint32_t x = leaf(&b, MICA_F32, SHAPE(2, 3)), y = permute(&b, x, SHAPE(1, 0));
        result(&b, build2(&b, MICA__OP_ADD, y, y));
        CHECK_MSG(mica__graph_verify(g, "building") == MICA_OK, "%s", mica_last_error());
        const mica__attr_permute twice = {{1, 1}};
        const uint32_t sum = g->n - 1;
        switch (harm) {
        case 0: g->node[sum].in[0] = sum; break;
        case 1: g->node[sum].in[1] = 1000; break;
        case 2: g->node[sum].spec.shape[0]++; break;
        case 3: g->node[sum].spec.dtype = MICA_I32; break;
        case 4: g->node[sum].n_in = 1; break;
        case 5: g->node[sum].op = MICA__OP_COUNT; break;
        case 6: g->out[0] = g->n; break;
        case 7: g->node[x].leaf = 7; break;
        case 8: g->leaf[2].spec.shape[0] = 9; break;
        case 9: g->node[y].attr = &twice; break;
        case 10: g->node[y].attr_size = 8; break;
        case 11: g->node[y].leaf = 0; break;
        case 12: g->node[2].body = NULL; break;
        default: body.g->node[0].spec.ndim = 99; break;
        }
        EXPECT_INT(mica__graph_verify(g, "harm"), MICA_ERR_INTERNAL);
        CHECK(strstr(mica_last_error(), "harm") != NULL);
        build_end(&b);
        build_end(&body);
    }
}

TEST(sweep_finds_cycles)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(3)), y = build1(&b, MICA__OP_EXP, x), z = build1(&b, MICA__OP_LOG, y);
    result(&b, z);
    b.g->node[y].in[0] = z;
    CHECK_INT(mica__graph_sweep(b.g), MICA_ERR_INTERNAL);
    build_end(&b);
}

/* The order of nodes is kept where possible. */
TEST(sweep_keeps_the_order)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(3)), dead = build1(&b, MICA__OP_EXP, x);
    const uint32_t p = build1(&b, MICA__OP_SIN, x), q = build1(&b, MICA__OP_COS, x);
    const uint32_t r = build2(&b, MICA__OP_ADD, q, p), late = build1(&b, MICA__OP_TAN, x);
    (void)dead;
    b.g->node[r].in[0] = late; /* as a pass would do it */
    result(&b, r);
    result(&b, q);
    CHECK(mica__graph_sweep(b.g) == MICA_OK);
    static const uint16_t want[] = {MICA__OP_LEAF, MICA__OP_SIN, MICA__OP_COS, MICA__OP_TAN, MICA__OP_ADD};
    CHECK_INT(b.g->n, 5);
    for (int k = 0; k < 5; k++) CHECK_INT(b.g->node[k].op, want[k]);
    CHECK(mica__graph_verify(b.g, "sweep") == MICA_OK);
    build_end(&b);
}
