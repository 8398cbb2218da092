/* Shape rules of matmul, convolution, attention and rope. */
#include <inttypes.h>

#include "graph/construct.h"

/* Names the size: these ops have too many for "shapes do not match". */
static mica_status sizes_differ(const mica__op_info *info, const char *what, int64_t a, int64_t b)
{
    return mica__fail(MICA_ERR_SHAPE, "%s: %s differ: %" PRId64 " and %" PRId64, info->name, what, a, b);
}

#define SAME_SIZE(what, a, b)                                      \
    do {                                                           \
        if ((a) != (b)) return sizes_differ(info, what, (a), (b)); \
    } while (0)

static mica_status same_dtype(const mica__op_info *info, const mica__spec *a, const mica__spec *b)
{
    if (a->dtype != b->dtype)
        return mica__fail(MICA_ERR_DTYPE, "%s: dtypes %s and %s differ", info->name,
                          mica_dtype_name((mica_dtype)a->dtype), mica_dtype_name((mica_dtype)b->dtype));
    return MICA_OK;
}

static mica_status float_dtype(const mica__op_info *info, const mica__spec *x)
{
    if (!mica__is_float((mica_dtype)x->dtype))
        return mica__fail(MICA_ERR_DTYPE, "%s: dtype %s; it must be a float", info->name,
                          mica_dtype_name((mica_dtype)x->dtype));
    return MICA_OK;
}

static mica_status has_axes(const mica__op_info *info, const char *what, const mica__spec *x, int ndim)
{
    char text[MICA__SHAPE_TEXT];
    if (x->ndim != ndim)
        return mica__fail(MICA_ERR_SHAPE, "%s: %s has shape %s instead of %d axes", info->name, what,
                          mica__shape_text(text, x->ndim, x->shape), ndim);
    return MICA_OK;
}

/* The products that pass_narrow.c builds: 8-bit integers into 32 bits, floats into f32. */
static mica_status narrow_dtypes(const mica__op_info *info, const mica__spec *a, const mica__spec *b, int64_t dtype)
{
    const mica__spec *in[] = {a, b};
    bool bytes = dtype == MICA_I32 || dtype == MICA_U32, floats = dtype == MICA_F32;
    for (int i = 0; i < 2; i++) {
        const int32_t d = in[i]->dtype;
        bytes = bytes && (d == MICA_I8 || d == MICA_U8);
        floats = floats && (d == MICA_F16 || d == MICA_BF16 || d == MICA_F32);
    }
    if (!bytes && !floats)
        return mica__fail(MICA_ERR_DTYPE, "%s: dtypes %s and %s with a result of %s are not supported", info->name,
                          mica_dtype_name((mica_dtype)a->dtype), mica_dtype_name((mica_dtype)b->dtype),
                          mica_dtype_name((mica_dtype)dtype));
    return MICA_OK;
}

MICA__SHAPE_RULE(matmul)
{
    (void)n_in;
    const mica__spec *a = in[0], *b = in[1];
    const mica__attr_cast *into = attr;
    MICA_TRY(into ? narrow_dtypes(info, a, b, into->dtype) : same_dtype(info, a, b));
    if (a->dtype == MICA_BOOL) return mica__fail(MICA_ERR_DTYPE, "%s: dtype bool is not supported", info->name);
    if (a->ndim < 2)
        return mica__fail(MICA_ERR_SHAPE, "%s: an operand has %d axes instead of 2 or more", info->name, (int)a->ndim);
    SAME_SIZE("numbers of axes", (int64_t)a->ndim, (int64_t)b->ndim);
    const int m = a->ndim - 2, k = a->ndim - 1;
    for (int d = 0; d < m; d++) SAME_SIZE("batch sizes", a->shape[d], b->shape[d]);
    SAME_SIZE("inner sizes", a->shape[k], b->shape[m]);
    *out = *a;
    out->shape[k] = b->shape[k];
    if (into) out->dtype = (int32_t)into->dtype;
    return MICA_OK;
}

/* (size - 1) * by + 1, or 0 if size is 0. */
static bool spread_size(int64_t size, int64_t by, int64_t *out)
{
    *out = 0;
    return size == 0 || (mica__mul_i64(size - 1, by, out) && mica__add_i64(*out, 1, out));
}

