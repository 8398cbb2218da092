/* Tokenizers through the public interface: files of every kind, invalid arguments, buffers that are
 * too small.
 *
 * runs: check */
#include "mica_lm.h"

#include "io_files.h"

static mica_tokenizer *open_path(const char *path)
{
    mica_tokenizer *t = NULL;
    if (path) EXPECT_MSG(mica_tokenizer_open(path, NULL, &t) == MICA_OK, "%s", mica_last_error());
    return t;
}

static mica_tokenizer *open_data(const char *name) { return open_path(io_data(name)); }
static mica_tokenizer *open_fixture(const char *name) { return open_path(io_fixture(name)); }

static void same_ids(const mica_tokenizer *t, const char *text, int flags, const int32_t *want, size_t n)
{
    int32_t got[64];
    size_t count;
    test_case("%s", text);
    CHECK_MSG(mica_tokenizer_encode(t, text, strlen(text), flags, got, COUNT(got), &count) == MICA_OK, "%s",
              mica_last_error());
    CHECK_INT(count, n);
    for (size_t i = 0; i < n; i++) EXPECT_INT(got[i], want[i]);
}

/* Three files of one vocabulary give the same tokens. They are closed. */
static void same_three(mica_tokenizer *const t[3], int32_t size)
{
    static const char *const texts[] = {"Hello World",
                                        " two  spaces",
                                        "caf\xc3\xa9 \xf0\x9f\x9a\x80\n\tx",
                                        "",
                                        "\xff\xfe bad bytes",
                                        "3.14159 and <s> in letters"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        int32_t want[64];
        size_t n;
        CHECK_INT(mica_tokenizer_encode(t[0], texts[i], strlen(texts[i]), MICA_ENCODE_BOS, want, 64, &n), MICA_OK);
        for (int k = 1; k < 3; k++) same_ids(t[k], texts[i], MICA_ENCODE_BOS, want, n);
    }
    for (int k = 0; k < 3; k++) {
        EXPECT_INT(mica_tokenizer_size(t[k]), size);
        EXPECT_INT(mica_tokenizer_role(t[k], MICA_TOKEN_BOS), 1);
        EXPECT_INT(mica_tokenizer_role(t[k], MICA_TOKEN_EOS), 2);
        EXPECT_INT(mica_tokenizer_role(t[k], MICA_TOKEN_UNKNOWN), 0);
        EXPECT(mica_tokenizer_ends(t[k], 2) && !mica_tokenizer_ends(t[k], 1) && mica_tokenizer_is_control(t[k], 1));
        EXPECT_STR(mica_tokenizer_kind(t[k]), "spm");
        EXPECT(mica_tokenizer_adds_bos(t[k]));
        mica_tokenizer_close(t[k]);
    }
}

TEST(one_vocabulary_in_three_formats)
{
    mica_tokenizer *fixture[3] = {open_fixture("tokenizers/spm.gguf"), open_fixture("models/spm.bin"),
                                  open_fixture("models/spm.model")};
    CHECK(fixture[0] && fixture[1] && fixture[2]);
    same_three(fixture, 452);
    mica_tokenizer *llama2[3] = {open_data("tokenizers/ggml-vocab-llama-spm.gguf"),
                                 open_data("models/llama2-tokenizer.bin"), open_data("models/llama2-tokenizer.model")};
    if (llama2[0] && llama2[1] && llama2[2]) same_three(llama2, 32000);
}

/* tests/fixtures/models/spm.bin: "Once upon a time" with and without the begin token. */
static const int32_t once[] = {1, 312, 302, 262, 288};

TEST(vocabularies_of_llama2c)
{
    mica_tokenizer *t = open_fixture("models/spm.bin");
    CHECK(t != NULL);
    EXPECT_INT(mica_tokenizer_size(t), 452);
    same_ids(t, "Once upon a time", MICA_ENCODE_BOS, once, COUNT(once));
    mica_tokenizer_close(t);
    t = open_data("models/tok512.bin");
    if (!t) return;
    EXPECT_INT(mica_tokenizer_size(t), 512);
    same_ids(t, "Once upon a time", MICA_ENCODE_BOS, (const int32_t[]){1, 403, 407, 261, 378}, 5);
    mica_tokenizer_close(t);
}

