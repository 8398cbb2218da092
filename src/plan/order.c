/* Stage 3 of planning: finds two orders of the groups. One is the order in which the graph
 * was built. The other is depth first from the results; of several inputs, the one that
 * needs most memory while it is computed runs first (the rule of Sethi and Ullman). The
 * planner lays out both and keeps the one with the lower peak, so the peak is never
 * higher than with the caller's order. */
#include <string.h>

#include "plan/work.h"

/* ------------------------------------------------------- dependencies ----- */

typedef struct deps {
    uint32_t *start, *on;       /* group i waits for on[start[i] ... start[i+1])         */
    uint32_t *member_start, *member; /* nodes of each group, ascending                   */
    size_t *bytes;              /* per group: size of the values that it writes          */
} deps;

static size_t node_bytes(const mica__graph *g, uint32_t i)
{
    int64_t count;
    size_t nbytes;
    return mica__spec_count(&g->node[i].spec, &count, &nbytes) ? nbytes : 0;
}

static mica_status collect_members(mica__work *w, deps *d)
{
    const uint32_t n = w->g->n;
    d->member_start = mica__arena_array(&w->scratch, w->n_group + 2, sizeof(uint32_t));
    d->member = mica__arena_array(&w->scratch, n + 1, sizeof(uint32_t));
    if (w->scratch.failed) return mica__fail_memory("plan: members", n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        if (w->group[i] != MICA__NO_NODE) d->member_start[w->group[i] + 2]++;
    for (uint32_t i = 2; i < w->n_group + 2; i++) d->member_start[i] += d->member_start[i - 1];
    for (uint32_t i = 0; i < n; i++)
        if (w->group[i] != MICA__NO_NODE) d->member[d->member_start[w->group[i] + 1]++] = i;
    return MICA_OK;
}

/* Stores the groups that input `in` of a node of group `of` waits for (out may be NULL); returns their
 * number. */
static uint32_t input_dependencies(const mica__work *w, uint32_t of, uint32_t in, uint32_t *out)
{
    uint32_t n = 0;
    for (;;) {
        const mica__gnode *node = &w->g->node[in];
        if (node->op == MICA__OP_AFTER) {
            const uint32_t dep = mica__writer(w, w->ref[node->in[1]].root);
            if (dep != MICA__NO_NODE && dep != of) {
                if (out) out[n] = dep;
                n++;
            }
        }
        const mica__op_kind kind = mica__op_get(node->op)->kind;
        if (kind != MICA__VIEW && kind != MICA__ALIAS) break;
        in = node->in[0];
    }
    const uint32_t writer = mica__writer(w, in);
    if (writer != MICA__NO_NODE && writer != of) {
        if (out) out[n] = writer;
        n++;
    }
    return n;
}

/* An UPDATE waits for all groups that read the memory it overwrites. */
static uint32_t reader_dependencies(const mica__work *w, uint32_t of, uint32_t node, uint32_t *out)
{
    const uint32_t root = mica__overwrites(w, node);
    uint32_t n = 0;
    if (root == MICA__NO_NODE) return 0;
    for (uint32_t i = w->user_start[root]; i < w->user_start[root + 1]; i++) {
        const uint32_t reader = w->group[w->user[i]];
        if (reader == MICA__NO_NODE || reader == of) continue;
        if (out) out[n] = reader;
        n++;
    }
    return n;
}

static uint32_t group_dependencies(const mica__work *w, const deps *d, uint32_t group, uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t m = d->member_start[group]; m < d->member_start[group + 1]; m++) {
        const mica__gnode *node = &w->g->node[d->member[m]];
        for (uint32_t k = 0; k < node->n_in; k++) n += input_dependencies(w, group, node->in[k], out ? out + n : NULL);
        n += reader_dependencies(w, group, d->member[m], out ? out + n : NULL);
    }
    return n;
}

static mica_status collect_deps(mica__work *w, deps *d)
{
    d->start = mica__arena_array(&w->scratch, w->n_group + 1, sizeof(uint32_t));
    d->bytes = mica__arena_array(&w->scratch, w->n_group + 1, sizeof(size_t));
    if (w->scratch.failed) return mica__fail_memory("plan: dependencies", w->n_group * sizeof(size_t));
    for (uint32_t i = 0; i < w->n_group; i++) d->start[i + 1] = d->start[i] + group_dependencies(w, d, i, NULL);
    d->on = mica__arena_array(&w->scratch, d->start[w->n_group] + 1, sizeof(uint32_t));
    if (!d->on) return mica__fail_memory("plan: dependencies", d->start[w->n_group] * sizeof(uint32_t));
    for (uint32_t i = 0; i < w->n_group; i++) group_dependencies(w, d, i, d->on + d->start[i]);
    for (uint32_t i = 0; i < w->g->n; i++) {
        const bool part = w->g->node[i].op == MICA__OP_PART;
        const uint32_t writer = part || mica__computes(w->g, i) ? mica__writer(w, i) : MICA__NO_NODE;
        if (writer == MICA__NO_NODE || w->g->node[i].op == MICA__OP_UPDATE) continue;
        if (part || (w->groups[writer].root == i && w->g->node[i].op != MICA__OP_SCAN) || w->result[i])
            d->bytes[writer] += node_bytes(w->g, i);
    }
    return MICA_OK;
}

/* -------------------------------------------------------------- orders ---- */

