/* Large f32 products. C is split into regions; one thread computes a region. For each block of k it multiplies its
 * rows of A with each strip of B. Strips are packed, so that one streams through the L1 cache once per few rows.
 * Until the last block of k, sums are kept in separate contiguous tiles: rows of C may be a power of two apart, which
 * causes cache conflicts.
 *
 * Strips of B have one of three sources: a packed copy of the weight; scratch, packed once for all regions; or, if
 * one region has all rows, a buffer that is packed just before use. */
#include "kernels/matmul/gemm.h"

enum {
    REGION_SUMS = 36 * 1024,            /* rows times columns                                  */
    REGION_COLS = 1024,
    REGION_ROWS = 36,                   /* if A is copied or packed, or strips are shared      */
    REGION_ROWS_IN_PLACE = 288,         /* if A is read in place: all rows fit the L2 cache    */
    REGION_GROUP = 64,                  /* columns that are packed together, a few strips      */
    COPY_ROW = MICA__GEMM_DEPTH + 16,   /* of A, floats                                        */
    SCRATCH_DEPTH = 4 * MICA__GEMM_DEPTH
};

typedef struct regions {
    const mica__gemm_blocked *p;
    int64_t k, depth;           /* block of k of this round                             */
    int64_t j, cols;
    const float *strips;        /* from column strips_j on; NULL: the region packs them */
    int64_t strips_j, strips_cols;
    float *to;                  /* destination when packing all of B                    */
    int64_t parts_m, parts_n;
} regions;

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t padded_cols(const mica__gemm_variant *v, int64_t n) { return div_up(n, v->nr) * v->nr; }

/* Rows of a region that packs its own strips. */
static int64_t own_rows(const mica__gemm_view *a) { return a->k_step == 1 ? REGION_ROWS_IN_PLACE : REGION_ROWS; }

/* Can the kernel read A in place? Rows that are a power of two apart map to the same few cache sets; then a copy,
 * which many strips use, is faster. */
static bool reads_in_place(const regions *x)
{
    const mica__gemm_view *a = &x->p->a;
    return a->k_step == 1 && (a->i_step % 256 != 0 || !x->strips || x->cols <= 256);
}

/* ----------------------------------------------------------------- packing -- */

/* Packs up to REGION_GROUP columns into adjacent strips, (depth, nr) each. A few rows at a time, so that neighbours in
 * memory are read together. */
static void pack_group(const mica__gemm_variant *v, const mica__gemm_view *b, int64_t k, int64_t depth, int64_t j,
                       int64_t n, float *to)
{
    const int64_t piece = b->i_step == 1 ? 16 : depth;
    for (int64_t kk = 0; kk < depth; kk += piece)
        for (int64_t jj = 0; jj < n; jj += v->nr)
            mica__gemm_pack_view(b, k + kk, mica__min_i64(piece, depth - kk), j + jj, mica__min_i64(v->nr, n - jj),
                                 v->nr, to + jj * depth + kk * v->nr);
}

static void pack_parts(const void *context, int64_t begin, int64_t end)
{
    const regions *x = context;
    const mica__gemm_variant *v = x->p->variant;
    for (int64_t part = begin; part < end; part++) {
        /* in the direction in which B is contiguous */
        const bool along_k = x->p->b.k_step == 1;
        const int64_t k = (along_k ? part % x->parts_m : part / x->parts_n) * MICA__GEMM_DEPTH;
        const int64_t j = (along_k ? part / x->parts_m : part % x->parts_n) * REGION_GROUP;
        const int64_t depth = mica__min_i64(MICA__GEMM_DEPTH, x->depth - k);
        pack_group(v, &x->p->b, x->k + k, depth, x->j + j, mica__min_i64(REGION_GROUP, x->cols - j),
                   x->to + k * padded_cols(v, x->cols) + j * depth);
    }
}

static void pack_columns(mica__pool *pool, regions *x)
{
    x->parts_n = div_up(x->cols, REGION_GROUP);
    x->parts_m = div_up(x->depth, MICA__GEMM_DEPTH);
    mica__run_rows(pool, x->parts_n * x->parts_m, REGION_GROUP * MICA__GEMM_DEPTH, pack_parts, x);
}

size_t mica__gemm_packed_floats(const mica__gemm_variant *v, int64_t n, int64_t k)
{
    return (size_t)padded_cols(v, n) * (size_t)k;
}

