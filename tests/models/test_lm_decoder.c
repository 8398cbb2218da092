/* The decoder against an independent computation in double precision, stage by stage, for every
 * architecture and option. Also the equalities that must hold for any values: prompts in pieces,
 * batches, threads, sessions, containers.
 *
 * runs: metal-unsanitized, arm */
#include "lm_reference.h"

/* Sizes that differ from each other wherever the format allows it. */
#define SIZES .layers = 2, .hidden = 96, .heads = 6, .kv_heads = 2, .dim = 32, .ffn = 160, .vocab = 61, .context = 64
/* Multiples of 256, for blocks of ternary formats. */
#define BLOCKS .layers = 2, .hidden = 256, .heads = 8, .kv_heads = 2, .dim = 64, .ffn = 512, .vocab = 61, .context = 64
#define BITNET .relu2 = true, .sub_norms = true, .ternary = true, .theta = 5e5

static const tiny models[] = {
    {"bitnet-b1.58 I2_S", "bitnet-b1.58", BLOCKS, BITNET, .format = "I2_S", .embed_format = "F16"},
    {"bitnet-25 with a head", "bitnet-25", BLOCKS, BITNET, .format = "TQ2_0", .untied = true, .embed_format = "Q8_0"},
    {"bitnet with SiLU", "bitnet", BLOCKS, .sub_norms = true, .ternary = true, .theta = 1e4, .format = "TQ1_0"},
    {"bitnet of floats", "bitnet", SIZES, .sub_norms = true, .theta = 1e4, .format = "F16"},
    {"llama", "llama", SIZES, .pairs = true, .theta = 1e4, .format = "F32", .untied = true},
    {"llama, half of a head rotated", "llama", SIZES, .pairs = true, .theta = 1e4, .format = "F32", .rope_dims = 16},
    {"llama with biases", "llama", SIZES, .pairs = true, .theta = 1e4, .format = "BF16", .biases = true},
    {"llama Q8_0", "llama", SIZES, .pairs = true, .theta = 1e4, .format = "Q8_0", .embed_format = "Q8_0"},
    {"llama Q4_K", "llama", BLOCKS, .pairs = true, .theta = 1e4, .format = "Q4_K", .embed_format = "Q6_K"},
    {"bitnet-b1.58 in panels", "bitnet-b1.58", SIZES, BITNET, .format = "MICA_T2", .embed_format = "MICA_Q8"},
    {"llama ternary", "llama", BLOCKS, .pairs = true, .theta = 1e4, .format = "TQ2_0", .ternary = true},
    {"llama I2_S", "llama", BLOCKS, .pairs = true, .theta = 1e6, .format = "I2_S", .ternary = true, .untied = true},
    {"qwen3", "qwen3", SIZES, .qk_norms = true, .theta = 1e6, .format = "F32"},
    {"qwen3 Q1_0", "qwen3", BLOCKS, .qk_norms = true, .theta = 1e6, .format = "Q1_0", .embed_format = "Q1_0"},
    {"HF bitnet", "bitnet", .hf = true, BLOCKS, BITNET, .format = "HF_TERNARY", .embed_format = "BF16"},
    {"HF bitnet, rows no multiple of 4", "bitnet", .hf = true, SIZES, BITNET, .format = "HF_TERNARY"},
    {"HF bitnet, online", "bitnet", .hf = true, SIZES, .relu2 = true, .sub_norms = true, .theta = 5e5, .format = "BF16",
     .online = true},
    {"HF llama, bitlinear", "llama", .hf = true, SIZES, .ternary = true, .theta = 1e6, .format = "HF_TERNARY",
     .divides = true, .untied = true},
    {"HF llama of 1bitLLM", "llama", .hf = true, SIZES, .sub_norms = true, .theta = 1e4, .format = "F16",
     .online = true, .other_names = true},
    {"HF llama", "llama", .hf = true, SIZES, .theta = 1e4, .format = "BF16", .biases = true},
    {"MLX qwen3", "qwen3", .hf = true, SIZES, .qk_norms = true, .theta = 1e6, .format = "AFFINE",
     .embed_format = "AFFINE"},
    {"HF qwen3", "qwen3", .hf = true, SIZES, .qk_norms = true, .theta = 1e6, .format = "BF16"},
};

