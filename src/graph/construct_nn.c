/* Softmax, norms, matmul, rope, attention, cross entropy. */
#include <inttypes.h>
#include <math.h>

#include "graph/construct.h"

/* -------------------------------------------------------- softmax, norms ---- */

static mica_array *rows_over(mica_scope *s, mica__op op, mica_array *x, int axis)
{
    const char *name = mica__op_get((uint16_t)op)->name;
    if (!mica__usable1(s, name, x) || !mica__axis(s, name, x->spec.ndim, axis, &axis)) return NULL;
    return mica__axis_back(s, mica__build1(s, op, mica__axis_last(s, mica__to_float(s, x), axis), NULL, 0), axis);
}

mica_array *mica_softmax(mica_scope *s, mica_array *x, int axis) { return rows_over(s, MICA__OP_SOFTMAX, x, axis); }

mica_array *mica_log_softmax(mica_scope *s, mica_array *x, int axis)
{
    return rows_over(s, MICA__OP_LOG_SOFTMAX, x, axis);
}

/* A weight or bias has one element for each position of the last axis. */
static bool norm_weight(mica_scope *s, const char *op, const char *what, const mica_array *x, mica_array *w)
{
    if (!w) return mica__is_omitted(s);
    if (!mica__usable1(s, op, w)) return false;
    const int64_t last = x->spec.shape[x->spec.ndim - 1];
    if (w->spec.ndim == 1 && w->spec.shape[0] == last) return true;
    char text[MICA__SHAPE_TEXT];
    mica__scope_fail(s, MICA_ERR_SHAPE, "%s: %s has shape %s, the last axis has %" PRId64, op, what,
                     mica__shape_text(text, w->spec.ndim, w->spec.shape), last);
    return false;
}

/* y = op(x) * weight + bias. f16 and bf16 are computed in f32 and rounded once. */
static mica_array *normalised(mica_scope *s, mica__op op, mica_array *x, mica_array *weight, mica_array *bias,
                              double eps)
{
    const char *name = mica__op_get((uint16_t)op)->name;
    if (!mica__usable1(s, name, x)) return NULL;
    if (x->spec.ndim == 0) return mica__scope_fail(s, MICA_ERR_SHAPE, "%s: the array has no axes", name);
    if (!(eps >= 0)) return mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: eps is %g; it must be at least 0", name, eps);
    if (!norm_weight(s, name, "weight", x, weight) || !norm_weight(s, name, "bias", x, bias)) return NULL;
    mica_dtype dtype = mica__float_dtype((mica_dtype)x->spec.dtype);
    if (weight) dtype = mica_dtype_promote(dtype, (mica_dtype)weight->spec.dtype);
    if (bias) dtype = mica_dtype_promote(dtype, (mica_dtype)bias->spec.dtype);
    const mica__attr_norm attr = {.eps = eps, .wide = weight || bias};
    mica_array *y = mica__build1(s, op, mica__to_float(s, x), &attr, sizeof attr);
    if (weight) y = mica_mul(s, y, weight);
    if (bias) y = mica_add(s, y, bias);
    return mica_cast(s, y, dtype);
}

mica_array *mica_layer_norm(mica_scope *s, mica_array *x, mica_array *weight, mica_array *bias, double eps)
{
    return normalised(s, MICA__OP_LAYER_NORM, x, weight, bias, eps);
}

mica_array *mica_rms_norm(mica_scope *s, mica_array *x, mica_array *weight, double eps)
{
    return normalised(s, MICA__OP_RMS_NORM, x, weight, NULL, eps);
}

/* ---------------------------------------------------------------- matmul ---- */

/* Broadcasts x to these batch sizes; the last two axes stay. */
static mica_array *batched(mica_scope *s, mica_array *x, const mica__spec *batch)
{
    int64_t shape[MICA_MAX_DIMS];
    for (int d = 0; d < batch->ndim; d++) shape[d] = batch->shape[d];
    shape[batch->ndim] = x->spec.shape[x->spec.ndim - 2];
    shape[batch->ndim + 1] = x->spec.shape[x->spec.ndim - 1];
    return mica_broadcast_to(s, x, batch->ndim + 2, shape);
}

