/* Scans: traces the step once into a body and builds the node that runs it.
 *
 * The step is called with PARAM nodes; the nodes that it builds are the body. Captured
 * arrays are found by a walk from the results of the step: a node that is older than the
 * PARAM nodes is outside the body. */
#include <inttypes.h>

#include "graph/construct.h"
#include "graph/node_map.h"

/* Planning and running take up to 1 KB of stack for each scan inside another, and threads may
 * have 64 KB. */
enum { SCAN_DEPTH = 16 };

/* A list of nodes that grows. */
typedef struct scan_list {
    mica_array **node;
    size_t n, cap;
    int depth;                  /* list of captured nodes: largest depth of a scan inside the body */
} scan_list;

static mica_status scan_push(scan_list *list, mica_array *node)
{
    if (list->n == list->cap) {
        const size_t cap = list->cap ? list->cap * 2 : 32;
        mica_array **grown = mica__realloc(list->node, cap * sizeof *grown);
        if (!grown) return mica__fail_memory("the body of a scan", cap * sizeof *grown);
        list->node = grown;
        list->cap = cap;
    }
    list->node[list->n++] = node;
    return MICA_OK;
}

static bool is_outside(const mica_array *node, uint64_t mark)
{
    return node->serial <= mark || node->op == MICA__OP_LEAF || mica__array_state(node) != MICA__LAZY;
}

/* Does a product in the step use the transpose of a matrix from outside? Then the scan captures the
 * transposed matrix: inputs of a scan are row-major, so it is transposed once and not in each step.
 * Products of at most FEW rows read the original as fast. */
static bool is_transposed_outside(const mica_array *product, uint64_t mark)
{
    enum { FEW = 8 };
    if (product->op != MICA__OP_MATMUL || product->spec.ndim != 2 || product->spec.shape[0] <= FEW) return false;
    const mica_array *b = product->in[1];
    return b->op == MICA__OP_PERMUTE && b->serial > mark && is_outside(b->in[0], mark);
}

/* Walks depth first from the results, in the order of inputs, so that equal bodies
 * capture their nodes in the same order. */
static mica_status find_captured(mica_array *const *params, size_t n_param, mica_array *const *outs, size_t n_out,
                                 uint64_t mark, mica__node_map *seen, scan_list *stack, scan_list *captured)
{
    uint32_t number;
    for (size_t i = 0; i < n_param; i++) MICA_TRY(mica__node_map_add(seen, params[i], &number));
    for (size_t i = n_out; i-- > 0;) MICA_TRY(scan_push(stack, outs[i]));
    while (stack->n > 0) {
        mica_array *node = stack->node[--stack->n];
        const uint32_t before = seen->n;
        MICA_TRY(mica__node_map_add(seen, node, &number));
        if (seen->n == before) continue;
        if (is_outside(node, mark)) {
            MICA_TRY(scan_push(captured, node));
            continue;
        }
        if (node->op == MICA__OP_SCAN) {
            const int depth = ((const mica__attr_scan *)node->attr)->body->depth;
            if (depth > captured->depth) captured->depth = depth;
        }
        if (is_transposed_outside(node, mark)) {
            const uint32_t known = seen->n;
            MICA_TRY(mica__node_map_add(seen, node->in[1], &number));
            if (seen->n > known) MICA_TRY(scan_push(captured, node->in[1]));
        }
        for (size_t i = node->n_in; i-- > 0;) MICA_TRY(scan_push(stack, node->in[i]));
    }
    return MICA_OK;
}

/* ------------------------------------------------------------------- body --- */

static void drop_nodes(mica_array **node, size_t n)
{
    for (size_t i = 0; node && i < n; i++) mica_drop(node[i]);
    mica__free(node);
}

static void body_free(mica__body *body)
{
    if (!body) return;
    drop_nodes(body->out, body->n_out);
    drop_nodes(body->param, body->n_param);
    mica__free(body);
}

static void scan_attr_free(const void *attr) { body_free(((const mica__attr_scan *)attr)->body); }

/* Joins a and b into one list; keep: takes a reference to each. NULL only if out of memory. */
static mica_array **node_list(mica_array *const *a, size_t n_a, mica_array *const *b, size_t n_b, bool keep)
{
    mica_array **list = mica__alloc_zero(n_a + n_b + 1, sizeof *list);
    for (size_t i = 0; list && i < n_a + n_b; i++) {
        list[i] = i < n_a ? a[i] : b[i - n_a];
        if (keep) mica_keep(list[i]);
    }
    return list;
}

static mica__body *body_new(mica_array *const *params, size_t n_param, const scan_list *captured,
                            mica_array *const *outs, size_t n_out)
{
    mica__body *body = mica__alloc_zero(1, sizeof *body);
    if (!body) return NULL;
    body->param = node_list(params, n_param, captured->node, captured->n, true);
    body->n_param = n_param + captured->n;
    body->out = node_list(outs, n_out, NULL, 0, true);
    body->n_out = n_out;
    body->depth = captured->depth + 1;
    if (body->param && body->out) return body;
    body_free(body);
    return NULL;
}

