/* Steps of the graph fuzzer: leaves and element-wise ops. */
#ifndef MICA_TESTS_FUZZ_GRAPH_MAPS_H
#define MICA_TESTS_FUZZ_GRAPH_MAPS_H

#include "graph_program.h"

/* --------------------------------------------------------------- leaves --- */

/* Floats are multiples of 1/8 up to 4, which every float dtype holds; integers are up to 9. */
static void fuzz_fill(char *to, mica_dtype dtype, int64_t n, uint32_t seed)
{
    const bool is_unsigned = dtype == MICA_U8 || dtype == MICA_U16 || dtype == MICA_U32 || dtype == MICA_U64;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int k = (int)(seed >> 24) % 65 - 32;
        const float f = (float)k / 8;
        const double d = (double)k / 8;
        const uint16_t half = mica_f16_from_f32(f), brain = mica_bf16_from_f32(f);
        const int64_t i64 = is_unsigned ? (k + 32) / 7 : k / 4;
        const int32_t i32 = (int32_t)i64;
        const int16_t i16 = (int16_t)i64;
        switch ((int)dtype) {
        case MICA_F64: memcpy(to + i * 8, &d, 8); break;
        case MICA_F32: memcpy(to + i * 4, &f, 4); break;
        case MICA_F16: memcpy(to + i * 2, &half, 2); break;
        case MICA_BF16: memcpy(to + i * 2, &brain, 2); break;
        case MICA_BOOL: to[i] = (char)(k & 1); break;
        case MICA_I64:
        case MICA_U64: memcpy(to + i * 8, &i64, 8); break;
        case MICA_I32:
        case MICA_U32: memcpy(to + i * 4, &i32, 4); break;
        case MICA_I16:
        case MICA_U16: memcpy(to + i * 2, &i16, 2); break;
        default: to[i] = (char)i64; break;
        }
    }
}

static double fuzz_leaf_top(mica_dtype d) { return d == MICA_BOOL ? 1 : fuzz_is_float(d) ? 4 : 9; }

static mica_dtype fuzz_dtype(fuzz_program *p)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F64, MICA_F32,  MICA_F64, MICA_F16, MICA_BF16,
                                        MICA_I32, MICA_I64, MICA_BOOL, MICA_U8,  MICA_I8,  MICA_U16,
                                        MICA_I16, MICA_U32, MICA_U64,  MICA_F32};
    return dtypes[fuzz_below(p, 16)];
}

static int fuzz_new_shape(fuzz_program *p, int64_t *shape)
{
    static const int64_t sizes[] = {3, 2, 1, 4, 3, 0, 2, 17};
    const int ndim = fuzz_below(p, 4);
    for (int d = 0; d < ndim; d++) shape[d] = sizes[fuzz_below(p, 8)];
    return ndim;
}

static void fuzz_push_leaf(fuzz_program *p, const char *name, mica_array *const side[2], double top)
{
    if (!side[0] || !side[1]) fuzz_fail(p, "no leaf");
    if (!fuzz_push(p, name, side, top, 0, false)) return;
    if (fuzz_is_float(p->value[p->n - 1].dtype) && p->n_leaf < FUZZ_LEAVES) p->leaf[p->n_leaf++] = p->n - 1;
}

static void fuzz_step_data(fuzz_program *p)
{
    const mica_dtype dtype = fuzz_dtype(p);
    int64_t shape[4], n = 1;
    const int ndim = fuzz_new_shape(p, shape);
    for (int d = 0; d < ndim; d++) n *= shape[d];
    char *data = malloc((size_t)n * mica_dtype_size(dtype) + 1);
    if (!data) abort();
    fuzz_fill(data, dtype, n, (uint32_t)fuzz_byte(p));
    mica_array *side[2];
    for (int e = 0; e < 2; e++) side[e] = mica_from_data(p->scope[e], dtype, ndim, shape, data);
    free(data);
    fuzz_push_leaf(p, "data", side, fuzz_leaf_top(dtype));
}

typedef struct fuzz_block {
    fuzz_program *p;
    char *memory;
} fuzz_block;

static void fuzz_release(void *data, void *user)
{
    fuzz_block *block = user;
    (void)data;
    atomic_fetch_add(&block->p->n_released, 1);
    free(block->memory);
    free(block);
}

