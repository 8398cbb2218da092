/* tokenizer.json: each stage, the files next to it, and files with wrong contents.
 *
 * runs: check */
#include "io_files.h"
#include "text/tokenizer_build.h"
#include "tokenizer_vectors.h"

static char document[1 << 16];

/* A small file with the top-level "key" replaced by value; NULL: unchanged. */
#define SMALL_VOCAB                                                                                                  \
    "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4,\"\xc4\xa0\":5,\"\xc4\xa0"                                          \
    "a\":6,\"1\":7,\"2\":8,\"12\":9,\"\xc3\x83\":10,\"\xc2\xa9\":11,\".\":12,\"e\":13,\"\xc3\x8c\":14,\"\xc4\xa3\":" \
    "15,\"x\":16}"
#define SMALL_MERGES "[\"a b\",[\"ab\",\"c\"],\"\xc4\xa0 a\",\"1 2\"]"
static const char *small(const char *key, const char *value)
{
    static const struct {
        const char *key, *value;
    } parts[] = {{"added_tokens",
                  "[{\"id\":17,\"content\":\"<|end|>\",\"special\":true,\"lstrip\":true,\"rstrip\":true},"
                  "{\"id\":18,\"content\":\"<user>\",\"special\":false}]"},
                 {"normalizer", "null"},
                 {"pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"},
                 {"post_processor", "null"},
                 {"decoder", "{\"type\":\"ByteLevel\"}"},
                 {"model", "{\"type\":\"BPE\",\"vocab\":" SMALL_VOCAB ",\"merges\":" SMALL_MERGES "}"}};
    size_t n = (size_t)snprintf(document, sizeof document, "{\"version\":\"1.0\"");
    for (size_t i = 0; i < COUNT(parts); i++)
        n += (size_t)snprintf(document + n, sizeof document - n, ",\"%s\":%s", parts[i].key,
                              key && strcmp(key, parts[i].key) == 0 ? value : parts[i].value);
    snprintf(document + n, sizeof document - n, "}");
    return document;
}

static mica_tokenizer *read_json(const char *text)
{
    mica_tokenizer *t;
    EXPECT_MSG(mica__tokenizer_from_json("test", text, strlen(text), NULL, NULL, &t) == MICA_OK, "%s",
               mica_last_error());
    return t;
}

static void gives(const mica_tokenizer *t, const char *text, int flags, const char *want)
{
    int32_t ids[100];
    size_t n = 0;
    char line[600] = "";
    if (!t) return;
    EXPECT_MSG(mica_tokenizer_encode(t, text, strlen(text), flags, ids, 100, &n) == MICA_OK, "%s", mica_last_error());
    for (size_t i = 0, at = 0; i < n; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, i ? " %d" : "%d", (int)ids[i]);
    EXPECT_MSG(strcmp(line, want) == 0, "\"%s\" is %s, not %s", text, line, want);
}

TEST(byte_level)
{
    mica_tokenizer *t = read_json(small(NULL, NULL));
    CHECK(t != NULL);
    EXPECT_STR(mica_tokenizer_pre(t), "gpt-2");
    EXPECT_STR(mica_tokenizer_kind(t), "bpe");
    gives(t, "abc a", 0, "4 6");
    gives(t, "12.ab", 0, "9 12 3");
    gives(t, "\xc3\xa9", 0, "10 11");
    gives(t, "a <|end|> b", MICA_ENCODE_SPECIAL, "0 17 1"); /* the token includes the white space next to it */
    gives(t, "a<user>b", 0, "0 18 1");
    EXPECT(mica_tokenizer_ends(t, 17) && mica_tokenizer_role(t, MICA_TOKEN_EOT) == 17);
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_BOS), -1);
    mica_tokenizer_close(t);
}

#define LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define SEQUENCE(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "]}"
#define SPLIT(pattern, behavior, invert) \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":" invert "}"

