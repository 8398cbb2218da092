/* Tokenizers against test vectors, token for token: those of tests/fixtures in every clone, those
 * of llama.cpp where the real data is installed; and vocabularies with wrong contents. */
#include "text/tokenizer.h"

#include "io/model_write.h"
#include "io_files.h"
#include "tokenizer_vectors.h"

/* --------------------------------------------------------------- vectors --- */

/* The small vocabulary with each pre-tokenizer. */
static void pre_vectors(const char *pre)
{
    mica_tokenizer_options options;
    mica_tokenizer *t;
    mica_tokenizer_options_init(&options);
    options.pre = pre;
    test_case("%s, fixture", pre);
    CHECK(io_fixture("tokenizers/bpe.gguf"));
    CHECK_MSG(mica_tokenizer_open(io_fixture("tokenizers/bpe.gguf"), &options, &t) == MICA_OK, "%s", mica_last_error());
    fixture_vectors(t, pre);
    char json[600];
    snprintf(json, sizeof json, "%s", io_path("vocabulary.json"));
    test_case("%s, fixture as JSON", pre);
    CHECK_MSG(mica_tokenizer_save(t, json) == MICA_OK, "%s", mica_last_error());
    mica_tokenizer_close(t);
    CHECK_MSG(mica_tokenizer_open(json, NULL, &t) == MICA_OK, "%s", mica_last_error());
    fixture_vectors(t, pre);
    mica_tokenizer_close(t);
}

/* The vocabulary and the vectors of llama.cpp, if they are installed. */
static void gguf_vectors(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tokenizers/ggml-vocab-%s.gguf", name);
    const char *found = io_data(path);
    if (!found) return;
    test_case("%s", name);
    mica__file *file;
    mica_tokenizer *t;
    CHECK_INT(mica__file_open(found, NULL, &file), MICA_OK);
    CHECK_MSG(mica__tokenizer_from_gguf(file, NULL, &t) == MICA_OK, "%s", mica_last_error());
    all_vectors(t, name, 40);
    mica__file_close(file);
    if (strcmp(mica_tokenizer_kind(t), "bpe") == 0) { /* also written as tokenizer.json and read */
        char json[600];
        snprintf(json, sizeof json, "%s", io_path("vocabulary.json"));
        test_case("%s as JSON", name);
        CHECK_MSG(mica_tokenizer_save(t, json) == MICA_OK, "%s", mica_last_error());
        mica__tokenizer_free(t);
        CHECK_MSG(mica_tokenizer_open(json, NULL, &t) == MICA_OK, "%s", mica_last_error());
        all_vectors(t, name, 40);
    }
    mica__tokenizer_free(t);
}

static void bpe_vectors(const char *pre)
{
    pre_vectors(pre);
    gguf_vectors(pre);
}

TEST(vectors_gpt_2) { bpe_vectors("gpt-2"); }
TEST(vectors_deepseek_coder) { bpe_vectors("deepseek-coder"); }
/* not in ../shared/data either; llama.cpp has them in models/ (MICA_TEST_DATA) */
TEST(vectors_falcon) { bpe_vectors("falcon"); }
TEST(vectors_starcoder) { bpe_vectors("starcoder"); }
TEST(vectors_refact) { bpe_vectors("refact"); }
TEST(vectors_mpt) { bpe_vectors("mpt"); }
TEST(vectors_deepseek_llm) { bpe_vectors("deepseek-llm"); }
TEST(vectors_of_other_pre_tokenizers)
{
    static const char *const names[] = {"qwen2", "qwen35", "deepseek-v3", "default"};
    for (size_t i = 0; i < COUNT(names); i++) pre_vectors(names[i]);
}

static void spm_vectors(const char *name)
{
    mica_tokenizer *t;
    test_case("spm, fixture");
    CHECK(io_fixture("tokenizers/spm.gguf"));
    CHECK_MSG(mica_tokenizer_open(io_fixture("tokenizers/spm.gguf"), NULL, &t) == MICA_OK, "%s", mica_last_error());
    fixture_vectors(t, "spm");
    mica_tokenizer_close(t);
    gguf_vectors(name);
}
TEST(vectors_llama_spm) { spm_vectors("llama-spm"); }
TEST(vectors_phi_3) { spm_vectors("phi-3"); }

