/* Steps of the graph fuzzer: views, reductions, row ops, joins, indexing, matrix products and
 * loops. */
#ifndef MICA_TESTS_FUZZ_GRAPH_SHAPES_H
#define MICA_TESTS_FUZZ_GRAPH_SHAPES_H

#include "graph_program.h"

/* ---------------------------------------------------------------- views --- */

static mica_array *fuzz_make_view(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    const int ndim = mica_array_ndim(x[0]);
    int64_t to[5] = {1, 2, 1, 1, 1};
    switch (a->n) {
    case 0: return mica_reshape(s, x[0], 1, (int64_t[]){-1});
    case 1: return mica_reshape(s, x[0], 2, (int64_t[]){a->i[0], -1});
    case 2: return mica_permute(s, x[0], a->axis);
    case 3: return mica_transpose(s, x[0]);
    case 4: return mica_flip(s, x[0], a->axis[0]);
    case 5: return mica_slice_axis(s, x[0], a->axis[0], a->i[0], a->i[1], a->i[2]);
    case 6: return mica_expand_dims(s, x[0], a->axis[0]);
    case 7: return mica_squeeze(s, x[0], a->axis[0]);
    case 8:
        for (int d = 0; d < ndim && d < 4; d++)
            to[d + 1] = mica_array_shape(x[0])[d] == 1 ? a->i[d] : mica_array_shape(x[0])[d];
        return mica_broadcast_to(s, x[0], ndim + 1, to);
    case 9: return mica_roll(s, x[0], a->i[0], a->axis[0]);
    case 10: return mica_repeat(s, x[0], a->i[0] < 0 ? 2 : a->i[0] % 4, a->axis[0]);
    default: return mica_checkpoint(s, x[0], x, 1);
    }
}

static void fuzz_step_view(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    fuzz_args a = {.n = fuzz_below(p, 12)};
    if (!x) return;
    a.axis[0] = fuzz_axis(p, x);
    for (int i = 0; i < 2; i++) a.i[i] = fuzz_below(p, 12) - 4;
    if (a.i[1] == 7) a.i[1] = MICA_AUTO;
    a.i[2] = fuzz_below(p, 7) - 3; /* a step of 0 is an error */
    a.i[3] = 3;
    if (x->ndim > 4) return;
    if (a.n == 8)
        for (int d = 0; d < 4; d++) a.i[d] = 1 + llabs(a.i[d] % 3);
    if (a.n == 2) /* a rotation, or an invalid permutation */
        for (int d = 0; d < x->ndim; d++) a.axis[d] = a.i[2] == 0 ? 0 : (int)((d + a.i[2] + 3) % x->ndim);
    fuzz_one(p, "view", fuzz_make_view, x, &a, x->top, x->off, false);
}

/* --------------------------------------------------- reductions and rows --- */

static mica_array *fuzz_make_fold(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    const int *axes = a->flag ? NULL : a->axis;
    const int n = a->flag ? 0 : 1;
    const bool keep = a->i[0];
    switch (a->n) {
    case 0: return mica_sum(s, x[0], axes, n, keep);
    case 1: return mica_mean(s, x[0], axes, n, keep);
    case 2: return mica_max(s, x[0], axes, n, keep);
    case 3: return mica_min(s, x[0], axes, n, keep);
    case 4: return mica_logsumexp(s, mica_tanh(s, x[0]), axes, n, keep);
    case 5: return mica_var(s, mica_tanh(s, x[0]), axes, n, 0, keep);
    case 6: return mica_prod(s, mica_tanh(s, x[0]), axes, n, keep);
    case 7: return mica_any(s, x[0], axes, n, keep);
    case 8: return mica_all(s, x[0], axes, n, keep);
    case 9: return mica_argmax(s, x[0], a->axis[0], keep);
    case 10: return mica_argmin(s, x[0], a->axis[0], keep);
    case 11: return mica_cumsum(s, x[0], a->axis[0]);
    default: return mica_cummax(s, x[0], a->axis[0]);
    }
}