TEST(pre_tokenizers)
{
    static const struct {
        const char *pre, *text, *want;
    } rows[] = {
        {LEVEL, "ab12 a", "3 9 6"},
        {SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}," LEVEL), "12a", "7 8 0"},
        {SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":false}," LEVEL), "12a", "9 0"},
        {SEQUENCE(LEVEL ",{\"type\":\"Digits\",\"individual_digits\":true}"), "12a", "7 8 0"},
        {SEQUENCE("{\"type\":\"Punctuation\"}," LEVEL), "ab.c", "3 12 2"},
        {SEQUENCE("{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}," LEVEL), "ab..c", "3 12 12 2"},
        {SEQUENCE(SPLIT("{\"Regex\":\"[b]\"}", "Isolated", "false") "," LEVEL), "abc", "0 1 2"},
        {SEQUENCE(SPLIT("{\"Regex\":\"[b]\"}", "Removed", "false") "," LEVEL), "abc", "0 2"},
        {SEQUENCE(SPLIT("{\"Regex\":\"[ab]+\"}", "Removed", "true") "," LEVEL), "abc ab", "3 3"},
        {SEQUENCE(SPLIT("{\"String\":\".\"}", "Isolated", "false") "," LEVEL), "ab.ab", "3 12 3"},
        {SEQUENCE(LEVEL "," SPLIT("{\"Regex\":\"b\"}", "Isolated", "false")), "ab ab", "0 1 6 1"},
        {SEQUENCE(LEVEL "," SPLIT("{\"Regex\":\"\\u0120\"}", "Isolated", "false")), "a a", "0 5 0"},
        {SEQUENCE(LEVEL "," SPLIT("{\"Regex\":\"b\"}", "Removed", "false")), "ab ab", "0 6"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].pre);
        mica_tokenizer *t = read_json(small("pre_tokenizer", rows[i].pre));
        gives(t, rows[i].text, 0, rows[i].want);
        mica_tokenizer_close(t);
    }
}

TEST(normalisers_and_roles)
{
    mica_tokenizer *t = read_json(small("normalizer", "{\"type\":\"NFC\"}"));
    gives(t, "e\xcc\x81", 0, "10 11"); /* e and an acute become one character */
    mica_tokenizer_close(t);
    t = read_json(small(NULL, NULL));
    gives(t, "e\xcc\x81", 0, "13 14 15");
    mica_tokenizer_close(t);
    t = read_json(small("post_processor",
                        "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<|end|>\","
                        "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}]}"));
    gives(t, "a", MICA_ENCODE_BOS, "17 0");
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_BOS), 17);
    mica_tokenizer_close(t);
}

/* Like Llama 2's: spaces are U+2581, bytes where there is no token. */
#define SPACE "\xe2\x96\x81"
#define SPM_MODEL                                                                                                   \
    "{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</s>\":2," \
    "\"<0x41>\":3,\"" SPACE "\":4,\"a\":5,\"b\":6,\"" SPACE "a\":7,\"ab\":8,\"<0xC3>\":9,\"<0xA9>\":10},"           \
    "\"merges\":[\"" SPACE " a\",\"a b\"]}"

static const char *spm_like(const char *normalizer, const char *pre, const char *decoder)
{
    snprintf(
        document, sizeof document,
        "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true}],\"normalizer\":%s,\"pre_tokenizer\":%s,"
        "\"decoder\":%s,\"model\":%s}",
        normalizer, pre, decoder, SPM_MODEL);
    return document;
}

static void says(const mica_tokenizer *t, const int32_t *ids, size_t n, const char *want)
{
    char text[100];
    size_t length;
    if (!t) return;
    CHECK_INT(mica_tokenizer_decode(t, ids, n, 0, text, 100, &length), MICA_OK);
    EXPECT_MSG(length == strlen(want) && memcmp(text, want, length) == 0, "'%.*s' is not '%s'", (int)length, text,
               want);
}

TEST(like_sentencepiece)
{
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE "\"}"
#define DECODE                                                                                                      \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" SPACE                   \
    "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \"," \
    "\"start\":1,\"stop\":0}]}"
#define METASPACE(scheme, split) \
    "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE "\",\"prepend_scheme\":\"" scheme "\",\"split\":" split "}"
    mica_tokenizer *t = read_json(spm_like(
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" SPACE "\"}," REPLACE "]}",
        "null", DECODE));
    EXPECT_STR(mica_tokenizer_kind(t), "spm");
    gives(t, "a ab", 0, "7 7 6");
    gives(t, " a", 0, "4 7");
    gives(t, "A\xc3\xa9z", 0, "4 3 9 10 0");
    gives(t, "a<s>a", MICA_ENCODE_SPECIAL, "7 1 7");
    says(t, (int32_t[]){7, 7, 6}, 3, "a ab");
    says(t, (int32_t[]){4, 3, 9, 10}, 4, "A\xc3\xa9");
    mica_tokenizer_close(t);
    t = read_json(
        spm_like("null", METASPACE("first", "false"), "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE "\"}"));
    gives(t, "a a<s>a", MICA_ENCODE_SPECIAL, "7 7 1 5");
    gives(t, " a", 0, "7"); /* no second space */
    mica_tokenizer_close(t);
    t = read_json(spm_like("null", METASPACE("never", "true"), "null"));
    gives(t, "ab ab", 0, "8 7 6");
    says(t, (int32_t[]){7, 6}, 2, " ab");
    mica_tokenizer_close(t);
    t = read_json(spm_like("null", METASPACE("always", "true"), "null"));
    gives(t, "a<s>a", MICA_ENCODE_SPECIAL, "7 1 7");
    mica_tokenizer_close(t);
}

