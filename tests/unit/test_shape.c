/* Every constructor without a device: dtype and shape of the result, or the
 * status and the sentence of the failure. Nothing is evaluated here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mica.h"
#include "test.h"

/* ---------------------------------------------------------------- harness --- */

static mica_engine *engine;
static mica_scope *s;
static char described[400];

static const char *describe(const mica_array *x)
{
    if (!x) {
        snprintf(described, sizeof described, "NULL: %s", mica_scope_error(s));
        return described;
    }
    int at = snprintf(described, sizeof described, "%s(", mica_dtype_name(mica_array_dtype(x)));
    for (int d = 0; d < mica_array_ndim(x); d++)
        at += snprintf(described + at, sizeof described - (size_t)at, d ? ",%lld" : "%lld",
                       (long long)mica_array_shape(x)[d]);
    snprintf(described + at, sizeof described - (size_t)at, ")");
    return described;
}

static bool begin(void)
{
    return EXPECT(mica_open(NULL, &engine) == MICA_OK) && EXPECT((s = mica_scope_begin(engine)) != NULL);
}

static void end(void)
{
    mica_scope_end(s);
    mica_close(engine);
}

/* EXPECT as a statement. */
#define HOLDS(condition) ((void)EXPECT(condition))

/* The expression makes such an array. */
#define MAKES(expression, text) EXPECT_STR(describe(expression), text)

static mica_status fails_status;
static char fails_text[600];

/* The expression fails with "status: sentence", and the scope goes on after it. */
static const char *failure(const void *result)
{
    fails_status = mica_scope_status(s);
    snprintf(fails_text, sizeof fails_text, "%s%d: %s", result ? "not NULL, " : "", (int)fails_status,
             mica_scope_error(s));
    mica_scope_clear_error(s);
    return fails_text;
}
#define FAILS(expression, text) EXPECT_STR(failure(expression), text)

#define SHAPE(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
#define LIST(...) (int64_t[]){__VA_ARGS__}
#define AXES(...) (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define ALL NULL, 0

static mica_array *zeros(mica_dtype dtype, int ndim, const int64_t *shape) { return mica_zeros(s, dtype, ndim, shape); }
#define F32(...) zeros(MICA_F32, SHAPE(__VA_ARGS__))
#define I32(...) zeros(MICA_I32, SHAPE(__VA_ARGS__))
#define OF(dtype) zeros(dtype, 1, LIST(2))

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
        SAME(neg), SAME(abs), SAME(sign), SAME(square), SAME(relu), SAME(relu2), SAME(floor), SAME(ceil), SAME(round),
        SAME(contiguous), SAME(stop_gradient), FLOATING(exp), FLOATING(expm1), FLOATING(log), FLOATING(log1p),
        FLOATING(log2), FLOATING(sqrt), FLOATING(rsqrt), FLOATING(reciprocal), FLOATING(sin), FLOATING(cos),
        FLOATING(tan), FLOATING(asin), FLOATING(acos), FLOATING(atan), FLOATING(sinh), FLOATING(cosh), FLOATING(tanh),
        FLOATING(erf), FLOATING(erfinv), FLOATING(sigmoid), FLOATING(gelu), FLOATING(gelu_tanh), FLOATING(silu),
        FLOATING(softplus), FLOATING(lecun_tanh), TO_BOOL(isnan), TO_BOOL(isinf), TO_BOOL(isfinite),
        TO_BOOL(logical_not),
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
    FAILS(mica_bitwise_not(s, OF(MICA_F32)), "12: bitwise_not: dtype f32, it takes bool and integers");
    MAKES(mica_cast(s, OF(MICA_F32), MICA_U8), "u8(2)");
    FAILS(mica_cast(s, OF(MICA_F32), (mica_dtype)77), "12: cast: 77 is no dtype");
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
        PROMOTE(add), PROMOTE(sub), PROMOTE(mul), PROMOTE(floor_div), PROMOTE(mod), PROMOTE(pow), PROMOTE(minimum),
        PROMOTE(maximum), DIVIDE(div), DIVIDE(atan2), DIVIDE(hypot), COMPARE(equal), COMPARE(not_equal), COMPARE(less),
        COMPARE(less_equal), COMPARE(greater), COMPARE(greater_equal), COMPARE(logical_and), COMPARE(logical_or),
        COMPARE(logical_xor), INTEGER(bitwise_and, "bool(2)"), INTEGER(bitwise_or, "bool(2)"),
        INTEGER(bitwise_xor, "bool(2)"), INTEGER(shift_left, NULL), INTEGER(shift_right, NULL),
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
        if (rows[i].bools) MAKES(bools, rows[i].bools);
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

