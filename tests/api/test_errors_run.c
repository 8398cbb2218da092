/* Invalid arguments to engine, scope, inspection, evaluation, gradient and function calls. The last
 * check is that no function of the header was left out.
 *
 * runs: check */
#include "errors.h"

/* ----------------------------------------------------- engine and scope ----- */

BAD_INPUT(engine)
{
    mica_engine *e = (mica_engine *)&g;
    EXPECT_FAILS(mica_open(NULL, NULL), ARGUMENT, "open");
    mica_engine_options o;
    mica_engine_options_init(NULL);
    mica_engine_options_init(&o);
    o.backend = "abacus";
    EXPECT_FAILS(mica_open(&o, &e), ARGUMENT, "abacus");
    EXPECT(!e);
    mica_engine_options_init(&o);
    o.threads = -1;
    EXPECT_FAILS(mica_open(&o, &e), ARGUMENT, "-1 threads");
    o.threads = 100000;
    EXPECT_FAILS(mica_open(&o, &e), ARGUMENT, "100000 threads");
    mica_engine_options_init(&o);
    o.struct_size = 0;
    EXPECT_FAILS(mica_open(&o, &e), ARGUMENT, "struct_size");
    o.struct_size = 4096;
    EXPECT_FAILS(mica_open(&o, &e), ARGUMENT, "struct_size");
    /* a caller with an older header: only the size field */
    o.struct_size = sizeof o.struct_size;
    EXPECT_OK(mica_open(&o, &e));
    mica_close(e);
    mica_close(NULL);
    EXPECT_STR(mica_engine_backend(NULL), "");
    EXPECT_STR(mica_engine_device(NULL), "");
    EXPECT_INT(mica_engine_threads(NULL), 0);
    EXPECT_INT(mica_engine_trim(NULL), 0);
    mica_engine_reset_peak(NULL);
    mica_engine_profile(NULL, true);
    EXPECT_INT(mica_engine_profile_count(NULL), 0);
    mica_engine_info who = {.struct_size = sizeof who};
    EXPECT_FAILS(mica_engine_describe(NULL, &who), ARGUMENT, "engine is NULL");
    EXPECT_FAILS(mica_engine_describe(g.e, NULL), ARGUMENT, "struct is NULL");
    who.struct_size = 1;
    EXPECT_FAILS(mica_engine_describe(g.e, &who), ARGUMENT, "struct_size is 1");
    EXPECT_FAILS(mica_struct_read("x", &who, sizeof who, &(size_t){3}), ARGUMENT, "x: struct_size is 3");
    EXPECT_FAILS(mica_struct_write("x", &(size_t){3}, &who, sizeof who), ARGUMENT, "x: struct_size is 3");
    EXPECT_FAILS(mica_struct_write("x", NULL, &who, sizeof who), ARGUMENT, "NULL");
    mica_profile_step step = {.struct_size = sizeof step};
    EXPECT_FAILS(mica_engine_profile_step(NULL, 0, &step), ARGUMENT, "engine is NULL");
    EXPECT_FAILS(mica_engine_profile_step(g.e, 0, NULL), ARGUMENT, "step is NULL");
    EXPECT_FAILS(mica_engine_profile_step(g.e, 0, &step), ARGUMENT, "index 0, but there are 0 steps");
    step.struct_size = 0;
    EXPECT_FAILS(mica_engine_profile_step(g.e, 0, &step), ARGUMENT, "struct_size");
    mica_stats stats = {.struct_size = sizeof stats, .evals = 77};
    mica_engine_stats(NULL, &stats);
    EXPECT_INT(stats.evals, 77);
    mica_engine_stats(g.e, NULL);
    stats.struct_size = 0;
    mica_engine_stats(g.e, &stats);
    EXPECT_INT(stats.evals, 77);
    stats.struct_size = 2 * sizeof(size_t); /* an old caller gets only its own fields */
    stats.kernels = 78;
    mica_engine_stats(g.e, &stats);
    EXPECT(stats.evals == 0 && stats.kernels == 78);

    char tiny[4];
    const size_t length = mica_doctor_text(NULL, 0);
    EXPECT(length > 10);
    EXPECT_INT(mica_doctor_text(tiny, sizeof tiny), length);
    EXPECT_INT(strlen(tiny), 3);

    EXPECT(!mica_scope_begin(NULL));
    EXPECT(strstr(mica_last_error(), "scope_begin"));
    mica_scope_end(NULL);
    EXPECT_FAILS(mica_scope_status(NULL), ARGUMENT, "scope_status");
    EXPECT_STR(mica_scope_error(NULL), "");
    mica_scope_clear_error(NULL);
    EXPECT(!mica_scope_fail(NULL, MICA_ERR_SHAPE, "own: %d", 3));
    EXPECT_STR(mica_last_error(), "own: 3");
    EXPECT_INT(mica_fail(MICA_OK, "own: no failure"), MICA_ERR_INTERNAL);
    EXPECT_FAILS(mica_fail(MICA_ERR_DTYPE, "%s, again", mica_last_error()), MICA_ERR_DTYPE, "own: no failure, again");
    EXPECT(!mica_keep(NULL));
    mica_drop(NULL);

    EXPECT_STR(mica_status_text((mica_status)12345), "unknown status");
    EXPECT_INT(mica_dtype_size((mica_dtype)99), 0);
    EXPECT_INT(mica_dtype_size((mica_dtype)-1), 0);
    EXPECT(mica_dtype_name((mica_dtype)99) != NULL);
    mica_dtype_promote((mica_dtype)99, (mica_dtype)-1);
    EXPECT(strlen(mica_version()) > 0);
    EXPECT_INT(mica_f16_to_f32(mica_f16_from_f32(1)), 1);
    EXPECT_INT(mica_bf16_to_f32(mica_bf16_from_f32(1)), 1);
    EXPECT(mica_seed_split(1, 2) != mica_seed_split(1, 3));
    double number = 7;
    EXPECT(!mica_number_parse(NULL, 1, &number) && !mica_number_parse("1", 1, NULL));
    EXPECT(!mica_number_parse("1", 0, &number) && !mica_number_parse("1x", 2, &number) && number == 7);
    EXPECT(!mica_number_print(1, NULL, 9) && !mica_number_print(1, tiny, 0));
    EXPECT(!mica_number_print(-1.25, tiny, sizeof tiny) && strstr(mica_last_error(), "number_print: -1.25"));
}

