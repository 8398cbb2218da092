/* Like test_shape.c, for neural networks, joining, indexing, sorting, gradients and loops.
 *
 * runs: check */
#include <math.h>

#include "shape_check.h"

/* ---------------------------------------------------------- neural networks - */

TEST(softmax_and_norms)
{
    if (!begin()) return;
    MAKES(mica_softmax(s, F32(2, 3), 0), "f32(2,3)");
    MAKES(mica_log_softmax(s, OF(MICA_I8), -1), "f32(2)");
    FAILS(mica_softmax(s, F32(2, 3), 2), "10: softmax: axis 2 is out of range for an array with 2 axes");
    mica_array *x = F32(4, 3), *w = F32(3), *bad = F32(2);
    MAKES(mica_layer_norm(s, x, w, w, 1e-5), "f32(4,3)");
    MAKES(mica_layer_norm(s, x, NULL, w, 1e-5), "f32(4,3)");
    MAKES(mica_rms_norm(s, zeros(MICA_F16, 2, LIST(4, 3)), NULL, 0), "f16(4,3)");
    MAKES(mica_rms_norm(s, zeros(MICA_F16, 2, LIST(4, 3)), w, 0), "f32(4,3)");
    FAILS(mica_layer_norm(s, x, bad, NULL, 1e-5), "11: layer_norm: weight has shape (2), the last axis has 3");
    FAILS(mica_layer_norm(s, x, w, F32(1, 3), 1e-5), "11: layer_norm: bias has shape (1, 3), the last axis has 3");
    FAILS(mica_rms_norm(s, x, w, -1), "10: rms_norm: eps is -1; it must be at least 0");
    FAILS(mica_rms_norm(s, zeros(MICA_F32, 0, NULL), NULL, 0), "11: rms_norm: the array has no axes");
    test_case("NULL after a failure is that failure");
    HOLDS(mica_layer_norm(s, x, mica_exp(s, NULL), NULL, 1e-5) == NULL);
    FAILS(mica_rms_norm(s, x, NULL, 0), "10: exp: array 0 is NULL");
    end();
}

TEST(matmul_shapes)
{
    if (!begin()) return;
    MAKES(mica_matmul(s, F32(2, 3), F32(3, 4)), "f32(2,4)");
    MAKES(mica_matmul(s, F32(3), F32(3)), "f32()");
    MAKES(mica_matmul(s, F32(3), F32(5, 3, 4)), "f32(5,4)");
    MAKES(mica_matmul(s, F32(5, 2, 3), F32(3)), "f32(5,2)");
    MAKES(mica_matmul(s, F32(7, 1, 2, 3), F32(5, 3, 4)), "f32(7,5,2,4)");
    MAKES(mica_matmul(s, F32(0, 3), F32(3, 4)), "f32(0,4)");
    MAKES(mica_matmul(s, F32(2, 0), F32(0, 4)), "f32(2,4)");
    MAKES(mica_matmul(s, zeros(MICA_I8, 2, LIST(2, 3)), zeros(MICA_U8, 2, LIST(3, 2))), "i16(2,2)");
    MAKES(mica_matmul(s, zeros(MICA_BOOL, 2, LIST(2, 3)), zeros(MICA_BOOL, 2, LIST(3, 2))), "i32(2,2)");
    MAKES(mica_matmul(s, zeros(MICA_F16, 2, LIST(2, 3)), zeros(MICA_BF16, 2, LIST(3, 2))), "f32(2,2)");
    FAILS(mica_matmul(s, F32(2, 4096), F32(4095, 2)), "11: matmul: inner sizes differ: 4096 and 4095");
    FAILS(mica_matmul(s, F32(2), F32(3)), "11: matmul: inner sizes differ: 2 and 3");
    FAILS(mica_matmul(s, F32(2, 2, 3), F32(3, 3, 2)), "11: matmul: shapes (2) and (3) do not broadcast");
    FAILS(mica_matmul(s, F32(2), mica_scalar(s, 1)), "11: matmul: operand 1 has no axes");
    end();
}

