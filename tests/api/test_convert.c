/* Converting models: containers that must give the same model, tensor names and row order of
 * Hugging Face folders, types and their fallbacks, llama2.c, and the facts and warnings about a
 * file. */
#include <limits.h>
#include <math.h>
#include <mica_convert.h>

#include "files.h"

/* --------------------------------------------------------------- helpers --- */

static char notes[4096];

static void take_note(const char *sentence, void *user)
{
    (void)user;
    strncat(notes, sentence, sizeof notes - strlen(notes) - 2);
    strcat(notes, "\n");
}

static mica_quantize_options options_of(const char *type)
{
    mica_quantize_options o;
    mica_quantize_options_init(&o);
    o.type = type;
    o.note = take_note;
    notes[0] = '\0';
    return o;
}

/* in and out are names in the folder of the test. */
static mica_status quantize_with(const char *in, const char *out, mica_quantize_options o)
{
    char from[700];
    snprintf(from, sizeof from, "%s", *in == '/' ? in : file_path(in));
    return mica_quantize(from, file_path(out), &o);
}

static mica_file *opened(const char *name)
{
    mica_file *f = NULL;
    EXPECT_OK(mica_file_open(file_path(name), NULL, &f));
    return f;
}

static size_t elements_of(const mica_tensor_info *t)
{
    size_t n = 1;
    for (int d = 0; d < t->ndim; d++) n *= (size_t)t->shape[d];
    return n;
}

/* A tensor as f32, to be freed. */
static float *values_of(const mica_file *f, const char *name, size_t *n)
{
    const mica_tensor_info t = info_of(f, name);
    *n = elements_of(&t);
    const int64_t cols = t.ndim ? t.shape[t.ndim - 1] : 1;
    float *x = malloc((*n + 1) * sizeof *x);
    EXPECT_OK(mica_quant_unpack(t.format, (int64_t)*n / cols, cols, t.data, (size_t)t.nbytes, x));
    return x;
}

static bool same_values(const mica_file *a, const char *a_name, const mica_file *b, const char *b_name)
{
    size_t n, m;
    float *x = values_of(a, a_name, &n), *y = values_of(b, b_name, &m);
    bool same = n == m;
    for (size_t i = 0; i < n && same; i++) same = x[i] == y[i];
    free(x);
    free(y);
    return same;
}

/* Returns whether both files have the same tensors with the same bytes. */
static bool same_tensors(const char *a_name, const char *b_name)
{
    mica_file *a = opened(a_name), *b = opened(b_name);
    mica_tensor_info t = {.struct_size = sizeof t}, u = t;
    bool same = a && b && mica_file_tensor_count(a) == mica_file_tensor_count(b);
    for (size_t i = 0; same && mica_file_tensor(a, i, &t); i++)
        same = EXPECT_MSG(mica_file_find(b, t.name, &u) && strcmp(t.format, u.format) == 0 && t.nbytes == u.nbytes &&
                              memcmp(t.data, u.data, (size_t)t.nbytes) == 0,
                          "%s differs", t.name);
    mica_file_close(a);
    mica_file_close(b);
    return same;
}

static mica_status make_random(const char *name, const char *container, uint64_t seed, const char *shape)
{
    mica_random_options o;
    mica_random_options_init(&o);
    o.container = container;
    o.seed = seed;
    if (shape) o.shape = shape;
    return mica_make_random(file_path(name), &o);
}

/* ---------------------------------------------------------- random models --- */

TEST(one_seed_is_one_model_in_every_container)
{
    static const char *const types[] = {"i2_s", "tq1_0", "tq2_0", "mica_t2", "mica_t1", "f16"};
    CHECK_OK(make_random("r.hf", "hf", 5, NULL));
    for (size_t i = 0; i < COUNT(types); i++) {
        char name[32], made[32];
        test_case("%s", types[i]);
        snprintf(name, sizeof name, "r-%s.gguf", types[i]);
        snprintf(made, sizeof made, "q-%s.gguf", types[i]);
        CHECK_OK(make_random(name, types[i], 5, NULL));
        CHECK_OK(quantize_with("r.hf", made, options_of(types[i])));
        EXPECT_STR(notes, "");
        EXPECT(same_tensors(name, made));
        mica_file *a = opened(name), *b = opened("r-i2_s.gguf");
        EXPECT(same_values(a, "blk.1.ffn_down.weight", b, "blk.1.ffn_down.weight"));
        EXPECT(same_values(a, "blk.0.attn_k.weight", b, "blk.0.attn_k.weight"));
        mica_file_close(a);
        mica_file_close(b);
    }
    test_case("another seed");
    CHECK_OK(make_random("other.gguf", "i2_s", 6, NULL));
    mica_file *a = opened("other.gguf"), *b = opened("r-i2_s.gguf");
    EXPECT(!same_values(a, "blk.0.attn_q.weight", b, "blk.0.attn_q.weight"));
    EXPECT(!same_values(a, "token_embd.weight", b, "token_embd.weight"));
    mica_file_close(a);
    mica_file_close(b);
}

