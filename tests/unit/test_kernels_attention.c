/* Attention and its gradients. The inner loops of every variant, and of one wider than this CPU
 * has, are compared with sums in double. The ops are compared with the reference at the sizes where
 * they switch algorithms: few queries over long caches, partial panels, more dims and columns than
 * a block holds, heads that share keys.
 *
 * runs: arm, first, wide-vectors */
#include "kernels_util.h"

#define SIMD_BYTES 64
#define ATTENTION_KEYS 8
#define ATTENTION_KEYS_ONE 16
#define ATTENTION_ROWS 12
#define ATTENTION_ROWS_FEW 8
#define ATTENTION_COLUMNS 2
#define ATTENTION_VARIANT wide_variant
#include "kernels/attention/attention_body.inc"

/* Exactly n elements, so that a sanitizer reports accesses past the end. */
static float *floats(int64_t n)
{
    float *x = malloc((size_t)(n ? n : 1) * sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < n; i++) x[i] = (float)util_real(-1, 1);
    return x;
}

static void near_to(float got, double want, double tolerance, int64_t i)
{
    CHECK_MSG(fabs((double)got - want) <= tolerance, "element %lld: %g, not %g", (long long)i, (double)got, want);
}

static void check_scores(const mica__attention_variant *v, int vectors, int64_t keys, int64_t dims, bool add)
{
    const int64_t width = vectors * v->lanes, row = dims + 3;
    float *k = floats(keys * row - (keys ? 3 : 0)), *q = floats(dims * width), *score = floats(keys * width),
          *top = floats(width);
    float *before = malloc((size_t)(keys * width + 1) * sizeof *before), top_before[64];
    memcpy(before, score, (size_t)(keys * width) * sizeof *before);
    memcpy(top_before, top, (size_t)width * sizeof *top);
    v->scores(vectors, keys, dims, k, row, q, score, add, top);
    for (int64_t i = 0; i < width; i++) {
        float best = top_before[i];
        for (int64_t s = 0; s < keys; s++) {
            double sum = add ? (double)before[s * width + i] : 0;
            for (int64_t d = 0; d < dims; d++) sum += (double)k[s * row + d] * (double)q[d * width + i];
            near_to(score[s * width + i], sum, 1e-6 * (double)(dims + 1), s);
            best = score[s * width + i] > best ? score[s * width + i] : best;
        }
        CHECK_MSG(top[i] == best, "top %lld", (long long)i);
    }
    free(k);
    free(q);
    free(score);
    free(top);
    free(before);
}

static void check_weights(const mica__attention_variant *v, int vectors, int64_t keys)
{
    const int64_t width = vectors * v->lanes;
    float *score = floats(keys * width), *before = floats(keys * width), *mask = floats(keys * width);
    float top[64], sum[64];
    int32_t seen[64];
    for (int64_t i = 0; i < width; i++) {
        top[i] = -INFINITY;
        sum[i] = 0.5f;
        seen[i] = (int32_t)util_below(keys + 1);
    }
    for (int64_t i = 0; i < keys * width; i++) {
        score[i] = before[i] = before[i] * 60;
        if (i % 5 == 0) mask[i] = -INFINITY;
    }
    v->hide(vectors, keys, score, mask, seen, top);
    for (int64_t i = 0; i < width; i++) {
        double best = -(double)INFINITY;
        for (int64_t s = 0; s < keys; s++) {
            const float added = before[s * width + i] + mask[s * width + i];
            const float want = s < seen[i] ? added : -INFINITY;
            CHECK_MSG(score[s * width + i] == want, "hidden %lld of %lld", (long long)s, (long long)i);
            if ((double)want > best) best = (double)want;
        }
        CHECK_MSG((double)top[i] == best, "top %lld", (long long)i);
    }
    memcpy(before, score, (size_t)(keys * width) * sizeof *score);
    v->weights(vectors, keys, score, top, sum);
    for (int64_t i = 0; i < width; i++) {
        double total = 0.5;
        const double base = top[i] == -INFINITY ? 0 : (double)top[i];
        for (int64_t s = 0; s < keys; s++) {
            const double want = exp2((double)(float)((double)before[s * width + i] - base));
            near_to(score[s * width + i], want, 3e-7 * want + 2e-38, s);
            CHECK_MSG(before[s * width + i] != -INFINITY || score[s * width + i] == 0, "weight of what is hidden");
            total += want;
        }
        near_to(sum[i], total, 1e-6 * (double)(keys + 1), i);
    }
    free(score);
    free(before);
    free(mask);
}