/* Caller memory with strides: negative, with gaps, or 0. */
static void fuzz_step_wrap(fuzz_program *p)
{
    static const int64_t steps[] = {1, -1, 2, 0};
    const mica_dtype dtype = fuzz_dtype(p);
    int64_t shape[4], strides[4], extent = 1, first = 0;
    const int ndim = fuzz_new_shape(p, shape);
    for (int d = ndim - 1; d >= 0; d--) {
        const int64_t step = steps[fuzz_below(p, 4)], reach = shape[d] > 0 ? shape[d] - 1 : 0;
        strides[d] = step * extent;
        if (step < 0) first += reach * extent;
        if (step != 0) extent *= reach * llabs(step) + 1;
    }
    const uint32_t seed = (uint32_t)fuzz_byte(p);
    const size_t size = mica_dtype_size(dtype);
    mica_array *side[2];
    for (int e = 0; e < 2; e++) {
        fuzz_block *block = malloc(sizeof *block);
        if (!block || !(block->memory = malloc((size_t)extent * size))) abort();
        block->p = p;
        fuzz_fill(block->memory, dtype, extent, seed);
        const char *at = block->memory + (size_t)first * size;
        p->n_wrapped++;
        side[e] = mica_wrap(p->scope[e], dtype, ndim, shape, strides, at, fuzz_release, block);
    }
    fuzz_push_leaf(p, "wrap", side, fuzz_leaf_top(dtype));
}

static mica_array *fuzz_make_random(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    (void)x;
    if (a->flag) return mica_random_normal(s, a->dtype, a->n, a->i, 7);
    return mica_random_uniform(s, a->dtype, a->n, a->i, -1, 1, 8);
}

static mica_array *fuzz_make_range(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    (void)x;
    if (a->flag) return mica_eye(s, a->dtype, a->n, 4, a->n - 2);
    return mica_arange(s, a->dtype, 0, a->n, 1);
}

static mica_array *fuzz_make_full(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    (void)x;
    return a->flag ? mica_scalar(s, a->v) : mica_full(s, a->dtype, a->n, a->i, a->v);
}

static void fuzz_step_made(fuzz_program *p)
{
    fuzz_args a = {.dtype = fuzz_dtype(p)};
    a.flag = fuzz_byte(p) & 1;
    switch (fuzz_below(p, 3)) {
    case 0:
        a.n = fuzz_new_shape(p, a.i);
        fuzz_apply(p, "random", fuzz_make_random, NULL, 0, &a, 8, 0, false);
        break;
    case 1:
        a.n = fuzz_below(p, 12);
        fuzz_apply(p, "range", fuzz_make_range, NULL, 0, &a, 12, 0, false);
        break;
    default:
        a.n = fuzz_new_shape(p, a.i);
        a.v = fuzz_below(p, 9) - 4;
        if (a.flag) a.v /= 2;
        fuzz_apply(p, "full", fuzz_make_full, NULL, 0, &a, fuzz_is_float(a.dtype) ? 4 : fuzz_int_most(a.dtype), 0,
                   false);
    }
}

/* ------------------------------------------------------------ one input --- */

/* 1 + x^2. Integers are converted to floats first, because their squares wrap. */
static mica_array *fuzz_plus_square(mica_scope *s, mica_array *x)
{
    if (!fuzz_is_float(mica_array_dtype(x))) x = mica_cast(s, x, MICA_F32);
    return mica_add(s, mica_square(s, x), mica_scalar(s, 1));
}

/* Functions with poles, applied to 1 + x^2 to be safe. */
static mica_array *fuzz_log_of(mica_scope *s, mica_array *x) { return mica_log(s, fuzz_plus_square(s, x)); }
static mica_array *fuzz_sqrt_of(mica_scope *s, mica_array *x) { return mica_sqrt(s, fuzz_plus_square(s, x)); }
static mica_array *fuzz_rsqrt_of(mica_scope *s, mica_array *x) { return mica_rsqrt(s, fuzz_plus_square(s, x)); }
static mica_array *fuzz_over_of(mica_scope *s, mica_array *x) { return mica_reciprocal(s, fuzz_plus_square(s, x)); }
static mica_array *fuzz_asin_of(mica_scope *s, mica_array *x)
{
    return mica_asin(s, mica_mul(s, mica_tanh(s, x), mica_scalar(s, 0.5)));
}
static mica_array *fuzz_leaky(mica_scope *s, mica_array *x) { return mica_leaky_relu(s, x, 0.25); }
static mica_array *fuzz_elu(mica_scope *s, mica_array *x) { return mica_elu(s, x, 0.5); }

