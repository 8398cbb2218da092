/* The rule for public structs that begin with struct_size (mica.h, "structs"), for each of them: a
 * caller with an older header, one with a newer header, and one that sets a field which is unknown
 * to this library. */
#include "api.h"
#include "files.h"
#include "mica_convert.h"
#include "mica_lm.h"
#include "mica_series.h"

#undef mica_close

enum { MORE = 64 }; /* additional bytes of a newer header */

/* Objects that the calls need; created once. */
static struct {
    mica_engine *e;
    mica_scope *s;
    mica_array *x3, *w3, *x4;   /* (1, 2, 8), (3, 2, 3), (1, 2, 4, 8) */
    mica_file *file;
    char model[600];
    mica_lm *lm;
    mica_wiring *wiring;
    mica_liquid net;
    mica_params *liquid, *params;
    mica_trainer *trainer;
    mica_table *table;
    mica_series *series;
    mica_series_model *series_model;
} g;

/* A call with the struct. It reads, or fills, the struct in the usual way. */
typedef mica_status (*struct_call)(void *given);

static mica_status array_or_not(const mica_array *x)
{
    const mica_status status = x ? MICA_OK : mica_scope_status(g.s);
    mica_scope_clear_error(g.s);
    return status;
}

static mica_status call_open(void *p)
{
    mica_engine *e;
    const mica_status status = mica_open(p, &e);
    mica_close(e);
    return status;
}

static mica_status step_of_scan(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                                mica_array **y_out, void *user)
{
    (void)x, (void)user;
    carry_out[0] = y_out[0] = mica_add(s, carry[0], carry[0]);
    return mica_scope_status(s);
}

static mica_status call_scan(void *p)
{
    mica_array *carry, *ys, *first = mica_reshape(g.s, g.x3, SHAPE(2, 8));
    const mica_status status = mica_scan(g.s, step_of_scan, NULL, p, &first, &first, &carry, &ys);
    mica_scope_clear_error(g.s);
    return status;
}

static mica_status call_file(void *p)
{
    mica_file *f;
    const mica_status status = mica_file_open(g.model, p, &f);
    if (status == MICA_OK) mica_file_close(f);
    return status;
}

static mica_status call_tokenizer(void *p)
{
    mica_tokenizer *t;
    const mica_status status = mica_tokenizer_open(g.model, p, &t);
    if (status == MICA_OK) mica_tokenizer_close(t);
    return status;
}

static mica_status call_bpe(void *p)
{
    mica_tokenizer *t;
    const mica_status status = mica_tokenizer_train("so many so many words", 21, p, &t);
    if (status == MICA_OK) mica_tokenizer_close(t);
    return status;
}

static mica_status call_lm(void *p)
{
    mica_lm *lm;
    const mica_status status = mica_lm_open(g.e, g.model, p, &lm);
    if (status == MICA_OK) mica_lm_close(lm);
    return status;
}

static mica_status call_session(void *p)
{
    mica_lm_session *session;
    const mica_status status = mica_lm_session_open(g.lm, p, &session);
    if (status == MICA_OK) mica_lm_session_close(session);
    return status;
}

static mica_status call_sampler(void *p)
{
    mica_lm_sampler *sampler;
    const mica_status status = mica_lm_sampler_open(p, &sampler);
    if (status == MICA_OK) mica_lm_sampler_close(sampler);
    return status;
}

/* A call without a status reports errors through mica_last_error. */
static mica_status fail_first(void) { return mica_fail(MICA_ERR_ARGUMENT, "nothing yet"); }
static mica_status status_of_last(void)
{
    return strcmp(mica_last_error(), "nothing yet") == 0 ? MICA_OK : MICA_ERR_ARGUMENT;
}

static mica_status call_stats(void *p)
{
    fail_first();
    mica_engine_stats(g.e, p);
    return status_of_last();
}
static mica_status call_lm_info(void *p)
{
    fail_first();
    mica_lm_get_info(g.lm, p);
    return status_of_last();
}

