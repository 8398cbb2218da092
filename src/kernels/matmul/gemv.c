/* Thin matrix products. */
#include "kernels/matmul/gemv.h"

/* n floats of a view along k or i: in place if they can be, else in buffer. */
static const float *gemv_line(const mica__gemm_view *view, int64_t offset, int64_t n, int64_t step, float *buffer)
{
    const char *from = view->data + offset * (int64_t)mica_dtype_size(view->dtype);
    if (view->dtype == MICA_F32 && step == 1) return (const float *)(const void *)from;
    mica__load_f32(view->dtype, n, buffer, from, step);
    return buffer;
}

/* Both f32 and along k: whole dot products. */
static bool gemv_streams(const mica__gemv *gemv)
{
    return gemv->many.dtype == MICA_F32 && gemv->few.dtype == MICA_F32 && gemv->many.k_step == 1 &&
           gemv->few.k_step == 1;
}

static void gemv_stream(const mica__gemv *gemv, int64_t i, int64_t n)
{
    const float *few = (const float *)(const void *)gemv->few.data;
    const float *many = (const float *)(const void *)gemv->many.data;
    float *out = (float *)(void *)gemv->out;
    for (int64_t j = i; j < i + n; j++)
        for (int64_t f = 0; f < gemv->n_few; f++)
            out[f * gemv->few_step + j * gemv->many_step] =
                gemv->variant->dot(gemv->k, few + f * gemv->few.i_step, many + j * gemv->many.i_step);
}

void mica__gemv_part(const mica__gemv *gemv, int64_t i, int64_t n)
{
    if (gemv_streams(gemv)) {
        gemv_stream(gemv, i, n);
        return;
    }
    float sums[MICA__GEMV_FEW][MICA__GEMV_MANY], block[MICA__GEMV_FEW][MICA__GEMV_MANY];
    float few[MICA__GEMV_FEW][MICA__GEMM_DEPTH], buffer[MICA__GEMM_DEPTH];
    _Static_assert((int)MICA__GEMM_DEPTH >= (int)MICA__GEMV_MANY, "buffer holds a line of either direction");
    const mica__gemm_view *many = &gemv->many;
    /* Along the direction in which `many` lies in memory. */
    const bool by_dots = many->k_step == 1 && many->i_step != 1;
    memset(sums, 0, sizeof sums);
    for (int64_t k = 0; k < gemv->k; k += MICA__GEMM_DEPTH) {
        const int64_t depth = mica__min_i64(MICA__GEMM_DEPTH, gemv->k - k);
        for (int64_t f = 0; f < gemv->n_few; f++)
            mica__load_f32(gemv->few.dtype, depth, few[f],
                           gemv->few.data + (k * gemv->few.k_step + f * gemv->few.i_step) *
                                                (int64_t)mica_dtype_size(gemv->few.dtype),
                           gemv->few.k_step);
        if (by_dots) {
            for (int64_t j = 0; j < n; j++) {
                const float *line =
                    gemv_line(many, k * many->k_step + (i + j) * many->i_step, depth, many->k_step, buffer);
                for (int64_t f = 0; f < gemv->n_few; f++) sums[f][j] += gemv->variant->dot(depth, few[f], line);
            }
            continue;
        }
        memset(block, 0, sizeof block);
        for (int64_t kk = 0; kk < depth; kk++) {
            const float *line = gemv_line(many, (k + kk) * many->k_step + i * many->i_step, n, many->i_step, buffer);
            for (int64_t f = 0; f < gemv->n_few; f++) gemv->variant->axpy(n, few[f][kk], line, block[f]);
        }
        for (int64_t f = 0; f < gemv->n_few; f++) gemv->variant->axpy(n, 1.0f, block[f], sums[f]);
    }
    const int64_t size = (int64_t)mica_dtype_size(many->dtype);
    for (int64_t f = 0; f < gemv->n_few; f++)
        mica__store_f32(many->dtype, n, gemv->out + (f * gemv->few_step + i * gemv->many_step) * size, gemv->many_step,
                        sums[f]);
}