static int released;
static void count_release(void *data, void *user)
{
    (void)data, (void)user;
    released++;
}

TEST(creation)
{
    if (!begin()) return;
    const float data[6] = {0};
    MAKES(mica_from_data(s, MICA_F32, 2, LIST(2, 3), data), "f32(2,3)");
    MAKES(mica_from_data(s, MICA_F32, 2, LIST(2, 0), NULL), "f32(2,0)");
    FAILS(mica_from_data(s, MICA_F32, 1, LIST(2), NULL), "10: from_data: data is NULL for 8 bytes");
    FAILS(mica_from_data(s, (mica_dtype)-1, 1, LIST(2), data), "12: from_data: -1 is no dtype");
    FAILS(mica_zeros(s, MICA_F32, 9, LIST(1, 1, 1, 1, 1, 1, 1, 1, 1)), "11: full: 9 axes, possible are 0 to 8");
    FAILS(mica_zeros(s, MICA_F32, -1, NULL), "11: full: -1 axes, possible are 0 to 8");
    FAILS(mica_zeros(s, MICA_F32, 2, NULL), "10: full: shape is NULL with 2 axes");
    FAILS(mica_zeros(s, MICA_F32, 2, LIST(2, -3)), "11: full: size -3 of axis 1");
    FAILS(mica_ones(s, MICA_F64, 2, LIST(INT64_MAX, 2)), "15: full: f64 (9223372036854775807, 2) has too many elements");
    MAKES(mica_full(s, MICA_I8, 1, LIST(4), 3.7), "i8(4)");
    MAKES(mica_full_i64(s, MICA_U64, 0, NULL, -1), "u64()");
    MAKES(mica_eye(s, MICA_F32, 3, 4, INT64_MAX), "f32(3,4)");
    MAKES(mica_tri(s, MICA_BOOL, 0, 4, INT64_MIN), "bool(0,4)");
    FAILS(mica_eye(s, MICA_F32, -1, 4, 0), "11: eye: size -1 of axis 0");
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
          "15: wrap: strides of f32 (3) reach too far");
    EXPECT_INT(released, 3);
    FAILS(mica_wrap(s, MICA_F32, 12, LIST(3), NULL, data, count_release, NULL), "11: wrap: 12 axes, possible are 0 to 8");
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
    FAILS(mica_arange(s, MICA_F32, 0, 1, 0), "10: arange: from 0 to 1 by 0");
    FAILS(mica_arange(s, MICA_F32, 0, INFINITY, 1), "10: arange: from 0 to inf by 1");
    FAILS(mica_arange(s, MICA_I32, 0.5, 4, 1), "10: arange: from 0.5 to 4 by 1 with dtype i32");
    FAILS(mica_arange(s, MICA_BOOL, 0, 1, 1), "12: arange: dtype bool");
    FAILS(mica_arange(s, MICA_F32, 0, 1e300, 1), "15: arange: 1e+300 values");
    FAILS(mica_arange(s, MICA_F64, 0, 4e18, 1), "15: arange: f64 (4000000000000000000) has too many elements");
    MAKES(mica_linspace(s, MICA_F16, -1, 1, 5), "f16(5)");
    MAKES(mica_linspace(s, MICA_I32, 0, 10, 1), "i32(1)");
    MAKES(mica_linspace(s, MICA_F32, 0, 10, 0), "f32(0)");
    FAILS(mica_linspace(s, MICA_F32, 0, 10, -1), "11: linspace: size -1 of axis 0");
    FAILS(mica_linspace(s, MICA_F32, 0, NAN, 3), "10: linspace: from 0 to nan");
    FAILS(mica_linspace(s, (mica_dtype)99, 0, 1, 3), "12: linspace: 99 is no dtype");
    end();
}

