/* Builds small graphs without a device, for the tests of passes. On an invalid request the builder
 * reports one failure and continues with node 0. */
#ifndef MICA_TEST_GRAPH_BUILDER_H
#define MICA_TEST_GRAPH_BUILDER_H

#include <string.h>

#include "graph/pass.h"
#include "graph/simplify.h"
#include "test.h"

typedef struct builder {
    mica__arena arena;
    mica__graph *g;
    uint32_t out[8];
    mica__leaf_layout leaf[8];
} builder;

/* SHAPE(2, 3): two arguments, the number of axes and their sizes. */
#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, NULL

static inline mica__spec make_spec(mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica__spec spec = {.dtype = (int32_t)dtype, .ndim = ndim};
    for (int d = 0; d < ndim; d++) spec.shape[d] = shape[d];
    return spec;
}

static inline void build_begin(builder *b)
{
    memset(b, 0, sizeof *b);
    mica__arena_init(&b->arena);
    if (!EXPECT(mica__graph_new(&b->arena, &b->g) == MICA_OK)) return;
    b->g->out = b->out;
    b->g->leaf = b->leaf;
}

static inline void build_end(builder *b) { mica__arena_free(&b->arena); }

static inline uint32_t build(builder *b, mica__op op, const uint32_t *in, uint32_t n_in, const void *attr, size_t size)
{
    uint32_t id = 0;
    const mica_status status = mica__graph_add(b->g, op, in, n_in, attr, (uint32_t)size, &id);
    if (status != MICA_OK) test_fail(__FILE__, __LINE__, "%s", mica_last_error());
    return id;
}

static inline uint32_t build1(builder *b, mica__op op, uint32_t x) { return build(b, op, &x, 1, NULL, 0); }

static inline uint32_t build2(builder *b, mica__op op, uint32_t x, uint32_t y)
{
    return build(b, op, (uint32_t[]){x, y}, 2, NULL, 0);
}

static inline uint32_t build3(builder *b, mica__op op, uint32_t x, uint32_t y, uint32_t z)
{
    return build(b, op, (uint32_t[]){x, y, z}, 3, NULL, 0);
}

static inline uint32_t leaf(builder *b, mica_dtype dtype, int ndim, const int64_t *shape)
{
    const mica__spec spec = make_spec(dtype, ndim, shape);
    mica__leaf_layout *layout = &b->leaf[b->g->n_leaf];
    const uint32_t id = build(b, MICA__OP_LEAF, NULL, 0, &spec, sizeof spec);
    b->g->node[id].leaf = (int32_t)b->g->n_leaf++;
    layout->spec = spec;
    mica__row_major(&spec, layout->strides);
    return id;
}

static inline uint32_t full(builder *b, mica_dtype dtype, double value, int ndim, const int64_t *shape)
{
    const bool is_float = mica__is_float(dtype);
    const mica__attr_full attr = {
        make_spec(dtype, ndim, shape),
        {is_float ? mica__round_f64(dtype, value) : 0, is_float ? 0 : mica__f64_to_int(dtype, value)}};
    return build(b, MICA__OP_FULL, NULL, 0, &attr, sizeof attr);
}

static inline uint32_t iota(builder *b, mica_dtype dtype, int64_t axis, double start, double step, int ndim,
                            const int64_t *shape)
{
    const bool is_float = mica__is_float(dtype);
    const mica__attr_iota attr = {make_spec(dtype, ndim, shape),
                                  axis,
                                  {is_float ? start : 0, is_float ? 0 : (int64_t)start},
                                  {is_float ? step : 0, is_float ? 0 : (int64_t)step}};
    return build(b, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

static inline uint32_t to_dtype(builder *b, uint32_t x, mica_dtype dtype)
{
    const mica__attr_cast attr = {(int64_t)dtype};
    return build(b, MICA__OP_CAST, &x, 1, &attr, sizeof attr);
}

/* RESHAPE or BROADCAST */
static inline uint32_t to_shape(builder *b, mica__op op, uint32_t x, int ndim, const int64_t *shape)
{
    mica__attr_shape attr = {.ndim = ndim};
    for (int d = 0; d < ndim; d++) attr.shape[d] = shape[d];
    return build(b, op, &x, 1, &attr, sizeof attr);
}

static inline uint32_t permute(builder *b, uint32_t x, int ndim, const int64_t *axes)
{
    mica__attr_permute attr = {{0}};
    for (int d = 0; d < ndim; d++) attr.axes[d] = axes[d];
    return build(b, MICA__OP_PERMUTE, &x, 1, &attr, sizeof attr);
}

/* parts: start, step and size for each axis. */
static inline uint32_t slice(builder *b, uint32_t x, int ndim, const int64_t (*parts)[3])
{
    mica__attr_slice attr = {.start = {0}};
    for (int d = 0; d < ndim; d++) {
        attr.start[d] = parts[d][0];
        attr.step[d] = parts[d][1];
        attr.size[d] = parts[d][2];
    }
    return build(b, MICA__OP_SLICE, &x, 1, &attr, sizeof attr);
}

static inline uint32_t reduce(builder *b, mica__op op, uint32_t x, int64_t axes, bool keep)
{
    const mica__attr_reduce attr = {axes, keep};
    return build(b, op, &x, 1, &attr, sizeof attr);
}

static inline void result(builder *b, uint32_t id) { b->out[b->g->n_out++] = id; }

/* The node of result number k; input number k of a node. */
static inline const mica__gnode *result_node(const builder *b, uint32_t k) { return &b->g->node[b->g->out[k]]; }
static inline const mica__gnode *input_node(const builder *b, const mica__gnode *node, uint32_t k)
{
    return &b->g->node[node->in[k]];
}

typedef mica_status (*pass_fn)(mica__graph *g, bool *changed);

/* Runs a pass until it changes nothing, at most four times; the graph must stay
 * valid. Returns whether it changed anything. */
static inline bool run_pass(builder *b, pass_fn pass)
{
    bool any = false, changed = true;
    for (int round = 0; changed; round++) {
        if (!EXPECT_MSG(round < 4, "no fixed point") || !EXPECT(pass(b->g, &changed) == MICA_OK)) return any;
        any |= changed;
        if (!EXPECT_MSG(mica__graph_verify(b->g, "the pass") == MICA_OK, "%s", mica_last_error())) return any;
    }
    return any;
}

#endif