static void fuzz_step_fold(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    fuzz_args a = {.n = fuzz_below(p, 13)};
    if (!x) return;
    a.flag = fuzz_byte(p) & 1;
    a.axis[0] = fuzz_axis(p, x);
    a.i[0] = fuzz_byte(p) & 1;
    const bool chooses = a.n == 2 || a.n == 3 || a.n == 12, decides = a.n >= 7 && a.n <= 10,
               tame = a.n >= 4 && a.n <= 6;
    const bool whole = !fuzz_is_float(x->dtype), sums = a.n == 0 || a.n == 11;
    const mica_dtype d = whole ? MICA_F32 : x->dtype;
    if ((decides && x->off > 0) || ((a.n == 1 || a.n == 4 || a.n == 5) && x->n == 0)) return; /* 0 / 0, log 0 */
    if (whole && !sums && !chooses && !decides && x->top > fuzz_limit(MICA_F32)) return;
    const double n = a.flag && a.n < 9 ? (double)(x->n ? x->n : 1) : fuzz_along(x, a.axis[0]);
    double top = x->top, off = x->off;
    if (whole && sums) top = fuzz_int_most(MICA_I64);
    else if (sums || a.n == 1) {
        top = a.n == 1 ? x->top : n * x->top;
        off = n * x->off + n * n * x->top * fuzz_sum_unit(d) + 3 * fuzz_unit(d) * top;
    } else if (tame) { /* a function of tanh(x), which is at most 1 */
        top = a.n == 4 ? 1 + log(n) : 1;
        off = 4 * n * (x->off + 16 * fuzz_unit(d)) + 8 * n * n * fuzz_sum_unit(d);
    } else if (decides) top = n;
    fuzz_one(p, "fold", fuzz_make_fold, x, &a, top, off, chooses && x->off > 0);
}

/* x as one attention head: all axes but the last are time. */
static mica_array *fuzz_make_head(mica_scope *s, mica_array *x, const fuzz_args *a)
{
    const int64_t dims = a->i[0], shape[] = {1, 1, a->i[1], dims};
    mica_attention_options options;
    mica_attention_options_init(&options);
    options.causal = a->flag;
    options.scale = a->v;
    mica_array *head = mica_reshape(s, x, 4, shape);
    if (a->n == 5) return mica_rope(s, head, NULL, NULL);
    return mica_attention(s, head, mica_flip(s, head, 2), head, NULL, &options);
}

static mica_array *fuzz_make_rows(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    switch (a->n) {
    case 0: return mica_softmax(s, x[0], a->axis[0]);
    case 1: return mica_log_softmax(s, x[0], a->axis[0]);
    case 2: return mica_layer_norm(s, x[0], NULL, NULL, 0.1);
    case 3: return mica_rms_norm(s, x[0], NULL, 0.1);
    default: return fuzz_make_head(s, x[0], a);
    }
}

static void fuzz_step_rows(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    fuzz_args a = {.n = fuzz_below(p, 6)};
    if (!x) return;
    a.axis[0] = fuzz_axis(p, x);
    if (x->top > 1e3 || (a.n > 3 && (x->ndim == 0 || x->n == 0))) return;
    const mica_dtype d = fuzz_is_float(x->dtype) ? x->dtype : MICA_F32;
    const double n = fuzz_along(x, a.n < 2 ? a.axis[0] : -1), u = fuzz_sum_unit(d), round = 4 * fuzz_unit(d);
    double top, off;
    a.i[0] = (int64_t)n;
    a.i[1] = x->n / (a.i[0] ? a.i[0] : 1);
    switch (a.n) {
    case 0:
        top = 1;
        off = 2 * x->off + (8 + n + 2 * x->top) * u + round;
        break;
    case 1:
        top = 2 * x->top + log(n) + 1;
        off = 2 * x->off + (8 + n + 2 * x->top) * u * top + round * top;
        break;
    case 4: { /* a mean of rows: an absolute error of the scores is a relative error of the weights */
        a.flag = a.axis[0] % 2 != 0;
        a.v = 1 / (1 + x->top * x->top);
        const double apart = a.v * n * ((2 * x->top + x->off) * x->off + n * x->top * x->top * u) + 2 * x->top * u;
        if (apart > 0.1) return;
        top = x->top;
        off = x->off + 8 * apart * x->top + ((double)x->n / n + 64) * u * top + round * top;
        break;
    }
    case 5: /* rotated: the error of an angle grows with its size, at most the length of time */
        top = 1.5 * x->top;
        off = 2 * x->off + (8 + 4 * (double)x->n / n) * 0x1p-24 * top + round * top;
        break;
    default: /* the root is at least 0.3, (x - mean) / root at most sqrt(n) */
        top = sqrt(n) + 1;
        off = (2 + n) * 3.2 * (x->off + (n + 8) * u * x->top) + round * top;
    }
    fuzz_one(p, "rows", fuzz_make_rows, x, &a, top, off, false);
}

/* ---------------------------------------------------------------- joins --- */

static mica_array *fuzz_make_join(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    switch (a->n) {
    case 0: return mica_concat(s, x, 2, a->axis[0]);
    case 1: return mica_stack(s, x, 2, a->axis[0]);
    case 2: return mica_concat(s, (mica_array *[]){x[0], x[1], x[0]}, 3, a->axis[0]);
    case 3: return mica_pad(s, x[0], a->i, a->i + 4, 1);
    default: return mica_tile(s, x[0], a->i);
    }
}