static void check_values(const mica__attention_variant *v, int vectors, int64_t keys, int64_t strips, bool add)
{
    const int64_t width = vectors * v->lanes, columns = strips * v->strip;
    float *score = floats(keys * width), *values = floats(keys * columns), *out = floats(width * columns);
    float *before = malloc((size_t)(width * columns + 1) * sizeof *before);
    memcpy(before, out, (size_t)(width * columns) * sizeof *out);
    v->values(vectors, keys, score, strips, values, keys * v->strip, out, columns, add);
    for (int64_t i = 0; i < width; i++)
        for (int64_t e = 0; e < columns; e++) {
            double sum = add ? (double)before[i * columns + e] : 0;
            for (int64_t s = 0; s < keys; s++)
                sum += (double)score[s * width + i] *
                       (double)values[e / v->strip * keys * v->strip + s * v->strip + e % v->strip];
            near_to(out[i * columns + e], sum, 1e-6 * (double)(keys + 1), i * columns + e);
        }
    free(score);
    free(values);
    free(out);
    free(before);
}

/* fold: the product of transposed scores with b. */
static void check_fold(const mica__attention_variant *v, int64_t keys, int64_t panels, int64_t strips, bool add)
{
    const int64_t width = 3 * v->lanes, columns = strips * v->strip, depth = panels * width;
    float *score = floats(panels * keys * width), *b = floats(depth * columns), *out = floats(keys * columns);
    float *before = malloc((size_t)(keys * columns + 1) * sizeof *before);
    memcpy(before, out, (size_t)(keys * columns) * sizeof *out);
    v->fold(keys, panels, score, keys * width, strips, b, out, columns, add);
    for (int64_t s = 0; s < keys; s++)
        for (int64_t e = 0; e < columns; e++) {
            double sum = add ? (double)before[s * columns + e] : 0;
            for (int64_t q = 0; q < depth; q++)
                sum += (double)score[q / width * keys * width + s * width + q % width] *
                       (double)b[e / v->strip * depth * v->strip + q * v->strip + e % v->strip];
            near_to(out[s * columns + e], sum, 1e-6 * (double)(depth + 1), s * columns + e);
        }
    free(score);
    free(b);
    free(out);
    free(before);
}

static void check_slopes(const mica__attention_variant *v, int64_t keys)
{
    const int64_t width = 3 * v->lanes;
    float *weight = floats(keys * width), *slope = floats(keys * width), sum[64];
    float *w = malloc((size_t)(keys * width + 1) * sizeof *w), *d = malloc((size_t)(keys * width + 1) * sizeof *d);
    memcpy(w, weight, (size_t)(keys * width) * sizeof *w);
    memcpy(d, slope, (size_t)(keys * width) * sizeof *d);
    for (int64_t i = 0; i < width; i++) sum[i] = i % 7 ? (float)util_real(0.5, 2) : 0;
    v->slopes(keys, weight, slope, sum);
    for (int64_t i = 0; i < width; i++) {
        const double inverse = sum[i] != 0 ? 1 / (double)sum[i] : 0;
        double mean = 0;
        for (int64_t s = 0; s < keys; s++) mean += (double)w[s * width + i] * (double)d[s * width + i] * inverse;
        for (int64_t s = 0; s < keys; s++) {
            const double p = (double)w[s * width + i] * inverse;
            near_to(weight[s * width + i], p, 1e-6, s);
            near_to(slope[s * width + i], p * ((double)d[s * width + i] - mean), 2e-6 * (double)(keys + 1), s);
        }
    }
    free(weight);
    free(slope);
    free(w);
    free(d);
}