void mica__gemm_pack_all(mica__pool *pool, const mica__gemm_variant *v, const mica__gemm_view *b, int64_t n, int64_t k,
                         float *to)
{
    const mica__gemm_blocked p = {.variant = v, .b = *b};
    regions x = {.p = &p, .depth = k, .cols = n, .to = to};
    pack_columns(pool, &x);
}

/* ----------------------------------------------------------------- regions -- */

/* Provides rows i ... i+m-1, k ... k+depth-1 of A to the kernel, in place or as a copy. */
static void region_rows(const regions *x, int64_t i, int64_t k, float *copy, mica__gemm_strip *s)
{
    const mica__gemm_view *a = &x->p->a;
    const float *from = (const float *)(const void *)a->data + i * a->i_step + k * a->k_step;
    s->a_k = 1;
    if (reads_in_place(x)) {
        s->a = from;
        s->a_row = s->a_block = a->i_step;
        return;
    }
    s->a = copy;
    if (a->k_step == 1) {
        for (int64_t r = 0; r < s->m; r++)
            memcpy(copy + r * COPY_ROW, from + r * a->i_step, (size_t)s->depth * sizeof(float));
        s->a_row = s->a_block = COPY_ROW;
        return;
    }
    for (int64_t r = 0, rows; r < s->m; r += rows) {
        rows = mica__gemm_block_rows(x->p->variant->mr, s->m - r);
        mica__gemm_pack_view(a, k, s->depth, i + r, rows, (int)rows, copy + r * s->depth);
    }
    s->a_row = 1;
    s->a_block = s->depth;
    s->a_packed = true;
}

static void copy_sums(int64_t m, int64_t n, const float *from, int64_t from_row, float *to, int64_t to_row)
{
    for (int64_t i = 0; i < m; i++) memcpy(to + i * to_row, from + i * from_row, (size_t)n * sizeof(float));
}

/* One strip of one block of k. Sums are read from `sums`, except in the first block, and written there, except in the
 * last block of full strips, which writes C. */
static void region_strip(const regions *x, mica__gemm_strip *s, float *sums, float *out, int64_t cols, bool begins,
                         bool ends)
{
    const mica__gemm_blocked *p = x->p;
    const mica__gemm_variant *v = p->variant;
    const bool full = cols == v->nr;
    s->from = s->to = sums;
    s->from_row = s->to_row = v->nr;
    if (begins && x->k == 0) {
        s->from = NULL;
    } else if (begins && full) {
        s->from = out;
        s->from_row = p->n;
    } else if (begins) {
        copy_sums(s->m, cols, out, p->n, sums, v->nr);
    }
    if (ends && full) {
        s->to = out;
        s->to_row = p->n;
    }
    if (cols > v->lanes) v->strip(s);
    else v->narrow(s);
    if (ends && !full) copy_sums(s->m, cols, sums, v->nr, out, p->n);
}

/* Buffers of one thread for a region: 250 KB. */
typedef struct region_tiles {
    _Alignas(64) float sums[REGION_SUMS];
    _Alignas(64) float copy[REGION_ROWS * COPY_ROW];
    _Alignas(64) float own[REGION_GROUP * MICA__GEMM_DEPTH];
} region_tiles;

static void region_run(const regions *x, int64_t i, int64_t m, int64_t j, int64_t n)
{
    region_tiles *tiles = mica__scratch_alloc(sizeof *tiles);
    const mica__gemm_blocked *p = x->p;
    const int nr = p->variant->nr;
    for (int64_t k = 0; k < x->depth; k += MICA__GEMM_DEPTH) {
        mica__gemm_strip s = {.m = m, .depth = mica__min_i64(MICA__GEMM_DEPTH, x->depth - k), .b_k = nr};
        region_rows(x, i, x->k + k, tiles->copy, &s);
        for (int64_t jj = 0; jj < n; jj += nr) {
            if (x->strips) {
                s.b = x->strips + k * x->strips_cols + (j + jj - x->strips_j) * s.depth;
                s.ahead = s.b + nr * s.depth;
                s.ahead_bytes = nr * s.depth * (int64_t)sizeof(float);
            } else {
                s.b = tiles->own + jj % REGION_GROUP * s.depth;
                if (jj % REGION_GROUP == 0)
                    pack_group(p->variant, &p->b, x->k + k, s.depth, j + jj, mica__min_i64(REGION_GROUP, n - jj),
                               tiles->own);
            }
            region_strip(x, &s, tiles->sums + jj * m, p->out + i * p->n + j + jj, mica__min_i64(nr, n - jj), k == 0,
                         k + s.depth == x->depth);
        }
    }
    mica__scratch_release(tiles);
    if (x->k + x->depth == p->k) mica__gemm_epilogue(p->epilogue, p->first, p->n, i, m, j, n);
}

