/* The two ways of f32 products that pack little or nothing for each tile: direct
 * reads both operands where they are, blocked packs a block of B once and then
 * runs all rows of A against it. */
#include "kernels/matmul/gemm.h"

/* ----------------------------------------------------------------- direct --- */

enum {
    DIRECT_BYTES = 1 << 20,     /* B fits a second-level cache                          */
    DIRECT_DEPTH = 1024         /* a strip of B nearly fits the first-level one         */
};

bool mica__gemm_is_direct(const mica__gemm_view *a, const mica__gemm_view *b, int64_t n, int64_t k)
{
    if (a->dtype != MICA_F32 || b->dtype != MICA_F32 || a->k_step != 1 || b->i_step != 1 || k < 1) return false;
    if (k > DIRECT_DEPTH || n * k * (int64_t)sizeof(float) > DIRECT_BYTES) return false;
    /* rows a multiple of 4 KiB apart fall into the same few sets of the cache */
    return b->k_step % 1024 != 0 || k <= 64;
}

/* The last columns, fewer than a vector block: through padded copies. */
static void direct_rest(const mica__gemm_variant *v, const mica__gemm_view *b, const float *a, int64_t a_row, int64_t m,
                        int64_t j, int64_t n, int64_t k, float *out, int64_t row)
{
    _Alignas(64) float strip[DIRECT_DEPTH * MICA__GEMM_MAX_NR], c[MICA__GEMM_MAX_MR * MICA__GEMM_MAX_NR];
    mica__gemm_pack_view(b, 0, k, j, n, v->nr, strip);
    for (int64_t i = 0; i < m; i += v->mr) {
        const int64_t rows = mica__min_i64(v->mr, m - i);
        v->direct((int)rows, k, a + i * a_row, a_row, strip, v->nr, c, v->nr);
        for (int64_t r = 0; r < rows; r++) memcpy(out + (i + r) * row + j, c + r * v->nr, (size_t)n * sizeof(float));
    }
}

void mica__gemm_direct(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t i,
                       int64_t m, int64_t n, int64_t k, float *out)
{
    const float *from = (const float *)(const void *)a->data + i * a->i_step;
    const float *columns = (const float *)(const void *)b->data;
    float *to = out + i * n;
    int64_t j = 0;
    for (; j + v->nr <= n; j += v->nr)
        for (int64_t r = 0; r < m; r += v->mr)
            v->direct((int)mica__min_i64(v->mr, m - r), k, from + r * a->i_step, a->i_step, columns + j, b->k_step,
                      to + r * n + j, n);
    if (j < n) direct_rest(v, b, from, a->i_step, m, j, n - j, k, to, n);
}

/* ---------------------------------------------------------------- blocked --- */

enum {
    BLOCK_COLS = 1024,          /* of the packed block of B                             */
    BLOCK_DEPTH = 256,          /* a strip of B is 16 KB at 16 columns: half the first cache */
    BLOCK_ROWS = MICA__GEMM_ROWS /* of A, packed by each task: 96 KB                     */
};

typedef struct blocked {
    const mica__gemm_variant *v;
    const mica__gemm_view *a, *b;
    int64_t m, n, k;
    float *out;
    float *packed;              /* strips of B, each depth * nr floats                  */
    int64_t j, cols, k0, depth; /* the block                                            */
    const mica__epilogue *epilogue;
    int64_t first;
} blocked;

size_t mica__gemm_scratch(int64_t n, int64_t k)
{
    const int64_t cols = mica__min_i64(n, BLOCK_COLS) + MICA__GEMM_MAX_NR, depth = mica__min_i64(k, BLOCK_DEPTH);
    return (size_t)(cols * depth) * sizeof(float);
}

static void blocked_pack(const void *context, int64_t begin, int64_t end)
{
    const blocked *x = context;
    const int nr = x->v->nr;
    for (int64_t strip = begin; strip < end; strip++) {
        const int64_t j = strip * nr;
        mica__gemm_pack_view(x->b, x->k0, x->depth, x->j + j, mica__min_i64(nr, x->cols - j), nr,
                             x->packed + j * x->depth);
    }
}

/* One block of registers at the edge: computed whole, copied in part. */
static void blocked_edge(const blocked *x, const float *a, const float *b, int64_t rows, int64_t cols, float *to)
{
    _Alignas(64) float c[MICA__GEMM_MAX_MR * MICA__GEMM_MAX_NR];
    x->v->packed(x->depth, a, b, c, x->v->nr, false);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < cols; q++) {
            float *at = to + r * x->n + q;
            *at = x->k0 ? *at + c[r * x->v->nr + q] : c[r * x->v->nr + q];
        }
}

static void blocked_rows(const void *context, int64_t begin, int64_t end)
{
    const blocked *x = context;
    const int mr = x->v->mr, nr = x->v->nr;
    _Alignas(64) float a[BLOCK_ROWS * BLOCK_DEPTH];
    for (int64_t part = begin; part < end; part++) {
        const int64_t i = part * BLOCK_ROWS, m = mica__min_i64(BLOCK_ROWS, x->m - i);
        for (int64_t r = 0; r < m; r += mr)
            mica__gemm_pack_view(x->a, x->k0, x->depth, i + r, mica__min_i64(mr, m - r), mr, a + r * x->depth);
        for (int64_t j = 0; j < x->cols; j += nr) {
            const float *strip = x->packed + j * x->depth;
            for (int64_t r = 0; r < m; r += mr) {
                float *to = x->out + (i + r) * x->n + x->j + j;
                if (r + mr <= m && j + nr <= x->cols)
                    x->v->packed(x->depth, a + r * x->depth, strip, to, x->n, x->k0 > 0);
                else
                    blocked_edge(x, a + r * x->depth, strip, mica__min_i64(mr, m - r), mica__min_i64(nr, x->cols - j),
                                 to);
            }
        }
        if (x->k0 + x->depth == x->k) mica__gemm_epilogue(x->epilogue, x->first, x->n, i, m, x->j, x->cols);
    }
}

void mica__gemm_blocked(mica__pool *pool, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n,
                        int64_t k, float *out, void *scratch, const mica__epilogue *epilogue, int64_t first)
{
    blocked x = {.v = mica__gemm_best(),
                 .a = a,
                 .b = b,
                 .m = m,
                 .n = n,
                 .k = k,
                 .out = out,
                 .packed = scratch,
                 .epilogue = epilogue,
                 .first = first};
    for (x.j = 0; x.j < n; x.j += BLOCK_COLS) {
        x.cols = mica__min_i64(BLOCK_COLS, n - x.j);
        for (x.k0 = 0; x.k0 < k; x.k0 += BLOCK_DEPTH) {
            x.depth = mica__min_i64(BLOCK_DEPTH, k - x.k0);
            mica__run_rows(pool, (x.cols + x.v->nr - 1) / x.v->nr, x.depth * x.v->nr, blocked_pack, &x);
            mica__run_rows(pool, (m + BLOCK_ROWS - 1) / BLOCK_ROWS, BLOCK_ROWS * x.cols * x.depth / 4, blocked_rows,
                           &x);
        }
    }
}
