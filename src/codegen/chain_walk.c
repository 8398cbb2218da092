/* Walks a program along its loops, a block at a time: sets the cells to the
 * operands, gathers operands that are not contiguous into tiles, runs the chain,
 * scatters results.
 *
 * Along a long row only pointers move from block to block, and the remainder at its
 * end is a partial block. If rows are short, a block holds consecutive elements of
 * several rows in row-major order. */
#include <string.h>

#include "codegen/chain_ctx.h"

#include "base/checked.h"
#include "base/scratch.h"

void mica__chain_begin(const mica__chain_run *run, chain_ctx *c)
{
    const mica__chain *chain = run->chain;
    for (uint32_t i = 0; i < chain->n_cell; i++) c->ptr[i] = c->tile + chain->tile_at[i];
    for (uint32_t i = 0; i < chain->n_constant; i++) {
        const chain_const *k = &chain->constant[i];
        mica__chain_splat(c->ptr[k->cell], k->dtype, k->value, chain->block);
    }
    c->fault = run->fault;
    c->origin = c->position = 0;
    c->position_step = 1;
    c->stream = false;
    c->fold = NULL;
    c->fold_step = 0;
}

void mica__chain_bind(const mica__chain_run *run, const chain_program *p, chain_ctx *c)
{
    for (uint32_t u = 0; u < p->n_use; u++)
        c->base[u] = p->use[u].iota ? NULL : run->block[p->use[u].block] + p->use[u].offset;
}

/* ------------------------------------------------------------- positions --- */

void mica__chain_seek(const chain_program *p, int64_t flat, chain_position *pos)
{
    for (int d = p->ndim; d-- > 1;) {
        pos->coord[d] = flat % p->size[d];
        flat /= p->size[d];
    }
    pos->coord[0] = flat;
    for (uint32_t u = 0; u < p->n_use; u++) {
        pos->at[u] = p->use[u].iota ? p->use[u].offset : 0;
        for (int d = 0; d < p->ndim; d++) pos->at[u] += pos->coord[d] * p->use[u].stride[d];
    }
    pos->moved = true;
}

void mica__chain_advance(const chain_program *p, chain_position *pos, int64_t n)
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

/* Address of element i of a use along a row. */
static char *row_at(const chain_row *row, uint32_t u, int64_t i)
{
    return mica__chain_at(row->at[u], i * row->stride[u]);
}

/* Moves n elements of a use between the array and its tile. */
static void move_lanes(const chain_use *use, char *tile, char *at, int64_t stride, int64_t n)
{
    if (use->iota) mica__chain_iota(tile, use->iota, (int64_t)(intptr_t)at, stride, n);
    else if (use->store) mica__chain_drain(use->size, tile, at, stride, n);
    else mica__chain_fill(use->size, tile, at, stride, n);
}

/* --------------------------------------------------------------- one row --- */

/* The operands of a row that need work for each block, besides advancing a pointer. */
typedef struct row_uses {
    uint32_t n_fill, n_drain;
    uint16_t fill[CHAIN_MAX_USES];     /* gathered into a tile                               */
    uint16_t drain[CHAIN_MAX_USES];    /* scattered from one                                 */
} row_uses;

static void sort_uses(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_row *row, bool fresh,
                      row_uses *r)
{
    r->n_fill = r->n_drain = c->n_step = 0;
    for (uint32_t u = 0; u < p->n_use; u++) {
        const chain_use *use = &p->use[u];
        char *tile = c->tile + chain->tile_at[use->cell];
        const bool direct = !use->iota && row->stride[u] == use->size;
        c->ptr[use->cell] = direct ? row->at[u] : tile;
        if (direct) {
            c->step_cell[c->n_step] = use->cell;
            c->step_bytes[c->n_step++] = (uint16_t)(chain->block * use->size);
        } else if (use->store) {
            r->drain[r->n_drain++] = (uint16_t)u;
        } else if (row->stride[u] != 0) {
            r->fill[r->n_fill++] = (uint16_t)u;
        } else if (fresh) {
            move_lanes(use, tile, row->at[u], 0, chain->block);
        }
    }
}

static void run_whole_blocks(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_row *row,
                             int64_t n, const row_uses *r)
{
    const int64_t block = chain->block;
    c->n = block;
    if (r->n_fill == 0 && r->n_drain == 0 && !c->fold_step) {
        c->left = n / block;
        chain->table->run(p->op, c);
        c->position += block * c->position_step;
        return;
    }
    for (int64_t i = 0; i < n; i += block) {
        for (uint32_t k = 0; k < r->n_fill; k++) {
            const uint32_t u = r->fill[k];
            move_lanes(&p->use[u], c->ptr[p->use[u].cell], row_at(row, u, i), row->stride[u], block);
        }
        c->left = 1;
        chain->table->run(p->op, c);
        for (uint32_t k = 0; k < r->n_drain; k++) {
            const uint32_t u = r->drain[k];
            move_lanes(&p->use[u], c->ptr[p->use[u].cell], row_at(row, u, i), row->stride[u], block);
        }
        for (uint32_t k = 0; k < c->n_step; k++) c->ptr[c->step_cell[k]] += c->step_bytes[k];
        c->position += block * c->position_step;
        if (c->fold_step) c->fold += c->fold_step;
    }
}