/* |y| <= base + slope |x|, |y'| <= gain. */
typedef struct fuzz_unary {
    const char *name;
    mica_array *(*make)(mica_scope *s, mica_array *x);
    double base, slope, gain;
    bool kink;                /* the derivative jumps                                */
    bool exact;               /* the same bits from the same operands                */
    bool jumps;               /* the value jumps: only for operands with equal bits  */
} fuzz_unary;

static const fuzz_unary fuzz_unaries[] = {
    {"neg", mica_neg, 0, 1, 1, false, true, false},
    {"abs", mica_abs, 0, 1, 1, true, true, false},
    {"relu", mica_relu, 0, 1, 1, true, true, false},
    {"contiguous", mica_contiguous, 0, 1, 1, false, true, false},
    {"stop_gradient", mica_stop_gradient, 0, 1, 1, false, true, false},
    {"tanh", mica_tanh, 1, 0, 1, false, false, false},
    {"sigmoid", mica_sigmoid, 1, 0, 1, false, false, false},
    {"sin", mica_sin, 1, 0, 1, false, false, false},
    {"cos", mica_cos, 1, 0, 1, false, false, false},
    {"erf", mica_erf, 1, 0, 1.2, false, false, false},
    {"atan", mica_atan, 1.6, 0, 1, false, false, false},
    {"gelu", mica_gelu, 0, 1, 1.2, false, false, false},
    {"gelu_tanh", mica_gelu_tanh, 0, 1, 1.2, false, false, false},
    {"silu", mica_silu, 0, 1, 1.2, false, false, false},
    {"softplus", mica_softplus, 0.7, 1, 1, false, false, false},
    {"lecun_tanh", mica_lecun_tanh, 1.8, 0, 1.2, false, false, false},
    {"leaky_relu", fuzz_leaky, 0, 1, 1, true, false, false},
    {"elu", fuzz_elu, 0.5, 1, 1, true, false, false},
    {"log(1+x2)", fuzz_log_of, 1, 2, 1, false, false, false},
    {"sqrt(1+x2)", fuzz_sqrt_of, 1, 1, 1, false, false, false},
    {"rsqrt(1+x2)", fuzz_rsqrt_of, 1, 0, 1, false, false, false},
    {"1/(1+x2)", fuzz_over_of, 1, 0, 1, false, false, false},
    {"asin(tanh)", fuzz_asin_of, 0.6, 0, 1, false, false, false},
    {"floor", mica_floor, 1, 1, 1, false, true, true},
    {"ceil", mica_ceil, 1, 1, 1, false, true, true},
    {"round", mica_round, 1, 1, 1, false, true, true},
    {"sign", mica_sign, 1, 0, 1, false, true, true},
    {"isnan", mica_isnan, 1, 0, 1, false, true, false},
    {"isfinite", mica_isfinite, 1, 0, 1, false, true, false},
    {"logical_not", mica_logical_not, 1, 0, 1, false, true, true},
    {"bitwise_not", mica_bitwise_not, 1e30, 0, 1, false, true, false},
};

static mica_array *fuzz_make_unary(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    return fuzz_unaries[a->n].make(s, x[0]);
}

static void fuzz_step_unary(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    const fuzz_args a = {.n = fuzz_below(p, (int)(sizeof fuzz_unaries / sizeof fuzz_unaries[0]))};
    const fuzz_unary *u = &fuzz_unaries[a.n];
    if (!x || (u->jumps && x->off > 0)) return;
    const bool whole = !fuzz_is_float(x->dtype);
    if (whole && !u->exact && x->top > fuzz_limit(MICA_F32)) return;
    double top = u->base + u->slope * x->top;
    if (whole && u->exact && u->make == mica_neg) top = fuzz_int_most(x->dtype); /* may wrap */
    const mica_dtype d = whole ? MICA_F32 : x->dtype;
    /* f16 and bf16 round an f32 result; composed forms also round intermediate values, which may be larger */
    const bool composed = strchr(u->name, '(') != NULL;
    const double units = u->exact ? x->off > 0 ? 2 : 0 : composed ? 24 : fuzz_unit(d) > fuzz_unit(MICA_F32) ? 4 : 12;
    fuzz_one(p, u->name, fuzz_make_unary, x, &a, top,
             fuzz_off(d, x->off, u->gain, units, composed ? fmax(top, x->top) : top), u->kink && x->off > 0);
}

static mica_array *fuzz_make_exp(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    return a->flag ? mica_exp(s, x[0]) : mica_square(s, x[0]);
}

