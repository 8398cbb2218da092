/* Synapses: constructor, shapes, cost and gradients. The gradient is one op that computes the
 * sigmoids again. The gradient of that op is rarely needed: it is built from elementary ops and
 * their rules. */
#include <inttypes.h>

#include "graph/construct.h"
#include "graph/op.h"
#include "graph/reverse.h"
#include "graph/vjp_util.h"

/* ------------------------------------------------------------ constructor -- */

static bool synapse_shapes(mica_scope *s, mica_array *x, mica_array *const *in, bool listed)
{
    static const char *const names[] = {"sigma", "mu", "drive", "weight", "source"};
    for (int i = 0; i < (listed ? 5 : 4); i++) {
        char text[MICA__SHAPE_TEXT];
        if (in[i]->spec.ndim == (listed ? 1 : 2) && mica__shape_equal(&in[i]->spec, &in[0]->spec)) continue;
        mica__scope_fail(s, MICA_ERR_SHAPE, "synapses: %s has shape %s; it must be (%s), like sigma", names[i],
                         mica__shape_text(text, in[i]->spec.ndim, in[i]->spec.shape),
                         listed ? "synapses" : "rows, columns");
        return false;
    }
    if (x->spec.ndim >= 1 && x->spec.ndim < MICA_MAX_DIMS) return true;
    mica__scope_fail(s, MICA_ERR_SHAPE, "synapses: x has %d axes; 1 to %d are allowed", (int)x->spec.ndim,
                     MICA_MAX_DIMS - 1);
    return false;
}

static bool list_usable(mica_scope *s, const char *name, mica_array *list)
{
    if (!mica__usable1(s, "synapses", list)) return false;
    if (mica__is_int((mica_dtype)list->spec.dtype)) return true;
    mica__scope_fail(s, MICA_ERR_DTYPE, "synapses: %s is %s, not an integer", name,
                     mica_dtype_name((mica_dtype)list->spec.dtype));
    return false;
}

/* source and first are given together or not at all. */
static bool lists_usable(mica_scope *s, mica_array *source, mica_array *first)
{
    if (!source && !first) return mica__is_omitted(s);
    if (!list_usable(s, "source", source) || !list_usable(s, "first", first)) return false;
    if (first->spec.ndim == 1 && first->spec.shape[0] > 0) return true;
    char text[MICA__SHAPE_TEXT];
    mica__scope_fail(s, MICA_ERR_SHAPE, "synapses: first has shape %s; it must be (columns + 1)",
                     mica__shape_text(text, first->spec.ndim, first->spec.shape));
    return false;
}

mica_array *mica_synapses(mica_scope *s, mica_array *x, mica_array *source, mica_array *first, mica_array *sigma,
                          mica_array *mu, mica_array *drive, mica_array *weight)
{
    mica_array *const floats[] = {x, sigma, mu, drive, weight}, *const params[] = {sigma, mu, drive, weight, source};
    if (!mica__usable(s, "synapses", floats, 5) || !lists_usable(s, source, first)) return NULL;
    if (!synapse_shapes(s, x, params, source != NULL)) return NULL;
    const mica_dtype dtype = mica__float_dtype(mica__promote_all(floats, 5));
    const int ndim = x->spec.ndim;
    int64_t shape[MICA_MAX_DIMS + 1], n = 1;
    for (int d = 0; d < ndim - 1; d++) n *= shape[d] = x->spec.shape[d];
    shape[ndim - 1] = 2;
    shape[ndim] = first ? first->spec.shape[0] - 1 : sigma->spec.shape[1];
    mica_array *in[7] = {mica_cast(s, mica_reshape(s, x, 2, (int64_t[]){n, x->spec.shape[ndim - 1]}), dtype)};
    for (int i = 0; i < 4; i++) in[1 + i] = mica_cast(s, params[i], dtype);
    if (source) in[5] = mica_cast(s, source, MICA_I32), in[6] = mica_cast(s, first, MICA_I32);
    mica_array *y = mica__build(s, MICA__OP_SYNAPSES, in, source ? 7 : 5, NULL, 0);
    return mica_reshape(s, y, ndim + 1, shape);
}

