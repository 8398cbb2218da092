/* Gradient cases of views, reductions, cumulative ops, indexing and sorting. Where the op is
 * linear, its result is squared or multiplied, so that the second-order gradient is not zero. */
#ifndef MICA_GRAD_CASES_MOVE_H
#define MICA_GRAD_CASES_MOVE_H

#include "grad/grad_check.h"

#define GRAD_MOVE(name, expression) \
    static mica_array *grad_##name(mica_scope *s, mica_array **x) { return expression; }

/* views */
GRAD_MOVE(reshape, mica_square(s, mica_reshape(s, mica_transpose(s, x[0]), 2, (int64_t[]){4, 3})))
GRAD_MOVE(permute, mica_square(s, mica_permute(s, x[0], (int[]){2, 0, 1})))
GRAD_MOVE(broadcast, mica_mul(s, mica_broadcast_to(s, x[0], 3, (int64_t[]){2, 3, 2}), x[1]))
GRAD_MOVE(slice, mica_square(s, mica_slice(s, x[0], (int64_t[]){1, 0}, (int64_t[]){3, 5}, (int64_t[]){1, 2})))
GRAD_MOVE(slice_back, mica_square(s, mica_slice(s, x[0], (int64_t[]){MICA_AUTO, 4}, (int64_t[]){MICA_AUTO, MICA_AUTO},
                                                (int64_t[]){-1, -3})))
/* Slices of columns [begin, end), in this order. Their gradients are adjacent, except for one
 * that overlaps and one that is apart. */
static mica_array *grad_slices_of(mica_scope *s, mica_array *x, const int64_t (*range)[2], size_t n)
{
    mica_array *part[8];
    for (size_t i = 0; i < n; i++)
        part[i] = mica_mul(s, mica_exp(s, mica_slice_axis(s, x, 1, range[i][0], range[i][1], 1)),
                           mica_scalar(s, 1 + (double)i));
    return mica_concat(s, part, n, 1);
}
GRAD_MOVE(slices, grad_slices_of(s, x[0], (const int64_t[][2]){{0, 2}, {2, 3}, {3, 6}}, 3))
GRAD_MOVE(slices_mixed, grad_slices_of(s, x[0], (const int64_t[][2]){{4, 5}, {0, 1}, {1, 3}, {2, 4}, {3, 4}}, 5))
GRAD_MOVE(slice_empty,
          mica_add(s, mica_square(s, x[0]), mica_sum(s, mica_slice_axis(s, x[0], 0, 1, 1, 1), NULL, 0, false)))

static mica_array *grad_window_of(mica_scope *s, mica_array *x, int64_t axis, int64_t size, int64_t stride,
                                  int64_t dilation)
{
    const mica__attr_window attr = {.axis = axis, .size = size, .stride = stride, .dilation = dilation};
    return mica__build1(s, MICA__OP_WINDOW, x, &attr, sizeof attr);
}
static mica_array *grad_unwindow_of(mica_scope *s, mica_array *x, int64_t axis, int64_t size, int64_t stride,
                                    int64_t dilation, int64_t full)
{
    const mica__attr_window attr = {.axis = axis, .size = size, .stride = stride, .dilation = dilation, .full = full};
    return mica__build1(s, MICA__OP_UNWINDOW, x, &attr, sizeof attr);
}
GRAD_MOVE(window, mica_square(s, grad_window_of(s, x[0], 0, 3, 1, 2)))
GRAD_MOVE(window_stride, mica_square(s, grad_window_of(s, x[0], 1, 2, 2, 1)))
GRAD_MOVE(unwindow, mica_square(s, grad_unwindow_of(s, x[0], 0, 3, 2, 1, 8)))

