/* Thin matrix products. */
#include "kernels/matmul/gemv.h"

#include "kernels/vec4.h"

/* n floats of a view along k or i: in place if they can be, else in buffer. */
static const float *gemv_line(const mica__gemm_view *view, int64_t offset, int64_t n, int64_t step, float *buffer)
{
    const char *from = view->data + offset * (int64_t)mica_dtype_size(view->dtype);
    if (view->dtype == MICA_F32 && step == 1) return (const float *)(const void *)from;
    mica__load_f32(view->dtype, n, buffer, from, step);
    return buffer;
}

static void gemv_axpy(int64_t n, float a, const float *x, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) mica__v4_store(y + i, mica__v4_load(y + i) + mica__v4_load(x + i) * a);
    for (; i < n; i++) y[i] += x[i] * a;
}

static float gemv_dot(int64_t n, const float *x, const float *y)
{
    mica__v4 s0 = mica__v4_all(0), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        s0 += mica__v4_load(x + i) * mica__v4_load(y + i);
        s1 += mica__v4_load(x + i + 4) * mica__v4_load(y + i + 4);
        s2 += mica__v4_load(x + i + 8) * mica__v4_load(y + i + 8);
        s3 += mica__v4_load(x + i + 12) * mica__v4_load(y + i + 12);
    }
    float sum = mica__v4_sum((s0 + s1) + (s2 + s3));
    for (; i < n; i++) sum += x[i] * y[i];
    return sum;
}

void mica__gemv_part(const mica__gemv *gemv, int64_t i, int64_t n)
{
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
                for (int64_t f = 0; f < gemv->n_few; f++) sums[f][j] += gemv_dot(depth, few[f], line);
            }
            continue;
        }
        memset(block, 0, sizeof block);
        for (int64_t kk = 0; kk < depth; kk++) {
            const float *line = gemv_line(many, (k + kk) * many->k_step + i * many->i_step, n, many->i_step, buffer);
            for (int64_t f = 0; f < gemv->n_few; f++) gemv_axpy(n, few[f][kk], line, block[f]);
        }
        for (int64_t f = 0; f < gemv->n_few; f++) gemv_axpy(n, 1.0f, block[f], sums[f]);
    }
    const int64_t size = (int64_t)mica_dtype_size(many->dtype);
    for (int64_t f = 0; f < gemv->n_few; f++)
        mica__store_f32(many->dtype, n, gemv->out + (f * gemv->few_step + i * gemv->many_step) * size, gemv->many_step,
                        sums[f]);
}