static void fuzz_step_join(fuzz_program *p)
{
    const fuzz_value *in[2];
    if (!fuzz_operands(p, in, 2)) return;
    fuzz_args a = {.n = fuzz_below(p, 5)};
    a.axis[0] = fuzz_axis(p, in[0]);
    for (int i = 0; i < 8; i++) a.i[i] = a.n == 3 ? fuzz_below(p, 4) - 1 : fuzz_below(p, 3);
    if (in[0]->ndim > 4 || in[0]->top > 1e6 || in[1]->top > 1e6) return;
    const double off = in[0]->off + in[1]->off;
    const mica_dtype d = mica_dtype_promote(in[0]->dtype, in[1]->dtype);
    fuzz_apply(p, "join", fuzz_make_join, in, a.n < 3 ? 2 : 1, &a, fmax(fmax(in[0]->top, in[1]->top), 1) * 2,
               fuzz_is_float(d) ? fuzz_off(d, off, 1, off > 0 ? 2 : 0, fmax(in[0]->top, in[1]->top)) : off, false);
}

/* ------------------------------------------------------------- indexing --- */

/* Indices 0 ... size-1 in some order; with flag one that may be out of range. */
static mica_array *fuzz_indices(mica_scope *s, const fuzz_args *a, int64_t size)
{
    mica_array *i = mica_arange(s, MICA_I64, 0, (double)a->i[0], 1);
    i = mica_mul(s, i, mica_scalar(s, (double)a->i[1]));
    if (a->flag) return mica_sub(s, i, mica_scalar(s, 2));
    return mica_mod(s, i, mica_scalar(s, size > 0 ? (double)size : 1));
}

static mica_array *fuzz_make_index(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    const int ndim = mica_array_ndim(x[0]), axis = a->axis[0];
    const int64_t *shape = mica_array_shape(x[0]);
    const int64_t size = axis >= 0 && axis < ndim ? shape[axis] : 1, rows = ndim > 0 ? shape[0] : 1;
    mica_array *index = fuzz_indices(s, a, size), *row = mica_expand_dims(s, fuzz_indices(s, a, rows), 1), *values,
               *places;
    switch (a->n) {
    case 0: return mica_take(s, x[0], index, axis);
    case 1: return mica_gather(s, x[0], row);
    case 2: return mica_scatter_add(s, x[0], row, mica_gather(s, x[0], row));
    case 3: return mica_scatter(s, x[0], row, mica_neg(s, mica_gather(s, x[0], row)));
    case 4: return mica_sort(s, x[0], axis, a->i[1] & 1);
    case 5: return mica_topk(s, x[0], a->i[0], axis, &values, &places) == MICA_OK ? values : NULL;
    case 6: return mica_argsort(s, x[0], axis, a->i[1] & 1);
    case 7: return mica_take_along_axis(s, mica_neg(s, x[0]), mica_argsort(s, x[0], axis, true), axis);
    default: return mica_one_hot(s, x[0], 3, MICA_F32);
    }
}

static void fuzz_step_index(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    fuzz_args a = {.n = fuzz_below(p, 9)};
    if (!x) return;
    a.axis[0] = fuzz_axis(p, x);
    a.i[0] = fuzz_below(p, 5);
    a.i[1] = fuzz_below(p, 5);
    a.flag = fuzz_byte(p) >= 250;
    const bool sorts = a.n >= 4 && a.n <= 7, decides = a.n >= 6;
    if (decides && x->off > 0) return;
    double top = fuzz_is_float(x->dtype) ? x->top : fuzz_int_most(x->dtype), off = x->off;
    if (a.n == 6) top = (double)x->n;
    if (a.n == 2) { /* up to 5 updates to one element; f16 and bf16 may round each */
        top = 6 * x->top;
        if (fuzz_is_float(x->dtype)) off = 6 * x->off + 24 * fuzz_unit(x->dtype) * x->top;
    }
    fuzz_one(p, "index", fuzz_make_index, x, &a, a.n == 8 ? 1 : top, off, sorts && x->off > 0);
}

/* --------------------------------------------------- products and loops --- */

static mica_array *fuzz_make_product(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    mica_conv_options conv;
    mica_pool_options pool;
    mica_conv_options_init(&conv);
    mica_pool_options_init(&pool);
    conv.padding[0] = a->i[0];
    conv.stride[0] = 1 + a->i[1];
    pool.kernel[0] = 2;
    pool.padding[0] = a->i[0] % 2;
    mica_array *y[2] = {x[0], x[1]};
    /* narrow operands, summed in a wider dtype */
    for (int i = 0; i < 2 && a->n < 2 && a->flag; i++) y[i] = mica_cast(s, x[i], a->dtype);
    switch (a->n) {
    case 0: return mica_matmul(s, y[0], y[1]);
    case 1: return mica_matmul(s, y[0], mica_transpose(s, y[1]));
    case 2: return mica_conv1d(s, x[0], x[1], &conv);
    case 3: return mica_avg_pool1d(s, x[0], &pool);
    default: return mica_max_pool1d(s, x[0], &pool);
    }
}