TEST(scales_fit_every_float)
{
    CHECK_OK(make_random("s.gguf", "i2_s", 11, NULL));
    mica_file *f = opened("s.gguf");
    mica_tensor_info t = {.struct_size = sizeof t};
    for (size_t i = 0; mica_file_tensor(f, i, &t); i++) {
        size_t n;
        float *x = values_of(f, t.name, &n);
        for (size_t k = 0; k < n; k += 7)
            CHECK(mica_f16_to_f32(mica_f16_from_f32(x[k])) == x[k] &&
                  mica_bf16_to_f32(mica_bf16_from_f32(x[k])) == x[k]);
        free(x);
    }
    mica_file_close(f);
}

TEST(shapes_of_random_models)
{
    CHECK_OK(make_random("shape.gguf", "i2_s", 1, "tiny,layers=3,hidden=128,heads=2,kv_heads=1,ffn=384,vocab=300"));
    mica_file *f = opened("shape.gguf");
    int64_t v = 0;
    EXPECT(mica_file_i64(f, "bitnet-b1.58.block_count", &v) && v == 3);
    EXPECT_INT(info_of(f, "token_embd.weight").shape[0], 300);
    EXPECT_INT(info_of(f, "blk.2.ffn_down.weight").shape[1], 384);
    EXPECT_INT(info_of(f, "blk.2.attn_k.weight").shape[0], 64);
    mica_file_close(f);
    EXPECT_FAILS(make_random("no.gguf", "i2_s", 1, "huge"), MICA_ERR_ARGUMENT, "'huge'");
    EXPECT_FAILS(make_random("no.gguf", "i2_s", 1, "layers="), MICA_ERR_ARGUMENT, "'layers='");
    EXPECT_FAILS(make_random("no.gguf", "i2_s", 1, "layers=2x"), MICA_ERR_ARGUMENT, "'layers=2x'");
    EXPECT_FAILS(make_random("no.gguf", "i2_s", 1, "layers=0"), MICA_ERR_ARGUMENT, "size of 0");
    EXPECT_FAILS(make_random("no.gguf", "tq2_0", 1, "tiny,ffn=384"), MICA_ERR_ARGUMENT, "rows of 384");
    EXPECT_FAILS(make_random("no.gguf", "i2_s", 1, "tiny,heads=3"), MICA_ERR_ARGUMENT, "go together");
    EXPECT_FAILS(make_random("no.gguf", "i2_s", 1, "tiny,vocab=258"), MICA_ERR_ARGUMENT, "vocabulary of 258");
    EXPECT_FAILS(make_random("no.gguf", "zip", 1, NULL), MICA_ERR_ARGUMENT, "'zip'");
    EXPECT_FAILS(make_random("nowhere/no.gguf", "i2_s", 1, NULL), MICA_ERR_FILE, "cannot create");
    EXPECT_FAILS(make_random("nowhere/no", "hf", 1, NULL), MICA_ERR_FILE, "cannot make the folder");
    EXPECT_FAILS(mica_make_random(NULL, NULL), MICA_ERR_ARGUMENT, "path");
}

/* --------------------------------------------------------------- ternary --- */

TEST(ternary_to_ternary_loses_nothing)
{
    static const char *const chain[] = {"tq1_0", "tq2_0", "mica_t1", "mica_t2", "q2_0", "tq1_0", "i2_s"};
    CHECK_OK(make_random("c0.gguf", "i2_s", 3, NULL));
    for (size_t i = 0; i < COUNT(chain); i++) {
        char from[32], to[32];
        snprintf(from, sizeof from, "c%zu.gguf", i);
        snprintf(to, sizeof to, "c%zu.gguf", i + 1);
        CHECK_OK(quantize_with(from, to, options_of(chain[i])));
    }
    EXPECT(same_tensors("c0.gguf", "c7.gguf"));
    mica_file *f = opened("c7.gguf");
    EXPECT(meta_is(f, "tokenizer.ggml.pre", "llama-bpe") && mica_file_items(f, "tokenizer.ggml.tokens") == 288);
    mica_file_close(f);
}

enum { M_ROWS = 6, M_COLS = 256 };

/* A GGUF file with one matrix of random numbers and the tensors that a test needs. */
static float noise[M_ROWS * M_COLS];

static void make_noise(const char *name, const char *format, const void *data)
{
    uint32_t state = 7;
    for (int i = 0; i < M_ROWS * M_COLS; i++) {
        state = state * 1664525u + 1013904223u;
        noise[i] = (float)((int)(state >> 16) - 32768) / 16384;
    }
    mica_writer *w = NULL;
    EXPECT_OK(mica_writer_open(file_path(name), NULL, &w));
    mica_writer_string(w, "general.architecture", "llama", 5);
    mica_writer_tensor(w, "token_embd.weight", "F32", SHAPE(M_ROWS, M_COLS), noise);
    mica_writer_tensor(w, "blk.0.ffn_up.weight", format, SHAPE(M_ROWS, M_COLS), data ? data : noise);
    mica_writer_tensor(w, "blk.0.odd.weight", "F32", SHAPE(8, 172), noise);
    mica_writer_tensor(w, "blk.0.half.weight", "F32", SHAPE(8, 64), noise);
    mica_writer_tensor(w, "blk.0.attn_norm.weight", "F32", SHAPE(M_COLS), noise);
    mica_writer_tensor(w, "ids", "I32", SHAPE(2), (int32_t[]){1, 2});
    EXPECT_OK(mica_writer_finish(w, NULL, NULL));
}

