/* Random programs: cpu must compute what ref computes, with any set of passes. The first bytes of
 * the input choose passes, threads and the way of evaluation; the rest are steps (graph_maps.h,
 * graph_shapes.h). Invalid shapes and dtypes are frequent: both engines must refuse the same ones.
 * At the end all values are compared, then the gradient of the sum of the last float value. Nothing
 * may leak.
 *
 * FUZZ_TRACE=1 in the environment prints the program while it is built. */
#include "graph_maps.h"
#include "graph_shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ------------------------------------------------------------ comparing --- */

/* Row-major elements; malloc. */
static char *fuzz_bytes(const fuzz_program *p, mica_array *x)
{
    char *bytes = malloc(mica_array_nbytes(x) + 1);
    if (!bytes) abort();
    if (mica_copy_out(x, bytes, mica_array_nbytes(x)) != MICA_OK) fuzz_fail(p, mica_last_error());
    return bytes;
}

static double fuzz_get(mica_dtype d, const char *bytes, int64_t i)
{
    uint16_t half;
    float f;
    double wide;
    switch ((int)d) {
    case MICA_F64: memcpy(&wide, bytes + i * 8, 8); return wide;
    case MICA_F32: memcpy(&f, bytes + i * 4, 4); return (double)f;
    default:
        memcpy(&half, bytes + i * 2, 2);
        return (double)(d == MICA_F16 ? mica_f16_to_f32(half) : mica_bf16_to_f32(half));
    }
}

static bool fuzz_within(double got, double want, double off)
{
    if (isnan(want)) return isnan(got);
    return got == want || (isfinite(want) && fabs(got - want) <= off);
}

/* off is allowed in addition to the rounding to the dtype. */
static void fuzz_compare(const fuzz_program *p, const char *what, mica_array *const side[2], double off)
{
    const mica_dtype d = mica_array_dtype(side[0]);
    const int64_t n = mica_array_size(side[0]);
    char *want = fuzz_bytes(p, side[0]), *got = fuzz_bytes(p, side[1]);
    if (!fuzz_is_float(d) && memcmp(want, got, mica_array_nbytes(side[0])) != 0) fuzz_fail(p, what);
    for (int64_t i = 0; i < n && fuzz_is_float(d); i++) {
        const double a = fuzz_get(d, got, i), b = fuzz_get(d, want, i);
        if (fuzz_within(a, b, off)) continue;
        fprintf(stderr, "%s: element %lld of %s is %.17g, not %.17g; off by %g, at most %g\n", what, (long long)i,
                mica_dtype_name(d), a, b, fabs(a - b), off);
        fuzz_fail(p, what);
    }
    free(want);
    free(got);
}

/* ----------------------------------------------------------- evaluating --- */

/* Evaluates arrays of both sides; the statuses must agree. Exception: the algebra pass
 * replaces x ^ x by 0, so an index out of range in x is not reported. */
static bool fuzz_eval(fuzz_program *p, mica_array *const *ref, mica_array *const *cpu, size_t n, bool async)
{
    mica_status status[2] = {mica_eval(p->scope[0], ref, n), MICA_OK};
    if (async) {
        mica_event *event = NULL;
        status[1] = mica_eval_async(p->scope[1], cpu, n, &event);
        if (status[1] == MICA_OK) status[1] = mica_wait(event);
        mica_event_free(event);
    } else {
        status[1] = mica_eval(p->scope[1], cpu, n);
    }
    if (p->trace)
        fprintf(stderr, "   eval of %zu: %s, %s\n", n, mica_status_text(status[0]), mica_status_text(status[1]));
    const bool unnoticed = status[0] == MICA_ERR_INDEX && status[1] == MICA_OK && (p->passes & MICA_PASS_ALGEBRA);
    if (status[0] != status[1] && !unnoticed) fuzz_fail(p, "evaluation ends differently");
    for (int e = 0; e < 2; e++) mica_scope_clear_error(p->scope[e]);
    return status[0] == MICA_OK;
}

static void fuzz_step_eval(fuzz_program *p)
{
    const fuzz_value *x = fuzz_pick(p);
    if (x) fuzz_eval(p, &x->side[0], &x->side[1], 1, fuzz_byte(p) & 1);
}

