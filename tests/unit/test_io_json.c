/* The JSON reader: what it accepts, what it decodes to, and everything that it must refuse, with
 * the offset of the byte at fault.
 *
 * runs: check */
#include "io/json.h"

#include "comma_locale.h"
#include "io_files.h"

/* All tokens of a text as letters: { } [ ] k s n t f 0, then . or ! */
static const char *tokens_of(const char *text, size_t size)
{
    static char out[256];
    size_t n = 0;
    mica__json j;
    char *copy = malloc(size ? size : 1); /* exactly its size, for ASan */
    if (!copy) abort();
    memcpy(copy, text, size);
    mica__json_begin(&j, "test", copy, size, 0, 8, 100);
    for (mica__json_token t; n + 2 < sizeof out;) {
        t = mica__json_next(&j);
        out[n++] = "!.{}[]ksntf0"[t];
        if (t == MICA__JSON_END || t == MICA__JSON_ERROR) break;
    }
    out[n] = '\0';
    if (out[n - 1] == '!') {
        EXPECT(mica__json_status(&j) == MICA_ERR_FORMAT);
        EXPECT(mica__json_next(&j) == MICA__JSON_ERROR);
    }
    mica__json_end(&j);
    free(copy);
    return out;
}

TEST(tokens)
{
    static const char *const rows[][2] = {
        {"{}", "{}."},
        {"[]", "[]."},
        {" \t\r\n[ ] \n", "[]."},
        {"0", "n."},
        {"-0", "n."},
        {"-12.5e+10", "n."},
        {"1E-2", "n."},
        {"\"a\"", "s."},
        {"true", "t."},
        {"false", "f."},
        {"null", "0."},
        {"[1,[2,{\"a\":3}],null]", "[n[n{kn}]0]."},
        {"{\"a\":{\"a\":{}},\"b\":[]}", "{k{k{}}k[]}."},
        {"[[[[[[[[]]]]]]]]", "[[[[[[[[]]]]]]]]."},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i][0]);
        EXPECT_STR(tokens_of(rows[i][0], strlen(rows[i][0])), rows[i][1]);
    }
}

