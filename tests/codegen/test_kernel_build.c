/* Building kernels from hand-made steps: loops, strides, the order of stores, and what is refused.
 *
 * runs: check */
#include "codegen/chain.h"
#include "codegen/kernel.h"
#include "test.h"

enum { MAX_NODES = 16 };

/* A plan of one step over nodes and operands that tests fill in. */
typedef struct one_step {
    mica__gnode node[MAX_NODES];
    uint32_t inputs[MAX_NODES][3];
    mica__graph g;
    mica__plan plan;
    mica__step step;
    uint32_t listed[MAX_NODES];
    mica__operand in[MAX_NODES], out[MAX_NODES];
    mica__arena arena;
    mica__kernel *k;
} one_step;

static mica__spec spec_of(mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica__spec spec = {.dtype = (int32_t)dtype, .ndim = ndim};
    for (int d = 0; d < ndim; d++) spec.shape[d] = shape[d];
    return spec;
}

static void begin_step(one_step *t, mica__step_kind kind)
{
    *t = (one_step){.step = {.kind = kind, .anchor_block = MICA__NO_BLOCK, .workspace = MICA__NO_BLOCK}};
    t->g.node = t->node;
    t->plan.graph = &t->g;
    t->step.node = t->listed;
    t->step.in = t->in;
    t->step.out = t->out;
    mica__arena_init(&t->arena);
}

static uint32_t add_node(one_step *t, mica__op op, mica__spec spec, uint32_t a, uint32_t b, const void *attr,
                         bool listed)
{
    const uint32_t id = t->g.n++;
    t->inputs[id][0] = a;
    t->inputs[id][1] = b;
    t->node[id] = (mica__gnode){.op = (uint16_t)op, .in = t->inputs[id], .attr = attr, .spec = spec, .leaf = -1};
    t->node[id].n_in = mica__op_get((uint16_t)op)->n_in < 0 ? 0 : (uint32_t)mica__op_get((uint16_t)op)->n_in;
    if (listed) t->step.node[t->step.n_node++] = id;
    return id;
}

/* A leaf in block number `block`, row-major. */
static uint32_t add_leaf(one_step *t, mica__spec spec, uint32_t block)
{
    const uint32_t id = add_node(t, MICA__OP_LEAF, spec, 0, 0, NULL, false);
    mica__operand *o = &t->in[t->step.n_in++];
    *o = (mica__operand){.node = id, .block = block, .make = MICA__NO_NODE, .spec = spec};
    mica__row_major(&spec, o->strides);
    return id;
}

static void add_result(one_step *t, uint32_t node, uint32_t block)
{
    mica__operand *o = &t->out[t->step.n_out++];
    *o = (mica__operand){.node = node, .block = block, .make = MICA__NO_NODE, .spec = t->node[node].spec};
    mica__row_major(&o->spec, o->strides);
}

static mica_status build_step(one_step *t) { return mica__kernel_build(&t->plan, &t->step, &t->arena, &t->k); }

static void expect_codes(const mica__kernel *k, const char *want)
{
    static const char letters[] = "CILMFS"; /* const iota load map fold store */
    char got[64] = "";
    for (uint32_t i = 0; i < k->n_inst && i < 63; i++) got[i] = letters[k->inst[i].code];
    CHECK_STR(got, want);
}

/* ---------------------------------------------------------------- stores --- */

TEST(a_result_is_stored_as_soon_as_it_is_known)
{
    one_step t;
    const mica__spec spec = spec_of(MICA_F32, 1, (int64_t[]){10});
    begin_step(&t, MICA__STEP_MAP);
    const uint32_t x = add_leaf(&t, spec, 0), y = add_leaf(&t, spec, 1);
    const uint32_t a = add_node(&t, MICA__OP_ADD, spec, x, y, NULL, true);
    const uint32_t b = add_node(&t, MICA__OP_MUL, spec, a, x, NULL, true);
    add_result(&t, a, 2);
    add_result(&t, b, 3);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "LLMSMS");
    mica__arena_free(&t.arena);
}

TEST(what_overwrites_an_operand_is_stored_last)
{
    one_step t;
    const mica__spec spec = spec_of(MICA_F32, 1, (int64_t[]){10});
    begin_step(&t, MICA__STEP_MAP);
    const uint32_t x = add_leaf(&t, spec, 0), y = add_leaf(&t, spec, 1);
    const uint32_t a = add_node(&t, MICA__OP_ADD, spec, x, y, NULL, true);
    const uint32_t b = add_node(&t, MICA__OP_MUL, spec, a, x, NULL, true);
    add_result(&t, a, 0); /* over x, which b still reads */
    add_result(&t, b, 3);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "LLMMSS");
    mica__arena_free(&t.arena);
}

/* ---------------------------------------------------------------- loops ---- */