/* dots and mix, which read keys and values of any dtype where they are */
static void check_stream(const mica__attention_variant *v, mica_dtype dtype, int rows, int64_t keys, int64_t dims)
{
    const int64_t row = dims + 16;
    const mica__spec spec = util_spec(dtype, 2, (int64_t[]){keys, row});
    util_tensor k = util_tensor_new(spec, UTIL_DENSE);
    float *q = floats(rows * dims), *score = floats(rows * (keys + 1)), *out = floats(rows * dims);
    float *before = malloc((size_t)(rows * dims + 1) * sizeof *before);
    memcpy(before, out, (size_t)(rows * dims) * sizeof *out);
    v->dots(dtype, rows, keys, dims, k.t.data, row, q, score, keys + 1);
    for (int r = 0; r < rows; r++)
        for (int64_t s = 0; s < keys; s++) {
            double sum = 0;
            for (int64_t d = 0; d < dims; d++)
                sum += (double)q[r * dims + d] * mica__get_f64(dtype, k.t.data, s * row + d);
            near_to(score[r * (keys + 1) + s], sum, (dtype == MICA_I8 ? 64 : 1) * 2e-6 * (double)dims, s);
        }
    v->mix(dtype, rows, keys, dims, score, keys + 1, k.t.data, row, out);
    for (int r = 0; r < rows; r++)
        for (int64_t d = 0; d < dims; d++) {
            double sum = (double)before[r * dims + d], magnitude = 1;
            for (int64_t s = 0; s < keys; s++) {
                const double term = (double)score[r * (keys + 1) + s] * mica__get_f64(dtype, k.t.data, s * row + d);
                sum += term;
                magnitude += fabs(term);
            }
            near_to(out[r * dims + d], sum, 1e-7 * magnitude * (double)(keys + 1), d);
        }
    float top = v->top(keys, score, -3), want = -3;
    for (int64_t s = 0; s < keys; s++) want = score[s] > want ? score[s] : want;
    CHECK_MSG(top == want, "top %g, not %g", (double)top, (double)want);
    double sum = 0;
    for (int64_t s = 0; s < keys; s++) sum += exp2((double)score[s] - (double)top);
    near_to(v->weigh(keys, score, top), sum, 1e-5 * (double)(keys + 1), 0);
    free(q);
    free(score);
    free(out);
    free(before);
    util_free(&k);
}

/* Every f16 and bf16. */
static void check_widen(const mica__attention_variant *v)
{
    static uint16_t half[65536];
    static float got[65536];
    for (int i = 0; i < 65536; i++) half[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        const mica_dtype dtype = t ? MICA_BF16 : MICA_F16;
        v->widen(dtype, 65535, (const char *)half, got);
        for (int i = 0; i < 65535; i++) {
            const double want = mica__get_f64(dtype, half, i);
            CHECK_MSG(want != want ? got[i] != got[i] : (double)got[i] == want, "%s 0x%04x: %g, not %g",
                      mica_dtype_name(dtype), (unsigned)i, (double)got[i], want);
        }
    }
    int8_t bytes[256];
    for (int i = 0; i < 256; i++) bytes[i] = (int8_t)(i - 128);
    v->widen(MICA_I8, 251, (const char *)bytes, got);
    for (int i = 0; i < 251; i++) CHECK_MSG(got[i] == (float)(i - 128), "%d: %g", i - 128, (double)got[i]);
    CHECK(v->finite(65535, (const float[65535]){0}));
    for (int i = 0; i < 131; i++) {
        float x[131] = {0};
        x[i] = i % 2 ? NAN : -INFINITY;
        CHECK_MSG(!v->finite(131, x), "element %d", i);
    }
}

static void check_variant(const mica__attention_variant *v, const char *name)
{
    test_case("%s", name);
    check_widen(v);
    for (int vectors = 1; vectors <= 3; vectors++)
        for (int64_t keys = 0; keys <= 37; keys += keys < 10 ? 1 : 9) {
            test_case("%s: %d vectors, %lld keys", name, vectors, (long long)keys);
            for (int64_t dims = 0; dims < 40; dims += 13) check_scores(v, vectors, keys, dims, dims % 2);
            if (keys > 0) check_weights(v, vectors, keys);
            check_values(v, vectors, keys, 1 + keys % 3, keys % 2);
            check_fold(v, keys, 1 + keys % 3, vectors, keys % 2);
            if (vectors == 3) check_slopes(v, keys);
        }
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16, MICA_I8};
    for (int rows = 1; rows <= 4; rows++)
        for (int t = 0; t < 4; t++)
            for (int64_t keys = 1; keys < 100; keys += keys < 6 ? 1 : 19)
                check_stream(v, dtypes[t], rows, keys, 16 * (1 + keys % 4));
}

TEST(attention_variants)
{
    const char *name = NULL;
    const mica__attention_variant *v;
    for (size_t i = 0; (v = mica__attention_variant_at(i, &name)) != NULL; i++) check_variant(v, name);
    check_variant(&wide_variant, "64 bytes");
}

/* ------------------------------------------------------------------ whole -- */

typedef struct sizes {
    int64_t batch, heads, groups, times, keys, dims, size;
} sizes;