/* ------------------------------------------------------------------ rules -- */

static mica_status synapse_operands(const mica__op_info *info, const mica__spec *const *in, bool listed)
{
    const mica__spec *x = in[0], *sigma = in[1];
    char text[MICA__SPEC_TEXT];
    if (!mica__is_float((mica_dtype)x->dtype) || x->ndim != 2 || sigma->ndim != (listed ? 1 : 2))
        return mica__fail(MICA_ERR_DTYPE, "%s: x is %s, not a matrix of floats", info->name, mica__spec_text(text, x));
    for (int i = 1; i < 5; i++)
        if (in[i]->dtype != x->dtype || !mica__shape_equal(in[i], sigma))
            return mica__fail(MICA_ERR_SHAPE, "%s: operand %d is %s", info->name, i, mica__spec_text(text, in[i]));
    if (listed && (in[5]->dtype != MICA_I32 || !mica__shape_equal(in[5], sigma)))
        return mica__fail(MICA_ERR_SHAPE, "%s: source is %s", info->name, mica__spec_text(text, in[5]));
    if (listed && (in[6]->dtype != MICA_I32 || in[6]->ndim != 1 || in[6]->shape[0] < 1))
        return mica__fail(MICA_ERR_SHAPE, "%s: first is %s", info->name, mica__spec_text(text, in[6]));
    if (!listed && sigma->shape[0] != x->shape[1])
        return mica__fail(MICA_ERR_SHAPE, "%s: %" PRId64 " rows of synapses instead of %" PRId64 ", one per source",
                          info->name, sigma->shape[0], x->shape[1]);
    return MICA_OK;
}

/* The spec of SYNAPSES with these operands. */
static mica__spec synapse_result(const mica__spec *const *in, bool listed)
{
    const int64_t cols = listed ? in[6]->shape[0] - 1 : in[1]->shape[1];
    return (mica__spec){.dtype = in[0]->dtype, .ndim = 3, .shape = {in[0]->shape[0], 2, cols}};
}

MICA__SHAPE_RULE(synapses)
{
    (void)attr;
    if (n_in != 5 && n_in != 7) return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs", info->name, n_in);
    MICA_TRY(synapse_operands(info, in, n_in == 7));
    *out = synapse_result(in, n_in == 7);
    return MICA_OK;
}

MICA__SHAPE_RULE(synapses_grad)
{
    (void)attr;
    if (n_in != 6 && n_in != 8) return mica__fail(MICA_ERR_INTERNAL, "%s: %zu inputs", info->name, n_in);
    MICA_TRY(synapse_operands(info, in, n_in == 8));
    const mica__spec *ct = in[n_in - 1];
    const mica__spec want = synapse_result(in, n_in == 8);
    if (!mica__spec_equal(ct, &want)) {
        char got[MICA__SPEC_TEXT], wanted[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE, "%s: the gradient is %s instead of %s", info->name, mica__spec_text(got, ct),
                          mica__spec_text(wanted, &want));
    }
    int64_t n = mica__spec_size(in[0]);
    for (int i = 1; i < 5; i++)
        if (!mica__add_i64(n, mica__spec_size(in[i]), &n))
            return mica__fail(MICA_ERR_SHAPE, "%s: the result has too many elements", info->name);
    *out = (mica__spec){.dtype = in[0]->dtype, .ndim = 1, .shape = {n}};
    return MICA_OK;
}

/* Every row of x is combined with every synapse. */
MICA__COST_RULE(synapses)
{
    (void)n_in, (void)attr, (void)out;
    return info->flops * (uint64_t)in[0]->shape[0] * (uint64_t)mica__spec_size(in[1]);
}

