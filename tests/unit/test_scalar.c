/* The meaning of each op on one element: floats against libm in long double, integers against exact
 * arithmetic in 128 bits, and every special value whose result is a design decision.
 *
 * runs: check */
#include "test.h"

#include <float.h>
#include <math.h>

#include "graph/scalar.h"
#include "op_facts.h"

static const mica_dtype float_dtypes[] = {MICA_F16, MICA_BF16, MICA_F32, MICA_F64};
static const mica_dtype int_dtypes[] = {MICA_U8, MICA_I8, MICA_U16, MICA_I16, MICA_U32, MICA_I32, MICA_U64, MICA_I64};

enum { FLOATS = sizeof float_dtypes / sizeof float_dtypes[0], INTS = sizeof int_dtypes / sizeof int_dtypes[0] };

static mica__number nf(double f) { return (mica__number){.f = f}; }
static mica__number ni(int64_t i) { return (mica__number){.i = i}; }

static double f1(mica__op op, mica_dtype dtype, double a)
{
    return mica__scalar_map(op, dtype, dtype, (mica__number[]){nf(a)}, NULL, NULL).f;
}

static double f2(mica__op op, mica_dtype dtype, double a, double b)
{
    return mica__scalar_map(op, dtype, dtype, (mica__number[]){nf(a), nf(b)}, NULL, NULL).f;
}

static int64_t i1(mica__op op, mica_dtype dtype, int64_t a)
{
    return mica__scalar_map(op, dtype, dtype, (mica__number[]){ni(a)}, NULL, NULL).i;
}

static int64_t i2(mica__op op, mica_dtype dtype, int64_t a, int64_t b)
{
    return mica__scalar_map(op, dtype, dtype, (mica__number[]){ni(a), ni(b)}, NULL, NULL).i;
}

static mica__number m3(mica__op op, mica_dtype dtype, mica__number a, mica__number b, mica__number c)
{
    return mica__scalar_map(op, dtype, dtype, (mica__number[]){a, b, c}, NULL, NULL);
}

static bool truth2(mica__op op, mica_dtype dtype, mica__number a, mica__number b)
{
    return mica__scalar_map(op, dtype, MICA_BOOL, (mica__number[]){a, b}, NULL, NULL).i != 0;
}

/* ---------------------------------------------------------------- floats --- */

/* Relative spacing of a dtype's numbers. */
static double spacing(mica_dtype d)
{
    return d == MICA_F16 ? 0x1p-10 : d == MICA_BF16 ? 0x1p-7 : d == MICA_F32 ? 0x1p-23 : 0x1p-52;
}

static double rounded(mica_dtype d, op_range r, double part)
{
    return mica__round_f64(d, r.low + (r.high - r.low) * part);
}

static bool inside(op_range r, double x) { return x >= r.low && x <= r.high; }

/* The definition at one point against the oracle of ops.def. */
static bool agrees(const op_facts *f, mica_dtype d, double x, double y)
{
    /* f64 has the error of libm; other dtypes have one rounding, in which a tie may go either way */
    const double rtol = d == MICA_F64 ? 8 * DBL_EPSILON : 0.5001 * spacing(d);
    const double atol = d == MICA_F16 ? 0x1p-25 : 0x1p-1000;
    const mica__attr_value attr = {OP_VALUE};
    const bool truth = strcmp(f->rule, "same") != 0 && strcmp(f->rule, "floating") != 0;
    const mica__number args[] = {nf(x), nf(y)};
    const mica__number got = mica__scalar_map(f->op, d, truth ? MICA_BOOL : d, args, &attr, NULL);
    const double want = (double)f->oracle(x, y), value = truth ? (double)got.i : got.f;
    if (d == MICA_F16 && fabs(want) > 65504) return true;
    /* exp of a rounded argument: its error grows with the argument */
    const double more = f->test.tail && d == MICA_F64 ? 1 + x * x : 1;
    return EXPECT_MSG(test_close(value, want, rtol * more, atol), "(%.17g, %.17g): %.17g, not %.17g", x, y, value,
                      want);
}

