/* Stage 5 of planning: memory. Every value that a step writes becomes a block. A step may
 * overwrite an operand that no later step reads. Blocks of temporaries get offsets in one
 * arena; blocks that are alive at the same time do not overlap. */
#include <string.h>

#include "base/checked.h"
#include "memory/memory.h"
#include "plan/work.h"

enum { BLOCK_ALIGN = 64 };

typedef struct layout {
    mica__work *w;
    mica__plan *plan;
    uint32_t *block_of;         /* per root node: its block                              */
    uint32_t *part;             /* per scan: its first PART; per PART: the next one; or NO_NODE */
    uint32_t cap_block;
} layout;

static size_t spec_bytes(const mica__spec *spec)
{
    int64_t count;
    size_t nbytes = 0;
    mica__spec_count(spec, &count, &nbytes);
    return nbytes;
}

static uint32_t new_block(layout *l, mica__place place, size_t nbytes, uint32_t step)
{
    mica__block *b = &l->plan->block[l->plan->n_block];
    *b = (mica__block){.place = place, .nbytes = nbytes, .first = step, .last = step};
    return l->plan->n_block++;
}

/* ------------------------------------------------------- reads and writes -- */

static void read_operands(layout *l, uint32_t number)
{
    mica__step *step = &l->plan->step[number];
    for (uint32_t i = 0; i < step->n_in; i++) {
        mica__operand *o = &step->in[i];
        if (o->make != MICA__NO_NODE) continue;
        o->block = l->block_of[l->w->ref[o->node].root];
        if (l->plan->block[o->block].last < number) l->plan->block[o->block].last = number;
    }
}

/* Is the operand read in the same element order as the result is written? */
static bool same_walk(const mica__operand *o, const mica__operand *out)
{
    return o->offset == 0 && mica__shape_equal(&o->spec, &out->spec) && mica__is_row_major(&o->spec, o->strides) &&
           mica_dtype_size((mica_dtype)o->spec.dtype) == mica_dtype_size((mica_dtype)out->spec.dtype);
}

/* The block of an operand that this step may overwrite, or NO_BLOCK. It needs the last
 * use of every block, so it runs in a second pass over the steps. */
static uint32_t reusable(const layout *l, uint32_t number)
{
    const mica__step *step = &l->plan->step[number];
    if (!(l->w->passes & MICA_PASS_INPLACE) || step->kind != MICA__STEP_MAP || step->n_out != 1) return MICA__NO_BLOCK;
    if (l->w->result[step->out[0].node]) return MICA__NO_BLOCK;
    for (uint32_t i = 0; i < step->n_in; i++) {
        const uint32_t id = step->in[i].block;
        if (id == MICA__NO_BLOCK) continue;
        const mica__block *b = &l->plan->block[id];
        if (b->place != MICA__AT_ARENA || b->last != number || b->nbytes != spec_bytes(&step->out[0].spec)) continue;
        bool all = true; /* every read of that block must be in the order of the writes */
        for (uint32_t j = 0; j < step->n_in; j++)
            if (step->in[j].block == id && !same_walk(&step->in[j], &step->out[0])) all = false;
        if (all) return id;
    }
    return MICA__NO_BLOCK;
}

static void write_operand(layout *l, uint32_t number, mica__operand *o)
{
    const bool result = o->node != MICA__NO_NODE && l->w->result[o->node];
    o->make = MICA__NO_NODE;
    o->offset = 0;
    mica__row_major(&o->spec, o->strides);
    o->block = new_block(l, result ? MICA__AT_OUTPUT : MICA__AT_ARENA, spec_bytes(&o->spec), number);
    if (o->node != MICA__NO_NODE) l->block_of[o->node] = o->block;
}