static void fuzz_step_steep(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    const fuzz_args a = {.flag = fuzz_byte(p) & 1};
    if (!x || (a.flag && x->top > 12) || (x->top > fuzz_limit(MICA_F32) && a.flag)) return;
    const double top = a.flag ? exp(x->top) : x->top * x->top, gain = a.flag ? exp(x->top) : 2 * x->top;
    const mica_dtype d = fuzz_is_float(x->dtype) ? x->dtype : MICA_F32;
    fuzz_one(p, a.flag ? "exp" : "square", fuzz_make_exp, x, &a, top,
             fuzz_off(d, x->off, 1.1 * gain,
                      a.flag       ? 16
                      : x->off > 0 ? 2
                                   : 0,
                      top),
             false);
}

/* ---------------------------------------------------- two and three inputs -- */

static mica_array *fuzz_over(mica_scope *s, mica_array *a, mica_array *b)
{
    return mica_div(s, a, fuzz_plus_square(s, b));
}
static mica_array *fuzz_power(mica_scope *s, mica_array *a, mica_array *b)
{
    return mica_pow(s, mica_add(s, mica_sigmoid(s, a), mica_scalar(s, 1)), mica_tanh(s, b));
}

/* Floats are divided by 1 + b^2, because x / 0 is infinite. Integers divided by 0 give 0. */
static mica_array *fuzz_divisor(mica_scope *s, mica_array *a, mica_array *b)
{
    return fuzz_is_float(mica_dtype_promote(mica_array_dtype(a), mica_array_dtype(b))) ? fuzz_plus_square(s, b) : b;
}
static mica_array *fuzz_floor_div(mica_scope *s, mica_array *a, mica_array *b)
{
    return mica_floor_div(s, a, fuzz_divisor(s, a, b));
}
static mica_array *fuzz_mod(mica_scope *s, mica_array *a, mica_array *b)
{
    return mica_mod(s, a, fuzz_divisor(s, a, b));
}

typedef enum fuzz_bound { FUZZ_SUM, FUZZ_PRODUCT, FUZZ_CHOICE, FUZZ_QUOTIENT, FUZZ_POWER, FUZZ_EXACT_ONLY } fuzz_bound;

static const struct {
    const char *name;
    mica_array *(*make)(mica_scope *s, mica_array *a, mica_array *b);
    fuzz_bound bound;
} fuzz_binaries[] = {
    {"add", mica_add, FUZZ_SUM},
    {"sub", mica_sub, FUZZ_SUM},
    {"mul", mica_mul, FUZZ_PRODUCT},
    {"div(1+b2)", fuzz_over, FUZZ_QUOTIENT},
    {"maximum", mica_maximum, FUZZ_CHOICE},
    {"minimum", mica_minimum, FUZZ_CHOICE},
    {"pow", fuzz_power, FUZZ_POWER},
    {"floor_div", fuzz_floor_div, FUZZ_EXACT_ONLY},
    {"mod", fuzz_mod, FUZZ_EXACT_ONLY},
    {"equal", mica_equal, FUZZ_EXACT_ONLY},
    {"less", mica_less, FUZZ_EXACT_ONLY},
    {"greater_equal", mica_greater_equal, FUZZ_EXACT_ONLY},
    {"logical_and", mica_logical_and, FUZZ_EXACT_ONLY},
    {"logical_xor", mica_logical_xor, FUZZ_EXACT_ONLY},
    {"bitwise_or", mica_bitwise_or, FUZZ_EXACT_ONLY},
    {"bitwise_and", mica_bitwise_and, FUZZ_EXACT_ONLY},
    {"shift_left", mica_shift_left, FUZZ_EXACT_ONLY},
    {"shift_right", mica_shift_right, FUZZ_EXACT_ONLY},
};

static mica_array *fuzz_make_binary(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    return fuzz_binaries[a->n].make(s, x[0], x[1]);
}