TEST(floats_agree_with_long_double)
{
    size_t n;
    const op_facts *f = op_facts_all(&n);
    for (size_t u = 0; u < n; u++) {
        if (f[u].op == MICA__OP_COUNT || !op_has_oracle(&f[u])) continue;
        for (int t = 0; t < FLOATS; t++) {
            const mica_dtype d = float_dtypes[t];
            const op_range *r = f[u].test.range;
            test_case("%s %s", f[u].name, mica_dtype_name(d));
            for (int k = 0; k <= 400; k++) {
                /* the second operand also has 401 values, in another order */
                const double x = rounded(d, r[0], k / 400.0), y = rounded(d, r[1], k * 150 % 401 / 400.0);
                if (inside(r[0], x) && inside(r[1], y) && !agrees(&f[u], d, x, y)) break;
            }
        }
    }
}

TEST(erfinv_undoes_erf)
{
    for (int k = -999; k <= 999; k++) {
        const double x = k / 1000.0;
        CHECK_CLOSE(erfl(f1(MICA__OP_ERFINV, MICA_F64, x)), x, 1e-15, 0);
    }
    for (int e = 2; e <= 53; e++) { /* towards 1, where erf has no precision left */
        const double tail = ldexp(1.0, -e), y = f1(MICA__OP_ERFINV, MICA_F64, 1.0 - tail);
        /* erfc's relative error is 2 y^2 times that of y */
        CHECK_CLOSE(erfcl(y), tail, 2e-15 * 2 * y * y, 0);
        CHECK(f1(MICA__OP_ERFINV, MICA_F64, tail - 1.0) == -y);
    }
    CHECK_CLOSE(f1(MICA__OP_ERFINV, MICA_F64, 1e-300), 1e-300 * 0.88622692545275801365, 1e-15, 0);
    CHECK(f1(MICA__OP_ERFINV, MICA_F32, 1.0) == INFINITY && f1(MICA__OP_ERFINV, MICA_F32, -1.0) == -INFINITY);
    CHECK(isnan(f1(MICA__OP_ERFINV, MICA_F32, 1.5)) && isnan(f1(MICA__OP_ERFINV, MICA_F32, NAN)));
}

TEST(activations_at_the_ends)
{
    const mica_dtype d = MICA_F64;
    CHECK(f1(MICA__OP_SIGMOID, d, -745.0) > 0 && f1(MICA__OP_SIGMOID, d, 1e308) == 1);
    CHECK(f1(MICA__OP_SIGMOID, d, -INFINITY) == 0 && f1(MICA__OP_SIGMOID, d, INFINITY) == 1);
    CHECK(f1(MICA__OP_SOFTPLUS, d, 1e300) == 1e300 && f1(MICA__OP_SOFTPLUS, d, INFINITY) == INFINITY);
    CHECK(f1(MICA__OP_SOFTPLUS, d, -800.0) == 0 && f1(MICA__OP_SOFTPLUS, d, -40.0) == exp(-40.0));
    CHECK(f1(MICA__OP_SILU, d, -1e308) == 0 && f1(MICA__OP_SILU, d, 1e308) == 1e308);
    CHECK(f1(MICA__OP_GELU, d, 1e308) == 1e308 && f1(MICA__OP_GELU, d, -50.0) == 0);
    CHECK(f1(MICA__OP_GELU, d, -20.0) < 0); /* 1 + erf would have cancelled to 0 */
    CHECK(f1(MICA__OP_GELU_TANH, d, -6.0) < 0 && f1(MICA__OP_GELU_TANH, d, -1e308) == 0);
    const mica__attr_value slope = {0.25};
    CHECK(mica__scalar_map(MICA__OP_LEAKY_RELU, d, d, (mica__number[]){nf(-4)}, &slope, NULL).f == -1);
    CHECK(mica__scalar_map(MICA__OP_LEAKY_RELU, d, d, (mica__number[]){nf(4)}, &slope, NULL).f == 4);
    CHECK(mica__scalar_map(MICA__OP_ELU, d, d, (mica__number[]){nf(-2)}, &slope, NULL).f == 0.25 * expm1(-2));
    CHECK(mica__scalar_map(MICA__OP_ELU, d, d, (mica__number[]){nf(2)}, &slope, NULL).f == 2);
}

