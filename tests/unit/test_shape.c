/* Constructors without a device: dtype and shape of the result, or the status and the error
 * message. Element-wise ops, creation, views and reductions; test_shape_nn.c has the rest. Nothing
 * is evaluated.
 *
 * runs: check */
#include <math.h>

#include "shape_check.h"

/* ------------------------------------------------------------- element-wise - */

typedef mica_array *(*unary_fn)(mica_scope *, mica_array *);
typedef mica_array *(*binary_fn)(mica_scope *, mica_array *, mica_array *);

TEST(unary_dtypes)
{
    static const struct {
        const char *name;
        unary_fn fn;
        const char *of_f16, *of_i8, *of_bool;
    } rows[] = {
#define SAME(name) {#name, mica_##name, "f16(2)", "i8(2)", "bool(2)"}
#define FLOATING(name) {#name, mica_##name, "f16(2)", "f32(2)", "f32(2)"}
#define TO_BOOL(name) {#name, mica_##name, "bool(2)", "bool(2)", "bool(2)"}
        SAME(contiguous),
        SAME(stop_gradient),
/* by column rule of ops.def */
#define ROW_same(name) SAME(name),
#define ROW_floating(name) FLOATING(name),
#define ROW_predicate(name) TO_BOOL(name),
#define ROW_logical(name) TO_BOOL(name),
#define ROW_integer(name) /* bitwise_not: below */
#define ROW_PLAIN(rule, name) ROW_##rule(name)
#define ROW_WHOLE(rule, name) ROW_##rule(name)
#define ROW_VALUE(rule, name) /* below */
#define MICA_MAP1(NAME, name, ctor, rule, ...) ROW_##ctor(rule, name)
#include "graph/ops.def"
#define MICA_COMPOSED(name, ...) FLOATING(name),
#include "graph/composed.def"
    };
    if (!begin()) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_case("%s", rows[i].name);
        MAKES(rows[i].fn(s, OF(MICA_F16)), rows[i].of_f16);
        MAKES(rows[i].fn(s, OF(MICA_I8)), rows[i].of_i8);
        MAKES(rows[i].fn(s, OF(MICA_BOOL)), rows[i].of_bool);
        MAKES(rows[i].fn(s, zeros(MICA_F64, 3, LIST(0, 1, 5))),
              !strncmp(rows[i].of_f16, "bool", 4) ? "bool(0,1,5)" : "f64(0,1,5)");
        HOLDS(rows[i].fn(NULL, OF(MICA_F32)) == NULL);
        char text[80];
        snprintf(text, sizeof text, "10: %s: array 0 is NULL", rows[i].name);
        FAILS(rows[i].fn(s, NULL), text);
    }
    test_case("with a number");
    MAKES(mica_leaky_relu(s, OF(MICA_I8), 0.1), "f32(2)");
    MAKES(mica_elu(s, OF(MICA_BF16), 1), "bf16(2)");
    MAKES(mica_bitwise_not(s, OF(MICA_U16)), "u16(2)");
    MAKES(mica_bitwise_not(s, OF(MICA_BOOL)), "bool(2)");
    FAILS(mica_bitwise_not(s, OF(MICA_F32)), "12: bitwise_not: dtype f32; it must be bool or an integer");
    MAKES(mica_cast(s, OF(MICA_F32), MICA_U8), "u8(2)");
    FAILS(mica_cast(s, OF(MICA_F32), (mica_dtype)77), "12: cast: 77 is not a dtype");
    mica_array *x = OF(MICA_F32), *whole = OF(MICA_I32);
    HOLDS(mica_cast(s, x, MICA_F32) == x);
    HOLDS(mica_floor(s, whole) == whole);
    end();
}