MICA__SHAPE_RULE(conv)
{
    (void)n_in;
    const mica__attr_conv *c = attr;
    const mica__spec *x = in[0], *w = in[1];
    if (c->spatial != 1 && c->spatial != 2)
        return mica__fail(MICA_ERR_INTERNAL, "%s: %" PRId64 " spatial axes", info->name, c->spatial);
    const int ndim = (int)c->spatial + 2;
    MICA_TRY(same_dtype(info, x, w));
    MICA_TRY(float_dtype(info, x));
    MICA_TRY(has_axes(info, "x", x, ndim));
    MICA_TRY(has_axes(info, "w", w, ndim));
    const int64_t channels = x->shape[1], outs = w->shape[0];
    if (c->groups < 1 || channels % c->groups || outs % c->groups)
        return mica__fail(MICA_ERR_SHAPE,
                          "%s: %" PRId64 " groups do not divide %" PRId64 " channels and %" PRId64 " outputs",
                          info->name, c->groups, channels, outs);
    SAME_SIZE("channels in a group", channels / c->groups, w->shape[1]);
    *out = *x;
    out->shape[1] = outs;
    for (int i = 0; i < c->spatial; i++) {
        const int64_t size = x->shape[i + 2], kernel = w->shape[i + 2];
        if (c->stride[i] < 1 || c->dilation[i] < 1 || c->input_dilation[i] < 1)
            return mica__fail(MICA_ERR_ARGUMENT, "%s: stride %" PRId64 ", dilation %" PRId64 "; both must be 1 or more",
                              info->name, c->stride[i], c->dilation[i]);
        int64_t span, room;
        const bool fits = spread_size(kernel, c->dilation[i], &span) &&
                          spread_size(size, c->input_dilation[i], &room) && mica__add_i64(room, c->pad_low[i], &room) &&
                          mica__add_i64(room, c->pad_high[i], &room);
        if (!fits || kernel < 1 || span > room)
            return mica__fail(MICA_ERR_SHAPE,
                              "%s: kernel of %" PRId64 " (dilation %" PRId64 ") does not fit size %" PRId64
                              " padded by %" PRId64 " and %" PRId64,
                              info->name, kernel, c->dilation[i], size, c->pad_low[i], c->pad_high[i]);
        out->shape[i + 2] = (room - span) / c->stride[i] + 1;
    }
    return MICA_OK;
}

/* Checks q, k and v; out gets the shape of the result and the dtype of q. */
static mica_status attention_sizes(const mica__op_info *info, const mica__spec *const *in, mica__spec *out)
{
    const mica__spec *q = in[0], *k = in[1], *v = in[2];
    MICA_TRY(float_dtype(info, q));
    MICA_TRY(has_axes(info, "q", q, 4));
    MICA_TRY(has_axes(info, "k", k, 4));
    MICA_TRY(has_axes(info, "v", v, 4));
    SAME_SIZE("batch sizes of q and k", q->shape[0], k->shape[0]);
    SAME_SIZE("batch sizes of q and v", q->shape[0], v->shape[0]);
    SAME_SIZE("heads of k and v", k->shape[1], v->shape[1]);
    SAME_SIZE("keys of k and v", k->shape[2], v->shape[2]);
    SAME_SIZE("dims of q and k", q->shape[3], k->shape[3]);
    const int64_t heads = q->shape[1], kv_heads = k->shape[1];
    if (kv_heads ? heads % kv_heads != 0 : heads != 0)
        return mica__fail(MICA_ERR_SHAPE, "%s: %" PRId64 " heads are not a multiple of %" PRId64 " key heads",
                          info->name, heads, kv_heads);
    *out = *q;
    out->shape[3] = v->shape[3];
    return MICA_OK;
}

MICA__SHAPE_RULE(attention)
{
    const mica__attr_attention *a = attr;
    if (n_in != (a->has_mask ? 4u : 3u)) return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs", info->name, n_in);
    const mica__spec *q = in[0], *mask = in[n_in - 1];
    MICA_TRY(float_dtype(info, q));
    MICA_TRY(same_dtype(info, q, in[1]));
    MICA_TRY(same_dtype(info, q, in[2]));
    MICA_TRY(attention_sizes(info, in, out));
    if (!a->has_mask) return MICA_OK;
    mica__spec want = *q;
    want.shape[3] = in[1]->shape[2];
    if (!mica__shape_equal(mask, &want) || (mask->dtype != MICA_BOOL && mask->dtype != q->dtype)) {
        char got[MICA__SPEC_TEXT], wanted[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: mask %s instead of bool or %s", info->name, mica__spec_text(got, mask),
                          mica__spec_text(wanted, &want));
    }
    return MICA_OK;
}