TEST(convolution_shapes)
{
    if (!begin()) return;
    mica_conv_options o;
    mica_conv_options_init(&o);
    mica_array *x = F32(2, 4, 10), *w = F32(6, 4, 3), *x2 = F32(2, 4, 10, 8), *w2 = F32(6, 2, 3, 5);
    MAKES(mica_conv1d(s, x, w, NULL), "f32(2,6,8)");
    o.stride[0] = 2, o.stride[1] = 3, o.padding[0] = 1, o.padding[1] = 2, o.dilation[0] = 2, o.groups = 2;
    MAKES(mica_conv2d(s, x2, w2, &o), "f32(2,6,4,3)");
    MAKES(mica_conv1d(s, I32(1, 1, 3), I32(1, 1, 3), NULL), "f32(1,1,1)");
    FAILS(mica_conv1d(s, x, x2, NULL), "11: conv1d: w has shape (2, 4, 10, 8) instead of 3 axes");
    FAILS(mica_conv1d(s, x, F32(6, 3, 3), NULL), "11: conv: channels in a group differ: 4 and 3");
    FAILS(mica_conv1d(s, x, F32(6, 4, 11), NULL),
          "11: conv: kernel of 11 (dilation 1) does not fit size 10 padded by 0 and 0");
    FAILS(mica_conv1d(s, x, F32(6, 4, 0), NULL),
          "11: conv: kernel of 0 (dilation 1) does not fit size 10 padded by 0 and 0");
    o.groups = 3;
    FAILS(mica_conv2d(s, x2, w2, &o), "11: conv: 3 groups do not divide 4 channels and 6 outputs");
    o.groups = 0;
    FAILS(mica_conv2d(s, x2, w2, &o), "10: conv2d: groups is 0; it must be 1 to 2^40");
    mica_conv_options_init(&o);
    o.stride[1] = 0;
    FAILS(mica_conv2d(s, x2, F32(6, 4, 3, 3), &o), "10: conv2d: stride is 0; it must be 1 to 2^40");
    MAKES(mica_conv1d(s, x, w, &o), "f32(2,6,8)");
    o.struct_size = 0;
    FAILS(mica_conv1d(s, x, w, &o), "10: conv1d: struct_size is 0, and the struct has 80 bytes; call its _init "
                                    "function, or set .struct_size to its "
                                    "sizeof");
    test_case("transposed");
    mica_conv_options_init(&o);
    MAKES(mica_conv_transpose1d(s, x, F32(4, 6, 3), NULL), "f32(2,6,12)");
    o.stride[0] = o.stride[1] = 2, o.padding[0] = 1, o.output_padding[0] = 1, o.groups = 2;
    MAKES(mica_conv_transpose2d(s, x2, F32(4, 3, 3, 5), &o), "f32(2,6,20,19)");
    FAILS(mica_conv_transpose1d(s, x, w, NULL), "11: conv_transpose1d: channels of x and w differ: 4 and 6");
    o.output_padding[0] = 2;
    FAILS(mica_conv_transpose1d(s, x, F32(4, 3, 3), &o),
          "10: conv_transpose1d: output_padding 2 is not smaller than stride 2 or dilation 1");
    o.output_padding[0] = 0, o.groups = 3;
    FAILS(mica_conv_transpose1d(s, x, F32(4, 3, 3), &o), "11: conv_transpose1d: 3 groups do not divide 4 channels");
    end();
}

TEST(pooling_shapes)
{
    if (!begin()) return;
    mica_pool_options o;
    mica_pool_options_init(&o);
    mica_array *x = F32(2, 3, 9), *x2 = F32(2, 3, 9, 8);
    MAKES(mica_max_pool1d(s, x, NULL), "f32(2,3,4)");
    o.kernel[0] = 3, o.stride[1] = 1, o.padding[0] = 1, o.exclude_padding = true;
    MAKES(mica_avg_pool2d(s, x2, &o), "f32(2,3,3,7)");
    MAKES(mica_max_pool2d(s, zeros(MICA_U8, 4, LIST(2, 3, 9, 8)), &o), "u8(2,3,3,7)");
    MAKES(mica_avg_pool2d(s, zeros(MICA_U8, 4, LIST(2, 3, 9, 8)), &o), "f32(2,3,3,7)");
    MAKES(mica_avg_pool1d(s, zeros(MICA_F16, 3, LIST(2, 3, 9)), NULL), "f16(2,3,4)");
    FAILS(mica_max_pool2d(s, x, NULL), "11: max_pool2d: x has shape (2, 3, 9) instead of 4 axes");
    o.padding[0] = 3;
    FAILS(mica_max_pool1d(s, x, &o), "10: max_pool1d: padding 3 is not smaller than kernel 3");
    o.padding[0] = 0, o.kernel[0] = 10;
    FAILS(mica_max_pool1d(s, x, &o), "11: max_pool1d: kernel 10 does not fit size 9 padded by 0");
    o.kernel[0] = 0;
    FAILS(mica_avg_pool1d(s, x, &o), "10: avg_pool1d: kernel is 0; it must be 1 to 2^40");
    end();
}