TEST(random_arrays)
{
    if (!begin()) return;
    HOLDS(mica_seed_split(7, 0) != mica_seed_split(7, 1));
    HOLDS(mica_seed_split(7, 0) != mica_seed_split(8, 0));
    HOLDS(mica_seed_split(1, 2) != mica_seed_split(2, 1));
    MAKES(mica_random_bits(s, MICA_U64, SHAPE(2, 3), 1), "u64(2,3)");
    FAILS(mica_random_bits(s, MICA_I32, SHAPE(2), 1), "12: random_bits: dtype i32, it makes u32 and u64");
    MAKES(mica_random_uniform(s, MICA_F16, SHAPE(2), -1, 1, 1), "f16(2)");
    FAILS(mica_random_uniform(s, MICA_F32, SHAPE(2), 1, 0, 1), "10: random_uniform: from 1 to 0");
    FAILS(mica_random_uniform(s, MICA_I32, SHAPE(2), 0, 1, 1), "12: random_uniform: dtype i32, it makes floats");
    MAKES(mica_random_normal(s, MICA_BF16, 0, NULL, 1), "bf16()");
    MAKES(mica_random_truncated_normal(s, MICA_F32, SHAPE(2), -2, 2, 1), "f32(2)");
    FAILS(mica_random_truncated_normal(s, MICA_F32, SHAPE(2), 2, 2, 1), "10: random_truncated_normal: from 2 to 2");
    MAKES(mica_random_bernoulli(s, SHAPE(4), 0.5, 1), "bool(4)");
    FAILS(mica_random_bernoulli(s, SHAPE(4), 1.5, 1), "10: random_bernoulli: probability 1.5");
    MAKES(mica_random_randint(s, MICA_U8, SHAPE(4), 0, 256, 1), "u8(4)");
    MAKES(mica_random_randint(s, MICA_I64, SHAPE(4), INT64_MIN, INT64_MAX, 1), "i64(4)");
    FAILS(mica_random_randint(s, MICA_I8, SHAPE(4), 5, 5, 1), "10: random_randint: [5, 5) with dtype i8");
    FAILS(mica_random_randint(s, MICA_I8, SHAPE(4), -129, 5, 1), "10: random_randint: [-129, 5) with dtype i8");
    FAILS(mica_random_randint(s, MICA_F32, SHAPE(4), 0, 5, 1), "12: random_randint: dtype f32, it makes integers");
    MAKES(mica_random_categorical(s, F32(2, 5), 1), "i64(2)");
    FAILS(mica_random_categorical(s, zeros(MICA_F32, 0, NULL), 1), "11: random_categorical: logits have no axes");
    MAKES(mica_random_permutation(s, 6, 1), "i64(6)");
    FAILS(mica_random_permutation(s, -6, 1), "11: random_permutation: size -6 of axis 0");
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
    FAILS(mica_reshape(s, x, 2, LIST(5, 5)), "11: reshape: shape (2, 3, 4) to (5, 5)");
    FAILS(mica_reshape(s, x, 2, LIST(-1, -1)), "11: reshape: more than one size is -1 in (-1, -1)");
    FAILS(mica_reshape(s, x, 2, LIST(-1, 5)), "11: reshape: shape (2, 3, 4) to (-1, 5)");
    FAILS(mica_reshape(s, F32(0), 2, LIST(-1, 0)), "11: reshape: shape (0) to (-1, 0)");
    FAILS(mica_reshape(s, x, 2, LIST(-2, 12)), "11: reshape: size -2 of axis 0");
    FAILS(mica_reshape(s, x, 2, NULL), "10: reshape: shape is NULL with 2 axes");
    FAILS(mica_reshape(s, x, 1000000, LIST(1)), "11: reshape: 1000000 axes, possible are 0 to 8");
    MAKES(mica_flatten(s, x), "f32(24)");
    MAKES(mica_expand_dims(s, x, -1), "f32(2,3,4,1)");
    MAKES(mica_expand_dims(s, x, 1), "f32(2,1,3,4)");
    FAILS(mica_expand_dims(s, x, 4), "10: expand_dims: axis 4 of an array with 4 axes");
    FAILS(mica_expand_dims(s, F32(1, 1, 1, 1, 1, 1, 1, 1), 0), "11: expand_dims: 9 axes, possible are 0 to 8");
    MAKES(mica_squeeze(s, F32(2, 1, 3), 1), "f32(2,3)");
    FAILS(mica_squeeze(s, x, -1), "11: squeeze: axis 2 has size 4");
    MAKES(mica_permute(s, x, (int[]){2, 0, -2}), "f32(4,2,3)");
    HOLDS(mica_permute(s, x, (int[]){0, 1, 2}) == x);
    FAILS(mica_permute(s, x, (int[]){0, 1, 1}), "10: permute: axis 1 is named twice of 3");
    FAILS(mica_permute(s, x, (int[]){0, 1, 3}), "10: permute: axis 3 of an array with 3 axes");
    FAILS(mica_permute(s, x, NULL), "10: permute: axes is NULL");
    MAKES(mica_transpose(s, x), "f32(2,4,3)");
    FAILS(mica_transpose(s, F32(3)), "11: transpose: an array with 1 axes");
    MAKES(mica_broadcast_to(s, F32(3, 1), 3, LIST(2, 3, 4)), "f32(2,3,4)");
    FAILS(mica_broadcast_to(s, F32(3), 2, LIST(3, 2)), "11: broadcast: shape (3) to (3, 2)");
    FAILS(mica_broadcast_to(s, F32(3, 1), 1, LIST(3)), "11: broadcast: shape (3, 1) to (3)");
    end();
}