MICA__SHAPE_RULE(attention_cached)
{
    (void)attr;
    static const char *const names[] = {"k", "v"};
    if (n_in != 4 && n_in != 6) return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs", info->name, n_in);
    for (int i = 0; i < 2; i++) {
        const int32_t dtype = in[i + 1]->dtype;
        const bool fits = n_in == 6 ? dtype == MICA_I8 : dtype == MICA_F32 || dtype == MICA_F16 || dtype == MICA_BF16;
        if (!fits)
            return mica__fail(MICA_ERR_DTYPE, "%s: %s is %s; it must be f32, f16 or bf16, or i8 with scales",
                              info->name, names[i], mica_dtype_name((mica_dtype)dtype));
    }
    MICA_TRY(attention_sizes(info, in, out));
    for (int i = 0; i < 2 && n_in == 6; i++) {
        const mica__spec *scale = in[i + 4], *of = in[i + 1];
        char text[MICA__SPEC_TEXT];
        if (scale->dtype != MICA_F32 && scale->dtype != MICA_F16)
            return mica__fail(MICA_ERR_DTYPE, "%s: scales %s of %s; they must be f32 or f16", info->name,
                              mica__spec_text(text, scale), names[i]);
        if (scale->ndim != 3 || scale->shape[0] != of->shape[0] || scale->shape[1] != of->shape[1] ||
            scale->shape[2] != of->shape[2])
            return mica__fail(MICA_ERR_SHAPE, "%s: scales %s of %s; one per row is needed", info->name,
                              mica__spec_text(text, scale), names[i]);
    }
    return mica__one_integer(info, "length", in[3]);
}

/* The result is dq, dk and dv, flattened and joined. */
MICA__SHAPE_RULE(attention_grad)
{
    if (n_in < 4) return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs", info->name, n_in);
    mica__spec result;
    const mica__spec *c = in[n_in - 1];
    MICA_TRY(mica__shape_attention(info, in, n_in - 1, attr, &result));
    if (!mica__spec_equal(c, &result)) {
        char got[MICA__SPEC_TEXT], wanted[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: the gradient is %s instead of %s", info->name, mica__spec_text(got, c),
                          mica__spec_text(wanted, &result));
    }
    int64_t n = mica__spec_size(in[0]);
    if (!mica__add_i64(n, mica__spec_size(in[1]), &n) || !mica__add_i64(n, mica__spec_size(in[2]), &n))
        return mica__fail(MICA_ERR_SHAPE, "%s: the result has too many elements", info->name);
    *out = (mica__spec){.dtype = in[0]->dtype, .ndim = 1, .shape = {n}};
    return MICA_OK;
}

MICA__SHAPE_RULE(rope_table)
{
    const mica__attr_rope_table *a = attr;
    const mica__spec *at = in[0];
    char text[MICA__SPEC_TEXT];
    if (n_in < 1 || n_in > 2) return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs", info->name, n_in);
    if (at->ndim == MICA_MAX_DIMS || a->dims < 0 || a->dims % 2)
        return mica__fail(MICA_ERR_SHAPE, "%s: %" PRId64 " dims for positions with %d axes: dims must be even",
                          info->name, a->dims, (int)at->ndim);
    if (n_in == 2) MICA_TRY(float_dtype(info, in[1]));
    if (n_in == 2 && (in[1]->ndim != 1 || in[1]->shape[0] != a->dims / 2))
        return mica__fail(MICA_ERR_SHAPE, "%s: factors %s for %" PRId64 " pairs", info->name,
                          mica__spec_text(text, in[1]), a->dims / 2);
    *out = *at;
    out->dtype = MICA_F64;
    out->shape[out->ndim++] = a->dims;
    return MICA_OK;
}

MICA__SHAPE_RULE(rope)
{
    (void)n_in;
    const mica__attr_rope *a = attr;
    const mica__spec *x = in[0], *table = in[1];
    MICA_TRY(float_dtype(info, x));
    if (x->ndim == 0) return mica__fail(MICA_ERR_SHAPE, "%s: the array has no axes", info->name);
    const int last = x->ndim - 1;
    if (a->dims < 0 || a->dims > x->shape[last] || a->dims % 2)
        return mica__fail(MICA_ERR_SHAPE, "%s: dims is %" PRId64 "; it must be even, from 0 to %" PRId64, info->name,
                          a->dims, x->shape[last]);
    bool fits = table->dtype == MICA_F64 && table->ndim == x->ndim && table->shape[last] == a->dims;
    for (int d = 0; d < last && fits; d++) fits = table->shape[d] == x->shape[d] || table->shape[d] == 1;
    if (!fits) {
        char got[MICA__SPEC_TEXT], wanted[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: the table %s does not match x %s", info->name,
                          mica__spec_text(got, table), mica__spec_text(wanted, x));
    }
    *out = *x;
    return MICA_OK;
}
#undef SAME_SIZE
