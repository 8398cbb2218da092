/* The movement pass: views that are removed, merged, or moved up through element-wise ops, and
 * views that must stay.
 *
 * runs: check */
#include "graph_builder.h"

static const char *result_op(const builder *b, uint32_t k) { return mica__op_get(result_node(b, k)->op)->name; }

static uint32_t window(builder *b, uint32_t x, int64_t axis, int64_t size, int64_t stride)
{
    const mica__attr_window attr = {axis, size, stride, 1, 0};
    return build(b, MICA__OP_WINDOW, &x, 1, &attr, sizeof attr);
}

TEST(views_that_change_nothing_vanish)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(2, 1, 3)), empty = leaf(&b, MICA_F32, SHAPE(0, 4));
    result(&b, to_shape(&b, MICA__OP_RESHAPE, x, SHAPE(2, 1, 3)));
    result(&b, to_shape(&b, MICA__OP_BROADCAST, x, SHAPE(2, 1, 3)));
    result(&b, permute(&b, x, SHAPE(0, 1, 2)));
    result(&b, slice(&b, x, 3, (const int64_t[][3]){{0, 1, 2}, {0, -7, 1}, {0, 1, 3}}));
    result(&b, slice(&b, empty, 2, (const int64_t[][3]){{3, 1, 0}, {0, 1, 4}}));
    CHECK(run_pass(&b, mica__pass_movement));
    for (uint32_t k = 0; k < 5; k++) EXPECT_STR(result_op(&b, k), "leaf");
    EXPECT_INT(b.g->n, 2);
    build_end(&b);
}

TEST(views_of_size_1_axes_are_reshapes)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(2, 1, 3));
    result(&b, permute(&b, x, SHAPE(1, 0, 2)));
    result(&b, to_shape(&b, MICA__OP_BROADCAST, x, SHAPE(1, 2, 1, 3)));
    result(&b, window(&b, x, 0, 1, 1));
    result(&b, permute(&b, x, SHAPE(2, 1, 0)));
    result(&b, window(&b, x, 2, 1, 2));
    result(&b, slice(&b, x, 3, (const int64_t[][3]){{1, -1, 2}, {0, 1, 1}, {0, 1, 3}}));
    CHECK(run_pass(&b, mica__pass_movement));
    static const char *const want[] = {"reshape", "reshape", "reshape", "permute", "window", "slice"};
    for (uint32_t k = 0; k < 6; k++) EXPECT_STR(result_op(&b, k), want[k]);
    build_end(&b);
}

TEST(views_of_views_become_one)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(4, 6)), v = leaf(&b, MICA_F32, SHAPE(6));
    const uint32_t y = leaf(&b, MICA_F32, SHAPE(2, 3, 4));
    result(&b, to_shape(&b, MICA__OP_RESHAPE, to_shape(&b, MICA__OP_RESHAPE, x, SHAPE(24)), SHAPE(3, 8)));
    result(&b, permute(&b, permute(&b, y, SHAPE(1, 2, 0)), SHAPE(1, 0, 2)));
    result(&b, slice(&b, slice(&b, x, 2, (const int64_t[][3]){{3, -1, 4}, {1, 2, 3}}), 2,
                     (const int64_t[][3]){{1, 2, 2}, {2, -1, 3}}));
    result(&b, to_shape(&b, MICA__OP_BROADCAST, to_shape(&b, MICA__OP_BROADCAST, v, SHAPE(4, 6)), SHAPE(2, 4, 6)));
    result(&b, to_shape(&b, MICA__OP_BROADCAST, to_shape(&b, MICA__OP_RESHAPE, v, SHAPE(1, 6)), SHAPE(4, 6)));
    result(&b, to_shape(&b, MICA__OP_BROADCAST, to_shape(&b, MICA__OP_RESHAPE, v, SHAPE(6, 1)), SHAPE(6, 4)));
    result(&b, permute(&b, permute(&b, x, SHAPE(1, 0)), SHAPE(1, 0)));
    CHECK(run_pass(&b, mica__pass_movement));
    EXPECT_INT(b.g->n, 3 + 5 + 2);
    EXPECT_INT(b.out[6], 0);
    const mica__attr_permute *p = result_node(&b, 1)->attr;
    CHECK(p->axes[0] == 2 && p->axes[1] == 1 && p->axes[2] == 0);
    const mica__attr_slice *s = result_node(&b, 2)->attr;
    CHECK(s->start[0] == 2 && s->step[0] == -2 && s->size[0] == 2);
    CHECK(s->start[1] == 5 && s->step[1] == -2 && s->size[1] == 3);
    EXPECT_INT(input_node(&b, result_node(&b, 3), 0)->op, MICA__OP_LEAF);
    EXPECT_INT(input_node(&b, result_node(&b, 4), 0)->op, MICA__OP_LEAF);
    EXPECT_INT(input_node(&b, result_node(&b, 5), 0)->op, MICA__OP_RESHAPE);
    build_end(&b);
}