TEST(rope_and_attention)
{
    if (!begin()) return;
    mica_rope_options r;
    mica_rope_options_init(&r);
    mica_array *x = F32(2, 5, 8);
    MAKES(mica_rope(s, x, NULL, NULL), "f32(2,5,8)");
    MAKES(mica_rope(s, x, I32(5), &r), "f32(2,5,8)");
    MAKES(mica_rope(s, x, I32(2, 1), &r), "f32(2,5,8)");
    FAILS(mica_rope(s, x, I32(4), &r), "11: rope: shapes (2, 5) and (4) do not broadcast");
    FAILS(mica_rope(s, x, I32(1, 2, 5), &r), "11: rope: positions of shape (1, 2, 5) do not broadcast to (2, 5)");
    FAILS(mica_rope(s, F32(5, 7), NULL, NULL), "11: rope: dims is 7; it must be even, from 0 to 7");
    r.dims = 10;
    FAILS(mica_rope(s, x, NULL, &r), "11: rope: dims is 10; it must be even, from 0 to 8");
    r.dims = 4, r.base = 0;
    FAILS(mica_rope(s, x, NULL, &r), "10: rope: base 0, scale 1: both must be finite and base positive");
    FAILS(mica_rope(s, F32(8), NULL, NULL), "11: rope: x has 1 axes instead of 2 or more");
    mica_rope_options_init(&r);
    r.factors = F32(4);
    MAKES(mica_rope(s, x, NULL, &r), "f32(2,5,8)");
    r.factors = F32(5);
    FAILS(mica_rope(s, x, NULL, &r), "11: rope: factors of shape (5) do not match 4 pairs");
    r.factors = NULL;
    r.magnitude = INFINITY;
    FAILS(mica_rope(s, x, NULL, &r), "10: rope: magnitude is inf; it must be finite");
    test_case("attention");
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = true;
    mica_array *q = F32(2, 6, 5, 8), *k = F32(2, 3, 4, 8), *v = F32(2, 3, 4, 7);
    MAKES(mica_attention(s, q, k, v, NULL, NULL), "f32(2,6,5,7)");
    MAKES(mica_attention(s, q, k, v, zeros(MICA_BOOL, 2, LIST(5, 4)), &o), "f32(2,6,5,7)");
    MAKES(mica_attention(s, q, k, v, zeros(MICA_F64, 3, LIST(6, 1, 4)), &o), "f32(2,6,5,7)");
    MAKES(mica_attention(s, q, F32(2, 3, 0, 8), F32(2, 3, 0, 7), NULL, &o), "f32(2,6,5,7)");
    FAILS(mica_attention(s, q, k, v, F32(5, 5), NULL),
          "11: attention: shapes (2, 6, 5, 4) and (5, 5) do not broadcast");
    FAILS(mica_attention(s, F32(2, 6, 1, 8), k, v, F32(5, 4), NULL),
          "11: attention: mask of shape (5, 4) does not broadcast to (2, 6, 1, 4)");
    FAILS(mica_attention(s, F32(2, 6, 5), k, v, NULL, NULL), "11: attention: q has shape (2, 6, 5) instead of 4 axes");
    FAILS(mica_attention(s, F32(2, 4, 5, 8), k, v, NULL, NULL),
          "11: attention: 4 heads are not a multiple of 3 key heads");
    FAILS(mica_attention(s, q, F32(2, 3, 4, 9), v, NULL, NULL), "11: attention: dims of q and k differ: 8 and 9");
    FAILS(mica_attention(s, q, F32(2, 3, 5, 8), v, NULL, NULL), "11: attention: keys of k and v differ: 5 and 4");
    FAILS(mica_attention(s, q, F32(1, 3, 4, 8), v, NULL, NULL),
          "11: attention: batch sizes of q and k differ: 2 and 1");
    o.scale = NAN;
    FAILS(mica_attention(s, q, k, v, NULL, &o), "10: attention: scale is nan; it must be finite");
    test_case("cross entropy");
    MAKES(mica_cross_entropy(s, F32(2, 3, 5), I32(2, 3)), "f32(2,3)");
    MAKES(mica_cross_entropy(s, zeros(MICA_BF16, 1, LIST(5)), zeros(MICA_U8, 0, NULL)), "bf16()");
    FAILS(mica_cross_entropy(s, F32(2, 5), I32(5)),
          "11: cross_entropy: logits of shape (2, 5) do not match labels of shape (5)");
    FAILS(mica_cross_entropy(s, F32(2, 5), F32(2)), "12: cross_entropy: indices are f32 instead of integers");
    end();
}

