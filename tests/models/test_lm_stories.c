/* Models of llama2.c, written as GGUF by the test: the fixture with random weights in every clone,
 * and stories260K where the real data is installed. The greedy text is known. Each block format
 * must stay near the f32 model, and a GPU near the CPU.
 *
 * runs: metal-unsanitized, arm */
#include <mica_convert.h>

#include "lm_tiny.h"

enum { HEADER = 7 };

typedef struct story {
    int32_t dim, ffn, layers, heads, kv_heads, vocab, context;
    float *weights;
    char path[512];
} story;

/* Paths of a model, its vocabulary and its text. */
typedef struct source {
    char model[600], tokenizer[600], greedy[600];
} source;

static source in_folder(const char *folder, const char *model, const char *tokenizer, const char *greedy)
{
    source s;
    snprintf(s.model, sizeof s.model, "%s/%s", folder, model);
    snprintf(s.tokenizer, sizeof s.tokenizer, "%s/%s", folder, tokenizer);
    snprintf(s.greedy, sizeof s.greedy, "%s/%s", folder, greedy);
    return s;
}

static source fixture(void)
{
    return in_folder("tests/fixtures/models", "story.bin", "spm.bin", "story.greedy200.txt");
}

static source stories260K(void)
{
    char folder[400];
    const char *root = getenv("MICA_TEST_DATA");
    snprintf(folder, sizeof folder, "%s/models", root && *root ? root : "../shared/data");
    return in_folder(folder, "stories260K.bin", "tok512.bin", "stories260K.greedy200.txt");
}

static bool is_here(const source *s) { return access(s->model, R_OK) == 0; }

static bool read_story(const source *from, story *s)
{
    FILE *f = fopen(from->model, "rb");
    if (!f) return false;
    int32_t header[HEADER];
    if (fread(header, sizeof *header, HEADER, f) != HEADER) abort();
    *s = (story){header[0], header[1], header[2], header[3], header[4], header[5], header[6], NULL, ""};
    fseek(f, 0, SEEK_END);
    const size_t n = ((size_t)ftell(f) - sizeof header) / sizeof(float);
    fseek(f, sizeof header, SEEK_SET);
    s->weights = malloc(n * sizeof *s->weights);
    if (!s->weights || fread(s->weights, sizeof *s->weights, n, f) != n) abort();
    fclose(f);
    return true;
}

/* Packs rows that are padded to whole blocks, and unpacks them to f32. */
static void through_format(const char *format, const float *from, int64_t rows, int64_t cols, float *out)
{
    enum { WIDEST = 256 };
    const int64_t wide = (cols + WIDEST - 1) / WIDEST * WIDEST;
    const size_t nbytes = mica_quant_nbytes(format, rows, wide);
    float *padded = calloc((size_t)(rows * wide), sizeof *padded);
    uint8_t *blocks = malloc(nbytes);
    if (!padded || !blocks) abort();
    for (int64_t r = 0; r < rows; r++) memcpy(padded + r * wide, from + r * cols, (size_t)cols * sizeof *from);
    EXPECT_OK(mica_quant_pack(format, rows, wide, padded, blocks, nbytes));
    EXPECT_OK(mica_quant_unpack(format, rows, wide, blocks, nbytes, padded));
    for (int64_t r = 0; r < rows; r++) memcpy(out + r * cols, padded + r * wide, (size_t)cols * sizeof *out);
    free(padded);
    free(blocks);
}

/* Ternary weights as in BitNet, for formats that need them. */
static void absmean(const float *from, int64_t n, float *out)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += fabs((double)from[i]);
    const float scale = (float)(sum / (double)n);
    for (int64_t i = 0; i < n; i++) out[i] = scale * fminf(fmaxf(rintf(from[i] / scale), -1), 1);
}

static bool for_ternary(const char *format)
{
    static const char *const names[] = {"TQ1_0", "TQ2_0", "I2_S", "Q2_0", "MICA_T2", "MICA_T1"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(format, names[i]) == 0) return true;
    return false;
}

/* Writes one kind of tensor for all layers. Returns the start of the next kind. padded: written as
 * f32 after a round trip through the format with padded rows. */
