/* Small f32 products: both operands are read in place. The last columns overlap the previous vector and are computed
 * twice instead of masked: the bits are the same. */
#include "kernels/matmul/gemm.h"

enum {
    DIRECT_BYTES = 1 << 19,     /* B fits the L2 cache                                  */
    DIRECT_DEPTH = 1024         /* a strip of B nearly fits the L1 cache                */
};

bool mica__gemm_is_direct(const mica__gemm_view *a, const mica__gemm_view *b, int64_t n, int64_t k)
{
    if (a->dtype != MICA_F32 || b->dtype != MICA_F32 || b->i_step != 1 || k < 1) return false;
    if (k > DIRECT_DEPTH || n * k * (int64_t)sizeof(float) > DIRECT_BYTES) return false;
    /* rows a multiple of 2 KiB apart map to the same few cache sets */
    return (b->k_step % 512 != 0 && a->k_step % 512 != 0) || k <= 64;
}

/* Fewer columns than a vector: uses padded copies. */
static void direct_few(const mica__gemm_variant *v, mica__gemm_strip *s, const mica__gemm_view *b, int64_t n)
{
    enum { ROWS = 32, MAX_LANES = 16 };
    float *strip = mica__scratch_alloc((DIRECT_DEPTH + ROWS) * MAX_LANES * sizeof *strip);
    float *c = strip + DIRECT_DEPTH * MAX_LANES;
    float *const out = s->to;
    const float *const a = s->a;
    const int64_t m = s->m, row = s->to_row;
    mica__gemm_pack_view(b, 0, s->depth, 0, n, v->lanes, strip);
    s->b = strip;
    s->b_k = v->lanes;
    s->to = c;
    s->to_row = v->lanes;
    for (int64_t i = 0; i < m; i += ROWS) {
        s->m = mica__min_i64(ROWS, m - i);
        s->a = a + i * s->a_row;
        v->narrow(s);
        for (int64_t r = 0; r < s->m; r++) memcpy(out + (i + r) * row, c + r * v->lanes, (size_t)n * sizeof(float));
    }
    mica__scratch_release(strip);
}

void mica__gemm_direct(const mica__gemm_variant *v, const mica__gemm_view *a, const mica__gemm_view *b, int64_t i,
                       int64_t m, int64_t n, int64_t k, float *out)
{
    const float *columns = (const float *)(const void *)b->data;
    float *to = out + i * n;
    mica__gemm_strip s = {.m = m,
                          .depth = k,
                          .a = (const float *)(const void *)a->data + i * a->i_step,
                          .a_row = a->i_step,
                          .a_k = a->k_step,
                          .a_block = a->i_step,
                          .b_k = b->k_step,
                          .to = to,
                          .to_row = n};
    if (n < v->lanes) {
        direct_few(v, &s, b, n);
        return;
    }
    int64_t j = 0;
    for (; j + v->nr <= n; j += v->nr) {
        s.b = columns + j;
        s.to = to + j;
        v->strip(&s);
    }
    if (n - j > v->lanes && n >= v->nr) {
        s.b = columns + n - v->nr;
        s.to = to + n - v->nr;
        v->strip(&s);
        return;
    }
    for (; j < n; j += v->lanes) {
        const int64_t at = mica__min_i64(j, n - v->lanes);
        s.b = columns + at;
        s.to = to + at;
        v->narrow(&s);
    }
}