/* A SentencePiece vocabulary written as tokenizer.json with merges in place of scores, as converters write it. */
static void spm_with_merges(const char *path, mica_tokenizer **out)
{
    mica_tokenizer *t;
    *out = NULL;
    CHECK_MSG(mica_tokenizer_open(path, NULL, &t) == MICA_OK, "%s", mica_last_error());
    FILE *f = fopen(io_path("spm.json"), "wb");
    CHECK(f != NULL);
    fprintf(f, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" SPACE
               "\"}," REPLACE "]},\"decoder\":" DECODE
               ",\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true},"
               "{\"id\":2,\"content\":\"</s>\",\"special\":true}],\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
               "\"unk_token\":\"<unk>\",\"vocab\":{");
    for (int pass = 0; pass < 3; pass++) {
        bool first = pass < 2;
        if (pass == 1) fprintf(f, "},\"merges\":[");
        for (int32_t id = 0; id < mica_tokenizer_size(t); id++) {
            /* ids are in order of scores, except runs of spaces, which are last */
            if (pass && (t->tokens[id].score < -1e8f) != (pass == 2)) continue;
            const char *text;
            size_t n;
            (void)mica_tokenizer_text(t, id, &text, &n);
            if (!pass) {
                fprintf(f, first ? "" : ",");
                put_json_string(f, text, n);
                fprintf(f, ":%d", (int)id);
                first = false;
            }
            for (size_t k = 1; pass && id > 258 && k < n; k++) {
                if (mica_tokenizer_find(t, text, k) < 0 || mica_tokenizer_find(t, text + k, n - k) < 0) continue;
                fprintf(f, first ? "[" : ",[");
                put_json_string(f, text, k);
                fprintf(f, ",");
                put_json_string(f, text + k, n - k);
                fprintf(f, "]");
                first = false;
            }
        }
    }
    fprintf(f, "]}}");
    CHECK(fclose(f) == 0);
    mica_tokenizer_close(t);
    CHECK_MSG(mica_tokenizer_open(io_path("spm.json"), NULL, out) == MICA_OK, "%s", mica_last_error());
}

TEST(vectors_of_llama_spm_with_merges)
{
    mica_tokenizer *t;
    CHECK(io_fixture("tokenizers/spm.gguf"));
    spm_with_merges(io_fixture("tokenizers/spm.gguf"), &t);
    CHECK(t != NULL);
    fixture_vectors(t, "spm");
    mica_tokenizer_close(t);
    const char *found = io_data("tokenizers/ggml-vocab-llama-spm.gguf");
    if (!found) return;
    spm_with_merges(found, &t);
    CHECK(t != NULL);
    all_vectors(t, "llama-spm", 40);
    mica_tokenizer_close(t);
}

/* ---------------------------------------------------------------- folders -- */

static void write_in(const char *folder, const char *name, const char *text)
{
    char path[900];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)io_write(path + strlen(io_folder()) + 1, text, strlen(text));
}