static void fuzz_step_binary(fuzz_program *p)
{
    const fuzz_value *in[2];
    const bool any = fuzz_operands(p, in, 2);
    const fuzz_args args = {.n = fuzz_below(p, (int)(sizeof fuzz_binaries / sizeof fuzz_binaries[0]))};
    if (!any) return;
    const double a = in[0]->top, b = in[1]->top, off = in[0]->off + in[1]->off;
    const mica_dtype d = mica_dtype_promote(in[0]->dtype, in[1]->dtype);
    const bool whole = !fuzz_is_float(d);
    /* composed forms round to the dtype of one operand before they use the other */
    mica_dtype rounding = whole ? MICA_F32 : d;
    for (int i = 0; i < 2; i++) {
        const mica_dtype own = fuzz_is_float(in[i]->dtype) ? in[i]->dtype : MICA_F32;
        if (fuzz_binaries[args.n].bound == FUZZ_POWER && fuzz_unit(own) > fuzz_unit(rounding)) rounding = own;
    }
    /* a large integer operand can exceed the limit of the float result dtype */
    if (!whole && (a > fuzz_limit(d) || b > fuzz_limit(d))) return;
    const double wraps = whole ? fuzz_int_most(d) : 0;
    double top = 0, from = off, units = off > 0 ? 2 : 0;
    bool kink = false;
    switch (fuzz_binaries[args.n].bound) {
    case FUZZ_SUM: top = a + b + wraps; break;
    case FUZZ_PRODUCT:
        top = a * b + wraps;
        from = a * in[1]->off + b * in[0]->off + in[0]->off * in[1]->off;
        break;
    case FUZZ_CHOICE:
        top = fmax(a, b);
        kink = off > 0;
        break;
    case FUZZ_QUOTIENT:
        if (a > 1e6 || b > 1e6) return;
        top = a;
        from = in[0]->off + a * in[1]->off;
        units = 8;
        break;
    case FUZZ_POWER:
        if (a > 1e6 || b > 1e6) return;
        top = 2;
        from = 2 * off;
        units = 32;
        break;
    case FUZZ_EXACT_ONLY:
        if (off > 0) return;
        top = a + b * b + 2 + wraps;
        break;
    }
    fuzz_apply(p, fuzz_binaries[args.n].name, fuzz_make_binary, in, 2, &args, top,
               fuzz_off(rounding, from, 1.01, units, top), kink);
}

static mica_array *fuzz_make_ternary(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    if (a->n == 0) return mica_where(s, x[0], x[1], x[2]);
    return a->n == 1 ? mica_clip(s, x[0], x[1], x[2]) : mica_fma(s, x[0], x[1], x[2]);
}

static void fuzz_step_ternary(fuzz_program *p)
{
    const fuzz_value *in[3];
    const bool any = fuzz_operands(p, in, 3);
    const fuzz_args args = {.n = fuzz_below(p, 3)};
    if (!any || (args.n == 0 && in[0]->off > 0)) return;
    const mica_dtype pair = mica_dtype_promote(in[1]->dtype, in[2]->dtype);
    const mica_dtype d = args.n == 0 ? pair : mica_dtype_promote(pair, in[0]->dtype);
    for (int i = args.n == 0; i < 3; i++)
        if (fuzz_is_float(d) && in[i]->top > fuzz_limit(d)) return;
    const double off = in[0]->off + in[1]->off + in[2]->off;
    const double choice = fmax(in[1]->top, in[2]->top);
    const double top = args.n == 0   ? choice
                       : args.n == 1 ? fmax(choice, in[0]->top)
                                     : in[0]->top * in[1]->top + in[2]->top;
    const double gain = args.n == 2 ? 1 + in[0]->top + in[1]->top + off : 1;
    const mica_dtype rounding = fuzz_is_float(d) ? d : MICA_F32;
    const double wraps = fuzz_is_float(d) ? 0 : fuzz_int_most(d);
    fuzz_apply(p,
               args.n == 0   ? "where"
               : args.n == 1 ? "clip"
                             : "fma",
               fuzz_make_ternary, in, 3, &args, top + wraps, fuzz_off(rounding, off, gain, off > 0 ? 2 : 0, top),
               args.n == 1 && off > 0);
}

static mica_array *fuzz_make_cast(mica_scope *s, mica_array *const *x, const fuzz_args *a)
{
    return mica_cast(s, x[0], a->dtype);
}

static void fuzz_step_cast(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    const fuzz_args a = {.dtype = fuzz_dtype(p)};
    if (!x || (x->off > 0 && !fuzz_is_float(a.dtype))) return;
    double top = x->top;
    if (!fuzz_is_float(a.dtype) && !fuzz_is_float(x->dtype)) top = fuzz_int_most(a.dtype); /* wraps */
    fuzz_one(p, "cast", fuzz_make_cast, x, &a, top + (fuzz_is_float(a.dtype) ? 0 : 1),
             fuzz_is_float(a.dtype) ? fuzz_off(a.dtype, x->off, 1, x->off > 0 ? 2 : 0, x->top) : 0, false);
}

#endif