/* ------------------------------------------------- joining, indexing, sorting */

TEST(joining)
{
    if (!begin()) return;
    mica_array *a = F32(2, 3), *b = I32(2, 1), *out[3];
    MAKES(mica_concat(s, (mica_array *[]){a, b, a}, 3, 1), "f32(2,7)");
    HOLDS(mica_concat(s, &a, 1, 0) == a);
    FAILS(mica_concat(s, (mica_array *[]){a, b}, 2, 0),
          "11: concat: f32 (2, 3) and f32 (2, 1) cannot be joined along axis 0");
    FAILS(mica_concat(s, (mica_array *[]){a, F32(2)}, 2, 0), "11: concat: arrays with 2 and 1 axes cannot be joined");
    FAILS(mica_concat(s, NULL, 2, 0), "10: concat: 2 arrays, but the list is NULL");
    FAILS(mica_concat(s, &a, 0, 0), "10: concat: 0 arrays, at least 1 is needed");
    FAILS(mica_concat(s, (mica_array *[]){a, NULL}, 2, 0), "10: concat: array 1 is NULL");
    FAILS(mica_concat(s, (mica_array *[]){a, a}, 2, 2), "10: concat: axis 2 is out of range for an array with 2 axes");
    MAKES(mica_stack(s, (mica_array *[]){a, a}, 2, -1), "f32(2,3,2)");
    MAKES(mica_stack(s, (mica_array *[]){mica_scalar(s, 1), zeros(MICA_I32, 0, NULL)}, 2, 0), "i32(2)");
    FAILS(mica_stack(s, (mica_array *[]){a, b}, 2, 0),
          "11: concat: f32 (1, 2, 3) and f32 (1, 2, 1) cannot be joined along axis 0");
    EXPECT_INT(mica_split(s, a, 1, LIST(1, 0, 2), 3, out), MICA_OK);
    MAKES(out[1], "f32(2,0)");
    MAKES(out[2], "f32(2,2)");
    EXPECT_INT(mica_split(s, a, 1, LIST(1, 1), 2, out), MICA_ERR_SHAPE);
    FAILS(out[0], "11: split: the sizes add up to 2, but axis 1 has 3");
    EXPECT_INT(mica_split(s, a, 1, LIST(4, -1), 2, out), MICA_ERR_SHAPE);
    FAILS(out[0], "11: split: part 1 has size -1");
    EXPECT_INT(mica_split(NULL, a, 1, LIST(3), 1, out), MICA_ERR_ARGUMENT);
    MAKES(mica_pad(s, a, LIST(1, 0), LIST(0, 2), -1), "f32(3,5)");
    HOLDS(mica_pad(s, a, LIST(0, 0), LIST(0, 0), 1) == a);
    FAILS(mica_pad(s, a, LIST(-1, 0), LIST(0, 2), 0), "10: pad: low -1 and high 0 of axis 0 must not be negative");
    FAILS(mica_pad(s, a, NULL, LIST(0, 2), 0), "10: pad: low is NULL");
    FAILS(mica_pad(s, a, LIST(INT64_MAX, 0), LIST(0, 2), 0),
          "15: pad: axis 0 of size 2 with padding 9223372036854775807 before, 0 after, 0 between has no valid size");
    MAKES(mica_tile(s, a, LIST(3, 2)), "f32(6,6)");
    MAKES(mica_tile(s, a, LIST(0, 1)), "f32(0,3)");
    MAKES(mica_tile(s, F32(1, 2, 1, 2, 1, 2, 1, 2), LIST(2, 2, 2, 2, 2, 2, 2, 2)), "f32(2,4,2,4,2,4,2,4)");
    FAILS(mica_tile(s, a, LIST(1, -1)), "10: tile: count -1 of axis 1 is negative");
    FAILS(mica_tile(s, a, LIST(INT64_MAX, 1)), "15: tile: f32 (9223372036854775807, 3) has too many elements");
    MAKES(mica_repeat(s, a, 4, -1), "f32(2,12)");
    FAILS(mica_repeat(s, a, 4, 2), "10: repeat: axis 2 is out of range for an array with 2 axes");
    MAKES(mica_roll(s, a, INT64_MIN, 1), "f32(2,3)");
    HOLDS(mica_roll(s, a, -6, 1) == a);
    end();
}