/* joining */
static mica_array *grad_pad_of(mica_scope *s, mica_array *x, int64_t low, int64_t high, int64_t interior)
{
    const mica__attr_pad attr = {.low = {low}, .high = {high}, .interior = {interior}, .value = {.f = 0.7}};
    return mica__build1(s, MICA__OP_PAD, x, &attr, sizeof attr);
}
GRAD_MOVE(pad, mica_square(s, mica_pad(s, x[0], (int64_t[]){1, 0}, (int64_t[]){0, 2}, 0.5)))
GRAD_MOVE(pad_interior, mica_square(s, grad_pad_of(s, x[0], 1, 2, 2)))
GRAD_MOVE(pad_negative, mica_square(s, grad_pad_of(s, x[0], -1, -2, 0)))
GRAD_MOVE(pad_both, mica_square(s, grad_pad_of(s, x[0], -2, 3, 1)))
GRAD_MOVE(pad_both_back, mica_square(s, grad_pad_of(s, x[0], 2, -3, 1)))
GRAD_MOVE(concat, mica_square(s, mica_concat(s, (mica_array *[]){x[0], x[1], x[0]}, 3, 1)))
GRAD_MOVE(stack_roll, mica_square(s, mica_roll(s, mica_stack(s, (mica_array *[]){x[0], x[1]}, 2, -1), 1, 0)))
GRAD_MOVE(repeat_tile, mica_square(s, mica_tile(s, mica_repeat(s, x[0], 2, 1), (int64_t[]){2, 1})))

/* indexing */
static mica_array *grad_index(mica_scope *s, int ndim, const int64_t *shape, const int64_t *values)
{
    return mica_from_data(s, MICA_I64, ndim, shape, values);
}
#define GRAD_INDEX(ndim, shape, ...) grad_index(s, ndim, (int64_t[])shape, (int64_t[]){__VA_ARGS__})
#define GRAD_SHAPE(...) {__VA_ARGS__}
GRAD_MOVE(take, mica_square(s, mica_take(s, x[0], GRAD_INDEX(2, GRAD_SHAPE(2, 2), 0, -1, 2, 0), 1)))
GRAD_MOVE(take_along, mica_square(s, mica_take_along_axis(s, x[0], GRAD_INDEX(2, GRAD_SHAPE(2, 2), 1, 1, 2, 0), 1)))
GRAD_MOVE(gather, mica_square(s, mica_gather(s, x[0], GRAD_INDEX(2, GRAD_SHAPE(3, 2), 0, 1, 1, 2, 0, 1))))
GRAD_MOVE(embedding, mica_square(s, mica_embedding(s, x[0], GRAD_INDEX(1, GRAD_SHAPE(4), 2, 0, 2, 1))))
/* two updates to one row: only the last one counts and has a gradient */
GRAD_MOVE(scatter, mica_square(s, mica_scatter(s, x[0], GRAD_INDEX(2, GRAD_SHAPE(3, 1), 3, 1, 1), x[1])))
GRAD_MOVE(scatter_add, mica_square(s, mica_scatter_add(s, x[0], GRAD_INDEX(2, GRAD_SHAPE(3, 1), 1, 3, 1), x[1])))
GRAD_MOVE(scatter_axis, mica_square(s, mica__scatter_axis(s, x[0], GRAD_INDEX(1, GRAD_SHAPE(2), 2, 2), x[1], 1, false,
                                                          MICA__CALLER_NONE)))
GRAD_MOVE(sort, mica_mul(s, mica_sort(s, x[0], 0, false), x[1]))
GRAD_MOVE(sort_down, mica_mul(s, mica_sort(s, x[0], -1, true), x[1]))
static mica_array *grad_topk(mica_scope *s, mica_array **x)
{
    mica_array *values;
    return mica_topk(s, x[0], 2, 1, &values, NULL) == MICA_OK ? mica_square(s, values) : NULL;
}