TEST(nan_goes_through)
{
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        const mica__op_info *info = mica__op_get((uint16_t)op);
        const mica__spec spec = {.dtype = MICA_F32}, *in[] = {&spec, &spec, &spec};
        const mica__attr_value attr = {0.5};
        mica__spec out;
        if (info->kind != MICA__MAP || op == MICA__OP_CAST || op == MICA__OP_CHECK_INDEX) continue;
        if (info->shape(info, in, (size_t)info->n_in, &attr, &out) != MICA_OK || out.dtype != MICA_F32) continue;
        for (int k = 0; k < info->n_in; k++) {
            test_case("%s, operand %d", info->name, k);
            mica__number args[] = {nf(0.5), nf(0.5), nf(0.5)};
            args[k].f = NAN;
            CHECK(isnan(mica__scalar_map((mica__op)op, MICA_F32, MICA_F32, args, &attr, NULL).f));
        }
    }
}

TEST(signs_and_zeros)
{
    for (int t = 0; t < FLOATS; t++) {
        const mica_dtype d = float_dtypes[t];
        CHECK(f1(MICA__OP_SIGN, d, -3.5) == -1 && f1(MICA__OP_SIGN, d, INFINITY) == 1);
        CHECK(f1(MICA__OP_SIGN, d, 0.0) == 0 && f1(MICA__OP_SIGN, d, -0.0) == 0);
        CHECK(!signbit(f1(MICA__OP_RELU, d, -0.0)) && f1(MICA__OP_RELU, d, -1.0) == 0);
        CHECK(signbit(f1(MICA__OP_NEG, d, 0.0)) && signbit(f1(MICA__OP_CEIL, d, -0.5)));
        CHECK(f1(MICA__OP_ROUND, d, 0.5) == 0 && f1(MICA__OP_ROUND, d, 1.5) == 2 && f1(MICA__OP_ROUND, d, -2.5) == -2);
        CHECK(f2(MICA__OP_MINIMUM, d, 1, 2) == 1 && f2(MICA__OP_MAXIMUM, d, 1, 2) == 2);
    }
}

/* The values Python 3 and NumPy give. */
TEST(float_floor_div_and_mod_are_pythons)
{
    static const struct {
        double a, b, div, mod;
    } rows[] = {
        {7, 2, 3, 1},
        {-7, 2, -4, 1},
        {7, -2, -4, -1},
        {-7, -2, 3, -1},
        {1, 0.1, 9, 0.09999999999999995},
        {-1, 0.1, -10, 5.551115123125783e-17},
        {5, INFINITY, 0, 5},
        {-5, INFINITY, -1, INFINITY},
        {5, -INFINITY, -1, -INFINITY},
        {0.0, 3, 0.0, 0.0},
        {6, 3, 2, 0.0},
        {6, -3, -2, -0.0},
        {INFINITY, 2, NAN, NAN},
        {1, 0.0, INFINITY, NAN},
        {-1, 0.0, -INFINITY, NAN},
        {0.0, 0.0, NAN, NAN},
        {NAN, 1, NAN, NAN},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        test_case("%g by %g", rows[r].a, rows[r].b);
        const double div = f2(MICA__OP_FLOOR_DIV, MICA_F64, rows[r].a, rows[r].b);
        const double mod = f2(MICA__OP_MOD, MICA_F64, rows[r].a, rows[r].b);
        CHECK_CLOSE_OR_NAN(div, rows[r].div, 0, 0);
        CHECK_CLOSE_OR_NAN(mod, rows[r].mod, 0, 0);
        CHECK(isnan(mod) || signbit(mod) == signbit(rows[r].mod));
    }
}

TEST(one_rounding)
{
    const double a = 1 + 0x1p-12, b = 1 - 0x1p-12; /* a b = 1 - 2^-24 */
    CHECK(m3(MICA__OP_FMA, MICA_F32, nf(a), nf(b), nf(-1)).f == -0x1p-24);
    /* ties, and numbers that break them: in the last case below the last bit of a double */
    CHECK(m3(MICA__OP_FMA, MICA_F32, nf(0x1p-12), nf(0x1p-12), nf(1)).f == 1);
    CHECK(m3(MICA__OP_FMA, MICA_F32, nf(0x1p-12), nf(0x1p-12 + 0x1p-35), nf(1)).f == 1 + 0x1p-23);
    CHECK(m3(MICA__OP_FMA, MICA_F32, nf(1 + 0x1p-23), nf(0x1p-24 - 0x1p-47), nf(1 + 0x1p-23)).f == 1 + 0x1p-23);
    CHECK(m3(MICA__OP_FMA, MICA_F64, nf(3), nf(4), nf(5)).f == 17);
    /* f16: 2049 is a tie between 2048 and 2050 */
    CHECK(f2(MICA__OP_ADD, MICA_F16, 2048, 1) == 2048 && f2(MICA__OP_ADD, MICA_F16, 2050, 1) == 2052);
    CHECK(f2(MICA__OP_MUL, MICA_F16, 256, 256) == INFINITY && f2(MICA__OP_MUL, MICA_BF16, 3, 43) == 129);
    CHECK(f2(MICA__OP_DIV, MICA_F32, 1, 3) == (double)(1.0f / 3.0f));
}

