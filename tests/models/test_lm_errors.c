/* What is refused, with which status and message: files that are not a known model, sizes that are
 * inconsistent, limits, and invalid calls.
 *
 * runs: metal, arm, check */
#include "lm_tiny.h"

#define LLAMA                                                                                                 \
    .arch = "llama", .layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .dim = 16, .ffn = 96, .vocab = 40, \
    .context = 32, .pairs = true, .theta = 1e4, .format = "F32"

static const tiny good = {.name = "good", LLAMA};

static void refused(mica_engine *e, const char *path, const mica_lm_options *o, mica_status want, const char *part)
{
    mica_lm *lm = NULL;
    const mica_status got = mica_lm_open(e, path, o, &lm);
    EXPECT_MSG(got == want, "status %d, not %d: %s", (int)got, (int)want, mica_last_error());
    EXPECT_MSG(strstr(mica_last_error(), part), "\"%s\" without \"%s\"", mica_last_error(), part);
    EXPECT(!lm);
    mica_lm_close(lm);
}

TEST(models_that_are_not_known)
{
    static const struct {
        const char *name, *part;
        mica_status status;
        tiny change; /* fields that are not 0 replace those of the model */
    } bad[] = {
        {"architecture", "architecture 'mamba'", MICA_ERR_UNSUPPORTED, {.arch = "mamba"}},
        {"Hadamard", "'prism.hadamard.version'", MICA_ERR_UNSUPPORTED, {.extra_key = "prism.hadamard.version"}},
        {"experts", "'llama.expert_count'", MICA_ERR_UNSUPPORTED, {.extra_key = "llama.expert_count"}},
        {"a norm too many",
         "'blk.1.attn_q_norm_in.weight'",
         MICA_ERR_UNSUPPORTED,
         {.extra_tensor = "blk.1.attn_q_norm_in.weight"}},
        {"a layer too many", "'blk.7.attn_q.weight'", MICA_ERR_UNSUPPORTED, {.extra_tensor = "blk.7.attn_q.weight"}},
        {"a matrix too few", "'blk.1.ffn_up.weight'", MICA_ERR_FORMAT, {.without = "blk.1.ffn_up"}},
        {"a norm too few", "'blk.0.attn_norm.weight'", MICA_ERR_FORMAT, {.without = "blk.0.attn_norm"}},
        {"no tokens", "'token_embd.weight'", MICA_ERR_FORMAT, {.without = "token_embd"}},
        {"heads", "not a multiple of 3", MICA_ERR_FORMAT, {.kv_heads = 3}},
        {"scaling", "rope scaling 'dynamic'", MICA_ERR_UNSUPPORTED, {.scaling = "dynamic"}},
        {"odd rope", "cannot be rotated in pairs", MICA_ERR_FORMAT, {.rope_dims = 7}},
    };
    mica_engine *e = tiny_engine(1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        const tiny *c = &bad[i].change;
        test_case("%s", bad[i].name);
        tiny t = good;
        if (c->arch) t.arch = c->arch;
        if (c->kv_heads) t.kv_heads = c->kv_heads;
        t.extra_key = c->extra_key;
        t.extra_tensor = c->extra_tensor;
        t.without = c->without;
        t.scaling = c->scaling;
        t.rope_dims = c->rope_dims;
        tiny_model *m = tiny_new(&t);
        refused(e, m->path, NULL, bad[i].status, bad[i].part);
        tiny_free(m);
    }
    mica_close(e);
}

TEST(sub_norms_that_are_missing)
{
    mica_engine *e = tiny_engine(1);
    tiny t = good;
    t.arch = "bitnet";
    tiny_model *m = tiny_new(&t);
    refused(e, m->path, NULL, MICA_ERR_FORMAT, "attn_sub_norm.weight', which bitnet needs");
    tiny_free(m);
    mica_close(e);
}