static mica_status call_schedule(void *p)
{
    double rate, decay;
    fail_first();
    mica_schedule_at(p, 1, &rate, &decay);
    return status_of_last();
}

static mica_status call_writer(void *p)
{
    mica_writer *w;
    mica_status status = mica_writer_open(file_path("meta.gguf"), NULL, &w);
    if (status == MICA_OK) status = mica_writer_meta(w, p);
    mica_writer_abandon(w);
    return status;
}

static mica_status call_batch_norm(void *p)
{
    mica_array *mean = mica_zeros(g.s, MICA_F32, SHAPE(2)), *var = mica_ones(g.s, MICA_F32, SHAPE(2));
    return array_or_not(mica_batch_norm(g.s, g.x3, NULL, NULL, &mean, &var, p));
}

static mica_status call_layer(void *p)
{
    mica_params *set;
    mica_status status = mica_params_new(&set);
    if (status == MICA_OK) status = mica_layer_params(g.s, set, p, 1, "l");
    mica_params_free(set);
    return status;
}

static mica_status call_lstm(void *p)
{
    mica_array *h = NULL, *c = NULL, *y, *x = mica_reshape(g.s, g.x3, SHAPE(1, 2, 8));
    const mica_status status = mica_lstm(g.s, x, p, false, &h, &c, &y);
    mica_scope_clear_error(g.s);
    return status;
}

static mica_status call_liquid(void *p) { return mica_liquid_check(p); }

static mica_status call_liquid_data(void *p)
{
    mica_liquid_result r = {.struct_size = sizeof r};
    const mica_status status = mica_liquid_forward(g.s, &g.net, g.liquid, p, &r);
    mica_scope_clear_error(g.s);
    return status;
}

static mica_status call_liquid_result(void *p)
{
    const mica_liquid_data data = {.struct_size = sizeof data, .x = g.x3};
    const mica_status status = mica_liquid_forward(g.s, &g.net, g.liquid, &data, p);
    mica_scope_clear_error(g.s);
    return status;
}

static mica_array *loss_of(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n, (void)user;
    return mica_mean(f->s, mica_square(f->s, mica_mul(f->s, data[0], mica_param(f, "w"))), NULL, 0, false);
}

static mica_status call_trainer(void *p)
{
    mica_trainer *t;
    const mica_status status = mica_trainer_open(g.e, g.params, p, &t);
    if (status == MICA_OK) mica_trainer_close(t);
    return status;
}

static mica_status batch_of_fit(void *user, mica_scope *s, int64_t step, int64_t part, mica_array **data, size_t *n)
{
    (void)user, (void)s, (void)step, (void)part, (void)data;
    *n = 0;
    return MICA_OK;
}

static mica_status call_fit(void *p)
{
    mica_fit *fit;
    const mica_status status = mica_fit_open(g.trainer, p, &fit);
    mica_fit_close(fit);
    return status;
}

static mica_status call_train_result(void *p) { return mica_trainer_step(g.trainer, g.s, &g.x3, 1, 0.1, 0, p); }

static mica_status call_decoder_write(void *p)
{
    mica_decoder_shape shape;
    mica_params *set;
    mica_decoder_shape_init(&shape);
    shape.vocab = shape.dim = shape.ffn = 256, shape.layers = 1;
    mica_status status = mica_decoder_params(g.s, &shape, 1, &set);
    if (status == MICA_OK) status = mica_decoder_write(g.s, &shape, set, file_path("decoder.gguf"), p);
    mica_params_free(set);
    return status;
}

static mica_status call_wiring(void *p)
{
    mica_wiring *w;
    const mica_status status = mica_wiring_new(p, &w);
    mica_wiring_free(w);
    return status;
}

static mica_status call_table(void *p)
{
    mica_table *t;
    const mica_status status = mica_table_parse("t", "a,b\n1,2\n", 8, p, &t);
    if (status == MICA_OK) mica_table_free(t);
    return status;
}

