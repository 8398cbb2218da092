/* The verifier: defines and checks what a legal graph is, and trusts no field of it. In
 * debug builds it runs after each pass, so the error names the pass that broke the
 * graph instead of a wrong result appearing later. */
#include "graph/construct.h"
#include "graph/pass.h"

static mica_status verify_fail(const mica__graph *g, uint32_t id, const char *after, const char *why)
{
    const uint16_t op = g->node[id].op;
    return mica__fail(MICA_ERR_INTERNAL, "graph after %s: %%%u (%s): %s", after, id,
                      op < MICA__OP_COUNT ? mica__op_get(op)->name : "no op", why);
}

static mica_status verify_shape(const mica__graph *g, uint32_t id, const char *after)
{
    const mica__gnode *node = &g->node[id];
    const mica__op_info *info = mica__op_get(node->op);
    mica__spec want;
    const mica_status status = mica__graph_infer(g, info, node->in, node->n_in, node->attr, &want);
    if (status == MICA_ERR_MEMORY) return status;
    if (status != MICA_OK) {
        char why[256]; /* a copy of the rule's message, which verify_fail overwrites */
        mica__text text;
        mica__text_init(&text, why, sizeof why);
        mica__text_add(&text, "%s", mica_last_error());
        return verify_fail(g, id, after, why);
    }
    if (!mica__spec_equal(&want, &node->spec)) {
        char a[MICA__SPEC_TEXT], b[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_INTERNAL, "graph after %s: %%%u (%s): spec is %s, its rule gives %s", after, id,
                          info->name, mica__spec_text(a, &node->spec), mica__spec_text(b, &want));
    }
    return MICA_OK;
}

static mica_status verify_scan(const mica__graph *g, uint32_t id, const char *after)
{
    const mica__gnode *node = &g->node[id];
    const mica__attr_scan *scan = node->attr;
    const mica__graph *body = node->body;
    if (!body) return verify_fail(g, id, after, "no body");
    if (node->n_in != scan->n_carry + scan->n_x + scan->n_captured) return verify_fail(g, id, after, "inputs");
    if (body->n_leaf < node->n_in) return verify_fail(g, id, after, "the body has fewer parameters than inputs");
    if (body->n_out != scan->n_carry + scan->n_y) return verify_fail(g, id, after, "results of the body");
    MICA_TRY(mica__graph_verify(body, after));
    for (int64_t k = 0; k < scan->n_carry; k++) {
        const mica__spec *carry = &g->node[node->in[k]].spec;
        if (!mica__spec_equal(carry, &body->leaf[k].spec) || !mica__spec_equal(carry, &body->node[body->out[k]].spec))
            return verify_fail(g, id, after, "a carry changes its shape or dtype");
    }
    return MICA_OK;
}

static mica_status verify_node(const mica__graph *g, uint32_t id, const char *after)
{
    const mica__gnode *node = &g->node[id];
    if (node->op >= MICA__OP_COUNT) return verify_fail(g, id, after, "op number out of range");
    const mica__op_info *info = mica__op_get(node->op);
    if (info->n_in >= 0 && node->n_in != (uint32_t)info->n_in) return verify_fail(g, id, after, "number of inputs");
    if (node->n_in && !node->in) return verify_fail(g, id, after, "no list of inputs");
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] >= id) return verify_fail(g, id, after, "an input does not precede the node");
    if (node->attr_size < info->attr_size || (info->attr_size && !node->attr))
        return verify_fail(g, id, after, "attributes");
    if (!mica__spec_count(&node->spec, NULL, NULL)) return verify_fail(g, id, after, "shape");
    if (info->kind == MICA__SOURCE) {
        if (node->leaf < 0 || (uint32_t)node->leaf >= g->n_leaf) return verify_fail(g, id, after, "leaf number");
        if (!mica__spec_equal(&node->spec, &g->leaf[node->leaf].spec))
            return verify_fail(g, id, after, "its shape or dtype differs from that of its leaf");
        return MICA_OK;
    }
    if (node->leaf != -1) return verify_fail(g, id, after, "has a leaf number");
    if (node->op == MICA__OP_SCAN) MICA_TRY(verify_scan(g, id, after));
    else if (node->body) return verify_fail(g, id, after, "has a body");
    if (node->op == MICA__OP_PART && g->node[node->in[0]].op != MICA__OP_SCAN)
        return verify_fail(g, id, after, "input 0 of a part is not a scan");
    return verify_shape(g, id, after);
}

mica_status mica__graph_verify(const mica__graph *g, const char *after)
{
    for (uint32_t i = 0; i < g->n; i++) MICA_TRY(verify_node(g, i, after));
    for (uint32_t i = 0; i < g->n_out; i++)
        if (g->out[i] >= g->n)
            return mica__fail(MICA_ERR_INTERNAL, "graph after %s: result %u is %%%u of %u nodes", after, i, g->out[i],
                              g->n);
    return MICA_OK;
}