static const float *put_kind(mica_writer *w, const story *s, const char *format, bool padded, const float *from,
                             const char *name, int64_t rows, int64_t cols)
{
    const bool layers = strstr(name, "%d") != NULL;
    for (int i = 0; i < (layers ? s->layers : 1); i++) {
        char full[64];
        snprintf(full, sizeof full, name, i);
        const char *as = !rows || padded ? "F32" : format;
        const int64_t shape[2] = {rows, cols}, n = (rows ? rows : 1) * cols;
        const size_t nbytes = mica_quant_nbytes(as, rows ? rows : 1, cols);
        static _Alignas(64) uint8_t bytes[64][1 << 18];
        static int next;
        uint8_t *out = bytes[next++ % 64];
        if (nbytes > sizeof bytes[0]) abort();
        EXPECT_OK(mica_quant_pack(as, rows ? rows : 1, cols, from, out, nbytes));
        float *values = (float *)(void *)out;
        if (rows && padded && for_ternary(format) && layers) absmean(from, n, values);
        if (rows && padded && (layers || !for_ternary(format))) through_format(format, values, rows, cols, values);
        EXPECT_OK(mica_writer_tensor(w, full, as, rows ? 2 : 1, rows ? shape : shape + 1, out));
        from += n;
    }
    return from;
}

static void write_story(story *s, const char *format, bool padded)
{
    mica_writer *w = NULL;
    snprintf(s->path, sizeof s->path, "%s/stories-%s.gguf", tiny_folder(), format);
    if (!EXPECT_OK(mica_writer_open(s->path, "gguf", &w))) abort();
    EXPECT_OK(mica_writer_string(w, "general.architecture", "llama", 5));
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"llama.block_count", s->layers},         {"llama.embedding_length", s->dim},
                 {"llama.feed_forward_length", s->ffn},    {"llama.context_length", s->context},
                 {"llama.attention.head_count", s->heads}, {"llama.attention.head_count_kv", s->kv_heads}};
    for (size_t i = 0; i < COUNT(sizes); i++) EXPECT_OK(mica_writer_i64(w, sizes[i].key, MICA_U32, sizes[i].value));
    EXPECT_OK(mica_writer_f64(w, "llama.attention.layer_norm_rms_epsilon", MICA_F32, 1e-5));
    const int64_t kv = (int64_t)s->dim / s->heads * s->kv_heads;
    const float *at = s->weights;
    at = put_kind(w, s, format, padded, at, "token_embd.weight", s->vocab, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.attn_norm.weight", 0, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.attn_q.weight", s->dim, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.attn_k.weight", kv, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.attn_v.weight", kv, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.attn_output.weight", s->dim, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.ffn_norm.weight", 0, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.ffn_gate.weight", s->ffn, s->dim);
    at = put_kind(w, s, format, padded, at, "blk.%d.ffn_down.weight", s->dim, s->ffn);
    at = put_kind(w, s, format, padded, at, "blk.%d.ffn_up.weight", s->ffn, s->dim);
    put_kind(w, s, format, padded, at, "output_norm.weight", 0, s->dim);
    EXPECT_OK(mica_writer_finish(w, NULL, NULL));
}

typedef struct text {
    const mica_tokenizer *tokenizer;
    mica_detokenizer state;
    char said[4096];
    size_t n;
    int32_t ids[256];
    int n_ids;
} text;

static bool take(int32_t token, void *user)
{
    text *t = user;
    t->ids[t->n_ids++] = token;
    t->n += mica_detokenize(t->tokenizer, &t->state, token, 0, t->said + t->n, sizeof t->said - t->n);
    return t->n < sizeof t->said - 64;
}

/* The number of generated tokens, and of those used to evaluate a format; a software GPU is slow. */
static int n_generated(void) { return on_metal() ? 24 : 200; }
static int n_evaluated(void) { return on_metal() ? 3 : 200; }

/* Generates greedily after the begin token. */
static void tell(const char *path, const mica_tokenizer *tokenizer, mica_lm_kv kv, text *out)
{
    mica_engine *e = tiny_engine(2);
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_sampler *sampler = NULL;
    mica_lm_sampler_options o;
    mica_lm_sampler_options_init(&o);
    o.temperature = 0;
    mica_lm_session_options so;
    mica_lm_session_options_init(&so);
    so.kv = kv;
    *out = (text){.tokenizer = tokenizer};
    int64_t count = 0;
    if (EXPECT_OK(mica_lm_open(e, path, NULL, &lm)) && EXPECT_OK(mica_lm_session_open(lm, &so, &session)) &&
        EXPECT_OK(mica_lm_sampler_open(&o, &sampler)))
        EXPECT_OK(mica_lm_generate(session, sampler, (int32_t[]){1}, 1, n_generated(), take, out, &count));
    EXPECT_INT(count, n_generated());
    mica_lm_sampler_close(sampler);
    mica_lm_session_close(session);
    mica_lm_close(lm);
    mica_close(e);
}

