/* Every op of op_facts.h that has an oracle, on each backend, with and without passes, alone and
 * fused with another op, against the oracle in long double. Because of this test, entries of
 * ops.def and composed.def need no golden values from other programs.
 *
 * runs: metal, arm, check */
#include <math.h>

#include "on_device.h"
#include "op_facts.h"
#include "parity_run.h"
#include "test.h"

enum { N = 160 };

typedef struct oracle_run {
    const op_facts *facts;
    mica_array *alone, *fused;
} oracle_run;

typedef struct oracle_data {
    mica_dtype dtype;
    int n;
    double x[2][N];             /* operands as stored */
} oracle_data;

/* N numbers of the dtype inside the ranges, the second operand in another order than the first. */
static void fill(oracle_data *d, const op_facts *f, mica_dtype dtype)
{
    d->dtype = dtype;
    d->n = 0;
    for (int k = 0; k < N; k++) {
        bool inside = true;
        for (int i = 0; i < f->n_in; i++) {
            const op_range r = f->test.range[i];
            const double part = (i ? k * 57 % N : k) / (double)(N - 1), x = r.low + (r.high - r.low) * part;
            d->x[i][d->n] = mica__is_float(dtype) ? mica__round_f64(dtype, x) : floor(x);
            inside &= d->x[i][d->n] >= r.low && d->x[i][d->n] <= r.high;
        }
        d->n += inside;
    }
}

static mica_array *operand(mica_scope *s, const oracle_data *d, int i, double factor)
{
    char bytes[N * 8];
    const int64_t n = d->n;
    for (int k = 0; k < d->n; k++) {
        if (mica__is_float(d->dtype)) mica__set_f64(d->dtype, bytes, k, factor * d->x[i][k]);
        else mica__set_i64(d->dtype, bytes, k, (int64_t)(factor * d->x[i][k]));
    }
    return mica_from_data(s, d->dtype, 1, &n, bytes);
}

static mica_array *make(mica_scope *s, const op_facts *f, mica_array *x, mica_array *y)
{
    return f->n_in == 1 ? f->make1(s, x) : f->make2(s, x, y);
}

/* The allowed distance of a result in ulp. */
static double allowed(const op_facts *f, mica_dtype dtype, double x)
{
    const double rounding = 0.5001, ulps = op_backend_ulps(f);
    const bool composed = f->op == MICA__OP_COUNT; /* rounded after every op */
    if (dtype == MICA_F64) return (composed ? 4 : 8) + (f->test.tail ? 8 * x * x : 0);
    if (dtype == MICA_F32) return ulps + rounding;
    return (composed ? ulps : ulps > 0 ? 1 : 0) + rounding;
}

static void check(const oracle_run *run, const oracle_data *d, mica_array *got, const char *how)
{
    static char bytes[N * 8];
    const op_facts *f = run->facts;
    const mica_dtype dtype = mica_array_dtype(got);
    if (!EXPECT_MSG(mica_copy_out(got, bytes, mica_array_nbytes(got)) == MICA_OK, "%s", mica_last_error())) return;
    for (int k = 0; k < d->n; k++) {
        const double want = (double)f->oracle(d->x[0][k], d->x[1][k]);
        if (!mica__is_float(dtype)) {
            const int64_t value = mica__get_i64(dtype, bytes, k);
            if (!EXPECT_MSG(value == (want != 0), "%s: (%g, %g) gives %d", how, d->x[0][k], d->x[1][k], (int)value))
                return;
            continue;
        }
        if (dtype == MICA_F16 && fabs(want) > 65504) continue;
        const parity_float *format = parity_float_of(dtype);
        int exponent;
        frexp(want, &exponent);
        const double ulp = fmax(ldexp(1.0, exponent - format->digits), format->least);
        const double value = mica__get_f64(dtype, bytes, k), off = fabs(value - want) / ulp;
        if (!EXPECT_MSG(off <= allowed(f, dtype, d->x[0][k]), "%s: (%.17g, %.17g) gives %.17g, not %.17g (%.3g ulp)",
                        how, d->x[0][k], d->x[1][k], value, want, off))
            return;
    }
}

/* All ops in one graph. In the fused case another op produces the operand, with exactly the same numbers. */
static void run_dtype(mica_engine *e, mica_dtype dtype)
{
    static oracle_run run[OP_FACTS_MAX];
    static oracle_data data[OP_FACTS_MAX];
    mica_array *all[2 * OP_FACTS_MAX];
    size_t n_facts, n = 0, n_all = 0;
    const op_facts *f = op_facts_all(&n_facts);
    mica_scope *s = mica_scope_begin(e);
    CHECK_MSG(s, "%s", mica_last_error());
    for (size_t i = 0; i < n_facts; i++) {
        if (!op_has_oracle(&f[i])) continue;
        if (!mica__is_float(dtype) && strcmp(f[i].rule, "floating") != 0) continue;
        /* each op and dtype is a separate kernel on the software GPU; test_parity.c tests them */
        if (on_metal() && dtype != MICA_F32 && f[i].op != MICA__OP_COUNT) continue;
        oracle_data *d = &data[n];
        fill(d, &f[i], dtype);
        if (d->n == 0) continue;
        mica_array *y = f[i].n_in == 2 ? operand(s, d, 1, 1) : NULL;
        mica_array *half = mica_mul(s, operand(s, d, 0, 2), mica_scalar(s, 0.5));
        run[n] = (oracle_run){&f[i], make(s, &f[i], operand(s, d, 0, 1), y), make(s, &f[i], half, y)};
        all[n_all++] = run[n].alone;
        all[n_all++] = run[n].fused;
        n++;
    }
    const bool ok = EXPECT_MSG(mica_eval(s, all, n_all) == MICA_OK, "%s", mica_last_error());
    for (size_t i = 0; i < n && ok; i++) {
        test_case("%s, %s of %s", run[i].facts->name, mica_dtype_name(mica_array_dtype(run[i].alone)),
                  mica_dtype_name(dtype));
        check(&run[i], &data[i], run[i].alone, "alone");
        check(&run[i], &data[i], run[i].fused, "fused");
    }
    mica_scope_end(s);
}

static void run_on(const char *backend, uint32_t passes)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F64, MICA_F16, MICA_BF16, MICA_I32};
    mica_engine *e = parity_engine(device_for(backend), passes, 2);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!on_metal() || dtypes[i] != MICA_F64) run_dtype(e, dtypes[i]); /* Metal has no f64 */
    mica_close(e);
}

TEST(ref) { run_on("ref", MICA_PASS_ALL); }
TEST(cpu) { run_on("cpu", MICA_PASS_ALL); }
TEST(cpu_without_passes) { run_on("cpu", 0); }

/* test_golden.c fails for an op with float results that has neither an oracle nor golden cases.
 * An oracle must be defined on more than one point. */
TEST(oracles_have_ranges)
{
    size_t n;
    const op_facts *f = op_facts_all(&n);
    for (size_t i = 0; i < n; i++) {
        test_case("%s", f[i].name);
        if (f[i].op == MICA__OP_COUNT) EXPECT(op_has_oracle(&f[i]));
        for (int k = 0; k < f[i].n_in && op_has_oracle(&f[i]); k++)
            EXPECT(f[i].test.range[k].low < f[i].test.range[k].high);
    }
}
