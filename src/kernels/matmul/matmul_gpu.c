/* Lowering of matrix products: tiles of simdgroup matrices; up to 8 rows or columns as vectors times the lines of the
 * other operand; integers one element per thread. */
#include "kernels/matmul/matmul_gpu.h"

#include "kernels/common/gpu_view.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_params.h"

enum {
    VECTOR_MOST = 8,            /* most rows or columns that are vectors                 */
    SPLIT_LEAST = 512,          /* least length of k per part                            */
    SPLIT_MOST = 16
};

const mica__gpu_shape *mica__gpu_tile_for(const mica__gpu_limits *gpu, int64_t m, int64_t n, int64_t batches, bool half)
{
    return mica__gpu_pick_tile(gpu, half ? MICA__KNOB_MATMUL_F16 : MICA__KNOB_MATMUL_F32, m, n, batches);
}

uint32_t mica__gpu_parts_of_k(const mica__gpu_limits *gpu, int64_t tiles, int64_t k)
{
    const int64_t wish = (int64_t)mica__gpu_cores(gpu) / mica__max_i64(1, tiles);
    const int64_t parts = mica__min_i64(mica__min_i64(wish, k / SPLIT_LEAST), SPLIT_MOST);
    return (uint32_t)mica__max_i64(1, parts);
}

/* Sizes of one launch. */
typedef struct matmul_sizes {
    int64_t m, n, k, batches;
    int outer;
} matmul_sizes;

static matmul_sizes sizes_of(const mica__gpu_launch *l)
{
    const mica__spec *a = &l->in[0].spec, *b = &l->in[1].spec;
    const int outer = a->ndim - 2;
    return (matmul_sizes){a->shape[outer], b->shape[outer + 1], a->shape[outer + 1], mica__product(a->shape, outer),
                          outer};
}

static mica_view matmul_batches(const mica__tensor *t)
{
    return mica__gpu_axes(t, t->spec.ndim - 2, t->spec.shape, t->strides);
}

static mica_matmul_params params_of(const mica__gpu_launch *l, matmul_sizes s)
{
    const mica__tensor *a = &l->in[0], *b = &l->in[1];
    return (mica_matmul_params){.a = matmul_batches(a),
                                .b = matmul_batches(b),
                                .a_row = a->strides[s.outer],
                                .a_col = a->strides[s.outer + 1],
                                .b_row = b->strides[s.outer],
                                .b_col = b->strides[s.outer + 1],
                                .m = (uint32_t)s.m,
                                .n = (uint32_t)s.n,
                                .k = (uint32_t)s.k,
                                .batches = (uint32_t)s.batches,
                                .parts = 1,
                                .each = (uint32_t)s.k};
}

static void matmul_types(mica__gpu_dispatch *d, const mica__tensor *a, const mica__tensor *b, int32_t out)
{
    mica__gpu_constant_uint(d, MICA_MATMUL_A_TYPE, (uint32_t)a->spec.dtype);
    mica__gpu_constant_uint(d, MICA_MATMUL_B_TYPE, (uint32_t)b->spec.dtype);
    mica__gpu_constant_uint(d, MICA_MATMUL_OUT_TYPE, (uint32_t)out);
}

static mica_status lower_tiles(const mica__gpu_launch *l, mica__gpu_list *list, matmul_sizes s)
{
    const mica__tensor *a = &l->in[0], *b = &l->in[1];
    const bool half = a->spec.dtype == MICA_F16 && b->spec.dtype == MICA_F16;
    const mica__gpu_shape *tile = mica__gpu_tile_for(l->gpu, s.m, s.n, s.batches, half);
    if (!tile) return mica__gpu_refuse(list, "no matrix units");
    const uint32_t parts = mica__gpu_parts_of_k(l->gpu, mica__gpu_tiles(tile, s.m, s.n, s.batches), s.k);
    const int64_t k = tile->k, each = ((s.k + parts - 1) / parts + k - 1) / k * k;
    mica_matmul_params p = params_of(l, s);
    p.parts = parts;
    if (parts > 1) p.each = (uint32_t)each;
    const int64_t count = s.m * s.n * s.batches,
                  partial = parts > 1 ? mica__gpu_workspace(list, (size_t)(count * parts) * sizeof(float)) : 0;

    mica__gpu_dispatch *d = mica__gpu_add(list, "matmul", tile->name);
    matmul_types(d, a, b, parts > 1 ? MICA_F32 : l->out->spec.dtype);
    const bool a_along_k = p.a_col == 1 || p.a_row != 1, b_along_k = p.b_row == 1 && p.b_col != 1;
    mica__gpu_constant_bool(d, MICA_MATMUL_A_ALONG_K, a_along_k);
    mica__gpu_constant_bool(d, MICA_MATMUL_B_ALONG_K, b_along_k);
    mica__gpu_constant_bool(d, MICA_MATMUL_EVEN_M, s.m % tile->m == 0);
    mica__gpu_constant_bool(d, MICA_MATMUL_EVEN_N, s.n % tile->n == 0);
    mica__gpu_constant_bool(d, MICA_MATMUL_EVEN_K, s.k % (parts > 1 ? each : k) == 0);
    mica__gpu_constant_bool(d, MICA_MATMUL_A_RUNS, (a_along_k ? p.a_col : p.a_row) == 1);
    mica__gpu_constant_bool(d, MICA_MATMUL_B_RUNS, (b_along_k ? p.b_row : p.b_col) == 1);
    mica__gpu_operand(d, l, 0);
    mica__gpu_operand(d, l, 1);
    if (parts > 1) mica__gpu_bind_workspace(d, partial);
    else mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, mica__gpu_parts(s.n, tile->n), mica__gpu_parts(s.m, tile->m), p.batches * parts,
                   tile->simds * l->gpu->simd_width, 1, 1);
    d->finishes = parts == 1;
    if (parts == 1) return MICA_OK;

    const mica_matmul_sum_params sum = {(uint32_t)count, parts};
    d = mica__gpu_add(list, "matmul", "matmul_sum");
    mica__gpu_constant_uint(d, MICA_MATMUL_OUT_TYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_bind_workspace(d, partial);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &sum, sizeof sum);
    mica__gpu_grid_flat(d, l->gpu, count);
    d->barrier = d->finishes = true;
    return MICA_OK;
}