/* -------------------------------------------------------------- integers --- */

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

static int bits_of(mica_dtype d) { return (int)(8 * mica_dtype_size(d)); }
static bool is_signed(mica_dtype d) { return mica__dtype_kind(d) == MICA__KIND_INT; }
/* The number a stored integer stands for. */
static wide value_of(mica_dtype d, int64_t i) { return d == MICA_U64 ? (wide)(uint64_t)i : (wide)i; }

/* A number as an integer dtype stores it. */
static int64_t stored(mica_dtype d, wide x)
{
    uint64_t low = (uint64_t)x;
    if (bits_of(d) == 64) return (int64_t)low;
    low &= ((uint64_t)1 << bits_of(d)) - 1;
    if (is_signed(d) && low >> (bits_of(d) - 1)) return (int64_t)low - ((int64_t)1 << bits_of(d));
    return (int64_t)low;
}

static int edges(mica_dtype d, int64_t *out)
{
    static const int64_t small[] = {0, 1, 2, 3, 7, 8, 15, 31, 63, 64, 100, -1, -2, -3, -7, -100};
    int n = 0;
    for (size_t k = 0; k < sizeof small / sizeof small[0]; k++) out[n++] = stored(d, small[k]);
    out[n++] = mica__scalar_identity(MICA__OP_MAX, d).i;
    out[n++] = mica__scalar_identity(MICA__OP_MIN, d).i;
    out[n] = stored(d, value_of(d, out[n - 1]) - 1);
    return n + 1;
}

