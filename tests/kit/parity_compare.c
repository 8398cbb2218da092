/* See parity_compare.h. */
#include "parity_compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "op_facts.h"
#include "parity_data.h"

void parity_result_free(parity_result *r)
{
    free(r->data);
    r->data = NULL;
}

/* ----------------------------------------------------------- the table ---- */

/* The reference computes every element in double and rounds once to the dtype.
 *
 * EXACT   Integers, bool, movement, comparisons. For floats also the operations
 *         that IEEE rounds correctly: + - * / sqrt in f32 equal the rounded
 *         double. Rounding that to f16 or bf16 is correct too, because f32 has
 *         at least 2 p + 2 digits for the p digits of both.
 * ULPS    Elementary functions: a good f32 routine has an error of 1 or 2 ulp; a
 *         composition of two (gelu, silu, softplus ...) 1 or 2 more: 4. After
 *         rounding to 8 or 11 digits this is at most one ulp of f16 or bf16.
 * FOLD    Sums and products: each of the n operations of any order adds at most
 *         one roundoff of the sum (product) of absolute values: n u sum|x|. For
 *         f16 and bf16 the accumulator is f32, and its rounding adds an ulp.
 * ROWS    Functions of a whole row combine roundoffs of a sum and of the
 *         elements. Values are of the order of 1: a multiple of u. */
typedef enum parity_class { PARITY_EXACT, PARITY_ULPS, PARITY_FOLD, PARITY_ROWS } parity_class;

typedef struct parity_class_row {
    parity_class kind;
    double amount;                /* ULPS: ulp of f32 and f64; ROWS: multiples of u */
    bool any_zero;                /* IEEE does not define the sign of a zero result */
} parity_class_row;

/* Ops that are not in op_facts.h; those without a row are exact. */
static const parity_class_row parity_classes[MICA__OP_COUNT] = {
    [MICA__OP_MIN] = {PARITY_EXACT, 0, true},
    [MICA__OP_MAX] = {PARITY_EXACT, 0, true},
    [MICA__OP_SUM] = {PARITY_FOLD, 0, true},
    [MICA__OP_PROD] = {PARITY_FOLD, 0, true},
    [MICA__OP_CUMSUM] = {PARITY_FOLD, 0, true},
    [MICA__OP_CUMPROD] = {PARITY_FOLD, 0, true},
    [MICA__OP_MATMUL] = {PARITY_FOLD, 0, true},
    /* values up to 100; without quantised x an error of 2^-21 of the largest x, else the same bits */
    [MICA__OP_QMATMUL] = {PARITY_ROWS, 4096, true},
    [MICA__OP_CONV] = {PARITY_FOLD, 0, true},
    [MICA__OP_UNWINDOW] = {PARITY_FOLD, 0, true},
    [MICA__OP_SCATTER] = {PARITY_FOLD, 0, true},
    /* exp(x - max): the difference, up to 16, is rounded before exp */
    [MICA__OP_SOFTMAX] = {PARITY_ULPS, 64, false},
    [MICA__OP_LOG_SOFTMAX] = {PARITY_ROWS, 64, true},
    [MICA__OP_LOGSUMEXP] = {PARITY_ROWS, 64, true},
    [MICA__OP_LAYER_NORM] = {PARITY_ROWS, 64, true},
    [MICA__OP_RMS_NORM] = {PARITY_ROWS, 64, true},
    [MICA__OP_ATTENTION] = {PARITY_ROWS, 256, true},
    [MICA__OP_ATTENTION_CACHED] = {PARITY_ROWS, 256, true},
    [MICA__OP_ATTENTION_GRAD] = {PARITY_ROWS, 256, true},
    [MICA__OP_SYNAPSES] = {PARITY_ROWS, 256, true},
    [MICA__OP_SYNAPSES_GRAD] = {PARITY_ROWS, 1024, true}, /* sums of up to a thousand terms */
    [MICA__OP_ROPE_TABLE] = {PARITY_ULPS, 4, true},
    [MICA__OP_ROPE] = {PARITY_ROWS, 64, true},
    [MICA__OP_SCAN] = {PARITY_ROWS, 256, true}, /* the recurrences decay: values stay below 10 */
    [MICA__OP_PART] = {PARITY_ROWS, 256, true},
};

parity_tolerance parity_tolerance_of(mica__op op, mica_dtype dtype, int64_t terms)
{
    const op_facts *facts = op_facts_of(op);
    const double ulps = facts ? op_backend_ulps(facts) : 0;
    const parity_class_row map = {ulps > 0 ? PARITY_ULPS : PARITY_EXACT, ulps, facts && facts->test.any_zero};
    const parity_class_row *row = facts ? &map : &parity_classes[op];
    const double half = dtype == MICA_F16 || dtype == MICA_BF16 ? 1 : 0;
    parity_tolerance t = {.any_zero = row->any_zero};
    switch (row->kind) {
    case PARITY_EXACT: break;
    case PARITY_ULPS: t.ulps = half != 0 ? 1 : row->amount; break;
    case PARITY_FOLD:
        t = (parity_tolerance){.ulps = half, .rounds = (double)terms, .scaled = true, .any_zero = true};
        break;
    case PARITY_ROWS:
        t.ulps = half;
        t.rounds = row->amount;
        break;
    }
    return t;
}

