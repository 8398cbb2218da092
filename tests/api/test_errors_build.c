/* Invalid arguments to creation, views, element-wise ops and reductions.
 *
 * runs: check */
#include "errors.h"

/* -------------------------------------------------------------- creation ---- */

/* Arguments that every call with dtype, ndim and shape must refuse. */
#define BAD_SPEC(op, ...)                       \
    do {                                        \
        mica_scope *s = g.s;                    \
        mica_dtype dtype = MICA_F32;            \
        int ndim = 1;                           \
        const int64_t *shape = (int64_t[]){-3}; \
        BAD(__VA_ARGS__, MICA_ERR_SHAPE, op);   \
        shape = nine, ndim = 9;                 \
        BAD(__VA_ARGS__, MICA_ERR_SHAPE, op);   \
        ndim = -1;                              \
        BAD(__VA_ARGS__, MICA_ERR_SHAPE, op);   \
        ndim = INT32_MIN;                       \
        BAD(__VA_ARGS__, MICA_ERR_SHAPE, op);   \
        shape = huge, ndim = 2;                 \
        BAD(__VA_ARGS__, MICA_ERR_SIZE, op);    \
        shape = beyond;                         \
        BAD(__VA_ARGS__, MICA_ERR_SIZE, op);    \
        shape = NULL, ndim = 1;                 \
        BAD(__VA_ARGS__, ARGUMENT, op);         \
        shape = nine, dtype = (mica_dtype)99;   \
        BAD(__VA_ARGS__, MICA_ERR_DTYPE, op);   \
        dtype = (mica_dtype) - 1;               \
        BAD(__VA_ARGS__, MICA_ERR_DTYPE, op);   \
        dtype = MICA_F32, s = NULL;             \
        BAD_SCOPE(__VA_ARGS__, op);             \
        (void)dtype, (void)s;                   \
    } while (0)

