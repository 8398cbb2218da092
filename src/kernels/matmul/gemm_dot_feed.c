/* Blocking of products of narrow operands: a block of B is packed once, then all rows of A are multiplied with it, a
 * few at a time on each thread. Sums of 4-byte results are kept in the result. Those of f16 and bf16, which are rounded
 * once at the end, are kept in scratch, so B is packed again for every FEED_ROWS rows. */
#include "kernels/matmul/gemm_dot.h"

enum {
    FEED_ROWS = 8 * MICA__DOT_ROWS, /* rows whose sums are in scratch                     */
    FEED_PARTS = 8,                 /* of rows: enough to avoid splitting the columns     */
    FEED_COLS = 256                 /* of a part with few rows: a multiple of every nr    */
};

typedef struct feed {
    const mica__dot_product *p;
    char *packed;               /* strips of B                                          */
    int32_t *col_add;           /* of its columns                                       */
    char *sums;                 /* 4-byte sums; points to element (i0, j)               */
    int64_t sums_row;
    int64_t i0, rows, j, cols, k0, depth; /* the current block                          */
    int64_t parts_m, part_cols;
} feed;

static int64_t feed_round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static bool feed_is_half(mica_dtype dtype) { return dtype == MICA_F16 || dtype == MICA_BF16; }

size_t mica__dot_scratch(const mica__dot_variant *v, mica_dtype dtype, int64_t m, int64_t n)
{
    const int64_t cols = feed_round_up(mica__min_i64(n, MICA__DOT_COLS), v->nr);
    const size_t packed = (size_t)(cols / v->nr) * mica__dot_b_bytes(v), add = (size_t)cols * sizeof(int32_t);
    const size_t sums = (size_t)(mica__min_i64(m, FEED_ROWS) * mica__min_i64(n, MICA__DOT_COLS)) * sizeof(float);
    return packed + add + (feed_is_half(dtype) ? sums : 0);
}

static void feed_pack(const void *context, int64_t begin, int64_t end)
{
    const feed *x = context;
    const mica__dot_variant *v = x->p->v;
    for (int64_t strip = begin; strip < end; strip++) {
        const int64_t j = strip * v->nr;
        v->pack_b(&x->p->b, x->p->a.dtype, x->k0, x->depth, x->j + j, mica__min_i64(v->nr, x->cols - j),
                  x->packed + strip * (int64_t)mica__dot_b_bytes(v), x->col_add + j);
    }
}

/* A tile at the edge: computed in full, stored in part. */
static void feed_edge(const feed *x, const char *a, const char *b, const int32_t *row_add, const int32_t *col_add,
                      int64_t rows, int64_t cols, char *to)
{
    _Alignas(64) char tile[MICA__DOT_MAX_MR * MICA__DOT_MAX_NR * 4];
    const mica__dot_variant *v = x->p->v;
    memset(tile, 0, sizeof tile);
    for (int64_t r = 0; x->k0 > 0 && r < rows; r++)
        memcpy(tile + r * v->nr * 4, to + r * x->sums_row * 4, (size_t)(cols * 4));
    v->kernel(x->depth, a, b, tile, v->nr, true, row_add, col_add);
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * x->sums_row * 4, tile + r * v->nr * 4, (size_t)(cols * 4));
}

/* Called when the sums of a part are complete. */
static void feed_finish(const feed *x, int64_t i, int64_t m, int64_t j, int64_t n)
{
    const mica__dot_product *p = x->p;
    for (int64_t r = i; feed_is_half(p->dtype) && r < i + m; r++)
        p->lines->narrow(p->dtype, n, (const float *)(const void *)(x->sums + (r * x->sums_row + j) * 4),
                         p->out + ((x->i0 + r) * p->n + x->j + j) * 2);
    mica__gemm_epilogue(p->epilogue, p->first, p->n, x->i0 + i, m, x->j + j, n);
}