BAD_INPUT(inspect)
{
    EXPECT_INT(mica_array_dtype(NULL), 0);
    EXPECT_INT(mica_array_ndim(NULL), 0);
    EXPECT(!mica_array_shape(NULL));
    EXPECT(!mica_array_strides(NULL));
    EXPECT(strstr(mica_last_error(), "mica_array_strides"));
    EXPECT_INT(mica_array_size(NULL), 0);
    EXPECT_INT(mica_array_nbytes(NULL), 0);
    EXPECT(!mica_array_is_ready(NULL));
    EXPECT(!mica_data(NULL) && !mica_data_bool(NULL) && !mica_data_u8(NULL) && !mica_data_i8(NULL));
    EXPECT(!mica_data_u16(NULL) && !mica_data_i16(NULL) && !mica_data_u32(NULL) && !mica_data_i32(NULL));
    EXPECT(!mica_data_u64(NULL) && !mica_data_i64(NULL) && !mica_data_f16(NULL) && !mica_data_bf16(NULL));
    EXPECT(!mica_data_f32(NULL) && !mica_data_f64(NULL));
    EXPECT(strstr(mica_last_error(), "mica_data_f64"));
    mica_array *lazy = mica_neg(g.s, g.x);
    EXPECT(!mica_data(lazy) && !mica_array_strides(lazy));
    float out[4];
    double value;
    BAD_STATUS(mica_copy_out(NULL, out, 16), ARGUMENT, "mica_copy_out");
    BAD_STATUS(mica_copy_out(g.x, out, 15), ARGUMENT, "mica_copy_out");
    BAD_STATUS(mica_copy_out(g.x, NULL, 16), ARGUMENT, "mica_copy_out");
    BAD_STATUS(mica_copy_out(lazy, out, 16), MICA_ERR_STATE, "mica_copy_out");
    BAD_STATUS(mica_item(NULL, &value), ARGUMENT, "mica_item");
    BAD_STATUS(mica_item(g.zero, NULL), ARGUMENT, "mica_item");
    BAD_STATUS(mica_item(g.x, &value), MICA_ERR_SHAPE, "mica_item");
    BAD_STATUS(mica_item(lazy, &value), MICA_ERR_STATE, "mica_item");
}

/* ------------------------------------- evaluation, gradients, functions ----- */