TEST(binary_dtypes)
{
    static const struct {
        const char *name;
        binary_fn fn;
        const char *ints, *mixed, *bools; /* i8 with u8; i32 with f16; bool with bool */
    } rows[] = {
#define COMPARE(name) {#name, mica_##name, "bool(2)", "bool(2)", "bool(2)"}
#define PROMOTE(name) {#name, mica_##name, "i16(2)", "f16(2)", "bool(2)"}
#define DIVIDE(name) {#name, mica_##name, "f32(2)", "f16(2)", "f32(2)"}
#define INTEGER(name, bools) {#name, mica_##name, "i16(2)", NULL, bools}
#define ROW2_same(name) PROMOTE(name),
#define ROW2_floating(name) DIVIDE(name),
#define ROW2_compare(name) COMPARE(name),
#define ROW2_logical(name) COMPARE(name),
#define ROW2_integer(name) INTEGER(name, "bool(2)"),
#define MICA_MAP2(NAME, name, rule, ...) ROW2_##rule(name)
#include "graph/ops.def"
    };
    if (!begin()) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_case("%s", rows[i].name);
        MAKES(rows[i].fn(s, OF(MICA_I8), OF(MICA_U8)), rows[i].ints);
        mica_array *mixed = rows[i].fn(s, OF(MICA_I32), OF(MICA_F16));
        if (rows[i].mixed) MAKES(mixed, rows[i].mixed);
        else HOLDS(!mixed && mica_scope_status(s) == MICA_ERR_DTYPE);
        mica_scope_clear_error(s);
        mica_array *bools = rows[i].fn(s, OF(MICA_BOOL), OF(MICA_BOOL));
        if (strncmp(rows[i].name, "shift_", 6) != 0) MAKES(bools, rows[i].bools);
        else HOLDS(!bools && mica_scope_status(s) == MICA_ERR_DTYPE);
        mica_scope_clear_error(s);
        char text[120];
        snprintf(text, sizeof text, "11: %s: shapes (2, 3) and (4) do not broadcast", rows[i].name);
        FAILS(rows[i].fn(s, I32(2, 3), I32(4)), text);
        snprintf(text, sizeof text, "10: %s: array 1 is NULL", rows[i].name);
        FAILS(rows[i].fn(s, I32(2), NULL), text);
        EXPECT_INT(mica_array_ndim(rows[i].fn(s, I32(4, 1, 3), I32(0, 1))), 3);
    }
    end();
}

TEST(broadcasting)
{
    if (!begin()) return;
    MAKES(mica_add(s, F32(4, 1, 3), F32(0, 1)), "f32(4,0,3)");
    MAKES(mica_add(s, zeros(MICA_F32, 0, NULL), F32(2, 2)), "f32(2,2)");
    MAKES(mica_add(s, F32(1, 1, 1, 1, 1, 1, 1, 2), F32(3, 1)), "f32(1,1,1,1,1,1,3,2)");
    MAKES(mica_fma(s, I32(2, 1), I32(3), zeros(MICA_BF16, 0, NULL)), "bf16(2,3)");
    MAKES(mica_where(s, I32(3, 1), zeros(MICA_I8, 1, LIST(2)), zeros(MICA_F64, 0, NULL)), "f64(3,2)");
    FAILS(mica_where(s, I32(3), F32(2), F32(2)), "11: where: shapes (3) and (2) do not broadcast");
    FAILS(mica_add(s, F32(2, 1099511627776, 1), F32(4194304)),
          "15: broadcast: f32 (2, 1099511627776, 4194304) has too many elements");
    MAKES(mica_clip(s, F32(2), mica_scalar(s, 0), mica_scalar(s, 1)), "f32(2)");
    mica_array *x = F32(2);
    HOLDS(mica_clip(s, x, NULL, NULL) == x);
    FAILS(mica_clip(s, x, mica_cast(s, NULL, MICA_F32), NULL), "10: cast: array 0 is NULL");
    end();
}

