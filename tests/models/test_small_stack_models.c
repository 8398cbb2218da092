/* Models, training, files and texts on a thread with a stack of 64 KB, and graphs and texts whose
 * depth the caller chooses: they are computed, or refused with an error message.
 *
 * runs: unsanitized */
#include "files.h"
#include "api/liquid_kit.h"
#include "small_stack.h"

#include <mica_convert.h>
#include <mica_lm.h>
#include <mica_nn.h>
#include <mica_series.h>

enum { STACK_MOST = 48 * 1024 };

static void run_small(void (*run)(void *), void *user)
{
    const size_t used = small_stack_run(SMALL_STACK, run, user);
    EXPECT_MSG(used <= STACK_MOST, "uses %zu bytes of stack, more than %d", used, STACK_MOST);
}

static mica_engine *open_alone(const char *backend)
{
    const mica_engine_options o = options_for(backend, 1);
    return open_with(&o);
}

#define ON_BACKENDS(run)                            \
    do {                                            \
        static char cpu_[] = "cpu", ref_[] = "ref"; \
        test_case("cpu");                           \
        run_small(run, cpu_);                       \
        test_case("ref");                           \
        run_small(run, ref_);                       \
    } while (0)

/* ------------------------------------------------------- language model ---- */

static void use_session(mica_lm *lm, mica_lm_kv kv)
{
    enum { PROMPT = 64 };
    static const char text[] =
        "First Citizen:\nBefore we proceed any further, hear me speak. All: Speak, speak. You are "
        "all resolved rather to die than to famish? Resolved. First, you know Caius Marcius.";
    static int32_t ids[256];
    static float losses[256];
    mica_lm_session_options o;
    mica_lm_session *session = NULL;
    mica_lm_sampler_options how;
    mica_lm_sampler *sampler = NULL;
    size_t n;
    int64_t count = 0;
    mica_lm_session_options_init(&o);
    mica_lm_sampler_options_init(&how);
    o.context = 128;
    o.kv = kv;
    CHECK_OK(mica_tokenizer_encode(mica_lm_tokenizer(lm), text, strlen(text), MICA_ENCODE_BOS, ids, 256, &n));
    CHECK(n >= 1);
    for (size_t i = n; i < PROMPT; i++) ids[i] = ids[i % n];
    CHECK_OK(mica_lm_session_open(lm, &o, &session));
    CHECK_OK(mica_lm_sampler_open(&how, &sampler));
    EXPECT_OK(mica_lm_generate(session, sampler, ids, PROMPT, 4, NULL, NULL, &count));
    EXPECT_OK(mica_lm_session_rewind(session, 0));
    EXPECT_OK(mica_lm_score(session, ids, 16, losses));
    mica_lm_sampler_close(sampler);
    mica_lm_session_close(session);
}

static void run_model(void *backend)
{
    mica_engine *e = open_alone(backend);
    mica_lm *lm;
    const mica_status status = mica_lm_open(e, NULL, NULL, &lm);
    if (status == MICA_ERR_UNSUPPORTED) test_skip("built without a model");
    else if (EXPECT_MSG(status == MICA_OK, "%s", mica_last_error())) {
        for (int kv = MICA_LM_KV_F16; kv <= MICA_LM_KV_Q8; kv++) use_session(lm, (mica_lm_kv)kv);
        mica_lm_close(lm);
    }
    mica_close(e);
}

TEST(language_model) { ON_BACKENDS(run_model); }