TEST(indexing)
{
    if (!begin()) return;
    mica_array *x = F32(4, 5, 6);
    MAKES(mica_take(s, x, I32(2, 3), 1), "f32(4,2,3,6)");
    MAKES(mica_take(s, x, zeros(MICA_U8, 0, NULL), -1), "f32(4,5)");
    FAILS(mica_take(s, x, F32(2), 0), "12: take: indices are f32 instead of integers");
    FAILS(mica_take(s, x, zeros(MICA_BOOL, 1, LIST(2)), 0), "12: take: indices are bool instead of integers");
    FAILS(mica_take(s, x, I32(1, 1, 1, 1, 1, 1, 1), 0),
          "11: take: the result would have 9 axes, at most 8 are allowed");
    MAKES(mica_take_along_axis(s, x, I32(4, 2, 6), 1), "f32(4,2,6)");
    MAKES(mica_take_along_axis(s, x, I32(1, 2, 6), 1), "f32(4,2,6)");
    MAKES(mica_take_along_axis(s, F32(1, 5), I32(3, 2), 1), "f32(3,2)");
    FAILS(mica_take_along_axis(s, x, I32(3, 2, 6), 1),
          "11: take_along_axis: shape (4, 5, 6) and indices of shape (3, 2, 6) do not match along axis 1");
    FAILS(mica_take_along_axis(s, x, I32(4), 0),
          "11: take_along_axis: shape (4, 5, 6) and indices of shape (4) do not match along axis 0");
    MAKES(mica_gather(s, x, I32(7, 2)), "f32(7,6)");
    MAKES(mica_gather(s, x, I32(3)), "f32()");
    MAKES(mica_gather(s, x, I32(2, 0)), "f32(2,4,5,6)");
    FAILS(mica_gather(s, x, I32(7, 4)), "11: gather: indices for 4 axes of an array with 3");
    FAILS(mica_gather(s, x, zeros(MICA_I32, 0, NULL)), "11: gather: indices have no axes");
    FAILS(mica_gather(s, x, F32(7, 2)), "12: gather: indices are f32 instead of integers");
    FAILS(mica_gather(s, x, I32(1, 1, 1, 1, 1, 1, 1, 1)), "11: gather: 9 axes is out of range (0 to 8)");
    MAKES(mica_scatter(s, x, I32(7, 2), F32(7, 6)), "f32(4,5,6)");
    MAKES(mica_scatter_add(s, x, I32(7, 1), zeros(MICA_F64, 0, NULL)), "f32(4,5,6)");
    FAILS(mica_scatter(s, x, I32(7, 2), F32(7, 5)), "11: scatter: shapes (7, 6) and (7, 5) do not broadcast");
    FAILS(mica_scatter_add(s, x, I32(7, 2), F32(2, 7, 6)),
          "11: scatter_add: updates of shape (2, 7, 6) do not broadcast to (7, 6)");
    MAKES(mica_embedding(s, F32(10, 4), I32(2, 3)), "f32(2,3,4)");
    FAILS(mica_embedding(s, F32(10, 4), F32(2)), "12: embedding: indices are f32 instead of integers");
    MAKES(mica_one_hot(s, I32(2, 3), 5, MICA_BF16), "bf16(2,3,5)");
    FAILS(mica_one_hot(s, I32(2, 3), -5, MICA_F32), "11: one_hot: size -5 of axis 2 is negative");
    FAILS(mica_one_hot(s, F32(2, 3), 5, MICA_F32), "12: one_hot: indices are f32 instead of integers");
    end();
}

