/* Walking a program along its loops, a block at a time: point the cells at the
 * operands, gather what does not lie side by side into tiles, run the chain,
 * scatter results.
 *
 * A block holds consecutive elements of the loops in row-major order, so that it
 * is full even where rows are short: it may span several rows. */
#include <string.h>

#include "codegen/chain_ctx.h"

#include "base/checked.h"

void mica__chain_begin(const mica__chain_run *run, chain_ctx *c)
{
    const mica__chain *chain = run->chain;
    for (uint32_t i = 0; i < chain->n_cell; i++) c->ptr[i] = c->tile + chain->tile_at[i];
    for (uint32_t i = 0; i < chain->n_constant; i++) {
        const chain_const *k = &chain->constant[i];
        mica__chain_splat(c->ptr[k->cell], k->dtype, k->value, chain->table->block);
    }
    c->fault = run->fault;
    c->origin = c->position = 0;
    c->position_step = 1;
}

void mica__chain_bind(const mica__chain_run *run, const chain_program *p, chain_ctx *c)
{
    for (uint32_t u = 0; u < p->n_use; u++)
        c->base[u] = p->use[u].iota ? NULL : run->block[p->use[u].block] + p->use[u].offset;
}

void mica__chain_seek(const chain_program *p, int64_t flat, chain_position *pos)
{
    for (int d = p->ndim; d-- > 0;) {
        pos->coord[d] = flat % p->size[d];
        flat /= p->size[d];
    }
    for (uint32_t u = 0; u < p->n_use; u++) {
        pos->at[u] = p->use[u].iota ? p->use[u].offset : 0;
        for (int d = 0; d < p->ndim; d++) pos->at[u] += pos->coord[d] * p->use[u].stride[d];
    }
    pos->moved = true;
}

/* Most programs have a few operands, a position has room for many. */
void mica__chain_copy_position(const chain_program *p, const chain_position *from, chain_position *to)
{
    memcpy(to->coord, from->coord, (size_t)p->ndim * sizeof to->coord[0]);
    memcpy(to->at, from->at, p->n_use * sizeof to->at[0]);
    to->moved = from->moved;
}

static void position_advance(const chain_program *p, chain_position *pos, int64_t n)
{
    for (int d = p->ndim - 1; n != 0; d--) {
        const int64_t old = pos->coord[d], sum = old + n;
        const bool stays = sum < p->size[d] || d == 0;
        pos->coord[d] = stays ? sum : sum % p->size[d];
        n = stays ? 0 : sum / p->size[d];
        for (uint32_t u = 0; u < p->n_use; u++) pos->at[u] += (pos->coord[d] - old) * p->use[u].stride[d];
        if (!stays) pos->moved = true;
    }
}

/* ------------------------------------------------------------- operands ---- */

/* Elements of use u, neighbours along a row, into or out of its tile. */
static void move_lanes(const chain_program *p, chain_ctx *c, uint32_t u, char *tile, int64_t at, int64_t n)
{
    const chain_use *use = &p->use[u];
    const int64_t stride = use->stride[p->ndim - 1];
    if (use->iota) mica__chain_iota(tile, use->iota, at, stride, n);
    else use->move(tile, c->base[u] + at, stride, n);
}

/* From the end of a row to the beginning of the next; returns how far. */
static int64_t next_row(const chain_program *p, const chain_use *use, int64_t *coord)
{
    int d = p->ndim - 1;
    int64_t far = -p->size[d] * use->stride[d];
    while (d-- > 0) {
        far += use->stride[d];
        if (++coord[d] < p->size[d] || d == 0) break;
        coord[d] = 0;
        far -= p->size[d] * use->stride[d];
    }
    return far;
}

/* Rows of a few elements: one by one, without a call each. */
static inline void stage_elements(const chain_program *p, const chain_use *use, const char *base, int64_t *coord,
                                  int64_t at, int64_t n, size_t size, char *stage)
{
    const int inner = p->ndim - 1;
    int64_t in_row = coord[inner];
    for (int64_t lane = 0; lane < n; lane++) {
        memcpy(stage + (size_t)lane * size, base + at, size);
        at += use->stride[inner];
        if (++in_row == p->size[inner]) {
            in_row = 0;
            at += next_row(p, use, coord);
        }
    }
}

static void load_short_rows(const chain_program *p, chain_ctx *c, uint32_t u, char *tile, int64_t *coord, int64_t at,
                            int64_t n)
{
    const chain_use *use = &p->use[u];
    char stage[CHAIN_MAX_BLOCK * 8];
    switch (use->size) {
    case 1: stage_elements(p, use, c->base[u], coord, at, n, 1, stage); break;
    case 2: stage_elements(p, use, c->base[u], coord, at, n, 2, stage); break;
    case 4: stage_elements(p, use, c->base[u], coord, at, n, 4, stage); break;
    default: stage_elements(p, use, c->base[u], coord, at, n, 8, stage); break;
    }
    use->move(tile, stage, use->size, n);
}

