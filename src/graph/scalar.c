/* See scalar.h. Formulas are chosen for accuracy over the whole range, not for
 * speed: no cancellation, no overflow before the result overflows. */
#include "graph/scalar.h"

#include <math.h>

static const double SCALAR_SQRT1_2 = 0.70710678118654752440;
static const double SCALAR_SQRT_2_PI = 0.79788456080286535588;

static inline mica__number scalar_f(double f) { return (mica__number){f, 0}; }
static inline mica__number scalar_i(int64_t i) { return (mica__number){0.0, i}; }
static inline mica__number scalar_b(bool b) { return (mica__number){0.0, b}; }

/* mica__round_f64 with a fast path for f32 and f64. */
static inline double scalar_round(mica_dtype dtype, double f)
{
    return dtype == MICA_F32 ? (double)(float)f : dtype == MICA_F64 ? f : mica__round_f64(dtype, f);
}

/* ---------------------------------------------------------------- floats --- */

static double scalar_horner(const double *coef, int n, double x)
{
    double sum = coef[n - 1];
    for (int k = n - 2; k >= 0; k--) sum = sum * x + coef[k];
    return sum;
}

/* Wichura's AS 241 (PPND16), the normal quantile at (1+x)/2: relative error
 * about 1e-16. q = x/2 and the tail (1-|x|)/2 are exact, so no digits are lost near
 * 0 or near +-1. */
