/* What the passes may change: no bit of element-wise programs, and in other programs only the order
 * of sums. Every program runs on ref, and on cpu with all passes, without passes, and with each
 * pass switched off. The plans must have the number of kernels that fusion should give. */
#include <stdio.h>

#include "parity_programs.h"
#include "test.h"

enum { N_PASS = 8, N_MASK = N_PASS + 2 };

static mica_engine *ref, *cpu[N_MASK];

static uint32_t mask_of(int i)
{
    if (i == 0) return 0;
    return i == 1 ? MICA_PASS_ALL : MICA_PASS_ALL & ~(UINT32_C(1) << (i - 2));
}

static void open_engines(void)
{
    ref = parity_engine("ref", MICA_PASS_ALL, 1);
    for (int i = 0; i < N_MASK; i++) cpu[i] = parity_engine("cpu", mask_of(i), 1);
}

static void close_engines(void)
{
    mica_close(ref);
    for (int i = 0; i < N_MASK; i++) mica_close(cpu[i]);
}

/* Reports a failure of a run, only the first few of each case. */
static void report(const parity_call *call, const char *inputs, const char *what, const char *text)
{
    enum { ENOUGH = 5 };
    static const parity_case *last;
    static mica_dtype last_dtype;
    static int n;
    if (last != call->c || last_dtype != call->dtype) n = 0;
    last = call->c;
    last_dtype = call->dtype;
    if (n++ < ENOUGH) test_fail(__FILE__, __LINE__, "variant %d of %s: %s: %s", call->variant, inputs, what, text);
}

static void run_masks(const parity_program *p, const parity_call *call, const parity_shape *row, parity_layout layout)
{
    parity_input in[PARITY_MAX_IN];
    parity_result want, plain, got;
    char text[PARITY_TEXT] = "", inputs[256], what[32];
    const double tolerance = parity_program_tolerance(p, call->dtype);
    parity_inputs_make(call, row, layout, (uint64_t)call->variant * 77 + (uint64_t)layout, in);
    parity_inputs_text(call->c, row, layout, inputs);
    parity_run(ref, call, in, &want);
    parity_run(cpu[0], call, in, &plain);
    if (want.status != MICA_OK) report(call, inputs, "ref", want.error);
    if (!parity_near(&plain, &want, tolerance, text)) report(call, inputs, "cpu without passes", text);
    for (int i = 1; i < N_MASK; i++) {
        parity_run(cpu[i], call, in, &got);
        snprintf(what, sizeof what, "cpu with passes 0x%x", (unsigned)mask_of(i));
        if (!(p->same_bits ? parity_same_bits(&got, &plain, text) : parity_near(&got, &want, tolerance, text)))
            report(call, inputs, what, text);
        parity_result_free(&got);
    }
    parity_result_free(&plain);
    parity_result_free(&want);
    parity_inputs_free(call->c, in);
}

static void run_program(const parity_program *p, mica_dtype dtype)
{
    static const parity_layout layouts[] = {PARITY_CONTIGUOUS, PARITY_TRANSPOSED, PARITY_STEPPED, PARITY_MIXED};
    for (int v = 0; v < p->c.n_variant; v++)
        for (int i = 0; i < p->c.n_shape; i++)
            for (int l = 0; l < PARITY_COUNT(layouts); l++) {
                const parity_call call = {&p->c, dtype, v};
                run_masks(p, &call, &p->c.shapes[i * p->c.n_in], layouts[l]);
            }
}

static void run_table(const parity_program *table)
{
    for (const parity_program *p = table; p->c.name; p++)
        for (int d = 0; d < MICA__DTYPE_COUNT; d++) {
            if (!(p->c.dtypes >> d & 1)) continue;
            test_case("%s %s", p->c.name, mica_dtype_name((mica_dtype)d));
            run_program(p, (mica_dtype)d);
        }
}

TEST(passes_keep_the_bits_of_maps)
{
    open_engines();
    run_table(parity_programs_map);
    close_engines();
}

TEST(passes_keep_results)
{
    open_engines();
    run_table(parity_programs_nn);
    close_engines();
}

/* ----------------------------------------------------------- bad indices --- */