/* Runs a partial block from element i of the row on, with all operands in tiles. */
static void run_part_block(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_row *row,
                           int64_t i, int64_t n)
{
    c->n = n;
    for (uint32_t u = 0; u < p->n_use; u++) {
        const chain_use *use = &p->use[u];
        char *tile = c->tile + chain->tile_at[use->cell];
        c->ptr[use->cell] = tile;
        if (!use->store && row->stride[u] != 0) move_lanes(use, tile, row_at(row, u, i), row->stride[u], n);
    }
    c->left = 1;
    chain->table->run(p->op, c);
    for (uint32_t u = p->n_load; u < p->n_use; u++)
        move_lanes(&p->use[u], c->ptr[p->use[u].cell], row_at(row, u, i), row->stride[u], n);
    c->position += n * c->position_step;
    if (c->fold_step) c->fold += c->fold_step;
}

/* Number of elements before the first result that starts a cache line; 0 if there is
 * none. Only 4-byte results are streamed, so it is less than a block. */
static int64_t elements_to_line(const chain_program *p, const chain_row *row)
{
    for (uint32_t u = p->n_load; u < p->n_use; u++) {
        const int64_t size = p->use[u].size;
        if (size != 4 || row->stride[u] != size) continue;
        const int64_t past = (int64_t)((uintptr_t)row->at[u] % CHAIN_LINE);
        return past % size ? 0 : (CHAIN_LINE - past) % CHAIN_LINE / size;
    }
    return 0;
}

void mica__chain_run_row(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_row *row,
                         int64_t n, bool fresh)
{
    const int64_t block = chain->block;
    chain_row moved;
    row_uses r;
    sort_uses(chain, p, c, row, fresh, &r);
    if (p->stream && n >= 2 * block) {
        const int64_t first = elements_to_line(p, row);
        if (first) {
            run_part_block(chain, p, c, row, 0, first);
            for (uint32_t u = 0; u < p->n_use; u++) {
                moved.at[u] = row_at(row, u, first);
                moved.stride[u] = row->stride[u];
            }
            row = &moved;
            n -= first;
            sort_uses(chain, p, c, row, false, &r);
        }
        c->stream = true;
    }
    const int64_t whole = n - n % block;
    if (whole) run_whole_blocks(chain, p, c, row, whole, &r);
    c->stream = false;
    if (n > whole) run_part_block(chain, p, c, row, whole, n - whole);
}

static void run_row_at(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos,
                       int64_t n)
{
    chain_row row;
    for (uint32_t u = 0; u < p->n_use; u++) {
        row.at[u] = mica__chain_at(c->base[u], pos->at[u]);
        row.stride[u] = p->use[u].stride[p->ndim - 1];
    }
    mica__chain_run_row(chain, p, c, &row, n, pos->moved);
}

/* ------------------------------------------- blocks that span short rows --- */

/* Moves from the end of a row to the start of the next; returns the distance. */
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

/* Loads rows of a few elements one by one, without a call for each row. */
static inline void load_elements(const chain_program *p, const chain_use *use, const char *base, int64_t *coord,
                                 int64_t at, int64_t n, size_t size, char *tile)
{
    const int inner = p->ndim - 1;
    int64_t in_row = coord[inner];
    for (int64_t lane = 0; lane < n; lane++) {
        memcpy(tile + (size_t)lane * size, base + at, size);
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
    switch (use->size) {
    case 1: load_elements(p, use, c->base[u], coord, at, n, 1, tile); break;
    case 2: load_elements(p, use, c->base[u], coord, at, n, 2, tile); break;
    case 4: load_elements(p, use, c->base[u], coord, at, n, 4, tile); break;
    default: load_elements(p, use, c->base[u], coord, at, n, 8, tile); break;
    }
}

/* Moves the elements of a block that spans rows, row by row. */
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
        move_lanes(use, tile + lane * use->size, mica__chain_at(c->base[u], at), use->stride[inner], length);
        lane += length;
        coord[inner] += length;
        at += length * use->stride[inner];
        if (coord[inner] == p->size[inner]) {
            coord[inner] = 0;
            at += next_row(p, use, coord);
        }
    }
}