static mica_status call_series(void *p)
{
    mica_series *d;
    const mica_status status = mica_series_open(p, &g.table, NULL, 1, &d);
    if (status == MICA_OK) mica_series_free(d);
    return status;
}

static mica_status call_series_net(void *p)
{
    mica_series_model *m;
    const mica_status status = mica_series_model_new(g.s, p, mica_series_recipe(g.series), 1, &m);
    if (status == MICA_OK) mica_series_model_free(m);
    return status;
}

static mica_status call_score(void *p)
{
    return mica_series_run(g.e, g.series_model, g.series, MICA_PART_TEST, 2, p, NULL, NULL);
}

static mica_status call_found(bool found) { return found ? MICA_OK : MICA_ERR_ARGUMENT; }
static mica_status call_window(void *p) { return call_found(mica_series_window(g.series, MICA_PART_TEST, 0, p)); }
static mica_status call_tensor(void *p) { return call_found(mica_file_tensor(g.file, 0, p)); }
static mica_status call_meta(void *p) { return call_found(mica_file_meta(g.file, 0, p)); }
static mica_status call_conv(void *p) { return array_or_not(mica_conv1d(g.s, g.x3, g.w3, p)); }
static mica_status call_pool(void *p) { return array_or_not(mica_max_pool1d(g.s, g.x3, p)); }
static mica_status call_rope(void *p) { return array_or_not(mica_rope(g.s, g.x4, NULL, p)); }
static mica_status call_attention(void *p) { return array_or_not(mica_attention(g.s, g.x4, g.x4, g.x4, NULL, p)); }
static mica_status call_heads(void *p) { return array_or_not(mica_multi_head(g.s, g.x3, g.x3, g.x3, NULL, p)); }
static mica_status call_quant(void *p) { return array_or_not(mica_quant_matmul(g.s, g.x3, p, MICA_ACT_NONE)); }
static mica_status call_plan(void *p)
{
    mica_array *y = mica_exp(g.s, g.x3);
    return mica_plan_query(g.s, &y, 1, p);
}
static mica_status call_format(void *p) { return mica_format_find("Q4_K", p) ? MICA_OK : MICA_ERR_ARGUMENT; }
static mica_status call_describe(void *p) { return mica_engine_describe(g.e, p); }
static mica_status call_step(void *p) { return mica_engine_profile_step(g.e, 0, p); }
static mica_status call_facts(void *p) { return mica_file_facts(g.file, p); }
static mica_status call_wiring_stats(void *p) { return mica_wiring_measure(g.wiring, p); }
static mica_status call_optimiser(void *p) { return mica_optimiser_check(p); }
static mica_status call_shape(void *p) { return mica_decoder_shape_check(p); }
static mica_status call_random(void *p) { return mica_make_random(file_path("random.gguf"), p); }
static mica_status call_quantize(void *p) { return mica_quantize(g.model, file_path("quantized.gguf"), p); }
/* Tuning is refused; the error message shows that the struct was read. */
static mica_status call_tune(void *p)
{
    const mica_status status = mica_tune(p, NULL, 0);
    return status == MICA_ERR_ARGUMENT && strstr(mica_last_error(), "seconds is -1") ? MICA_OK : status;
}

/* ------------------------------------------------------------------ table -- */

typedef union any_struct {
    size_t struct_size;
    char bytes[8192];
    mica_engine_options engine;
    mica_scan_options scan;
    mica_quant quant;
    mica_bpe_options bpe;
    mica_tune_options tune;
    mica_meta_info meta;
    mica_recurrent_weights recurrent;
    mica_layer layer;
    mica_liquid liquid;
    mica_liquid_data liquid_data;
    mica_trainer_options trainer;
    mica_wiring_options wiring;
    mica_series_options series;
    mica_series_net series_net;
    mica_quantize_options quantize;
    mica_optimiser optimiser;
    mica_fit_options fit;
} any_struct;