/* x (5, 3) f32; index 7 is out of range. */
static mica_array *build_bad_index(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    const int64_t places[] = {0, 7, -5};
    mica_array *index = mica_from_data(s, MICA_I64, 1, (int64_t[]){3}, places);
    mica_array *column = mica_expand_dims(s, index, 1), *taken = mica_take(s, x[0], index, 0);
    switch (call->variant) {
    case 0: return taken;
    case 1: return mica_slice_axis(s, taken, 0, 0, 1, 1); /* the invalid row is cut off */
    case 2: return mica_flip(s, mica_exp(s, taken), 0);
    case 3: return mica_sum(s, taken, NULL, 0, false);
    case 4: return mica_gather(s, x[0], column);
    case 5: return mica_scatter_add(s, x[0], column, mica_ones(s, MICA_F32, 2, (int64_t[]){3, 3}));
    case 6:
        return mica_slice_axis(s, mica_scatter(s, x[0], column, mica_exp(s, mica_slice_axis(s, x[0], 0, 0, 3, 1))), 0,
                               3, 4, 1);
    case 7:
        return mica_embedding(s, x[0], mica_reshape(s, mica_add(s, index, mica_scalar(s, 0)), 2, (int64_t[]){3, 1}));
    case 8: return mica_cross_entropy(s, mica_slice_axis(s, x[0], 0, 0, 3, 1), index);
    default:
        return mica_slice_axis(s, mica_take(s, mica_exp(s, x[0]), mica_mul(s, index, mica_scalar(s, 1)), 0), 1, 0, 1,
                               1);
    }
}

TEST(bad_indices_are_noticed)
{
    static const parity_shape shape[] = {{2, {5, 3}}};
    static const parity_case c =
        PARITY_CASE(TAKE, "bad index", build_bad_index, 10, 1, shape, 1, 0, PARITY_OPERAND(-1, 1, 0, 0, PARITY_PLAIN));
    open_engines();
    for (int v = 0; v < c.n_variant; v++) {
        const parity_call call = {&c, MICA_F32, v};
        test_case("variant %d", v);
        for (int i = -1; i < N_MASK; i++) {
            parity_input in[PARITY_MAX_IN];
            parity_result r;
            parity_inputs_make(&call, shape, PARITY_CONTIGUOUS, 1, in);
            parity_run(i < 0 ? ref : cpu[i], &call, in, &r);
            if (r.status != MICA_ERR_INDEX)
                test_fail(__FILE__, __LINE__, "passes 0x%x: %s", i < 0 ? 0 : (unsigned)mask_of(i),
                          mica_status_text(r.status));
            parity_result_free(&r);
            parity_inputs_free(&c, in);
        }
    }
    close_engines();
}

/* ------------------------------------------------------ kernels of plans --- */

static uint64_t kernels_of(mica_engine *e, const parity_call *call, const parity_input *in)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x[PARITY_MAX_IN];
    for (int i = 0; i < call->c->n_in; i++) x[i] = parity_input_wrap(s, &in[i]);
    mica_array *y = call->c->build(s, x, call);
    mica_plan_info info = {.struct_size = sizeof info};
    if (mica_plan_query(s, &y, 1, &info) != MICA_OK) test_fail(__FILE__, __LINE__, "%s", mica_last_error());
    mica_scope_end(s);
    return info.kernels;
}

static void count_kernels(const parity_program *table)
{
    for (const parity_program *p = table; p->c.name; p++) {
        if (p->kernels == 0) continue;
        test_case("%s", p->c.name);
        for (int i = 0; i < p->c.n_shape; i++) {
            /* row 2 broadcasts an operand, which is computed separately before it grows */
            if (p->same_bits && i == 2) continue;
            const parity_call call = {&p->c, p->c.dtypes & 1u << MICA_F32 ? MICA_F32 : MICA_I32, 0};
            parity_input in[PARITY_MAX_IN];
            parity_inputs_make(&call, &p->c.shapes[i * p->c.n_in], PARITY_CONTIGUOUS, 1, in);
            EXPECT_INT(kernels_of(cpu[1], &call, in), p->kernels);
            (void)EXPECT(kernels_of(cpu[0], &call, in) > 1);
            parity_inputs_free(&p->c, in);
        }
    }
}

TEST(kernels_of_fused_plans)
{
    open_engines();
    count_kernels(parity_programs_map);
    count_kernels(parity_programs_nn);
    close_engines();
}