BAD_INPUT(creation)
{
    static const float data[16];
    BAD_SPEC("from_data", mica_from_data(s, dtype, ndim, shape, data));
    BAD(mica_from_data(g.s, MICA_F32, SHAPE(4), NULL), ARGUMENT, "from_data");
    BAD_SPEC("wrap", mica_wrap(s, dtype, ndim, shape, NULL, data, NULL, NULL));
    BAD_SPEC("full", mica_full(s, dtype, ndim, shape, 1));
    BAD_SPEC("full", mica_full_i64(s, dtype, ndim, shape, 1));
    BAD_SPEC("zeros", mica_zeros(s, dtype, ndim, shape));
    BAD_SPEC("ones", mica_ones(s, dtype, ndim, shape));
    BAD_SCOPE(mica_scalar(NULL, 1), "scalar");

    BAD(mica_arange(g.s, (mica_dtype)99, 0, 1, 1), MICA_ERR_DTYPE, "arange");
    BAD(mica_arange(g.s, MICA_BOOL, 0, 1, 1), MICA_ERR_DTYPE, "arange");
    BAD(mica_arange(g.s, MICA_F32, 0, 1, 0), ARGUMENT, "arange");
    BAD(mica_arange(g.s, MICA_F32, 0, NAN, 1), ARGUMENT, "arange");
    BAD(mica_arange(g.s, MICA_F32, 0, INFINITY, 1), ARGUMENT, "arange");
    BAD(mica_arange(g.s, MICA_F32, 0, 1e30, 1e-30), MICA_ERR_SIZE, "arange");
    BAD(mica_arange(g.s, MICA_U8, 0, 1000, 1), ARGUMENT, "arange");
    BAD(mica_arange(g.s, MICA_I32, 0.5, 3, 1), ARGUMENT, "arange");
    BAD_SCOPE(mica_arange(NULL, MICA_F32, 0, 1, 1), "arange");
    BAD(mica_linspace(g.s, (mica_dtype)99, 0, 1, 5), MICA_ERR_DTYPE, "linspace");
    BAD(mica_linspace(g.s, MICA_F32, 0, 1, -5), MICA_ERR_SHAPE, "linspace");
    BAD(mica_linspace(g.s, MICA_F32, 0, NAN, 5), ARGUMENT, "linspace");
    BAD(mica_linspace(g.s, MICA_F32, 0, 1, INT64_MAX), MICA_ERR_SIZE, "linspace");
    BAD_SCOPE(mica_linspace(NULL, MICA_F32, 0, 1, 5), "linspace");
    BAD(mica_eye(g.s, MICA_F32, -1, 2, 0), MICA_ERR_SHAPE, "eye");
    BAD(mica_eye(g.s, MICA_F32, INT64_MAX, INT64_MAX, 0), MICA_ERR_SIZE, "eye");
    BAD(mica_eye(g.s, (mica_dtype)99, 1, 2, 0), MICA_ERR_DTYPE, "eye");
    BAD_SCOPE(mica_eye(NULL, MICA_F32, 1, 1, 0), "eye");
    BAD(mica_tri(g.s, MICA_F32, 2, -1, 0), MICA_ERR_SHAPE, "tri");
    BAD_SCOPE(mica_tri(NULL, MICA_F32, 1, 1, 0), "tri");
    EXPECT(mica_tri(g.s, MICA_F32, 3, 3, INT64_MIN) && mica_eye(g.s, MICA_F32, 3, 3, INT64_MAX));

    BAD_SPEC("random_uniform", mica_random_uniform(s, dtype, ndim, shape, 0, 1, 7));
    BAD(mica_random_uniform(g.s, MICA_F32, SHAPE(3), 1, 0, 7), ARGUMENT, "random_uniform");
    BAD(mica_random_uniform(g.s, MICA_F32, SHAPE(3), NAN, 1, 7), ARGUMENT, "random_uniform");
    BAD(mica_random_uniform(g.s, MICA_I32, SHAPE(3), 0, 1, 7), MICA_ERR_DTYPE, "random_uniform");
    BAD_SPEC("random_normal", mica_random_normal(s, dtype, ndim, shape, 7));
    BAD(mica_random_normal(g.s, MICA_BOOL, SHAPE(3), 7), MICA_ERR_DTYPE, "random_normal");
    BAD_SPEC("random_truncated_normal", mica_random_truncated_normal(s, dtype, ndim, shape, -1, 1, 7));
    BAD(mica_random_truncated_normal(g.s, MICA_F32, SHAPE(3), 1, -1, 7), ARGUMENT, "random_truncated_normal");
    BAD(mica_random_bits(g.s, MICA_F32, SHAPE(3), 7), MICA_ERR_DTYPE, "random_bits");
    BAD(mica_random_bits(g.s, MICA_U32, SHAPE(-3), 7), MICA_ERR_SHAPE, "random_bits");
    BAD_SCOPE(mica_random_bits(NULL, MICA_U32, SHAPE(3), 7), "random_bits");
    BAD(mica_random_bernoulli(g.s, SHAPE(3), 1.5, 7), ARGUMENT, "random_bernoulli");
    BAD(mica_random_bernoulli(g.s, SHAPE(3), NAN, 7), ARGUMENT, "random_bernoulli");
    BAD(mica_random_bernoulli(g.s, SHAPE(-3), 0.5, 7), MICA_ERR_SHAPE, "random_bernoulli");
    BAD_SCOPE(mica_random_bernoulli(NULL, SHAPE(3), 0.5, 7), "random_bernoulli");
    BAD(mica_random_randint(g.s, MICA_I32, SHAPE(3), 5, 5, 7), ARGUMENT, "random_randint");
    BAD(mica_random_randint(g.s, MICA_U8, SHAPE(3), 0, 1000, 7), ARGUMENT, "random_randint");
    BAD(mica_random_randint(g.s, MICA_F32, SHAPE(3), 0, 5, 7), MICA_ERR_DTYPE, "random_randint");
    BAD_SCOPE(mica_random_randint(NULL, MICA_I32, SHAPE(3), 0, 5, 7), "random_randint");
    BAD(mica_random_categorical(g.s, NULL, 7), ARGUMENT, "random_categorical");
    BAD(mica_random_categorical(g.s, g.zero, 7), MICA_ERR_SHAPE, "random_categorical");
    BAD_SCOPE(mica_random_categorical(NULL, g.m, 7), "random_categorical");
    BAD(mica_random_permutation(g.s, -1, 7), MICA_ERR_SHAPE, "random_permutation");
    BAD(mica_random_permutation(g.s, INT64_MAX, 7), MICA_ERR_SIZE, "random_permutation");
    BAD_SCOPE(mica_random_permutation(NULL, 3, 7), "random_permutation");
}

/* ----------------------------------------------------------------- views ---- */

