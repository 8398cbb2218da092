/* Every op of ops.def on the cpu backend against ref: every dtype that its shape rule allows, every
 * layout, sizes around the vector sizes, empty arrays, arrays without axes. An op without a case is
 * a failure. So is a dtype that the rule wrongly allows or wrongly refuses.
 *
 * Metal runs the same cases. Where kernels are compiled in software it runs only some: each op in
 * f32, a third of the ops in one more dtype, few layouts. MICA_TEST_DENSE=1 runs all.
 *
 * runs: first */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "parity_cases.h"
#include "test.h"

static mica_engine *ref, *other;
static bool is_sampled; /* other is metal, and only some cases run */

/* Runs a case on both engines; false after a failure, which is reported. */
static bool run_both(const parity_call *call, const parity_shape *row, parity_layout layout, uint64_t seed)
{
    const parity_case *c = call->c;
    parity_input in[PARITY_MAX_IN];
    parity_result want, got, scale = {0};
    parity_inputs_make(call, row, layout, seed, in);
    parity_run(ref, call, in, &want);
    parity_run(other, call, in, &got);
    const parity_tolerance tolerance = parity_tolerance_of(c->op, want.dtype, parity_terms(c, in, &want));
    const bool scaled = tolerance.scaled && want.status == MICA_OK && !want.skipped && mica__is_float(want.dtype);
    if (scaled) {
        for (int i = 0; i < c->n_in; i++) parity_input_abs(&in[i]);
        parity_run(ref, call, in, &scale);
    }
    char text[PARITY_TEXT] = "", inputs[256];
    bool good = parity_agree(&got, &want, scaled ? &scale : NULL, &tolerance, text);
    if (!good) {
        parity_inputs_text(c, row, layout, inputs);
        test_fail(__FILE__, __LINE__, "variant %d of %s: %s", call->variant, inputs, text);
    }
    if (want.status != MICA_OK && want.status != MICA_ERR_SHAPE) good = EXPECT_MSG(false, "%s", want.error);
    parity_result_free(&scale);
    parity_result_free(&got);
    parity_result_free(&want);
    parity_inputs_free(c, in);
    return good;
}

/* When sampling: one layout besides contiguous, for the last row of shapes of every fourth op;
 * arrays without axes only for every eighth op. Each of them needs another kernel to be compiled. */
static bool is_chosen_layout(const parity_case *c, const parity_shape *row, int i, int layout)
{
    if (c->n_in > 0 && row[0].ndim == 0) return c->op % 8 == 0;
    if (layout == PARITY_CONTIGUOUS) return true;
    return c->op % 4 == 1 && i == c->n_shape - 1 && layout == 1 + (int)c->op / 4 % (PARITY_LAYOUTS - 1);
}

/* All rows of shapes contiguous. Rows whose first array has more elements than a
 * vector also run in every other layout. */
static void run_case(const parity_case *c, mica_dtype dtype)
{
    enum { ENOUGH = 5 }; /* maximum failures per case */
    /* from the name: a new op in the table does not change the seeds of others */
    uint64_t seed = (uint64_t)dtype;
    for (const char *p = c->name; *p; p++) seed = seed * 31 + (unsigned char)*p;
    int failures = 0;
    for (int variant = 0; variant < c->n_variant; variant++) {
        const parity_call call = {c, dtype, variant};
        for (int i = 0; i < c->n_shape && failures < ENOUGH; i++) {
            const parity_shape *row = c->n_in ? &c->shapes[i * c->n_in] : NULL;
            for (int layout = 0; layout < PARITY_LAYOUTS; layout++) {
                if (layout > 0 && (c->n_in == 0 || row[0].ndim == 0)) break;
                if (is_sampled && !is_chosen_layout(c, row, i, layout)) continue;
                failures += !run_both(&call, row, (parity_layout)layout, seed++ * 31);
            }
        }
    }
}

/* f32 if the op has it; one other dtype for every third op and for ops without f32. */
static bool is_chosen(const parity_case *c, uint32_t wanted, int dtype)
{
    const uint32_t others = wanted & ~(1u << MICA_F32) & ~(1u << MICA_F64);
    int nth = others ? (int)c->op % __builtin_popcount(others) : 0, other_dtype = 0;
    while (others && (!(others >> other_dtype & 1) || nth-- > 0)) other_dtype++;
    const bool both = c->op % 3 == 0 || !(wanted >> MICA_F32 & 1);
    return dtype == MICA_F32 || (both && others && dtype == other_dtype);
}

static void run_dtypes(const parity_case *c)
{
    const uint32_t allowed = parity_rule_dtypes(c->op), wanted = c->dtypes ? c->dtypes : allowed;
    if (!allowed) test_fail(__FILE__, __LINE__, "the shape rule of %s is not listed in parity_cases_map.c", c->name);
    for (int d = 0; d < MICA__DTYPE_COUNT; d++) {
        if (!(wanted >> d & 1) || (is_sampled && !is_chosen(c, wanted, d))) continue;
        test_case("%s: %s %s", mica_engine_backend(other), c->name, mica_dtype_name((mica_dtype)d));
        run_case(c, (mica_dtype)d);
    }
}