TEST(weak_scalars)
{
    if (!begin()) return;
    MAKES(mica_scalar(s, 0.5), "f32()");
    MAKES(mica_add(s, mica_scalar(s, 1), mica_scalar(s, 2)), "f32()");
    MAKES(mica_mul(s, OF(MICA_F16), mica_scalar(s, 0.1)), "f16(2)");
    MAKES(mica_mul(s, OF(MICA_F64), mica_scalar(s, 0.1)), "f64(2)");
    MAKES(mica_mul(s, OF(MICA_U8), mica_scalar(s, 255)), "u8(2)");
    MAKES(mica_mul(s, OF(MICA_U8), mica_scalar(s, 256)), "f32(2)");
    MAKES(mica_mul(s, OF(MICA_U8), mica_scalar(s, -1)), "f32(2)");
    MAKES(mica_mul(s, OF(MICA_I8), mica_scalar(s, -128)), "i8(2)");
    MAKES(mica_mul(s, OF(MICA_I8), mica_scalar(s, 128)), "f32(2)");
    MAKES(mica_mul(s, OF(MICA_I64), mica_scalar(s, 0.5)), "f32(2)");
    MAKES(mica_mul(s, OF(MICA_I64), mica_scalar(s, -0x1p63)), "i64(2)");
    MAKES(mica_mul(s, OF(MICA_I64), mica_scalar(s, 0x1p63)), "f32(2)");
    MAKES(mica_mul(s, OF(MICA_U64), mica_scalar(s, 0x1p63)), "u64(2)");
    MAKES(mica_mul(s, OF(MICA_I32), mica_scalar(s, NAN)), "f32(2)");
    MAKES(mica_mul(s, OF(MICA_BOOL), mica_scalar(s, 1)), "bool(2)");
    MAKES(mica_mul(s, OF(MICA_BOOL), mica_scalar(s, 2)), "f32(2)");
    MAKES(mica_div(s, OF(MICA_I32), mica_scalar(s, 2)), "f32(2)");
    MAKES(mica_shift_left(s, OF(MICA_U32), mica_scalar(s, 3)), "u32(2)");
    MAKES(mica_where(s, OF(MICA_BOOL), OF(MICA_BF16), mica_scalar(s, 0)), "bf16(2)");
    MAKES(mica_cast(s, mica_scalar(s, 3), MICA_I8), "i8()");
    end();
}

/* ----------------------------------------------------------------- creation - */

TEST(creation)
{
    if (!begin()) return;
    const float data[6] = {0};
    MAKES(mica_from_data(s, MICA_F32, 2, LIST(2, 3), data), "f32(2,3)");
    MAKES(mica_from_data(s, MICA_F32, 2, LIST(2, 0), NULL), "f32(2,0)");
    FAILS(mica_from_data(s, MICA_F32, 1, LIST(2), NULL), "10: from_data: data is NULL for 8 bytes");
    FAILS(mica_from_data(s, (mica_dtype)-1, 1, LIST(2), data), "12: from_data: -1 is not a dtype");
    FAILS(mica_zeros(s, MICA_F32, 9, LIST(1, 1, 1, 1, 1, 1, 1, 1, 1)), "11: zeros: 9 axes is out of range (0 to 8)");
    FAILS(mica_zeros(s, MICA_F32, -1, NULL), "11: zeros: -1 axes is out of range (0 to 8)");
    FAILS(mica_zeros(s, MICA_F32, 2, NULL), "10: zeros: shape is NULL with 2 axes");
    FAILS(mica_zeros(s, MICA_F32, 2, LIST(2, -3)), "11: zeros: size -3 of axis 1 is negative");
    FAILS(mica_ones(s, MICA_F64, 2, LIST(INT64_MAX, 2)),
          "15: ones: f64 (9223372036854775807, 2) has too many elements");
    MAKES(mica_full(s, MICA_I8, 1, LIST(4), 3.7), "i8(4)");
    MAKES(mica_full_i64(s, MICA_U64, 0, NULL, -1), "u64()");
    MAKES(mica_eye(s, MICA_F32, 3, 4, INT64_MAX), "f32(3,4)");
    MAKES(mica_tri(s, MICA_BOOL, 0, 4, INT64_MIN), "bool(0,4)");
    FAILS(mica_eye(s, MICA_F32, -1, 4, 0), "11: eye: size -1 of axis 0 is negative");
    HOLDS(mica_zeros(NULL, MICA_F32, 0, NULL) == NULL);
    HOLDS(mica_scalar(NULL, 1) == NULL);
    end();
}