TEST(absmean)
{
    make_noise("n.gguf", "F32", NULL);
    double mean = 0;
    for (int i = 0; i < M_ROWS * M_COLS; i++) mean += (double)fabsf(noise[i]) / (M_ROWS * M_COLS);
    for (size_t k = 0; k < 4; k++) {
        const char *type = (const char *[]){"i2_s", "mica_t2", "tq1_0", "tq2_0"}[k];
        test_case("%s", type);
        CHECK_OK(quantize_with("n.gguf", "t.gguf", options_of(type)));
        mica_file *f = opened("t.gguf");
        size_t n;
        float *x = values_of(f, "blk.0.ffn_up.weight", &n);
        const float scale = k < 2 ? (float)mean : mica_f16_to_f32(mica_f16_from_f32((float)mean));
        for (size_t i = 0; i < n; i++) {
            const double r = nearbyint((double)(noise[i] / (float)mean)), code = r > 1 ? 1 : r < -1 ? -1 : r;
            CHECK_CLOSE(x[i], code * (double)scale, 1e-6, 0);
        }
        free(x);
        mica_file_close(f);
    }
}

/* ----------------------------------------------------------------- types --- */

TEST(types_and_what_they_fall_back_to)
{
    static const struct {
        const char *type, *up, *odd, *half;
        double error; /* largest relative RMS difference from f32 */
    } cases[] = {
        {"f32", "F32", "F32", "F32", 0},
        {"f16", "F16", "F16", "F16", 3e-4},
        {"bf16", "BF16", "BF16", "BF16", 3e-3},
        {"q8_0", "Q8_0", "F16", "Q8_0", 6e-3},
        {"q6_k", "Q6_K", "F16", "Q8_0", 3e-2},
        {"q5_k", "Q5_K", "F16", "Q5_1", 5e-2},
        {"q4_k", "Q4_K", "F16", "Q4_1", 9e-2},
        {"q4_0", "Q4_0", "F16", "Q4_0", 0.1},
        {"q4_1", "Q4_1", "F16", "Q4_1", 9e-2},
        {"q5_0", "Q5_0", "F16", "Q5_0", 5e-2},
        {"q5_1", "Q5_1", "F16", "Q5_1", 5e-2},
        {"tq1_0", "TQ1_0", "F16", "Q2_0", 0.6},
        {"TQ2_0", "TQ2_0", "F16", "Q2_0", 0.6},
        {"i2_s", "I2_S", "F16", "Q2_0", 0.6},
        {"q2_0", "Q2_0", "F16", "Q2_0", 0.6},
        {"q1_0", "Q1_0", "F16", "F16", 0.7},
        {"mica_t1", "MICA_T1", "MICA_T1", "MICA_T1", 0.6},
        {"mica_t2", "MICA_T2", "MICA_T2", "MICA_T2", 0.6},
        {"mica_q8", "MICA_Q8", "MICA_Q8", "MICA_Q8", 6e-3},
    };
    make_noise("n.gguf", "F32", NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s", cases[i].type);
        CHECK_OK(quantize_with("n.gguf", "t.gguf", options_of(cases[i].type)));
        mica_file *f = opened("t.gguf");
        EXPECT_STR(info_of(f, "blk.0.ffn_up.weight").format, cases[i].up);
        EXPECT_STR(info_of(f, "blk.0.odd.weight").format, cases[i].odd);
        EXPECT_STR(info_of(f, "blk.0.half.weight").format, cases[i].half);
        EXPECT_STR(info_of(f, "blk.0.attn_norm.weight").format, "F32");
        EXPECT_STR(info_of(f, "ids").format, "I32");
        const bool plain = i < 3;
        EXPECT_STR(info_of(f, "token_embd.weight").format, plain ? cases[i].up : "F16");
        const bool any_row = strncmp(cases[i].type, "mica", 4) == 0;
        EXPECT(plain || any_row || strstr(notes, "blk.0.odd.weight is stored as F16: its rows of 172 do not fill"));
        size_t n;
        double sum = 0, off = 0;
        float *x = values_of(f, "blk.0.ffn_up.weight", &n);
        for (size_t k = 0; k < n; k++) {
            sum += (double)noise[k] * (double)noise[k];
            off += ((double)x[k] - (double)noise[k]) * ((double)x[k] - (double)noise[k]);
        }
        EXPECT_MSG(sqrt(off / sum) <= cases[i].error, "off by %g", sqrt(off / sum));
        EXPECT(cases[i].error == 0 || sqrt(off / sum) > cases[i].error / 20);
        free(x);
        mica_file_close(f);
    }
}