TEST(slicing)
{
    /* Python: len(range(10)[start:stop:step]); A is None. */
    enum { A = -1000 };
    static const struct {
        int64_t start, stop, step, size;
    } rows[] = {{A, A, 1, 10},    {2, 5, 1, 3},     {5, 2, 1, 0},     {-3, A, 1, 3},   {A, -3, 1, 7},  {-99, 99, 1, 10},
                {0, 10, 3, 4},    {1, 10, 3, 3},    {A, A, -1, 10},   {8, 2, -2, 3},   {2, 8, -2, 0},  {A, 5, -1, 4},
                {5, A, -1, 6},    {99, -99, -4, 3}, {-1, -11, -9, 2}, {10, 11, 1, 0},  {9, 10, 50, 1}, {3, 4, A, 1}};
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
    FAILS(mica_slice(s, x, LIST(0, 0), LIST(10, 2), LIST(1, 0)), "10: slice: step 0 of axis 1");
    FAILS(mica_slice(s, x, NULL, LIST(10, 2), NULL), "10: slice: start is NULL");
    FAILS(mica_slice_axis(s, x, 2, 0, 1, 1), "10: slice: axis 2 of an array with 2 axes");
    MAKES(mica_flip(s, x, -1), "f32(10,2)");
    FAILS(mica_flip(s, zeros(MICA_F32, 0, NULL), 0), "10: flip: axis 0 of an array with 0 axes");
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
    FAILS(mica_sum(s, x, AXES(1, -2), false), "10: sum: axis 1 is named twice");
    FAILS(mica_mean(s, x, AXES(3), false), "10: mean: axis 3 of an array with 3 axes");
    FAILS(mica_var(s, x, NULL, 2, 0, false), "10: var: 2 axes at NULL");
    FAILS(mica_any(s, x, (int[]){0}, -1, false), "10: any: -1 axes");
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
    FAILS(mica_argmax(s, x, 3, false), "10: argmax: axis 3 of an array with 3 axes");
    MAKES(mica_cumsum(s, x, 0), "f32(2,3,4)");
    MAKES(mica_cumsum(s, OF(MICA_BOOL), 0), "i64(2)");
    MAKES(mica_cumprod(s, OF(MICA_U16), 0), "u64(2)");
    MAKES(mica_cummax(s, zeros(MICA_I8, 2, LIST(2, 3)), -2), "i8(2,3)");
    FAILS(mica_cumsum(s, zeros(MICA_F32, 0, NULL), 0), "10: cumsum: axis 0 of an array with 0 axes");
    end();
}