/* Fills in the values that a call needs besides the defaults. */
static void fill_engine(any_struct *a) { mica_engine_options_init(&a->engine), a->engine.threads = 1; }
static void fill_scan(any_struct *a) { a->scan.n_carry = a->scan.n_x = a->scan.n_y = 1; }
static void fill_quant(any_struct *a)
{
    a->quant.format = "F32", a->quant.rows = 4, a->quant.cols = 8;
    a->quant.data = mica_ones(g.s, MICA_F32, SHAPE(4, 8));
}
static void fill_bpe(any_struct *a) { mica_bpe_options_init(&a->bpe), a->bpe.vocab = 258; }
static void fill_tune(any_struct *a) { mica_tune_options_init(&a->tune), a->tune.seconds = -1; }
static void fill_meta(any_struct *a)
{
    a->meta.key = "a.key", a->meta.dtype = MICA_U8, a->meta.count = 1, a->meta.data = "x", a->meta.nbytes = 1;
}
static void fill_recurrent(any_struct *a)
{
    a->recurrent.w_in = mica_ones(g.s, MICA_F32, SHAPE(16, 8));
    a->recurrent.w_state = mica_ones(g.s, MICA_F32, SHAPE(16, 4));
}
static void fill_layer(any_struct *a) { a->layer = mica_linear_layer(3, 4); }
static void fill_liquid(any_struct *a) { a->liquid = g.net; }
static void fill_liquid_data(any_struct *a) { a->liquid_data.x = g.x3; }
static void fill_trainer(any_struct *a) { mica_trainer_options_init(&a->trainer), a->trainer.loss = loss_of; }
static void fill_wiring(any_struct *a)
{
    mica_wiring_options_init(&a->wiring, MICA_WIRING_FULL);
    a->wiring.inputs = 2, a->wiring.units = 4, a->wiring.outputs = 1;
}
static void fill_series(any_struct *a)
{
    mica_series_options_init(&a->series);
    a->series.targets = "b", a->series.seq = 8;
}
static void fill_series_net(any_struct *a) { mica_series_net_init(&a->series_net, MICA_CELL_CFC); }
static void fill_quantize(any_struct *a) { mica_quantize_options_init(&a->quantize), a->quantize.type = "f16"; }
static void fill_optimiser(any_struct *a) { mica_optimiser_init(&a->optimiser, MICA_ADAM); }

#define INIT(type) \
    static void init_##type(any_struct *a) { mica_##type##_init((mica_##type *)(void *)a); }
static void fill_fit(any_struct *a) { mica_fit_options_init(&a->fit), a->fit.batch = batch_of_fit; }

INIT(conv_options)
INIT(pool_options)
INIT(rope_options)
INIT(attention_options)
INIT(file_options)
INIT(tokenizer_options)
INIT(lm_options)
INIT(lm_session_options)
INIT(lm_sampler_options)
INIT(batch_norm_options)
INIT(heads_options)
INIT(decoder_shape)
INIT(decoder_export)
INIT(table_options)
INIT(random_options)

/* older: the smallest struct_size with which the call can work. */
typedef struct struct_row {
    const char *name;
    size_t size, older;
    void (*fill)(any_struct *a); /* NULL: zeros, but for struct_size                       */
    struct_call call;
    bool output;                 /* the library fills it                                   */
} struct_row;

#define IN(type, older, fill, call) {#type, sizeof(type), older, fill, call, false}
#define OUT(type, call) {#type, sizeof(type), 2 * sizeof(size_t), NULL, call, true}
#define UP_TO(type, field) offsetof(type, field)
enum { HEAD = sizeof(size_t) };