static mica__spec batch_of(const mica_array *x)
{
    mica__spec batch = x->spec;
    batch.shape[--batch.ndim] = 0;
    batch.shape[--batch.ndim] = 0;
    return batch;
}

/* A batch times one matrix is one product over all rows. Its gradient is then one product
 * too, instead of a product for each batch element and a sum. */
static mica_array *rows_times(mica_scope *s, mica_array *a, mica_array *b)
{
    const int ndim = a->spec.ndim;
    int64_t shape[MICA_MAX_DIMS], rows = 1;
    for (int d = 0; d < ndim - 1; d++) rows *= shape[d] = a->spec.shape[d];
    shape[ndim - 1] = b->spec.shape[1];
    a = mica_reshape(s, a, 2, (int64_t[]){rows, a->spec.shape[ndim - 1]});
    return mica_reshape(s, mica__build2(s, MICA__OP_MATMUL, a, b, NULL, 0), ndim, shape);
}

mica_array *mica_matmul(mica_scope *s, mica_array *a, mica_array *b)
{
    mica_array *const in[] = {a, b};
    if (!mica__usable(s, "matmul", in, 2)) return NULL;
    if (a->spec.ndim == 0 || b->spec.ndim == 0)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "matmul: operand %d has no axes", a->spec.ndim == 0 ? 0 : 1);
    /* two matrices of one dtype need no conversion (weak constants have no axes) */
    if (a->spec.ndim == 2 && b->spec.ndim == 2 && a->spec.dtype == b->spec.dtype && a->spec.dtype != MICA_BOOL &&
        a->spec.shape[1] == b->spec.shape[0])
        return mica__build_usable(s, MICA__OP_MATMUL, in, 2, NULL, 0);
    const bool row = a->spec.ndim == 1, column = b->spec.ndim == 1;
    mica_dtype dtype = mica__promote_all(in, 2);
    if (dtype == MICA_BOOL) dtype = MICA_I32;
    a = mica_cast(s, row ? mica_expand_dims(s, a, 0) : a, dtype);
    b = mica_cast(s, column ? mica_expand_dims(s, b, 1) : b, dtype);
    if (!a || !b) return NULL;
    const int64_t inner[] = {a->spec.shape[a->spec.ndim - 1], b->spec.shape[b->spec.ndim - 2]};
    if (inner[0] != inner[1])
        return mica__scope_fail(s, MICA_ERR_SHAPE, "matmul: inner sizes differ: %" PRId64 " and %" PRId64, inner[0],
                                inner[1]);
    mica_array *y;
    if (a->spec.ndim > 2 && b->spec.ndim == 2) {
        y = rows_times(s, a, b);
    } else {
        mica__spec batch, batch_a = batch_of(a), batch_b = batch_of(b);
        if (!mica__broadcast_spec(s, "matmul", &batch_a, &batch_b, &batch)) return NULL;
        y = mica__build2(s, MICA__OP_MATMUL, batched(s, a, &batch), batched(s, b, &batch), NULL, 0);
    }
    if (row) y = mica_squeeze(s, y, -2);
    if (column) y = mica_squeeze(s, y, -1);
    return y;
}

/* ------------------------------------------------------------------ rope ---- */

void mica_rope_options_init(mica_rope_options *options)
{
    if (options)
        *options = (mica_rope_options){.struct_size = sizeof *options, .base = 10000, .scale = 1, .magnitude = 1};
}