/* ------------------------------------------------------------------- node --- */

/* The spec of y, stacked over the steps. */
static bool stacked_spec(mica_scope *s, const mica_array *y, int64_t length, mica__spec *out)
{
    int64_t shape[MICA_MAX_DIMS + 1] = {length};
    memcpy(shape + 1, y->spec.shape, sizeof y->spec.shape);
    return mica__make_spec(s, "scan", (mica_dtype)y->spec.dtype, y->spec.ndim + 1, shape, out);
}

/* Builds the body and the node that owns it; NULL on failure. */
static mica_array *scan_node(mica_scope *s, mica__attr_scan *attr, mica_array *const *in, mica_array *const *params,
                             mica_array *const *outs, uint64_t mark)
{
    const size_t n_own = (size_t)(attr->n_carry + attr->n_x), n_out = (size_t)(attr->n_carry + attr->n_y);
    mica__node_map seen = {0};
    scan_list stack = {0}, captured = {0};
    mica_array *node = NULL, **all = NULL;
    mica_status status = find_captured(params, n_own, outs, n_out, mark, &seen, &stack, &captured);
    if (status == MICA_OK && captured.depth >= SCAN_DEPTH)
        status = mica__fail(MICA_ERR_UNSUPPORTED, "scan: scans are nested more than %d deep", SCAN_DEPTH);
    if (status == MICA_OK) {
        attr->n_captured = (int64_t)captured.n;
        attr->body = body_new(params, n_own, &captured, outs, n_out);
        all = node_list(in, n_own, captured.node, captured.n, false);
        if (!attr->body || !all) status = mica__fail_memory("the body of a scan", sizeof *attr->body);
    }
    if (status == MICA_OK) node = mica__build(s, MICA__OP_SCAN, all, n_own + captured.n, attr, sizeof *attr);
    else mica__scope_failed(s, status);
    if (node) node->attr_free = scan_attr_free;
    else body_free(attr->body);
    mica__free(all);
    mica__free(stack.node);
    mica__free(captured.node);
    mica__node_map_free(&seen);
    return node;
}

/* Do the inputs of the scan match the results of one step and the length? */
static bool scan_check(mica_scope *s, size_t n_carry, size_t n_x, size_t n_y, int64_t length, mica_array *const *in,
                       mica_array *const *outs)
{
    char a[MICA__SPEC_TEXT], b[MICA__SPEC_TEXT];
    if (!mica__usable(s, "scan", in, n_carry + n_x) || !mica__usable(s, "scan", outs, n_carry + n_y)) return false;
    for (size_t i = 0; i < n_carry; i++) {
        if (mica__spec_equal(&in[i]->spec, &outs[i]->spec)) continue;
        mica__scope_fail(s, in[i]->spec.dtype == outs[i]->spec.dtype ? MICA_ERR_SHAPE : MICA_ERR_DTYPE,
                         "scan: carry %zu is %s, but the step returns %s", i, mica__spec_text(a, &in[i]->spec),
                         mica__spec_text(b, &outs[i]->spec));
        return false;
    }
    for (size_t i = n_carry; i < n_carry + n_x; i++) {
        if (in[i]->spec.ndim > 0 && in[i]->spec.shape[0] == length) continue;
        mica__scope_fail(s, MICA_ERR_SHAPE, "scan: x %zu is %s, but the scan has %" PRId64 " steps", i - n_carry,
                         mica__spec_text(a, &in[i]->spec), length);
        return false;
    }
    return true;
}

mica_status mica__build_scan(mica_scope *s, size_t n_carry, size_t n_x, size_t n_y, int64_t length, bool reverse,
                             mica_array *const *in, mica_array *const *params, mica_array *const *outs,
                             uint64_t serial_mark, mica_array **parts)
{
    for (size_t i = 0; i < n_carry + n_y; i++) parts[i] = NULL;
    MICA_TRY(mica__scope_check(s, "scan"));
    if (!scan_check(s, n_carry, n_x, n_y, length, in, outs)) return s->error.status;
    if (n_carry + n_y == 0) return MICA_OK;
    mica_array *node = NULL;
    if (length > 0) {
        mica__attr_scan attr = {.n_carry = (int64_t)n_carry,
                                .n_x = (int64_t)n_x,
                                .n_y = (int64_t)n_y,
                                .length = length,
                                .reverse = reverse};
        attr.spec = outs[0]->spec;
        if (n_carry == 0 && !stacked_spec(s, outs[0], length, &attr.spec)) return s->error.status;
        node = scan_node(s, &attr, in, params, outs, serial_mark);
        if (!node) return s->error.status;
    }
    for (size_t i = 0; i < n_carry + n_y; i++) {
        mica__attr_part part = {.index = (int64_t)i};
        if (i < n_carry) part.spec = outs[i]->spec;
        else if (!stacked_spec(s, outs[i], length, &part.spec)) return s->error.status;
        if (length > 0) parts[i] = mica__build1(s, MICA__OP_PART, node, &part, sizeof part);
        else parts[i] = i < n_carry ? in[i] : mica__full(s, &part.spec, (mica__number){0});
        if (!parts[i]) return s->error.status;
    }
    return MICA_OK;
}