double mica__erfinv(double x)
{
    static const double num_mid[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                     1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double den_mid[] = {1.0,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3};
    static const double num_near[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                      3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double den_near[] = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
    static const double num_far[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double den_far[] = {1.0,
                                     5.99832206555887937690e-1,
                                     1.36929880922735805310e-1,
                                     1.48753612908506148525e-2,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};
    const double ax = fabs(x);
    if (!(ax < 1.0)) return ax == 1.0 ? copysign(INFINITY, x) : NAN;
    if (ax <= 0.85) {
        const double q = 0.5 * x, r = 0.180625 - q * q;
        return q * (scalar_horner(num_mid, 8, r) / scalar_horner(den_mid, 8, r)) * SCALAR_SQRT1_2;
    }
    const double r = sqrt(-log(0.5 * (1.0 - ax)));
    const double z = r <= 5.0 ? scalar_horner(num_near, 8, r - 1.6) / scalar_horner(den_near, 8, r - 1.6)
                              : scalar_horner(num_far, 8, r - 5.0) / scalar_horner(den_far, 8, r - 5.0);
    return copysign(z * SCALAR_SQRT1_2, x);
}

static double scalar_sigmoid(double x)
{
    if (x >= 0.0) return 1.0 / (1.0 + exp(-x));
    const double e = exp(x);
    return e / (1.0 + e);
}

/* x (1 + tanh u) / 2 = x sigmoid(2u), which does not cancel for u << 0. */
static double scalar_gelu_tanh(double x)
{
    return x * scalar_sigmoid(2.0 * SCALAR_SQRT_2_PI * (x + 0.044715 * x * x * x));
}

/* floor_div and mod of floats as in Python and NumPy. fmod is exact, so this is the
 * floor of the true quotient, not of the rounded one. */
static double scalar_divmod(double a, double b, double *mod)
{
    double m = fmod(a, b);
    if (b == 0.0) {
        *mod = m;
        return a / b;
    }
    double quotient = (a - m) / b;
    if (m == 0.0) {
        m = copysign(0.0, b);
    } else if ((b < 0.0) != (m < 0.0)) { /* also taken if m is NaN and b < 0: the sum stays NaN */
        m += b;
        quotient -= 1.0;
    }
    *mod = m;
    if (quotient == 0.0) return copysign(0.0, a / b);
    /* a - m is a multiple of b up to rounding, so the nearest integer is the quotient */
    const double floored = floor(quotient);
    return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

static double scalar_min(double a, double b) { return isnan(a) || a < b ? a : b; }
static double scalar_max(double a, double b) { return isnan(a) || a > b ? a : b; }

static double scalar_floor_div(double a, double b)
{
    double mod;
    return scalar_divmod(a, b, &mod);
}

static double scalar_mod(double a, double b)
{
    double mod;
    scalar_divmod(a, b, &mod);
    return mod;
}

static inline double scalar_value(const void *attr) { return ((const mica__attr_value *)attr)->value; }

/* Column scalar of ops.def: the value before it is rounded to the dtype. */
static double scalar_float(mica__op op, mica_dtype dtype, const mica__number *args, int n_in, const void *attr)
{
    const double a = args[0].f, b = n_in > 1 ? args[1].f : 0.0;
    switch ((int)op) {
#define MICA_MAP1(NAME, name, ctor, rule, flops, attr, msl, vjp, scalar, ...) \
    case MICA__OP_##NAME: return scalar;
#define MICA_MAP2(NAME, name, rule, flops, msl, vjp, scalar, ...) \
    case MICA__OP_##NAME: return scalar;
#include "graph/ops.def"
    case MICA__OP_COPY: return a;
    /* f32: the product is exact in double but the sum is not, so it would be rounded
     * twice; this cannot happen for f16, and for bf16 only if c < 2^-36 a b */
    case MICA__OP_FMA:
        return dtype == MICA_F32 ? (double)fmaf((float)a, (float)b, (float)args[2].f) : fma(a, b, args[2].f);
    default: return NAN; /* not a MAP op on floats: the shape rules refuse it */
    }
}

/* -------------------------------------------------------------- integers --- */

static inline int64_t scalar_wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t scalar_wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int64_t scalar_wrap_neg(int64_t a) { return (int64_t)(0 - (uint64_t)a); }

static inline bool scalar_less(mica_dtype dtype, int64_t a, int64_t b)
{
    return dtype == MICA_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t scalar_int_divmod(mica_dtype dtype, int64_t a, int64_t b, int64_t *mod)
{
    *mod = 0;
    if (b == 0) return 0;
    if (dtype == MICA_U64) {
        *mod = (int64_t)((uint64_t)a % (uint64_t)b);
        return (int64_t)((uint64_t)a / (uint64_t)b);
    }
    if (b == -1) return scalar_wrap_neg(a); /* INT64_MIN / -1 traps */
    const int64_t m = a % b, q = a / b;
    const bool down = m != 0 && (m < 0) != (b < 0);
    *mod = down ? m + b : m;
    return down ? q - 1 : q;
}

static int64_t scalar_int_pow(mica_dtype dtype, int64_t a, int64_t b)
{
    if (b < 0 && dtype != MICA_U64) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    int64_t power = 1;
    for (uint64_t e = (uint64_t)b; e != 0; e >>= 1) {
        if (e & 1) power = scalar_wrap_mul(power, a);
        a = scalar_wrap_mul(a, a);
    }
    return power;
}

static int64_t scalar_shift(mica_dtype dtype, int64_t a, int64_t count, bool left)
{
    const uint64_t bits = dtype == MICA_BOOL ? 1 : 8 * mica_dtype_size(dtype);
    if ((uint64_t)count >= bits) return !left && a < 0 && dtype != MICA_U64 ? -1 : 0;
    if (left) return (int64_t)((uint64_t)a << count);
    if (dtype == MICA_U64 || a >= 0) return (int64_t)((uint64_t)a >> count);
    return ~(int64_t)(~(uint64_t)a >> count); /* >> of a negative number is implementation-defined in C */
}

static int64_t scalar_int_floor_div(mica_dtype dtype, int64_t a, int64_t b)
{
    int64_t mod;
    return scalar_int_divmod(dtype, a, b, &mod);
}

static int64_t scalar_int_mod(mica_dtype dtype, int64_t a, int64_t b)
{
    int64_t mod;
    scalar_int_divmod(dtype, a, b, &mod);
    return mod;
}

/* Column integer of ops.def: the value before it is wrapped to the dtype. */
static int64_t scalar_int(mica__op op, mica_dtype dtype, const mica__number *args, int n_in)
{
    const int64_t a = args[0].i, b = n_in > 1 ? args[1].i : 0;
    const bool negative = a < 0 && dtype != MICA_U64;
    switch ((int)op) {
#define MICA_MAP1(NAME, name, ctor, rule, flops, attr, msl, vjp, scalar, integer, ...) \
    case MICA__OP_##NAME: return integer;
#define MICA_MAP2(NAME, name, rule, flops, msl, vjp, scalar, integer, ...) \
    case MICA__OP_##NAME: return integer;
#include "graph/ops.def"
    case MICA__OP_COPY: return a;
    case MICA__OP_FMA: return scalar_wrap_add(scalar_wrap_mul(a, b), args[2].i);
    default: return 0; /* not a MAP op on integers: the shape rules refuse it */
    }
}

/* ------------------------------------------------------------------ casts --- */

static mica__number scalar_cast(mica_dtype in, mica_dtype out, mica__number x)
{
    if (mica__is_float(in)) {
        if (mica__is_float(out)) return scalar_f(scalar_round(out, x.f));
        return scalar_i(mica__f64_to_int(out, x.f));
    }
    if (!mica__is_float(out)) return scalar_i(mica__wrap_i64(out, x.i));
    char element[8];
    mica__convert_element(out, element, 0, in == MICA_U64 ? MICA_U64 : MICA_I64, &x.i, 0);
    return scalar_f(mica__get_f64(out, element, 0));
}

/* ------------------------------------------------------------------- map --- */

static mica__number scalar_check_index(mica_dtype in, int64_t index, int64_t size, bool *bad_index)
{
    const bool inside = in == MICA_U64 ? (uint64_t)index < (uint64_t)size : index >= -size && index < size;
    if (!inside) {
        if (bad_index) *bad_index = true;
        return scalar_i(0);
    }
    return scalar_i(index < 0 ? index + size : index);
}

mica__number mica__scalar_map(mica__op op, mica_dtype in, mica_dtype out, const mica__number *args, const void *attr,
                              bool *bad_index)
{
    switch ((int)op) {
    case MICA__OP_CAST: return scalar_cast(in, out, args[0]);
    case MICA__OP_WHERE: {
        const mica__number x = args[args[0].i != 0 ? 1 : 2];
        return mica__is_float(out) ? scalar_f(x.f) : scalar_i(x.i);
    }
    case MICA__OP_CHECK_INDEX:
        return scalar_check_index(in, args[0].i, ((const mica__attr_index *)attr)->size, bad_index);
    default: break;
    }
    const int n_in = mica__op_get((uint16_t)op)->n_in;
    if (!mica__is_float(in)) return scalar_i(mica__wrap_i64(out, scalar_int(op, in, args, n_in)));
    const double value = scalar_float(op, in, args, n_in, attr);
    return mica__is_float(out) ? scalar_f(scalar_round(out, value)) : scalar_b(value != 0.0);
}

/* ------------------------------------------------------------ reductions --- */

static inline bool scalar_truth(mica_dtype dtype, mica__number x)
{
    return mica__is_float(dtype) ? x.f != 0.0 : x.i != 0;
}

mica__number mica__scalar_fold(mica__op reduce_op, mica_dtype dtype, mica__number acc, mica__number x)
{
    const bool is_float = mica__is_float(dtype);
    switch ((int)reduce_op) {
    case MICA__OP_SUM: return is_float ? scalar_f(acc.f + x.f) : scalar_i(scalar_wrap_add(acc.i, x.i));
    case MICA__OP_PROD: return is_float ? scalar_f(acc.f * x.f) : scalar_i(scalar_wrap_mul(acc.i, x.i));
    case MICA__OP_MAX:
        return is_float ? scalar_f(scalar_max(acc.f, x.f)) : scalar_i(scalar_less(dtype, acc.i, x.i) ? x.i : acc.i);
    case MICA__OP_MIN:
        return is_float ? scalar_f(scalar_min(acc.f, x.f)) : scalar_i(scalar_less(dtype, x.i, acc.i) ? x.i : acc.i);
    case MICA__OP_ANY: return scalar_b(acc.i != 0 || scalar_truth(dtype, x));
    default: return scalar_b(acc.i != 0 && scalar_truth(dtype, x)); /* ALL */
    }
}

mica__number mica__scalar_identity(mica__op reduce_op, mica_dtype dtype)
{
    const bool is_float = mica__is_float(dtype);
    const bool is_signed = mica__dtype_kind(dtype) == MICA__KIND_INT;
    const int bits = dtype == MICA_BOOL ? 1 : (int)(8 * mica_dtype_size(dtype));
    switch ((int)reduce_op) {
    case MICA__OP_PROD: return is_float ? scalar_f(1.0) : scalar_i(1);
    case MICA__OP_MAX:
        if (is_float) return scalar_f(-INFINITY);
        return scalar_i(is_signed ? INT64_MIN >> (64 - bits) : 0);
    case MICA__OP_MIN:
        if (is_float) return scalar_f(INFINITY);
        return scalar_i(is_signed ? INT64_MAX >> (64 - bits) : (int64_t)(UINT64_MAX >> (64 - bits)));
    case MICA__OP_ALL: return scalar_b(true);
    default: return scalar_i(0); /* SUM, ANY */
    }
}

/* ---------------------------------------------------------------- memory --- */

mica__number mica__scalar_load(mica_dtype dtype, const void *data, int64_t index)
{
    return mica__is_float(dtype) ? scalar_f(mica__get_f64(dtype, data, index))
                                 : scalar_i(mica__get_i64(dtype, data, index));
}

void mica__scalar_store(mica_dtype dtype, void *data, int64_t index, mica__number value)
{
    if (mica__is_float(dtype)) mica__set_f64(dtype, data, index, value.f);
    else mica__set_i64(dtype, data, index, value.i);
}