TEST(loops_are_dropped_and_merged)
{
    one_step t;
    const mica__spec spec = spec_of(MICA_F32, 4, (int64_t[]){2, 1, 3, 4});
    begin_step(&t, MICA__STEP_MAP);
    const uint32_t x = add_leaf(&t, spec, 0), y = add_leaf(&t, spec, 1);
    const uint32_t a = add_node(&t, MICA__OP_ADD, spec, x, y, NULL, true);
    add_result(&t, a, 2);
    CHECK(build_step(&t) == MICA_OK);
    CHECK_INT(t.k->ndim, 1);
    CHECK_INT(t.k->size[0], 24);
    mica__arena_reset(&t.arena);
    t.in[1].strides[3] = 0; /* y does not move along the last axis */
    t.in[1].strides[2] = 1, t.in[1].strides[0] = 3;
    CHECK(build_step(&t) == MICA_OK);
    CHECK_INT(t.k->ndim, 2);
    CHECK_INT(t.k->size[0], 6);
    CHECK_INT(t.k->size[1], 4);
    CHECK_INT(t.k->access[1].strides[0], 1);
    CHECK_INT(t.k->access[1].strides[1], 0);
    mica__arena_free(&t.arena);
}

TEST(no_loops_and_no_elements)
{
    one_step t;
    mica__spec spec = spec_of(MICA_F32, 0, NULL);
    begin_step(&t, MICA__STEP_MAP);
    add_result(&t, add_node(&t, MICA__OP_NEG, spec, add_leaf(&t, spec, 0), 0, NULL, true), 1);
    CHECK(build_step(&t) == MICA_OK);
    CHECK_INT(t.k->ndim, 0);
    CHECK_INT(mica__kernel_outer(t.k), 1);
    mica__arena_free(&t.arena);

    spec = spec_of(MICA_F32, 2, (int64_t[]){3, 0});
    begin_step(&t, MICA__STEP_MAP);
    add_result(&t, add_node(&t, MICA__OP_NEG, spec, add_leaf(&t, spec, 0), 0, NULL, true), 1);
    CHECK(build_step(&t) == MICA_OK);
    CHECK_INT(mica__kernel_outer(t.k), 0);
    mica__arena_free(&t.arena);
}

/* ---------------------------------------------------------------- folds ---- */

/* x (2, 3, 4), the middle axis folded, then added to z of the result's shape. */
static void check_reduce(bool keep)
{
    one_step t;
    const mica__attr_reduce attr = {.axes = 1 << 1, .keep = keep};
    const mica__spec in = spec_of(MICA_F32, 3, (int64_t[]){2, 3, 4});
    const mica__spec out = keep ? spec_of(MICA_F32, 3, (int64_t[]){2, 1, 4}) : spec_of(MICA_F32, 2, (int64_t[]){2, 4});
    begin_step(&t, MICA__STEP_REDUCE);
    const uint32_t x = add_leaf(&t, in, 0), z = add_leaf(&t, out, 1);
    const uint32_t s = add_node(&t, MICA__OP_SUM, out, x, 0, &attr, true);
    const uint32_t y = add_node(&t, MICA__OP_ADD, out, s, z, NULL, true);
    add_result(&t, y, 2);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "LFLMS");
    CHECK_INT(t.k->fold, 1);
    CHECK_INT(t.k->ndim, 3);
    CHECK_INT(t.k->n_fold, 1);
    CHECK(t.k->size[0] == 2 && t.k->size[1] == 4 && t.k->size[2] == 3);
    const int64_t *sx = t.k->access[0].strides, *sz = t.k->access[1].strides, *sy = t.k->access[2].strides;
    CHECK(sx[0] == 12 && sx[1] == 1 && sx[2] == 4);
    CHECK(sz[0] == 4 && sz[1] == 1 && sz[2] == 0);
    CHECK(sy[0] == 4 && sy[1] == 1 && sy[2] == 0);
    mica__arena_free(&t.arena);
}

TEST(strides_on_both_sides_of_a_fold)
{
    test_case("dropped");
    check_reduce(false);
    test_case("kept");
    check_reduce(true);
}

/* An operand that is read before and after the fold is loaded twice. */
TEST(an_operand_on_both_sides_of_a_fold)
{
    one_step t;
    const mica__attr_reduce attr = {.axes = 1 << 1, .keep = 1};
    const mica__spec spec = spec_of(MICA_F32, 2, (int64_t[]){5, 1});
    begin_step(&t, MICA__STEP_REDUCE);
    const uint32_t x = add_leaf(&t, spec, 0);
    const uint32_t s = add_node(&t, MICA__OP_MAX, spec, x, 0, &attr, true);
    add_result(&t, add_node(&t, MICA__OP_SUB, spec, x, s, NULL, true), 1);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "LFLMS");
    mica__arena_free(&t.arena);
}