static void fuzz_step_product(fuzz_program *p)
{
    const fuzz_value *in[2];
    if (!fuzz_operands(p, in, 2)) return;
    fuzz_args a = {.n = fuzz_below(p, 5)};
    a.i[0] = fuzz_below(p, 3);
    a.i[1] = fuzz_below(p, 2);
    if (a.n == 4 && in[0]->n == 0) return; /* the maximum of padding only is -infinity */
    mica_dtype pair = mica_dtype_promote(in[0]->dtype, in[1]->dtype);
    a.flag = a.i[0] == 2 && (mica_dtype_size(pair) == 2 || pair == MICA_I8 || pair == MICA_U8);
    a.dtype = fuzz_is_float(pair) ? MICA_F32 : MICA_I32;
    if (a.flag && a.n < 2) pair = a.dtype;
    const mica_dtype d = fuzz_is_float(pair) ? pair : MICA_F32;
    const double x = in[0]->top, y = in[1]->top, ex = in[0]->off, ey = in[1]->off;
    if ((fuzz_is_float(pair) || a.n > 1) && (x > fuzz_limit(d) || y > fuzz_limit(d))) return;
    /* terms of a matmul, or at most the weights of one output of a convolution */
    const double n = a.n < 2 ? fuzz_along(in[0], -1) : (double)(in[1]->n ? in[1]->n : 1) / fuzz_along(in[1], 0);
    double top = n * x * y,
           off = n * (x * ey + y * ex + ex * ey) + n * n * x * y * fuzz_sum_unit(d) + 3 * fuzz_unit(d) * top;
    if (a.n >= 3) top = x, off = fuzz_off(d, ex, 1, 8, x);
    if (!fuzz_is_float(pair) && a.n < 2) top = fuzz_int_most(MICA_I64), off = 0;
    fuzz_apply(p, "product", fuzz_make_product, in, a.n < 3 ? 2 : 1, &a, top, off, a.n == 4 && ex > 0);
}

static mica_status fuzz_scan_body(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                                  mica_array **y_out, void *user)
{
    mica_array *mixed = mica_add(s, mica_mul(s, carry[0], mica_scalar(s, 0.5)), x[0]);
    carry_out[0] = mica_cast(s, mica_tanh(s, mixed), mica_array_dtype(carry[0]));
    y_out[0] = user ? mica_mul(s, carry_out[0], user) : mica_neg(s, carry_out[0]);
    return mica_scope_status(s);
}

static mica_array *fuzz_make_scan(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    mica_scan_options options;
    mica_scan_options_init(&options);
    options.n_carry = options.n_x = options.n_y = 1;
    options.reverse = a->flag;
    mica_array *start = NULL, *carry = NULL, *ys = NULL;
    if (mica_array_ndim(x[0]) > 0)
        start = mica_zeros(s, mica_array_dtype(x[0]), mica_array_ndim(x[0]) - 1, mica_array_shape(x[0]) + 1);
    else start = mica_zeros(s, mica_array_dtype(x[0]), 0, NULL);
    void *outside = a->n & 2 ? mica_sum(s, x[0], (int[]){0}, 1, false) : NULL; /* captured by the body */
    if (mica_scan(s, fuzz_scan_body, outside, &options, &start, x, &carry, &ys) != MICA_OK) return NULL;
    return a->n & 1 ? ys : carry;
}

static void fuzz_step_scan(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    fuzz_args a = {.n = fuzz_below(p, 4)};
    a.flag = fuzz_byte(p) & 1;
    if (!x || !fuzz_is_float(x->dtype)) return;
    const double n = fuzz_along(x, 0), top = a.n & 2 ? n * x->top + 1 : 1;
    if (top > fuzz_limit(x->dtype)) return; /* the captured sum */
    const double sum = n * x->off + n * n * x->top * fuzz_sum_unit(x->dtype) + 3 * fuzz_unit(x->dtype) * top;
    const double carry = 2 * x->off + 48 * fuzz_unit(x->dtype) * fmax(1, x->top);
    fuzz_one(p, "scan", fuzz_make_scan, x, &a, top, a.n & 2 ? sum + carry * top + 2 * fuzz_unit(x->dtype) * top : carry,
             false);
}

#endif