/* -------------------------------------------------------------- gradients -- */

MICA__VJP_RULE(synapses)
{
    mica_array *in[8];
    for (uint32_t i = 0; i < y->n_in; i++) in[i] = y->in[i];
    in[y->n_in] = ct;
    mica_array *row = mica__build(s, MICA__OP_SYNAPSES_GRAD, in, y->n_in + 1, NULL, 0);
    int64_t at = 0;
    for (int i = 0; i < 5; i++) {
        const int64_t n = mica__spec_size(&y->in[i]->spec), start = at;
        at += n;
        grads[i] = vjp_reshape_like(s, mica_slice(s, row, &start, &at, NULL), y->in[i]);
    }
    return MICA_OK;
}

/* (synapses, 1): the column that each listed synapse belongs to, which is the number of lists that end
 * at or before it. */
static mica_array *synapse_columns(mica_scope *s, mica_array *const *in)
{
    const int64_t synapses = in[5]->spec.shape[0], columns = in[6]->spec.shape[0] - 1;
    const int ended = 1;
    mica_array *ends = mica_slice_axis(s, in[6], 0, 1, columns + 1, 1);
    mica_array *k = mica_expand_dims(s, mica_arange(s, MICA_I32, 0, (double)synapses, 1), 1);
    return mica_sum(s, mica_cast(s, mica_less_equal(s, ends, k), MICA_I64), &ended, 1, true);
}

/* (n, synapses) to (n, columns). */
static mica_array *sum_lists(mica_scope *s, mica_array *const *in, mica_array *x)
{
    const int64_t shape[2] = {in[6]->spec.shape[0] - 1, in[0]->spec.shape[0]};
    mica_array *none = mica_zeros(s, (mica_dtype)in[0]->spec.dtype, 2, shape);
    return mica_transpose(s, mica_scatter_add(s, none, synapse_columns(s, in), mica_transpose(s, x)));
}

/* The same result, (n, 2, columns), from elementary ops, which have gradients of any order. */
static mica_array *synapses_composed(mica_scope *s, mica_array *const *in, bool listed)
{
    const int rows = 1;
    mica_array *x = listed ? mica_take(s, in[0], in[5], 1) : mica_expand_dims(s, in[0], -1);
    mica_array *open = mica_sigmoid(s, mica_mul(s, in[1], mica_sub(s, x, in[2])));
    mica_array *sums[2];
    for (int i = 0; i < 2; i++) {
        mica_array *part = mica_mul(s, open, in[3 + i]);
        sums[i] = listed ? sum_lists(s, in, part) : mica_sum(s, part, &rows, 1, false);
    }
    return mica_stack(s, sums, 2, 1);
}

/* As for attention_grad (vjp_attention.c): builds the result from elementary ops and runs the reverse
 * pass over them. mica__after gives each input a separate node. */
MICA__VJP_RULE(synapses_grad)
{
    const size_t n = y->n_in;
    const bool listed = n == 8;
    mica_array *in[8] = {NULL}, *outs[5], *cts[5];
    for (size_t i = 0; i < n; i++) {
        in[i] = mica__after(s, y->in[i], ct);
        if (!in[i]) return s->error.status;
    }
    const uint64_t mark = mica__serial_now();
    mica_array *result = synapses_composed(s, in, listed);
    if (!result) return s->error.status;
    MICA_TRY(mica__reverse(s, &result, &in[n - 1], 1, in, 5, mark, outs));
    int64_t at = 0;
    for (int i = 0; i < 5; i++) {
        const int64_t size = mica__spec_size(&y->in[i]->spec), start = at;
        at += size;
        cts[i] = vjp_reshape_like(s, mica_slice(s, ct, &start, &at, NULL), y->in[i]);
    }
    if (s->error.status != MICA_OK) return s->error.status;
    return mica__reverse(s, outs, cts, 5, in, n, mark, grads);
}