/* reductions */
GRAD_MOVE(sum, mica_square(s, mica_sum(s, x[0], (int[]){0, 2}, 2, false)))
GRAD_MOVE(sum_keep, mica_mul(s, x[0], mica_sum(s, x[0], (int[]){1}, 1, true)))
GRAD_MOVE(mean, mica_square(s, mica_mean(s, x[0], NULL, 0, false)))
GRAD_MOVE(prod, mica_prod(s, x[0], (int[]){0, 2}, 2, false))
GRAD_MOVE(prod_all, mica_prod(s, x[0], NULL, 0, false))
/* some elements are exactly 0, where a formula that divides by them fails */
static mica_array *grad_with_zeros(mica_scope *s, mica_array *x)
{
    return mica_mul(s, x, mica_cast(s, mica_greater(s, x, mica_scalar(s, -0.5)), MICA_F64));
}
GRAD_MOVE(prod_some_zeros, mica_prod(s, grad_with_zeros(s, x[0]), (int[]){1}, 1, true))
GRAD_MOVE(max, mica_square(s, mica_max(s, x[0], (int[]){1}, 1, false)))
GRAD_MOVE(max_all, mica_square(s, mica_max(s, x[0], NULL, 0, true)))
GRAD_MOVE(min, mica_square(s, mica_min(s, x[0], (int[]){0, 2}, 2, true)))
GRAD_MOVE(var, mica_var(s, x[0], (int[]){1}, 1, 1, false))
GRAD_MOVE(std, mica_std(s, x[0], NULL, 0, 0, false))
GRAD_MOVE(norm, mica_norm(s, x[0], 3, (int[]){1}, 1, false))
GRAD_MOVE(norm_2, mica_norm(s, x[0], 2, NULL, 0, false))
GRAD_MOVE(norm_inf, mica_square(s, mica_norm(s, x[0], (double)INFINITY, (int[]){1}, 1, false)))
GRAD_MOVE(logsumexp, mica_logsumexp(s, x[0], (int[]){1}, 1, false))

/* cumulative: forward and reverse, inclusive and exclusive */
GRAD_MOVE(cumsum, mica_square(s, mica_cumsum(s, x[0], 0)))
GRAD_MOVE(cumsum_r, mica_square(s, mica__cumulative(s, MICA__OP_CUMSUM, x[0], true, false)))
GRAD_MOVE(cumsum_e, mica_square(s, mica__cumulative(s, MICA__OP_CUMSUM, x[0], false, true)))
GRAD_MOVE(cumsum_re, mica_square(s, mica__cumulative(s, MICA__OP_CUMSUM, x[0], true, true)))
GRAD_MOVE(cumprod, mica_cumprod(s, x[0], 0))
GRAD_MOVE(cumprod_r, mica__cumulative(s, MICA__OP_CUMPROD, x[0], true, false))
GRAD_MOVE(cumprod_e, mica__cumulative(s, MICA__OP_CUMPROD, x[0], false, true))
GRAD_MOVE(cumprod_re, mica__cumulative(s, MICA__OP_CUMPROD, x[0], true, true))
GRAD_MOVE(cumprod_zeros, mica_cumprod(s, grad_with_zeros(s, x[0]), 1))
GRAD_MOVE(cummax, mica_square(s, mica_cummax(s, x[0], 0)))
GRAD_MOVE(cummax_r, mica_square(s, mica__cumulative(s, MICA__OP_CUMMAX, x[0], true, false)))