static mica_array *null_loss(mica_scope *s, mica_array *const *params, size_t n, void *user)
{
    (void)s, (void)params, (void)n, (void)user;
    return NULL;
}

static mica_status no_vjp(mica_scope *s, mica_array *ct, mica_array *const *in, size_t n, mica_array **grads,
                          void *user)
{
    (void)s, (void)ct, (void)in, (void)n, (void)grads, (void)user;
    return MICA_ERR_UNSUPPORTED;
}

static mica_status no_trace(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                            void *user)
{
    (void)s, (void)in, (void)n_in, (void)out, (void)n_out, (void)user;
    return MICA_ERR_UNSUPPORTED;
}

static mica_status no_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co, mica_array **y,
                           void *user)
{
    (void)s, (void)c, (void)x, (void)co, (void)y, (void)user;
    return MICA_ERR_UNSUPPORTED;
}

BAD_INPUT(running)
{
    mica_array *none = NULL, *grad = g.x, *loss = mica_sum(g.s, g.x, NULL, 0, false);
    mica_event *event = (mica_event *)&g;
    BAD_STATUS(mica_eval(NULL, &g.x, 1), ARGUMENT, "eval");
    BAD_STATUS(mica_eval(g.s, NULL, 1), ARGUMENT, "eval");
    BAD_STATUS(mica_eval(g.s, &none, 1), ARGUMENT, "eval");
    BAD_STATUS(mica_eval(g.s, &g.foreign, 1), ARGUMENT, "eval");
    BAD_STATUS(mica_eval_async(NULL, &g.x, 1, &event), ARGUMENT, "eval_async");
    EXPECT(!event);
    BAD_STATUS(mica_eval_async(g.s, NULL, 1, &event), ARGUMENT, "eval_async");
    BAD_STATUS(mica_eval_async(g.s, &none, 1, &event), ARGUMENT, "eval_async");
    BAD_STATUS(mica_eval_async(g.s, &loss, 1, NULL), ARGUMENT, "eval_async");
    BAD_STATUS(mica_prepare(NULL, &g.x, 1), ARGUMENT, "prepare");
    BAD_STATUS(mica_prepare(g.s, NULL, 1), ARGUMENT, "prepare");
    BAD_STATUS(mica_prepare(g.s, &none, 1), ARGUMENT, "prepare");
    BAD_STATUS(mica_prepare(g.s, &g.foreign, 1), ARGUMENT, "prepare");
    BAD_STATUS(mica_wait(NULL), ARGUMENT, "wait");
    mica_event_free(NULL);
    mica_plan_info info = {.struct_size = sizeof info};
    BAD_STATUS(mica_plan_query(NULL, &loss, 1, &info), ARGUMENT, "plan_query");
    BAD_STATUS(mica_plan_query(g.s, NULL, 1, &info), ARGUMENT, "plan_query");
    BAD_STATUS(mica_plan_query(g.s, &none, 1, &info), ARGUMENT, "plan_query");
    BAD_STATUS(mica_plan_query(g.s, &loss, 1, NULL), ARGUMENT, "plan_query");
    info.struct_size = 0;
    BAD_STATUS(mica_plan_query(g.s, &loss, 1, &info), ARGUMENT, "plan_query");
    char text[8] = "before";
    size_t length = 77;
    BAD_STATUS(mica_plan_text(NULL, &loss, 1, MICA_DUMP_PLAN, text, sizeof text, &length), ARGUMENT, "plan_text");
    EXPECT_INT(length, 0);
    EXPECT_STR(text, "");
    BAD_STATUS(mica_plan_text(g.s, &none, 1, MICA_DUMP_PLAN, text, sizeof text, &length), ARGUMENT, "plan_text");
    BAD_STATUS(mica_plan_text(g.s, &loss, 1, (mica_dump)17, text, sizeof text, &length), ARGUMENT, "plan_text");
    BAD_STATUS(mica_plan_text(g.s, &loss, 1, (mica_dump)-1, NULL, 0, NULL), ARGUMENT, "plan_text");
    EXPECT_OK(mica_plan_text(g.s, &loss, 1, MICA_DUMP_PLAN, NULL, 100, &length));
    EXPECT(length > 100);

    BAD_STATUS(mica_grad(NULL, loss, &g.x, 1, &grad), ARGUMENT, "grad");
    EXPECT(!grad);
    BAD_STATUS(mica_grad(g.s, NULL, &g.x, 1, &grad), ARGUMENT, "grad");
    BAD_STATUS(mica_grad(g.s, loss, NULL, 1, &grad), ARGUMENT, "grad");
    BAD_STATUS(mica_grad(g.s, loss, &g.x, 1, NULL), ARGUMENT, "grad");
    BAD_STATUS(mica_grad(g.s, loss, &none, 1, &grad), ARGUMENT, "grad");
    BAD_STATUS(mica_grad(g.s, g.x, &g.x, 1, &grad), MICA_ERR_SHAPE, "grad");
    BAD_STATUS(mica_grad(g.s, mica_sum(g.s, g.i, NULL, 0, false), &g.x, 1, &grad), MICA_ERR_DTYPE, "grad");
    BAD_STATUS(mica_grad(g.s, loss, &g.i, 1, &grad), MICA_ERR_DTYPE, "grad");
    BAD_STATUS(mica_vjp(NULL, &loss, &loss, 1, &g.x, 1, &grad), ARGUMENT, "vjp");
    BAD_STATUS(mica_vjp(g.s, NULL, &loss, 1, &g.x, 1, &grad), ARGUMENT, "vjp");
    BAD_STATUS(mica_vjp(g.s, &loss, NULL, 1, &g.x, 1, &grad), ARGUMENT, "vjp");
    BAD_STATUS(mica_vjp(g.s, &loss, &g.x, 1, &g.x, 1, &grad), MICA_ERR_SHAPE, "vjp");
    BAD_STATUS(mica_vjp(g.s, &none, &none, 1, &g.x, 1, &grad), ARGUMENT, "vjp");
    mica_array *value = g.x;
    BAD_STATUS(mica_value_and_grad(g.s, NULL, NULL, &g.x, 1, &value, &grad), ARGUMENT, "value_and_grad");
    EXPECT(!value);
    BAD_STATUS(mica_value_and_grad(g.s, null_loss, NULL, &g.x, 1, &value, &grad), ARGUMENT, "value_and_grad");
    BAD_STATUS(mica_value_and_grad(NULL, null_loss, NULL, &g.x, 1, &value, &grad), ARGUMENT, "value_and_grad");
    BAD_STATUS(mica_value_and_grad(g.s, null_loss, NULL, NULL, 1, &value, &grad), ARGUMENT, "value_and_grad");
    BAD(mica_custom_grad(g.s, NULL, &g.x, 1, no_vjp, NULL, NULL), ARGUMENT, "custom_grad");
    BAD(mica_custom_grad(g.s, g.x, NULL, 1, no_vjp, NULL, NULL), ARGUMENT, "custom_grad");
    BAD(mica_custom_grad(g.s, g.x, &g.x, 1, NULL, NULL, NULL), ARGUMENT, "custom_grad");
    BAD(mica_custom_grad(g.s, g.x, &none, 1, no_vjp, NULL, NULL), ARGUMENT, "custom_grad");
    BAD_SCOPE(mica_custom_grad(NULL, g.x, &g.x, 1, no_vjp, NULL, NULL), "custom_grad");
    mica_array *custom = mica_custom_grad(g.s, mica_square(g.s, g.x), &g.x, 1, no_vjp, NULL, NULL);
    BAD_STATUS(mica_grad(g.s, mica_sum(g.s, custom, NULL, 0, false), &g.x, 1, &grad), MICA_ERR_UNSUPPORTED,
               "custom_grad");
    BAD(mica_checkpoint(g.s, NULL, &g.x, 1), ARGUMENT, "checkpoint");
    BAD(mica_checkpoint(g.s, g.x, NULL, 1), ARGUMENT, "checkpoint");
    BAD(mica_checkpoint(g.s, g.x, &none, 1), ARGUMENT, "checkpoint");
    BAD_SCOPE(mica_checkpoint(NULL, g.x, &g.x, 1), "checkpoint");

    mica_scan_options o;
    mica_scan_options_init(NULL);
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    mica_array *last = g.x, *ys = g.x, *short_x = count_up(g.s, 3, 0);
    BAD_STATUS(mica_scan(NULL, no_step, NULL, &o, &g.x, &g.x, &last, &ys), ARGUMENT, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, NULL, &g.x, &last, &ys), ARGUMENT, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &g.x, NULL, &last, &ys), ARGUMENT, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &g.x, &g.x, NULL, &ys), ARGUMENT, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &g.x, &g.x, &last, NULL), ARGUMENT, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &none, &g.x, &last, &ys), ARGUMENT, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &g.x, &g.zero, &last, &ys), MICA_ERR_SHAPE, "scan");
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &g.x, &g.x, &last, &ys), MICA_ERR_UNSUPPORTED, "scan");
    EXPECT(!last && !ys);
    o.length = 4;
    BAD_STATUS(mica_scan(g.s, no_step, NULL, &o, &g.x, &short_x, &last, &ys), MICA_ERR_UNSUPPORTED, "scan");

    mica_function *f = (mica_function *)&g;
    BAD_STATUS(mica_compile(NULL, no_trace, NULL, &f), ARGUMENT, "compile");
    EXPECT(!f);
    BAD_STATUS(mica_compile(g.e, NULL, NULL, &f), ARGUMENT, "compile");
    BAD_STATUS(mica_compile(g.e, no_trace, NULL, NULL), ARGUMENT, "compile");
    BAD_STATUS(mica_call(g.s, NULL, &g.x, 1, &last, 1), ARGUMENT, "call");
    mica_function_free(NULL);

    mica_peaks peaks = {.struct_size = sizeof peaks};
    double ratio;
    BAD_STATUS(mica_measure_peaks(NULL, &peaks), ARGUMENT, "measure_peaks");
    BAD_STATUS(mica_measure_peaks(g.e, NULL), ARGUMENT, "measure_peaks");
    peaks.struct_size = 0;
    BAD_STATUS(mica_measure_peaks(g.e, &peaks), ARGUMENT, "measure_peaks");
    BAD_STATUS(mica_measure_two_threads(NULL, &ratio), ARGUMENT, "measure_two_threads");
    BAD_STATUS(mica_measure_two_threads(g.e, NULL), ARGUMENT, "measure_two_threads");

    mica_format_info format = {.struct_size = sizeof format};
    EXPECT(!mica_format_at(mica_format_count(), &format));
    EXPECT(!mica_format_find("q4_typo", &format) && !mica_format_find(NULL, &format));
    EXPECT(mica_format_at(0, NULL) && mica_format_find("Q8_0", NULL));

    mica_tune_options tune;
    mica_tune_options_init(NULL);
    mica_tune_options_init(&tune);
    tune.seconds = -1;
    BAD_STATUS(mica_tune(&tune, NULL, 0), ARGUMENT, "tune");
    tune.struct_size = sizeof tune + 4096;
    BAD_STATUS(mica_tune(&tune, NULL, 0), ARGUMENT, "tune");
    setenv("MICA_CACHE", "/dev/null", 1); /* not a folder: nothing can be removed */
    const mica_status forgotten = mica_tune_forget();
    EXPECT_MSG(forgotten == MICA_ERR_FILE || forgotten == MICA_ERR_UNSUPPORTED, "%s", mica_last_error());
    unsetenv("MICA_CACHE");
}

