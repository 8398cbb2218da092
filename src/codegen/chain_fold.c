/* Folds (reductions): sums, products, maximum, minimum, any and all.
 *
 * By rows: one result at a time. The block runs along the folded elements and every
 * lane keeps a separate state; at the end the lanes are combined pairwise.
 * By columns: a block of results at a time, one lane each, one folded element after
 * the other; for folds whose elements are contiguous across results.
 *
 * A long fold with few results is split into parts whose length depends on sizes
 * only; their states are combined in order. */
#include "codegen/chain_ctx.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "graph/scalar.h"

/* --------------------------------------------------------------- states ---- */

/* The dtype of the state in the lanes, for values that are floats in a tile: f32 for
 * maximum and minimum (any and all are those of 0 and 1), f64 for sums. */
typedef enum fold_lanes { FOLD_F32, FOLD_F64, FOLD_INT } fold_lanes;

static fold_lanes lanes_of(const mica__chain *chain)
{
    switch (chain_class_of(chain->fold_in)) {
    case CHAIN_INT:
    case CHAIN_LONG: return FOLD_INT;
    case CHAIN_DOUBLE: return FOLD_F64;
    default: return chain->fold_op == MICA__OP_SUM || chain->fold_op == MICA__OP_PROD ? FOLD_F64 : FOLD_F32;
    }
}

/* The result of an empty fold, in the dtype of the lanes. */
static mica__chain_part identity_of(const mica__chain *chain)
{
    const mica__number id = mica__scalar_identity(chain->fold_op, chain->fold_in);
    const bool in_i =
        !mica__is_float(chain->fold_in) || chain->fold_op == MICA__OP_ANY || chain->fold_op == MICA__OP_ALL;
    mica__chain_part part;
    if (lanes_of(chain) == FOLD_INT) part.i = id.i;
    else part.f = in_i ? (double)id.i : id.f;
    return part;
}

static mica__chain_part lane_get(const mica__chain *chain, const chain_lanes *lanes, int64_t lane)
{
    mica__chain_part part;
    switch (lanes_of(chain)) {
    case FOLD_INT: part.i = lanes->i[lane]; break;
    case FOLD_F64: part.f = lanes->d[lane]; break;
    default: part.f = (double)lanes->f[lane]; break;
    }
    return part;
}

static void lanes_clear(const mica__chain *chain, chain_lanes *lanes)
{
    const mica__chain_part id = identity_of(chain);
    const int64_t block = chain->block;
    switch (lanes_of(chain)) {
    case FOLD_INT:
        for (int64_t i = 0; i < block; i++) lanes->i[i] = id.i;
        break;
    case FOLD_F64:
        for (int64_t i = 0; i < block; i++) lanes->d[i] = id.f;
        break;
    default:
        for (int64_t i = 0; i < block; i++) lanes->f[i] = (float)id.f;
        break;
    }
}

static mica__chain_part combine(const mica__chain *chain, mica__chain_part a, mica__chain_part b)
{
    const bool is_int = lanes_of(chain) == FOLD_INT;
    mica__chain_part r;
    if (is_int) {
        const mica__number x = {0.0, a.i}, y = {0.0, b.i};
        r.i = mica__scalar_fold(chain->fold_op, chain->fold_in, x, y).i;
        return r;
    }
    switch ((int)chain->fold_op) {
    case MICA__OP_SUM: r.f = a.f + b.f; break;
    case MICA__OP_PROD: r.f = a.f * b.f; break;
    case MICA__OP_MIN:
    case MICA__OP_ALL: r.f = isnan(a.f) || a.f < b.f ? a.f : b.f; break;
    default: r.f = isnan(a.f) || a.f > b.f ? a.f : b.f; break; /* MAX, ANY */
    }
    return r;
}

/* Combines the lanes of a row pairwise. Lanes from `used` on are unused. */
static mica__chain_part lanes_combine(const mica__chain *chain, chain_lanes *lanes, int64_t used)
{
    const int64_t block = chain->block;
    if (lanes_of(chain) == FOLD_F64 && chain->fold_op == MICA__OP_SUM) {
        for (int64_t half = block / 2; half > 0; half /= 2)
            for (int64_t i = 0; i < half && i + half < used; i++) lanes->d[i] += lanes->d[i + half];
        return (mica__chain_part){.f = lanes->d[0]};
    }
    if (lanes_of(chain) == FOLD_F32) {
        const bool least = chain->fold_op == MICA__OP_MIN || chain->fold_op == MICA__OP_ALL;
        float x = lanes->f[0];
        for (int64_t i = 1; i < mica__min_i64(block, used); i++) {
            const float y = lanes->f[i];
            if (!isnan(x) && !(least ? x < y : x > y)) x = y;
        }
        return (mica__chain_part){.f = (double)x};
    }
    mica__chain_part sum = lane_get(chain, lanes, 0);
    for (int64_t i = 1; i < mica__min_i64(block, used); i++) sum = combine(chain, sum, lane_get(chain, lanes, i));
    return sum;
}