TEST(a_value_on_both_sides_of_a_fold_is_refused)
{
    one_step t;
    const mica__attr_reduce attr = {.axes = 1 << 1, .keep = 1};
    const mica__spec spec = spec_of(MICA_F32, 2, (int64_t[]){5, 1});
    begin_step(&t, MICA__STEP_REDUCE);
    const uint32_t x = add_leaf(&t, spec, 0);
    const uint32_t e = add_node(&t, MICA__OP_EXP, spec, x, 0, NULL, true);
    const uint32_t s = add_node(&t, MICA__OP_SUM, spec, e, 0, &attr, true);
    add_result(&t, add_node(&t, MICA__OP_DIV, spec, e, s, NULL, true), 1);
    CHECK_INT(build_step(&t), MICA_ERR_INTERNAL);
    mica__arena_free(&t.arena);
}

/* --------------------------------------------------------------- the rest -- */

TEST(numbers_made_on_the_fly)
{
    one_step t;
    const mica__spec spec = spec_of(MICA_F32, 2, (int64_t[]){3, 4});
    const mica__attr_full full = {.spec = spec, .value = {0.1, 0}};
    const mica__attr_iota iota = {.spec = spec, .axis = 1, .start = {2.0, 0}, .step = {0.5, 0}};
    begin_step(&t, MICA__STEP_MAP);
    const uint32_t f = add_node(&t, MICA__OP_FULL, spec, 0, 0, &full, false);
    const uint32_t i = add_node(&t, MICA__OP_IOTA, spec, 0, 0, &iota, false);
    t.in[t.step.n_in++] = (mica__operand){.node = f, .block = MICA__NO_BLOCK, .make = f, .spec = spec};
    t.in[t.step.n_in++] =
        (mica__operand){.node = i, .block = MICA__NO_BLOCK, .make = i, .spec = spec, .offset = 3, .strides = {0, -1}};
    add_result(&t, add_node(&t, MICA__OP_MUL, spec, f, i, NULL, true), 0);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "CIMS");
    CHECK_CLOSE(t.k->inst[0].value.f, (double)0.1f, 0, 0); /* rounded to its dtype */
    const mica__access *a = &t.k->access[t.k->inst[1].access];
    CHECK(a->block == MICA__NO_BLOCK && a->offset == 3 && a->strides[0] == 0 && a->strides[1] == -1);
    mica__arena_free(&t.arena);

    begin_step(&t, MICA__STEP_MAP);
    add_result(&t, add_node(&t, MICA__OP_IOTA, spec, 0, 0, &iota, true), 0);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "IS");
    CHECK(t.k->access[0].strides[0] == 0 && t.k->access[0].strides[1] == 1);
    mica__arena_free(&t.arena);
}

TEST(an_epilogue_reads_its_anchor)
{
    one_step t;
    const mica__spec spec = spec_of(MICA_F32, 2, (int64_t[]){3, 4});
    begin_step(&t, MICA__STEP_FAMILY);
    const uint32_t x = add_leaf(&t, spec, 0);
    const uint32_t anchor = add_node(&t, MICA__OP_SOFTMAX, spec, x, 0, NULL, true);
    t.step.n_anchor_in = 1;
    add_result(&t, anchor, 1);
    CHECK(build_step(&t) == MICA_OK);
    CHECK(t.k == NULL); /* nothing follows it */
    const uint32_t y = add_node(&t, MICA__OP_NEG, spec, anchor, 0, NULL, true);
    t.step.n_out = 0;
    t.step.anchor_block = 1;
    add_result(&t, y, 1);
    CHECK(build_step(&t) == MICA_OK);
    expect_codes(t.k, "LMS");
    CHECK_INT(t.k->access[0].block, 1);
    CHECK_INT(t.k->ndim, 1);
    t.step.anchor_block = MICA__NO_BLOCK;
    CHECK_INT(build_step(&t), MICA_ERR_INTERNAL);
    mica__arena_free(&t.arena);
}

/* A kernel larger than any that the planner makes has no chain. This is not an error:
 * the caller runs it on the interpreter. */
TEST(a_kernel_too_large_for_a_chain)
{
    enum { N = 300 };
    static mica__kinst inst[N + 1];
    static mica__access access[N + 1];
    mica__kernel k = {
        .ndim = 1, .size = {8}, .inst = inst, .n_inst = N + 1, .fold = N + 1, .access = access, .n_access = N + 1};
    for (uint32_t i = 0; i <= N; i++) {
        access[i] = (mica__access){.block = i, .dtype = MICA_F32, .strides = {1}};
        inst[i] = (mica__kinst){.code = i < N ? MICA__K_LOAD : MICA__K_STORE, .dtype = MICA_F32, .access = i};
        inst[i].n_arg = i == N;
    }
    mica__arena arena;
    mica__chain *chain;
    mica__arena_init(&arena);
    CHECK(mica__chain_build(&k, &arena, &chain) == MICA_OK);
    CHECK(chain == NULL);
    mica__arena_free(&arena);
}