/* Positions with one axis less than x; axes along which they are equal have size 1. */
static mica_array *positions_of(mica_scope *s, const mica_array *x, mica_array *positions)
{
    mica__spec spec = x->spec;
    spec.shape[--spec.ndim] = 0;
    spec.dtype = MICA_F32;
    int64_t shape[MICA_MAX_DIMS];
    for (int d = 0; d < spec.ndim; d++) shape[d] = 1;
    if (positions) {
        mica__spec both;
        const int more = spec.ndim - positions->spec.ndim;
        if (!mica__broadcast_spec(s, "rope", &spec, &positions->spec, &both)) return NULL;
        if (!mica__shape_equal(&both, &spec)) {
            char got[MICA__SHAPE_TEXT], want[MICA__SHAPE_TEXT];
            return mica__scope_fail(s, MICA_ERR_SHAPE, "rope: positions of shape %s do not broadcast to %s",
                                    mica__shape_text(got, positions->spec.ndim, positions->spec.shape),
                                    mica__shape_text(want, spec.ndim, spec.shape));
        }
        for (int d = more; d < spec.ndim; d++) shape[d] = positions->spec.shape[d - more];
        return mica_reshape(s, positions, spec.ndim, shape);
    }
    for (int d = 0; d + 1 < spec.ndim; d++) spec.shape[d] = 1;
    const mica__attr_iota attr = {.spec = spec, .axis = spec.ndim - 1, .step = {.f = 1}};
    return mica__build(s, MICA__OP_IOTA, NULL, 0, &attr, sizeof attr);
}

mica_array *mica_rope(mica_scope *s, mica_array *x, mica_array *positions, const mica_rope_options *options)
{
    mica_rope_options o;
    mica_rope_options_init(&o);
    if (!mica__usable1(s, "rope", x) || !mica__read_options(s, "rope", options, &o, sizeof o)) return NULL;
    if (positions ? !mica__usable1(s, "rope", positions) : !mica__is_omitted(s)) return NULL;
    if (o.factors && !mica__usable1(s, "rope", o.factors)) return NULL;
    if (x->spec.ndim < 2)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "rope: x has %d axes instead of 2 or more", (int)x->spec.ndim);
    if (!(o.base > 0) || !isfinite(o.base) || !isfinite(o.scale))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "rope: base %g, scale %g: both must be finite and base positive",
                                o.base, o.scale);
    if (!isfinite(o.magnitude))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "rope: magnitude is %g; it must be finite", o.magnitude);
    const int64_t last = x->spec.shape[x->spec.ndim - 1], dims = o.dims == 0 ? last : o.dims;
    if (dims < 0 || dims > last || dims % 2)
        return mica__scope_fail(s, MICA_ERR_SHAPE, "rope: dims is %" PRId64 "; it must be even, from 0 to %" PRId64,
                                dims, last);
    if (o.factors && (o.factors->spec.ndim != 1 || o.factors->spec.shape[0] != dims / 2)) {
        char text[MICA__SHAPE_TEXT];
        return mica__scope_fail(s, MICA_ERR_SHAPE, "rope: factors of shape %s do not match %" PRId64 " pairs",
                                mica__shape_text(text, o.factors->spec.ndim, o.factors->spec.shape), dims / 2);
    }
    const mica__attr_rope_table turns = {.dims = dims, .base = o.base, .scale = o.scale, .magnitude = o.magnitude};
    mica_array *in[] = {positions_of(s, x, positions), o.factors ? mica__to_float(s, o.factors) : NULL};
    mica_array *table = mica__build(s, MICA__OP_ROPE_TABLE, in, o.factors ? 2 : 1, &turns, sizeof turns);
    const mica__attr_rope attr = {.dims = dims, .interleaved = o.interleaved};
    return mica__build2(s, MICA__OP_ROPE, mica__to_float(s, x), table, &attr, sizeof attr);
}

/* ------------------------------------------------------------- attention ---- */

void mica_attention_options_init(mica_attention_options *options)
{
    if (options) *options = (mica_attention_options){.struct_size = sizeof *options};
}

