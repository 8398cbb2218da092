/* Thin matrix products (gemv.h). */
#include "kernels/matmul/gemv.h"

bool mica__gemv_by_dots(const mica__gemv *gemv)
{
    return gemv->many.dtype == MICA_F32 && gemv->many.k_step == 1 && gemv->few.k_step == 1;
}

bool mica__gemv_streams(const mica__gemv *gemv)
{
    return mica__gemv_by_dots(gemv) || (gemv->many.dtype == MICA_F32 && gemv->many.i_step == 1 && gemv->many_step == 1);
}

/* Dots in pieces of k, so that a piece of all `few` rows stays in the L1 cache while rows of `many` are streamed. The
 * piece is copied, because rows that are a power of two apart would evict each other. The pieces depend only on the
 * sizes. */
static void gemv_dots(const mica__gemv *gemv, int64_t n, const float *few, const float *many, float *out)
{
    enum { FLOATS = 4096, GROUP = 64, GAP = 16 };
    const int n_few = (int)gemv->n_few;
    const int64_t piece = FLOATS / n_few / 64 * 64, row = piece + GAP, fs = gemv->few_step, ms = gemv->many_step;
    if (gemv->k <= piece) {
        gemv->variant->dots(n_few, n, gemv->k, few, gemv->few.i_step, many, gemv->many.i_step, out, fs, ms);
        return;
    }
    float *copy = mica__scratch_alloc((FLOATS + MICA__GEMM_FEW * (GAP + GROUP)) * sizeof *copy);
    float *part = copy + FLOATS + MICA__GEMM_FEW * GAP;
    for (int64_t j = 0; j < n; j += GROUP) {
        const int64_t count = mica__min_i64(GROUP, n - j);
        for (int64_t k = 0; k < gemv->k; k += piece) {
            const int64_t depth = mica__min_i64(piece, gemv->k - k);
            for (int64_t f = 0; f < n_few; f++)
                memcpy(copy + f * row, few + f * gemv->few.i_step + k, (size_t)depth * sizeof *copy);
            gemv->variant->dots(n_few, count, depth, copy, row, many + j * gemv->many.i_step + k, gemv->many.i_step,
                                part, GROUP, 1);
            for (int64_t f = 0; f < n_few; f++)
                for (int64_t c = 0; c < count; c++) {
                    float *at = out + f * fs + (j + c) * ms;
                    *at = k ? *at + part[f * GROUP + c] : part[f * GROUP + c];
                }
        }
    }
    mica__scratch_release(copy);
}

/* Sums are contiguous in the L1 cache, for the same reason. */
static void gemv_rows(const mica__gemv *gemv, int64_t n, const float *few, const float *many, float *out)
{
    enum { FLOATS = 4096, GAP = 16 };
    float *sums = mica__scratch_alloc((FLOATS + MICA__GEMM_FEW * GAP) * sizeof *sums);
    const int64_t piece = FLOATS / gemv->n_few / 64 * 64, row = piece + GAP;
    for (int64_t j = 0; j < n; j += piece) {
        const int64_t count = mica__min_i64(piece, n - j);
        for (int64_t f = 0; f < gemv->n_few; f++) memset(sums + f * row, 0, (size_t)count * sizeof *sums);
        gemv->variant->rows((int)gemv->n_few, count, gemv->k, few, gemv->few.i_step, gemv->few.k_step, many + j,
                            gemv->many.k_step, sums, row);
        for (int64_t f = 0; f < gemv->n_few; f++)
            memcpy(out + f * gemv->few_step + j, sums + f * row, (size_t)count * sizeof *sums);
    }
    mica__scratch_release(sums);
}

static void gemv_stream(const mica__gemv *gemv, int64_t i, int64_t n)
{
    const float *few = (const float *)(const void *)gemv->few.data;
    const float *many = (const float *)(const void *)gemv->many.data + i * gemv->many.i_step;
    float *out = (float *)(void *)gemv->out + i * gemv->many_step;
    if (mica__gemv_by_dots(gemv)) gemv_dots(gemv, n, few, many, out);
    else gemv_rows(gemv, n, few, many, out);
}

/* n floats of a view along k or i: in place if possible, else copied to buffer. */
static const float *gemv_line(const mica__gemm_view *view, int64_t offset, int64_t n, int64_t step, float *buffer)
{
    const char *from = view->data + offset * (int64_t)mica_dtype_size(view->dtype);
    if (view->dtype == MICA_F32 && step == 1) return (const float *)(const void *)from;
    mica__load_f32(view->dtype, n, buffer, from, step);
    return buffer;
}

static void gemv_blocks(const mica__gemv *gemv, int64_t i, int64_t n)
{
    float sums[MICA__GEMV_FEW][MICA__GEMV_MANY], few[MICA__GEMV_FEW][MICA__GEMM_DEPTH], buffer[MICA__GEMM_DEPTH];
    _Static_assert((int)MICA__GEMM_DEPTH >= (int)MICA__GEMV_MANY, "buffer holds a line of either direction");
    const mica__gemm_view *many = &gemv->many;
    const int n_few = (int)gemv->n_few;
    /* Along the direction in which `many` is contiguous. */
    const bool by_dots = many->k_step == 1 && many->i_step != 1;
    memset(sums, 0, sizeof sums);
    for (int64_t k = 0; k < gemv->k; k += MICA__GEMM_DEPTH) {
        const int64_t depth = mica__min_i64(MICA__GEMM_DEPTH, gemv->k - k);
        for (int64_t f = 0; f < n_few; f++)
            mica__load_f32(gemv->few.dtype, depth, few[f],
                           gemv->few.data + (k * gemv->few.k_step + f * gemv->few.i_step) *
                                                (int64_t)mica_dtype_size(gemv->few.dtype),
                           gemv->few.k_step);
        for (int64_t j = 0; j < n && by_dots; j++) {
            const float *line = gemv_line(many, k * many->k_step + (i + j) * many->i_step, depth, many->k_step, buffer);
            float part[MICA__GEMV_FEW];
            gemv->variant->dots(n_few, 1, depth, few[0], MICA__GEMM_DEPTH, line, 0, part, 1, 0);
            for (int f = 0; f < n_few; f++) sums[f][j] += part[f];
        }
        for (int64_t kk = 0; kk < depth && !by_dots; kk++) {
            const float *line = gemv_line(many, (k + kk) * many->k_step + i * many->i_step, n, many->i_step, buffer);
            gemv->variant->rows(n_few, n, 1, &few[0][kk], MICA__GEMM_DEPTH, 0, line, 0, sums[0], MICA__GEMV_MANY);
        }
    }
    const int64_t size = (int64_t)mica_dtype_size(many->dtype);
    for (int64_t f = 0; f < n_few; f++)
        mica__store_f32(many->dtype, n, gemv->out + (f * gemv->few_step + i * gemv->many_step) * size, gemv->many_step,
                        sums[f]);
}

void mica__gemv_part(const mica__gemv *gemv, int64_t i, int64_t n)
{
    if (mica__gemv_streams(gemv)) gemv_stream(gemv, i, n);
    else gemv_blocks(gemv, i, n);
}