/* Files of a random model in each container, read and run, and one quantised to each type. */
static void run_containers(void *unused)
{
    static const char *const containers[] = {"i2_s", "tq1_0", "tq2_0", "mica_t2", "mica_t1", "f16", "hf"};
    static const char *const types[] = {"f32",  "f16",  "bf16",  "q8_0",  "q6_k", "q5_k", "q4_k", "q4_0",    "q4_1",
                                        "q5_0", "q5_1", "tq1_0", "tq2_0", "i2_s", "q2_0", "q1_0", "mica_t2", "mica_q8"};
    (void)unused;
    mica_engine *e = open_alone("cpu");
    mica_random_options o;
    mica_random_options_init(&o);
    o.arch = "bitnet-b1.58";
    o.shape = "tiny,layers=1";
    for (size_t i = 0; i < COUNT(containers); i++) {
        mica_lm *lm;
        o.container = containers[i];
        const char *path = file_path(strcmp(containers[i], "hf") == 0 ? "folder" : "made.gguf");
        CHECK_OK(mica_make_random(path, &o));
        if (!EXPECT_OK(mica_lm_open(e, path, NULL, &lm))) continue;
        use_session(lm, MICA_LM_KV_F16);
        mica_lm_close(lm);
    }
    for (size_t i = 0; i < COUNT(types); i++) {
        mica_quantize_options q;
        mica_quantize_options_init(&q);
        q.type = types[i];
        q.threads = 1 + (int)i % 2;
        EXPECT_MSG(mica_quantize(file_path("folder"), file_path("small.gguf"), &q) == MICA_OK, "%s: %s", types[i],
                   mica_last_error());
    }
    mica_close(e);
}

TEST(containers_and_conversion) { run_small(run_containers, NULL); }

/* ------------------------------------------------------------- training ---- */

static void train_decoder(mica_engine *e, bool ternary)
{
    enum { BATCH = 2, TIME = 16 };
    static int32_t ids[BATCH * TIME];
    mica_scope *s = mica_scope_begin(e);
    mica_decoder_shape shape;
    mica_trainer_options o;
    mica_params *params = NULL;
    mica_trainer *trainer = NULL;
    mica_train_result result = {.struct_size = sizeof result};
    mica_decoder_shape_init(&shape);
    shape.vocab = 64, shape.dim = 128, shape.layers = 2, shape.heads = 2, shape.kv_heads = 1, shape.ffn = 128;
    shape.ternary = ternary;
    mica_trainer_options_init(&o);
    o.loss = mica_decoder_loss;
    o.user = &shape;
    for (int i = 0; i < BATCH * TIME; i++) ids[i] = i * 7 % 64;
    mica_array *data[2] = {mica_from_data(s, MICA_I32, SHAPE(BATCH, TIME), ids),
                           mica_from_data(s, MICA_I32, SHAPE(BATCH, TIME), ids)};
    CHECK_OK(mica_decoder_params(s, &shape, 3, &params));
    CHECK_OK(mica_trainer_open(e, params, &o, &trainer));
    for (int step = 0; step < 2; step++) EXPECT_OK(mica_trainer_step(trainer, s, data, 2, 1e-3, 0, &result));
    EXPECT_OK(mica_trainer_save(trainer, file_path("trainer.safetensors"), NULL, 0));
    if (ternary) {
        mica_decoder_export how;
        mica_decoder_export_init(&how);
        EXPECT_OK(mica_decoder_write(s, &shape, params, file_path("decoder.gguf"), &how));
    }
    mica_trainer_close(trainer);
    mica_params_free(params);
    mica_scope_end(s);
}

static void run_training(void *backend)
{
    mica_engine *e = open_alone(backend);
    train_decoder(e, true);
    train_decoder(e, false);
    mica_close(e);
}

TEST(training_of_a_decoder) { ON_BACKENDS(run_training); }

/* ------------------------------------------------------- liquid networks --- */