TEST(vectors_llama_bpe)
{
    pre_vectors("llama-bpe");
    const char *path = io_data("tokenizers/llama3-tiktoken-tokenizer.model");
    if (!path) return;
    test_case("ranks of Llama 3");
    size_t n;
    uint8_t *ranks = io_read(path, &n);
    mica_tokenizer *t;
    CHECK_MSG(mica__tokenizer_from_ranks("llama3", ranks, n, "llama-bpe", &t) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(mica_tokenizer_size(t), 128000);
    all_vectors(t, "llama-bpe", 40);
    mica__tokenizer_free(t);
    free(ranks);
}

/* ----------------------------------------------------- small vocabularies -- */

typedef struct vocabulary {
    const char *model, *pre, *arch;
    const char *const *tokens;
    int n_tokens;
    const int32_t *types;
    int n_types;
    const float *scores;
    int n_scores;
    const char *const *merges;
    int n_merges;
    int64_t bos, eos; /* -2: not set */
    const char *chat;
} vocabulary;

static mica__meta list(bytes *room, const char *key, const char *const *texts, int n)
{
    const size_t from = room->n;
    for (int i = 0; i < n; i++) put_int(room, strlen(texts[i]), 8), put(room, texts[i], strlen(texts[i]));
    return (mica__meta){.key = key,
                        .type = MICA__META_ARRAY,
                        .item = MICA__META_STRING,
                        .count = (uint64_t)n,
                        .data = room->data + from,
                        .nbytes = room->n - from};
}

static mica__meta string(const char *key, const char *text)
{
    return (mica__meta){.key = key, .type = MICA__META_STRING, .count = 1, .data = text, .nbytes = strlen(text)};
}

/* Written as GGUF and read again, so that the reader's checks are tested too. */
static mica_status make(const vocabulary *v, const char *pre, mica_tokenizer **out)
{
    static bytes room;
    mica__meta m[12];
    size_t n = 0;
    int64_t ids[2] = {v->bos, v->eos};
    room.n = 0;
    if (v->arch) m[n++] = string("general.architecture", v->arch);
    if (v->model) m[n++] = string("tokenizer.ggml.model", v->model);
    if (v->pre) m[n++] = string("tokenizer.ggml.pre", v->pre);
    if (v->chat) m[n++] = string("tokenizer.chat_template", v->chat);
    if (v->tokens) m[n++] = list(&room, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
    if (v->merges) m[n++] = list(&room, "tokenizer.ggml.merges", v->merges, v->n_merges);
    if (v->types)
        m[n++] = (mica__meta){"tokenizer.ggml.token_type", MICA__META_ARRAY, MICA__META_I32,
                              (uint64_t)v->n_types,        v->types,         4 * (size_t)v->n_types};
    if (v->scores)
        m[n++] = (mica__meta){"tokenizer.ggml.scores", MICA__META_ARRAY, MICA__META_F32,
                              (uint64_t)v->n_scores,   v->scores,        4 * (size_t)v->n_scores};
    if (v->bos != -2) m[n++] = (mica__meta){"tokenizer.ggml.bos_token_id", MICA__META_I64, 0, 1, &ids[0], 8};
    if (v->eos != -2) m[n++] = (mica__meta){"tokenizer.ggml.eos_token_id", MICA__META_I64, 0, 1, &ids[1], 8};
    mica__file *file;
    const char *path = io_path("vocabulary.gguf");
    mica_status status = mica__gguf_write(path, &(mica__out_file){.meta = m, .n_meta = n});
    if (status == MICA_OK) status = mica__file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    status = mica__tokenizer_from_gguf(file, pre, out);
    mica__file_close(file);
    return status;
}

static const char *const bpe_tokens[] = {"a",        "b",         "c",       "ab",     "abc",
                                         "\xc4\xa0", "\304\240a", "<|end|>", "<|en|>", "bc"};
static const int32_t bpe_types[] = {1, 1, 1, 1, 1, 1, 1, 3, 4, 1};
static const char *const bpe_merges[] = {"b c", "a b", "\xc4\xa0 a", "ab c", "a bc"};
static const vocabulary bpe = {"gpt2", "gpt-2", "llama",    bpe_tokens, 10, bpe_types, 10,
                               NULL,   0,       bpe_merges, 5,          7,  7,         NULL};
static const char *const spm_tokens[] = {"<unk>",  "<s>",          "</s>", "<0x41>",        "<0xC3>",
                                         "<0xA9>", "\xe2\x96\x81", "a",    "\342\226\201a", "<mask>"};
static const int32_t spm_types[] = {2, 3, 3, 6, 6, 6, 1, 1, 1, 4};
static const float spm_scores[] = {0, 0, 0, 0, 0, 0, -1, -2, -3, 0};
static const vocabulary spm = {"llama",    NULL, "llama", spm_tokens, 10, spm_types, 10,
                               spm_scores, 10,   NULL,    0,          1,  2,         NULL};

static void encodes(const mica_tokenizer *t, const char *text, int flags, const char *want)
{
    mica__tokens got = {0};
    char line[256];
    size_t n = 0;
    EXPECT_MSG(mica__tokenizer_encode(t, text, strlen(text), flags, &got) == MICA_OK, "%s", mica_last_error());
    line[0] = '\0';
    for (size_t i = 0; i < got.n && n < sizeof line - 12; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, i ? " %d" : "%d", (int)got.ids[i]);
    EXPECT_STR(line, want);
    mica__tokens_free(&got);
}

TEST(small_bpe)
{
    mica_tokenizer *t;
    CHECK_MSG(make(&bpe, NULL, &t) == MICA_OK, "%s", mica_last_error());
    encodes(t, "", 0, "");
    encodes(t, "abc", 0, "4");        /* bc first, then a bc */
    encodes(t, "ab", 0, "3");
    encodes(t, " a a", 0, "6 6");
    encodes(t, "a  a", 0, "0 5 6");
    /* control tokens only if requested, user-defined tokens always */
    encodes(t, "a<|end|>b", MICA_ENCODE_SPECIAL, "0 7 1");
    encodes(t, "a<|en|>b", 0, "0 8 1");
    mica__tokens none = {0};
    EXPECT_INT(mica__tokenizer_encode(t, "a<|end|>", 8, 0, &none), MICA_ERR_UNSUPPORTED); /* no token for < here */
    EXPECT(strstr(mica_last_error(), "0x3c"));
    EXPECT_INT(none.n, 0);
    mica__tokens_free(&none);
    EXPECT_INT(mica__tokenizer_find(t, "<|end|>", 7), 7);
    EXPECT_INT(mica__tokenizer_find(t, "abc", 3), 4);
    EXPECT_INT(mica__tokenizer_find(t, "abcd", 4), -1);
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_BOS), 7);
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_EOS), 7);
    mica__tokenizer_free(t);
    /* other patterns by name */
    EXPECT_INT(make(&bpe, "no-such-pattern", &t), MICA_ERR_UNSUPPORTED);
    EXPECT(strstr(mica_last_error(), "'no-such-pattern'") && t == NULL);
    static const char *const known[] = {"llama-bpe",      "qwen2",   "falcon", "starcoder",
                                        "deepseek-coder", "falcon3", "gpt-2"};
    for (size_t i = 0; i < COUNT(known); i++) {
        CHECK_MSG(make(&bpe, known[i], &t) == MICA_OK, "%s", mica_last_error());
        encodes(t, "ab", 0, "3");
        mica__tokenizer_free(t);
    }
}