/* ---------------------------------------------------------- comparison ---- */

/* The distance to the next number of the dtype. */
static double ulp_of(mica_dtype dtype, double value)
{
    const parity_float *f = parity_float_of(dtype);
    int exponent;
    frexp(value, &exponent);
    return fmax(ldexp(1.0, exponent - f->digits), f->least);
}

/* The roundoff of the arithmetic. */
static double unit_of(mica_dtype dtype) { return dtype == MICA_F64 ? 0x1p-53 : 0x1p-24; }

static bool same_zero(double a, double b, bool any) { return any || a != 0 || signbit(a) == signbit(b); }

static bool float_agrees(mica_dtype dtype, double got, double want, double scale, const parity_tolerance *t)
{
    if (isnan(want)) return isnan(got);
    if (got == want) return same_zero(got, want, t->any_zero);
    /* Written as "within", so that NaN fails; an infinity matches only itself. */
    if (!isfinite(want) || !isfinite(got)) return false;
    /* below the smallest normal number each rounding of a fold has an absolute error */
    const double underflow = t->scaled ? t->rounds * (dtype == MICA_F64 ? 0x1p-1074 : 0x1p-149) : 0;
    return fabs(got - want) <= t->ulps * ulp_of(dtype, want) + t->rounds * unit_of(dtype) * scale + underflow;
}

static bool int_agrees(const parity_result *got, const parity_result *want, int64_t i)
{
    const size_t size = mica_dtype_size(want->dtype);
    return memcmp(got->data + (size_t)i * size, want->data + (size_t)i * size, size) == 0;
}

static bool same_type(const parity_result *got, const parity_result *want, char text[PARITY_TEXT])
{
    char a[MICA__SHAPE_TEXT], b[MICA__SHAPE_TEXT];
    if (got->status != want->status) {
        snprintf(text, PARITY_TEXT, "status %d (%s), not %d (%s)", got->status, got->error, want->status, want->error);
        return false;
    }
    if (got->skipped || want->skipped || want->status != MICA_OK) return got->skipped == want->skipped;
    bool same = got->dtype == want->dtype && got->ndim == want->ndim;
    for (int d = 0; d < want->ndim && same; d++) same = got->shape[d] == want->shape[d];
    if (!same)
        snprintf(text, PARITY_TEXT, "%s %s, not %s %s", mica_dtype_name(got->dtype),
                 mica__shape_text(a, got->ndim, got->shape), mica_dtype_name(want->dtype),
                 mica__shape_text(b, want->ndim, want->shape));
    return same;
}

static void describe(const parity_result *got, const parity_result *want, int64_t i, char text[PARITY_TEXT])
{
    char shape[MICA__SHAPE_TEXT];
    mica__shape_text(shape, want->ndim, want->shape);
    if (!mica__is_float(want->dtype)) {
        snprintf(text, PARITY_TEXT, "%s %s: element %" PRId64 " is %" PRId64 ", not %" PRId64,
                 mica_dtype_name(want->dtype), shape, i, mica__get_i64(got->dtype, got->data, i),
                 mica__get_i64(want->dtype, want->data, i));
        return;
    }
    const double a = mica__get_f64(got->dtype, got->data, i), b = mica__get_f64(want->dtype, want->data, i);
    snprintf(text, PARITY_TEXT, "%s %s: element %" PRId64 " is %.17g, not %.17g (off by %.3g, %.3g ulp)",
             mica_dtype_name(want->dtype), shape, i, a, b, fabs(a - b), fabs(a - b) / ulp_of(want->dtype, b));
}

bool parity_agree(const parity_result *got, const parity_result *want, const parity_result *scale,
                  const parity_tolerance *tolerance, char text[PARITY_TEXT])
{
    if (!same_type(got, want, text)) return false;
    for (int64_t i = 0; i < want->n; i++) {
        const bool agrees =
            mica__is_float(want->dtype)
                ? float_agrees(want->dtype, mica__get_f64(got->dtype, got->data, i),
                               mica__get_f64(want->dtype, want->data, i),
                               scale && tolerance->scaled ? mica__get_f64(scale->dtype, scale->data, i) : 1, tolerance)
                : int_agrees(got, want, i);
        if (agrees) continue;
        describe(got, want, i, text);
        return false;
    }
    return true;
}

bool parity_same_bits(const parity_result *got, const parity_result *want, char text[PARITY_TEXT])
{
    const parity_tolerance exact = {0};
    return parity_agree(got, want, NULL, &exact, text);
}

bool parity_near(const parity_result *got, const parity_result *want, double tolerance, char text[PARITY_TEXT])
{
    double top = 0.1;
    for (int64_t i = 0; i < want->n && mica__is_float(want->dtype); i++) {
        const double v = fabs(mica__get_f64(want->dtype, want->data, i));
        if (isfinite(v)) top = fmax(top, v);
    }
    const parity_tolerance t = {.rounds = tolerance * top / unit_of(want->dtype), .any_zero = true};
    return parity_agree(got, want, NULL, &t, text);
}