static void run_liquid_cell(mica_engine *e, mica_liquid_cell cell, int64_t time)
{
    enum { MOST_PARAMS = 64 };
    mica_scope *s = mica_scope_begin(e);
    mica_liquid net;
    mica_params *params = NULL;
    mica_liquid_result r = {.struct_size = sizeof r};
    mica_array *g[MOST_PARAMS], *p[MOST_PARAMS];
    mica_liquid_init(&net, cell);
    net.inputs = 3, net.units = 8;
    CHECK_OK(mica_params_new(&params));
    CHECK_OK(mica_liquid_params(s, &net, MICA_F32, 5, params));
    const mica_liquid_data data = {.struct_size = sizeof data,
                                   .x = mica_random_normal(s, MICA_F32, SHAPE(2, time, 3), 9)};
    CHECK_OK(mica_liquid_forward(s, &net, params, &data, &r));
    EXPECT_OK(mica_eval(s, ARRAYS(r.y, r.state)));
    size_t n = 0;
    for (size_t i = 0; i < mica_params_count(params) && n < MOST_PARAMS; i++)
        if (mica_params_is_trained(params, i)) p[n++] = mica_params_at(params, i);
    CHECK_OK(mica_liquid_forward(s, &net, params, &data, &r));
    mica_array *loss = mica_sum(s, mica_square(s, r.y), NULL, 0, false);
    EXPECT_OK(mica_grad(s, loss, p, n, g));
    EXPECT_OK(mica_eval(s, g, n));
    mica_params_free(params);
    mica_scope_end(s);
}

static void run_liquid(void *backend)
{
    mica_engine *e = open_alone(backend);
    for (int cell = MICA_LIQUID_LTC; cell <= MICA_LIQUID_CTGRU; cell++) {
        run_liquid_cell(e, (mica_liquid_cell)cell, 1);
        run_liquid_cell(e, (mica_liquid_cell)cell, 12);
    }
    mica_close(e);
}

TEST(liquid_networks) { ON_BACKENDS(run_liquid); }

/* ------------------------------------------------------- files and texts --- */

static void write_and_read(mica_engine *e, const char *name)
{
    static float values[300 * 17];
    mica_scope *s = mica_scope_begin(e);
    mica_writer *w = NULL;
    mica_file *f = NULL;
    CHECK_OK(mica_writer_open(file_path(name), NULL, &w));
    if (!strstr(name, ".npz")) (void)mica_writer_string(w, "general.name", "small", 5);
    (void)mica_writer_tensor(w, "x", "F32", SHAPE(300, 17), values);
    (void)mica_writer_tensor(w, "y", "F32", SHAPE(17), values);
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    CHECK_OK(mica_file_open(file_path(name), NULL, &f));
    mica_array *x = mica_file_array(s, f, "x");
    EXPECT_OK(mica_eval(s, &x, 1));
    mica_scope_end(s);
    mica_file_close(f);
}

static void run_files(void *unused)
{
    (void)unused;
    mica_engine *e = open_alone("cpu");
    write_and_read(e, "a.gguf");
    write_and_read(e, "a.safetensors");
    write_and_read(e, "a.npz");
    mica_close(e);
}

TEST(files) { run_small(run_files, NULL); }

static void use_tokenizer(const mica_tokenizer *t)
{
    static const char text[] = "The quick brown fox, 12345 times; na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e!\n";
    static int32_t ids[256];
    static char back[1024];
    size_t n, length;
    CHECK_OK(mica_tokenizer_encode(t, text, strlen(text), 0, ids, COUNT(ids), &n));
    CHECK_OK(mica_tokenizer_decode(t, ids, n < COUNT(ids) ? n : COUNT(ids), 0, back, sizeof back, &length));
}