TEST(missing_pre_tokenizer)
{
    mica_tokenizer *t;
    vocabulary v = bpe;
    v.pre = NULL;
    EXPECT_INT(make(&v, NULL, &t), MICA_ERR_UNSUPPORTED);
    EXPECT(strstr(mica_last_error(), "tokenizer.ggml.pre is missing"));
    CHECK_INT(make(&v, "gpt-2", &t), MICA_OK); /* unless the caller passes it */
    EXPECT_STR(mica_tokenizer_pre(t), "gpt-2");
    mica__tokenizer_free(t);
}

/* The official BitNet files do not name their pre-tokenizer nor the end-of-turn token, and
 * have a template that no model was trained with. Each is corrected, with a note. */
TEST(official_bitnet_files)
{
    static const char *const tokens[] = {"a", "b", "c", "<|begin|>", "<|eot_id|>", "bc"};
    static const int32_t types[] = {1, 1, 1, 3, 3, 1};
    static const char *const architectures[] = {"bitnet-b1.58", "bitnet-25"};
    static const char *const templates[] = {"{{ bos_token }}Human: ...\n\nBITNETAssistant: {{ eos_token }}", NULL};
    const mica_chat_message hello = {"user", " Hi "};
    for (int i = 0; i < 4; i++) {
        mica_tokenizer *t;
        char text[100];
        size_t n;
        test_case("%s, %s template", architectures[i % 2], i / 2 ? "no" : "the wrong");
        vocabulary v = {"gpt2", NULL, architectures[i % 2], tokens, 6, types, 6, NULL, 0, bpe_merges, 1, 3, 3, NULL};
        v.chat = templates[i / 2];
        CHECK_MSG(make(&v, NULL, &t) == MICA_OK, "%s", mica_last_error());
        EXPECT_STR(mica_tokenizer_pre(t), "llama-bpe");
        EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_EOT), 4);
        EXPECT(mica_tokenizer_ends(t, 4) && mica_tokenizer_ends(t, 3) && !mica_tokenizer_ends(t, 2));
        EXPECT(strstr(mica_tokenizer_note(t, 0), "tokenizer.ggml.pre is missing"));
        EXPECT(strstr(mica_tokenizer_note(t, 1), "<|eot_id|> (4)"));
        EXPECT(strstr(mica_tokenizer_note(t, 2), i / 2 ? "is missing" : "is not the model's"));
        EXPECT(mica_tokenizer_note(t, 3) == NULL);
        EXPECT_STR(mica_chat_template(t), "bitnet");
        CHECK_INT(mica_chat_render(t, NULL, &hello, 1, true, text, sizeof text, &n), MICA_OK);
        EXPECT_STR(text, "<|begin|>User: Hi<|eot_id|>Assistant: ");
        mica__tokenizer_free(t);
    }
    /* another template is kept */
    mica_tokenizer *t;
    vocabulary v = {"gpt2", "llama-bpe", "bitnet-b1.58", tokens, 6, types, 6, NULL, 0, bpe_merges, 1, 3, 3, NULL};
    v.chat = "{{ messages[0].content }}";
    CHECK_INT(make(&v, NULL, &t), MICA_OK);
    EXPECT_STR(mica_chat_template(t), v.chat);
    mica__tokenizer_free(t);
}