static const tiny scaled[] = {
    {"llama, linear", "llama", SIZES, .pairs = true, .theta = 1e4, .format = "F32", .scaling = "linear"},
    {"qwen3, YaRN", "qwen3", SIZES, .qk_norms = true, .theta = 1e3, .format = "F32", .scaling = "yarn"},
    {"HF llama, llama3", "llama", .hf = true, SIZES, .theta = 1e4, .format = "BF16", .scaling = "llama3"},
    {"HF qwen3, YaRN", "qwen3", .hf = true, SIZES, .qk_norms = true, .theta = 1e6, .format = "BF16", .scaling = "yarn"},
};

static const int32_t tokens[] = {3, 60, 17, 0, 5, 5, 42, 33, 9, 1, 58, 20, 11, 7, 2, 29, 31, 8, 44, 50, 3, 60, 12};

/* The default quantisation of activations: what BitNet was trained with. */
static mica_act expected_act(const tiny *t)
{
    const bool bitnet = strncmp(t->arch, "bitnet", 6) == 0 || t->other_names;
    const bool container =
        strcmp(t->format, "I2_S") == 0 || strcmp(t->format, "MICA_T2") == 0 || strcmp(t->format, "HF_TERNARY") == 0;
    return bitnet || container || t->online ? MICA_ACT_TOKEN : MICA_ACT_NONE;
}

static void compare_with_double(const tiny *t, int act, mica_lm_kv kv)
{
    static const int64_t steps[] = {8, 1, 4, 1};
    mica_engine *e = tiny_engine(2);
    tiny_model *m = tiny_new(t);
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_options options;
    mica_lm_options_init(&options);
    options.act = act;
    mica_lm_session_options o;
    mica_lm_session_options_init(&o);
    o.kv = kv;
    reference r;
    traced seen = {.n = 0};
    reference_open(&r, m, act == MICA_LM_ACT_TRAINED ? expected_act(t) : (mica_act)act, kv);
    if (EXPECT_OK(mica_lm_open(e, m->path, &options, &lm)) && EXPECT_OK(mica_lm_session_open(lm, &o, &session))) {
        mica_lm_info info = {.struct_size = sizeof info};
        mica_lm_get_info(lm, &info);
        EXPECT_INT(info.act, r.act);
        EXPECT_INT(info.vocab, t->vocab);
        mica_lm_session_trace(session, trace_take, &seen);
        int64_t at = 0;
        for (size_t i = 0; i < COUNT(steps); i++) {
            const float *logits;
            if (!EXPECT_OK(mica_lm_feed(session, tokens + at, steps[i], &logits))) break;
            reference_check(&r, &seen, tokens + at, steps[i]);
            trace_clear(&seen);
            at += steps[i];
        }
        EXPECT_INT(mica_lm_session_position(session), 14);
    }
    reference_close(&r);
    mica_lm_session_close(session);
    mica_lm_close(lm);
    tiny_free(m);
    mica_close(e);
}

TEST(every_stage_is_what_double_precision_says)
{
    for (size_t i = 0; i < COUNT(models); i++) {
        test_case("%s", models[i].name);
        compare_with_double(&models[i], MICA_LM_ACT_TRAINED, MICA_LM_KV_F16);
    }
}

TEST(rope_scaling)
{
    for (size_t i = 0; i < COUNT(scaled); i++) {
        test_case("%s", scaled[i].name);
        compare_with_double(&scaled[i], MICA_LM_ACT_TRAINED, MICA_LM_KV_F32);
    }
}

TEST(activations_and_cache_as_asked_for)
{
    for (int act = MICA_ACT_NONE; act <= MICA_ACT_BLOCK256; act++) {
        test_case("act %d", act);
        compare_with_double(&models[0], act, MICA_LM_KV_F32);
    }
    test_case("8-bit cache");
    compare_with_double(&models[0], MICA_LM_ACT_TRAINED, MICA_LM_KV_Q8);
}