TEST(wrapping_releases_once)
{
    if (!begin()) return;
    float data[6] = {0};
    released = 0;
    MAKES(mica_wrap(s, MICA_F32, 1, LIST(3), LIST(-2), data + 4, count_release, NULL), "f32(3)");
    EXPECT_INT(released, 0);
    FAILS(mica_wrap(s, MICA_F32, 1, LIST(3), NULL, NULL, count_release, NULL), "10: wrap: data of f32 (3) is NULL");
    EXPECT_INT(released, 1);
    FAILS(mica_wrap(s, MICA_F32, 1, LIST(1), NULL, (char *)data + 1, count_release, NULL),
          "10: wrap: data of f32 (1) is not aligned");
    EXPECT_INT(released, 2);
    FAILS(mica_wrap(s, MICA_F32, 1, LIST(3), LIST(INT64_MIN), data, count_release, NULL),
          "15: wrap: the strides of f32 (3) are too large");
    EXPECT_INT(released, 3);
    FAILS(mica_wrap(s, MICA_F32, 12, LIST(3), NULL, data, count_release, NULL),
          "11: wrap: 12 axes is out of range (0 to 8)");
    EXPECT_INT(released, 4);
    HOLDS(mica_wrap(NULL, MICA_F32, 1, LIST(3), NULL, data, count_release, NULL) == NULL);
    EXPECT_INT(released, 5);
    end();
    EXPECT_INT(released, 6);
}

TEST(ranges)
{
    if (!begin()) return;
    MAKES(mica_arange(s, MICA_F32, 0, 1, 0.25), "f32(4)");
    MAKES(mica_arange(s, MICA_F32, 0, 1.01, 0.25), "f32(5)");
    MAKES(mica_arange(s, MICA_F32, 1, 0, 0.25), "f32(0)");
    MAKES(mica_arange(s, MICA_I32, 10, 0, -3), "i32(4)");
    MAKES(mica_arange(s, MICA_I32, 0, 2.5, 1), "i32(3)");
    MAKES(mica_arange(s, MICA_I32, 0, -2.5, -1), "i32(3)");
    MAKES(mica_arange(s, MICA_U8, 0, 256, 1), "u8(256)");
    FAILS(mica_arange(s, MICA_U8, 0, 257, 1), "10: arange: 0 to 256 do not fit u8");
    FAILS(mica_arange(s, MICA_U64, 0, -2, -1), "10: arange: 0 to -1 do not fit u64");
    FAILS(mica_arange(s, MICA_F32, 0, 1, 0), "10: arange: from 0 to 1 by 0: all must be finite and the step not 0");
    FAILS(mica_arange(s, MICA_F32, 0, INFINITY, 1),
          "10: arange: from 0 to inf by 1: all must be finite and the step not 0");
    FAILS(mica_arange(s, MICA_I32, 0.5, 4, 1), "10: arange: from 0.5 to 4 by 1 is not possible with dtype i32");
    FAILS(mica_arange(s, MICA_BOOL, 0, 1, 1), "12: arange: dtype bool is not supported");
    FAILS(mica_arange(s, MICA_F32, 0, 1e300, 1), "15: arange: 1e+300 values are too many");
    FAILS(mica_arange(s, MICA_F64, 0, 4e18, 1), "15: arange: f64 (4000000000000000000) has too many elements");
    MAKES(mica_linspace(s, MICA_F16, -1, 1, 5), "f16(5)");
    MAKES(mica_linspace(s, MICA_I32, 0, 10, 1), "i32(1)");
    MAKES(mica_linspace(s, MICA_F32, 0, 10, 0), "f32(0)");
    FAILS(mica_linspace(s, MICA_F32, 0, 10, -1), "11: linspace: size -1 of axis 0 is negative");
    FAILS(mica_linspace(s, MICA_F32, 0, NAN, 3), "10: linspace: from 0 to nan: both must be finite");
    FAILS(mica_linspace(s, (mica_dtype)99, 0, 1, 3), "12: linspace: 99 is not a dtype");
    end();
}