static void run_tokenizers(void *unused)
{
    static const char *const pres[] = {"gpt-2", "llama-bpe", "qwen2"};
    static char text[20000], out[4096];
    static const mica_chat_message chat[] = {{"system", "Be brief."}, {"user", "Hello?"}, {"assistant", "Yes."}};
    (void)unused;
    for (size_t i = 0; i < sizeof text; i++) text[i] = "etaoin shrdlu 0123456789,."[i * i % 26];
    for (size_t i = 0; i < COUNT(pres); i++) {
        mica_tokenizer *t, *again;
        mica_bpe_options o;
        mica_bpe_options_init(&o);
        o.vocab = 400;
        o.pre = pres[i];
        if (!EXPECT_OK(mica_tokenizer_train(text, sizeof text, &o, &t))) continue;
        use_tokenizer(t);
        CHECK_OK(mica_tokenizer_save(t, file_path("tokenizer.json")));
        if (EXPECT_OK(mica_tokenizer_open(file_path("tokenizer.json"), NULL, &again))) use_tokenizer(again);
        mica_tokenizer_close(again);
        mica_tokenizer_close(t);
    }
    for (size_t i = 0; mica_chat_name(i); i++) {
        size_t length;
        EXPECT_OK(mica_chat_render(NULL, mica_chat_name(i), chat, 3, true, out, sizeof out, &length));
    }
    size_t length;
    EXPECT_OK(mica_chat_render(NULL, "{% for m in messages %}{{ m['role'] | upper }}: {{ m.content }}\n{% endfor %}",
                               chat, 3, true, out, sizeof out, &length));
}

TEST(tokenizers_and_chat) { run_small(run_tokenizers, NULL); }

/* ------------------------------------------------------------ deep inputs -- */

/* 10,000 ops one after the other, evaluated, differentiated and dropped. */
static void run_deep_graph(void *backend)
{
    enum { DEPTH = 10000 };
    mica_engine *e = open_alone(backend);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(4, 4), 1), *y = x, *g;
    EXPECT_OK(mica_eval(s, &x, 1));
    for (int i = 0; i < DEPTH; i++) y = i % 3 ? mica_sin(s, y) : mica_add(s, mica_transpose(s, y), x);
    mica_array *loss = mica_sum(s, y, NULL, 0, false);
    EXPECT_OK(mica_grad(s, loss, &x, 1, &g));
    EXPECT_OK(mica_eval(s, ARRAYS(loss, g)));
    y = x;
    for (int i = 0; i < DEPTH; i++) y = mica_exp(s, y); /* never evaluated */
    mica_scope_end(s);
    mica_close(e);
}

TEST(deep_graphs) { ON_BACKENDS(run_deep_graph); }

/* Nested scans, and nested checkpoints. */
static mica_status nested_step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                               mica_array **y, void *user)
{
    int *left = user;
    mica_scan_options o;
    (void)x, (void)y;
    if (*left == 0) {
        carry_out[0] = mica_sin(s, carry[0]);
        return MICA_OK;
    }
    --*left;
    mica_scan_options_init(&o);
    o.n_carry = 1, o.length = 1;
    return mica_scan(s, nested_step, left, &o, carry, NULL, carry_out, NULL);
}