static void check_both(mica_dtype dtype, mica__attr_attention attr, sizes z, mica_dtype mask_type, util_layout layout)
{
    const mica__spec result = util_spec(dtype, 4, (int64_t[]){z.batch, z.heads, z.times, z.size});
    util_tensor q = util_tensor_new(util_spec(dtype, 4, (int64_t[]){z.batch, z.heads, z.times, z.dims}), layout);
    util_tensor k = util_tensor_new(util_spec(dtype, 4, (int64_t[]){z.batch, z.groups, z.keys, z.dims}), layout);
    util_tensor v = util_tensor_new(util_spec(dtype, 4, (int64_t[]){z.batch, z.groups, z.keys, z.size}), layout);
    util_tensor m = util_tensor_new(util_spec(mask_type, 4, (int64_t[]){z.batch, z.heads, z.times, z.keys}), layout);
    util_tensor c = util_tensor_new(result, layout);
    for (int64_t i = 0; mask_type != MICA_BOOL && i < mica__spec_size(&m.t.spec); i += 3)
        mica__set_f64(mask_type, m.t.data, util_offset(&m.t, i), -INFINITY);
    const mica__tensor in[4] = {q.t, k.t, v.t, m.t}, with_c[5] = {q.t, k.t, v.t, attr.has_mask ? m.t : c.t, c.t};
    const int64_t all = mica__spec_size(&q.t.spec) + mica__spec_size(&k.t.spec) + mica__spec_size(&v.t.spec);
    for (int grad = 0; grad < 2; grad++) {
        test_case("%s%s B %lld H %lld G %lld T %lld S %lld D %lld E %lld, causal %d, mask %s",
                  grad ? "gradients, " : "", mica_dtype_name(dtype), (long long)z.batch, (long long)z.heads,
                  (long long)z.groups, (long long)z.times, (long long)z.keys, (long long)z.dims, (long long)z.size,
                  (int)attr.causal, attr.has_mask ? mica_dtype_name(mask_type) : "none");
        /* dk and dv are sums over all queries of a key */
        const double queries = (double)(z.heads / z.groups * z.times);
        if (grad)
            util_check(MICA__OP_ATTENTION_GRAD, with_c, attr.has_mask ? 5 : 4, &attr,
                       util_spec(dtype, 1, (int64_t[]){all}), 3 * util_rtol(dtype),
                       (dtype == MICA_F64 ? 1e-12 : 8e-6) * (4 + sqrt(queries)) + util_rtol(dtype));
        else
            util_check(MICA__OP_ATTENTION, in, attr.has_mask ? 4 : 3, &attr, result, 3 * util_rtol(dtype),
                       5 * util_rtol(dtype));
    }
    util_free(&q);
    util_free(&k);
    util_free(&v);
    util_free(&m);
    util_free(&c);
}

TEST(attention_any_shape)
{
    for (int i = 0; i < 60; i++) {
        const int64_t groups = 1 + util_below(2);
        const sizes z = {1 + util_below(2), groups * (1 + util_below(3)), groups, util_size(), util_size(), util_size(),
                         util_size()};
        const mica_dtype dtype = i % 3 ? MICA_F32 : util_floats[i / 3 % 4];
        const mica__attr_attention attr = {.scale = util_real(-0.1, 0.5), .causal = i % 2, .has_mask = i / 2 % 2};
        check_both(dtype, attr, z, i / 4 % 2 ? MICA_BOOL : dtype, UTIL_ANY);
    }
}

/* Each algorithm, just below and above its size limits. */
TEST(attention_ways)
{
    static const sizes rows[] = {
        {1, 1, 1, 24, 192, 16, 16},   /* one whole panel and block              */
        {1, 1, 1, 97, 193, 17, 33},   /* one more of everything                 */
        {2, 4, 2, 50, 60, 8, 8},      /* a block holds the end of a head        */
        {1, 1, 1, 9, 40, 257, 5},     /* more dims than are packed at once      */
        {1, 1, 1, 10, 40, 3, 300},    /* more columns than a block              */
        {1, 1, 1, 300, 7, 4, 4},      /* more queries than keys                 */
        {1, 2, 1, 60, 1100, 4, 4},    /* gradients: many keys, smaller blocks   */
        {1, 1, 1, 1, 2049, 16, 32},   /* a stream of two parts                  */
        {2, 8, 1, 1, 700, 32, 16},    /* eight queries share keys               */
        {1, 2, 2, 3, 5000, 48, 64},   /* a few new tokens                       */
        {1, 3, 1, 3, 600, 16, 16},    /* nine queries: no stream                */
        {1, 2, 2, 2, 0, 16, 16},      /* no keys                                */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int kind = 0; kind < 4; kind++) {
            const mica__attr_attention attr = {.scale = 0.2, .causal = kind & 1, .has_mask = kind >> 1};
            check_both(MICA_F32, attr, rows[i], i % 2 ? MICA_BOOL : MICA_F32, UTIL_DENSE);
            if (kind == 0) check_both(MICA_F16, attr, rows[i], MICA_BOOL, UTIL_DENSE);
            if (kind == 1) check_both(MICA_BF16, attr, rows[i], MICA_BOOL, UTIL_DENSE);
        }
}

