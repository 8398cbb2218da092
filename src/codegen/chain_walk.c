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

/* n elements on, within a row or to the beginning of the next. */
static void position_advance(const chain_program *p, chain_position *pos, int64_t n)
{
    int d = p->ndim - 1;
    pos->coord[d] += n;
    for (uint32_t u = 0; u < p->n_use; u++) pos->at[u] += n * p->use[u].stride[d];
    if (pos->coord[d] < p->size[d]) return;
    pos->moved = true;
    for (; d > 0 && pos->coord[d] == p->size[d]; d--) {
        pos->coord[d] = 0;
        pos->coord[d - 1]++;
        for (uint32_t u = 0; u < p->n_use; u++)
            pos->at[u] += p->use[u].stride[d - 1] - p->size[d] * p->use[u].stride[d];
    }
}

/* Elements of use u, from `at` on, into or out of its tile from lane on. */
static void move_lanes(const chain_program *p, chain_ctx *c, uint32_t u, const char *tile, int64_t lane, int64_t at,
                       int64_t n)
{
    const chain_use *use = &p->use[u];
    const int64_t stride = use->stride[p->ndim - 1];
    char *to = (char *)(uintptr_t)tile + lane * use->tile_bytes;
    if (use->iota) mica__chain_iota(to, use->iota, at, stride, n);
    else use->move(to, c->base[u] + at, stride, n);
}

/* All of the block lies in one row. */
static void gather_row(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos, int64_t n)
{
    const int64_t block = chain->table->block;
    for (uint32_t u = 0; u < p->n_use; u++) {
        const chain_use *use = &p->use[u];
        char *tile = c->tile + chain->tile_at[use->cell];
        if (use->direct && n == block) {
            c->ptr[use->cell] = c->base[u] + pos->at[u];
            continue;
        }
        c->ptr[use->cell] = tile;
        if (use->store) continue;
        /* what does not move along the row is put in place once */
        if (use->stride[p->ndim - 1] != 0) move_lanes(p, c, u, tile, 0, pos->at[u], n);
        else if (pos->moved) move_lanes(p, c, u, tile, 0, pos->at[u], block);
    }
}

static void scatter_row(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos, int64_t n)
{
    for (uint32_t u = p->n_load; u < p->n_use; u++) {
        const char *tile = c->tile + chain->tile_at[p->use[u].cell];
        if (c->ptr[p->use[u].cell] == tile) move_lanes(p, c, u, tile, 0, pos->at[u], n);
    }
}

/* The block spans rows: loads (or, the second time, stores) row by row. */
static void move_rows(const mica__chain *chain, const chain_program *p, chain_ctx *c, chain_position *pos, int64_t n,
                      bool stores)
{
    const int inner = p->ndim - 1;
    const uint32_t first = stores ? p->n_load : 0, last = stores ? p->n_use : p->n_load;
    for (int64_t lane = 0; lane < n;) {
        const int64_t length = mica__min_i64(n - lane, p->size[inner] - pos->coord[inner]);
        for (uint32_t u = first; u < last; u++) {
            const chain_use *use = &p->use[u];
            const char *tile = c->tile + chain->tile_at[use->cell];
            c->ptr[use->cell] = (char *)(uintptr_t)tile;
            if (!use->flat) move_lanes(p, c, u, tile, lane, pos->at[u], length);
            else if (lane == 0) move_lanes(p, c, u, tile, 0, pos->at[u], n);
        }
        position_advance(p, pos, length);
        lane += length;
    }
    pos->moved = true;
}

void mica__chain_block(const mica__chain *chain, const chain_program *p, chain_ctx *c, chain_position *pos, int64_t n)
{
    const int inner = p->ndim - 1;
    c->n = n;
    if (n <= p->size[inner] - pos->coord[inner]) {
        gather_row(chain, p, c, pos, n);
        pos->moved = false;
        chain->table->run(p->op, c);
        scatter_row(chain, p, c, pos, n);
        position_advance(p, pos, n);
        return;
    }
    chain_position again;
    mica__chain_copy_position(p, pos, &again);
    for (uint32_t u = p->n_load; u < p->n_use; u++) c->ptr[p->use[u].cell] = c->tile + chain->tile_at[p->use[u].cell];
    move_rows(chain, p, c, pos, n, false);
    chain->table->run(p->op, c);
    if (p->n_load < p->n_use) move_rows(chain, p, c, &again, n, true);
}

/* One loop, whole blocks: only pointers move. Returns where it stopped. */
static int64_t walk_simple(const mica__chain *chain, const chain_program *p, chain_ctx *c, int64_t begin, int64_t end)
{
    const int64_t block = chain->table->block;
    if (end - begin < block) return begin;
    chain_position pos;
    mica__chain_seek(p, begin, &pos);
    gather_row(chain, p, c, &pos, block);
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