/* --------------------------------------------------------- same numbers --- */

static bool same_floats(const float *a, const float *b, int64_t n) { return memcmp(a, b, (size_t)n * sizeof *a) == 0; }

/* Equal bits for any number of rows at once; a GPU uses different kernels, so its results are only close. */
static bool same_for_any_rows(const float *a, const float *b, int64_t n)
{
    if (!on_metal()) return same_floats(a, b, n);
    double largest = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        if (!(fabs((double)a[i] - (double)b[i]) <= off)) off = fabs((double)a[i] - (double)b[i]);
    }
    return off <= 1e-3 * largest;
}

/* On Metal kernels are compiled for each format, so only one model in four is tested. */
static size_t next_model(size_t i) { return i + (on_metal() ? 4 : 1); }

TEST(threads_and_runs_give_the_same_bits)
{
    static const size_t which[] = {0, 4, 12, 15};
    for (size_t i = 0; i < COUNT(which); i++) {
        const tiny *t = &models[which[i]];
        test_case("%s", t->name);
        tiny_model *m = tiny_new(t);
        mica_engine *one = tiny_engine(1), *two = tiny_engine(2);
        float *a = tiny_logits(one, m->path, tokens, COUNT(tokens), 100);
        float *b = tiny_logits(two, m->path, tokens, COUNT(tokens), 100);
        float *c = tiny_logits(two, m->path, tokens, COUNT(tokens), 100);
        EXPECT(a && b && same_floats(a, b, t->vocab));
        EXPECT(b && c && same_floats(b, c, t->vocab));
        free(a), free(b), free(c);
        mica_close(one);
        mica_close(two);
        tiny_free(m);
    }
}

TEST(pieces_of_any_size_give_the_same_logits)
{
    for (size_t i = 0; i < COUNT(models); i = next_model(i)) {
        const tiny *t = &models[i];
        test_case("%s", t->name);
        tiny_model *m = tiny_new(t);
        mica_engine *e = tiny_engine(2);
        float *whole = tiny_logits(e, m->path, tokens, COUNT(tokens), 100);
        static const int64_t pieces[] = {1, 3, 7};
        for (size_t p = 0; p < COUNT(pieces); p++) {
            float *other = tiny_logits(e, m->path, tokens, COUNT(tokens), pieces[p]);
            EXPECT_MSG(whole && other && same_for_any_rows(whole, other, t->vocab), "pieces of %d", (int)pieces[p]);
            free(other);
        }
        free(whole);
        mica_close(e);
        tiny_free(m);
    }
}

TEST(every_ternary_container_gives_the_same_bits)
{
    static const struct {
        const char *name;
        bool hf, divides;
    } containers[] = {{"I2_S", false, false},    {"TQ1_0", false, false},   {"TQ2_0", false, false},
                      {"MICA_T2", false, false}, {"MICA_T1", false, false}, {"HF_TERNARY", true, false},
                      {"HF_TERNARY", true, true}};
    mica_engine *e = tiny_engine(2);
    float *first = NULL;
    for (size_t i = 0; i < COUNT(containers); i++) {
        test_case("%s%s", containers[i].name, containers[i].divides ? ", divided" : "");
        tiny t = models[0];
        t.format = containers[i].name;
        t.hf = containers[i].hf;
        t.divides = containers[i].divides;
        if (t.hf) t.arch = "bitnet";
        tiny_model *m = tiny_new(&t);
        float *logits = tiny_logits(e, m->path, tokens, COUNT(tokens), 100);
        if (!first) first = logits;
        EXPECT(logits && same_floats(first, logits, t.vocab));
        if (logits != first) free(logits);
        tiny_free(m);
    }
    free(first);
    mica_close(e);
}

/* ------------------------------------------------------------- sessions --- */

typedef struct opened {
    mica_engine *e;
    tiny_model *m;
    mica_lm *lm;
} opened;