/* A template that cannot be rendered is replaced if parts of it identify it. */
TEST(templates_known_by_their_parts)
{
    mica_tokenizer *t;
    vocabulary v = bpe;
    v.chat = "{% include 'm' %}<|im_start|>...<|im_end|>";
    CHECK_INT(make(&v, NULL, &t), MICA_OK);
    mica__tokenizer_free(t);
    CHECK_INT(mica_tokenizer_open(io_path("vocabulary.gguf"), NULL, &t), MICA_OK);
    EXPECT_STR(mica_chat_template(t), "chatml");
    EXPECT(strstr(mica_tokenizer_note(t, 0), "'chatml' is used") && strstr(mica_tokenizer_note(t, 0), "'include'"));
    mica_tokenizer_close(t);
    v.chat = "{% include 'm' %}";
    CHECK_INT(make(&v, NULL, &t), MICA_OK);
    mica__tokenizer_free(t);
    CHECK_INT(mica_tokenizer_open(io_path("vocabulary.gguf"), NULL, &t), MICA_OK);
    size_t n;
    EXPECT_STR(mica_chat_template(t), v.chat);
    EXPECT_INT(mica_chat_render(t, NULL, NULL, 0, true, NULL, 0, &n), MICA_ERR_UNSUPPORTED);
    EXPECT(strstr(mica_last_error(), "line 1: the tag 'include'"));
    mica_tokenizer_close(t);
}

