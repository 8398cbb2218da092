/* BitLinear: the product of rows rounded to 8 bits and a matrix rounded to three values. Gradients treat rounding as
 * the identity.
 *
 * Codes are multiplied first, scales are applied after: sums of codes are integers below 2^24, exact in f32 in any
 * order, so the forward pass computes what the packed model computes. The gradient builds the codes again; equal
 * expressions are computed once, so this is free and no state is passed to the backward pass. */
#include "mica_nn.h"

/* clamp(round(x * factor)) */
static mica_array *to_codes(mica_scope *s, mica_array *x, mica_array *factor, double low, double high)
{
    mica_array *codes = mica_round(s, mica_mul(s, x, factor));
    return mica_clip(s, codes, mica_scalar(s, low), mica_scalar(s, high));
}

static mica_array *at_least(mica_scope *s, mica_array *x) { return mica_maximum(s, x, mica_scalar(s, 1e-5)); }

mica_array *mica_ternary_codes(mica_scope *s, mica_array *w, mica_array **scale)
{
    mica_array *mean = at_least(s, mica_mean(s, mica_abs(s, w), NULL, 0, false));
    if (scale) *scale = mean;
    return to_codes(s, w, mica_reciprocal(s, mean), -1, 1);
}

mica_array *mica_int8_codes(mica_scope *s, mica_array *x, mica_array **scale)
{
    mica_array *largest = at_least(s, mica_max(s, mica_abs(s, x), (const int[]){-1}, 1, true));
    if (scale) *scale = mica_mul(s, largest, mica_scalar(s, 1.0 / 127));
    return to_codes(s, x, mica_div(s, mica_scalar(s, 127), largest), -128, 127);
}

/* The gradient for x is ct times the rounded w; for w it is the transpose of ct times the rounded x. Layers that share
 * x share its rounded form. Rows of all sequences are joined, so that there is one product and not one per
 * sequence. */
static mica_status straight_through(mica_scope *s, mica_array *ct, mica_array *const *inputs, size_t n,
                                    mica_array **grads, void *user)
{
    (void)n, (void)user;
    mica_array *x = inputs[0], *w = inputs[1], *w_scale, *x_scale;
    const int64_t in = mica_array_shape(w)[1], out = mica_array_shape(w)[0];
    mica_array *w_codes = mica_ternary_codes(s, w, &w_scale);
    mica_array *x_codes = mica_int8_codes(s, x, &x_scale);
    mica_array *rounded = mica_reshape(s, mica_mul(s, x_codes, x_scale), 2, (const int64_t[]){-1, in});
    grads[0] = mica_mul(s, mica_matmul(s, ct, w_codes), w_scale);
    grads[1] = mica_matmul(s, mica_transpose(s, mica_reshape(s, ct, 2, (const int64_t[]){-1, out})), rounded);
    return MICA_OK;
}

mica_array *mica_bit_linear(mica_scope *s, mica_array *x, mica_array *w)
{
    if (x && w && (mica_array_ndim(w) != 2 || mica_array_ndim(x) < 1))
        return mica_scope_fail(s, MICA_ERR_SHAPE, "bit_linear: x with %d axes and w with %d instead of 2",
                               mica_array_ndim(x), mica_array_ndim(w));
    if (w && (mica_array_dtype(w) == MICA_F16 || mica_array_dtype(w) == MICA_BF16))
        w = mica_cast(s, w, MICA_F32); /* sums of codes need the precision of f32 */
    if (x && w && mica_array_dtype(w) == MICA_F32) x = mica_cast(s, x, MICA_F32);
    mica_array *w_scale, *x_scale, *in[] = {x, w};
    mica_array *w_codes = mica_ternary_codes(s, w, &w_scale);
    mica_array *x_codes = mica_int8_codes(s, x, &x_scale);
    mica_array *sums = mica_matmul(s, x_codes, mica_transpose(s, w_codes));
    return mica_custom_grad(s, mica_mul(s, sums, mica_mul(s, x_scale, w_scale)), in, 2, straight_through, NULL, NULL);
}