static void feed_rows(const void *context, int64_t begin, int64_t end)
{
    const feed *x = context;
    const mica__dot_variant *v = x->p->v;
    char *a = mica__scratch_alloc(MICA__DOT_ROWS * MICA__DOT_MAX_CELLS * 4);
    int32_t row_add[MICA__DOT_ROWS];
    const int64_t row_bytes = v->cells * 4;
    for (int64_t part = begin; part < end; part++) {
        const int64_t i = part % x->parts_m * MICA__DOT_ROWS, m = mica__min_i64(MICA__DOT_ROWS, x->rows - i);
        const int64_t first = part / x->parts_m * x->part_cols, n = mica__min_i64(x->part_cols, x->cols - first);
        for (int64_t r = 0; r < m; r += v->mr)
            v->pack_a(&x->p->a, x->p->b.dtype, x->k0, x->depth, x->i0 + i + r, mica__min_i64(v->mr, m - r),
                      a + r * row_bytes, row_add + r);
        for (int64_t j = first; j < first + n; j += v->nr) {
            const char *strip = x->packed + j / v->nr * (int64_t)mica__dot_b_bytes(v);
            const int64_t cols = mica__min_i64(v->nr, x->cols - j);
            for (int64_t r = 0; r < m; r += v->mr) {
                char *to = x->sums + ((i + r) * x->sums_row + j) * 4;
                if (r + v->mr <= m && cols == v->nr)
                    v->kernel(x->depth, a + r * row_bytes, strip, to, x->sums_row, x->k0 > 0, row_add + r,
                              x->col_add + j);
                else
                    feed_edge(x, a + r * row_bytes, strip, row_add + r, x->col_add + j, mica__min_i64(v->mr, m - r),
                              cols, to);
            }
        }
        if (x->k0 + x->depth == x->p->k) feed_finish(x, i, m, first, n);
    }
    mica__scratch_release(a);
}

static void feed_block(mica__pool *pool, feed *x)
{
    const mica__dot_variant *v = x->p->v;
    x->parts_m = (x->rows + MICA__DOT_ROWS - 1) / MICA__DOT_ROWS;
    x->part_cols = x->parts_m >= FEED_PARTS ? x->cols : FEED_COLS;
    const int64_t parts_n = (x->cols + x->part_cols - 1) / x->part_cols;
    const int64_t work = mica__min_i64(x->rows, MICA__DOT_ROWS) * mica__min_i64(x->cols, x->part_cols) * v->depth / 8;
    for (x->k0 = 0; x->k0 < x->p->k; x->k0 += v->depth) {
        x->depth = mica__min_i64(v->depth, x->p->k - x->k0);
        mica__run_rows(pool, (x->cols + v->nr - 1) / v->nr, x->depth * v->nr / 2, feed_pack, x);
        mica__run_rows(pool, x->parts_m * parts_n, work, feed_rows, x);
    }
}

void mica__dot_run(mica__pool *pool, const mica__dot_product *p, void *scratch)
{
    const mica__dot_variant *v = p->v;
    const bool half = feed_is_half(p->dtype);
    feed x = {.p = p, .packed = scratch};
    const int64_t cols = feed_round_up(mica__min_i64(p->n, MICA__DOT_COLS), v->nr);
    char *after = x.packed + cols / v->nr * (int64_t)mica__dot_b_bytes(v);
    x.col_add = (int32_t *)(void *)after;
    for (x.j = 0; x.j < p->n; x.j += MICA__DOT_COLS) {
        x.cols = mica__min_i64(MICA__DOT_COLS, p->n - x.j);
        const int64_t step = half ? FEED_ROWS : p->m;
        for (x.i0 = 0; x.i0 < p->m; x.i0 += step) {
            x.rows = mica__min_i64(step, p->m - x.i0);
            x.sums = half ? after + cols * 4 : p->out + (x.i0 * p->n + x.j) * 4;
            x.sums_row = half ? x.cols : p->n;
            feed_block(pool, &x);
        }
    }
}