/* An UPDATE writes to the block of its state. */
static void write_state(layout *l, mica__operand *o)
{
    const uint32_t block = l->block_of[mica__overwrites(l->w, o->node)];
    mica__plan *plan = l->plan;
    uint32_t i = 0;
    while (i < plan->n_written && plan->written[i] != block) i++; /* the block of leaf i has number i */
    if (i == plan->n_written) plan->written[plan->n_written++] = block;
    o->make = MICA__NO_NODE;
    o->offset = 0;
    mica__row_major(&o->spec, o->strides);
    o->block = l->block_of[o->node] = block;
}

/* Makes blocks for all parts of a scan's result, used or not. */
static mica_status write_parts(layout *l, uint32_t number)
{
    mica__step *step = &l->plan->step[number];
    const mica__graph *g = l->w->g;
    const mica__gnode *scan = &g->node[step->node[0]];
    const mica__attr_scan *attr = scan->attr;
    for (uint32_t j = 0; j < step->n_out; j++) {
        mica__operand *o = &step->out[j];
        const mica__spec *one = &scan->body->node[scan->body->out[j]].spec;
        o->spec = *one;
        if (j >= attr->n_carry) { /* stacked */
            o->spec.ndim = one->ndim + 1;
            o->spec.shape[0] = attr->length;
            for (int d = 0; d < one->ndim; d++) o->spec.shape[d + 1] = one->shape[d];
        }
        o->node = MICA__NO_NODE;
    }
    for (uint32_t i = l->part[step->node[0]]; i != MICA__NO_NODE; i = l->part[i]) {
        mica__operand *o = &step->out[((const mica__attr_part *)g->node[i].attr)->index];
        if (o->node == MICA__NO_NODE || l->w->result[i]) o->node = i;
    }
    for (uint32_t j = 0; j < step->n_out; j++) {
        write_operand(l, number, &step->out[j]);
        step->bytes_written += spec_bytes(&step->out[j].spec);
    }
    /* several PART nodes of the same result share its block */
    for (uint32_t i = l->part[step->node[0]]; i != MICA__NO_NODE; i = l->part[i])
        l->block_of[i] = step->out[((const mica__attr_part *)g->node[i].attr)->index].block;
    return MICA_OK;
}

/* Links the PART nodes of each scan, in ascending order. */
static void link_parts(layout *l)
{
    const mica__graph *g = l->w->g;
    for (uint32_t i = 0; i < g->n; i++) l->part[i] = MICA__NO_NODE;
    for (uint32_t i = g->n; i-- > 0;) {
        if (g->node[i].op != MICA__OP_PART) continue;
        const uint32_t scan = g->node[i].in[0];
        l->part[i] = l->part[scan];
        l->part[scan] = i;
    }
}

/* ---------------------------------------------------------- shared scratch -- */

enum { SCRATCH_REACH = 32 };    /* largest distance of two steps that share scratch      */

/* Are both nodes the same value, and is it never overwritten? */
static bool same_value(const mica__work *w, uint32_t a, uint32_t b)
{
    if (a == MICA__NO_NODE || b == MICA__NO_NODE || w->overwritten[w->ref[a].root]) return false;
    return a == b || (w->ref[a].root == w->ref[b].root && mica__ref_is_root(w, a) && mica__ref_is_root(w, b));
}

static bool can_share_scratch(const layout *l, const mica__step *earlier, const mica__step *later)
{
    const mica__work *w = l->w;
    if (earlier->kind != MICA__STEP_FAMILY || later->kind != MICA__STEP_FAMILY) return false;
    if (earlier->n_anchor_in == 0 || later->n_anchor_in == 0) return false;
    if (earlier->n_out == 1 && same_value(w, earlier->out[0].node, later->in[0].node))
        return w->target->can_share_scratch(w->g, earlier, later, true);
    return same_value(w, earlier->in[0].node, later->in[0].node) &&
           w->target->can_share_scratch(w->g, earlier, later, false);
}