TEST(rules)
{
    make_noise("n.gguf", "F32", NULL);
    const mica_tensor_rule rules[] = {
        {"ffn_(up|down)", "q4_0"}, {"^token_embd", "q6_k"}, {"up\\.weight$", "bf16"}, {"norm", "q8_0"}};
    mica_quantize_options o = options_of("q8_0");
    o.rules = rules;
    o.n_rules = COUNT(rules);
    CHECK_OK(quantize_with("n.gguf", "t.gguf", o));
    mica_file *f = opened("t.gguf");
    EXPECT_STR(info_of(f, "blk.0.ffn_up.weight").format, "BF16");
    EXPECT_STR(info_of(f, "token_embd.weight").format, "Q6_K");
    EXPECT_STR(info_of(f, "blk.0.half.weight").format, "Q8_0");
    EXPECT_STR(info_of(f, "blk.0.attn_norm.weight").format, "F32");
    EXPECT(strstr(notes, "attn_norm.weight is stored as F32: it has one dimension"));
    mica_file_close(f);
    o.rules = (const mica_tensor_rule[]){{"a(b", "q8_0"}};
    o.n_rules = 1;
    EXPECT_FAILS(quantize_with("n.gguf", "no.gguf", o), MICA_ERR_ARGUMENT, "'a(b' is not a regular expression");
    o.rules = (const mica_tensor_rule[]){{"ab", "q9"}};
    EXPECT_FAILS(quantize_with("n.gguf", "no.gguf", o), MICA_ERR_ARGUMENT, "'q9'");
    o.rules = NULL;
    EXPECT_FAILS(quantize_with("n.gguf", "no.gguf", o), MICA_ERR_ARGUMENT, "rules is NULL, n_rules is 1");
    EXPECT(access(file_path("no.gguf"), F_OK) != 0);
}

static bool stop_soon(uint64_t done, uint64_t total, const char *tensor, void *user)
{
    (void)tensor, (void)total;
    return done < *(uint64_t *)user;
}

static bool count_all(uint64_t done, uint64_t total, const char *tensor, void *user)
{
    *(uint64_t *)user = done;
    return *tensor && done <= total;
}

TEST(bad_quantizations)
{
    make_noise("n.gguf", "F32", NULL);
    mica_quantize_options o = options_of("q8_0");
    const int there = files_there();
    EXPECT_FAILS(mica_quantize(NULL, "x", &o), MICA_ERR_ARGUMENT, "in is NULL");
    EXPECT_FAILS(mica_quantize("x", NULL, &o), MICA_ERR_ARGUMENT, "out is NULL");
    EXPECT_FAILS(mica_quantize("x", "y", NULL), MICA_ERR_ARGUMENT, "options is NULL");
    EXPECT_FAILS(mica_quantize("x", "y", &(mica_quantize_options){0}), MICA_ERR_ARGUMENT, "struct_size");
    EXPECT_FAILS(quantize_with("n.gguf", "no.gguf", options_of(NULL)), MICA_ERR_ARGUMENT, "(NULL)");
    EXPECT_FAILS(quantize_with("n.gguf", "no.gguf", options_of("q9_9")), MICA_ERR_ARGUMENT, "'q9_9'");
    EXPECT_FAILS(quantize_with("n.gguf", "no.zip", options_of("f32")), MICA_ERR_ARGUMENT, "'zip'");
    EXPECT_FAILS(quantize_with("/nowhere.gguf", "no.gguf", o), MICA_ERR_FILE, "/nowhere.gguf");
    EXPECT_FAILS(quantize_with("n.gguf", "nowhere/no.gguf", o), MICA_ERR_FILE, "cannot create");
    EXPECT_FAILS(quantize_with("n.gguf", "no.safetensors", o), MICA_ERR_UNSUPPORTED, "Q8_0");
    uint64_t limit = 100, seen = 0;
    o.progress = stop_soon;
    o.user = &limit;
    EXPECT_FAILS(quantize_with("n.gguf", "no.gguf", o), MICA_ERR_STATE, "stopped");
    EXPECT_INT(files_there(), there);
    o.progress = count_all;
    o.user = &seen;
    CHECK_OK(quantize_with("n.gguf", "t.gguf", o));
    mica_file *f = opened("t.gguf");
    mica_tensor_info t = {.struct_size = sizeof t};
    for (size_t i = 0; mica_file_tensor(f, i, &t); i++) seen -= t.nbytes;
    EXPECT_INT(seen, 0);
    mica_file_close(f);
}

TEST(values_that_do_not_fit)
{
    float bad[M_ROWS * M_COLS] = {0};
    bad[700] = INFINITY;
    make_noise("bad.gguf", "F32", bad);
    EXPECT_FAILS(quantize_with("bad.gguf", "no.gguf", options_of("q8_0")), MICA_ERR_ARGUMENT, "'blk.0.ffn_up.weight'");
    EXPECT_FAILS(quantize_with("bad.gguf", "no.gguf", options_of("tq2_0")), MICA_ERR_ARGUMENT, "'blk.0.ffn_up.weight'");
    bad[700] = 1e6f;
    make_noise("bad.gguf", "F32", bad);
    EXPECT_FAILS(quantize_with("bad.gguf", "no.gguf", options_of("f16")), MICA_ERR_ARGUMENT, "element 700 is 1e+06");
    CHECK_OK(quantize_with("bad.gguf", "t.gguf", options_of("bf16")));
    bad[700] = NAN;
    make_noise("bad.gguf", "F32", bad);
    EXPECT_FAILS(quantize_with("bad.gguf", "no.gguf", options_of("i2_s")), MICA_ERR_ARGUMENT, "NaN values");
    EXPECT(access(file_path("no.gguf"), F_OK) != 0);
}

/* ------------------------------------------------------- Hugging Face ------ */

enum { H = 8, HEADS = 2, KV = 1, F = 12, V = 5 };

static float hf_weights[1024];

typedef struct hf_made {
    const char *more;   /* more lines of config.json */
    const char *model_type, *arch;
    const char *extra;  /* a tensor of this name */
    bool head, packed;
} hf_made;