/* Broadcasts the mask to (batch, heads, time, keys). */
static mica_array *attention_mask(mica_scope *s, const mica_array *q, const mica_array *k, mica_array *mask)
{
    mica__spec want = q->spec, both;
    want.shape[3] = k->spec.shape[2];
    if (mask->spec.dtype != MICA_BOOL) mask = mica_cast(s, mask, (mica_dtype)q->spec.dtype);
    if (!mask || !mica__broadcast_spec(s, "attention", &want, &mask->spec, &both)) return NULL;
    if (mica__shape_equal(&both, &want)) return mica__broadcast_like(s, mask, &want);
    char got[MICA__SHAPE_TEXT], wanted[MICA__SHAPE_TEXT];
    return mica__scope_fail(s, MICA_ERR_SHAPE, "attention: mask of shape %s does not broadcast to %s",
                            mica__shape_text(got, mask->spec.ndim, mask->spec.shape),
                            mica__shape_text(wanted, want.ndim, want.shape));
}

mica_array *mica_attention(mica_scope *s, mica_array *q, mica_array *k, mica_array *v, mica_array *mask,
                           const mica_attention_options *options)
{
    static const char *const names[] = {"q", "k", "v"};
    mica_array *in[4] = {q, k, v, mask};
    mica_attention_options o;
    mica_attention_options_init(&o);
    if (!mica__usable(s, "attention", in, mask ? 4 : 3) || !mica__read_options(s, "attention", options, &o, sizeof o))
        return NULL;
    if (!mask && !mica__is_omitted(s)) return NULL;
    const mica_dtype dtype = mica__float_dtype(mica__promote_all(in, 3));
    for (int i = 0; i < 3; i++) {
        char text[MICA__SHAPE_TEXT];
        if (in[i]->spec.ndim != 4)
            return mica__scope_fail(s, MICA_ERR_SHAPE, "attention: %s has shape %s instead of 4 axes", names[i],
                                    mica__shape_text(text, in[i]->spec.ndim, in[i]->spec.shape));
        in[i] = mica_cast(s, in[i], dtype);
        if (!in[i]) return NULL;
    }
    if (!isfinite(o.scale))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "attention: scale is %g; it must be finite", o.scale);
    const int64_t dims = q->spec.shape[3];
    mica__attr_attention attr = {.scale = o.scale, .causal = o.causal, .has_mask = mask != NULL};
    if (attr.scale == 0) attr.scale = dims > 0 ? 1 / sqrt((double)dims) : 1;
    if (mask) in[3] = attention_mask(s, in[0], in[1], mask);
    return mica__build(s, MICA__OP_ATTENTION, in, mask ? 4 : 3, &attr, sizeof attr);
}

/* --------------------------------------------------------- cross entropy ---- */

mica_array *mica_cross_entropy(mica_scope *s, mica_array *logits, mica_array *labels)
{
    mica_array *const in[] = {logits, labels};
    if (!mica__usable(s, "cross_entropy", in, 2)) return NULL;
    mica__spec rows = logits->spec;
    if (rows.ndim > 0) rows.shape[--rows.ndim] = 0;
    if (logits->spec.ndim == 0 || !mica__shape_equal(&rows, &labels->spec)) {
        char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
        return mica__scope_fail(s, MICA_ERR_SHAPE, "cross_entropy: logits of shape %s do not match labels of shape %s",
                                mica__shape_text(a, logits->spec.ndim, logits->spec.shape),
                                mica__shape_text(b, labels->spec.ndim, labels->spec.shape));
    }
    logits = mica__to_float(s, logits);
    labels = mica_expand_dims(s, labels, -1);
    if (!logits || !labels) return NULL;
    mica_array *chosen = mica__take_along(s, MICA__CALLER_CROSS_ENTROPY, logits, labels, logits->spec.ndim - 1);
    chosen = mica_squeeze(s, chosen, -1);
    return mica__build2(s, MICA__OP_LOGSUMEXP, logits, chosen, NULL, 0);
}
