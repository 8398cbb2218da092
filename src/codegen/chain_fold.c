/* Folds: sums, products, extremes, any and all.
 *
 * By rows: one result at a time, the block runs along the folded elements and
 * every lane keeps a state of its own; at the end the lanes are combined two by
 * two. By columns: a block of results at a time, a lane each, one folded element
 * after the other; for folds whose elements lie side by side across results.
 *
 * A long fold with few results is cut into parts of a length that depends on
 * sizes only; their states are combined in order. */
#include "codegen/chain_ctx.h"

#include <math.h>

#include "base/checked.h"
#include "graph/scalar.h"

/* --------------------------------------------------------------- states ---- */

/* How the lanes hold the state: floats for extremes of what is float in a tile
 * (any and all are extremes of 0 and 1), doubles for sums of it. */
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

/* What an empty fold gives, in the form of the lanes. */
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

static mica__chain_part lane_get(const mica__chain *chain, const chain_ctx *c, int64_t lane)
{
    mica__chain_part part;
    switch (lanes_of(chain)) {
    case FOLD_INT: part.i = c->fold.i[lane]; break;
    case FOLD_F64: part.f = c->fold.d[lane]; break;
    default: part.f = (double)c->fold.f[lane]; break;
    }
    return part;
}

static void lanes_clear(const mica__chain *chain, chain_ctx *c)
{
    const mica__chain_part id = identity_of(chain);
    const int64_t block = chain->table->block;
    switch (lanes_of(chain)) {
    case FOLD_INT:
        for (int64_t i = 0; i < block; i++) c->fold.i[i] = id.i;
        break;
    case FOLD_F64:
        for (int64_t i = 0; i < block; i++) c->fold.d[i] = id.f;
        break;
    default:
        for (int64_t i = 0; i < block; i++) c->fold.f[i] = (float)id.f;
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

/* The lanes of a row, two by two. Lanes from `used` on were never touched. */
static mica__chain_part lanes_combine(const mica__chain *chain, chain_ctx *c, int64_t used)
{
    const int64_t block = chain->table->block;
    if (lanes_of(chain) == FOLD_F64 && chain->fold_op == MICA__OP_SUM) {
        for (int64_t half = block / 2; half > 0; half /= 2)
            for (int64_t i = 0; i < half && i + half < used; i++) c->fold.d[i] += c->fold.d[i + half];
        return (mica__chain_part){.f = c->fold.d[0]};
    }
    if (lanes_of(chain) == FOLD_F32) {
        const bool least = chain->fold_op == MICA__OP_MIN || chain->fold_op == MICA__OP_ALL;
        float x = c->fold.f[0];
        for (int64_t i = 1; i < mica__min_i64(block, used); i++) {
            const float y = c->fold.f[i];
            if (!isnan(x) && !(least ? x < y : x > y)) x = y;
        }
        return (mica__chain_part){.f = (double)x};
    }
    mica__chain_part sum = lane_get(chain, c, 0);
    for (int64_t i = 1; i < mica__min_i64(block, used); i++) sum = combine(chain, sum, lane_get(chain, c, i));
    return sum;
}

/* The state as an element of the fold's tile, rounded once. */
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

/* Where the operands are at element `flat` of the loops that are not walked. */
static void bind_across(const mica__chain *chain, chain_ctx *c, char *const *base, int64_t *iota, int64_t flat)
{
    const chain_program *p = &chain->before;
    int64_t coord[MICA_MAX_DIMS];
    for (int d = chain->n_across; d-- > 1;) {
        coord[d] = flat % chain->across_size[d];
        flat /= chain->across_size[d];
    }
    coord[0] = flat;
    for (uint32_t u = 0; u < p->n_use; u++) {
        int64_t at = 0;
        for (int d = 0; d < chain->n_across; d++) at += coord[d] * p->use[u].across[d];
        if (p->use[u].iota) iota[u] = at;
        else c->base[u] = base[u] + at;
    }
}

/* An IOTA has no base: what is across goes into its position. */
static void shift_iota(const chain_program *p, const int64_t *iota, chain_position *pos)
{
    for (uint32_t u = 0; u < p->n_load; u++)
        if (p->use[u].iota) pos->at[u] += iota[u];
}

static bool has_iota(const chain_program *p)
{
    for (uint32_t u = 0; u < p->n_load; u++)
        if (p->use[u].iota) return true;
    return false;
}

static mica__chain_part fold_row(const mica__chain *chain, chain_ctx *c, char *const *base, int64_t result,
                                 int64_t begin, int64_t end)
{
    const chain_program *p = &chain->before;
    int64_t iota[CHAIN_MAX_USES];
    bind_across(chain, c, base, iota, result);
    lanes_clear(chain, c);
    c->origin = result * chain->folded;
    c->position_step = 1;
    if (!has_iota(p)) {
        mica__chain_walk(chain, p, c, begin, end);
    } else if (begin < end) {
        chain_position pos;
        mica__chain_seek(p, begin, &pos);
        shift_iota(p, iota, &pos);
        for (int64_t i = begin, n; i < end; i += n) {
            n = mica__min_i64(chain->table->block, end - i);
            c->position = c->origin + i;
            mica__chain_block(chain, p, c, &pos, n);
        }
    }
    return lanes_combine(chain, c, end - begin);
}

/* Lanes 0 ... n-1 become the states of results first ... first+n-1. */
static void fold_columns(const mica__chain *chain, chain_ctx *c, char *const *base, int64_t first, int64_t n,
                         int64_t begin, int64_t end)
{
    const chain_program *p = &chain->before;
    int64_t iota[CHAIN_MAX_USES];
    chain_position start, pos;
    lanes_clear(chain, c);
    mica__chain_seek(p, first, &start);
    c->position_step = chain->folded;
    for (int64_t i = begin; i < end; i++) {
        mica__chain_copy_position(p, &start, &pos);
        bind_across(chain, c, base, iota, i);
        shift_iota(p, iota, &pos);
        c->position = first * chain->folded + i;
        mica__chain_block(chain, p, c, &pos, n);
    }
}

/* States of n results from elements [begin, end) of each, into part[i * step]. */
static void fold_states(const mica__chain *chain, chain_ctx *c, char *const *base, int64_t first, int64_t n,
                        int64_t begin, int64_t end, mica__chain_part *part, int64_t step)
{
    if (chain->mode == CHAIN_FOLD_COLUMNS) fold_columns(chain, c, base, first, n, begin, end);
    for (int64_t i = 0; i < n; i++)
        part[i * step] =
            chain->mode == CHAIN_FOLD_COLUMNS ? lane_get(chain, c, i) : fold_row(chain, c, base, first + i, begin, end);
}

/* What comes after the fold, for a block of results. */
static void run_after(const mica__chain_run *run, chain_ctx *c, int64_t first, int64_t n, const mica__chain_part *part)
{
    const mica__chain *chain = run->chain;
    chain_position pos;
    for (int64_t i = 0; i < n; i++) put_folded(chain, c, i, part[i]);
    mica__chain_bind(run, &chain->main, c);
    mica__chain_seek(&chain->main, first, &pos);
    c->position = first;
    c->position_step = 1;
    mica__chain_block(chain, &chain->main, c, &pos, n);
}

static void save_bases(const mica__chain_run *run, chain_ctx *c, char **base)
{
    const chain_program *p = &run->chain->before;
    mica__chain_bind(run, p, c);
    for (uint32_t u = 0; u < p->n_use; u++) base[u] = c->base[u];
}

void mica__chain_fold_range(const mica__chain_run *run, chain_ctx *c, int64_t begin, int64_t end)
{
    const mica__chain *chain = run->chain;
    char *base[CHAIN_MAX_USES];
    mica__chain_part part[CHAIN_MAX_BLOCK];
    save_bases(run, c, base);
    for (int64_t first = begin, n; first < end; first += n) {
        n = mica__min_i64(chain->table->block, end - first);
        fold_states(chain, c, base, first, n, 0, chain->folded, part, 1);
        run_after(run, c, first, n, part);
    }
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
    char *base[CHAIN_MAX_USES];
    save_bases(run, c, base);
    fold_states(chain, c, base, first, n, begin, end, run->part + first * chain->parts + number, chain->parts);
}

void mica__chain_fold_join(const mica__chain_run *run, chain_ctx *c)
{
    const mica__chain *chain = run->chain;
    mica__chain_part state[CHAIN_MAX_BLOCK];
    for (int64_t first = 0, n; first < chain->outer; first += n) {
        n = mica__min_i64(chain->table->block, chain->outer - first);
        for (int64_t i = 0; i < n; i++) {
            const mica__chain_part *part = run->part + (first + i) * chain->parts;
            state[i] = part[0];
            for (int64_t p = 1; p < chain->parts; p++) state[i] = combine(chain, state[i], part[p]);
        }
        run_after(run, c, first, n, state);
    }
}