static wide floor_div(wide a, wide b)
{
    if (b == 0) return 0;
    const wide q = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

static wide int_pow(mica_dtype d, wide a, wide b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t power = 1, base = (uint64_t)a;
    for (uint64_t e = (uint64_t)b; e; e >>= 1, base *= base)
        if (e & 1) power *= base;
    return value_of(d, (int64_t)power);
}

static wide int_shift(mica_dtype d, wide a, wide n, bool left)
{
    if (n < 0 || n >= bits_of(d)) return left || a >= 0 ? 0 : -1;
    return left ? (wide)((uwide)a << (int)n) : floor_div(a, (wide)1 << (int)n);
}

TEST(integers_wrap_and_divide_exactly)
{
    for (int t = 0; t < INTS; t++) {
        const mica_dtype d = int_dtypes[t];
        int64_t edge[32];
        const int n = edges(d, edge);
        test_case("%s", mica_dtype_name(d));
        for (int p = 0; p < n; p++) {
            const wide a = value_of(d, edge[p]);
            CHECK_INT(i1(MICA__OP_NEG, d, edge[p]), stored(d, -a));
            CHECK_INT(i1(MICA__OP_ABS, d, edge[p]), stored(d, a < 0 ? -a : a));
            CHECK_INT(i1(MICA__OP_SIGN, d, edge[p]), stored(d, (a > 0) - (a < 0)));
            CHECK_INT(i1(MICA__OP_SQUARE, d, edge[p]), stored(d, (wide)((uwide)a * (uwide)a)));
            CHECK_INT(i1(MICA__OP_RELU, d, edge[p]), stored(d, a < 0 ? 0 : a));
            CHECK_INT(i1(MICA__OP_BITWISE_NOT, d, edge[p]), stored(d, ~a));
            CHECK_INT(i1(MICA__OP_FLOOR, d, edge[p]), edge[p]);
            CHECK_INT(i1(MICA__OP_ROUND, d, edge[p]), edge[p]);
            for (int q = 0; q < n; q++) {
                const wide b = value_of(d, edge[q]), div = floor_div(a, b);
                const mica__number x = ni(edge[p]), y = ni(edge[q]);
                CHECK_INT(i2(MICA__OP_ADD, d, edge[p], edge[q]), stored(d, a + b));
                CHECK_INT(i2(MICA__OP_SUB, d, edge[p], edge[q]), stored(d, a - b));
                CHECK_INT(i2(MICA__OP_MUL, d, edge[p], edge[q]), stored(d, (wide)((uwide)a * (uwide)b)));
                CHECK_INT(i2(MICA__OP_FLOOR_DIV, d, edge[p], edge[q]), stored(d, div));
                CHECK_INT(i2(MICA__OP_MOD, d, edge[p], edge[q]), stored(d, b == 0 ? 0 : a - div * b));
                CHECK_INT(i2(MICA__OP_POW, d, edge[p], edge[q]), stored(d, int_pow(d, a, b)));
                CHECK_INT(i2(MICA__OP_MINIMUM, d, edge[p], edge[q]), stored(d, a < b ? a : b));
                CHECK_INT(i2(MICA__OP_MAXIMUM, d, edge[p], edge[q]), stored(d, a > b ? a : b));
                CHECK_INT(i2(MICA__OP_BITWISE_AND, d, edge[p], edge[q]), stored(d, a & b));
                CHECK_INT(i2(MICA__OP_BITWISE_OR, d, edge[p], edge[q]), stored(d, a | b));
                CHECK_INT(i2(MICA__OP_BITWISE_XOR, d, edge[p], edge[q]), stored(d, a ^ b));
                CHECK_INT(i2(MICA__OP_SHIFT_LEFT, d, edge[p], edge[q]), stored(d, int_shift(d, a, b, true)));
                CHECK_INT(i2(MICA__OP_SHIFT_RIGHT, d, edge[p], edge[q]), stored(d, int_shift(d, a, b, false)));
                CHECK_INT(truth2(MICA__OP_EQUAL, d, x, y), a == b);
                CHECK_INT(truth2(MICA__OP_NOT_EQUAL, d, x, y), a != b);
                CHECK_INT(truth2(MICA__OP_LESS, d, x, y), a < b);
                CHECK_INT(truth2(MICA__OP_LESS_EQUAL, d, x, y), a <= b);
                CHECK_INT(truth2(MICA__OP_GREATER, d, x, y), a > b);
                CHECK_INT(truth2(MICA__OP_GREATER_EQUAL, d, x, y), a >= b);
            }
        }
    }
}

TEST(bool_is_zero_or_one)
{
    for (int a = 0; a < 2; a++) {
        CHECK_INT(i1(MICA__OP_NEG, MICA_BOOL, a), a);
        CHECK_INT(i1(MICA__OP_BITWISE_NOT, MICA_BOOL, a), !a);
        CHECK_INT(i1(MICA__OP_LOGICAL_NOT, MICA_BOOL, a), !a);
        for (int b = 0; b < 2; b++) {
            CHECK_INT(i2(MICA__OP_ADD, MICA_BOOL, a, b), a || b);
            CHECK_INT(i2(MICA__OP_SUB, MICA_BOOL, a, b), a != b);
            CHECK_INT(i2(MICA__OP_MUL, MICA_BOOL, a, b), a && b);
            CHECK_INT(i2(MICA__OP_LOGICAL_XOR, MICA_BOOL, a, b), a != b);
            CHECK_INT(i2(MICA__OP_BITWISE_OR, MICA_BOOL, a, b), a || b);
        }
    }
}

TEST(comparisons_with_nan_are_false)
{
    CHECK(!truth2(MICA__OP_EQUAL, MICA_F32, nf(NAN), nf(NAN)) && truth2(MICA__OP_NOT_EQUAL, MICA_F32, nf(NAN), nf(1)));
    CHECK(!truth2(MICA__OP_LESS, MICA_F32, nf(NAN), nf(1)));
    CHECK(!truth2(MICA__OP_GREATER_EQUAL, MICA_F32, nf(NAN), nf(1)));
    CHECK(truth2(MICA__OP_EQUAL, MICA_F32, nf(0.0), nf(-0.0)));
    CHECK(mica__scalar_map(MICA__OP_ISNAN, MICA_F32, MICA_BOOL, (mica__number[]){nf(NAN)}, NULL, NULL).i == 1);
    CHECK(mica__scalar_map(MICA__OP_ISINF, MICA_F32, MICA_BOOL, (mica__number[]){nf(-INFINITY)}, NULL, NULL).i == 1);
    CHECK(mica__scalar_map(MICA__OP_ISFINITE, MICA_F32, MICA_BOOL, (mica__number[]){nf(NAN)}, NULL, NULL).i == 0);
}

/* ------------------------------------------------------- casts and the rest --- */

static mica__number cast(mica_dtype in, mica_dtype out, mica__number x)
{
    return mica__scalar_map(MICA__OP_CAST, in, out, &x, NULL, NULL);
}

TEST(casts)
{
    CHECK_INT(cast(MICA_F32, MICA_I8, nf(200.7)).i, 127);
    CHECK_INT(cast(MICA_F32, MICA_I8, nf(-1.9)).i, -1);
    CHECK_INT(cast(MICA_F64, MICA_U8, nf(-5)).i, 0);
    CHECK_INT(cast(MICA_F64, MICA_I32, nf(NAN)).i, 0);
    CHECK_INT(cast(MICA_F64, MICA_I64, nf(INFINITY)).i, INT64_MAX);
    CHECK_INT(cast(MICA_F64, MICA_U64, nf(0x1p63)).i, INT64_MIN); /* its bits */
    CHECK_INT(cast(MICA_F32, MICA_BOOL, nf(NAN)).i, 1);
    CHECK_INT(cast(MICA_F32, MICA_BOOL, nf(-0.0)).i, 0);
    CHECK_INT(cast(MICA_I32, MICA_I8, ni(300)).i, 44);
    CHECK_INT(cast(MICA_I64, MICA_BOOL, ni(256)).i, 1);
    CHECK_INT(cast(MICA_I8, MICA_U32, ni(-1)).i, UINT32_MAX);
    CHECK(cast(MICA_U64, MICA_F64, ni(-1)).f == 0x1p64 && cast(MICA_I64, MICA_F64, ni(-1)).f == -1);
    CHECK(cast(MICA_BOOL, MICA_F16, ni(1)).f == 1 && cast(MICA_F64, MICA_F32, nf(1e300)).f == INFINITY);
    /* through double these would be rounded twice: 2^60 + 2^36 is a tie, the 1 breaks it */
    const int64_t above = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    CHECK(cast(MICA_I64, MICA_F32, ni(above)).f == 0x1p60 + 0x1p37);
    CHECK(cast(MICA_U64, MICA_F32, ni(above)).f == 0x1p60 + 0x1p37);
    CHECK(cast(MICA_I64, MICA_F32, ni(-above)).f == -0x1p60 - 0x1p37);
}

TEST(where_and_check_index)
{
    CHECK(m3(MICA__OP_WHERE, MICA_F32, ni(1), nf(2), nf(3)).f == 2);
    CHECK(m3(MICA__OP_WHERE, MICA_F32, ni(0), nf(2), nf(3)).f == 3);
    CHECK_INT(m3(MICA__OP_WHERE, MICA_I8, ni(0), ni(2), ni(3)).i, 3);
    const mica__attr_index five = {.size = 5};
    for (int64_t k = -8; k <= 8; k++) {
        bool bad = false;
        const mica__number x = ni(k);
        const int64_t got = mica__scalar_map(MICA__OP_CHECK_INDEX, MICA_I64, MICA_I64, &x, &five, &bad).i;
        CHECK_INT(bad, k < -5 || k > 4);
        CHECK_INT(got, bad ? 0 : k < 0 ? k + 5 : k);
    }
    const mica__number least = ni(INT64_MIN);
    bool bad = false;
    mica__scalar_map(MICA__OP_CHECK_INDEX, MICA_I64, MICA_I64, &least, &five, &bad);
    CHECK(bad);
    mica__scalar_map(MICA__OP_CHECK_INDEX, MICA_I64, MICA_I64, &least, &five, NULL); /* no fault pointer */
}

/* With 7 and 2 no integer op returns 0, with 0.5 no float op returns NaN. So an op that is
 * missing in scalar.c is detected. */
TEST(every_map_op_is_defined_for_every_dtype_it_takes)
{
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        const mica__op_info *info = mica__op_get((uint16_t)op);
        if (info->kind != MICA__MAP) continue;
        for (int t = MICA_U8; t <= MICA_F64; t++) {
            const mica__spec x = {.dtype = t}, condition = {.dtype = MICA_BOOL};
            const mica__spec *in[] = {op == MICA__OP_WHERE ? &condition : &x, &x, &x};
            const union {
                mica__attr_cast cast;
                mica__attr_value value;
                mica__attr_index index;
            } same = {.cast = {t}}, half = {.value = {0.5}}, ten = {.index = {.size = 10}};
            const void *which = op == MICA__OP_CAST ? &same : op == MICA__OP_CHECK_INDEX ? &ten : &half;
            mica__spec out = {0};
            if (info->shape(info, in, (size_t)info->n_in, which, &out) != MICA_OK) continue;
            if (out.dtype == MICA_BOOL) continue;
            test_case("%s %s", info->name, mica_dtype_name((mica_dtype)t));
            const mica__number args[] = {{0.5, 7}, {0.5, 2}, {0.5, 2}};
            const mica_dtype in_dtype = (mica_dtype)t, out_dtype = (mica_dtype)out.dtype;
            const mica__number y = mica__scalar_map((mica__op)op, in_dtype, out_dtype, args, which, NULL);
            if (mica__is_float(out_dtype)) CHECK(!isnan(y.f) && y.i == 0);
            else CHECK(y.i != 0 && y.f == 0);
        }
    }
}