/* An earlier step with at least nbytes of scratch that this step can share, or NO_NODE. */
static uint32_t scratch_before(const layout *l, uint32_t number, size_t nbytes)
{
    for (uint32_t i = number; i-- > 0 && number - i <= SCRATCH_REACH;) {
        const mica__step *step = &l->plan->step[i];
        if (step->workspace != MICA__NO_BLOCK && step->workspace_bytes >= nbytes &&
            can_share_scratch(l, step, &l->plan->step[number]))
            return i;
    }
    return MICA__NO_NODE;
}

/* Scratch bytes of a later step that this step, which has no scratch, could fill for it; 0: none. */
static size_t scratch_of_later(const layout *l, uint32_t number)
{
    const mica__plan *plan = l->plan;
    for (uint32_t i = number + 1; i < plan->n_step && i - number <= SCRATCH_REACH; i++) {
        const mica__step *step = &plan->step[i];
        if (!can_share_scratch(l, &plan->step[number], step)) continue;
        const mica__gnode *node = &l->w->g->node[step->node[0]];
        return l->w->target->workspace(node->op, step->in, step->n_anchor_in, node->attr, &node->spec);
    }
    return 0;
}

/* Uses the scratch block of an earlier step, if possible. */
static bool share_scratch(layout *l, uint32_t number)
{
    mica__step *step = &l->plan->step[number];
    if (!l->w->target->can_share_scratch || !(l->w->passes & MICA_PASS_FUSE)) return false;
    if (step->workspace_bytes == 0) {
        step->workspace_bytes = scratch_of_later(l, number);
        return false;
    }
    const uint32_t from = scratch_before(l, number, step->workspace_bytes);
    if (from == MICA__NO_NODE) return false;
    step->scratch_from = from;
    step->workspace = l->plan->step[from].workspace;
    step->workspace_bytes = l->plan->step[from].workspace_bytes;
    l->plan->block[step->workspace].last = number;
    return true;
}

static size_t fold_scratch(const layout *l, const mica__step *step)
{
    const mica__graph *g = l->w->g;
    for (uint32_t i = 0; l->w->target->fold_scratch && i < step->n_node; i++) {
        const mica__gnode *node = &g->node[step->node[i]];
        const int64_t results = mica__spec_size(&node->spec);
        if (mica__kind_of(g, step->node[i]) == MICA__REDUCE && results > 0)
            return l->w->target->fold_scratch(results, mica__spec_size(&g->node[node->in[0]].spec) / results);
    }
    return 0;
}

static mica_status scratch_of(layout *l, uint32_t number)
{
    mica__step *step = &l->plan->step[number];
    const mica__gnode *node = &l->w->g->node[step->node[0]];
    if (step->kind == MICA__STEP_FAMILY) {
        step->workspace_bytes = l->w->target->workspace(node->op, step->in, step->n_anchor_in, node->attr, &node->spec);
        if (step->n_node > 1) {
            const size_t nbytes = spec_bytes(&node->spec);
            const bool shares = step->n_out == 1 && l->plan->block[step->out[0].block].nbytes == nbytes;
            step->anchor_block = shares ? step->out[0].block : new_block(l, MICA__AT_ARENA, nbytes, number);
        }
        if (share_scratch(l, number)) return MICA_OK;
    } else if (step->kind == MICA__STEP_REDUCE) {
        step->workspace_bytes = fold_scratch(l, step);
    } else if (step->kind == MICA__STEP_SCAN) {
        const mica__attr_scan *attr = node->attr;
        const uint32_t lanes = step->body->lanes;
        const uint64_t times = (uint64_t)attr->length * lanes;
        size_t nbytes = mica__round_up(step->body->arena_bytes, BLOCK_ALIGN);
        for (int64_t j = 0; j < attr->n_carry; j++)
            nbytes += mica__round_up(spec_bytes(&step->out[j].spec) / lanes, BLOCK_ALIGN);
        step->workspace_bytes = nbytes * lanes;
        step->flops = step->body->flops * times;
        step->bytes_read = step->body->bytes_read * times;
        step->bytes_written = step->body->bytes_written * times;
    }
    if (step->workspace_bytes == SIZE_MAX)
        return mica__fail(MICA_ERR_MEMORY, "plan: out of memory while computing the scratch size");
    if (step->workspace_bytes) step->workspace = new_block(l, MICA__AT_ARENA, step->workspace_bytes, number);
    return MICA_OK;
}