static opened open_model(const tiny *t)
{
    opened o = {tiny_engine(2), tiny_new(t), NULL};
    if (!EXPECT_OK(mica_lm_open(o.e, o.m->path, NULL, &o.lm))) abort();
    return o;
}

static void close_model(opened o)
{
    mica_lm_close(o.lm);
    tiny_free(o.m);
    mica_close(o.e);
}

TEST(sessions_do_not_see_each_other)
{
    opened o = open_model(&models[0]);
    mica_lm_session *a, *b;
    const float *logits;
    float *alone = tiny_logits(o.e, o.m->path, tokens, 12, 1);
    CHECK_OK(mica_lm_session_open(o.lm, NULL, &a));
    CHECK_OK(mica_lm_session_open(o.lm, NULL, &b));
    for (int i = 0; i < 12; i++) {
        CHECK_OK(mica_lm_feed(b, &tokens[11 - i], 1, NULL));
        CHECK_OK(mica_lm_feed(a, &tokens[i], 1, &logits));
    }
    EXPECT(same_floats(alone, logits, 61));
    /* rewound tokens have no effect */
    CHECK_OK(mica_lm_session_rewind(a, 5));
    CHECK_OK(mica_lm_feed(a, (int32_t[]){60, 60, 60}, 3, NULL));
    CHECK_OK(mica_lm_session_rewind(a, 5));
    EXPECT_INT(mica_lm_session_position(a), 5);
    for (int i = 5; i < 12; i++) CHECK_OK(mica_lm_feed(a, &tokens[i], 1, &logits));
    EXPECT(same_floats(alone, logits, 61));
    EXPECT(mica_lm_session_rewind(a, 13) == MICA_ERR_INDEX);
    EXPECT(mica_lm_session_rewind(a, -1) == MICA_ERR_INDEX);
    free(alone);
    /* a session outlives the handle of its model */
    mica_lm_close(o.lm);
    CHECK_OK(mica_lm_feed(b, &tokens[0], 1, &logits));
    mica_lm_session_close(a);
    mica_lm_session_close(b);
    tiny_free(o.m);
    mica_close(o.e);
}

TEST(a_batch_is_its_texts_alone)
{
    for (size_t i = 0; i < COUNT(models); i = next_model(i)) {
        test_case("%s", models[i].name);
        opened o = open_model(&models[i]);
        enum { TEXTS = 3, LENGTH = 7 };
        mica_lm_session_options options;
        mica_lm_session_options_init(&options);
        options.batch = TEXTS;
        mica_lm_session *session;
        const float *logits;
        int32_t next[TEXTS];
        float *alone[TEXTS];
        CHECK_OK(mica_lm_session_open(o.lm, &options, &session));
        CHECK_OK(mica_lm_feed(session, tokens, LENGTH - 1, NULL));
        for (int b = 0; b < TEXTS; b++) {
            int32_t text[LENGTH];
            memcpy(text, tokens + b * (LENGTH - 1), sizeof text - sizeof *text);
            text[LENGTH - 1] = next[b] = tokens[20 - b];
            alone[b] = tiny_logits(o.e, o.m->path, text, LENGTH, LENGTH - 1);
        }
        CHECK_OK(mica_lm_feed(session, next, 1, &logits));
        for (int b = 0; b < TEXTS; b++) {
            const float *mine = logits + b * models[i].vocab;
            EXPECT_MSG(same_for_any_rows(alone[b], mine, models[i].vocab), "text %d", b);
            free(alone[b]);
        }
        mica_lm_session_close(session);
        close_model(o);
    }
}

