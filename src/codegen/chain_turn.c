/* Transposed operands: neighbours along a row are far apart, and neighbours from row
 * to row are contiguous. For each element of a row a whole cache line of such an
 * operand is read, for as many rows as a line has elements. This panel is transposed
 * in registers and packed row by row into a few KB that stay in the first-level cache.
 * The rows then run as if the operand were row-major.
 *
 * Lines that are a power of two apart share few sets of a cache. Each line is used
 * completely at once, so that costs nothing, but hardware does not prefetch the next
 * one: it is prefetched while the previous panel runs. */
#include "codegen/chain_ctx.h"

#include "base/checked.h"
#include "simd/transpose.h"

static void fetch_lines(const char *at, int64_t step, int64_t n)
{
    for (int64_t i = 0; i < n; i++) __builtin_prefetch(at + i * step, 0, 2);
}

/* Prefetches results that stay in the caches: their rows are far apart as well. */
static void fetch_results(const chain_program *p, const chain_row *row, int64_t rows, int64_t n)
{
    for (uint32_t u = p->n_load; u < p->n_use && !p->stream; u++)
        for (int64_t r = 0; r < rows && row->stride[u] == p->use[u].size; r++)
            fetch_lines(row->at[u] + r * p->use[u].stride[p->ndim - 2], CHAIN_LINE,
                        (n * p->use[u].size + CHAIN_LINE - 1) / CHAIN_LINE);
}

int64_t mica__chain_run_panel(const mica__chain *chain, const chain_program *p, chain_ctx *c, const chain_position *pos,
                              int64_t rows)
{
    const int inner = p->ndim - 1, outer = inner - 1;
    const int64_t length = p->size[inner], width = CHAIN_PANEL_BLOCKS * chain->block;
    const int64_t left = mica__min_i64(rows, p->size[outer] - pos->coord[outer]);
    const int64_t together = mica__min_i64(left, p->panel_rows), first = c->position;
    chain_row row;
    for (int64_t j = 0; j < length; j += width) {
        const int64_t n = mica__min_i64(width, length - j), next = mica__min_i64(width, length - j - n);
        char *panel = c->tile + p->panel_at;
        for (uint32_t u = 0; u < p->n_use; u++) {
            const chain_use *use = &p->use[u];
            const int64_t step = use->stride[inner];
            row.at[u] = mica__chain_at(c->base[u], pos->at[u] + j * step);
            row.stride[u] = step;
            if (!use->turned) continue;
            fetch_lines(row.at[u] + n * step, step, next);
            mica__transpose_block(use->size, row.at[u], step, panel, width * use->size, n, together);
            row.at[u] = panel;
            row.stride[u] = use->size;
            panel += CHAIN_LINE * width;
        }
        fetch_results(p, &row, together, n);
        for (int64_t r = 0; r < together; r++) {
            c->position = first + (r * length + j) * c->position_step;
            mica__chain_run_row(chain, p, c, &row, n, true);
            for (uint32_t u = 0; u < p->n_use; u++)
                row.at[u] =
                    mica__chain_at(row.at[u], p->use[u].turned ? width * p->use[u].size : p->use[u].stride[outer]);
        }
    }
    return together;
}