BAD_INPUT(views)
{
    BAD(mica_reshape(g.s, NULL, SHAPE(4)), ARGUMENT, "reshape");
    BAD(mica_reshape(g.s, g.x, SHAPE(5)), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, SHAPE(-1, -1)), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, SHAPE(-1, 3)), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, SHAPE(-2, 2)), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, SHAPE(-1, 0)), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, 9, nine), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, -1, nine), MICA_ERR_SHAPE, "reshape");
    BAD(mica_reshape(g.s, g.x, 1, NULL), ARGUMENT, "reshape");
    BAD(mica_reshape(g.s, g.x, 2, huge), MICA_ERR_SIZE, "reshape");
    BAD_SCOPE(mica_reshape(NULL, g.x, SHAPE(4)), "reshape");
    BAD(mica_flatten(g.s, NULL), ARGUMENT, "flatten");
    BAD_SCOPE(mica_flatten(NULL, g.x), "flatten");
    BAD(mica_expand_dims(g.s, NULL, 0), ARGUMENT, "expand_dims");
    BAD(mica_expand_dims(g.s, g.x, 3), ARGUMENT, "expand_dims");
    BAD(mica_expand_dims(g.s, g.x, INT32_MIN), ARGUMENT, "expand_dims");
    BAD_SCOPE(mica_expand_dims(NULL, g.x, 0), "expand_dims");
    BAD(mica_squeeze(g.s, NULL, 0), ARGUMENT, "squeeze");
    BAD(mica_squeeze(g.s, g.x, 0), MICA_ERR_SHAPE, "squeeze");
    BAD(mica_squeeze(g.s, g.x, 1), ARGUMENT, "squeeze");
    BAD_SCOPE(mica_squeeze(NULL, g.x, 0), "squeeze");
    BAD(mica_permute(g.s, NULL, (int[]){0}), ARGUMENT, "permute");
    BAD(mica_permute(g.s, g.m, NULL), ARGUMENT, "permute");
    BAD(mica_permute(g.s, g.m, (int[]){0, 0}), ARGUMENT, "permute");
    BAD(mica_permute(g.s, g.m, (int[]){0, 2}), ARGUMENT, "permute");
    BAD_SCOPE(mica_permute(NULL, g.m, (int[]){1, 0}), "permute");
    BAD(mica_transpose(g.s, NULL), ARGUMENT, "transpose");
    BAD(mica_transpose(g.s, g.x), MICA_ERR_SHAPE, "transpose");
    BAD_SCOPE(mica_transpose(NULL, g.m), "transpose");
    BAD(mica_flip(g.s, NULL, 0), ARGUMENT, "flip");
    BAD(mica_flip(g.s, g.x, -2), ARGUMENT, "flip");
    BAD_SCOPE(mica_flip(NULL, g.x, 0), "flip");
    BAD(mica_slice(g.s, NULL, (int64_t[]){0}, (int64_t[]){1}, NULL), ARGUMENT, "slice");
    BAD(mica_slice(g.s, g.x, NULL, (int64_t[]){1}, NULL), ARGUMENT, "slice");
    BAD(mica_slice(g.s, g.x, (int64_t[]){0}, NULL, NULL), ARGUMENT, "slice");
    BAD(mica_slice(g.s, g.x, (int64_t[]){0}, (int64_t[]){1}, (int64_t[]){0}), ARGUMENT, "slice");
    BAD_SCOPE(mica_slice(NULL, g.x, (int64_t[]){0}, (int64_t[]){1}, NULL), "slice");
    BAD(mica_slice_axis(g.s, NULL, 0, 0, 1, 1), ARGUMENT, "slice");
    BAD(mica_slice_axis(g.s, g.x, 7, 0, 1, 1), ARGUMENT, "slice");
    BAD(mica_slice_axis(g.s, g.x, 0, 0, 1, 0), ARGUMENT, "slice");
    BAD_SCOPE(mica_slice_axis(NULL, g.x, 0, 0, 1, 1), "slice");
    /* as in Python, bounds are clamped to the axis */
    mica_array *all = mica_slice_axis(g.s, g.x, 0, INT64_MIN + 1, INT64_MAX, 1);
    mica_array *none = mica_slice_axis(g.s, g.x, 0, INT64_MAX, INT64_MIN + 1, 1);
    mica_array *one = mica_slice_axis(g.s, g.x, 0, INT64_MAX, INT64_MIN + 1, INT64_MIN + 1);
    EXPECT(mica_array_size(all) == 4 && mica_array_size(none) == 0 && mica_array_size(one) == 1);
    BAD(mica_broadcast_to(g.s, NULL, SHAPE(4)), ARGUMENT, "broadcast");
    BAD(mica_broadcast_to(g.s, g.x, SHAPE(5)), MICA_ERR_SHAPE, "broadcast");
    BAD(mica_broadcast_to(g.s, g.m, SHAPE(3)), MICA_ERR_SHAPE, "broadcast");
    BAD(mica_broadcast_to(g.s, g.zero, 2, huge), MICA_ERR_SIZE, "broadcast");
    BAD(mica_broadcast_to(g.s, g.zero, 1, NULL), ARGUMENT, "broadcast");
    BAD(mica_broadcast_to(g.s, g.zero, SHAPE(-1)), MICA_ERR_SHAPE, "broadcast");
    BAD(mica_broadcast_to(g.s, g.zero, 9, nine), MICA_ERR_SHAPE, "broadcast");
    BAD_SCOPE(mica_broadcast_to(NULL, g.x, SHAPE(4)), "broadcast");
    BAD(mica_contiguous(g.s, NULL), ARGUMENT, "contiguous");
    BAD_SCOPE(mica_contiguous(NULL, g.x), "contiguous");
}