static void llama3_specials(const mica_tokenizer *t)
{
    EXPECT_INT(mica_tokenizer_size(t), 128256);
    EXPECT_STR(mica_tokenizer_pre(t), "llama-bpe");
    EXPECT(mica_tokenizer_note(t, 0) && strstr(mica_tokenizer_note(t, 0), "Llama 3") && !mica_tokenizer_note(t, 1));
    EXPECT_INT(mica_tokenizer_role(t, MICA_TOKEN_EOT), 128009);
    EXPECT(mica_tokenizer_ends(t, 128009) && mica_tokenizer_ends(t, 128001) && !mica_tokenizer_ends(t, 128000));
    EXPECT_INT(mica_tokenizer_find(t, "<|reserved_special_token_250|>", 30), 128255);
}

/* The ids of "Assistant: ", between the tokens that begin a text and end a turn; and back to the text. */
static void assistant(const mica_tokenizer *t, const int32_t *want, size_t n_want)
{
    /* the begin token is not added twice */
    same_ids(t, "Assistant: <|eot_id|>", MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL, want, n_want);
    same_ids(t, "<|begin_of_text|>Assistant: <|eot_id|>", MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL, want, n_want);
    char text[64];
    size_t n;
    CHECK_INT(mica_tokenizer_decode(t, want, n_want, MICA_DECODE_SPECIAL, text, 64, &n), MICA_OK);
    EXPECT(n == 38 && memcmp(text, "<|begin_of_text|>Assistant: <|eot_id|>", 38) == 0);
    CHECK_INT(mica_tokenizer_decode(t, want, n_want, 0, text, 64, &n), MICA_OK);
    EXPECT(n == 11 && memcmp(text, "Assistant: ", 11) == 0);
}

/* A file of 128,000 ranks, which is how Llama 3 is recognised: all strings of one byte, of two bytes, and
 * enough of three. Written to the folder of this program. */
static const char *make_ranks(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *f = fopen(io_path("ranks.model"), "wb");
    if (!f) abort();
    for (int rank = 0; rank < 128000; rank++) {
        const int n = rank < 256           ? 1
                      : rank < 256 + 65536 ? 2
                                           : 3,
                  value = rank < 256 ? rank : rank - (n == 2 ? 256 : 65792);
        const int bits = value << (n == 1 ? 16 : n == 2 ? 8 : 0);
        fprintf(f, "%c%c%c%c %d\n", digits[bits >> 18 & 63], digits[bits >> 12 & 63],
                n > 1 ? digits[bits >> 6 & 63] : '=', n > 2 ? digits[bits & 63] : '=', rank);
    }
    if (fclose(f) != 0) abort();
    return io_path("ranks.model");
}

TEST(ranks_of_llama3)
{
    mica_tokenizer *t = open_path(make_ranks());
    CHECK(t != NULL);
    llama3_specials(t);
    /* The pair with the lowest rank is merged first: As, then an, then is. */
#define PAIR(a, b) (256 + (a) * 256 + (b))
    const int32_t want[] = {128000, PAIR('A', 's'), 's', PAIR('i', 's'), 't', PAIR('a', 'n'), 't', ':', ' ', 128009};
#undef PAIR
    assistant(t, want, COUNT(want));
    mica_tokenizer_close(t);
    t = open_data("tokenizers/llama3-tiktoken-tokenizer.model");
    if (!t) return;
    llama3_specials(t);
    assistant(t, (const int32_t[]){128000, 72803, 25, 220, 128009}, 5);
    mica_tokenizer_close(t);
}

TEST(too_little_room)
{
    mica_tokenizer *t = open_fixture("models/spm.bin");
    CHECK(t != NULL);
    enum { N = COUNT(once) - 1 };
    int32_t ids[16];
    for (int i = 0; i < 16; i++) ids[i] = -7;
    size_t n;
    CHECK_INT(mica_tokenizer_encode(t, "Once upon a time", 16, 0, ids, 2, &n), MICA_OK);
    EXPECT(n == N && ids[0] == once[1] && ids[1] == once[2] && ids[2] == -7);
    CHECK_INT(mica_tokenizer_encode(t, "Once upon a time", 16, 0, NULL, 0, &n), MICA_OK);
    EXPECT_INT(n, N);
    char text[20] = "...................";
    CHECK_INT(mica_tokenizer_decode(t, once + 1, N, 0, text, 6, &n), MICA_OK);
    EXPECT_INT(n, 16);
    EXPECT_STR(text, "Once u.............");
    CHECK_INT(mica_tokenizer_decode(t, once + 1, 1, 0, NULL, 0, &n), MICA_OK);
    EXPECT_INT(n, 4);
    mica_tokenizer_close(t);
}