/* neg(view(mul(x, 2))): returns the op below neg, which shows whether the view moved through the mul. */
static const char *pushed(builder *b, uint32_t view)
{
    result(b, build1(b, MICA__OP_NEG, view));
    run_pass(b, mica__pass_movement);
    return mica__op_get(input_node(b, result_node(b, 0), 0)->op)->name;
}

TEST(views_are_pushed_through_maps)
{
    builder b;
    build_begin(&b);
    uint32_t x = leaf(&b, MICA_F32, SHAPE(2, 3));
    uint32_t y = build2(&b, MICA__OP_MUL, x, full(&b, MICA_F32, 2, SHAPE(2, 3)));
    EXPECT_STR(pushed(&b, permute(&b, y, SHAPE(1, 0))), "mul");
    EXPECT_INT(b.g->n, 5); /* leaf, permute, full, mul, neg */
    build_end(&b);

    build_begin(&b);
    x = leaf(&b, MICA_F32, SHAPE(2, 3));
    y = build2(&b, MICA__OP_MUL, x, full(&b, MICA_F32, 2, SHAPE(2, 3)));
    EXPECT_STR(pushed(&b, slice(&b, y, 2, (const int64_t[][3]){{1, 1, 1}, {0, 1, 3}})), "mul");
    build_end(&b);

    build_begin(&b);
    x = leaf(&b, MICA_F32, SHAPE(2, 3));
    y = build2(&b, MICA__OP_MUL, x, x);
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_RESHAPE, y, SHAPE(6))), "mul");
    EXPECT_INT(b.g->n, 4); /* an operand that is used twice is reshaped once */
    build_end(&b);

    build_begin(&b);
    x = leaf(&b, MICA_F32, SHAPE(3));
    y = build2(&b, MICA__OP_MUL, x, full(&b, MICA_F32, 2, SHAPE(3)));
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_BROADCAST, y, SHAPE(2, 3))), "mul");
    build_end(&b);
}

TEST(a_view_goes_up_a_whole_chain)
{
    builder b;
    build_begin(&b);
    const uint32_t x = leaf(&b, MICA_F32, SHAPE(20, 30)), z = leaf(&b, MICA_F32, SHAPE(20, 30));
    uint32_t y = x;
    for (int k = 0; k < 100; k++) y = build2(&b, MICA__OP_ADD, y, z);
    result(&b, build1(&b, MICA__OP_NEG, permute(&b, y, SHAPE(1, 0))));
    bool changed;
    CHECK(mica__pass_movement(b.g, &changed) == MICA_OK && changed); /* once is enough */
    CHECK(mica__graph_verify(b.g, "movement") == MICA_OK);
    CHECK(mica__pass_cse(b.g, &changed) == MICA_OK);
    EXPECT_INT(b.g->n, 2 + 2 + 100 + 1);
    for (uint32_t i = 0; i < b.g->n; i++)
        if (b.g->node[i].op == MICA__OP_PERMUTE) EXPECT_INT(input_node(&b, &b.g->node[i], 0)->op, MICA__OP_LEAF);
    build_end(&b);
}