TEST(scores_are_the_losses_of_the_logits)
{
    opened o = open_model(&models[4]);
    enum { LENGTH = 20 };
    mica_lm_session *a, *b;
    float losses[LENGTH - 1];
    CHECK_OK(mica_lm_session_open(o.lm, NULL, &a));
    CHECK_OK(mica_lm_session_open(o.lm, NULL, &b));
    CHECK_OK(mica_lm_score(a, tokens, LENGTH, losses));
    EXPECT_INT(mica_lm_session_position(a), LENGTH);
    for (int i = 0; i + 1 < LENGTH; i++) {
        const float *logits;
        CHECK_OK(mica_lm_feed(b, &tokens[i], 1, &logits));
        double largest = -INFINITY, sum = 0;
        for (int v = 0; v < models[4].vocab; v++) largest = fmax(largest, (double)logits[v]);
        for (int v = 0; v < models[4].vocab; v++) sum += exp((double)logits[v] - largest);
        EXPECT_CLOSE(losses[i], log(sum) + largest - (double)logits[tokens[i + 1]], on_metal() ? 3e-5 : 1e-6, 1e-6);
    }
    mica_lm_session_close(a);
    mica_lm_session_close(b);
    close_model(o);
}

TEST(a_trace_changes_nothing)
{
    opened o = open_model(&models[0]);
    mica_lm_session *session;
    const float *logits;
    static traced seen;
    float *alone = tiny_logits(o.e, o.m->path, tokens, 16, 100);
    CHECK_OK(mica_lm_session_open(o.lm, NULL, &session));
    mica_lm_session_trace(session, trace_take, &seen);
    CHECK_OK(mica_lm_feed(session, tokens, 16, &logits));
    EXPECT(seen.n > 30);
    EXPECT(same_floats(alone, logits, 61));
    trace_clear(&seen);
    free(alone);
    mica_lm_session_close(session);
    close_model(o);
}

TEST(one_plan_serves_every_position)
{
    opened o = open_model(&models[0]);
    mica_lm_session *session;
    mica_stats before = {.struct_size = sizeof before}, after = before;
    const float *logits;
    CHECK_OK(mica_lm_session_open(o.lm, NULL, &session));
    for (int i = 0; i < 3; i++) CHECK_OK(mica_lm_feed(session, &tokens[i], 1, &logits));
    mica_engine_stats(o.e, &before);
    for (int i = 3; i < 20; i++) CHECK_OK(mica_lm_feed(session, &tokens[i], 1, &logits));
    mica_engine_stats(o.e, &after);
    EXPECT_INT(after.compiles, before.compiles);
    EXPECT_INT(after.plan_misses, before.plan_misses);
    EXPECT_INT(after.bytes_allocated, before.bytes_allocated);
    mica_lm_session_close(session);
    close_model(o);
}

/* An 8-bit cache compared with an f32 cache, up to the last position. */
TEST(an_8_bit_cache_of_any_length)
{
    enum { CONTEXT = 600 };
    tiny t = models[4];
    t.context = CONTEXT;
    opened o = open_model(&t);
    mica_lm_session_options q8, f32;
    mica_lm_session_options_init(&q8);
    q8.kv = MICA_LM_KV_Q8;
    f32 = q8;
    f32.kv = MICA_LM_KV_F32;
    mica_lm_session *a, *b;
    const float *x, *y;
    int32_t ids[CONTEXT];
    for (int i = 0; i < CONTEXT; i++) ids[i] = (int32_t)(mica_seed_split(9, (uint64_t)i) % (uint64_t)t.vocab);
    CHECK_OK(mica_lm_session_open(o.lm, &q8, &a));
    CHECK_OK(mica_lm_session_open(o.lm, &f32, &b));
    static const int stops[] = {250, 256, 257, 258, 511, 513, 599, 600};
    int at = 0;
    for (size_t i = 0; i < COUNT(stops); i++) {
        test_case("%d tokens", stops[i]);
        CHECK_OK(mica_lm_feed(a, ids + at, stops[i] - at, &x));
        CHECK_OK(mica_lm_feed(b, ids + at, stops[i] - at, &y));
        at = stops[i];
        double worst = 0;
        for (int v = 0; v < t.vocab; v++) worst = fmax(worst, fabs((double)x[v] - (double)y[v]));
        EXPECT_MSG(worst <= 0.1, "logits differ by %g", worst);
        EXPECT(!same_floats(x, y, t.vocab));
    }
    mica_lm_session_close(a);
    mica_lm_session_close(b);
    close_model(o);
}
