/* mica bench: the parts of decoding besides matrix products: attention over a KV cache, and
 * all other ops of a step. */
#include "bench/bench.h"

/* The 2B4T shape. */
enum { HIDDEN = 2560, FEED = 6912, HEADS = 20, KV_HEADS = 5, DIMS = 128 };

static mica_array *bench_integer(mica_scope *s, int64_t value) { return mica_from_data(s, MICA_I64, 0, NULL, &value); }

/* --------------------------- attention over a cache: p = batch, queries, keys */

/* in: q, k, v of f16, the length */
static void make_cached(bench_state *b)
{
    const int64_t *p = b->c->p;
    mica_scope *s = b->inputs;
    for (uint64_t i = 0; i < 3; i++) {
        const int64_t shape[] = {p[0], i ? KV_HEADS : HEADS, i ? p[2] : p[1], DIMS};
        mica_array *x = mica_random_normal(s, MICA_F32, 4, shape, 70 + i);
        b->in[b->n_in++] = i ? mica_cast(s, x, MICA_F16) : x;
    }
    b->in[b->n_in++] = bench_integer(s, p[2]);
}

static size_t build_cached(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    mica_attention_options options;
    mica_attention_options_init(&options);
    options.causal = true;
    out[0] = mica_attention_cached(s, in[0], in[1], in[2], in[3], &options);
    return 1;
}

/* Counts only the pairs that the causal mask allows. */
static void count_cached(const bench_case *c, bench_work *work)
{
    const double queries = (double)c->p[1], keys = (double)c->p[2];
    work->flops = 4 * (double)(c->p[0] * HEADS * DIMS) * queries * (keys - (queries - 1) / 2);
}

const bench_family bench_cache = {"attention", make_cached, build_cached, count_cached};

/* ------------------ a step of one token without its matrices: p = layers, keys */

/* in: x, position, length, keys, values, weights of norms, and a row (1, n) that replaces all
 * matrices: a product with it is (1, 1) times (1, n). All layers share one cache. */
static void make_decode(bench_state *b)
{
    mica_scope *s = b->inputs;
    const int64_t cache[] = {1, KV_HEADS, b->c->p[1], DIMS};
    b->in[b->n_in++] = mica_random_normal(s, MICA_F32, 2, (int64_t[]){1, HIDDEN}, 80);
    b->in[b->n_in++] = mica_reshape(s, bench_integer(s, b->c->p[1] - 1), 1, (int64_t[]){1});
    b->in[b->n_in++] = bench_integer(s, b->c->p[1]);
    for (int i = 0; i < 2; i++) b->in[b->n_in++] = mica_state(s, MICA_F16, 4, cache);
    b->in[b->n_in++] = mica_random_uniform(s, MICA_F32, 1, (int64_t[]){FEED}, 0.5, 1.5, 81);
    b->in[b->n_in++] = mica_random_normal(s, MICA_F32, 2, (int64_t[]){1, FEED}, 82);
}

static mica_array *scaled_norm(mica_scope *s, mica_array *x, mica_array *weight, int64_t n)
{
    return mica_rms_norm(s, x, mica_slice_axis(s, weight, 0, 0, n, 1), 1e-5);
}

static mica_array *row_product(mica_scope *s, mica_array *x, mica_array *row, int64_t n)
{
    return mica_matmul(s, mica_slice_axis(s, x, 1, 0, 1, 1), mica_slice_axis(s, row, 1, 0, n, 1));
}

static mica_array *heads_of(mica_scope *s, mica_array *x, int64_t heads)
{
    return mica_reshape(s, x, 4, (int64_t[]){1, heads, 1, DIMS});
}

static size_t build_decode(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_array *x = in[0], *keys = in[3], *values = in[4], *weight = in[5], *row = in[6];
    mica_attention_options options;
    mica_attention_options_init(&options);
    options.causal = true;
    for (int64_t i = 0; i < c->p[0]; i++) {
        mica_array *h = scaled_norm(s, x, weight, HIDDEN);
        mica_array *q = mica_rope(s, heads_of(s, row_product(s, h, row, HIDDEN), HEADS), in[1], NULL);
        mica_array *k = mica_rope(s, heads_of(s, row_product(s, h, row, KV_HEADS * DIMS), KV_HEADS), in[1], NULL);
        keys = mica_update(s, keys, k, in[1], 2);
        values = mica_update(s, values, heads_of(s, row_product(s, h, row, KV_HEADS * DIMS), KV_HEADS), in[1], 2);
        mica_array *a = mica_attention_cached(s, q, keys, values, in[2], &options);
        a = scaled_norm(s, mica_reshape(s, a, 2, (int64_t[]){1, HIDDEN}), weight, HIDDEN);
        x = mica_add(s, x, row_product(s, a, row, HIDDEN));
        h = scaled_norm(s, x, weight, HIDDEN);
        mica_array *up = row_product(s, h, row, FEED);
        mica_array *gate = row_product(s, mica_neg(s, h), row, FEED); /* differs from `up` */
        h = scaled_norm(s, mica_mul(s, mica_relu2(s, gate), up), weight, FEED);
        x = mica_add(s, x, row_product(s, h, row, HIDDEN));
    }
    out[0] = x;
    return 1;
}

static void count_decode(const bench_case *c, bench_work *work)
{
    work->items = (double)c->p[0];
    work->item = "layer";
    work->flops = work->bytes = 0;
}

const bench_family bench_decode = {"graph", make_decode, build_decode, count_decode};