/* Sets every cell to its elements. one_row: the block is inside one row. */
static void gather(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos, int64_t n,
                   bool one_row)
{
    const int64_t block = chain->block;
    for (uint32_t u = 0; u < p->n_use; u++) {
        const chain_use *use = &p->use[u];
        const bool straight = one_row || use->flat;
        const int64_t stride = use->stride[p->ndim - 1];
        char *tile = c->tile + chain->tile_at[use->cell], *at = mica__chain_at(c->base[u], pos->at[u]);
        if (use->direct && straight && n == block) {
            c->ptr[use->cell] = at;
            continue;
        }
        c->ptr[use->cell] = tile;
        if (use->store) continue;
        /* operands that are constant along the row are filled in once */
        if (!straight) move_rows(p, c, u, tile, pos, n);
        else if (stride != 0) move_lanes(use, tile, at, stride, n);
        else if (pos->moved) move_lanes(use, tile, at, 0, block);
    }
}

/* Scatters the results that were not stored directly. */
static void scatter(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos,
                    int64_t n, bool one_row)
{
    for (uint32_t u = p->n_load; u < p->n_use; u++) {
        const chain_use *use = &p->use[u];
        char *tile = c->tile + chain->tile_at[use->cell];
        if (c->ptr[use->cell] != tile) continue;
        if (one_row || use->flat)
            move_lanes(use, tile, mica__chain_at(c->base[u], pos->at[u]), use->stride[p->ndim - 1], n);
        else move_rows(p, c, u, tile, pos, n);
    }
}

static void run_spanning_block(const mica__chain *chain, const chain_program *p, chain_ctx *c,
                               const chain_position *pos, int64_t n)
{
    const int inner = p->ndim - 1;
    const bool one_row = n <= p->size[inner] - pos->coord[inner];
    c->n = n;
    gather(chain, p, c, pos, n, one_row);
    c->left = 1;
    chain->table->run(p->op, c);
    scatter(chain, p, c, pos, n, one_row);
    if (c->fold_step) c->fold += c->fold_step;
}

/* --------------------------------------------------------------- ranges ---- */

void mica__chain_walk(const mica__chain *chain, const chain_program *p, chain_ctx *c, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    const int inner = p->ndim - 1;
    const int64_t length = p->size[inner];
    chain_position pos;
    mica__chain_seek(p, begin, &pos);
    while (begin < end) {
        int64_t n = end - begin;
        c->position = c->origin + begin * c->position_step;
        if (p->panel_rows && pos.coord[inner] == 0 && n >= 2 * length) {
            n = length * mica__chain_run_panel(chain, p, c, &pos, n / length);
        } else if (p->by_rows) {
            n = mica__min_i64(n, length - pos.coord[inner]);
            run_row_at(chain, p, c, &pos, n);
        } else {
            n = mica__min_i64(n, chain->block);
            run_spanning_block(chain, p, c, &pos, n);
        }
        pos.moved = false;
        begin += n;
        if (begin < end) mica__chain_advance(p, &pos, n);
    }
}

/* ----------------------------------------------------------------- runs ---- */

/* Streamed results are ordered with other stores only after this fence. */
static void finish_streams(const chain_program *p)
{
#if defined(__SSE2__)
    if (p->stream) __builtin_ia32_sfence();
#else
    (void)p;
#endif
}

void mica__chain_range(const mica__chain_run *run, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    chain_ctx *c = mica__scratch_alloc(sizeof *c);
    mica__chain_begin(run, c);
    if (run->chain->mode != CHAIN_NO_FOLD) {
        mica__chain_fold_range(run, c, begin, end);
    } else {
        mica__chain_bind(run, &run->chain->main, c);
        mica__chain_walk(run->chain, &run->chain->main, c, begin, end);
        finish_streams(&run->chain->main);
    }
    mica__scratch_release(c);
}

int64_t mica__chain_tasks(const mica__chain *chain) { return chain->tasks; }
int64_t mica__chain_parts(const mica__chain *chain) { return chain->parts; }

void mica__chain_task(const mica__chain_run *run, int64_t task)
{
    const mica__chain *chain = run->chain;
    if (chain->parts) {
        chain_ctx *c = mica__scratch_alloc(sizeof *c);
        mica__chain_begin(run, c);
        mica__chain_fold_part(run, c, task);
        mica__scratch_release(c);
    } else {
        const int64_t begin = task * chain->task_size;
        mica__chain_range(run, begin, mica__min_i64(chain->outer, begin + chain->task_size));
    }
}

void mica__chain_finish(const mica__chain_run *run)
{
    if (!run->chain->parts) return;
    chain_ctx *c = mica__scratch_alloc(sizeof *c);
    mica__chain_begin(run, c);
    mica__chain_fold_join(run, c);
    mica__scratch_release(c);
}