/* A folder with one layer. */
static const char *make_hf(const char *name, hf_made made)
{
    char path[128], text[1024];
    for (int i = 0; i < 1024; i++) hf_weights[i] = (float)i / 16;
    (void)mkdir(file_path(name), 0777);
    snprintf(path, sizeof path, "%s/config.json", name);
    snprintf(text, sizeof text,
             "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"hidden_size\": %d, \"num_hidden_layers\": 1, "
             "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"intermediate_size\": %d, \"vocab_size\": %d, "
             "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0%s}",
             made.arch, made.model_type, H, HEADS, KV, F, V, made.more ? made.more : "");
    write_text(path, text);
    snprintf(path, sizeof path, "%s/model.safetensors", name);
    mica_writer *w = NULL;
    EXPECT_OK(mica_writer_open(file_path(path), NULL, &w));
    const char *l = "model.layers.0.";
#define T(part, ...) \
    snprintf(text, sizeof text, "%s%s", l, part), mica_writer_tensor(w, text, "F32", __VA_ARGS__, hf_weights)
    mica_writer_tensor(w, "model.embed_tokens.weight", "F32", SHAPE(V, H), hf_weights);
    if (made.head) mica_writer_tensor(w, "lm_head.weight", "F32", SHAPE(V, H), hf_weights);
    mica_writer_tensor(w, "model.norm.weight", "F32", SHAPE(H), hf_weights);
    T("input_layernorm.weight", SHAPE(H));
    T("post_attention_layernorm.weight", SHAPE(H));
    T("self_attn.q_proj.bias", SHAPE(H));
    T("self_attn.k_proj.weight", SHAPE(H / HEADS * KV, H));
    T("self_attn.v_proj.weight", SHAPE(H / HEADS * KV, H));
    T("self_attn.o_proj.weight", SHAPE(H, H));
    T("mlp.gate_proj.weight", SHAPE(F, H));
    T("mlp.up_proj.weight", SHAPE(F, H));
    T("mlp.down_proj.weight", SHAPE(H, F));
    if (!made.packed) T("self_attn.q_proj.weight", SHAPE(H, H));
#undef T
    static const float quarter = 0.25f; /* data is borrowed until the end */
    static const uint8_t codes[H / 4 * H] = {8, 69, 105, 8, 69, 105, 8, 69, 0xaa, 0x55, 0, 1, 2, 4, 8, 0x10};
    if (made.packed) {
        mica_writer_tensor(w, "model.layers.0.self_attn.q_proj.weight", "U8", SHAPE(H / 4, H), codes);
        mica_writer_tensor(w, "model.layers.0.self_attn.q_proj.weight_scale", "F32", SHAPE(1), &quarter);
    }
    if (made.extra) mica_writer_tensor(w, made.extra, "F32", SHAPE(2), hf_weights);
    EXPECT_OK(mica_writer_finish(w, NULL, NULL));
    return name;
}

static const hf_made llama = {.arch = "LlamaForCausalLM", .model_type = "llama"};

/* transformers rotates halves of a head; the arch llama of GGUF rotates pairs. */
TEST(rows_of_q_and_k_are_paired_for_llama)
{
    make_hf("llama", llama);
    CHECK_OK(quantize_with("llama", "t.gguf", options_of("f32")));
    EXPECT(strstr(notes, "no tokenizer is written"));
    mica_file *f = opened("t.gguf");
    size_t n;
    float *q = values_of(f, "blk.0.attn_q.weight", &n), *k = values_of(f, "blk.0.attn_k.weight", &n);
    float *b = values_of(f, "blk.0.attn_q.bias", &n), *v = values_of(f, "blk.0.attn_v.weight", &n);
    static const int from[H] = {0, 2, 1, 3, 4, 6, 5, 7};
    for (int r = 0; r < H; r++) {
        for (int c = 0; c < H; c++) EXPECT(q[r * H + c] == hf_weights[from[r] * H + c]);
        if (r < 4) EXPECT(k[r * H + 1] == hf_weights[from[r] * H + 1] && v[r * H + 1] == hf_weights[r * H + 1]);
        EXPECT(b[r] == hf_weights[from[r]]);
    }
    int64_t i = 0;
    double d = 0;
    EXPECT(meta_is(f, "general.architecture", "llama"));
    EXPECT(mica_file_i64(f, "llama.attention.head_count_kv", &i) && i == KV);
    EXPECT(mica_file_i64(f, "llama.rope.dimension_count", &i) && i == 4);
    EXPECT(mica_file_i64(f, "llama.context_length", &i) && i == 64);
    EXPECT(mica_file_f64(f, "llama.rope.freq_base", &d) && d == 10000);
    EXPECT(mica_file_f64(f, "llama.attention.layer_norm_rms_epsilon", &d) && (float)d == 1e-5f);
    EXPECT(!mica_file_find(f, "rope_freqs.weight", NULL) && !mica_file_find(f, "output.weight", NULL));
    free(q), free(k), free(b), free(v);
    mica_file_close(f);
}