static void run_nested(void *user)
{
    const int depth = *(const int *)user;
    int left = depth - 1;
    mica_engine *e = open_alone("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_ones(s, MICA_F32, SHAPE(3)), *y = NULL, *g = NULL;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = 1, o.length = 2;
    const mica_status status = mica_scan(s, nested_step, &left, &o, &x, NULL, &y, NULL);
    if (depth <= 16) {
        CHECK_OK(status);
        EXPECT_OK(mica_grad(s, mica_sum(s, y, NULL, 0, false), &x, 1, &g));
        EXPECT_OK(mica_eval(s, ARRAYS(y, g)));
    } else {
        EXPECT_FAILS(status, MICA_ERR_UNSUPPORTED, "scan: scans are nested more than 16 deep");
    }
    mica_scope_end(s);
    s = mica_scope_begin(e);
    x = y = mica_ones(s, MICA_F32, SHAPE(3));
    for (int i = 0; i < depth; i++) y = mica_checkpoint(s, mica_sin(s, y), &x, 1);
    mica_array *loss = mica_sum(s, y, NULL, 0, false);
    if (depth < 20) EXPECT_OK(mica_grad(s, loss, &x, 1, &g));
    else EXPECT_FAILS(mica_grad(s, loss, &x, 1, &g), MICA_ERR_UNSUPPORTED, "nested more than 20 deep");
    mica_scope_end(s);
    mica_close(e);
}

TEST(nested_scans_and_checkpoints)
{
    static int depths[] = {1, 2, 16, 17, 19, 24};
    for (size_t i = 0; i < COUNT(depths); i++) {
        test_case("%d deep", depths[i]);
        run_small(run_nested, &depths[i]);
    }
}

/* `open` repeated depth times, then `middle`, then `close` repeated depth times. */
static char *nested(size_t depth, const char *open, const char *middle, const char *close)
{
    const size_t a = strlen(open), b = strlen(middle), c = strlen(close);
    char *text = malloc(depth * (a + c) + b + 1), *at = text;
    if (!text) abort();
    for (size_t i = 0; i < depth; i++, at += a) memcpy(at, open, a);
    memcpy(at, middle, b), at += b;
    for (size_t i = 0; i < depth; i++, at += c) memcpy(at, close, c);
    *at = 0;
    return text;
}

static void open_tokenizer_text(char *middle)
{
    mica_tokenizer *t = NULL;
    const size_t room = strlen(middle) + 256;
    char *json = malloc(room);
    if (!json) abort();
    snprintf(json, room,
             "{\"version\": \"1.0\", \"pre_tokenizer\": %s, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, "
             "\"merges\": []}}",
             middle);
    if (mica_tokenizer_open(write_text("deep.json", json), NULL, &t) != MICA_OK) EXPECT(*mica_last_error());
    mica_tokenizer_close(t);
    free(json);
    free(middle);
}

/* A pre-tokenizer that splits by this pattern. Its backslashes are already doubled for JSON. */
static void open_pattern(char *pattern)
{
    const size_t room = strlen(pattern) + 256;
    char *text = malloc(room);
    if (!text) abort();
    snprintf(text, room,
             "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, \"behavior\": \"Isolated\", \"invert\": false}",
             pattern);
    free(pattern);
    open_tokenizer_text(text);
}

static void render_text(char *jinja)
{
    static char out[4096];
    static const mica_chat_message chat[] = {{"user", "Hello?"}};
    size_t length;
    if (mica_chat_render(NULL, jinja, chat, 1, true, out, sizeof out, &length) != MICA_OK) EXPECT(*mica_last_error());
    free(jinja);
}

/* The template {{ expression }}. The expression is freed. */
static void render_expression(char *expression)
{
    const size_t room = strlen(expression) + 16;
    char *whole = malloc(room);
    if (!whole) abort();
    snprintf(whole, room, "{{ %s }}", expression);
    free(expression);
    render_text(whole);
}

static void run_deep_texts(void *unused)
{
    (void)unused;
    static const size_t depths[] = {10, 30, 60, 63, 64, 100, 127, 128, 200, 255, 256, 500, 1000, 100000};
    for (size_t i = 0; i < COUNT(depths); i++) {
        const size_t n = depths[i];
        open_tokenizer_text(nested(n, "[", "", "]"));
        open_tokenizer_text(
            nested(n, "{\"type\": \"Sequence\", \"pretokenizers\": [", "{\"type\": \"ByteLevel\"}", "]}"));
        open_pattern(nested(n, "(", "a", ")"));
        open_pattern(nested(n, "(?:", "a|b", ")+"));
        open_pattern(nested(n, "(?=", "a", ")"));
        open_pattern(nested(n, "[^", "a", "]"));
        render_text(nested(n, "{{ (", "1", ") }}"));
        render_text(nested(n, "", "{{ 1 }}", ""));
        render_expression(nested(n, "(", "1", ")"));
        render_expression(nested(n, "[", "1", "]"));
        render_expression(nested(n, "not ", "true", ""));
        render_text(nested(n, "{% if true %}", "x", "{% endif %}"));
        render_text(nested(n, "{% for i in [1] %}", "x", "{% endfor %}"));
        char *macro = nested(1, "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(",
                             n > 500 ? "99999" : "90", ") }}");
        render_text(macro);
    }
}

TEST(deep_texts) { run_small(run_deep_texts, NULL); }