/* Start of part `part` of `parts` nearly equal parts of n, in whole pieces. */
static int64_t part_begin(int64_t n, int64_t piece, int64_t part, int64_t parts)
{
    return mica__min_i64(n, div_up(n, piece) * part / parts * piece);
}

static void region_task(void *context, int64_t task)
{
    const regions *x = context;
    const mica__gemm_variant *v = x->p->variant;
    /* Rows vary fastest: tasks that run at the same time read the same strips. */
    const int64_t pm = task % x->parts_m, pn = task / x->parts_m;
    const int64_t i = part_begin(x->p->m, v->mr, pm, x->parts_m), j = part_begin(x->cols, v->nr, pn, x->parts_n);
    const int64_t m = part_begin(x->p->m, v->mr, pm + 1, x->parts_m) - i,
                  n = part_begin(x->cols, v->nr, pn + 1, x->parts_n) - j;
    if (m > 0 && n > 0) region_run(x, i, m, x->j + j, n);
}

/* Runs the columns of this round. The split may depend on the number of threads because no sum depends on the split:
 * as many parts as threads, or a multiple. */
static void run_regions(mica__pool *pool, regions *x, int64_t rows)
{
    enum { WORK = 1 << 17 }; /* minimum per part: a few times the cost of dispatching it */
    const mica__gemm_variant *v = x->p->variant;
    const int64_t most_rows = x->p->m <= rows ? x->p->m : rows / v->mr * v->mr;
    const int64_t most_cols =
        x->strips ? mica__min_i64(REGION_COLS, REGION_SUMS / most_rows / v->nr * v->nr) : REGION_GROUP;
    const int64_t threads = mica__min_i64(mica__pool_threads(pool), x->p->m * x->cols * x->depth / WORK);
    x->parts_m = div_up(x->p->m, most_rows);
    x->parts_n = div_up(x->cols, most_cols);
    if (threads > 1 && x->parts_m * x->parts_n % threads != 0) {
        if (x->parts_m >= threads) x->parts_m = div_up(x->parts_m, threads) * threads;
        else x->parts_n = div_up(x->parts_n, threads) * threads;
    }
    mica__pool_run(threads > 1 ? pool : NULL, x->parts_m * x->parts_n, region_task, x);
}

static int64_t scratch_cols(int64_t n) { return mica__min_i64(n, REGION_COLS); }

size_t mica__gemm_scratch(const mica__gemm_view *a, int64_t m, int64_t n, int64_t k)
{
    if (m <= own_rows(a)) return 0;
    return (size_t)((scratch_cols(n) + MICA__GEMM_MAX_NR) * mica__min_i64(k, SCRATCH_DEPTH)) * sizeof(float);
}

void mica__gemm_blocked_run(mica__pool *pool, const mica__gemm_blocked *p)
{
    regions x = {
        .p = p, .depth = p->k, .cols = p->n, .strips = p->packed, .strips_cols = padded_cols(p->variant, p->n)};
    if (p->packed || p->m <= own_rows(&p->a)) {
        run_regions(pool, &x, p->packed ? REGION_ROWS : p->m);
        return;
    }
    for (x.j = 0; x.j < p->n; x.j += x.cols) {
        x.cols = mica__min_i64(scratch_cols(p->n), p->n - x.j);
        for (x.k = 0; x.k < p->k; x.k += x.depth) {
            x.depth = mica__min_i64(SCRATCH_DEPTH, p->k - x.k);
            x.to = p->scratch;
            pack_columns(pool, &x);
            x.strips = p->scratch;
            x.strips_j = x.j;
            x.strips_cols = padded_cols(p->variant, x.cols);
            run_regions(pool, &x, REGION_ROWS);
        }
    }
}