TEST(rows_of_others_are_not)
{
    make_hf("qwen", (hf_made){.arch = "Qwen3ForCausalLM",
                              .model_type = "qwen3",
                              .head = true,
                              .more = ", \"head_dim\": 4",
                              .extra = "model.layers.0.self_attn.q_norm.weight"});
    CHECK_OK(quantize_with("qwen", "t.gguf", options_of("f32")));
    mica_file *f = opened("t.gguf");
    size_t n;
    int64_t i = 0;
    float *q = values_of(f, "blk.0.attn_q.weight", &n);
    EXPECT(memcmp(q, hf_weights, n * sizeof *q) == 0);
    EXPECT(mica_file_find(f, "output.weight", NULL) && mica_file_find(f, "blk.0.attn_q_norm.weight", NULL));
    EXPECT(mica_file_i64(f, "qwen3.attention.key_length", &i) && i == 4);
    free(q);
    mica_file_close(f);
}

/* Only linear_class determines whether the scale multiplies or divides. */
TEST(packed_ternary_weights)
{
    for (int multiplies = 0; multiplies < 2; multiplies++) {
        test_case(multiplies ? "autobitlinear" : "bitlinear");
        hf_made made = {.arch = "BitNetForCausalLM", .model_type = "bitnet", .packed = true};
        made.more = multiplies
                        ? ", \"hidden_act\": \"relu2\", \"quantization_config\": {\"linear_class\": \"autobitlinear\"}"
                        : ", \"quantization_config\": {\"linear_class\": \"bitlinear\"}";
        make_hf("packed", made);
        CHECK_OK(quantize_with("packed", "t.gguf", options_of("f32")));
        mica_file *f = opened("t.gguf");
        EXPECT(meta_is(f, "general.architecture", multiplies ? "bitnet-b1.58" : "bitnet"));
        size_t n;
        float *q = values_of(f, "blk.0.attn_q.weight", &n);
        const float s = multiplies ? 0.25f : 4;
        /* bytes 8 and 69 of rows 0, 2, 4, 6: codes low bits first, minus 1 */
        EXPECT(q[0] == -s && q[2 * H] == s && q[4 * H] == -s && q[6 * H] == -s);
        EXPECT(q[1] == 0 && q[2 * H + 1] == 0 && q[4 * H + 1] == -s && q[6 * H + 1] == 0);
        EXPECT(q[1 * H] == s && q[3 * H] == s && q[5 * H] == s && q[7 * H] == s);
        free(q);
        mica_file_close(f);
    }
}

/* Codes of MLX are stored with the low bits first, contiguously over the bytes of a row. */
TEST(affine_weights_of_mlx)
{
    enum { ROWS = 3, COLS = 64, GROUP = 32 };
    for (int bits = 2; bits <= 8; bits++) {
        char config[400];
        uint8_t packed[ROWS * COLS] = {0};
        uint16_t scales[ROWS * 2], biases[ROWS * 2];
        if (bits == 7) continue;
        test_case("%d bits", bits);
        for (int i = 0; i < ROWS * COLS; i++) {
            const unsigned q = (unsigned)(i * 37) & ((1u << bits) - 1);
            for (int k = 0; k < bits; k++) packed[(i * bits + k) / 8] |= (uint8_t)((q >> k & 1) << (i * bits + k) % 8);
        }
        for (int i = 0; i < ROWS * 2; i++) {
            scales[i] = mica_f16_from_f32((float)(i + 1) / 8);
            biases[i] = mica_f16_from_f32((float)-i);
        }
        (void)mkdir(file_path("mlx"), 0777);
        snprintf(
            config, sizeof config,
            "{\"model_type\": \"qwen3\", \"hidden_size\": 64, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
            "\"intermediate_size\": 8, \"vocab_size\": 3, \"max_position_embeddings\": 64, "
            "\"quantization\": {\"group_size\": 32, \"bits\": 3, \"model.embed_tokens\": {\"bits\": %d}}}",
            bits);
        write_text("mlx/config.json", config);
        mica_writer *w = NULL;
        CHECK_OK(mica_writer_open(file_path("mlx/model.safetensors"), NULL, &w));
        mica_writer_tensor(w, "model.embed_tokens.weight", "U32", SHAPE(ROWS, COLS * bits / 32), packed);
        mica_writer_tensor(w, "model.embed_tokens.scales", "F16", SHAPE(ROWS, 2), scales);
        if (bits != 5) mica_writer_tensor(w, "model.embed_tokens.biases", "F16", SHAPE(ROWS, 2), biases);
        CHECK_OK(mica_writer_finish(w, NULL, NULL));
        if (bits == 5) {
            EXPECT_FAILS(quantize_with("mlx", "no.gguf", options_of("f32")), MICA_ERR_FORMAT, "embed_tokens.biases'");
            continue;
        }
        CHECK_OK(quantize_with("mlx", "t.gguf", options_of("f32")));
        mica_file *f = opened("t.gguf");
        size_t n;
        float *x = values_of(f, "token_embd.weight", &n);
        CHECK_INT(n, ROWS * COLS);
        for (int i = 0; i < ROWS * COLS; i++) {
            const int q = i * 37 & ((1 << bits) - 1), group = i / GROUP;
            CHECK(x[i] == (float)(group + 1) / 8 * (float)q - (float)group);
        }
        free(x);
        mica_file_close(f);
    }
}