/* ------------------------------------------------------------- in place ---- */

/* Gives outputs the block of an operand where possible, and redirects later uses of the output. */
static void overwrite_operands(layout *l, uint32_t *became)
{
    mica__plan *plan = l->plan;
    for (uint32_t i = 0; i < plan->n_block; i++) became[i] = i;
    for (uint32_t i = 0; i < plan->n_step; i++) {
        mica__step *step = &plan->step[i];
        for (uint32_t k = 0; k < step->n_in; k++)
            if (step->in[k].block != MICA__NO_BLOCK) step->in[k].block = became[step->in[k].block];
        const uint32_t taken = reusable(l, i);
        if (taken == MICA__NO_BLOCK) continue;
        const uint32_t old = step->out[0].block;
        became[old] = taken;
        step->out[0].block = taken;
        plan->block[taken].last = plan->block[old].last;
        plan->block[old].nbytes = 0; /* needs no separate memory */
    }
}

/* -------------------------------------------------------------- offsets ---- */

typedef struct gap {
    size_t offset, nbytes;
} gap;

typedef struct gaps {
    gap *at;                    /* sorted by offset; adjacent gaps are merged            */
    uint32_t n;
    size_t end;                 /* everything from here on is free                       */
    size_t largest;             /* upper bound of all gaps: avoids most searches         */
} gaps;

/* The smallest gap that is large enough, the first of equal ones; n if there is none. */
static uint32_t best_gap(gaps *f, size_t nbytes)
{
    uint32_t best = f->n;
    size_t largest = 0;
    if (nbytes > f->largest) return f->n;
    for (uint32_t i = 0; i < f->n; i++) {
        const size_t here = f->at[i].nbytes;
        if (here == nbytes) return i;
        if (here > largest) largest = here;
        if (here > nbytes && (best == f->n || here < f->at[best].nbytes)) best = i;
    }
    f->largest = largest;
    return best;
}

static size_t alloc_gap(gaps *f, size_t nbytes)
{
    const uint32_t best = best_gap(f, nbytes);
    if (best == f->n) {
        /* a gap at the end can grow into the free memory after it */
        if (f->n && f->at[f->n - 1].offset + f->at[f->n - 1].nbytes == f->end) {
            const size_t offset = f->at[--f->n].offset;
            f->end = offset + nbytes;
            return offset;
        }
        f->end += nbytes;
        return f->end - nbytes;
    }
    const size_t offset = f->at[best].offset;
    f->at[best].offset += nbytes;
    f->at[best].nbytes -= nbytes;
    if (f->at[best].nbytes == 0) {
        memmove(&f->at[best], &f->at[best + 1], (f->n - best - 1) * sizeof *f->at);
        f->n--;
    }
    return offset;
}

static void free_gap(gaps *f, size_t offset, size_t nbytes)
{
    uint32_t i = 0, after = f->n;
    while (i < after) { /* binary search for the first gap after offset */
        const uint32_t middle = i + (after - i) / 2;
        if (f->at[middle].offset < offset) i = middle + 1;
        else after = middle;
    }
    const bool left = i > 0 && f->at[i - 1].offset + f->at[i - 1].nbytes == offset;
    const bool right = i < f->n && offset + nbytes == f->at[i].offset;
    if (left && right) {
        nbytes = f->at[i - 1].nbytes += nbytes + f->at[i].nbytes;
        memmove(&f->at[i], &f->at[i + 1], (f->n - i - 1) * sizeof *f->at);
        f->n--;
    } else if (left) {
        nbytes = f->at[i - 1].nbytes += nbytes;
    } else if (right) {
        f->at[i].offset = offset;
        nbytes = f->at[i].nbytes += nbytes;
    } else {
        memmove(&f->at[i + 1], &f->at[i], (f->n - i) * sizeof *f->at);
        f->at[i] = (gap){offset, nbytes};
        f->n++;
    }
    if (nbytes > f->largest) f->largest = nbytes;
}