static void greedy_text(const source *from, const char *name)
{
    story s;
    CHECK(read_story(from, &s));
    write_story(&s, "F32", false);
    mica_tokenizer *tokenizer = NULL;
    CHECK_OK(mica_tokenizer_open(from->tokenizer, NULL, &tokenizer));
    static char want[4096];
    FILE *f = fopen(from->greedy, "rb");
    CHECK(f);
    const size_t n = fread(want, 1, sizeof want - 1, f);
    fclose(f);
    static text t;
    for (int kv = MICA_LM_KV_F16; kv <= MICA_LM_KV_F32; kv++) {
        test_case("%s, cache %d", name, kv);
        tell(s.path, tokenizer, (mica_lm_kv)kv, &t);
        t.said[t.n] = '\0';
        if (n && want[n - 1] == '\n') want[n - 1] = '\0'; /* llama2.c ends its output with one */
        if (on_metal() && EXPECT(t.n > 40 && t.n < n)) want[t.n] = '\0';
        EXPECT_STR(t.said, want);
    }
    mica_tokenizer_close(tokenizer);
    free(s.weights);
}

TEST(the_greedy_text_is_the_known_one)
{
    const source small = fixture(), real = stories260K();
    greedy_text(&small, "fixture");
    if (is_here(&real)) greedy_text(&real, "stories260K");
}

/* Log-probabilities after each of n tokens, to be freed. */
static float *log_probabilities(mica_engine *e, const char *path, const int32_t *ids, int n, int vocab, mica_lm_kv kv)
{
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_session_options o;
    mica_lm_session_options_init(&o);
    o.kv = kv;
    float *all = calloc((size_t)(n * vocab), sizeof *all);
    if (!all) abort();
    if (EXPECT_OK(mica_lm_open(e, path, NULL, &lm)) && EXPECT_OK(mica_lm_session_open(lm, &o, &session)))
        for (int i = 0; i < n; i++) {
            const float *logits = NULL;
            if (!EXPECT_OK(mica_lm_feed(session, &ids[i], 1, &logits))) break;
            double largest = -INFINITY, sum = 0;
            for (int v = 0; v < vocab; v++) largest = fmax(largest, (double)logits[v]);
            for (int v = 0; v < vocab; v++) sum += exp((double)logits[v] - largest);
            for (int v = 0; v < vocab; v++) all[i * vocab + v] = (float)((double)logits[v] - largest - log(sum));
        }
    mica_lm_session_close(session);
    mica_lm_close(lm);
    return all;
}

static double divergence(const float *p, const float *q, int n, int vocab)
{
    double sum = 0;
    for (int i = 0; i < n * vocab; i++) sum += exp((double)p[i]) * ((double)p[i] - (double)q[i]);
    return sum / n;
}

/* A model and the greedy text for its evaluation by the Kullback-Leibler divergence in nats per token:
 * on the CPU from the f32 model with an f32 cache, on a GPU from the same file on the CPU. */
typedef struct judge {
    story s;
    mica_engine *e, *cpu;
    mica_tokenizer *tokenizer;
    text t;
    float *exact;
} judge;

static bool begin_judge(judge *j, const source *from)
{
    if (!read_story(from, &j->s)) return false;
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = "cpu";
    o.threads = 2;
    j->e = tiny_engine(2);
    EXPECT_OK(mica_open(&o, &j->cpu));
    EXPECT_OK(mica_tokenizer_open(from->tokenizer, NULL, &j->tokenizer));
    write_story(&j->s, "F32", false);
    tell(j->s.path, j->tokenizer, MICA_LM_KV_F32, &j->t);
    j->exact = log_probabilities(j->cpu, j->s.path, j->t.ids, n_evaluated(), j->s.vocab, MICA_LM_KV_F32);
    return true;
}