TEST(small_spm)
{
    mica_tokenizer *t;
    CHECK_MSG(make(&spm, NULL, &t) == MICA_OK, "%s", mica_last_error());
    encodes(t, "a", MICA_ENCODE_BOS, "1 8");
    encodes(t, "a a", 0, "8 8");
    encodes(t, "A\xc3\xa9", 0, "6 3 4 5"); /* bytes where there is no token */
    encodes(t, "z", 0, "6 0");             /* no byte token either */
    encodes(t, "a<mask>a", 0, "8 9 8");
    encodes(t, "</s>", MICA_ENCODE_SPECIAL, "2");
    mica__tokenizer_free(t);
}

/* A character that arrives in pieces is held back until it is complete. */
TEST(text_as_it_comes)
{
    mica_tokenizer *t;
    CHECK_INT(make(&spm, NULL, &t), MICA_OK);
    mica_detokenizer d = {0};
    char out[64];
#define NEXT(id, cap) mica_detokenize(t, &d, id, 0, out, cap)
    EXPECT_INT(NEXT(8, 64), 1); /* "a": the first space is not text */
    EXPECT_INT(NEXT(8, 64), 2); /* " a" */
    EXPECT_INT(NEXT(4, 64), 0);
    EXPECT_INT(NEXT(5, 1), 2);  /* no room: no effect */
    EXPECT_INT(NEXT(5, 64), 2);
    EXPECT(memcmp(out, "\xc3\xa9", 2) == 0);
    EXPECT_INT(NEXT(4, 64), 0);
    EXPECT_INT(NEXT(7, 64), 4); /* it can no longer be completed */
    EXPECT(memcmp(out, "\357\277\275a", 4) == 0);
    EXPECT_INT(NEXT(5, 64), 3);
    EXPECT_INT(NEXT(4, 64), 0);
    EXPECT_INT(NEXT(-1, 64), 3); /* the end */
    EXPECT_INT(NEXT(-1, 64), 0);
    EXPECT_INT(NEXT(1, 64), 0);  /* control tokens have no text */
    EXPECT_INT(mica_detokenize(t, &d, 1, MICA_DECODE_SPECIAL, out, 64), 3);
    EXPECT_INT(NEXT(1000, 64), 0);
#undef NEXT
    mica__tokenizer_free(t);
}