/* The gradient of the sum of the last float value with respect to the float leaves. */
static void fuzz_gradient(fuzz_program *p, bool async)
{
    const fuzz_value *y = NULL;
    for (int i = p->n - 1; i >= 0 && !y; i--)
        if (fuzz_is_float(p->value[i].dtype)) y = &p->value[i];
    if (!y || p->n_leaf == 0) return;
    mica_array *grads[2][FUZZ_LEAVES];
    mica_status status[2];
    for (int e = 0; e < 2; e++) {
        mica_array *wrt[FUZZ_LEAVES], *loss = mica_sum(p->scope[e], y->side[e], NULL, 0, false);
        for (int i = 0; i < p->n_leaf; i++) wrt[i] = p->value[p->leaf[i]].side[e];
        status[e] = mica_grad(p->scope[e], loss, wrt, (size_t)p->n_leaf, grads[e]);
        mica_scope_clear_error(p->scope[e]);
    }
    if (status[0] != status[1]) fuzz_fail(p, "gradients are refused differently");
    if (status[0] != MICA_OK || !fuzz_eval(p, grads[0], grads[1], (size_t)p->n_leaf, async)) return;
    for (int i = 0; i < p->n_leaf; i++) {
        mica_array *const side[2] = {grads[0][i], grads[1][i]};
        if (!fuzz_same_type(side[0], side[1])) fuzz_fail(p, "gradients of different types");
        /* with f16 and bf16 the error of the backward pass has no useful bound */
        if (y->kink || fuzz_unit(p->coarsest) > fuzz_unit(MICA_F32)) continue;
        char *want = fuzz_bytes(p, side[0]);
        double top = 1;
        bool finite = true;
        for (int64_t k = 0; k < mica_array_size(side[0]); k++) {
            const double v = fabs(fuzz_get(mica_array_dtype(side[0]), want, k));
            finite = finite && isfinite(v);
            top = fmax(top, v);
        }
        free(want);
        if (finite) fuzz_compare(p, "gradient", side, top * (p->coarsest == MICA_F64 ? 1e-6 : 2e-2));
    }
}

/* -------------------------------------------------------------- running --- */

static mica_engine *fuzz_open(const char *backend, uint32_t passes, int threads)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = backend;
    options.passes = passes;
    options.threads = threads;
    mica_engine *e;
    if (mica_open(&options, &e) != MICA_OK) abort();
    return e;
}

static void fuzz_steps(fuzz_program *p)
{
    static void (*const steps[])(fuzz_program *) = {
        fuzz_step_data,   fuzz_step_wrap,    fuzz_step_made,   fuzz_step_unary,   fuzz_step_unary, fuzz_step_steep,
        fuzz_step_binary, fuzz_step_binary,  fuzz_step_binary, fuzz_step_ternary, fuzz_step_cast,  fuzz_step_view,
        fuzz_step_view,   fuzz_step_view,    fuzz_step_fold,   fuzz_step_fold,    fuzz_step_rows,  fuzz_step_join,
        fuzz_step_index,  fuzz_step_product, fuzz_step_scan,   fuzz_step_eval,
    };
    fuzz_step_data(p);
    for (int i = 0; i < FUZZ_STEPS && p->at < p->size && p->n < FUZZ_VALUES; i++)
        steps[fuzz_below(p, (int)(sizeof steps / sizeof steps[0]))](p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_program p = {.data = data, .size = size, .trace = getenv("FUZZ_TRACE") != NULL, .coarsest = MICA_F64};
    p.passes = (uint32_t)fuzz_byte(&p) & MICA_PASS_ALL;
    const int how = fuzz_byte(&p);
    p.engine[0] = fuzz_open("ref", MICA_PASS_ALL, 1);
    p.engine[1] = fuzz_open("cpu", p.passes, how & 3 ? 1 : 2);
    for (int e = 0; e < 2; e++) p.scope[e] = mica_scope_begin(p.engine[e]);
    fuzz_steps(&p);
    mica_array *all[2][FUZZ_VALUES];
    for (int i = 0; i < p.n; i++)
        for (int e = 0; e < 2; e++) all[e][i] = p.value[i].side[e];
    if (fuzz_eval(&p, all[0], all[1], (size_t)p.n, how & 4)) {
        for (int i = 0; i < p.n; i++) fuzz_compare(&p, "value", p.value[i].side, p.value[i].off);
        fuzz_gradient(&p, how & 8);
    }
    for (int e = 0; e < 2; e++) {
        mica_scope_end(p.scope[e]);
        mica_stats stats = {.struct_size = sizeof stats};
        mica_engine_stats(p.engine[e], &stats);
        if (stats.bytes_in_use != 0) fuzz_fail(&p, "memory in use after the scope ended");
        mica_close(p.engine[e]);
    }
    if (p.n_wrapped != atomic_load(&p.n_released)) fuzz_fail(&p, "wrapped memory was not released once");
    return 0;
}