/* ------------------------------------------------------------ reductions --- */

TEST(folds_start_with_what_changes_nothing)
{
    static const mica__op ops[] = {MICA__OP_SUM, MICA__OP_PROD, MICA__OP_MAX, MICA__OP_MIN, MICA__OP_ANY, MICA__OP_ALL};
    for (int o = 0; o < 6; o++) {
        for (int t = MICA_BOOL; t <= MICA_F64; t++) {
            const mica_dtype d = (mica_dtype)t;
            test_case("%s %s", mica__op_get((uint16_t)ops[o])->name, mica_dtype_name(d));
            int64_t edge[32] = {0, 1};
            const int n = d == MICA_BOOL ? 2 : mica__is_float(d) ? 2 : edges(d, edge);
            for (int k = 0; k < n; k++) {
                const mica__number x = mica__is_float(d) ? nf(edge[k] ? 1.5 : -INFINITY) : ni(edge[k]);
                const mica__number y = mica__scalar_fold(ops[o], d, mica__scalar_identity(ops[o], d), x);
                if (o >= 4) CHECK_INT(y.i, mica__is_float(d) ? x.f != 0 : x.i != 0);
                else if (mica__is_float(d)) CHECK(y.f == x.f);
                else CHECK_INT(y.i, x.i);
            }
        }
    }
    CHECK_INT(mica__scalar_identity(MICA__OP_MAX, MICA_I8).i, INT8_MIN);
    CHECK_INT(mica__scalar_identity(MICA__OP_MIN, MICA_U16).i, UINT16_MAX);
    CHECK_INT(mica__scalar_identity(MICA__OP_MIN, MICA_U64).i, -1);
    CHECK_INT(mica__scalar_identity(MICA__OP_MIN, MICA_BOOL).i, 1);
}