/* Masked keys have no effect, whatever they contain, for few queries and for many;
 * visible infinite values have. */
TEST(attention_hides_anything)
{
    for (int64_t times = 1; times <= 40; times += 13)
        for (int t = 0; t < 3; t++) {
            const mica_dtype dtype = util_floats[t];
            const int64_t q_shape[4] = {1, 1, times, 16}, k_shape[4] = {1, 1, 600, 16}, m_shape[4] = {1, 1, times, 600};
            test_case("%s, %lld queries", mica_dtype_name(dtype), (long long)times);
            util_tensor q = util_tensor_new(util_spec(dtype, 4, q_shape), UTIL_DENSE);
            util_tensor k = util_tensor_new(util_spec(dtype, 4, k_shape), UTIL_DENSE);
            util_tensor v = util_tensor_new(util_spec(dtype, 4, k_shape), UTIL_DENSE);
            util_tensor mask = util_tensor_new(util_spec(MICA_BOOL, 4, m_shape), UTIL_DENSE);
            for (int64_t i = 0; i < times * 600; i++) mica__set_i64(MICA_BOOL, mask.memory, i, i % 600 % 7 != 3);
            for (int64_t s = 3; s < 600; s += 7)
                for (int64_t d = 0; d < 16; d++) {
                    mica__set_f64(dtype, k.memory, s * 16 + d, s % 2 ? NAN : INFINITY);
                    mica__set_f64(dtype, v.memory, s * 16 + d, d % 2 ? NAN : -INFINITY);
                }
            const mica__attr_attention attr = {.scale = 0.5, .has_mask = 1};
            const mica__tensor in[4] = {q.t, k.t, v.t, mask.t};
            const mica__spec spec = util_spec(dtype, 4, q_shape);
            util_check(MICA__OP_ATTENTION, in, 4, &attr, spec, 3 * util_rtol(dtype), 5 * util_rtol(dtype));
            util_tensor out = util_run(MICA__OP_ATTENTION, 1, in, 4, &attr, spec, MICA_OK);
            for (int64_t i = 0; i < times * 16; i++) CHECK(isfinite(util_f64(&out.t, i)));
            util_free(&out);
            mica__set_f64(dtype, v.memory, 5, INFINITY); /* key 0, visible to all */
            out = util_run(MICA__OP_ATTENTION, 1, in, 4, &attr, spec, MICA_OK);
            for (int64_t i = 0; i < times * 16; i++) CHECK(isfinite(util_f64(&out.t, i)) == (i % 16 != 5));
            util_free(&out);
            mica__set_f64(dtype, q.memory, 0, NAN); /* the first query sees NaN, the others do not */
            out = util_run(MICA__OP_ATTENTION, 1, in, 4, &attr, spec, MICA_OK);
            for (int64_t i = 0; i < times * 16; i++) CHECK(isnan(util_f64(&out.t, i)) == (i < 16));
            util_free(&out);
            util_free(&q);
            util_free(&k);
            util_free(&v);
            util_free(&mask);
        }
}

/* Scores far above and below the range of exp, also rising from block to block. */
TEST(attention_large_scores)
{
    for (int64_t times = 1; times <= 30; times += 29) {
        const int64_t q_shape[4] = {1, 1, times, 16}, k_shape[4] = {1, 1, 900, 16};
        test_case("%lld queries", (long long)times);
        util_tensor q = util_tensor_new(util_spec(MICA_F32, 4, q_shape), UTIL_DENSE);
        util_tensor k = util_tensor_new(util_spec(MICA_F32, 4, k_shape), UTIL_DENSE);
        util_tensor v = util_tensor_new(util_spec(MICA_F32, 4, k_shape), UTIL_DENSE);
        for (int64_t i = 0; i < times * 16; i++) mica__set_f64(MICA_F32, q.memory, i, i % 16 ? 0 : 1);
        for (int64_t s = 0; s < 900; s++) mica__set_f64(MICA_F32, k.memory, s * 16, (double)(s - 450));
        const mica__attr_attention attr = {.scale = 2};
        const mica__tensor in[3] = {q.t, k.t, v.t};
        util_check(MICA__OP_ATTENTION, in, 3, &attr, util_spec(MICA_F32, 4, q_shape), 1e-5, 1e-5);
        util_free(&q);
        util_free(&k);
        util_free(&v);
    }
}