/* Creation order: groups by the number of their root. One pass over the nodes sorts them. */
static void order_as_built(const mica__work *w, uint32_t *order)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->g->n; i++)
        if (w->group[i] != MICA__NO_NODE && w->groups[w->group[i]].root == i) order[n++] = w->group[i];
}

/* Memory needed while a group and all groups it waits for are computed. It is only an
 * estimate if groups share inputs. */
static void estimate_memory(const mica__work *w, const deps *d, const uint32_t *built, size_t *need)
{
    for (uint32_t i = 0; i < w->n_group; i++) {
        const uint32_t q = built[i];
        size_t most = 0, held = 0;
        for (uint32_t k = d->start[q]; k < d->start[q + 1]; k++) {
            if (need[d->on[k]] > most) most = need[d->on[k]];
            held += d->bytes[d->on[k]];
        }
        need[q] = held + d->bytes[q] > most ? held + d->bytes[q] : most;
    }
}

typedef struct visit {
    uint32_t group, next;
} visit;

/* Insertion sort: the lists are short (inputs of one kernel). */
static void sort_by_need(uint32_t *on, uint32_t n, const size_t *need)
{
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t x = on[i];
        uint32_t j = i;
        for (; j > 0 && need[on[j - 1]] < need[x]; j--) on[j] = on[j - 1];
        on[j] = x;
    }
}

/* Orders the groups from[0 ... n_from) and all that they wait for: each runs after the groups it waits for. */
static mica_status order_visit(mica__work *w, const deps *d, const uint32_t *from, uint32_t n_from, uint32_t *order)
{
    bool *done = mica__arena_array(&w->scratch, w->n_group + 1, sizeof *done);
    visit *stack = mica__arena_array(&w->scratch, w->n_group + 1, sizeof *stack);
    bool *on_stack = mica__arena_array(&w->scratch, w->n_group + 1, sizeof *on_stack);
    if (w->scratch.failed) return mica__fail_memory("plan: the order", w->n_group * sizeof *stack);
    uint32_t n = 0;
    for (uint32_t r = 0; r < n_from; r++) {
        if (done[from[r]]) continue;
        uint32_t depth = 0;
        stack[depth++] = (visit){from[r], d->start[from[r]]};
        on_stack[from[r]] = true;
        while (depth) {
            visit *top = &stack[depth - 1];
            if (top->next == d->start[top->group + 1]) {
                order[n++] = top->group;
                done[top->group] = true;
                depth--;
                continue;
            }
            const uint32_t q = d->on[top->next++];
            if (done[q]) continue;
            if (on_stack[q] && w->updates)
                return mica__fail(MICA_ERR_STATE,
                                  "update: a state is updated, but its old value is still needed; a second "
                                  "update must be applied to the result of the first");
            if (on_stack[q])
                return mica__fail(MICA_ERR_INTERNAL, "plan: kernels %u and %u wait for each other", top->group, q);
            on_stack[q] = true;
            stack[depth++] = (visit){q, d->start[q]};
        }
    }
    return MICA_OK;
}

static mica_status order_depth_first(mica__work *w, deps *d, const uint32_t *built, uint32_t *order)
{
    size_t *need = mica__arena_array(&w->scratch, w->n_group + 1, sizeof *need);
    uint32_t *from = mica__arena_array(&w->scratch, (size_t)w->g->n_out + w->n_group + 1, sizeof *from);
    if (w->scratch.failed) return mica__fail_memory("plan: the order", w->n_group * sizeof *need);
    estimate_memory(w, d, built, need);
    for (uint32_t i = 0; i < w->n_group; i++)
        if (d->start[i + 1] - d->start[i] <= 64) sort_by_need(d->on + d->start[i], d->start[i + 1] - d->start[i], need);
    /* the results in the caller's order, then all groups, in case one is not reachable from a result */
    uint32_t n = 0;
    for (uint32_t r = 0; r < w->g->n_out; r++) {
        const uint32_t writer = mica__writer(w, w->ref[w->g->out[r]].root);
        if (writer != MICA__NO_NODE) from[n++] = writer;
    }
    for (uint32_t r = 0; r < w->n_group; r++) from[n++] = built[r];
    return order_visit(w, d, from, n, order);
}

mica_status mica__plan_order(mica__work *w, mica__order *built, mica__order *deep, bool *differ)
{
    deps d = {0};
    *differ = false;
    MICA_TRY(collect_members(w, &d));
    uint32_t *in_order = mica__arena_array(&w->scratch, w->n_group + 1, sizeof *in_order);
    uint32_t *other = mica__arena_array(&w->scratch, w->n_group + 1, sizeof *other);
    if (w->scratch.failed) return mica__fail_memory("plan: the order", w->n_group * sizeof *in_order);
    order_as_built(w, in_order);
    if (deep || w->updates) MICA_TRY(collect_deps(w, &d));
    if (w->updates) { /* a reader of a state may have been built after the update of that state */
        MICA_TRY(order_visit(w, &d, in_order, w->n_group, other));
        memcpy(in_order, other, w->n_group * sizeof *in_order);
    }
    *built = (mica__order){in_order, d.member_start, d.member};
    if (!deep) return MICA_OK;
    MICA_TRY(order_depth_first(w, &d, in_order, other));
    *deep = (mica__order){other, d.member_start, d.member};
    *differ = memcmp(in_order, other, w->n_group * sizeof *in_order) != 0;
    return MICA_OK;
}