TEST(files_next_to_a_model)
{
    char folder[600];
    mica_tokenizer *t;
    snprintf(folder, sizeof folder, "%s", io_path("model"));
    CHECK(mkdir(folder, 0700) == 0);
    write_in(folder, "tokenizer.json", small(NULL, NULL));
    CHECK_MSG(mica_tokenizer_open(folder, NULL, &t) == MICA_OK, "%s", mica_last_error());
    EXPECT(mica_chat_template(t) == NULL && !mica_tokenizer_adds_bos(t));
    mica_tokenizer_close(t);
    write_in(folder, "special_tokens_map.json", "{\"bos_token\":\"c\",\"eos_token\":\"b\"}");
    write_in(folder, "tokenizer_config.json",
             "{\"bos_token\":{\"content\":\"<|end|>\"},\"add_bos_token\":true,\"pad_token\":\"abc\",\"unk_token\":null,"
             "\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"no\"},{\"name\":\"default\",\"template\":\"{{ 1 "
             "}}\"}]}");
    write_in(folder, "generation_config.json", "{\"eos_token_id\":[17,3]}");
    CHECK_MSG(mica_tokenizer_open(folder, NULL, &t) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_BOS), 17);
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_EOS), 1);
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_PADDING), 4);
    EXPECT(mica_tokenizer_adds_bos(t) && mica_tokenizer_ends(t, 17) && mica_tokenizer_ends(t, 3) &&
           mica_tokenizer_ends(t, 1));
    EXPECT_STR(mica_chat_template(t), "{{ 1 }}");
    mica_tokenizer_close(t);
    write_in(folder, "chat_template.jinja", "{{ 2 }}\n");
    CHECK_INT(mica_tokenizer_open(folder, NULL, &t), MICA_OK);
    EXPECT_STR(mica_chat_template(t), "{{ 2 }}\n");
    mica_tokenizer_close(t);
    mica_tokenizer_options options;
    mica_tokenizer_options_init(&options);
    options.chat_template = "plain", options.pre = "qwen2";
    CHECK_INT(mica_tokenizer_open(folder, &options, &t), MICA_OK);
    EXPECT_STR(mica_chat_template(t), "plain");
    EXPECT_STR(mica_tokenizer_pre(t), "qwen2");
    mica_tokenizer_close(t);
    /* a malformed file is an error, a missing one is not */
    write_in(folder, "generation_config.json", "{\"eos_token_id\":[99]}");
    EXPECT_INT(mica_tokenizer_open(folder, NULL, &t), MICA_ERR_FORMAT);
    EXPECT(strstr(mica_last_error(), "generation_config.json: eos_token_id 99"));
    write_in(folder, "generation_config.json", "{");
    EXPECT_INT(mica_tokenizer_open(folder, NULL, &t), MICA_ERR_FORMAT);
    EXPECT(strstr(mica_last_error(), "generation_config.json: JSON at byte 1"));
}

/* -------------------------------------------------- files with wrong contents */