TEST(refused_texts)
{
    static const char *const rows[][2] = {
        {"", "a value is missing"},
        {"   ", "a value is missing"},
        {"{", "a key is missing"},
        {"[", "a value is missing"},
        {"[1", "the text ends too early"},
        {"[1,", "a value is missing"},
        {"[1,]", "not a value"},
        {"{\"a\":1,}", "a key is missing"},
        {"[,1]", "not a value"},
        {"[1 2]", "a comma is missing"},
        {"{\"a\"}", "a colon is missing"},
        {"{\"a\" 1}", "a colon is missing"},
        {"{a:1}", "a key is missing"},
        {"{1:1}", "a key is missing"},
        {"{\"a\":}", "not a value"},
        {"[}", "not a value"},
        {"{]", "a key is missing"},
        {"[1}", "a comma is missing"},
        {"]", "not a value"},
        {"1 2", "something follows the end"},
        {"{}{}", "something follows the end"},
        {"01", "not a number"},
        {"-", "not a number"},
        {"+1", "not a value"},
        {".5", "not a value"},
        {"1.", "not a number"},
        {"1e", "not a number"},
        {"1e+", "not a number"},
        {"0x10", "something follows the end"},
        {"NaN", "not a value"},
        {"Infinity", "not a value"},
        {"-Infinity", "not a number"},
        {"tru", "not a value"},
        {"nulll", "something follows the end"},
        {"truefalse", "something follows the end"},
        {"[falsenull]", "a comma is missing"},
        {"[truefalsenull]", "a comma is missing"},
        {"\"a", "a string has no end"},
        {"\"a\\", "a string has no end"},
        {"\"a\\\"", "a string has no end"},
        {"\"\\x41\"", "wrong escape"},
        {"\"\\u12\"", "wrong escape"},
        {"\"\\u12g4\"", "wrong escape"},
        {"\"\\ud800\"", "wrong escape"},
        {"\"\\ud800x\"", "wrong escape"},
        {"\"\\ud800\\u0041\"", "wrong escape"},
        {"\"\\udc00\"", "wrong escape"},
        {"\"\t\"", "control character"},
        {"\"\n\"", "control character"},
        {"\"\\\n\"", "wrong escape"},
        {"'a'", "not a value"},
        {"// c\n1", "not a value"},
        {"\xef\xbb\xbf{}", "not a value"},
        {"\"\xff\"", "not UTF-8"},
        {"\"\xc0\xaf\"", "not UTF-8"},
        {"\"\xe0\x80\xaf\"", "not UTF-8"},
        {"\"\xed\xa0\x80\"", "not UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "not UTF-8"},
        {"\"\xf0\x80\x80\x80\"", "not UTF-8"},
        {"\"\xe2\x82\"", "not UTF-8"},
        {"\"\x80\"", "not UTF-8"},
        {"\"\xf8\x88\x80\x80\x80\"", "not UTF-8"},
        {"{\"a\":1,\"a\":2}", "a key twice"},
        {"{\"a\":1,\"\\u0061\":2}", "a key twice"},
        {"{\"b\":{\"a\":1,\"a\":2}}", "a key twice"},
        {"{\"\":1,\"\":2}", "a key twice"},
        {"[[[[[[[[[]]]]]]]]]", "nested too deeply"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i][0]);
        const char *tokens = tokens_of(rows[i][0], strlen(rows[i][0]));
        EXPECT_MSG(tokens[strlen(tokens) - 1] == '!', "read as %s", tokens);
        EXPECT_MSG(strstr(mica_last_error(), rows[i][1]), "\"%s\"", mica_last_error());
    }
    test_case("a zero byte");
    EXPECT_STR(tokens_of("[\0]", 3), "[!");
    EXPECT_STR(tokens_of("[1\0]", 4), "[n!");
    EXPECT_STR(tokens_of("\"\0\"", 3), "!");
}

static void decoded(const char *text, const char *want, size_t n)
{
    mica__json j;
    mica__json_begin(&j, "test", text, strlen(text), 0, 2, 10);
    EXPECT(mica__json_next(&j) == MICA__JSON_STRING);
    EXPECT_MSG(j.length == n && memcmp(j.string, want, n) == 0, "%s: %.*s", text, (int)j.length, j.string);
    mica__json_end(&j);
}

TEST(strings)
{
    decoded("\"\"", "", 0);
    decoded("\"abc\"", "abc", 3);
    decoded("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    decoded("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10);
    decoded("\"\\u0000\"", "\0", 1);
    decoded("\"\xc3\xa9\xf4\x8f\xbf\xbf\\uffff\"", "\xc3\xa9\xf4\x8f\xbf\xbf\xef\xbf\xbf", 9);
}

TEST(integers)
{
    static const struct {
        const char *text;
        int64_t value; /* -1: refused */
    } rows[] = {{"0", 0},
                {"17", 17},
                {"9223372036854775807", INT64_MAX},
                {"9223372036854775808", -1},
                {"-1", -1},
                {"-0", -1},
                {"1.0", -1},
                {"1e3", -1},
                {"1E3", -1},
                {"99999999999999999999999999", -1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i].text);
        mica__json j;
        int64_t v = -1;
        mica__json_begin(&j, "test", rows[i].text, strlen(rows[i].text), 0, 2, 10);
        CHECK(mica__json_next(&j) == MICA__JSON_NUMBER);
        EXPECT_INT(mica__json_i64(&j, &v), rows[i].value >= 0 ? MICA_OK : MICA_ERR_FORMAT);
        if (rows[i].value >= 0) EXPECT_INT(v, rows[i].value);
        mica__json_end(&j);
    }
}