TEST(wrong_arguments)
{
    mica_tokenizer *t = open_fixture("models/spm.bin");
    CHECK(t != NULL);
    int32_t id = 5;
    size_t n;
    char text[8];
    mica_tokenizer *none = t;
    EXPECT_INT(mica_tokenizer_open(NULL, NULL, &none), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_open("x", NULL, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_from_file(NULL, NULL, &none), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_open("/no/such/file", NULL, &none), MICA_ERR_FILE);
    EXPECT(none == NULL);
    EXPECT_INT(mica_tokenizer_open("x", &(mica_tokenizer_options){.struct_size = 1}, &none), MICA_ERR_ARGUMENT);
    EXPECT(strstr(mica_last_error(), "struct_size"));
    EXPECT_INT(mica_tokenizer_encode(NULL, "a", 1, 0, &id, 1, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_encode(t, NULL, 1, 0, &id, 1, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_encode(t, "a", 1, 0, NULL, 1, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_encode(t, "a", 1, 0, &id, 1, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_encode(t, "a", 1, 8, &id, 1, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_decode(t, &id, 1, 2, text, 8, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_decode(t, NULL, 1, 0, text, 8, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_decode(t, &(int32_t){452}, 1, 0, text, 8, &n), MICA_ERR_INDEX);
    EXPECT(strstr(mica_last_error(), "id 0 is 452"));
    const char *name;
    EXPECT(!mica_tokenizer_text(t, 452, &name, &n) && !mica_tokenizer_text(t, -1, &name, &n));
    EXPECT(mica_tokenizer_text(t, 1, &name, &n) && n == 3);
    EXPECT(mica_tokenizer_size(NULL) == 0 && mica_tokenizer_role(NULL, MICA_TOKEN_BOS) == -1);
    EXPECT_INT(mica_tokenizer_role(t, (mica_token_role)99), -1);
    EXPECT_INT(mica_tokenizer_find(t, NULL, 0), -1);
    EXPECT_INT(mica_detokenize(NULL, NULL, 0, 0, NULL, 0), 0);
    mica_tokenizer_close(NULL);
    mica_tokenizer_close(t);
}

/* Files cut short: a status and an error message that names the file. */
TEST(broken_files)
{
    const char *paths[4] = {"tests/fixtures/models/spm.bin", "tests/fixtures/models/spm.model"};
    char real[2][768];
    int n_paths = 2;
    static const char *const names[] = {"models/tok512.bin", "models/llama2-tokenizer.model"};
    for (int i = 0; i < 2; i++) {
        if (!io_data(names[i])) continue;
        snprintf(real[i], sizeof real[i], "%s", io_data(names[i]));
        paths[n_paths++] = real[i];
    }
    const char *path;
    mica_tokenizer *t;
    for (int i = 0; i < n_paths; i++) {
        size_t n;
        uint8_t *data = io_read(paths[i], &n);
        CHECK_MSG(data && n > 3600, "%s", paths[i]);
        for (size_t cut = 0; cut < 3600; cut = cut < 40 ? cut + 1 : cut + 97) {
            test_case("%s cut at %zu", paths[i], cut);
            path = io_write("cut", data, cut);
            const mica_status status = mica_tokenizer_open(path, NULL, &t);
            EXPECT(status == MICA_ERR_FORMAT || status == MICA_ERR_UNSUPPORTED || status == MICA_ERR_FILE);
            EXPECT_MSG(strncmp(mica_last_error(), path, strlen(path)) == 0, "%s", mica_last_error());
            EXPECT(t == NULL);
        }
        free(data);
    }
    test_case("an empty folder");
    char folder[600];
    snprintf(folder, sizeof folder, "%s", io_path("empty"));
    mkdir(folder, 0700);
    EXPECT_INT(mica_tokenizer_open(folder, NULL, &t), MICA_ERR_FILE);
    EXPECT(strstr(mica_last_error(), "has no tokenizer.json"));
    test_case("some bytes");
    EXPECT_INT(mica_tokenizer_open(io_write("bytes", "what is this?", 13), NULL, &t), MICA_ERR_FORMAT);
}