TEST(folds_keep_nan_and_excess_precision)
{
    CHECK(isnan(mica__scalar_fold(MICA__OP_MAX, MICA_F32, nf(NAN), nf(1)).f));
    CHECK(isnan(mica__scalar_fold(MICA__OP_MIN, MICA_F32, nf(1), nf(NAN)).f));
    CHECK(mica__scalar_fold(MICA__OP_SUM, MICA_F32, nf(1), nf(0x1p-40)).f == 1 + 0x1p-40);
    CHECK_INT(mica__scalar_fold(MICA__OP_MAX, MICA_U64, ni(5), ni(-1)).i, -1);
    CHECK_INT(mica__scalar_fold(MICA__OP_SUM, MICA_I64, ni(INT64_MAX), ni(1)).i, INT64_MIN);
    CHECK_INT(mica__scalar_fold(MICA__OP_ANY, MICA_F32, ni(0), nf(NAN)).i, 1);
}

TEST(elements_come_back_as_stored)
{
    for (int t = MICA_BOOL; t <= MICA_F64; t++) {
        const mica_dtype d = (mica_dtype)t;
        unsigned char memory[4 * 8] = {0};
        const mica__number x = mica__is_float(d) ? nf(-1.5) : ni(1);
        mica__scalar_store(d, memory, 2, x);
        const mica__number y = mica__scalar_load(d, memory, 2);
        CHECK(y.f == x.f && y.i == x.i);
        CHECK(mica__scalar_load(d, memory, 1).f == 0 && mica__scalar_load(d, memory, 3).i == 0);
    }
}