TEST(random_arrays)
{
    if (!begin()) return;
    HOLDS(mica_seed_split(7, 0) != mica_seed_split(7, 1));
    HOLDS(mica_seed_split(7, 0) != mica_seed_split(8, 0));
    HOLDS(mica_seed_split(1, 2) != mica_seed_split(2, 1));
    MAKES(mica_random_bits(s, MICA_U64, SHAPE(2, 3), 1), "u64(2,3)");
    FAILS(mica_random_bits(s, MICA_I32, SHAPE(2), 1), "12: random_bits: dtype i32; it must be u32 or u64");
    MAKES(mica_random_uniform(s, MICA_F16, SHAPE(2), -1, 1, 1), "f16(2)");
    FAILS(mica_random_uniform(s, MICA_F32, SHAPE(2), 1, 0, 1),
          "10: random_uniform: from 1 to 0: both must be finite and in ascending order");
    FAILS(mica_random_uniform(s, MICA_I32, SHAPE(2), 0, 1, 1), "12: random_uniform: dtype i32; it must be a float");
    MAKES(mica_random_normal(s, MICA_BF16, 0, NULL, 1), "bf16()");
    MAKES(mica_random_truncated_normal(s, MICA_F32, SHAPE(2), -2, 2, 1), "f32(2)");
    FAILS(mica_random_truncated_normal(s, MICA_F32, SHAPE(2), 2, 2, 1),
          "10: random_truncated_normal: low 2 must be less than high 2");
    MAKES(mica_random_bernoulli(s, SHAPE(4), 0.5, 1), "bool(4)");
    FAILS(mica_random_bernoulli(s, SHAPE(4), 1.5, 1), "10: random_bernoulli: probability 1.5 is out of range (0 to 1)");
    MAKES(mica_random_randint(s, MICA_U8, SHAPE(4), 0, 256, 1), "u8(4)");
    MAKES(mica_random_randint(s, MICA_I64, SHAPE(4), INT64_MIN, INT64_MAX, 1), "i64(4)");
    FAILS(mica_random_randint(s, MICA_I8, SHAPE(4), 5, 5, 1), "10: random_randint: [5, 5) is empty or does not fit i8");
    FAILS(mica_random_randint(s, MICA_I8, SHAPE(4), -129, 5, 1),
          "10: random_randint: [-129, 5) is empty or does not fit i8");
    FAILS(mica_random_randint(s, MICA_F32, SHAPE(4), 0, 5, 1), "12: random_randint: dtype f32; it must be an integer");
    MAKES(mica_random_categorical(s, F32(2, 5), 1), "i64(2)");
    FAILS(mica_random_categorical(s, zeros(MICA_F32, 0, NULL), 1), "11: random_categorical: logits have no axes");
    MAKES(mica_random_permutation(s, 6, 1), "i64(6)");
    FAILS(mica_random_permutation(s, -6, 1), "11: random_permutation: size -6 of axis 0 is negative");
    end();
}

/* -------------------------------------------------------------------- views - */

TEST(reshaping)
{
    if (!begin()) return;
    mica_array *x = F32(2, 3, 4);
    MAKES(mica_reshape(s, x, 2, LIST(6, 4)), "f32(6,4)");
    MAKES(mica_reshape(s, x, 3, LIST(4, -1, 2)), "f32(4,3,2)");
    MAKES(mica_reshape(s, F32(1), 0, NULL), "f32()");
    MAKES(mica_reshape(s, F32(0, 3), 2, LIST(-1, 3)), "f32(0,3)");
    HOLDS(mica_reshape(s, x, 3, LIST(2, 3, 4)) == x);
    FAILS(mica_reshape(s, x, 2, LIST(5, 5)), "11: reshape: shape (2, 3, 4) cannot become (5, 5)");
    FAILS(mica_reshape(s, x, 2, LIST(-1, -1)), "11: reshape: more than one size is -1 in (-1, -1)");
    FAILS(mica_reshape(s, x, 2, LIST(-1, 5)), "11: reshape: shape (2, 3, 4) cannot become (-1, 5)");
    FAILS(mica_reshape(s, F32(0), 2, LIST(-1, 0)), "11: reshape: shape (0) cannot become (-1, 0)");
    FAILS(mica_reshape(s, x, 2, LIST(-2, 12)), "11: reshape: size -2 of axis 0 is negative");
    FAILS(mica_reshape(s, x, 2, NULL), "10: reshape: shape is NULL with 2 axes");
    FAILS(mica_reshape(s, x, 1000000, LIST(1)), "11: reshape: 1000000 axes is out of range (0 to 8)");
    MAKES(mica_flatten(s, x), "f32(24)");
    MAKES(mica_expand_dims(s, x, -1), "f32(2,3,4,1)");
    MAKES(mica_expand_dims(s, x, 1), "f32(2,1,3,4)");
    FAILS(mica_expand_dims(s, x, 4), "10: expand_dims: axis 4 is out of range for an array with 4 axes");
    FAILS(mica_expand_dims(s, F32(1, 1, 1, 1, 1, 1, 1, 1), 0), "11: expand_dims: 9 axes is out of range (0 to 8)");
    MAKES(mica_squeeze(s, F32(2, 1, 3), 1), "f32(2,3)");
    FAILS(mica_squeeze(s, x, -1), "11: squeeze: axis 2 has size 4 instead of 1");
    MAKES(mica_permute(s, x, (int[]){2, 0, -2}), "f32(4,2,3)");
    HOLDS(mica_permute(s, x, (int[]){0, 1, 2}) == x);
    FAILS(mica_permute(s, x, (int[]){0, 1, 1}), "10: permute: axis 1 is repeated (3 axes)");
    FAILS(mica_permute(s, x, (int[]){0, 1, 3}), "10: permute: axis 3 is out of range for an array with 3 axes");
    FAILS(mica_permute(s, x, NULL), "10: permute: axes is NULL");
    MAKES(mica_transpose(s, x), "f32(2,4,3)");
    FAILS(mica_transpose(s, F32(3)), "11: transpose: x has 1 axes instead of 2 or more");
    MAKES(mica_broadcast_to(s, F32(3, 1), 3, LIST(2, 3, 4)), "f32(2,3,4)");
    FAILS(mica_broadcast_to(s, F32(3), 2, LIST(3, 2)), "11: broadcast: shape (3) cannot become (3, 2)");
    FAILS(mica_broadcast_to(s, F32(3, 1), 1, LIST(3)), "11: broadcast: shape (3, 1) cannot become (3)");
    end();
}