/* ----------------------------------------------------------- element-wise --- */

BAD_INPUT(elementwise)
{
    mica_array *five = mica_full_i64(g.s, MICA_I32, SHAPE(5), 1), *four = mica_full_i64(g.s, MICA_I32, SHAPE(4), 1);
#define ONE(name)                                      \
    BAD(mica_##name(g.s, NULL), ARGUMENT, #name);      \
    BAD(mica_##name(g.s, g.foreign), ARGUMENT, #name); \
    BAD_SCOPE(mica_##name(NULL, g.x), #name);
#define ONE_PLAIN(name) ONE(name)
#define ONE_WHOLE(name) ONE(name)
#define ONE_VALUE(name)                                     \
    BAD(mica_##name(g.s, NULL, 0.1), ARGUMENT, #name);      \
    BAD(mica_##name(g.s, g.foreign, 0.1), ARGUMENT, #name); \
    BAD_SCOPE(mica_##name(NULL, g.x, 0.1), #name);
#define MICA_MAP1(NAME, name, ctor, ...) ONE_##ctor(name)
#include "graph/ops.def"
#define MICA_COMPOSED(name, ...) ONE(name)
#include "graph/composed.def"
    ONE(stop_gradient)
#undef ONE
#define ONE(name)                                             \
    BAD(mica_##name(g.s, NULL, four), ARGUMENT, #name);       \
    BAD(mica_##name(g.s, four, NULL), ARGUMENT, #name);       \
    BAD(mica_##name(g.s, NULL, NULL), ARGUMENT, #name);       \
    BAD(mica_##name(g.s, four, g.foreign), ARGUMENT, #name);  \
    BAD(mica_##name(g.s, four, five), MICA_ERR_SHAPE, #name); \
    BAD_SCOPE(mica_##name(NULL, four, four), #name);
#define MICA_MAP2(NAME, name, ...) ONE(name)
#include "graph/ops.def"
#undef ONE
    BAD(mica_bitwise_not(g.s, g.x), MICA_ERR_DTYPE, "bitwise_not");
    BAD(mica_bitwise_and(g.s, g.x, g.x), MICA_ERR_DTYPE, "bitwise_and");
    BAD(mica_shift_left(g.s, g.x, four), MICA_ERR_DTYPE, "shift_left");
    BAD(mica_cast(g.s, NULL, MICA_F32), ARGUMENT, "cast");
    BAD(mica_cast(g.s, g.x, (mica_dtype)99), MICA_ERR_DTYPE, "cast");
    BAD_SCOPE(mica_cast(NULL, g.x, MICA_F64), "cast");
    BAD(mica_where(g.s, NULL, g.x, g.x), ARGUMENT, "where");
    BAD(mica_where(g.s, g.b, NULL, g.x), ARGUMENT, "where");
    BAD(mica_where(g.s, g.b, g.x, NULL), ARGUMENT, "where");
    BAD(mica_where(g.s, g.b, g.x, five), MICA_ERR_SHAPE, "where");
    BAD_SCOPE(mica_where(NULL, g.b, g.x, g.x), "where");
    BAD(mica_clip(g.s, NULL, g.x, g.x), ARGUMENT, "clip");
    BAD(mica_clip(g.s, g.x, five, NULL), MICA_ERR_SHAPE, "clip");
    BAD(mica_clip(g.s, g.x, NULL, g.foreign), ARGUMENT, "clip");
    BAD_SCOPE(mica_clip(NULL, g.x, NULL, NULL), "clip");
    BAD(mica_fma(g.s, NULL, g.x, g.x), ARGUMENT, "fma");
    BAD(mica_fma(g.s, g.x, g.x, NULL), ARGUMENT, "fma");
    BAD(mica_fma(g.s, g.x, g.x, five), MICA_ERR_SHAPE, "fma");
    BAD_SCOPE(mica_fma(NULL, g.x, g.x, g.x), "fma");
}

/* ------------------------------------------------------------- reductions --- */

BAD_INPUT(reductions)
{
    const int twice[] = {0, -2}, far[] = {2};
#define ONE(name)                                                      \
    BAD(mica_##name(g.s, NULL, NULL, 0, false), ARGUMENT, #name);      \
    BAD(mica_##name(g.s, g.m, far, 1, false), ARGUMENT, #name);        \
    BAD(mica_##name(g.s, g.m, twice, 2, false), ARGUMENT, #name);      \
    BAD(mica_##name(g.s, g.m, NULL, 1, false), ARGUMENT, #name);       \
    BAD(mica_##name(g.s, g.m, twice, -1, false), ARGUMENT, #name);     \
    BAD(mica_##name(g.s, g.foreign, NULL, 0, false), ARGUMENT, #name); \
    BAD_SCOPE(mica_##name(NULL, g.m, NULL, 0, false), #name);
    ONE(sum)
    ONE(mean)
    ONE(prod)
    ONE(max)
    ONE(min)
    ONE(any)
    ONE(all)
    ONE(logsumexp)
#undef ONE
    mica_array *empty = mica_zeros(g.s, MICA_F32, SHAPE(2, 0));
    BAD(mica_max(g.s, empty, NULL, 0, false), MICA_ERR_SHAPE, "max");
    BAD(mica_argmax(g.s, empty, 1, false), MICA_ERR_SHAPE, "argmax");
    BAD(mica_var(g.s, NULL, NULL, 0, 0, false), ARGUMENT, "var");
    BAD(mica_var(g.s, g.m, far, 1, 0, false), ARGUMENT, "var");
    BAD_SCOPE(mica_var(NULL, g.m, NULL, 0, 0, false), "var");
    BAD(mica_std(g.s, NULL, NULL, 0, 0, false), ARGUMENT, "std");
    BAD(mica_std(g.s, g.m, far, 1, 0, false), ARGUMENT, "std");
    BAD_SCOPE(mica_std(NULL, g.m, NULL, 0, 0, false), "std");
    BAD(mica_norm(g.s, NULL, 2, NULL, 0, false), ARGUMENT, "norm");
    BAD(mica_norm(g.s, g.m, 2, far, 1, false), ARGUMENT, "norm");
    BAD(mica_norm(g.s, g.m, NAN, NULL, 0, false), ARGUMENT, "norm");
    BAD_SCOPE(mica_norm(NULL, g.m, 2, NULL, 0, false), "norm");
#define ONE(name, ...)                                                \
    BAD(mica_##name(g.s, NULL, 0 __VA_ARGS__), ARGUMENT, #name);      \
    BAD(mica_##name(g.s, g.m, 2 __VA_ARGS__), ARGUMENT, #name);       \
    BAD(mica_##name(g.s, g.m, -3 __VA_ARGS__), ARGUMENT, #name);      \
    BAD(mica_##name(g.s, g.foreign, 0 __VA_ARGS__), ARGUMENT, #name); \
    BAD_SCOPE(mica_##name(NULL, g.m, 0 __VA_ARGS__), #name);
#define COMMA_FALSE , false
    ONE(argmax, COMMA_FALSE)
    ONE(argmin, COMMA_FALSE)
    ONE(sort, COMMA_FALSE)
    ONE(argsort, COMMA_FALSE) ONE(cumsum, ) ONE(cumprod, ) ONE(cummax, ) ONE(softmax, ) ONE(log_softmax, )
#undef ONE
}