/* The block spans rows: row by row. */
static void move_rows(const chain_program *p, chain_ctx *c, uint32_t u, char *tile, const chain_position *pos,
                      int64_t n)
{
    enum { SHORT_ROW = 12 };
    const chain_use *use = &p->use[u];
    const int inner = p->ndim - 1;
    int64_t coord[MICA_MAX_DIMS], at = pos->at[u];
    memcpy(coord, pos->coord, sizeof coord);
    if (!use->store && !use->iota && p->size[inner] <= SHORT_ROW) {
        load_short_rows(p, c, u, tile, coord, at, n);
        return;
    }
    for (int64_t lane = 0; lane < n;) {
        const int64_t length = mica__min_i64(n - lane, p->size[inner] - coord[inner]);
        move_lanes(p, c, u, tile + lane * use->tile_bytes, at, length);
        lane += length;
        coord[inner] += length;
        at += length * use->stride[inner];
        if (coord[inner] == p->size[inner]) {
            coord[inner] = 0;
            at += next_row(p, use, coord);
        }
    }
}

/* Point every cell at its elements. one_row: the block lies in one. */
static void gather(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos, int64_t n,
                   bool one_row)
{
    const int64_t block = chain->table->block;
    for (uint32_t u = 0; u < p->n_use; u++) {
        const chain_use *use = &p->use[u];
        const bool straight = one_row || use->flat;
        char *tile = c->tile + chain->tile_at[use->cell];
        if (use->direct && straight && n == block) {
            c->ptr[use->cell] = c->base[u] + pos->at[u];
            continue;
        }
        c->ptr[use->cell] = tile;
        if (use->store) continue;
        /* what does not move along the row is put in place once */
        if (!straight) move_rows(p, c, u, tile, pos, n);
        else if (use->stride[p->ndim - 1] != 0) move_lanes(p, c, u, tile, pos->at[u], n);
        else if (pos->moved) move_lanes(p, c, u, tile, pos->at[u], block);
    }
}

/* What was not stored in place. */
static void scatter(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos,
                    int64_t n, bool one_row)
{
    for (uint32_t u = p->n_load; u < p->n_use; u++) {
        char *tile = c->tile + chain->tile_at[p->use[u].cell];
        if (c->ptr[p->use[u].cell] != tile) continue;
        if (one_row || p->use[u].flat) move_lanes(p, c, u, tile, pos->at[u], n);
        else move_rows(p, c, u, tile, pos, n);
    }
}

void mica__chain_block(const mica__chain *chain, const chain_program *p, chain_ctx *c, chain_position *pos, int64_t n)
{
    const int inner = p->ndim - 1;
    const bool one_row = n <= p->size[inner] - pos->coord[inner];
    c->n = n;
    gather(chain, p, c, pos, n, one_row);
    chain->table->run(p->op, c);
    scatter(chain, p, c, pos, n, one_row);
    pos->moved = false;
    position_advance(p, pos, n);
}

/* --------------------------------------------------------------- ranges ---- */

/* One loop, whole blocks: only pointers move. Returns where it stopped. */
static int64_t walk_simple(const mica__chain *chain, const chain_program *p, chain_ctx *c, int64_t begin, int64_t end)
{
    const int64_t block = chain->table->block;
    if (end - begin < block) return begin;
    chain_position pos;
    mica__chain_seek(p, begin, &pos);
    gather(chain, p, c, &pos, block, true);
    c->n = block;
    for (; end - begin >= block; begin += block) {
        c->position = c->origin + begin;
        chain->table->run(p->op, c);
        for (uint32_t u = 0; u < p->n_use; u++) c->ptr[p->use[u].cell] += block * p->use[u].stride[0];
    }
    return begin;
}

void mica__chain_walk(const mica__chain *chain, const chain_program *p, chain_ctx *c, int64_t begin, int64_t end)
{
    if (p->simple) begin = walk_simple(chain, p, c, begin, end);
    if (begin >= end) return;
    chain_position pos;
    mica__chain_seek(p, begin, &pos);
    while (begin < end) {
        const int64_t n = mica__min_i64(chain->table->block, end - begin);
        c->position = c->origin + begin;
        mica__chain_block(chain, p, c, &pos, n);
        begin += n;
    }
}

/* ----------------------------------------------------------------- runs ---- */

void mica__chain_range(const mica__chain_run *run, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    chain_ctx c;
    mica__chain_begin(run, &c);
    if (run->chain->mode != CHAIN_NO_FOLD) {
        mica__chain_fold_range(run, &c, begin, end);
        return;
    }
    mica__chain_bind(run, &run->chain->main, &c);
    mica__chain_walk(run->chain, &run->chain->main, &c, begin, end);
}

int64_t mica__chain_tasks(const mica__chain *chain) { return chain->tasks; }
int64_t mica__chain_parts(const mica__chain *chain) { return chain->parts; }

void mica__chain_task(const mica__chain_run *run, int64_t task)
{
    const mica__chain *chain = run->chain;
    if (chain->parts) {
        chain_ctx c;
        mica__chain_begin(run, &c);
        mica__chain_fold_part(run, &c, task);
    } else {
        const int64_t begin = task * chain->task_size;
        mica__chain_range(run, begin, mica__min_i64(chain->outer, begin + chain->task_size));
    }
}

void mica__chain_finish(const mica__chain_run *run)
{
    if (!run->chain->parts) return;
    chain_ctx c;
    mica__chain_begin(run, &c);
    mica__chain_fold_join(run, &c);
}
