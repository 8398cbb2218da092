/* BPE trained on texts, and tokenizers that are written and read back. */
#include "mica_lm.h"

#include "io_files.h"

static uint64_t random_state = 7;
static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static size_t encode(const mica_tokenizer *t, const char *text, size_t n, int32_t *ids, size_t cap)
{
    size_t count = 0;
    EXPECT_MSG(mica_tokenizer_encode(t, text, n, 0, ids, cap, &count) == MICA_OK, "%s", mica_last_error());
    EXPECT(count <= cap);
    return count <= cap ? count : 0;
}

/* Both tokenizers give the same tokens, which decode to the original bytes. */
static void same_tokenizer(const mica_tokenizer *a, const mica_tokenizer *b)
{
    EXPECT_INT(mica_tokenizer_size(a), mica_tokenizer_size(b));
    EXPECT_STR(mica_tokenizer_pre(a), mica_tokenizer_pre(b));
    EXPECT_INT(mica_tokenizer_adds_bos(a), mica_tokenizer_adds_bos(b));
    for (int role = 0; role <= MICA_TOKEN_EOT; role++)
        EXPECT_INT(mica_tokenizer_role(a, (mica_token_role)role), mica_tokenizer_role(b, (mica_token_role)role));
    for (int32_t id = 0; id < mica_tokenizer_size(a); id++) {
        const char *x = "", *y = "";
        size_t n = 0, m = 0;
        const bool is = mica_tokenizer_text(a, id, &x, &n) && mica_tokenizer_text(b, id, &y, &m);
        if (!is || n != m || memcmp(x, y, n) != 0 || mica_tokenizer_ends(a, id) != mica_tokenizer_ends(b, id) ||
            mica_tokenizer_is_control(a, id) != mica_tokenizer_is_control(b, id))
            CHECK_MSG(false, "token %d is '%.*s' and '%.*s'", (int)id, (int)n, x, (int)m, y);
    }
    for (int round = 0; round < 200; round++) {
        static const char *const parts[] = {"the ",          " a",  "\n",    "  ",  "123", "\xc3\xa9",
                                            "<|endoftext|>", "'ll", "King ", "\xff"};
        char text[400];
        int32_t one[400], two[400];
        size_t n = 0;
        while (n < 200) {
            const char *part = parts[next_random(10)];
            if (next_random(4) == 0) text[n++] = (char)next_random(256);
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        const size_t x = encode(a, text, n, one, 400), y = encode(b, text, n, two, 400);
        CHECK_INT(x, y);
        CHECK(memcmp(one, two, x * sizeof *one) == 0);
    }
}

static const char rhyme[] = "the cat sat on the mat; the cat that sat on the mat is the fat cat.\n"
                            "aaaa aaaaa aa a the other cats sat that day, aaaaaa! abab ababab\n";

/* Compares with the simple algorithm, which counts all pairs again for each token. */
TEST(equals_the_slow_way)
{
    enum { VOCAB = 256 + 30 };
    mica_bpe_options options;
    mica_tokenizer *t;
    mica_bpe_options_init(&options);
    options.vocab = VOCAB;
    options.n_specials = 0;
    CHECK_MSG(mica_tokenizer_train(rhyme, strlen(rhyme), &options, &t) == MICA_OK, "%s", mica_last_error());
    /* words, split by hand: letters with a leading space; other characters are single words */
    static int32_t words[200][40];
    int length[200], n_words = 0;
    for (const char *p = rhyme; *p;) {
        const char *from = p;
        if (*p == ' ' && p[1]) p++;
        if (*p >= 'a' && *p <= 'z')
            while (*p >= 'a' && *p <= 'z') p++;
        else
            while (*p == ';' || *p == '.' || *p == ',' || *p == '!') p++;
        if (p == from) p++;
        length[n_words] = (int)(p - from);
        for (int i = 0; i < length[n_words]; i++) words[n_words][i] = (unsigned char)from[i];
        n_words++;
    }
    static char texts[VOCAB][64];
    for (int i = 0; i < 256; i++) texts[i][0] = (char)i;
    int n = 256;
    for (; n < VOCAB; n++) {
        int best = 1, bl = -1, br = -1;
        for (int l = 0; l < n; l++)
            for (int r = 0; r < n; r++) {
                int count = 0;
                for (int w = 0; w < n_words; w++)
                    for (int i = 1; i < length[w]; i++) count += words[w][i - 1] == l && words[w][i] == r;
                if (count > best) best = count, bl = l, br = r;
            }
        if (bl < 0) break;
        for (int w = 0; w < n_words; w++) {
            int m = 0;
            for (int i = 0; i < length[w]; i++) {
                const bool joins = i + 1 < length[w] && words[w][i] == bl && words[w][i + 1] == br;
                words[w][m++] = joins ? n : words[w][i];
                i += joins;
            }
            length[w] = m;
        }
        const size_t n_left = strlen(texts[bl]), n_right = strlen(texts[br]);
        CHECK(n_left + n_right < sizeof texts[n]);
        memcpy(texts[n], texts[bl], n_left);
        memcpy(texts[n] + n_left, texts[br], n_right + 1);
        const char *got;
        size_t got_length;
        CHECK(mica_tokenizer_text(t, n, &got, &got_length));
        EXPECT_MSG(got_length == strlen(texts[n]) && memcmp(got, texts[n], got_length) == 0,
                   "token %d is '%.*s', not '%s'", n, (int)got_length, got, texts[n]);
    }
    EXPECT_INT(mica_tokenizer_size(t), n);
    mica_tokenizer_close(t);
}

static void round_trip(const mica_tokenizer *t, const char *name)
{
    mica_tokenizer *again;
    char path[600];
    snprintf(path, sizeof path, "%s", io_path(name));
    CHECK_MSG(mica_tokenizer_save(t, path) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_tokenizer_open(path, NULL, &again) == MICA_OK, "%s", mica_last_error());
    same_tokenizer(t, again);
    mica_tokenizer_close(again);
}

/* Written to a model file, and read from an open file. */
TEST(put_into_a_model)
{
    mica_tokenizer *t, *again;
    mica_writer *w;
    mica_file *file;
    const float data[] = {1, 2};
    char path[600];
    snprintf(path, sizeof path, "%s", io_path("model.gguf"));
    CHECK_INT(mica_tokenizer_train(rhyme, strlen(rhyme), NULL, &t), MICA_OK);
    CHECK_INT(mica_writer_open(path, NULL, &w), MICA_OK);
    EXPECT_INT(mica_tokenizer_put(NULL, w), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_put(t, NULL), MICA_ERR_ARGUMENT);
    CHECK_INT(mica_tokenizer_put(t, w), MICA_OK);
    CHECK_INT(mica_writer_tensor(w, "x", "F32", 1, (int64_t[]){2}, data), MICA_OK);
    CHECK_MSG(mica_writer_finish(w, NULL, NULL) == MICA_OK, "%s", mica_last_error());
    CHECK_INT(mica_file_open(path, NULL, &file), MICA_OK);
    CHECK_MSG(mica_tokenizer_from_file(file, NULL, &again) == MICA_OK, "%s", mica_last_error());
    mica_file_close(file);
    same_tokenizer(t, again);
    mica_tokenizer_close(again);
    mica_tokenizer_close(t);
}

TEST(trained_written_and_read_again)
{
    static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    mica_bpe_options options;
    mica_tokenizer *t;
    mica_bpe_options_init(&options);
    options.vocab = 300;
    options.specials = specials;
    options.n_specials = 3;
    static const char *const pres[] = {"gpt-2",          "llama-bpe",    "qwen2",       "falcon", "starcoder",
                                       "deepseek-coder", "deepseek-llm", "deepseek-v3", "qwen35", "default"};
    for (size_t i = 0; i < COUNT(pres); i++) {
        test_case("%s", pres[i]);
        options.pre = pres[i];
        CHECK_MSG(mica_tokenizer_train(rhyme, strlen(rhyme), &options, &t) == MICA_OK, "%s", mica_last_error());
        EXPECT_INT(mica_tokenizer_find(t, "<|im_end|>", 10), mica_tokenizer_size(t) - 1);
        EXPECT(mica_tokenizer_ends(t, mica_tokenizer_size(t) - 1));
        round_trip(t, "tokenizer.json");
        round_trip(t, "tokenizer.gguf");
        mica_tokenizer_close(t);
    }
}

/* A vocabulary of realistic size, trained in seconds. The text is decoded unchanged. text is freed. */
static void real_size(char *text, size_t n, int32_t vocab)
{
    size_t count, back;
    mica_bpe_options options;
    mica_tokenizer *t;
    mica_bpe_options_init(&options);
    options.vocab = vocab;
    CHECK_MSG(mica_tokenizer_train(text, n, &options, &t) == MICA_OK, "%s", mica_last_error());
    EXPECT_INT(mica_tokenizer_size(t), vocab);
    int32_t *ids = malloc(n * sizeof *ids);
    char *again = malloc(n);
    if (!ids || !again) abort();
    CHECK_INT(mica_tokenizer_encode(t, text, n, 0, ids, n, &count), MICA_OK);
    EXPECT_MSG(count < n * 2 / 5, "%zu tokens for %zu bytes", count, n);
    CHECK_INT(mica_tokenizer_decode(t, ids, count, 0, again, n, &back), MICA_OK);
    EXPECT(back == n && memcmp(text, again, n) == 0);
    round_trip(t, "real_size.json");
    free(ids), free(again), free(text);
    mica_tokenizer_close(t);
}

TEST(a_vocabulary_of_a_real_size)
{
    size_t n;
    test_case("the public header");
    char *text = (char *)io_read("include/mica.h", &n);
    CHECK_MSG(text, "not run from the root of the project");
    real_size(text, n, 1024);
    const char *path = io_data("text/tinyshakespeare.txt");
    if (!path) return;
    test_case("Shakespeare");
    text = (char *)io_read(path, &n);
    real_size(text, n, 2048);
}

TEST(small_and_wrong)
{
    mica_bpe_options options;
    mica_tokenizer *t;
    int32_t ids[8];
    mica_bpe_options_init(&options);
    options.vocab = 257;
    CHECK_INT(mica_tokenizer_train(NULL, 0, &options, &t), MICA_OK);
    EXPECT_INT(mica_tokenizer_size(t), 257);
    EXPECT_INT(encode(t, "a\0\xff", 3, ids, 8), 3);
    EXPECT(ids[0] == 'a' && ids[1] == 0 && ids[2] == 255);
    round_trip(t, "bytes.json");
    round_trip(t, "bytes.gguf");
    EXPECT_INT(mica_tokenizer_save(t, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_save(t, "/no/such/folder/t.json"), MICA_ERR_FILE);
    mica_tokenizer_close(t);
    options.vocab = 256;
    EXPECT_INT(mica_tokenizer_train("a", 1, &options, &t), MICA_ERR_ARGUMENT);
    EXPECT(strstr(mica_last_error(), "257 to"));
    options.vocab = 1000, options.pre = "nonsense";
    EXPECT_INT(mica_tokenizer_train("a", 1, &options, &t), MICA_ERR_UNSUPPORTED);
    options.pre = NULL, options.specials = NULL;
    EXPECT_INT(mica_tokenizer_train("a", 1, &options, &t), MICA_ERR_ARGUMENT);
    options.specials = (const char *const[]){""};
    EXPECT_INT(mica_tokenizer_train("a", 1, &options, &t), MICA_ERR_ARGUMENT);
    options.struct_size = 3;
    EXPECT_INT(mica_tokenizer_train("a", 1, &options, &t), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_tokenizer_train("a", 1, NULL, NULL), MICA_ERR_ARGUMENT);
}

TEST(each_allocation_fails_once)
{
    for (uint64_t n = 1;; n++) {
        const int64_t live = mica__alloc_live();
        mica_tokenizer *t = NULL, *again = NULL;
        char path[600];
        snprintf(path, sizeof path, "%s", io_path("fault.json"));
        mica__alloc_fail_at(n);
        mica_status status = mica_tokenizer_train(rhyme, strlen(rhyme), NULL, &t);
        if (status == MICA_OK) status = mica_tokenizer_save(t, path);
        if (status == MICA_OK) status = mica_tokenizer_open(path, NULL, &again);
        mica__alloc_fail_at(0);
        mica_tokenizer_close(t);
        mica_tokenizer_close(again);
        EXPECT_INT(mica__alloc_live(), live);
        if (status == MICA_OK) {
            EXPECT(n > 20);
            break;
        }
        EXPECT_MSG(status == MICA_ERR_MEMORY, "%s", mica_last_error());
        CHECK(n < 2000);
    }
}

/* Merging doubles the length of a token; it stops before one is too long for a vocabulary. */
TEST(equal_letters)
{
    enum { LETTERS = 200000 };
    char *text = malloc(LETTERS);
    int32_t *ids = malloc(LETTERS * sizeof *ids);
    mica_tokenizer *t = NULL, *again = NULL;
    mica_bpe_options o;
    CHECK(text && ids);
    memset(text, 'a', LETTERS);
    mica_bpe_options_init(&o);
    o.vocab = 512;
    CHECK_MSG(mica_tokenizer_train(text, LETTERS, &o, &t) == MICA_OK, "%s", mica_last_error());
    const size_t n = encode(t, text, LETTERS, ids, LETTERS);
    EXPECT(n > 0 && n < LETTERS / 1000);
    CHECK_MSG(mica_tokenizer_save(t, io_path("letters.gguf")) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_tokenizer_open(io_path("letters.gguf"), NULL, &again) == MICA_OK, "%s", mica_last_error());
    same_tokenizer(t, again);
    mica_tokenizer_close(t);
    mica_tokenizer_close(again);
    free(text);
    free(ids);
}