/* Best fit, step by step. Blocks were made in the order of the steps, so their numbers are
 * sorted by first use. dying[s] starts a list of the blocks whose last use is step s. */
static mica_status place_blocks(layout *l)
{
    mica__plan *plan = l->plan;
    mica__arena *scratch = &l->w->scratch;
    uint32_t *dying = mica__arena_array(scratch, plan->n_step + 1, sizeof *dying);
    uint32_t *next = mica__arena_array(scratch, plan->n_block + 1, sizeof *next);
    gaps f = {.at = mica__arena_array(scratch, plan->n_block + 2, sizeof(gap))};
    if (scratch->failed) return mica__fail_memory("plan: offsets", plan->n_block * sizeof(gap));
    for (uint32_t s = 0; s < plan->n_step; s++) dying[s] = MICA__NO_BLOCK;
    uint32_t born = 0;
    for (uint32_t s = 0; s < plan->n_step; s++) {
        for (; born < plan->n_block && plan->block[born].first <= s; born++) {
            mica__block *b = &plan->block[born];
            if (b->place != MICA__AT_ARENA || b->nbytes == 0) continue;
            b->offset = alloc_gap(&f, mica__round_up(b->nbytes, BLOCK_ALIGN));
            next[born] = dying[b->last];
            dying[b->last] = born;
        }
        for (uint32_t i = dying[s]; i != MICA__NO_BLOCK; i = next[i])
            free_gap(&f, plan->block[i].offset, mica__round_up(plan->block[i].nbytes, BLOCK_ALIGN));
    }
    plan->arena_bytes = f.end;
    return MICA_OK;
}

/* -------------------------------------------------------------- results ---- */

static mica_status name_results(layout *l)
{
    mica__plan *plan = l->plan;
    const mica__graph *g = l->w->g;
    plan->n_out = g->n_out;
    plan->out = mica__arena_array(l->w->arena, g->n_out + 1, sizeof *plan->out);
    plan->output_bytes = mica__arena_array(l->w->arena, plan->n_block + 1, sizeof *plan->output_bytes);
    if (l->w->arena->failed) return mica__fail_memory("plan: results", g->n_out * sizeof *plan->out);
    for (uint32_t i = 0; i < plan->n_block; i++)
        if (plan->block[i].place == MICA__AT_OUTPUT) {
            plan->output_bytes[plan->n_output] = plan->block[i].nbytes;
            plan->block[i].index = plan->n_output++;
        }
    for (uint32_t i = 0; i < g->n_out; i++) {
        const mica__ref *ref = &l->w->ref[g->out[i]];
        mica__result *r = &plan->out[i];
        r->block = l->block_of[ref->root];
        r->spec = g->node[g->out[i]].spec;
        r->offset = ref->offset;
        memcpy(r->strides, ref->strides, sizeof r->strides);
    }
    bool *given = mica__arena_array(&l->w->scratch, plan->n_block + 1, sizeof *given);
    if (!given) return mica__fail_memory("plan: results", plan->n_block * sizeof *given);
    for (uint32_t i = g->n_out; i-- > 0;) {
        const uint32_t block = plan->out[i].block;
        plan->out[i].last = plan->block[block].place == MICA__AT_OUTPUT && !given[block];
        given[block] = true;
    }
    return MICA_OK;
}

static bool only_copies(const mica__plan *plan, const mica__step *step)
{
    return step->n_node == 1 && plan->graph->node[step->node[0]].op == MICA__OP_COPY;
}