TEST(vocabularies_with_wrong_contents)
{
    mica_tokenizer *t;
    vocabulary v;
    const int64_t live = mica__alloc_live();
#define REFUSED(from, change, status, part)                                                          \
    do {                                                                                             \
        v = from;                                                                                    \
        change;                                                                                      \
        EXPECT_INT(make(&v, NULL, &t), status);                                                      \
        EXPECT_MSG(strstr(mica_last_error(), part), "no \"%s\" in \"%s\"", part, mica_last_error()); \
    } while (0)
    REFUSED(spm, v.n_scores = 9, MICA_ERR_FORMAT, "10 tokens, 9 scores");
    REFUSED(spm, v.n_types = 3, MICA_ERR_FORMAT, "3 types");
    REFUSED(spm, v.scores = NULL, MICA_ERR_FORMAT, "scores is missing");
    REFUSED(spm, v.bos = 10, MICA_ERR_FORMAT, "bos_token_id is 10, the vocabulary has 10");
    REFUSED(spm, v.eos = -1, MICA_ERR_FORMAT, "eos_token_id is -1");
    REFUSED(spm, v.eos = INT64_MAX, MICA_ERR_FORMAT, "eos_token_id");
    REFUSED(spm, v.tokens = NULL, MICA_ERR_FORMAT, "not a list of tokens");
    REFUSED(spm, v.n_tokens = 0, MICA_ERR_FORMAT, "not a list of tokens");
    REFUSED(spm, v.model = "bert", MICA_ERR_UNSUPPORTED, "'bert'");
    REFUSED(spm, v.model = NULL, MICA_ERR_UNSUPPORTED, "no tokenizer");
    REFUSED(bpe, v.merges = NULL, MICA_ERR_FORMAT, "not a list of pairs");
    static const char *const no_pair[] = {"ab"};
    REFUSED(bpe, (v.merges = no_pair, v.n_merges = 1), MICA_ERR_FORMAT, "merge 0");
    static const int32_t type_7[] = {2, 3, 3, 6, 6, 6, 7, 1, 1, 4}, all_bytes[] = {6, 6, 6, 6, 6, 6, 6, 6, 6, 6};
    REFUSED(spm, v.types = type_7, MICA_ERR_FORMAT, "token 6");
    REFUSED(spm, v.types = all_bytes, MICA_ERR_FORMAT, "not <0xNN>");
    static const char *const bad_bytes[] = {"<0x-1>", "<0xG0>", "<0x4>", "<0x414>", "<0x+1>",
                                            "<0x a>", "0x41",   "",      "<0x41",   "<0xaa>"};
    for (int i = 0; i < 10; i++) {
        static const int32_t byte_type[] = {6};
        REFUSED(spm,
                (v.tokens = bad_bytes + i, v.n_tokens = v.n_types = v.n_scores = 1, v.types = byte_type,
                 v.bos = v.eos = -2),
                MICA_ERR_FORMAT, "token 0");
    }
#undef REFUSED
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(ranks_that_lie)
{
    static const char *const rows[] = {
        "",       "\n\n",      "YQ== 1\n", "YQ== 0\nYg== 2\n", "YQ=\n",
        "YQ 0\n", "!!!! 0\n",  "YQ== \n",  "YQ== x\n",         "YQ== 99999999999999999999\n",
        " 0\n",   "YQ== 0 \n", "==== 0\n"};
    mica_tokenizer *t;
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i]);
        EXPECT_INT(mica__tokenizer_from_ranks("test", rows[i], strlen(rows[i]), "gpt-2", &t), MICA_ERR_FORMAT);
        EXPECT(t == NULL);
    }
    test_case("good");
    static const char good[] = "YQ== 0\nYg== 1\nYWI= 2\n";
    CHECK_INT(mica__tokenizer_from_ranks("test", good, strlen(good), "gpt-2", &t), MICA_OK);
    encodes(t, "aab", 0, "0 2");
    mica__tokenizer_free(t);
}

TEST(each_allocation_fails_once)
{
    for (int kind = 0; kind < 2; kind++) {
        test_case("%s", kind ? "spm" : "bpe");
        mica__file *file;
        mica_tokenizer *t;
        CHECK_INT(make(kind ? &spm : &bpe, NULL, &t), MICA_OK);
        mica__tokenizer_free(t);
        CHECK_INT(mica__file_open(io_path("vocabulary.gguf"), NULL, &file), MICA_OK);
        for (int n = 1;; n++) {
            const int64_t live = mica__alloc_live();
            mica__tokens tokens = {0};
            mica__alloc_fail_at((uint64_t)n);
            mica_status status = mica__tokenizer_from_gguf(file, NULL, &t);
            if (status == MICA_OK) status = mica__tokenizer_encode(t, "a aa abc ab", kind ? 4 : 11, 0, &tokens);
            mica__alloc_fail_at(0);
            mica__tokenizer_free(t);
            mica__tokens_free(&tokens);
            EXPECT_INT(mica__alloc_live(), live);
            if (status == MICA_OK) {
                EXPECT(n > 7);
                break;
            }
            EXPECT_INT(status, MICA_ERR_MEMORY);
            CHECK(n < 100);
        }
        mica__file_close(file);
    }
}