static void refused(const char *key, const char *value, mica_status want, const char *part)
{
    mica_tokenizer *t;
    const char *text = key ? small(key, value) : value;
    const int64_t live = mica__alloc_live();
    test_case("%s: %.70s", key ? key : "whole", value);
    const mica_status got = mica__tokenizer_from_json("test", text, strlen(text), NULL, NULL, &t);
    EXPECT_MSG(got == want, "status %d: %s", (int)got, mica_last_error());
    EXPECT_MSG(strstr(mica_last_error(), part), "no \"%s\" in \"%s\"", part, mica_last_error());
    EXPECT(t == NULL);
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(refused_by_name)
{
#define MODEL(vocab, merges) "{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}"
    refused(NULL, "", MICA_ERR_FORMAT, "JSON");
    refused(NULL, "{}", MICA_ERR_FORMAT, "no model");
    refused(NULL, "[1]", MICA_ERR_FORMAT, "no model");
    refused("model", "{\"type\":\"Unigram\",\"vocab\":[]}", MICA_ERR_UNSUPPORTED, "'Unigram'");
    refused("model", "{\"vocab\":{}}", MICA_ERR_UNSUPPORTED, "kind unknown");
    refused("model", MODEL("[]", "[]"), MICA_ERR_FORMAT, "model.vocab is not an object");
    refused("model", MODEL("{\"a\":0}", "{}"), MICA_ERR_FORMAT, "model.merges is not a list");
    refused("model", MODEL("{\"a\":0,\"b\":0}", "[]"), MICA_ERR_FORMAT, "'b' has the id 0");
    refused("model", MODEL("{\"a\":-1}", "[]"), MICA_ERR_FORMAT, "not an integer");
    refused("model", MODEL("{\"a\":1.5}", "[]"), MICA_ERR_FORMAT, "not an integer");
    refused("model", MODEL("{\"a\":9000000}", "[]"), MICA_ERR_FORMAT, "ids up to 9000000");
    refused("model", MODEL("{\"a\":9223372036854775807}", "[]"), MICA_ERR_FORMAT, "ids up to");
    refused("model", MODEL("{\"a\":99999999999999999999}", "[]"), MICA_ERR_FORMAT, "not an integer");
    refused("model", MODEL(SMALL_VOCAB, "[\"ab\"]"), MICA_ERR_FORMAT, "merge 0 is not a pair");
    refused("model", MODEL(SMALL_VOCAB, "[\"a b\",[\"a\"]]"), MICA_ERR_FORMAT, "merge 1 is not a pair");
    refused("model", MODEL(SMALL_VOCAB, "[[\"a\",1]]"), MICA_ERR_FORMAT, "merge 0 is not a pair");
    refused("model", "{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0},\"merges\":[]}",
            MICA_ERR_UNSUPPORTED, "end_of_word_suffix");
    refused("added_tokens", "{}", MICA_ERR_FORMAT, "added_tokens is not a list");
    refused("added_tokens", "[{\"id\":3}]", MICA_ERR_FORMAT, "no content");
    refused("added_tokens", "[{\"id\":3,\"content\":\"\"}]", MICA_ERR_FORMAT, "no content");
    refused("added_tokens", "[{\"content\":\"x\"}]", MICA_ERR_FORMAT, "no id");
    refused("added_tokens", "[{\"id\":3,\"content\":\"x\",\"single_word\":true}]", MICA_ERR_UNSUPPORTED, "single_word");
    refused("normalizer", "{\"type\":\"NFKC\"}", MICA_ERR_UNSUPPORTED, "the normalizer 'NFKC'");
    refused("normalizer", "{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"y\"}",
            MICA_ERR_UNSUPPORTED, "spaces");
    refused("normalizer", "{\"type\":\"Prepend\",\"prepend\":\"x\"}", MICA_ERR_UNSUPPORTED, "U+2581");
    refused("normalizer", "3", MICA_ERR_UNSUPPORTED, "the normalizer ?");
    refused("pre_tokenizer", "{\"type\":\"BertPreTokenizer\"}", MICA_ERR_UNSUPPORTED, "'BertPreTokenizer'");
    refused("pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", MICA_ERR_UNSUPPORTED,
            "add_prefix_space");
    refused("pre_tokenizer", SEQUENCE(LEVEL "," LEVEL), MICA_ERR_UNSUPPORTED, "a second time");
    refused("pre_tokenizer", SPLIT("{\"Regex\":\"a\"}", "MergedWithNext", "false"), MICA_ERR_UNSUPPORTED,
            "'MergedWithNext'");
    refused("pre_tokenizer", SPLIT("{\"Regex\":\"(a\"}", "Isolated", "false"), MICA_ERR_UNSUPPORTED,
            "regular expression");
    refused("pre_tokenizer", SPLIT("{}", "Isolated", "false"), MICA_ERR_FORMAT, "without a pattern");
    refused("pre_tokenizer", SEQUENCE(LEVEL "," LEVEL "," LEVEL), MICA_ERR_UNSUPPORTED, "a second time");
    refused("pre_tokenizer", SEQUENCE(METASPACE("always", "true") "," LEVEL), MICA_ERR_UNSUPPORTED,
            "together with ByteLevel");
    refused("post_processor", "{\"type\":\"RobertaProcessing\"}", MICA_ERR_UNSUPPORTED, "'RobertaProcessing'");
    refused("post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<x>\"}}]}",
            MICA_ERR_FORMAT, "'<x>' of the post_processor");
    refused("decoder", "{\"type\":\"WordPiece\"}", MICA_ERR_UNSUPPORTED, "the decoder 'WordPiece'");
    refused("decoder", "{\"type\":\"Metaspace\"}", MICA_ERR_UNSUPPORTED, "without its pre_tokenizer");
    refused("decoder", "{\"type\":\"Strip\",\"content\":\" \",\"start\":3,\"stop\":0}", MICA_ERR_UNSUPPORTED,
            "more than one space");
}

TEST(each_allocation_fails_once)
{
    small(NULL, NULL);
    for (uint64_t n = 1;; n++) {
        const int64_t live = mica__alloc_live();
        mica_tokenizer *t;
        mica__alloc_fail_at(n);
        const mica_status status = mica__tokenizer_from_json("test", document, strlen(document), NULL, NULL, &t);
        mica__alloc_fail_at(0);
        mica_tokenizer_close(t);
        EXPECT_INT(mica__alloc_live(), live);
        if (status == MICA_OK) break;
        EXPECT_MSG(status == MICA_ERR_MEMORY, "%s", mica_last_error());
        CHECK(n < 200);
    }
}