static const struct_row rows[] = {
    IN(mica_engine_options, HEAD, fill_engine, call_open),
    IN(mica_conv_options, HEAD, init_conv_options, call_conv),
    IN(mica_pool_options, HEAD, init_pool_options, call_pool),
    IN(mica_rope_options, HEAD, init_rope_options, call_rope),
    IN(mica_attention_options, HEAD, init_attention_options, call_attention),
    IN(mica_scan_options, UP_TO(mica_scan_options, length), fill_scan, call_scan),
    IN(mica_quant, UP_TO(mica_quant, scales), fill_quant, call_quant),
    IN(mica_file_options, HEAD, init_file_options, call_file),
    IN(mica_tune_options, UP_TO(mica_tune_options, keep), fill_tune, call_tune),
    IN(mica_meta_info, sizeof(mica_meta_info), fill_meta, call_writer),
    IN(mica_tokenizer_options, HEAD, init_tokenizer_options, call_tokenizer),
    IN(mica_bpe_options, UP_TO(mica_bpe_options, pre), fill_bpe, call_bpe),
    IN(mica_lm_options, HEAD, init_lm_options, call_lm),
    IN(mica_lm_session_options, HEAD, init_lm_session_options, call_session),
    IN(mica_lm_sampler_options, HEAD, init_lm_sampler_options, call_sampler),
    IN(mica_batch_norm_options, HEAD, init_batch_norm_options, call_batch_norm),
    IN(mica_heads_options, HEAD, init_heads_options, call_heads),
    IN(mica_recurrent_weights, UP_TO(mica_recurrent_weights, b_in), fill_recurrent, call_lstm),
    IN(mica_layer, UP_TO(mica_layer, gain), fill_layer, call_layer),
    IN(mica_optimiser, UP_TO(mica_optimiser, momentum), fill_optimiser, call_optimiser),
    IN(mica_schedule, HEAD, NULL, call_schedule),
    IN(mica_trainer_options, UP_TO(mica_trainer_options, user), fill_trainer, call_trainer),
    IN(mica_fit_options, UP_TO(mica_fit_options, validate), fill_fit, call_fit),
    IN(mica_decoder_shape, HEAD, init_decoder_shape, call_shape),
    IN(mica_decoder_export, HEAD, init_decoder_export, call_decoder_write),
    IN(mica_wiring_options, UP_TO(mica_wiring_options, seed), fill_wiring, call_wiring),
    IN(mica_liquid, UP_TO(mica_liquid, wiring), fill_liquid, call_liquid),
    IN(mica_liquid_data, UP_TO(mica_liquid_data, timespans), fill_liquid_data, call_liquid_data),
    IN(mica_table_options, HEAD, init_table_options, call_table),
    IN(mica_series_options, UP_TO(mica_series_options, inputs), fill_series, call_series),
    IN(mica_series_net, HEAD, fill_series_net, call_series_net),
    IN(mica_quantize_options, UP_TO(mica_quantize_options, rules), fill_quantize, call_quantize),
    IN(mica_random_options, HEAD, init_random_options, call_random),
    OUT(mica_engine_info, call_describe),
    OUT(mica_plan_info, call_plan),
    OUT(mica_tensor_info, call_tensor),
    OUT(mica_format_info, call_format),
    OUT(mica_meta_info, call_meta),
    OUT(mica_stats, call_stats),
    OUT(mica_profile_step, call_step),
    OUT(mica_lm_info, call_lm_info),
    OUT(mica_train_result, call_train_result),
    OUT(mica_wiring_stats, call_wiring_stats),
    OUT(mica_liquid_result, call_liquid_result),
    OUT(mica_window, call_window),
    OUT(mica_series_score, call_score),
    OUT(mica_facts, call_facts),
};