/* Rows of a times the columns of b, or the reverse. */
static mica_status lower_vectors(const mica__gpu_launch *l, mica__gpu_list *list, matmul_sizes s)
{
    const bool turned = s.n < s.m; /* b has fewer: its columns are the vectors */
    const mica__tensor *w = &l->in[!turned], *v = &l->in[turned];
    const int w_line = turned ? s.outer : s.outer + 1, w_k = turned ? s.outer + 1 : s.outer;
    mica_matvec_params p = {.w = matmul_batches(w),
                            .v = matmul_batches(v),
                            .w_line = w->strides[w_line],
                            .w_k = w->strides[w_k],
                            .v_vector = v->strides[w_k],
                            .v_k = v->strides[w_line],
                            .out_line = turned ? s.n : 1,
                            .out_vector = turned ? 1 : s.n,
                            .out_batch = s.m * s.n,
                            .lines = (uint32_t)(turned ? s.m : s.n),
                            .vectors = (uint32_t)(turned ? s.n : s.m),
                            .k = (uint32_t)s.k};
    const bool beside = p.w_line == 1 && p.w_k != 1 && p.lines > 8;
    const uint32_t wide = l->gpu->simd_width;
    const mica__gpu_shape *shape =
        mica__gpu_pick(l->gpu, beside ? MICA__KNOB_MATVEC_BESIDE : MICA__KNOB_MATVEC, NULL, NULL);
    if (!shape) return mica__gpu_refuse(list, "threadgroups too small");
    const uint32_t vectors = p.vectors < shape->n ? p.vectors : shape->n,
                   lines = beside ? shape->m : shape->m * shape->simds;
    mica__gpu_dispatch *d = mica__gpu_add(list, "matmul", beside ? "matmul_beside" : "matmul_lines");
    matmul_types(d, w, v, l->out->spec.dtype);
    mica__gpu_constant_bool(d, MICA_MATMUL_A_ALONG_K, p.w_k == 1);
    mica__gpu_constant_bool(d, MICA_MATMUL_B_ALONG_K, p.v_k == 1);
    mica__gpu_constant_int(d, MICA_MATMUL_VECTOR_COUNT, (int32_t)vectors);
    mica__gpu_operand(d, l, !turned);
    mica__gpu_operand(d, l, turned);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid(d, mica__gpu_parts(p.lines, lines), mica__gpu_parts(p.vectors, vectors), (uint32_t)s.batches, wide,
                   shape->simds, 1);
    d->finishes = true;
    return MICA_OK;
}

mica_status mica__matmul_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const matmul_sizes s = sizes_of(l);
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    if (!mica__is_float(mica__dtype_of(l->out))) {
        const mica_matmul_params p = params_of(l, s);
        mica__gpu_dispatch *d = mica__gpu_add(list, "matmul", "matmul_integers");
        matmul_types(d, &l->in[0], &l->in[1], l->out->spec.dtype);
        mica__gpu_operand(d, l, 0);
        mica__gpu_operand(d, l, 1);
        mica__gpu_bind_out(d, 0);
        mica__gpu_params(list, d, &p, sizeof p);
        mica__gpu_grid_flat(d, l->gpu, s.m * s.n * s.batches);
        return MICA_OK;
    }
    if (s.m <= VECTOR_MOST || s.n <= VECTOR_MOST) return lower_vectors(l, list, s);
    return lower_tiles(l, list, s);
}