/* ---------------------------------------------------------- neural networks - */

TEST(softmax_and_norms)
{
    if (!begin()) return;
    MAKES(mica_softmax(s, F32(2, 3), 0), "f32(2,3)");
    MAKES(mica_log_softmax(s, OF(MICA_I8), -1), "f32(2)");
    FAILS(mica_softmax(s, F32(2, 3), 2), "10: softmax: axis 2 of an array with 2 axes");
    mica_array *x = F32(4, 3), *w = F32(3), *bad = F32(2);
    MAKES(mica_layer_norm(s, x, w, w, 1e-5), "f32(4,3)");
    MAKES(mica_layer_norm(s, x, NULL, w, 1e-5), "f32(4,3)");
    MAKES(mica_rms_norm(s, zeros(MICA_F16, 2, LIST(4, 3)), NULL, 0), "f16(4,3)");
    MAKES(mica_rms_norm(s, zeros(MICA_F16, 2, LIST(4, 3)), w, 0), "f32(4,3)");
    FAILS(mica_layer_norm(s, x, bad, NULL, 1e-5), "11: layer_norm: weight has shape (2), the last axis has 3");
    FAILS(mica_layer_norm(s, x, w, F32(1, 3), 1e-5), "11: layer_norm: bias has shape (1, 3), the last axis has 3");
    FAILS(mica_rms_norm(s, x, w, -1), "10: rms_norm: eps is -1");
    FAILS(mica_rms_norm(s, zeros(MICA_F32, 0, NULL), NULL, 0), "11: rms_norm: an array without axes");
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
    FAILS(mica_matmul(s, F32(2, 4096), F32(4095, 2)), "11: matmul: inner sizes 4096 and 4095");
    FAILS(mica_matmul(s, F32(2), F32(3)), "11: matmul: inner sizes 2 and 3");
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
    FAILS(mica_conv1d(s, x, F32(6, 3, 3), NULL), "11: conv: channels in a group 4 and 3");
    FAILS(mica_conv1d(s, x, F32(6, 4, 11), NULL),
          "11: conv: kernel of 11 (dilation 1) does not fit size 10 padded by 0 and 0");
    FAILS(mica_conv1d(s, x, F32(6, 4, 0), NULL),
          "11: conv: kernel of 0 (dilation 1) does not fit size 10 padded by 0 and 0");
    o.groups = 3;
    FAILS(mica_conv2d(s, x2, w2, &o), "11: conv: 3 groups do not divide 4 channels and 6 outputs");
    o.groups = 0;
    FAILS(mica_conv2d(s, x2, w2, &o), "10: conv2d: groups is 0");
    mica_conv_options_init(&o);
    o.stride[1] = 0;
    FAILS(mica_conv2d(s, x2, F32(6, 4, 3, 3), &o), "10: conv2d: stride is 0");
    MAKES(mica_conv1d(s, x, w, &o), "f32(2,6,8)");
    o.struct_size = 0;
    FAILS(mica_conv1d(s, x, w, &o), "10: conv1d: options have struct_size 0; fill them in with their init function");
    test_case("transposed");
    mica_conv_options_init(&o);
    MAKES(mica_conv_transpose1d(s, x, F32(4, 6, 3), NULL), "f32(2,6,12)");
    o.stride[0] = o.stride[1] = 2, o.padding[0] = 1, o.output_padding[0] = 1, o.groups = 2;
    MAKES(mica_conv_transpose2d(s, x2, F32(4, 3, 3, 5), &o), "f32(2,6,20,19)");
    FAILS(mica_conv_transpose1d(s, x, w, NULL), "11: conv_transpose1d: channels of x and w: 4 and 6");
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
    FAILS(mica_avg_pool1d(s, x, &o), "10: avg_pool1d: kernel is 0");
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
    FAILS(mica_rope(s, F32(5, 7), NULL, NULL), "11: rope: 7 rotated dims of 7; an even number is needed");
    r.dims = 10;
    FAILS(mica_rope(s, x, NULL, &r), "11: rope: 10 rotated dims of 8; an even number is needed");
    r.dims = 4, r.base = 0;
    FAILS(mica_rope(s, x, NULL, &r), "10: rope: base 0, scale 1");
    FAILS(mica_rope(s, F32(8), NULL, NULL), "11: rope: x has 1 axes");
    test_case("attention");
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = true;
    mica_array *q = F32(2, 6, 5, 8), *k = F32(2, 3, 4, 8), *v = F32(2, 3, 4, 7);
    MAKES(mica_attention(s, q, k, v, NULL, NULL), "f32(2,6,5,7)");
    MAKES(mica_attention(s, q, k, v, zeros(MICA_BOOL, 2, LIST(5, 4)), &o), "f32(2,6,5,7)");
    MAKES(mica_attention(s, q, k, v, zeros(MICA_F64, 3, LIST(6, 1, 4)), &o), "f32(2,6,5,7)");
    MAKES(mica_attention(s, q, F32(2, 3, 0, 8), F32(2, 3, 0, 7), NULL, &o), "f32(2,6,5,7)");
    FAILS(mica_attention(s, q, k, v, F32(5, 5), NULL), "11: attention: shapes (2, 6, 5, 4) and (5, 5) do not broadcast");
    FAILS(mica_attention(s, F32(2, 6, 1, 8), k, v, F32(5, 4), NULL),
          "11: attention: mask of shape (5, 4) does not broadcast to (2, 6, 1, 4)");
    FAILS(mica_attention(s, F32(2, 6, 5), k, v, NULL, NULL), "11: attention: q has shape (2, 6, 5) instead of 4 axes");
    FAILS(mica_attention(s, F32(2, 4, 5, 8), k, v, NULL, NULL),
          "11: attention: 4 heads are no multiple of 3 key heads");
    FAILS(mica_attention(s, q, F32(2, 3, 4, 9), v, NULL, NULL), "11: attention: dims of q and k: 8 and 9");
    FAILS(mica_attention(s, q, F32(2, 3, 5, 8), v, NULL, NULL), "11: attention: keys of k and v: 5 and 4");
    FAILS(mica_attention(s, q, F32(1, 3, 4, 8), v, NULL, NULL), "11: attention: batch sizes of q and k: 2 and 1");
    o.scale = NAN;
    FAILS(mica_attention(s, q, k, v, NULL, &o), "10: attention: scale is nan");
    test_case("cross entropy");
    MAKES(mica_cross_entropy(s, F32(2, 3, 5), I32(2, 3)), "f32(2,3)");
    MAKES(mica_cross_entropy(s, zeros(MICA_BF16, 1, LIST(5)), zeros(MICA_U8, 0, NULL)), "bf16()");
    FAILS(mica_cross_entropy(s, F32(2, 5), I32(5)), "11: cross_entropy: logits of shape (2, 5) and labels of shape (5)");
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
    FAILS(mica_concat(s, (mica_array *[]){a, b}, 2, 0), "11: concat: f32 (2, 3) and f32 (2, 1) along axis 0");
    FAILS(mica_concat(s, (mica_array *[]){a, F32(2)}, 2, 0), "11: concat: arrays with 2 and 1 axes");
    FAILS(mica_concat(s, NULL, 2, 0), "10: concat: 2 arrays at NULL");
    FAILS(mica_concat(s, &a, 0, 0), "10: concat: 0 arrays");
    FAILS(mica_concat(s, (mica_array *[]){a, NULL}, 2, 0), "10: concat: array 1 is NULL");
    FAILS(mica_concat(s, (mica_array *[]){a, a}, 2, 2), "10: concat: axis 2 of an array with 2 axes");
    MAKES(mica_stack(s, (mica_array *[]){a, a}, 2, -1), "f32(2,3,2)");
    MAKES(mica_stack(s, (mica_array *[]){mica_scalar(s, 1), zeros(MICA_I32, 0, NULL)}, 2, 0), "i32(2)");
    FAILS(mica_stack(s, (mica_array *[]){a, b}, 2, 0), "11: concat: f32 (1, 2, 3) and f32 (1, 2, 1) along axis 0");
    EXPECT_INT(mica_split(s, a, 1, LIST(1, 0, 2), 3, out), MICA_OK);
    MAKES(out[1], "f32(2,0)");
    MAKES(out[2], "f32(2,2)");
    EXPECT_INT(mica_split(s, a, 1, LIST(1, 1), 2, out), MICA_ERR_SHAPE);
    FAILS(out[0], "11: split: parts of 2 together, axis 1 has 3");
    EXPECT_INT(mica_split(s, a, 1, LIST(4, -1), 2, out), MICA_ERR_SHAPE);
    FAILS(out[0], "11: split: part 1 has size -1");
    EXPECT_INT(mica_split(NULL, a, 1, LIST(3), 1, out), MICA_ERR_ARGUMENT);
    MAKES(mica_pad(s, a, LIST(1, 0), LIST(0, 2), -1), "f32(3,5)");
    HOLDS(mica_pad(s, a, LIST(0, 0), LIST(0, 0), 1) == a);
    FAILS(mica_pad(s, a, LIST(-1, 0), LIST(0, 2), 0), "10: pad: -1 before and 0 after axis 0");
    FAILS(mica_pad(s, a, NULL, LIST(0, 2), 0), "10: pad: low is NULL");
    FAILS(mica_pad(s, a, LIST(INT64_MAX, 0), LIST(0, 2), 0),
          "15: pad: axis 0 of 2 with 9223372036854775807 before, 0 after, 0 between");
    MAKES(mica_tile(s, a, LIST(3, 2)), "f32(6,6)");
    MAKES(mica_tile(s, a, LIST(0, 1)), "f32(0,3)");
    MAKES(mica_tile(s, F32(1, 2, 1, 2, 1, 2, 1, 2), LIST(2, 2, 2, 2, 2, 2, 2, 2)), "f32(2,4,2,4,2,4,2,4)");
    FAILS(mica_tile(s, a, LIST(1, -1)), "10: tile: -1 times along axis 1");
    FAILS(mica_tile(s, a, LIST(INT64_MAX, 1)), "15: tile: f32 (9223372036854775807, 3) has too many elements");
    MAKES(mica_repeat(s, a, 4, -1), "f32(2,12)");
    FAILS(mica_repeat(s, a, 4, 2), "10: repeat: axis 2 of an array with 2 axes");
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
    FAILS(mica_take(s, x, I32(1, 1, 1, 1, 1, 1, 1), 0), "11: take: the result would have 9 axes, possible are 0 to 8");
    MAKES(mica_take_along_axis(s, x, I32(4, 2, 6), 1), "f32(4,2,6)");
    MAKES(mica_take_along_axis(s, x, I32(1, 2, 6), 1), "f32(4,2,6)");
    MAKES(mica_take_along_axis(s, F32(1, 5), I32(3, 2), 1), "f32(3,2)");
    FAILS(mica_take_along_axis(s, x, I32(3, 2, 6), 1),
          "11: take_along_axis: shape (4, 5, 6) and indices of shape (3, 2, 6) along axis 1");
    FAILS(mica_take_along_axis(s, x, I32(4), 0),
          "11: take_along_axis: shape (4, 5, 6) and indices of shape (4) along axis 0");
    MAKES(mica_gather(s, x, I32(7, 2)), "f32(7,6)");
    MAKES(mica_gather(s, x, I32(3)), "f32()");
    MAKES(mica_gather(s, x, I32(2, 0)), "f32(2,4,5,6)");
    FAILS(mica_gather(s, x, I32(7, 4)), "11: gather: positions on 4 axes of an array with 3");
    FAILS(mica_gather(s, x, zeros(MICA_I32, 0, NULL)), "11: gather: indices have no axes");
    FAILS(mica_gather(s, x, F32(7, 2)), "12: gather: indices are f32 instead of integers");
    FAILS(mica_gather(s, x, I32(1, 1, 1, 1, 1, 1, 1, 1)), "11: gather: 9 axes, possible are 0 to 8");
    MAKES(mica_scatter(s, x, I32(7, 2), F32(7, 6)), "f32(4,5,6)");
    MAKES(mica_scatter_add(s, x, I32(7, 1), zeros(MICA_F64, 0, NULL)), "f32(4,5,6)");
    FAILS(mica_scatter(s, x, I32(7, 2), F32(7, 5)), "11: scatter: shapes (7, 6) and (7, 5) do not broadcast");
    FAILS(mica_scatter_add(s, x, I32(7, 2), F32(2, 7, 6)),
          "11: scatter_add: updates of shape (2, 7, 6) do not broadcast to (7, 6)");
    MAKES(mica_embedding(s, F32(10, 4), I32(2, 3)), "f32(2,3,4)");
    FAILS(mica_embedding(s, F32(10, 4), F32(2)), "12: embedding: indices are f32 instead of integers");
    MAKES(mica_one_hot(s, I32(2, 3), 5, MICA_BF16), "bf16(2,3,5)");
    FAILS(mica_one_hot(s, I32(2, 3), -5, MICA_F32), "11: one_hot: size -5 of axis 2");
    FAILS(mica_one_hot(s, F32(2, 3), 5, MICA_F32), "12: one_hot: indices are f32 instead of integers");
    end();
}