/* Structs of the headers that are not in the table, and why. */
static const struct {
    const char *name, *why;
} exempt[] = {
    {"mica_peaks", "measured for two seconds at each call: unit/test_peaks.c"},
    {"mica_tuned", "the library's memory: a caller reads the fields it knows"},
    {"mica_liquid_preset", "the library's memory: a caller reads the fields it knows"},
    {"mica_series_row", "the library's memory: a caller reads the fields it knows"},
    {"mica_fit_state", "the library's memory: a caller reads the fields it knows"},
    {"mica_fit_point", "an element of a list: its size is the step of the list"},
    {"mica_forward", "changed in place from mica_forward_init on, never copied"},
    {"mica_detokenizer", "changed in place, begins as zeros, never copied"},
    {"mica_chat_message", "an element of a list: its size is the step of the list"},
    {"mica_setting", "an element of a list: its size is the step of the list"},
    {"mica_tensor_rule", "an element of a list: its size is the step of the list"},
    {"mica_facts_format", "an element of a list inside mica_facts"},
};

/* ------------------------------------------------------------------ world -- */

static bool world_open(void)
{
    mica_random_options random;
    mica_wiring_options wiring;
    mica_trainer_options trainer;
    mica_series_options series;
    mica_series_net net;
    any_struct any;
    char text[8000];
    size_t n = (size_t)snprintf(text, sizeof text, "a,b\n");
    for (int i = 0; i < 600; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d\n", i, i % 7);
    g.e = open_engine("cpu");
    g.s = mica_scope_begin(g.e);
    g.x3 = mica_random_normal(g.s, MICA_F32, SHAPE(1, 2, 8), 1);
    g.w3 = mica_random_normal(g.s, MICA_F32, SHAPE(3, 2, 3), 2);
    g.x4 = mica_random_normal(g.s, MICA_F32, SHAPE(1, 2, 4, 8), 3);
    mica_engine_profile(g.e, true);
    bool good = EXPECT_OK(mica_eval(g.s, ARRAYS(g.x3, g.w3, g.x4)));
    snprintf(g.model, sizeof g.model, "%s", file_path("model.gguf"));
    mica_random_options_init(&random);
    good = good && EXPECT_OK(mica_make_random(g.model, &random)) && EXPECT_OK(mica_file_open(g.model, NULL, &g.file)) &&
           EXPECT_OK(mica_lm_open(g.e, g.model, NULL, &g.lm));
    fill_wiring(&any), wiring = any.wiring;
    good = good && EXPECT_OK(mica_wiring_new(&wiring, &g.wiring));
    mica_liquid_init(&g.net, MICA_LIQUID_CFC);
    g.net.inputs = 8, g.net.units = 4;
    mica_array *w = mica_ones(g.s, MICA_F32, SHAPE(8));
    good = good && EXPECT_OK(mica_params_new(&g.liquid)) &&
           EXPECT_OK(mica_liquid_params(g.s, &g.net, MICA_F32, 1, g.liquid)) && EXPECT_OK(mica_params_new(&g.params)) &&
           EXPECT_OK(mica_eval(g.s, &w, 1)) && EXPECT_OK(mica_params_add(g.params, "w", w));
    fill_trainer(&any), trainer = any.trainer;
    good = good && EXPECT_OK(mica_trainer_open(g.e, g.params, &trainer, &g.trainer));
    fill_series(&any), series = any.series;
    good = good && EXPECT_OK(mica_table_parse("t", text, n, NULL, &g.table)) &&
           EXPECT_OK(mica_series_open(&series, &g.table, NULL, 1, &g.series));
    fill_series_net(&any), net = any.series_net;
    return good && EXPECT_OK(mica_series_model_new(g.s, &net, mica_series_recipe(g.series), 1, &g.series_model));
}

static void world_close(void)
{
    mica_series_model_free(g.series_model);
    mica_series_free(g.series);
    mica_table_free(g.table);
    mica_trainer_close(g.trainer);
    mica_params_free(g.params);
    mica_params_free(g.liquid);
    mica_wiring_free(g.wiring);
    mica_lm_close(g.lm);
    mica_file_close(g.file);
    mica_scope_end(g.s);
    mica_close(g.e);
}

/* ------------------------------------------------------------------ tests -- */

static void fill_row(const struct_row *r, any_struct *a)
{
    memset(a, 0, sizeof *a);
    if (r->fill) r->fill(a);
    a->struct_size = r->size;
}

static void try_sizes(const struct_row *r, any_struct *a)
{
    static const size_t wrong[] = {0, 3, sizeof(size_t) - 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fill_row(r, a);
        a->struct_size = wrong[i];
        EXPECT_FAILS(r->call(a), MICA_ERR_ARGUMENT, "struct_size");
    }
    fill_row(r, a);
    EXPECT_OK(r->call(a));
}

static void try_input(const struct_row *r, any_struct *a)
{
    /* older: the bytes after its fields are not part of the struct, and may be anything */
    fill_row(r, a);
    memset(a->bytes + r->older, 0xA5, r->size - r->older);
    a->struct_size = r->older;
    EXPECT_OK(r->call(a));
    /* newer, with unknown fields 0 */
    fill_row(r, a);
    a->struct_size = r->size + MORE;
    memset(a->bytes + r->size + MORE, 0xA5, MORE);
    EXPECT_OK(r->call(a));
    /* newer, with an unknown field set */
    a->bytes[r->size + MORE - 1] = 1;
    EXPECT_FAILS(r->call(a), MICA_ERR_ARGUMENT, "newer mica");
}

static bool all_bytes(const char *bytes, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] != value) return false;
    return true;
}

