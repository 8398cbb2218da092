/* Arrays that are large enough to be split into tasks. Programs, every kernel family and random
 * numbers give the same bits for any number of threads, and the programs match ref. */
#include <stdio.h>

#include "parity_programs.h"
#include "test.h"

static const int thread_counts[] = {1, 2, 3, 8};
enum { N_ENGINE = sizeof thread_counts / sizeof thread_counts[0] };

static mica_engine *engines[N_ENGINE], *ref;

static void open_engines(void)
{
    ref = parity_engine("ref", MICA_PASS_ALL, 1);
    for (int i = 0; i < N_ENGINE; i++) engines[i] = parity_engine("cpu", MICA_PASS_ALL, thread_counts[i]);
}

static void close_engines(void)
{
    mica_close(ref);
    for (int i = 0; i < N_ENGINE; i++) mica_close(engines[i]);
}

/* tolerance < 0: no comparison with ref. */
static void run_engines(const parity_call *call, const parity_shape *row, parity_layout layout, double tolerance)
{
    parity_input in[PARITY_MAX_IN];
    parity_result want, got;
    char text[PARITY_TEXT] = "", inputs[256] = "";
    parity_inputs_make(call, row, layout, 3, in);
    parity_inputs_text(call->c, row, layout, inputs);
    parity_run(engines[0], call, in, &want);
    if (want.status != MICA_OK) test_fail(__FILE__, __LINE__, "%s: %s", inputs, want.error);
    if (tolerance >= 0) {
        parity_run(ref, call, in, &got);
        if (!parity_near(&want, &got, tolerance, text))
            test_fail(__FILE__, __LINE__, "variant %d of %s: %s", call->variant, inputs, text);
        parity_result_free(&got);
    }
    for (int i = 1; i < N_ENGINE; i++) {
        parity_run(engines[i], call, in, &got);
        if (!parity_same_bits(&got, &want, text))
            test_fail(__FILE__, __LINE__, "variant %d of %s: %d threads: %s", call->variant, inputs, thread_counts[i],
                      text);
        parity_result_free(&got);
    }
    parity_result_free(&want);
    parity_inputs_free(call->c, in);
}

static void run_case(const parity_case *c, mica_dtype dtype, double tolerance)
{
    test_case("%s %s", c->name, mica_dtype_name(dtype));
    for (int v = 0; v < c->n_variant; v++)
        for (int i = 0; i < c->n_shape; i++) {
            const parity_call call = {c, dtype, v};
            const parity_shape *row = c->n_in ? &c->shapes[i * c->n_in] : NULL;
            run_engines(&call, row, PARITY_CONTIGUOUS, tolerance);
            if (c->n_in && i == 0) run_engines(&call, row, PARITY_TRANSPOSED, tolerance);
        }
}

TEST(programs)
{
    open_engines();
    for (const parity_program *p = parity_programs_large; p->c.name; p++) {
        run_case(&p->c, MICA_F32, parity_program_tolerance(p, MICA_F32));
        run_case(&p->c, MICA_BF16, parity_program_tolerance(p, MICA_BF16));
    }
    close_engines();
}

/* ---------------------------------------------------------- every family -- */

/* Rows of more than one size for ops over rows, with the attributes of variant 0
 * of their parity case. */
static const parity_shape row_shapes[] = {{2, {301, 130}}, {2, {3, 20011}}, {1, {50021}}};

static void run_rows(const parity_case *table)
{
    static const parity_shape windows[] = {{3, {7, 1501, 4}}, {2, {20011, 3}}};
    for (const parity_case *c = table; c->name; c++) {
        if (c->n_in != 1 || mica__op_get((uint16_t)c->op)->kind == MICA__VIEW) continue;
        parity_case large = *c;
        large.shapes = c->op == MICA__OP_UNWINDOW ? windows : row_shapes;
        large.n_shape = c->op == MICA__OP_UNWINDOW ? PARITY_COUNT(windows) : PARITY_COUNT(row_shapes);
        /* reductions name axes by variant: 2 and 3 are the first, 4 the second */
        if (mica__op_get((uint16_t)c->op)->kind == MICA__REDUCE) large.n_variant = 7;
        const uint32_t allowed = parity_rule_dtypes(c->op);
        run_case(&large, allowed >> MICA_F32 & 1 ? MICA_F32 : MICA_BOOL, -1);
        if (allowed >> MICA_F16 & 1) run_case(&large, MICA_F16, -1);
    }
}

TEST(rows)
{
    open_engines();
    run_rows(parity_cases_reduce);
    run_rows(parity_cases_index);
    close_engines();
}

/* ---------------------------------------------------------------- random -- */

static mica_array *build_random(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int64_t shape[] = {333, 101};
    (void)x;
    switch (call->variant) {
    case 0: return mica_random_uniform(s, call->dtype, 2, shape, -1, 1, 1);
    case 1: return mica_random_normal(s, call->dtype, 2, shape, 2);
    case 2: return mica_random_truncated_normal(s, call->dtype, 2, shape, -2, 2, 3);
    case 3: return mica_random_bernoulli(s, 2, shape, 0.3, 4);
    case 4: return mica_random_randint(s, MICA_I32, 2, shape, -5, 1000, 5);
    case 5: return mica_random_bits(s, MICA_U64, 2, shape, 6);
    case 6: return mica_random_bits(s, MICA_U32, 2, shape, 6);
    case 7: return mica_random_permutation(s, 30011, 7);
    case 8: return mica_random_categorical(s, mica_random_normal(s, call->dtype, 2, shape, 8), 9);
    default: return mica_mul(s, mica_random_normal(s, call->dtype, 2, shape, 2), mica_scalar(s, 3));
    }
}

TEST(random_numbers)
{
    const parity_case c = {
        .op = MICA__OP_RANDOM, .name = "random", .build = build_random, .n_variant = 10, .n_shape = 1};
    open_engines();
    for (int d = MICA_F16; d <= MICA_F64; d++) run_case(&c, (mica_dtype)d, -1);
    close_engines();
}
