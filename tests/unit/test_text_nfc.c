/* Normal form C against Python's (tests/golden/nfc.txt): every character, and texts with many
 * combining marks. */
#include "text/nfc.h"

#include "io_files.h"
#include "text/unicode.h"

/* Writes the normal form to out. Returns its length. */
static size_t form(const char *text, size_t length, char *out, size_t cap)
{
    char *made;
    size_t n;
    if (mica__nfc(text, length, &made, &n) != MICA_OK) abort();
    if (!made) n = length;
    if (n > cap) abort();
    memcpy(out, made ? made : text, n);
    mica__free(made);
    return n;
}

static size_t from_hex(const char *hex, size_t n, char *out)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        const char pair[3] = {hex[i], hex[i + 1], 0};
        out[i / 2] = (char)strtol(pair, NULL, 16);
    }
    return n / 2;
}

TEST(equals_python)
{
    size_t size;
    char *golden = (char *)io_read("tests/golden/nfc.txt", &size);
    CHECK(golden != NULL);
    golden = realloc(golden, size + 1);
    golden[size] = '\0';
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char texts[3][32], out[64];
        size_t n[3];
        if (c >= 0xd800 && c < 0xe000) continue;
        n[0] = n[2] = mica__utf8_set(c, texts[0]);
        memcpy(texts[2], texts[0], n[0]); /* the form of its decomposition is the same */
        texts[1][0] = 'a';
        memcpy(texts[1] + 1, texts[0], n[0]);
        memcpy(texts[1] + 1 + n[0], "\xcc\x81", 2);
        n[1] = n[0] + 3;
        for (int k = 0; k < 3; k++) {
            const size_t length = form(texts[k], n[k], out, sizeof out);
            for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)out[i]) * 0x100000001b3u;
        }
    }
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    test_case("every character");
    EXPECT_MSG(strncmp(text, golden, 16) == 0, "%s is not %.16s", text, golden);
    int count = 0;
    for (char *line = strchr(golden, '\n') + 1; *line; line = strchr(line, '\n') + 1, count++) {
        char in[200], want[200], got[200];
        const size_t n = strcspn(line, " "), m = strcspn(line + n + 1, "\n");
        test_case("line %d", count + 2);
        const size_t length = from_hex(line, n, in), want_length = from_hex(line + n + 1, m, want);
        const size_t got_length = form(in, length, got, sizeof got);
        EXPECT(got_length == want_length && memcmp(got, want, got_length) == 0);
        EXPECT_INT(form(want, want_length, got, sizeof got), want_length); /* the form does not change again */
    }
    EXPECT_INT(count, 300);
    free(golden);
}

TEST(bytes_stay)
{
    char out[64];
    static const char bad[] = "e\xff\xcc\x81\xe2\x96 e\xcc\x81\xed\xa0\x80";
    const size_t n = form(bad, sizeof bad - 1, out, sizeof out);
    EXPECT(n == 12 && memcmp(out, "e\xff\xcc\x81\xe2\x96 \xc3\xa9\xed\xa0\x80", 12) == 0);
    EXPECT_INT(form("", 0, out, 64), 0);
}

/* U+11A7 is one before the first trailing consonant; utf8proc 2.8 drops it after a syllable. */
TEST(hangul_composes_with_consonants_only)
{
    char out[64];
    EXPECT(form("\xea\xb0\x80\xe1\x86\xa7", 6, out, sizeof out) == 6 &&
           memcmp(out, "\xea\xb0\x80\xe1\x86\xa7", 6) == 0);
    EXPECT(form("\xea\xb0\x80\xe1\x86\xa8", 6, out, sizeof out) == 3 && memcmp(out, "\xea\xb0\x81", 3) == 0);
}

/* A long sequence of marks is sorted in n log n. */
TEST(many_marks)
{
    enum { N = 200000 };
    char *text = malloc(2 * N + 1), *made;
    size_t n;
    if (!text) abort();
    text[0] = 'a';
    for (int i = 0; i < N; i++) memcpy(text + 1 + 2 * i, i % 2 ? "\xcc\x81" : "\xcc\xa7", 2);
    CHECK_INT(mica__nfc(text, 2 * N + 1, &made, &n), MICA_OK);
    EXPECT_INT(n, 2 * N); /* a and the first acute are one character */
    for (uint64_t k = 1; k < 12; k++) {
        char *none;
        mica__alloc_fail_at(k);
        const mica_status status = mica__nfc(text, 2 * N + 1, &none, &n);
        mica__alloc_fail_at(0);
        EXPECT_INT(status, MICA_ERR_MEMORY);
        EXPECT(none == NULL);
    }
    mica__free(made);
    free(text);
}