static void try_output(const struct_row *r, any_struct *a)
{
    /* older: nothing is written after its fields */
    memset(a, 0xA5, sizeof *a);
    a->struct_size = r->older;
    EXPECT_OK(r->call(a));
    EXPECT_INT(a->struct_size, r->older);
    EXPECT(all_bytes(a->bytes + r->older, r->size, 0xA5));
    /* newer: unknown fields become zero, and nothing after them is written */
    memset(a, 0xA5, sizeof *a);
    a->struct_size = r->size + MORE;
    EXPECT_OK(r->call(a));
    EXPECT_INT(a->struct_size, r->size + MORE);
    EXPECT(all_bytes(a->bytes + r->size, MORE, 0));
    EXPECT(all_bytes(a->bytes + r->size + MORE, MORE, 0xA5));
}

TEST(older_and_newer_callers_of_each_struct)
{
    any_struct *a = malloc(sizeof *a);
    CHECK(a != NULL);
    if (!world_open()) return;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct_row *r = &rows[i];
        test_case("%s%s", r->name, r->output ? " (filled by the library)" : "");
        if (!EXPECT(r->size + 2 * MORE <= sizeof *a && r->older >= sizeof(size_t) && r->older <= r->size)) continue;
        try_sizes(r, a);
        if (r->output) try_output(r, a);
        else try_input(r, a);
    }
    world_close();
    free(a);
}

/* Each struct with fields that a header defines. */
static void check_header(const char *path)
{
    char line[400], name[100];
    FILE *f = fopen(path, "r");
    CHECK_MSG(f != NULL, "%s cannot be read", path);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "typedef struct %99[a-z0-9_] {", name) != 1 || !strchr(line, '{')) continue;
        int found = 0;
        for (size_t i = 0; i < COUNT(rows); i++) found += strcmp(rows[i].name, name) == 0;
        for (size_t i = 0; i < COUNT(exempt); i++) found += strcmp(exempt[i].name, name) == 0;
        EXPECT_MSG(found > 0, "%s: %s is neither in the table nor exempt", path, name);
    }
    fclose(f);
}

TEST(no_struct_of_a_header_is_left_out)
{
    static const char *const headers[] = {"mica", "mica_convert", "mica_liquid", "mica_lm", "mica_nn", "mica_series"};
    for (size_t i = 0; i < COUNT(headers); i++) {
        char path[100];
        snprintf(path, sizeof path, "include/%s.h", headers[i]);
        check_header(path);
    }
}