/* Stores the state as an element of the fold's tile, rounded once. */
static void put_folded(const mica__chain *chain, chain_ctx *c, int64_t lane, mica__chain_part part)
{
    const mica_dtype out = chain->fold_out;
    const bool is_int = lanes_of(chain) == FOLD_INT;
    mica__number x = {0.0, 0};
    if (out == MICA_BOOL) x.i = is_int ? part.i != 0 : part.f != 0.0;
    else if (mica__is_float(out)) x.f = out == MICA_F32 || out == MICA_F64 ? part.f : mica__round_f64(out, part.f);
    else x.i = mica__wrap_i64(out, is_int ? part.i : (int64_t)part.f); /* a sum of bools */
    mica__chain_put(c->tile + chain->tile_at[chain->fold_cell], out, lane, x);
}

/* -------------------------------------------------------------- folding ---- */

/* The operands at one element of the loops that are not walked. */
typedef struct fold_across {
    char *base[CHAIN_MAX_USES];
    int64_t coord[MICA_MAX_DIMS];
} fold_across;

static void across_begin(const mica__chain_run *run, chain_ctx *c, fold_across *a)
{
    const chain_program *p = &run->chain->before;
    mica__chain_bind(run, p, c);
    memcpy(a->base, c->base, p->n_use * sizeof a->base[0]);
}

/* Sets c->base to element `flat`. */
static void across_seek(const mica__chain *chain, chain_ctx *c, fold_across *a, int64_t flat)
{
    const chain_program *p = &chain->before;
    for (int d = chain->n_across; d-- > 1;) {
        a->coord[d] = flat % chain->across_size[d];
        flat /= chain->across_size[d];
    }
    a->coord[0] = flat;
    for (uint32_t u = 0; u < p->n_use; u++) {
        int64_t at = 0;
        for (int d = 0; d < chain->n_across; d++) at += a->coord[d] * p->use[u].across[d];
        c->base[u] = mica__chain_at(a->base[u], at);
    }
}

/* Advances c->base to the next element. */
static void across_next(const mica__chain *chain, chain_ctx *c, fold_across *a)
{
    const chain_program *p = &chain->before;
    for (int d = chain->n_across - 1; d >= 0; d--) {
        const bool stays = ++a->coord[d] < chain->across_size[d] || d == 0;
        const int64_t far = stays ? 1 : 1 - a->coord[d];
        for (uint32_t u = 0; u < p->n_use; u++) c->base[u] = mica__chain_at(c->base[u], far * p->use[u].across[d]);
        if (stays) return;
        a->coord[d] = 0;
    }
}

static mica__chain_part fold_row(const mica__chain *chain, chain_ctx *c, int64_t result, int64_t begin, int64_t end)
{
    if (chain->plain) {
        const chain_f32 *x = (const chain_f32 *)c->base[0];
        return (mica__chain_part){.f = chain->variant->plain->rows[chain->fold_op](x + begin, end - begin)};
    }
    chain_lanes lanes;
    c->fold = &lanes;
    lanes_clear(chain, &lanes);
    c->origin = result * chain->folded;
    mica__chain_walk(chain, &chain->before, c, begin, end);
    return lanes_combine(chain, &lanes, end - begin);
}

/* States of n results in one row, from elements [begin, end) of each. */
static void fold_columns(const mica__chain *chain, chain_ctx *c, fold_across *a, int64_t first, int64_t n,
                         int64_t begin, int64_t end, mica__chain_part *part, int64_t step)
{
    const int64_t block = chain->block;
    chain_lanes *lanes = mica__scratch_alloc(CHAIN_FOLD_BLOCKS * sizeof *lanes);
    for (int64_t i = 0; i < n; i += block) lanes_clear(chain, &lanes[i / block]);
    across_seek(chain, c, a, begin);
    c->position_step = chain->folded;
    c->fold_step = 1;
    for (int64_t i = begin; i < end; i++) {
        c->fold = lanes;
        c->origin = i;
        mica__chain_walk(chain, &chain->before, c, first, first + n);
        if (i + 1 < end) across_next(chain, c, a);
    }
    c->position_step = 1;
    c->fold_step = 0;
    for (int64_t i = 0; i < n; i++) part[i * step] = lane_get(chain, &lanes[i / block], i % block);
    mica__scratch_release(lanes);
}