TEST(views_stay_where_pushing_is_no_gain)
{
    builder b;
    uint32_t x, y;

    test_case("the op has another user");
    build_begin(&b);
    y = build1(&b, MICA__OP_EXP, leaf(&b, MICA_F32, SHAPE(2, 3)));
    result(&b, build1(&b, MICA__OP_NEG, permute(&b, y, SHAPE(1, 0))));
    result(&b, y);
    run_pass(&b, mica__pass_movement);
    EXPECT_INT(input_node(&b, result_node(&b, 0), 0)->op, MICA__OP_PERMUTE);
    build_end(&b);

    test_case("an index is checked");
    build_begin(&b);
    const mica__attr_index size = {.size = 5};
    x = leaf(&b, MICA_I64, SHAPE(4));
    y = build(&b, MICA__OP_CHECK_INDEX, &x, 1, &size, sizeof size);
    EXPECT_STR(pushed(&b, slice(&b, y, 1, (const int64_t[][3]){{1, 1, 2}})), "slice");
    build_end(&b);

    test_case("a copy is there for its layout");
    build_begin(&b);
    y = build1(&b, MICA__OP_COPY, leaf(&b, MICA_F32, SHAPE(2, 3)));
    EXPECT_STR(pushed(&b, permute(&b, y, SHAPE(1, 0))), "permute");
    build_end(&b);

    test_case("a broadcast of something dear");
    build_begin(&b);
    y = build1(&b, MICA__OP_EXP, leaf(&b, MICA_F32, SHAPE(3)));
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_BROADCAST, y, SHAPE(2, 3))), "exp"); /* not pushed if it is small */
    build_end(&b);
    build_begin(&b);
    y = build1(&b, MICA__OP_EXP, leaf(&b, MICA_F32, SHAPE(1000)));
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_BROADCAST, y, SHAPE(2, 1000))), "broadcast");
    build_end(&b);

    test_case("a broadcast to something large");
    build_begin(&b);
    y = build1(&b, MICA__OP_NEG, leaf(&b, MICA_F32, SHAPE(1000)));
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_BROADCAST, y, SHAPE(1000, 1000))), "broadcast");
    build_end(&b);

    test_case("the op is fused with a sum below it");
    build_begin(&b);
    y = build1(&b, MICA__OP_EXP, reduce(&b, MICA__OP_SUM, leaf(&b, MICA_F32, SHAPE(2, 3, 4)), 4, false));
    EXPECT_STR(pushed(&b, permute(&b, y, SHAPE(1, 0))), "permute");
    build_end(&b);

    test_case("a reshape that would need a copy of the operand");
    build_begin(&b);
    y = build1(&b, MICA__OP_EXP, permute(&b, leaf(&b, MICA_F32, SHAPE(2, 3)), SHAPE(1, 0)));
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_RESHAPE, y, SHAPE(6))), "reshape");
    build_end(&b);
    build_begin(&b);
    x = leaf(&b, MICA_F32, SHAPE(2, 3));
    b.leaf[0].strides[0] = 4; /* a gap after each row */
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_RESHAPE, build1(&b, MICA__OP_EXP, x), SHAPE(6))), "reshape");
    build_end(&b);
    build_begin(&b);
    y = build1(&b, MICA__OP_NEG, iota(&b, MICA_F32, 1, 0, 1, SHAPE(2, 3)));
    EXPECT_STR(pushed(&b, to_shape(&b, MICA__OP_RESHAPE, y, SHAPE(6))), "reshape");
    build_end(&b);

    test_case("it is a result, or a family reads it");
    build_begin(&b);
    y = build1(&b, MICA__OP_EXP, leaf(&b, MICA_F32, SHAPE(2, 3)));
    result(&b, permute(&b, y, SHAPE(1, 0)));
    result(&b, build2(&b, MICA__OP_MATMUL, permute(&b, build1(&b, MICA__OP_LOG, 0), SHAPE(1, 0)), 0));
    EXPECT_INT(run_pass(&b, mica__pass_movement), false);
    build_end(&b);
}

/* A reshape of a permuted result needs a copy; pushing the permute makes the op
 * itself that copy. */
TEST(a_permute_is_pushed_to_spare_a_copy)
{
    builder b;
    build_begin(&b);
    const uint32_t y = build1(&b, MICA__OP_EXP, leaf(&b, MICA_F32, SHAPE(2, 3)));
    result(&b, to_shape(&b, MICA__OP_RESHAPE, permute(&b, y, SHAPE(1, 0)), SHAPE(6)));
    CHECK(run_pass(&b, mica__pass_movement));
    EXPECT_INT(input_node(&b, result_node(&b, 0), 0)->op, MICA__OP_EXP);
    build_end(&b);
}

/* (a b)^T becomes b^T a^T, unless a b has other users or the product is long. */
TEST(a_turned_product_is_one_of_turned_operands)
{
    static const struct {
        int64_t k;
        bool shared;
        int op;
    } cases[] = {{3, false, MICA__OP_MATMUL}, {3, true, MICA__OP_PERMUTE}, {65, false, MICA__OP_PERMUTE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        builder b;
        build_begin(&b);
        const uint32_t x = leaf(&b, MICA_F32, SHAPE(5, 2, cases[i].k)), y = leaf(&b, MICA_F32, SHAPE(5, cases[i].k, 4));
        const uint32_t product = build2(&b, MICA__OP_MATMUL, x, y);
        result(&b, permute(&b, product, SHAPE(0, 2, 1)));
        if (cases[i].shared) result(&b, product);
        EXPECT_INT(run_pass(&b, mica__pass_movement), cases[i].op == MICA__OP_MATMUL);
        const mica__gnode *node = result_node(&b, 0);
        EXPECT_INT(node->op, cases[i].op);
        EXPECT_INT(node->spec.shape[1], 4);
        EXPECT_INT(node->spec.shape[2], 2);
        build_end(&b);
    }
}