TEST(sorting)
{
    if (!begin()) return;
    mica_array *x = zeros(MICA_U8, 2, LIST(3, 4)), *values, *indices;
    MAKES(mica_sort(s, x, 0, false), "u8(3,4)");
    MAKES(mica_argsort(s, x, 1, true), "i64(3,4)");
    FAILS(mica_sort(s, zeros(MICA_F32, 0, NULL), -1, false),
          "10: sort: axis -1 is out of range for an array with 0 axes");
    EXPECT_INT(mica_topk(s, x, 2, 0, &values, &indices), MICA_OK);
    MAKES(values, "u8(2,4)");
    MAKES(indices, "i64(2,4)");
    EXPECT_INT(mica_topk(s, x, 0, 1, NULL, &indices), MICA_OK);
    MAKES(indices, "i64(3,0)");
    EXPECT_INT(mica_topk(s, x, 5, 1, &values, NULL), MICA_ERR_ARGUMENT);
    FAILS(values, "10: topk: k is 5; it must be 0 to 4");
    EXPECT_INT(mica_topk(NULL, x, 5, 1, &values, NULL), MICA_ERR_ARGUMENT);
    end();
}

/* ---------------------------------------------------------- gradients, loops */

static mica_status no_gradient(mica_scope *scope, mica_array *cotangent, mica_array *const *inputs, size_t n,
                               mica_array **grads, void *user)
{
    (void)scope, (void)cotangent, (void)inputs, (void)n, (void)grads, (void)user;
    return MICA_OK;
}

TEST(aliases)
{
    if (!begin()) return;
    released = 0;
    mica_array *x = F32(2), *y = mica_exp(s, x);
    MAKES(mica_custom_grad(s, y, &x, 1, no_gradient, NULL, count_release), "f32(2)");
    EXPECT_INT(released, 0);
    FAILS(mica_custom_grad(s, y, &x, 1, NULL, NULL, count_release), "10: custom_grad: fn is NULL");
    EXPECT_INT(released, 1);
    FAILS(mica_custom_grad(s, y, NULL, 1, no_gradient, NULL, count_release), "10: custom_grad: inputs is NULL");
    EXPECT_INT(released, 2);
    FAILS(mica_custom_grad(s, NULL, &x, 1, no_gradient, NULL, count_release), "10: custom_grad: array 0 is NULL");
    EXPECT_INT(released, 3);
    HOLDS(mica_custom_grad(s, y, &x, SIZE_MAX, no_gradient, NULL, count_release) == NULL);
    EXPECT_INT(mica_scope_status(s), MICA_ERR_MEMORY);
    mica_scope_clear_error(s);
    EXPECT_INT(released, 4);
    MAKES(mica_checkpoint(s, y, &x, 1), "f32(2)");
    FAILS(mica_checkpoint(s, y, (mica_array *[]){NULL}, 1), "10: checkpoint: array 1 is NULL");
    end();
    EXPECT_INT(released, 5);
}

/* user: what to do wrong, or an array to capture. */
typedef struct step_plan {
    mica_array *outside;
    mica_status status;
    bool wrong_shape, wrong_dtype, no_result, fails;
} step_plan;