/* A config.json with one line replaced. */
TEST(config_json_that_is_not_known)
{
    static const struct {
        const char *json, *part;
        mica_status status;
    } bad[] = {{"\"model_type\": \"gpt2\"", "architecture 'gpt2'", MICA_ERR_UNSUPPORTED},
               {"\"hidden_act\": \"gelu\"", "hidden_act 'gelu'", MICA_ERR_UNSUPPORTED},
               {"\"quantization_config\": {\"quant_method\": \"gptq\"}", "quant_method 'gptq'", MICA_ERR_UNSUPPORTED},
               {"\"quantization\": {\"bits\": 4, \"group_size\": 32, \"mode\": \"mxfp4\"}", "mode 'mxfp4'",
                MICA_ERR_UNSUPPORTED},
               {"\"use_sliding_window\": true", "use_sliding_window", MICA_ERR_UNSUPPORTED},
               {"\"num_hidden_layers\": 0", "num_hidden_layers", MICA_ERR_FORMAT},
               {"\"num_hidden_layers\": \"two\"", "num_hidden_layers", MICA_ERR_FORMAT},
               {"\"rms_norm_eps\": -1", "rms_norm_eps", MICA_ERR_FORMAT}};
    mica_engine *e = tiny_engine(1);
    tiny t = good;
    t.hf = true;
    t.pairs = false;
    for (size_t i = 0; i < COUNT(bad); i++) {
        test_case("%s", bad[i].json);
        tiny_model *m = tiny_new(&t);
        char path[640], key[64];
        snprintf(path, sizeof path, "%s/config.json", m->path);
        snprintf(key, sizeof key, "%.*s", (int)strcspn(bad[i].json, ":"), bad[i].json);
        static const char *const lines[] = {
            "\"model_type\": \"llama\"",       "\"num_hidden_layers\": 2",   "\"hidden_size\": 64",
            "\"num_attention_heads\": 4",      "\"num_key_value_heads\": 2", "\"intermediate_size\": 96",
            "\"max_position_embeddings\": 32", "\"rms_norm_eps\": 1e-5",     "\"tie_word_embeddings\": true"};
        FILE *f = fopen(path, "w");
        CHECK(f);
        fprintf(f, "{");
        for (size_t k = 0; k < COUNT(lines); k++)
            if (strncmp(lines[k], key, strlen(key)) != 0) fprintf(f, "%s,\n", lines[k]);
        fprintf(f, "%s}\n", bad[i].json);
        fclose(f);
        refused(e, m->path, NULL, bad[i].status, bad[i].part);
        tiny_free(m);
    }
    mica_close(e);
}

TEST(the_budget_is_kept)
{
    mica_engine *e = tiny_engine(1);
    tiny_model *m = tiny_new(&good);
    mica_lm *lm;
    mica_lm_session *a = NULL, *b = NULL;
    mica_lm_info info = {.struct_size = sizeof info};
    CHECK_OK(mica_lm_open(e, m->path, NULL, &lm));
    mica_lm_get_info(lm, &info);
    const uint64_t cache = mica_lm_session_nbytes(lm, NULL);
    EXPECT_INT(cache, 2 * 2 * 2 * 32 * 16 * 2); /* k and v, layers, heads, context, values, f16 */
    mica_lm_close(lm);

    mica_lm_options o;
    mica_lm_options_init(&o);
    o.memory_limit = info.weight_bytes - 1;
    char part[96];
    snprintf(part, sizeof part, "%llu bytes, the limit is %llu", (unsigned long long)info.weight_bytes,
             (unsigned long long)o.memory_limit);
    refused(e, m->path, &o, MICA_ERR_MEMORY, part);

    o.memory_limit = info.weight_bytes + cache;
    CHECK_OK(mica_lm_open(e, m->path, &o, &lm));
    CHECK_OK(mica_lm_session_open(lm, NULL, &a));
    EXPECT_INT(mica_lm_session_open(lm, NULL, &b), MICA_ERR_MEMORY);
    snprintf(part, sizeof part, "%llu bytes, the limit is %llu", (unsigned long long)(info.weight_bytes + 2 * cache),
             (unsigned long long)o.memory_limit);
    EXPECT_MSG(strstr(mica_last_error(), part), "%s", mica_last_error());
    mica_lm_session_close(a); /* frees its memory */
    EXPECT_OK(mica_lm_session_open(lm, NULL, &b));
    mica_lm_session_close(b);
    mica_lm_close(lm);
    tiny_free(m);
    mica_close(e);
}

typedef struct seen_packing {
    uint64_t done, total;
    int calls, stop_at;
} seen_packing;

static bool see_packing(uint64_t done, uint64_t total, void *user)
{
    seen_packing *seen = user;
    EXPECT(done > seen->done && done <= total && (!seen->calls || total == seen->total));
    seen->done = done;
    seen->total = total;
    return ++seen->calls != seen->stop_at;
}

