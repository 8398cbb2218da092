/* Choosing the variant, packing, and the tile that takes any operand: it packs
 * its rows of A once for each block of k and then, for each strip of columns,
 * packs B and runs down the rows: the strip of B stays in the first cache, the
 * block of A in the second. */
#include "kernels/matmul/gemm.h"

#include "base/cpu.h"
#include "kernels/vec4.h"

/* ---------------------------------------------------------------- variants -- */

#define MICA_GEMM(name, needs, mr, nr)                                                                                \
    void mica__gemm_packed_##name(int64_t depth, const float *a, const float *b, float *c, int64_t row, bool add);    \
    void mica__gemm_direct_##name(int m, int64_t depth, const float *a, int64_t a_row, const float *b, int64_t b_row, \
                                  float *c, int64_t c_row);                                                           \
    float mica__gemm_dot_##name(int64_t n, const float *x, const float *y);                                           \
    void mica__gemm_axpy_##name(int64_t n, float a, const float *x, float *y);
#include "kernels/matmul/gemm.def"
#undef MICA_GEMM

static const mica__gemm_variant gemm_table[] = {
#define MICA_GEMM(name, needs, mr, nr) \
    {#name,                            \
     needs,                            \
     mr,                               \
     nr,                               \
     mica__gemm_packed_##name,         \
     mica__gemm_direct_##name,         \
     mica__gemm_dot_##name,            \
     mica__gemm_axpy_##name},
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

void mica__gemm_tile(const mica__gemm *gemm, int64_t i, int64_t j)
{
    _Alignas(64) float a[MICA__GEMM_ROWS * MICA__GEMM_DEPTH];
    _Alignas(64) float b[MICA__GEMM_MAX_NR * MICA__GEMM_DEPTH];
    _Alignas(64) float c[MICA__GEMM_ROWS * MICA__GEMM_COLS];
    const int mr = gemm->variant->mr, nr = gemm->variant->nr;
    const int64_t m = mica__min_i64(MICA__GEMM_ROWS, gemm->m - i), n = mica__min_i64(MICA__GEMM_COLS, gemm->n - j);
    if (gemm->k == 0) memset(c, 0, sizeof c);
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
}

/* ----------------------------------------------------------------- packing -- */

enum { PACK_PIECE = 256 }; /* elements of k that are converted at once */

/* f32 with i_step 1: rows of the strip are there already. */
static void gemm_pack_rows(const float *from, int64_t k_step, int64_t depth, int64_t n, int width, float *to)
{
    if (n == width && width % 4 == 0) {
        for (int64_t k = 0; k < depth; k++)
            for (int64_t i = 0; i < width; i += 4)
                mica__v4_store(to + k * width + i, mica__v4_load(from + k * k_step + i));
        return;
    }
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < width; i++) to[k * width + i] = i < n ? from[k * k_step + i] : 0.0f;
}

/* f32 with k_step 1, strips of four: a transpose, four elements of k at a time. */
static void gemm_pack_four(const float *from, int64_t i_step, int64_t depth, int width, float *to)
{
    const float *r0 = from, *r1 = from + i_step, *r2 = from + 2 * i_step, *r3 = from + 3 * i_step;
    for (int64_t k = 0; k < depth; k++, to += width) {
        to[0] = r0[k];
        to[1] = r1[k];
        to[2] = r2[k];
        to[3] = r3[k];
    }
}

/* The same, strips of two: all widths are even. */
static void gemm_pack_two(const float *from, int64_t i_step, int64_t depth, int width, float *to)
{
    const float *r0 = from, *r1 = from + i_step;
    for (int64_t k = 0; k < depth; k++, to += width) {
        to[0] = r0[k];
        to[1] = r1[k];
    }
}

void mica__gemm_pack_view(const void *operand, int64_t k, int64_t depth, int64_t i, int64_t n, int width, float *to)
{
    const mica__gemm_view *view = operand;
    const int64_t size = (int64_t)mica_dtype_size(view->dtype);
    const char *from = view->data + (k * view->k_step + i * view->i_step) * size;
    const float *single = (const float *)(const void *)from;
    if (view->dtype == MICA_F32 && view->i_step == 1) {
        gemm_pack_rows(single, view->k_step, depth, n, width, to);
        return;
    }
    if (view->dtype == MICA_F32 && view->k_step == 1 && n == width) {
        int ii = 0;
        for (; ii + 4 <= width; ii += 4)
            gemm_pack_four(single + ii * view->i_step, view->i_step, depth, width, to + ii);
        for (; ii + 2 <= width; ii += 2) gemm_pack_two(single + ii * view->i_step, view->i_step, depth, width, to + ii);
        return;
    }
    float line[PACK_PIECE];
    for (int64_t first = 0; first < depth; first += PACK_PIECE) {
        const int64_t count = mica__min_i64(PACK_PIECE, depth - first);
        for (int64_t ii = 0; ii < width; ii++) {
            if (ii < n)
                mica__load_f32(view->dtype, count, line, from + (first * view->k_step + ii * view->i_step) * size,
                               view->k_step);
            else memset(line, 0, sizeof line);
            for (int64_t kk = 0; kk < count; kk++) to[(first + kk) * width + ii] = line[kk];
        }
    }
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