TEST(long_contexts)
{
    hf_made made = llama;
    made.more =
        ", \"head_dim\": 4, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
        "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 16}";
    make_hf("l3", made);
    CHECK_OK(quantize_with("l3", "t.gguf", options_of("f32")));
    mica_file *f = opened("t.gguf");
    size_t n;
    float *x = values_of(f, "rope_freqs.weight", &n);
    CHECK_INT(n, 2);
    /* wave lengths 6.28 (between 4 and 16) and 628 (above 16) */
    const double smooth = (16 / (2 * 3.14159265358979) - 1) / 3;
    EXPECT_CLOSE(x[0], 1 / ((1 - smooth) / 8 + smooth), 1e-6, 0);
    EXPECT_CLOSE(x[1], 8, 1e-6, 0);
    free(x);
    mica_file_close(f);
    made.more = ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 32}";
    make_hf("yarn", made);
    CHECK_OK(quantize_with("yarn", "t.gguf", options_of("f32")));
    f = opened("t.gguf");
    int64_t i = 0;
    double d = 0;
    EXPECT(meta_is(f, "llama.rope.scaling.type", "yarn"));
    EXPECT(mica_file_f64(f, "llama.rope.scaling.factor", &d) && d == 4);
    EXPECT(mica_file_i64(f, "llama.rope.scaling.original_context_length", &i) && i == 32);
    mica_file_close(f);
}

TEST(folders_that_are_not_converted)
{
    hf_made made = llama;
    made.extra = "model.layers.0.mlp.experts.0.weight";
    make_hf("x", made);
    EXPECT_FAILS(quantize_with("x", "no.gguf", options_of("f32")), MICA_ERR_UNSUPPORTED, "mlp.experts.0.weight");
    make_hf("x2", (hf_made){.arch = "GPT2LMHeadModel", .model_type = "gpt2"});
    EXPECT_FAILS(quantize_with("x2", "no.gguf", options_of("f32")), MICA_ERR_UNSUPPORTED, "'GPT2LMHeadModel'");
    made = llama;
    made.more = ", \"rope_scaling\": {\"type\": \"dynamic\"}";
    make_hf("x3", made);
    EXPECT_FAILS(quantize_with("x3", "no.gguf", options_of("f32")), MICA_ERR_UNSUPPORTED, "'dynamic'");
    made.more = ", \"tie_word_embeddings\": true";
    made.head = true;
    make_hf("x4", made);
    CHECK_OK(quantize_with("x4", "t.gguf", options_of("f32")));
    EXPECT(strstr(notes, "lm_head.weight is left out"));
    made.extra = "model.layers.0.self_attn.rotary_emb.inv_freq";
    make_hf("x5", made);
    CHECK_OK(quantize_with("x5", "t.gguf", options_of("f32")));
    test_case("as safetensors, names are kept");
    CHECK_OK(quantize_with("x4", "t.safetensors", options_of("bf16")));
    mica_file *f = opened("t.safetensors");
    EXPECT_STR(info_of(f, "model.embed_tokens.weight").format, "BF16");
    EXPECT_STR(info_of(f, "model.norm.weight").format, "F32");
    EXPECT(strstr(notes, "cannot be stored in safetensors"));
    mica_file_close(f);
}

/* --------------------------------------------------------------- llama2.c --- */

TEST(checkpoints_of_llama2c)
{
    enum { DIM = 8, HID = 12, LAYERS = 2, VOC = 3, SEQ = 4 };
    for (int tied = 0; tied < 2; tied++) {
        test_case(tied ? "tied" : "with a head of its own");
        const int32_t head[7] = {DIM, HID, LAYERS, 2, 1, tied ? VOC : -VOC, SEQ};
        const size_t n = (size_t)(VOC * DIM * (tied ? 1 : 2) +
                                  LAYERS * (2 * DIM + 2 * DIM * DIM + 2 * 4 * DIM + 3 * DIM * HID) + DIM + SEQ * 4);
        float *bytes = malloc(28 + 4 * n);
        memcpy(bytes, head, 28);
        for (size_t i = 0; i < n; i++) bytes[7 + i] = (float)i;
        write_bytes("c.bin", bytes, 28 + 4 * n);
        CHECK_OK(quantize_with("c.bin", "t.gguf", options_of("f32")));
        EXPECT(strstr(notes, "tokenizer.bin"));
        mica_file *f = opened("t.gguf");
        size_t count;
        float *x = values_of(f, "blk.1.attn_norm.weight", &count);
        EXPECT(count == DIM && x[0] == VOC * DIM + DIM);
        free(x);
        x = values_of(f, "blk.0.attn_k.weight", &count);
        EXPECT(count == 4 * DIM && x[0] == VOC * DIM + LAYERS * DIM + LAYERS * DIM * DIM);
        free(x);
        EXPECT(mica_file_find(f, "output.weight", NULL) == !tied);
        x = values_of(f, tied ? "token_embd.weight" : "output.weight", &count);
        EXPECT(x[count - 1] == (tied ? VOC * DIM - 1 : (float)(n - 1)));
        free(x);
        mica_file_close(f);
        test_case("a byte more or less");
        write_bytes("c.bin", bytes, 28 + 4 * n - 1);
        EXPECT_FAILS(quantize_with("c.bin", "no.gguf", options_of("f32")), MICA_ERR_FORMAT, "bytes that are not safetensors");
        free(bytes);
    }
}

