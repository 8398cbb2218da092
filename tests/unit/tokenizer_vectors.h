/* Test vectors of llama.cpp and of tests/fixtures: texts and their expected tokens. */
#ifndef MICA_TEST_TOKENIZER_VECTORS_H
#define MICA_TEST_TOKENIZER_VECTORS_H

#include "io_files.h"
#include "text/tokenizer.h"

/* FILE.inp: texts with this line between them; FILE.out: a line of ids for each. */
static const char between[] = "\n__ggml_vocab_test__\n";

static inline void one_vector(const mica_tokenizer *t, const char *text, size_t length, const char *line)
{
    mica__tokens got = {0};
    CHECK_MSG(mica__tokenizer_encode(t, text, length, 0, &got) == MICA_OK, "%s", mica_last_error());
    size_t n = 0;
    bool same = true;
    char *end;
    for (const char *p = line; *p && *p != '\n'; p = end) {
        const long id = strtol(p, &end, 10);
        if (end == p) break;
        same = same && n < got.n && got.ids[n] == id;
        n++;
    }
    EXPECT_MSG(same && n == got.n, "%d tokens, not %d, for \"%.*s\"", (int)got.n, (int)n, (int)length, text);
    /* and back to the text */
    char *back = malloc(3 * length + 1000);
    size_t written = 0;
    if (!back) abort();
    CHECK_INT(mica_tokenizer_decode(t, got.ids, got.n, 0, back, 3 * length + 1000, &written), MICA_OK);
    EXPECT_MSG(written == length && memcmp(back, text, length) == 0, "\"%.*s\" came back as \"%.*s\"", (int)length,
               text, (int)written, back);
    free(back);
    mica__tokens_free(&got);
}

/* name is used in messages only. in and out, whole files, are freed. */
static inline void check_vectors(const mica_tokenizer *t, const char *name, char *in, size_t n_in, char *out,
                                 size_t n_out, int at_least)
{
    CHECK(in && out);
    in = realloc(in, n_in + 1), out = realloc(out, n_out + 1);
    in[n_in] = out[n_out] = '\0';
    int count = 0;
    const char *line = out;
    for (char *p = in; p && *line; count++) {
        char *end = strstr(p, between);
        test_case("%s, text %d", name, count);
        one_vector(t, p, end ? (size_t)(end - p) : strlen(p), line);
        p = end ? end + strlen(between) : NULL;
        if (p && !*p) p = NULL;
        line = strchr(line, '\n');
        line = line ? line + 1 : "";
    }
    EXPECT_MSG(count >= at_least, "%d texts", count);
    free(in);
    free(out);
}

static inline void all_vectors(const mica_tokenizer *t, const char *name, int at_least)
{
    char path[128];
    size_t n_in, n_out;
    snprintf(path, sizeof path, "tokenizers/ggml-vocab-%s.gguf.inp", name);
    CHECK(io_data(path) != NULL);
    char *in = (char *)io_read(io_data(path), &n_in);
    snprintf(path, sizeof path, "tokenizers/ggml-vocab-%s.gguf.out", name);
    CHECK(io_data(path) != NULL);
    char *out = (char *)io_read(io_data(path), &n_out);
    check_vectors(t, name, in, n_in, out, n_out, at_least);
}

/* The same for a vocabulary of tests/fixtures; name selects the expected ids: "gpt-2" for gpt-2.out. */
static inline void fixture_vectors(const mica_tokenizer *t, const char *name)
{
    char path[128];
    size_t n_in, n_out;
    CHECK(io_fixture("tokenizers/texts.inp") != NULL);
    char *in = (char *)io_read(io_fixture("tokenizers/texts.inp"), &n_in);
    snprintf(path, sizeof path, "tokenizers/%s.out", name);
    CHECK(io_fixture(path) != NULL);
    char *out = (char *)io_read(io_fixture(path), &n_out);
    check_vectors(t, name, in, n_in, out, n_out, 30);
}

/* For files that tests write. */
static inline void put_json_string(FILE *f, const char *text, size_t n)
{
    fputc('"', f);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20) fprintf(f, "\\u%04x", c);
        else if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

#endif