static void expect_near(const judge *j, const char *path, mica_lm_kv kv, double bound)
{
    float *other = log_probabilities(j->e, path, j->t.ids, n_evaluated(), j->s.vocab, kv);
    float *here = on_metal() ? log_probabilities(j->cpu, path, j->t.ids, n_evaluated(), j->s.vocab, kv) : NULL;
    const double kl = divergence(here ? here : j->exact, other, n_evaluated(), j->s.vocab);
    const double least = here ? -1e-7 : 0, most = here ? 1e-6 : bound; /* rounding may make it negative */
    EXPECT_MSG(kl >= least && kl <= most, "KL %.3g, not %.3g to %.3g", kl, least, most);
    free(here);
    free(other);
}

static void end_judge(judge *j)
{
    free(j->exact);
    free(j->s.weights);
    mica_tokenizer_close(j->tokenizer);
    mica_close(j->cpu);
    mica_close(j->e);
}

/* Bounds are a quarter above the values measured when this was written (docs/MODELS.md), for stories260K
 * and for the fixture.
 * file: as mica_quantize writes it. Rows that are not whole blocks (64 and 172; 32 and 44) use a fallback
 * type, and the embedding is f16. rows: all matrices with rows padded to whole blocks, so that each format
 * is tested on them. */
static const struct {
    const char *type;
    double file, rows, small_file, small_rows;
} near_cases[] = {
    {"F32", 1e-12, 1e-12, 1e-12, 1e-12},
    {"F16", 3.9e-07, 3.9e-07, 5.8e-06, 5.8e-06},
    {"BF16", 5e-05, 5e-05, 0.00034, 0.00034},
    {"Q8_0", 0.00016, 0.00035, 0.0019, 0.0032},
    {"MICA_Q8", 0.00021, 0.00035, 0.0021, 0.0032},
    {"Q6_K", 0.00016, 0.0031, 0.0019, 0.045},
    {"Q5_K", 0.011, 0.014, 0.088, 0.12},
    {"Q5_1", 0.011, 0.021, 0.088, 0.12},
    {"Q5_0", 0.01, 0.024, 0.13, 0.22},
    {"Q4_K", 0.035, 0.052, 0.73, 0.45},
    {"Q4_1", 0.035, 0.073, 0.73, 1.3},
    {"Q4_0", 0.051, 0.1, 0.52, 0.91},
    {"Q2_0", 7, 7, 5.8, 5.8},
    {"TQ1_0", 7, 7, 5.8, 5.8},
    {"TQ2_0", 7, 7, 5.8, 5.8},
    {"I2_S", 7, 7, 5.8, 5.8},
    {"MICA_T1", 7, 7.1, 5.8, 5.8},
    {"MICA_T2", 7, 7, 5.8, 5.8},
    {"Q1_0", 3.9e-07, 5.9, 5.8e-06, 2.1},
};
static const struct {
    double real, small;
} near_caches[] = {
    [MICA_LM_KV_F16] = {7.5e-7, 1.2e-06}, [MICA_LM_KV_F32] = {1e-12, 1e-12}, [MICA_LM_KV_Q8] = {1.3e-3, 0.0004}};

static void stays_near(const source *model, const char *name, bool small)
{
    static judge j;
    j = (judge){0};
    CHECK(begin_judge(&j, model));
    char from[512], to[512];
    snprintf(from, sizeof from, "%s", j.s.path);
    snprintf(to, sizeof to, "%s/quantised.gguf", tiny_folder());
    for (size_t i = 0; i < COUNT(near_cases); i++) {
        mica_quantize_options o;
        mica_quantize_options_init(&o);
        o.type = near_cases[i].type;
        test_case("%s, %s, the file", name, o.type);
        CHECK_OK(mica_quantize(from, to, &o));
        expect_near(&j, to, MICA_LM_KV_F32, small ? near_cases[i].small_file : near_cases[i].file);
        test_case("%s, %s, padded rows", name, o.type);
        write_story(&j.s, o.type, true);
        expect_near(&j, j.s.path, MICA_LM_KV_F32, small ? near_cases[i].small_rows : near_cases[i].rows);
    }
    for (int kv = 0; kv < (int)COUNT(near_caches); kv++) {
        test_case("%s, cache %d", name, kv);
        expect_near(&j, from, (mica_lm_kv)kv, small ? near_caches[kv].small : near_caches[kv].real);
    }
    end_judge(&j);
}

TEST(quantised_models_stay_near)
{
    const source small = fixture(), real = stories260K();
    stays_near(&small, "fixture", true);
    if (is_here(&real)) stays_near(&real, "stories260K", false);
}