/* --------------------------------------------------------------- all of them */

/* Ops of the tables, which test_errors_build.c expands. */
static const char *const ops_of_tables[] = {
#define MICA_MAP1(NAME, name, ...) "mica_" #name,
#define MICA_MAP2(NAME, name, ...) "mica_" #name,
#include "graph/ops.def"
#define MICA_COMPOSED(name, ...) "mica_" #name,
#include "graph/composed.def"
};

static void named_here(const char *name, void *user)
{
    const char *text = user;
    char part[64];
    if (has_word(text, name)) return;
    for (size_t i = 0; i < COUNT(ops_of_tables); i++)
        if (strcmp(name, ops_of_tables[i]) == 0) return;
    /* in the lists, names are written without their prefix */
    snprintf(part, sizeof part, "(%s", name + strlen("mica_"));
    EXPECT_MSG(strstr(text, part), "%s is not tested with invalid arguments", name);
}

TEST(no_function_of_the_header_is_left_out)
{
    static const char *const files[] = {"tests/api/test_errors_build.c", "tests/api/test_errors_nn.c",
                                        "tests/api/test_errors_run.c", "tests/api/test_errors_file.c"};
    char *all = files_text(files, COUNT(files));
    if (!all) SKIP("not run from the root of the project");
    EXPECT(each_public_function("include/mica.h", named_here, all) > 200);
    free(all);
}