static const parity_case *const tables[] = {parity_cases_view, parity_cases_reduce, parity_cases_nn, parity_cases_index,
                                            parity_cases_loop};

static void open_engines(const char *backend)
{
    ref = parity_engine("ref", MICA_PASS_ALL, 1);
    other = parity_engine(backend, MICA_PASS_ALL, 2);
    is_sampled = strcmp(backend, "metal") == 0 && !getenv("MICA_TEST_DENSE");
}

static void close_engines(void)
{
    mica_close(ref);
    mica_close(other);
}

static void run_map_ops(const char *backend)
{
    open_engines(backend);
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        parity_case c;
        if (parity_map_case((mica__op)op, &c)) run_dtypes(&c);
    }
    close_engines();
}

static void run_other_ops(const char *backend)
{
    open_engines(backend);
    for (int t = 0; t < PARITY_COUNT(tables); t++)
        for (const parity_case *c = tables[t]; c->name; c++) run_dtypes(c);
    close_engines();
}

TEST(every_map_op) { run_map_ops("cpu"); }
TEST(every_other_op) { run_other_ops("cpu"); }

#define SKIP_WITHOUT_METAL()                                                      \
    do {                                                                          \
        const char *why_;                                                         \
        if (!mica__backend_metal.is_available(&why_)) SKIP("no Metal: %s", why_); \
    } while (0)

TEST(every_map_op_on_metal)
{
    SKIP_WITHOUT_METAL();
    run_map_ops("metal");
}

TEST(every_other_op_on_metal)
{
    SKIP_WITHOUT_METAL();
    run_other_ops("metal");
}

TEST(no_op_is_missing)
{
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        parity_case c;
        bool found = parity_map_case((mica__op)op, &c);
        for (int t = 0; t < PARITY_COUNT(tables); t++)
            for (const parity_case *row = tables[t]; row->name; row++) found = found || row->op == (mica__op)op;
        if (!found) test_fail(__FILE__, __LINE__, "%s has no parity case", mica__op_get((uint16_t)op)->name);
    }
}

/* Halfway between two numbers of f16 or bf16, and slightly more or less: the added number
 * decides the rounding, however small it is. */
TEST(fma_rounds_once)
{
    static const struct {
        mica_dtype dtype;
        double a, b, tiny;
    } rows[] = {{MICA_F16, 1 + 0x1p-10, 1.5, 0x1p-24},
                {MICA_BF16, 1 + 0x1p-7, 1.5, 0x1p-30},
                {MICA_F32, 1 + 0x1p-23, 1.5, 0x1p-60},
                {MICA_F64, 1 + 0x1p-52, 1.5, 0x1p-120}};
    parity_case c;
    open_engines("cpu");
    if (!parity_map_case(MICA__OP_FMA, &c)) return;
    for (int i = 0; i < PARITY_COUNT(rows); i++) {
        const mica_dtype d = rows[i].dtype;
        const parity_call call = {&c, d, 0};
        test_case("%s", mica_dtype_name(d));
        for (int sign = -1; sign <= 1; sign++) {
            parity_input in[PARITY_MAX_IN];
            parity_result want, got;
            char text[PARITY_TEXT] = "";
            parity_inputs_make(&call, &c.shapes[c.n_in], PARITY_CONTIGUOUS, 1, in);
            mica__set_f64(d, in[0].memory, 0, rows[i].a);
            mica__set_f64(d, in[1].memory, 0, rows[i].b);
            mica__set_f64(d, in[2].memory, 0, sign * rows[i].tiny);
            parity_run(ref, &call, in, &want);
            parity_run(other, &call, in, &got);
            if (!parity_same_bits(&got, &want, text)) test_fail(__FILE__, __LINE__, "%+d: %s", sign, text);
            /* above halfway rounds up, below down; the tie goes to the even number, which is up */
            const double step = ldexp(1, 1 - parity_float_of(d)->digits);
            EXPECT_CLOSE(mica__get_f64(d, want.data, 0), sign < 0 ? 1.5 + step : 1.5 + 2 * step, 0, 0);
            parity_result_free(&want);
            parity_result_free(&got);
            parity_inputs_free(&c, in);
        }
    }
    close_engines();
}

/* The shape rule of a MAP op allows exactly the dtypes of the table. */
TEST(dtypes_of_the_shape_rules)
{
    open_engines("cpu");
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        parity_case c;
        if (!parity_map_case((mica__op)op, &c)) continue;
        test_case("%s", c.name);
        for (int d = 0; d < MICA__DTYPE_COUNT; d++) {
            const parity_call call = {&c, (mica_dtype)d, MICA_F32};
            parity_input in[PARITY_MAX_IN];
            parity_result r;
            parity_inputs_make(&call, &c.shapes[c.n_in], PARITY_CONTIGUOUS, 1, in);
            parity_run(ref, &call, in, &r);
            const bool allowed = parity_rule_dtypes((mica__op)op) >> d & 1;
            EXPECT_INT(r.status, allowed ? MICA_OK : MICA_ERR_DTYPE);
            parity_result_free(&r);
            parity_inputs_free(&c, in);
        }
    }
    close_engines();
}