static const grad_case grad_cases_move[] = {
    {MICA__OP_RESHAPE, "reshape", grad_reshape, 1, {{2, {2, 6}, -1, 1}}, 0, 0},
    {MICA__OP_PERMUTE, "permute", grad_permute, 1, {{3, {2, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_BROADCAST, "broadcast", grad_broadcast, 2, {{2, {3, 1}, -1, 1}, {3, {2, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SLICE, "slice", grad_slice, 1, {{2, {4, 5}, -1, 1}}, 0, 0},
    {MICA__OP_SLICE, "slice, backwards", grad_slice_back, 1, {{2, {3, 6}, -1, 1}}, 0, 0},
    {MICA__OP_SLICE, "adjacent slices", grad_slices, 1, {{2, {2, 6}, -1, 1}}, 0, 0},
    {MICA__OP_SLICE, "slices, mixed", grad_slices_mixed, 1, {{2, {2, 6}, -1, 1}}, 0, 0},
    {MICA__OP_SLICE, "slice, empty", grad_slice_empty, 1, {{1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_WINDOW, "window", grad_window, 1, {{2, {7, 2}, -1, 1}}, 0, 0},
    {MICA__OP_WINDOW, "window, stride", grad_window_stride, 1, {{2, {2, 6}, -1, 1}}, 0, 0},
    {MICA__OP_UNWINDOW, "unwindow", grad_unwindow, 1, {{3, {3, 2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_PAD, "pad", grad_pad, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_PAD, "pad, interior", grad_pad_interior, 1, {{2, {3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_PAD, "pad, negative", grad_pad_negative, 1, {{2, {5, 2}, -1, 1}}, 0, 0},
    {MICA__OP_PAD, "pad, negative low", grad_pad_both, 1, {{1, {5}, -1, 1}}, 0, 0},
    {MICA__OP_PAD, "pad, negative high", grad_pad_both_back, 1, {{1, {5}, -1, 1}}, 0, 0},
    {MICA__OP_CONCAT, "concat", grad_concat, 2, {{2, {2, 3}, -1, 1}, {2, {2, 1}, -1, 1}}, 0, 0},
    {MICA__OP_CONCAT, "stack, roll", grad_stack_roll, 2, {{1, {3}, -1, 1}, {1, {3}, -1, 1}}, 0, 0},
    {MICA__OP_BROADCAST, "repeat, tile", grad_repeat_tile, 1, {{2, {2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_TAKE, "take", grad_take, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_TAKE, "take_along_axis", grad_take_along, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_TAKE, "gather", grad_gather, 1, {{3, {2, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_TAKE, "embedding", grad_embedding, 1, {{2, {3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SCATTER, "scatter", grad_scatter, 2, {{2, {4, 2}, -1, 1}, {2, {3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SCATTER, "scatter_add", grad_scatter_add, 2, {{2, {4, 2}, -1, 1}, {2, {3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SCATTER, "scatter, axis 1", grad_scatter_axis, 2, {{3, {2, 3, 2}, -1, 1}, {3, {2, 2, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SORT, "sort", grad_sort, 2, {{2, {4, 2}, -1, 1}, {2, {4, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SORT, "sort, descending", grad_sort_down, 2, {{2, {2, 4}, -1, 1}, {2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_TAKE, "topk", grad_topk, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_SUM, "sum", grad_sum, 1, {{3, {2, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SUM, "sum, keep", grad_sum_keep, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_SUM, "mean", grad_mean, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_PROD, "prod", grad_prod, 1, {{3, {2, 3, 2}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_PROD, "prod, all", grad_prod_all, 1, {{2, {2, 3}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_PROD, "prod, some zeros", grad_prod_some_zeros, 1, {{2, {3, 4}, -1, 1.5}}, 0, 0},
    {MICA__OP_MAX, "max", grad_max, 1, {{2, {3, 4}, -1, 1}}, 0, 0},
    {MICA__OP_MAX, "max, all", grad_max_all, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_MIN, "min", grad_min, 1, {{3, {2, 3, 2}, -1, 1}}, 0, 0},
    {MICA__OP_SUM, "var", grad_var, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_SUM, "std", grad_std, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_SUM, "norm 3", grad_norm, 1, {{2, {2, 3}, 0.3, 1}}, 0, 0},
    {MICA__OP_SUM, "norm 2", grad_norm_2, 1, {{2, {2, 3}, -1, 1}}, 0, 0},
    {MICA__OP_MAX, "norm inf", grad_norm_inf, 1, {{2, {2, 3}, 0.3, 1}}, 0, 0},
    {MICA__OP_LOGSUMEXP, "logsumexp", grad_logsumexp, 1, {{2, {2, 3}, -2, 2}}, 0, 0},
    {MICA__OP_CUMSUM, "cumsum", grad_cumsum, 1, {{2, {4, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CUMSUM, "cumsum, reverse", grad_cumsum_r, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_CUMSUM, "cumsum, exclusive", grad_cumsum_e, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_CUMSUM, "cumsum, reverse exclusive", grad_cumsum_re, 1, {{2, {2, 4}, -1, 1}}, 0, 0},
    {MICA__OP_CUMPROD, "cumprod", grad_cumprod, 1, {{2, {4, 2}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_CUMPROD, "cumprod, reverse", grad_cumprod_r, 1, {{2, {2, 4}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_CUMPROD, "cumprod, exclusive", grad_cumprod_e, 1, {{2, {2, 4}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_CUMPROD, "cumprod, reverse exclusive", grad_cumprod_re, 1, {{1, {4}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_CUMPROD, "cumprod, some zeros", grad_cumprod_zeros, 1, {{2, {2, 4}, -1.5, 1.5}}, 0, 0},
    {MICA__OP_CUMMAX, "cummax", grad_cummax, 1, {{2, {5, 2}, -1, 1}}, 0, 0},
    {MICA__OP_CUMMAX, "cummax, reverse", grad_cummax_r, 1, {{2, {2, 5}, -1, 1}}, 0, 0},
};

#endif