TEST(slicing)
{
    /* Python: len(range(10)[start:stop:step]); A is None. */
    enum { A = -1000 };
    static const struct {
        int64_t start, stop, step, size;
    } rows[] = {{A, A, 1, 10}, {2, 5, 1, 3},     {5, 2, 1, 0},     {-3, A, 1, 3},  {A, -3, 1, 7},  {-99, 99, 1, 10},
                {0, 10, 3, 4}, {1, 10, 3, 3},    {A, A, -1, 10},   {8, 2, -2, 3},  {2, 8, -2, 0},  {A, 5, -1, 4},
                {5, A, -1, 6}, {99, -99, -4, 3}, {-1, -11, -9, 2}, {10, 11, 1, 0}, {9, 10, 50, 1}, {3, 4, A, 1}};
    if (!begin()) return;
    mica_array *x = F32(10, 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int64_t start = rows[i].start == A ? MICA_AUTO : rows[i].start;
        const int64_t stop = rows[i].stop == A ? MICA_AUTO : rows[i].stop;
        const int64_t step = rows[i].step == A ? MICA_AUTO : rows[i].step;
        char text[40];
        snprintf(text, sizeof text, "f32(%d,2)", (int)rows[i].size);
        MAKES(mica_slice_axis(s, x, 0, start, stop, step), text);
    }
    MAKES(mica_slice(s, x, LIST(1, 0), LIST(MICA_AUTO, 1), NULL), "f32(9,1)");
    HOLDS(mica_slice(s, x, LIST(0, 0), LIST(10, 2), NULL) == x);
    MAKES(mica_slice(s, x, LIST(0, 0), LIST(10, 2), LIST(INT64_MAX, -INT64_MAX)), "f32(1,0)");
    FAILS(mica_slice(s, x, LIST(0, 0), LIST(10, 2), LIST(1, 0)), "10: slice: the step of axis 1 is 0");
    FAILS(mica_slice(s, x, NULL, LIST(10, 2), NULL), "10: slice: start is NULL");
    FAILS(mica_slice_axis(s, x, 2, 0, 1, 1), "10: slice: axis 2 is out of range for an array with 2 axes");
    MAKES(mica_flip(s, x, -1), "f32(10,2)");
    FAILS(mica_flip(s, zeros(MICA_F32, 0, NULL), 0), "10: flip: axis 0 is out of range for an array with 0 axes");
    mica_array *one = F32(1, 3);
    HOLDS(mica_flip(s, one, 0) == one);
    end();
}

/* --------------------------------------------------------------- reductions - */