/* ------------------------------------------------------------------ public -- */

void mica_scan_options_init(mica_scan_options *options)
{
    if (options) *options = (mica_scan_options){.struct_size = sizeof *options};
}

static mica_status scan_fail(mica_scope *s, const char *what)
{
    mica__scope_fail(s, MICA_ERR_ARGUMENT, "scan: %s", what);
    return s->error.status;
}

/* Calls the step with new PARAM nodes and builds the scan. list holds the inputs and has
 * room for params, results and parts. */
static mica_status scan_trace(mica_scope *s, mica_scan_fn step, void *user, const mica_scan_options *o, int64_t length,
                              mica_array **list)
{
    const size_t n_in = o->n_carry + o->n_x, n_out = o->n_carry + o->n_y;
    mica_array **in = list, **params = in + n_in, **outs = params + n_in, **parts = outs + n_out;
    const uint64_t mark = mica__serial_now();
    for (size_t i = 0; i < n_in; i++) {
        mica__spec spec = in[i]->spec;
        if (i >= o->n_carry) {
            if (spec.ndim == 0) {
                mica__scope_fail(s, MICA_ERR_SHAPE, "scan: x %zu has no axes", i - o->n_carry);
                return s->error.status;
            }
            memmove(spec.shape, spec.shape + 1, sizeof spec.shape - sizeof spec.shape[0]);
            spec.shape[--spec.ndim] = 0;
        }
        params[i] = mica__param(s, &spec, (int64_t)i);
        if (!params[i]) return s->error.status;
    }
    const mica_status status = step(s, params, params + o->n_carry, outs, outs + o->n_carry, user);
    if (status != MICA_OK && s->error.status == MICA_OK)
        mica__scope_fail(s, status, "scan: the step returned \"%s\"", mica_status_text(status));
    if (status != MICA_OK) return s->error.status;
    return mica__build_scan(s, o->n_carry, o->n_x, o->n_y, length, o->reverse, in, params, outs, mark, parts);
}

mica_status mica_scan(mica_scope *s, mica_scan_fn step, void *user, const mica_scan_options *options,
                      mica_array *const *carry, mica_array *const *xs, mica_array **carry_out, mica_array **ys)
{
    mica_scan_options o;
    mica_scan_options_init(&o);
    MICA_TRY(mica__scope_check(s, "scan"));
    if (!options) return scan_fail(s, "options is NULL");
    if (!mica__read_options(s, "scan", options, &o, sizeof o)) return s->error.status;
    enum { MOST = 1 << 20 }; /* of each kind, so that no sum below can overflow */
    if (o.n_carry > MOST || o.n_x > MOST || o.n_y > MOST) return scan_fail(s, "more than 2^20 carries, xs or ys");
    for (size_t i = 0; carry_out && i < o.n_carry; i++) carry_out[i] = NULL;
    for (size_t i = 0; ys && i < o.n_y; i++) ys[i] = NULL;
    if (!step) return scan_fail(s, "step is NULL");
    if (o.n_carry > 0 && (!carry || !carry_out)) return scan_fail(s, carry ? "carry_out is NULL" : "carry is NULL");
    if ((o.n_x > 0 && !xs) || (o.n_y > 0 && !ys)) return scan_fail(s, o.n_x > 0 && !xs ? "xs is NULL" : "ys is NULL");
    if (o.length < 0) return scan_fail(s, "length is negative");
    if (o.length == 0 && o.n_x == 0) return scan_fail(s, "a length is needed if there are no xs");
    if (!mica__usable(s, "scan", carry, o.n_carry) || !mica__usable(s, "scan", xs, o.n_x)) return s->error.status;
    const size_t n_in = o.n_carry + o.n_x, n_out = o.n_carry + o.n_y;
    mica_array **list = mica__alloc_zero(2 * n_in + 2 * n_out + 1, sizeof *list);
    if (!list) {
        mica__scope_failed(s, mica__fail_memory("a scan", 2 * (n_in + n_out) * sizeof *list));
        return s->error.status;
    }
    for (size_t i = 0; i < n_in; i++) list[i] = i < o.n_carry ? carry[i] : xs[i - o.n_carry];
    const int64_t length = o.length > 0 ? o.length : xs[0]->spec.ndim > 0 ? xs[0]->spec.shape[0] : 0;
    const mica_status status = scan_trace(s, step, user, &o, length, list);
    mica_array *const *parts = list + 2 * n_in + n_out;
    for (size_t i = 0; status == MICA_OK && i < n_out; i++)
        *(i < o.n_carry ? &carry_out[i] : &ys[i - o.n_carry]) = parts[i];
    mica__free(list);
    return status;
}