/* A llama2.c model and its vocabulary. Paths are absolute: other names are relative to the folder of the test. */
static void llama2c(const char *model, const char *tokenizer, int64_t n_tokens, int64_t n_tensors)
{
    mica_quantize_options o = options_of("f32");
    o.tokenizer = tokenizer;
    CHECK_OK(quantize_with(model, "s.gguf", o));
    mica_file *f = opened("s.gguf");
    EXPECT_INT(mica_file_items(f, "tokenizer.ggml.tokens"), n_tokens);
    EXPECT_INT(mica_file_items(f, "tokenizer.ggml.scores"), n_tokens);
    EXPECT(meta_is(f, "tokenizer.ggml.model", "llama"));
    EXPECT_INT(mica_file_tensor_count(f), n_tensors);
    const char *text;
    size_t at = 0, n;
    for (int i = 0; i < 4; i++) CHECK(mica_file_next_string(f, "tokenizer.ggml.tokens", &at, &text, &n));
    EXPECT(n == 6 && memcmp(text, "<0x00>", 6) == 0);
    mica_file_close(f);
}

TEST(stories)
{
    char model[PATH_MAX], tokenizer[PATH_MAX], path[512];
    test_case("fixture");
    CHECK(realpath("tests/fixtures/models/story.bin", model) && realpath("tests/fixtures/models/spm.bin", tokenizer));
    llama2c(model, tokenizer, 452, 20);
    const char *root = getenv("MICA_TEST_DATA");
    snprintf(path, sizeof path, "%s/models/stories260K.bin", root && *root ? root : "../shared/data");
    if (!realpath(path, model)) return;
    test_case("stories260K");
    snprintf(path, sizeof path, "%s/models/tok512.bin", root && *root ? root : "../shared/data");
    CHECK(realpath(path, tokenizer));
    llama2c(model, tokenizer, 512, 47);
}

/* ----------------------------------------------------------------- facts --- */

static bool warned(const mica_facts *f, const char *part)
{
    for (int i = 0; i < f->n_warnings; i++)
        if (strstr(f->warnings[i], part)) return true;
    return false;
}

TEST(what_a_file_is)
{
    mica_facts *f = calloc(1, sizeof *f);
    f->struct_size = sizeof *f;
    CHECK_OK(make_random("fact.gguf", "tq2_0", 1, NULL));
    mica_file *file = opened("fact.gguf");
    CHECK_OK(mica_file_facts(file, f));
    EXPECT_STR(f->kind, "gguf");
    EXPECT_STR(f->arch, "bitnet-b1.58");
    EXPECT(f->layers == 2 && f->hidden == 256 && f->heads == 4 && f->kv_heads == 2 && f->head_dim == 64);
    EXPECT(f->vocab == 288 && f->context == 512 && f->tokens == 288 && f->bos == 256 && f->eos == 257 && f->tied);
    EXPECT(f->parameters == 288 * 256 + 2 * (2 * 65536 + 2 * 32768 + 3 * 131072 + 3 * 256 + 512) + 256);
    EXPECT_INT(f->n_formats, 3);
    EXPECT_STR(f->formats[0].format, "TQ2_0");
    EXPECT_INT(f->formats[0].bytes, f->formats[0].parameters / 256 * 66);
    EXPECT_INT(f->n_warnings, 0);
    uint64_t n[4];
    EXPECT(mica_file_codes(file, "blk.0.attn_q.weight", n) && n[0] + n[1] + n[2] == 65536 && n[3] == 0 && n[1] > 20000);
    EXPECT(!mica_file_codes(file, "token_embd.weight", n) && !mica_file_codes(file, "nothing", n));
    mica_file_close(file);
    EXPECT_FAILS(mica_file_facts(NULL, f), MICA_ERR_ARGUMENT, "file_facts");
    free(f);
}

/* The errors of the official file of BitNet 2B4T. */
TEST(what_is_known_to_go_wrong)
{
    static const char template[] = "{% for m in messages %}Human: {{ m }}\n\nBITNETAssistant: {% endfor %}";
    mica_facts *f = calloc(1, sizeof *f);
    f->struct_size = sizeof *f;
    mica_writer *w = NULL;
    CHECK_OK(mica_writer_open(file_path("w.gguf"), NULL, &w));
    mica_writer_string(w, "general.architecture", "bitnet-b1.58", 12);
    mica_writer_string(w, "tokenizer.ggml.model", "gpt2", 4);
    mica_writer_strings(w, "tokenizer.ggml.tokens", 2, (const char *[]){"a", "b"}, NULL);
    mica_writer_string(w, "tokenizer.chat_template", template, sizeof template - 1);
    mica_writer_i64(w, "bitnet-b1.58.vocab_size", MICA_U32, 3);
    mica_writer_i64(w, "prism.hadamard.version", MICA_U32, 1);
    mica_writer_tensor(w, "x", "I2_S", SHAPE(1, 128), (uint8_t[64]){0});
    mica_writer_tensor(w, "y", "IQ1_S", SHAPE(1, 256), (uint8_t[50]){0});
    CHECK_OK(mica_writer_finish(w, NULL, NULL));
    mica_file *file = opened("w.gguf");
    CHECK_OK(mica_file_facts(file, f));
    EXPECT(warned(f, "tokenizer.ggml.pre is missing") && warned(f, "BITNETAssistant") && warned(f, "end-of-turn"));
    EXPECT(warned(f, "2 tokens, the metadata states 3") && warned(f, "hadamard") && warned(f, "I2_S") &&
           warned(f, "IQ1_S"));
    mica_file_close(file);
    free(f);
}