TEST(reductions)
{
    if (!begin()) return;
    mica_array *x = F32(2, 3, 4);
    MAKES(mica_sum(s, x, ALL, false), "f32()");
    MAKES(mica_sum(s, x, ALL, true), "f32(1,1,1)");
    MAKES(mica_sum(s, x, AXES(-1, 0), false), "f32(3)");
    MAKES(mica_sum(s, x, AXES(1), true), "f32(2,1,4)");
    HOLDS(mica_sum(s, x, (int[]){0}, 0, false) == x);
    MAKES(mica_sum(s, OF(MICA_I8), ALL, false), "i64()");
    MAKES(mica_sum(s, OF(MICA_BOOL), ALL, false), "i64()");
    MAKES(mica_prod(s, OF(MICA_U8), ALL, false), "u64()");
    MAKES(mica_sum(s, OF(MICA_F16), ALL, false), "f16()");
    MAKES(mica_max(s, OF(MICA_I8), ALL, false), "i8()");
    MAKES(mica_min(s, OF(MICA_BOOL), ALL, true), "bool(1)");
    MAKES(mica_any(s, x, AXES(0), false), "bool(3,4)");
    MAKES(mica_all(s, OF(MICA_BOOL), ALL, false), "bool()");
    MAKES(mica_mean(s, OF(MICA_I32), ALL, false), "f32()");
    MAKES(mica_mean(s, OF(MICA_BF16), ALL, false), "bf16()");
    MAKES(mica_var(s, x, AXES(2), 1, true), "f32(2,3,1)");
    MAKES(mica_std(s, OF(MICA_F64), ALL, 0, false), "f64()");
    FAILS(mica_sum(s, x, AXES(1, -2), false), "10: sum: axis 1 is repeated");
    FAILS(mica_mean(s, x, AXES(3), false), "10: mean: axis 3 is out of range for an array with 3 axes");
    FAILS(mica_var(s, x, NULL, 2, 0, false), "10: var: n_axes is 2, but axes is NULL");
    FAILS(mica_any(s, x, (int[]){0}, -1, false), "10: any: n_axes is -1");
    test_case("norms");
    const double orders[] = {0, 1, 2, 3, -1, 0.5, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        MAKES(mica_norm(s, x, orders[i], AXES(1), false), "f32(2,4)");
        MAKES(mica_norm(s, OF(MICA_F16), orders[i], ALL, false), "f16()");
        MAKES(mica_norm(s, OF(MICA_F64), orders[i], ALL, true), "f64(1)");
    }
    FAILS(mica_norm(s, x, NAN, ALL, false), "10: norm: order is NaN");
    MAKES(mica_logsumexp(s, x, AXES(0, 2), false), "f32(3)");
    MAKES(mica_logsumexp(s, x, AXES(0, 2), true), "f32(1,3,1)");
    MAKES(mica_logsumexp(s, OF(MICA_I8), ALL, false), "f32()");
    test_case("empty");
    MAKES(mica_sum(s, F32(0, 3), AXES(0), false), "f32(3)");
    MAKES(mica_mean(s, F32(0), ALL, false), "f32()");
    MAKES(mica_all(s, F32(0), ALL, false), "bool()");
    MAKES(mica_max(s, F32(0, 3), AXES(1), false), "f32(0)");
    FAILS(mica_max(s, F32(2, 0), AXES(1), false), "11: max: no elements to choose from in shape (2, 0)");
    FAILS(mica_argmin(s, F32(2, 0), 1, false), "11: argmin: no elements to choose from in shape (2, 0)");
    MAKES(mica_argmax(s, F32(0, 3), 1, false), "i64(0)");
    test_case("over one axis");
    MAKES(mica_argmax(s, x, 1, false), "i64(2,4)");
    MAKES(mica_argmin(s, x, 0, true), "i64(1,3,4)");
    FAILS(mica_argmax(s, x, 3, false), "10: argmax: axis 3 is out of range for an array with 3 axes");
    MAKES(mica_cumsum(s, x, 0), "f32(2,3,4)");
    MAKES(mica_cumsum(s, OF(MICA_BOOL), 0), "i64(2)");
    MAKES(mica_cumprod(s, OF(MICA_U16), 0), "u64(2)");
    MAKES(mica_cummax(s, zeros(MICA_I8, 2, LIST(2, 3)), -2), "i8(2,3)");
    FAILS(mica_cumsum(s, zeros(MICA_F32, 0, NULL), 0), "10: cumsum: axis 0 is out of range for an array with 0 axes");
    end();
}