TEST(sorting)
{
    if (!begin()) return;
    mica_array *x = zeros(MICA_U8, 2, LIST(3, 4)), *values, *indices;
    MAKES(mica_sort(s, x, 0, false), "u8(3,4)");
    MAKES(mica_argsort(s, x, 1, true), "i64(3,4)");
    FAILS(mica_sort(s, zeros(MICA_F32, 0, NULL), -1, false), "10: sort: axis -1 of an array with 0 axes");
    EXPECT_INT(mica_topk(s, x, 2, 0, &values, &indices), MICA_OK);
    MAKES(values, "u8(2,4)");
    MAKES(indices, "i64(2,4)");
    EXPECT_INT(mica_topk(s, x, 0, 1, NULL, &indices), MICA_OK);
    MAKES(indices, "i64(3,0)");
    EXPECT_INT(mica_topk(s, x, 5, 1, &values, NULL), MICA_ERR_ARGUMENT);
    FAILS(values, "10: topk: 5 of 4 elements");
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
    FAILS(last, "11: scan: carry 0 is f32 (2, 3), the step makes f32 (6) of it");
    EXPECT_INT(SCAN((&(step_plan){.wrong_dtype = true})), MICA_ERR_DTYPE);
    FAILS(ys, "12: scan: carry 0 is f32 (2, 3), the step makes f64 (2, 3) of it");
    EXPECT_INT(SCAN((&(step_plan){.no_result = true})), MICA_ERR_ARGUMENT);
    FAILS(last, "10: scan: array 0 is NULL");
    EXPECT_INT(SCAN((&(step_plan){.fails = true})), MICA_ERR_SHAPE);
    FAILS(last, "11: add: shapes (2, 3) and (77) do not broadcast");
    EXPECT_INT(SCAN((&(step_plan){.status = MICA_ERR_STATE})), MICA_ERR_STATE);
    FAILS(last, "13: scan: the step returned \"not possible in this state\"");
    test_case("lengths");
    o.length = 4;
    EXPECT_INT(SCAN(&good), MICA_ERR_SHAPE);
    FAILS(last, "11: scan: x 0 is f32 (5, 2, 3), the scan has 4 steps");
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
    FAILS(last, "10: scan: a length is needed where there are no xs");
    o.n_y = SIZE_MAX;
    EXPECT_INT(SCAN(&good), MICA_ERR_ARGUMENT);
    FAILS(NULL, "10: scan: more than 2^20 carries, xs or ys");
    end();
}