/* Weights are packed when the model is opened, with progress calls; not if the file already has the kernels' order. */
TEST(weights_are_packed_when_a_model_is_opened)
{
    static const struct {
        const char *format, *embed;
        bool lazy;
        int calls;
    } cases[] = {{"I2_S", "Q8_0", false, 7 * 2 + 1},
                 {"TQ2_0", "F16", false, 7 * 2},
                 {"I2_S", "Q8_0", true, 0},
                 {"MICA_T2", "MICA_Q8", false, 0},
                 {"F16", "F32", false, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s, %s%s", cases[i].format, cases[i].embed, cases[i].lazy ? ", lazy" : "");
        tiny t = good;
        t.hidden = 256, t.heads = 4, t.kv_heads = 2, t.dim = 64, t.ffn = 256;
        t.format = cases[i].format;
        t.embed_format = cases[i].embed;
        t.ternary = true;
        tiny_model *m = tiny_new(&t);
        mica_engine *e = tiny_engine(2);
        seen_packing seen = {0};
        mica_lm *lm = NULL;
        mica_lm_options o;
        mica_lm_options_init(&o);
        o.lazy = cases[i].lazy;
        o.progress = see_packing;
        o.user = &seen;
        CHECK_OK(mica_lm_open(e, m->path, &o, &lm));
        /* a GPU reads every format without packing, but its kernels are compiled */
        const int calls = on_metal() ? (cases[i].lazy ? 0 : (int)seen.total) : cases[i].calls;
        EXPECT_INT(seen.calls, calls);
        EXPECT(!on_metal() || (calls > 0) == !cases[i].lazy);
        EXPECT_INT(seen.done, seen.total);
        mica_stats stats = {.struct_size = sizeof stats};
        mica_engine_stats(e, &stats);
        EXPECT_MSG((stats.bytes_packed > 0) == (cases[i].calls > 0 && !on_metal()), "%d bytes packed",
                   (int)stats.bytes_packed);
        mica_lm_close(lm);
        if (calls) {
            seen = (seen_packing){.stop_at = 3};
            refused(e, m->path, &o, MICA_ERR_STATE, "stopped");
            EXPECT_INT(seen.calls, 3);
        }
        tiny_free(m);
        mica_close(e);
    }
}

TEST(calls_that_make_no_sense)
{
    mica_engine *e = tiny_engine(1);
    tiny_model *m = tiny_new(&good);
    mica_lm *lm = NULL;
    mica_lm_session *s = NULL;
    const float *logits = NULL;
    const int32_t ids[40] = {1, 2, 3};
    float losses[40];
    refused(e, "/nowhere/x.gguf", NULL, MICA_ERR_FILE, "/nowhere/x.gguf");
    EXPECT_INT(mica_lm_open(NULL, m->path, NULL, &lm), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_open(e, m->path, NULL, NULL), MICA_ERR_ARGUMENT);
    mica_lm_options o;
    mica_lm_options_init(&o);
    o.act = 7;
    refused(e, m->path, &o, MICA_ERR_ARGUMENT, "act is 7");
    o.struct_size = 1;
    refused(e, m->path, &o, MICA_ERR_ARGUMENT, "struct_size");
    CHECK_OK(mica_lm_open(e, m->path, NULL, &lm));
    EXPECT(!mica_lm_tokenizer(lm)); /* no tokenizer, which is not an error of the model */
    EXPECT(mica_last_error()[0]);

    mica_lm_session_options so;
    mica_lm_session_options_init(&so);
    so.context = 33;
    EXPECT_INT(mica_lm_session_open(lm, &so, &s), MICA_ERR_ARGUMENT);
    EXPECT_MSG(strstr(mica_last_error(), "33") && strstr(mica_last_error(), "32"), "%s", mica_last_error());
    EXPECT_INT(mica_lm_session_nbytes(lm, &so), 0);
    so.context = -1;
    EXPECT_INT(mica_lm_session_open(lm, &so, &s), MICA_ERR_ARGUMENT);
    mica_lm_session_options_init(&so);
    so.batch = 0;
    EXPECT_INT(mica_lm_session_open(lm, &so, &s), MICA_ERR_ARGUMENT);
    so.batch = 513;
    EXPECT_INT(mica_lm_session_open(lm, &so, &s), MICA_ERR_ARGUMENT);
    mica_lm_session_options_init(&so);
    so.kv = (mica_lm_kv)9;
    EXPECT_INT(mica_lm_session_open(lm, &so, &s), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_session_open(NULL, NULL, &s), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_session_open(lm, NULL, NULL), MICA_ERR_ARGUMENT);

    CHECK_OK(mica_lm_session_open(lm, NULL, &s));
    EXPECT(!mica_lm_session_logits(s));
    EXPECT_INT(mica_lm_feed(s, ids, 33, &logits), MICA_ERR_SIZE);
    EXPECT_MSG(strstr(mica_last_error(), "33 tokens after 0") && strstr(mica_last_error(), "context of 32"), "%s",
               mica_last_error());
    EXPECT(!logits);
    EXPECT_INT(mica_lm_feed(s, (int32_t[]){1, 40}, 2, &logits), MICA_ERR_INDEX);
    EXPECT_MSG(strstr(mica_last_error(), "token 40") && strstr(mica_last_error(), "has 40"), "%s", mica_last_error());
    EXPECT_INT(mica_lm_feed(s, (int32_t[]){-1}, 1, &logits), MICA_ERR_INDEX);
    EXPECT_INT(mica_lm_feed(s, ids, 0, &logits), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_feed(NULL, ids, 1, &logits), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_feed(s, NULL, 1, &logits), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_score(s, ids, 33, losses), MICA_ERR_SIZE);
    EXPECT_INT(mica_lm_score(s, ids, 2, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_session_position(s), 0); /* none of this was read */
    CHECK_OK(mica_lm_feed(s, ids, 32, &logits));
    EXPECT(logits && logits == mica_lm_session_logits(s));
    EXPECT_INT(mica_lm_feed(s, ids, 1, &logits), MICA_ERR_SIZE);
    EXPECT_INT(mica_lm_session_position(s), 32);
    EXPECT_INT(mica_lm_session_context(s), 32);
    mica_lm_session_close(s);
    mica_lm_close(lm);
    tiny_free(m);
    mica_close(e);
}

static bool count_tokens(int32_t token, void *user)
{
    (void)token;
    return ++*(int *)user < 3;
}

TEST(generation_ends)
{
    mica_engine *e = tiny_engine(1);
    tiny_model *m = tiny_new(&good);
    mica_lm *lm;
    mica_lm_session *s, *two;
    mica_lm_sampler *p;
    int64_t count;
    int calls = 0;
    CHECK_OK(mica_lm_open(e, m->path, NULL, &lm));
    CHECK_OK(mica_lm_session_open(lm, NULL, &s));
    CHECK_OK(mica_lm_sampler_open(NULL, &p));
    EXPECT_INT(mica_lm_generate(s, p, NULL, 0, 4, NULL, NULL, &count), MICA_ERR_STATE);
    EXPECT_INT(mica_lm_generate(s, NULL, (int32_t[]){1}, 1, 4, NULL, NULL, &count), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_lm_generate(s, p, NULL, 1, 4, NULL, NULL, &count), MICA_ERR_ARGUMENT);
    CHECK_OK(mica_lm_generate(s, p, (int32_t[]){1, 2}, 2, 4, NULL, NULL, &count));
    EXPECT_INT(count, 4);
    EXPECT_INT(mica_lm_session_position(s), 5); /* the last one was not read */
    CHECK_OK(mica_lm_generate(s, p, (int32_t[]){1}, 1, 10, count_tokens, &calls, &count));
    EXPECT_INT(calls, 3);
    EXPECT_INT(count, 3);
    EXPECT_INT(mica_lm_generate(s, p, NULL, 0, 100, NULL, NULL, &count), MICA_ERR_SIZE); /* full */
    EXPECT_INT(mica_lm_session_position(s), 32);
    mica_lm_session_options o;
    mica_lm_session_options_init(&o);
    o.batch = 2;
    CHECK_OK(mica_lm_session_open(lm, &o, &two));
    EXPECT_INT(mica_lm_generate(two, p, (int32_t[]){1}, 1, 4, NULL, NULL, NULL), MICA_ERR_ARGUMENT);
    mica_lm_session_close(two);
    mica_lm_session_close(s);
    mica_lm_sampler_close(p);
    mica_lm_close(lm);
    tiny_free(m);
    mica_close(e);
}