/* The same without a chain: sums of f32. */
static void add_plain_columns(const mica__chain *chain, chain_ctx *c, fold_across *a, int64_t first, int64_t n,
                              int64_t begin, int64_t end, mica__chain_part *part, int64_t step)
{
    enum { STATE_BYTES = CHAIN_FOLD_BLOCKS * CHAIN_MAX_BLOCK * sizeof(double) };
    double *state = mica__scratch_alloc(STATE_BYTES);
    memset(state, 0, STATE_BYTES);
    across_seek(chain, c, a, begin);
    const int64_t far = chain->before.use[0].across[0] / (int64_t)sizeof(float);
    const chain_f32 *x = (const chain_f32 *)c->base[0];
    chain->variant->plain->add_columns(state, x + first, far, end - begin, n);
    for (int64_t i = 0; i < n; i++) part[i * step].f = state[i];
    mica__scratch_release(state);
}

/* States of n results from elements [begin, end) of each, into part[i * step]. */
static void fold_states(const mica__chain *chain, chain_ctx *c, fold_across *a, int64_t first, int64_t n, int64_t begin,
                        int64_t end, mica__chain_part *part, int64_t step)
{
    if (chain->mode == CHAIN_FOLD_ROWS) {
        for (int64_t i = 0; i < n; i++) {
            if (i == 0) across_seek(chain, c, a, first);
            else across_next(chain, c, a);
            part[i * step] = fold_row(chain, c, first + i, begin, end);
        }
        return;
    }
    /* blocks do not span long rows: process one row at a time */
    const chain_program *p = &chain->before;
    const int64_t length = p->size[p->ndim - 1];
    for (int64_t i = 0, m; i < n; i += m) {
        m = mica__min_i64(n - i, CHAIN_FOLD_BLOCKS * chain->block);
        if (p->by_rows) m = mica__min_i64(m, length - (first + i) % length);
        if (chain->plain) add_plain_columns(chain, c, a, first + i, m, begin, end, part + i * step, step);
        else fold_columns(chain, c, a, first + i, m, begin, end, part + i * step, step);
    }
}

/* Runs the program after the fold for a block of results. */
static void run_after(const mica__chain_run *run, chain_ctx *c, int64_t first, int64_t n, const mica__chain_part *part)
{
    const mica__chain *chain = run->chain;
    for (int64_t i = 0; i < n; i++) put_folded(chain, c, i, part[i]);
    mica__chain_bind(run, &chain->main, c);
    c->origin = 0;
    mica__chain_walk(chain, &chain->main, c, first, first + n);
}

void mica__chain_fold_range(const mica__chain_run *run, chain_ctx *c, int64_t begin, int64_t end)
{
    const mica__chain *chain = run->chain;
    const int64_t many = chain->mode == CHAIN_FOLD_COLUMNS ? CHAIN_FOLD_BLOCKS * chain->block : chain->block;
    mica__chain_part *part = mica__scratch_alloc(CHAIN_FOLD_BLOCKS * CHAIN_MAX_BLOCK * sizeof *part);
    fold_across a;
    for (int64_t first = begin, n; first < end; first += n) {
        n = mica__min_i64(many, end - first);
        across_begin(run, c, &a);
        fold_states(chain, c, &a, first, n, 0, chain->folded, part, 1);
        for (int64_t i = 0; i < n; i += chain->block)
            run_after(run, c, first + i, mica__min_i64(chain->block, n - i), part + i);
    }
    mica__scratch_release(part);
}

/* ---------------------------------------------------------------- parts ---- */

void mica__chain_fold_part(const mica__chain_run *run, chain_ctx *c, int64_t task)
{
    const mica__chain *chain = run->chain;
    const int64_t length = (chain->folded + chain->parts - 1) / chain->parts;
    const int64_t number = task % chain->parts, first = task / chain->parts * chain->task_size;
    const int64_t n = mica__min_i64(chain->task_size, chain->outer - first);
    const int64_t begin = mica__min_i64(chain->folded, number * length);
    const int64_t end = mica__min_i64(chain->folded, begin + length);
    fold_across a;
    across_begin(run, c, &a);
    fold_states(chain, c, &a, first, n, begin, end, run->part + first * chain->parts + number, chain->parts);
}

void mica__chain_fold_join(const mica__chain_run *run, chain_ctx *c)
{
    const mica__chain *chain = run->chain;
    mica__chain_part state[CHAIN_MAX_BLOCK];
    for (int64_t first = 0, n; first < chain->outer; first += n) {
        n = mica__min_i64(chain->block, chain->outer - first);
        for (int64_t i = 0; i < n; i++) {
            const mica__chain_part *part = run->part + (first + i) * chain->parts;
            state[i] = part[0];
            for (int64_t p = 1; p < chain->parts; p++) state[i] = combine(chain, state[i], part[p]);
        }
        run_after(run, c, first, n, state);
    }
}
