/* Packs a view into strips: element (k, i) to to[k * width + i]. If i is contiguous, this is a copy. If k is
 * contiguous, it is a transpose of 4 x 4 blocks in registers. Other layouts and dtypes are converted through a row of
 * floats. */
#include "kernels/matmul/gemm.h"
#include "simd/fixed.h"

enum {
    PACK_PIECE = 256, /* elements of k that are converted at once                      */
    PACK_AHEAD = 8    /* rows to prefetch: hardware does not, as each is elsewhere */
};

/* f32 with i_step 1: the source has rows of the strip. */
static void gemm_pack_rows(const float *from, int64_t k_step, int64_t depth, int64_t n, int width, float *to)
{
    for (int64_t k = 0; k < depth; k++, from += k_step, to += width) {
        int64_t i = 0;
        if (k + PACK_AHEAD < depth) __builtin_prefetch(from + PACK_AHEAD * k_step);
        for (; i + 4 <= n; i += 4) f32x4_store(to + i, f32x4_load(from + i));
        for (; i < n; i++) to[i] = from[i];
        for (; i < width; i++) to[i] = 0.0f;
    }
}

/* Four contiguous lines along k to four adjacent columns of the strip. A step of 0 repeats the line's first four
 * floats. */
static inline void gemm_pack_four(const float *line[4], const int64_t step[4], int64_t depth, int width, float *to)
{
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4, to += 4 * width) {
        const f32x4 a = f32x4_load(line[0]), b = f32x4_load(line[1]);
        const f32x4 c = f32x4_load(line[2]), d = f32x4_load(line[3]);
        const f32x4 ac0 = f32x4_low_pairs(a, c), ac1 = f32x4_high_pairs(a, c);
        const f32x4 bd0 = f32x4_low_pairs(b, d), bd1 = f32x4_high_pairs(b, d);
        f32x4_store(to, f32x4_low_pairs(ac0, bd0));
        f32x4_store(to + width, f32x4_high_pairs(ac0, bd0));
        f32x4_store(to + 2 * width, f32x4_low_pairs(ac1, bd1));
        f32x4_store(to + 3 * width, f32x4_high_pairs(ac1, bd1));
        for (int r = 0; r < 4; r++) line[r] += 4 * step[r];
    }
    for (; k < depth; k++, to += width)
        for (int r = 0; r < 4; r++, line[r - 1] += step[r - 1]) to[r] = *line[r];
}

/* f32 with k_step 1, width at least 4. */
static void gemm_pack_columns(const float *from, int64_t i_step, int64_t depth, int64_t n, int width, float *to)
{
    enum { PIECE = 16 }; /* of k: a cache line */
    static const float zeros[4] = {0};
    for (int first = 0; first < width; first += 4) {
        const int i = first + 4 <= width ? first : width - 4; /* the last four may overlap the previous */
        const float *line[4];
        int64_t step[4];
        for (int r = 0; r < 4; r++) {
            line[r] = i + r < n ? from + (i + r) * i_step : zeros;
            step[r] = i + r < n;
        }
        for (int64_t k = 0; k < depth; k += PIECE) {
            /* prefetch the next four lines, which start elsewhere in memory */
            for (int r = 0; r < 4; r++) __builtin_prefetch(line[r] + 4 * i_step * step[r]);
            gemm_pack_four(line, step, mica__min_i64(PIECE, depth - k), width, to + k * width + i);
        }
    }
}

void mica__gemm_pack_view(const void *operand, int64_t k, int64_t depth, int64_t i, int64_t n, int width, float *to)
{
    const mica__gemm_view *view = operand;
    const int64_t size = (int64_t)mica_dtype_size(view->dtype);
    const char *from = view->data + (k * view->k_step + i * view->i_step) * size;
    if (view->dtype == MICA_F32 && view->i_step == 1) {
        gemm_pack_rows((const float *)(const void *)from, view->k_step, depth, n, width, to);
        return;
    }
    if (view->dtype == MICA_F32 && view->k_step == 1 && width >= 4) {
        gemm_pack_columns((const float *)(const void *)from, view->i_step, depth, n, width, to);
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