static mica_status step(mica_scope *scope, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                        mica_array **y_out, void *user)
{
    const step_plan *plan = user;
    mica_array *sum = mica_add(scope, carry[0], x[0]);
    if (plan->outside) sum = mica_add(scope, sum, plan->outside);
    if (plan->wrong_shape) sum = mica_flatten(scope, sum);
    if (plan->wrong_dtype) sum = mica_cast(scope, sum, MICA_F64);
    if (plan->fails) sum = mica_add(scope, sum, mica_zeros(scope, MICA_F32, 1, LIST(77)));
    carry_out[0] = plan->no_result ? NULL : sum;
    y_out[0] = mica_sum(scope, sum, NULL, 0, false);
    return plan->status;
}

TEST(scans)
{
    if (!begin()) return;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    mica_array *h = F32(2, 3), *xs = F32(5, 2, 3), *last = h, *ys = h;
    step_plan good = {0};
#define SCAN(plan) mica_scan(s, step, plan, &o, &h, &xs, &last, &ys)
    EXPECT_INT(SCAN(&good), MICA_OK);
    MAKES(last, "f32(2,3)");
    MAKES(ys, "f32(5)");
    step_plan captures = {.outside = F32(3)};
    EXPECT_INT(SCAN(&captures), MICA_OK);
    MAKES(ys, "f32(5)");
    test_case("what the step does wrong");
    EXPECT_INT(SCAN((&(step_plan){.wrong_shape = true})), MICA_ERR_SHAPE);
    FAILS(last, "11: scan: carry 0 is f32 (2, 3), but the step returns f32 (6)");
    EXPECT_INT(SCAN((&(step_plan){.wrong_dtype = true})), MICA_ERR_DTYPE);
    FAILS(ys, "12: scan: carry 0 is f32 (2, 3), but the step returns f64 (2, 3)");
    EXPECT_INT(SCAN((&(step_plan){.no_result = true})), MICA_ERR_ARGUMENT);
    FAILS(last, "10: scan: array 0 is NULL");
    EXPECT_INT(SCAN((&(step_plan){.fails = true})), MICA_ERR_SHAPE);
    FAILS(last, "11: add: shapes (2, 3) and (77) do not broadcast");
    EXPECT_INT(SCAN((&(step_plan){.status = MICA_ERR_STATE})), MICA_ERR_STATE);
    FAILS(last, "13: scan: the step returned \"not possible in this state\"");
    test_case("lengths");
    o.length = 4;
    EXPECT_INT(SCAN(&good), MICA_ERR_SHAPE);
    FAILS(last, "11: scan: x 0 is f32 (5, 2, 3), but the scan has 4 steps");
    o.length = -1;
    EXPECT_INT(SCAN(&good), MICA_ERR_ARGUMENT);
    FAILS(last, "10: scan: length is negative");
    o.length = 0;
    xs = F32(0, 2, 3);
    EXPECT_INT(SCAN(&good), MICA_OK);
    HOLDS(last == h);
    MAKES(ys, "f32(0)");
    xs = zeros(MICA_F32, 0, NULL);
    EXPECT_INT(SCAN(&good), MICA_ERR_SHAPE);
    FAILS(last, "11: scan: x 0 has no axes");
    test_case("arguments");
    EXPECT_INT(mica_scan(NULL, step, &good, &o, &h, &xs, &last, &ys), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_scan(s, step, &good, NULL, &h, &xs, &last, &ys), MICA_ERR_ARGUMENT);
    FAILS(NULL, "10: scan: options is NULL");
    EXPECT_INT(mica_scan(s, step, &good, &o, NULL, &xs, &last, &ys), MICA_ERR_ARGUMENT);
    FAILS(last, "10: scan: carry is NULL");
    EXPECT_INT(mica_scan(s, NULL, &good, &o, &h, &xs, &last, &ys), MICA_ERR_ARGUMENT);
    FAILS(last, "10: scan: step is NULL");
    o.n_x = 0;
    EXPECT_INT(SCAN(&good), MICA_ERR_ARGUMENT);
    FAILS(last, "10: scan: a length is needed if there are no xs");
    o.n_y = SIZE_MAX;
    EXPECT_INT(SCAN(&good), MICA_ERR_ARGUMENT);
    FAILS(NULL, "10: scan: more than 2^20 carries, xs or ys");
    end();
}