static void sum_costs(mica__plan *plan)
{
    plan->peak_bytes = plan->arena_bytes ? mica__memory_round(plan->arena_bytes) : 0;
    for (uint32_t i = 0; i < plan->n_output; i++) plan->sum_output_bytes += mica__memory_round(plan->output_bytes[i]);
    plan->peak_bytes += plan->sum_output_bytes;
    uint32_t inner = 0;
    plan->lanes = plan->max_lanes = 1;
    for (uint32_t i = 0; i < plan->n_step; i++) {
        const mica__step *step = &plan->step[i];
        plan->flops += step->flops;
        plan->bytes_read += step->bytes_read;
        plan->bytes_written += step->bytes_written;
        if (step->n_in > plan->max_in) plan->max_in = step->n_in;
        if (step->kind == MICA__STEP_SCAN) {
            const mica__attr_scan *attr = plan->graph->node[step->node[0]].attr;
            const uint64_t times = (uint64_t)attr->length * step->body->lanes;
            plan->n_kernels += step->body->n_kernels * times;
            plan->copies += step->body->copies * times;
            plan->copy_bytes += step->body->copy_bytes * times;
            if (step->body->max_in > plan->max_in) plan->max_in = step->body->max_in;
            if (step->body->n_slot * step->body->lanes > inner) inner = step->body->n_slot * step->body->lanes;
            if (step->body->lanes > plan->max_lanes) plan->max_lanes = step->body->lanes;
            if (step->body->max_lanes > plan->max_lanes) plan->max_lanes = step->body->max_lanes;
        } else {
            plan->n_kernels++;
            if (only_copies(plan, step)) plan->copies++, plan->copy_bytes += step->bytes_written;
        }
    }
    plan->n_slot = plan->n_block + inner;
}

mica_status mica__plan_layout(mica__work *w, mica__plan *plan)
{
    layout l = {.w = w, .plan = plan};
    const mica__graph *g = w->g;
    size_t n_block = g->n_leaf;
    for (uint32_t i = 0; i < plan->n_step; i++) n_block += plan->step[i].n_out + 2u; /* + workspace, anchor */
    plan->block = mica__arena_array(w->arena, n_block + 1, sizeof *plan->block);
    l.block_of = mica__arena_array(&w->scratch, g->n + 1, sizeof *l.block_of);
    l.part = mica__arena_array(&w->scratch, g->n + 1, sizeof *l.part);
    uint32_t *became = mica__arena_array(&w->scratch, n_block + 1, sizeof *became);
    plan->written = mica__arena_array(w->arena, w->updates ? g->n_leaf + 1 : 1, sizeof *plan->written);
    if (w->arena->failed || w->scratch.failed) return mica__fail_memory("plan: blocks", n_block * sizeof *plan->block);
    link_parts(&l);
    for (uint32_t i = 0; i < g->n_leaf; i++) {
        new_block(&l, MICA__AT_LEAF, spec_bytes(&g->leaf[i].spec), 0);
        plan->block[i].index = i;
    }
    for (uint32_t i = 0; i < g->n; i++)
        l.block_of[i] = g->node[i].op == MICA__OP_LEAF ? (uint32_t)g->node[i].leaf : MICA__NO_BLOCK;
    for (uint32_t i = 0; i < plan->n_step; i++) {
        read_operands(&l, i);
        const mica__step *step = &plan->step[i];
        if (step->kind == MICA__STEP_SCAN) MICA_TRY(write_parts(&l, i));
        else if (mica__overwrites(w, step->node[0]) != MICA__NO_NODE) write_state(&l, &step->out[0]);
        else
            for (uint32_t k = 0; k < step->n_out; k++) write_operand(&l, i, &step->out[k]);
        MICA_TRY(scratch_of(&l, i));
    }
    MICA_TRY(name_results(&l));
    overwrite_operands(&l, became);
    MICA_TRY(place_blocks(&l));
    sum_costs(plan);
    return MICA_OK;
}
