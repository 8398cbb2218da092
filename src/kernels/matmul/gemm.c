/* Choice of the variant, and the product by tiles, for any operand. For each block of k it packs its rows of A once;
 * then, for each strip of columns, it packs B and iterates over the rows. The strip of B stays in the L1 cache, the
 * block of A in L2. */
#include "kernels/matmul/gemm.h"

#include "base/cpu.h"

/* ---------------------------------------------------------------- variants -- */

#define MICA_GEMM(name, needs, mr, nr, lanes)                                                                         \
    void mica__gemm_packed_##name(int64_t depth, const float *a, const float *b, float *c, int64_t row, bool add);    \
    void mica__gemm_direct_##name(int m, int64_t depth, const float *a, int64_t a_row, const float *b, int64_t b_row, \
                                  float *c, int64_t c_row);                                                           \
    void mica__gemm_strip_##name(const mica__gemm_strip *strip);                                                      \
    void mica__gemm_narrow_##name(const mica__gemm_strip *strip);                                                     \
    void mica__gemm_dots_##name(int m, int64_t n, int64_t k, const float *x, int64_t x_row, const float *w,           \
                                int64_t w_row, float *out, int64_t out_row, int64_t out_col);                         \
    void mica__gemm_rows_##name(int m, int64_t n, int64_t k, const float *x, int64_t x_row, int64_t x_k,              \
                                const float *w, int64_t w_row, float *y, int64_t y_row);
#include "kernels/matmul/gemm.def"
#undef MICA_GEMM

static const mica__gemm_variant gemm_table[] = {
#define MICA_GEMM(name, needs, mr, nr, lanes) \
    {#name,                                   \
     needs,                                   \
     mr,                                      \
     nr,                                      \
     lanes,                                   \
     mica__gemm_packed_##name,                \
     mica__gemm_direct_##name,                \
     mica__gemm_strip_##name,                 \
     mica__gemm_narrow_##name,                \
     mica__gemm_dots_##name,                  \
     mica__gemm_rows_##name},
#include "kernels/matmul/gemm.def"
#undef MICA_GEMM
};

const mica__gemm_variant *mica__gemm_variants(size_t *n)
{
    const unsigned have = mica__cpu_features();
    *n = 0;
    for (size_t i = 0; i < sizeof gemm_table / sizeof *gemm_table; i++)
        if ((gemm_table[i].needs & ~have) == 0) *n = i + 1;
    return gemm_table;
}

const mica__gemm_variant *mica__gemm_best(void)
{
    size_t n;
    const mica__gemm_variant *table = mica__gemm_variants(&n);
    return &table[n - 1];
}

/* -------------------------------------------------------------------- tile -- */

typedef struct gemm_tiles {
    _Alignas(64) float a[MICA__GEMM_ROWS * MICA__GEMM_DEPTH];
    _Alignas(64) float b[MICA__GEMM_MAX_NR * MICA__GEMM_DEPTH];
    _Alignas(64) float c[MICA__GEMM_ROWS * MICA__GEMM_COLS];
} gemm_tiles;

void mica__gemm_tile(const mica__gemm *gemm, int64_t i, int64_t j)
{
    gemm_tiles *tiles = mica__scratch_alloc(sizeof *tiles);
    float *a = tiles->a, *b = tiles->b, *c = tiles->c;
    const int mr = gemm->variant->mr, nr = gemm->variant->nr;
    const int64_t m = mica__min_i64(MICA__GEMM_ROWS, gemm->m - i), n = mica__min_i64(MICA__GEMM_COLS, gemm->n - j);
    if (gemm->k == 0) memset(c, 0, sizeof tiles->c);
    for (int64_t k = 0; k < gemm->k; k += MICA__GEMM_DEPTH) {
        const int64_t depth = mica__min_i64(MICA__GEMM_DEPTH, gemm->k - k);
        for (int64_t ii = 0; ii < m; ii += mr)
            gemm->pack_a(gemm->a, k, depth, i + ii, mica__min_i64(mr, m - ii), mr, a + ii * depth);
        for (int64_t jj = 0; jj < n; jj += nr) {
            gemm->pack_b(gemm->b, k, depth, j + jj, mica__min_i64(nr, n - jj), nr, b);
            for (int64_t ii = 0; ii < m; ii += mr)
                gemm->variant->packed(depth, a + ii * depth, b, c + ii * MICA__GEMM_COLS + jj, MICA__GEMM_COLS, k > 0);
        }
    }
    const int64_t size = (int64_t)mica_dtype_size(gemm->dtype);
    for (int64_t ii = 0; ii < m; ii++)
        mica__store_f32(gemm->dtype, n, gemm->out + ((i + ii) * gemm->row + j) * size, 1, c + ii * MICA__GEMM_COLS);
    mica__scratch_release(tiles);
}

void mica__gemm_epilogue(const mica__epilogue *epilogue, int64_t first, int64_t row, int64_t i, int64_t m, int64_t j,
                         int64_t n)
{
    if (!epilogue || m <= 0 || n <= 0) return;
    const int64_t begin = first + i * row + j;
    if (n == row) { /* whole rows at once */
        epilogue->run(epilogue, begin, begin + m * row);
        return;
    }
    for (int64_t ii = 0; ii < m; ii++) epilogue->run(epilogue, begin + ii * row, begin + ii * row + n);
}
