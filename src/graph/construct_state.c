/* Arrays that are updated in place, and attention over them (docs/adr/0008).
 *
 * An UPDATE node is an ordinary value: the state with some elements replaced. The planner
 * makes it write into the memory of the state and refuses graphs that still need the old
 * value afterwards. */
#include <math.h>

#include "graph/construct.h"

mica_array *mica_state(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica__spec spec;
    if (!mica__make_spec(s, "state", dtype, ndim, shape, &spec)) return NULL;
    int64_t count = 0, strides[MICA_MAX_DIMS] = {0};
    size_t nbytes = 0;
    mica__spec_count(&spec, &count, &nbytes);
    mica__buffer *buffer;
    const mica_status status = mica__buffer_new(s->memory, nbytes, &buffer);
    if (status != MICA_OK) return mica__scope_failed(s, status);
    memset(buffer->data, 0, nbytes);
    buffer->changes = true;
    mica__row_major(&spec, strides);
    return mica__ready_leaf(s, "state", &spec, buffer, strides);
}

/* Can an update write to it? Yes for a state, the result of an update, and a parameter, which
 * is checked when the function is called. */
static bool is_state(mica_array *x)
{
    if (x->op == MICA__OP_UPDATE || x->op == MICA__OP_PARAM) return true;
    return mica__array_state(x) == MICA__READY && x->buffer->changes && mica__is_row_major(&x->spec, x->strides);
}

mica_array *mica_update(mica_scope *s, mica_array *state, mica_array *values, mica_array *start, int axis)
{
    mica_array *const in[] = {state, values, start};
    if (!mica__usable(s, "update", in, 3) || !mica__axis(s, "update", state->spec.ndim, axis, &axis)) return NULL;
    if (!is_state(state))
        return mica__scope_fail(s, MICA_ERR_STATE, "update: the array is neither a state nor the result of an update");
    return mica__build_usable(s, MICA__OP_UPDATE, in, 3, &(mica__attr_axis){axis}, sizeof(mica__attr_axis));
}

mica_array *mica_attention_cached(mica_scope *s, mica_array *q, mica_array *k, mica_array *v, mica_array *length,
                                  const mica_attention_options *options)
{
    mica_array *in[] = {q, k, v, length, NULL, NULL};
    mica_attention_options o;
    mica_attention_options_init(&o);
    if (!mica__usable(s, "attention_cached", in, 4) ||
        !mica__read_options(s, "attention_cached", options, &o, sizeof o))
        return NULL;
    const size_t n_in = o.k_scale || o.v_scale ? 6 : 4;
    in[4] = o.k_scale;
    in[5] = o.v_scale;
    if (!mica__usable(s, "attention_cached", in, n_in)) return NULL;
    if (!isfinite(o.scale))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "attention_cached: scale is %g; it must be finite", o.scale);
    mica__attr_attention attr = {.scale = o.scale, .causal = o.causal};
    const int64_t dims = q->spec.ndim == 4 ? q->spec.shape[3] : 0;
    if (attr.scale == 0) attr.scale = dims > 0 ? 1 / sqrt((double)dims) : 1;
    in[0] = mica__to_float(s, q);
    return mica__build(s, MICA__OP_ATTENTION_CACHED, in, n_in, &attr, sizeof attr);
}

mica_status mica_rows_to_i8(mica_scope *s, mica_array *x, mica_array **codes, mica_array **scales)
{
    if (codes) *codes = NULL;
    if (scales) *scales = NULL;
    MICA_TRY(mica__scope_check(s, "rows_to_i8"));
    if (!codes || !scales) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "rows_to_i8: codes or scales is NULL");
        return s->error.status;
    }
    if (!mica__usable1(s, "rows_to_i8", x)) return s->error.status;
    if (x->spec.ndim == 0 || x->spec.shape[x->spec.ndim - 1] == 0) {
        mica__scope_fail(s, MICA_ERR_SHAPE, "rows_to_i8: the rows of x have no elements");
        return s->error.status;
    }
    x = mica_cast(s, x, MICA_F32);
    mica_array *most = mica_max(s, mica_abs(s, x), (const int[]){-1}, 1, true);
    mica_array *scale = mica_div(s, most, mica_scalar(s, 127));
    /* a row of zeros: 0 / 0 is NaN, which casts to 0 */
    *codes = mica_cast(s, mica_round(s, mica_div(s, x, scale)), MICA_I8);
    *scales = mica_squeeze(s, scale, -1);
    return s->error.status;
}