TEST(floats)
{
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0", 0}, {"-2.5", -2.5}, {"1e-05", 1e-5}, {"500000.0", 5e5}, {"1e300", 1e300}, {"0.1", 0.1}};
    mica__json j;
    double v;
    /* A program with another decimal point must read the same numbers. */
    const bool other = comma_locale();
    for (size_t i = 0; i < COUNT(rows); i++) {
        mica__json_begin(&j, "test", rows[i].text, strlen(rows[i].text), 0, 2, 10);
        CHECK(mica__json_next(&j) == MICA__JSON_NUMBER);
        EXPECT_INT(mica__json_f64(&j, &v), MICA_OK);
        EXPECT_CLOSE(v, rows[i].value, 0, 0);
        mica__json_end(&j);
    }
    mica__json_begin(&j, "test", "1e999", 5, 0, 2, 10);
    CHECK(mica__json_next(&j) == MICA__JSON_NUMBER);
    EXPECT_INT(mica__json_f64(&j, &v), MICA_ERR_FORMAT);
    mica__json_end(&j);
    if (!other) SKIP("there is no locale with a decimal comma");
    setlocale(LC_NUMERIC, "C");
}

TEST(long_numbers)
{
    char text[300];
    memset(text, '1', sizeof text);
    EXPECT_STR(tokens_of(text, 256), "n.");
    EXPECT_STR(tokens_of(text, 257), "!");
}

TEST(skipping_and_expecting)
{
    static const char text[] = "{\"a\":[1,{\"b\":[[]]},2],\"c\":\"d\"}";
    mica__json j;
    mica__json_begin(&j, "test", text, strlen(text), 100, 8, 10);
    EXPECT_INT(mica__json_expect(&j, MICA__JSON_OBJECT, "an object is wanted"), MICA_OK);
    EXPECT(mica__json_next(&j) == MICA__JSON_KEY && mica__json_is(&j, "a") && !mica__json_is(&j, "ab"));
    EXPECT_INT(mica__json_skip(&j), MICA_OK);
    EXPECT(mica__json_next(&j) == MICA__JSON_KEY && mica__json_is(&j, "c"));
    EXPECT_INT(mica__json_expect(&j, MICA__JSON_NUMBER, "c must be a number"), MICA_ERR_FORMAT);
    EXPECT_STR(mica_last_error(), "test: JSON at byte 129: c must be a number");
    mica__json_end(&j);
}

/* Many keys: the table of hashes. */
TEST(many_keys)
{
    static char text[100000];
    for (int twice = 0; twice < 2; twice++) {
        size_t n = 0;
        text[n++] = '{';
        for (int i = 0; i < 5000; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\"k%d\":%d", i ? "," : "", twice && i == 4999 ? 17 : i,
                                  i);
        text[n++] = '}';
        mica__json j;
        mica__json_begin(&j, "test", text, n, 0, 2, 5000);
        mica__json_token t;
        do t = mica__json_next(&j);
        while (t != MICA__JSON_END && t != MICA__JSON_ERROR);
        EXPECT(t == (twice ? MICA__JSON_ERROR : MICA__JSON_END));
        mica__json_end(&j);
        mica__json_begin(&j, "test", text, n, 0, 2, 4999);
        EXPECT_INT(mica__json_skip(&j), MICA_ERR_FORMAT);
        EXPECT(strstr(mica_last_error(), "too many keys"));
        mica__json_end(&j);
    }
}

TEST(no_memory)
{
    static const char text[] =
        "{\"a\\n\":1,\"b\":{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1}}";
    for (int n = 1;; n++) {
        const int64_t live = mica__alloc_live();
        mica__json j;
        mica__json_begin(&j, "test", text, strlen(text), 0, 4, 100);
        mica__alloc_fail_at((uint64_t)n);
        const mica_status status = mica__json_skip(&j);
        mica__alloc_fail_at(0);
        mica__json_end(&j);
        EXPECT_INT(mica__alloc_live(), live);
        if (status == MICA_OK) {
            EXPECT(n >= 4); /* string, keys, table */
            break;
        }
        EXPECT_INT(status, MICA_ERR_MEMORY);
        CHECK(n < 100);
    }
}
