/* Character classes, and regular expressions as tokenizers use them. */
#include "text/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "test.h"
#include "text/unicode.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

TEST(categories)
{
    static const struct {
        uint32_t c;
        mica__category category;
    } rows[] = {{'a', MICA__LL},    {'Z', MICA__LU},    {'5', MICA__ND},   {' ', MICA__ZS},      {'\n', MICA__CC},
                {'$', MICA__SC},    {'_', MICA__PC},    {0xe9, MICA__LL},  {0x4e00, MICA__LO},   {0x9fa5, MICA__LO},
                {0x661, MICA__ND},  {0x2160, MICA__NL}, {0xbd, MICA__NO},  {0x301, MICA__MN},    {0x1f600, MICA__SO},
                {0xd800, MICA__CS}, {0xe000, MICA__CO}, {0x378, MICA__CN}, {0x10ffff, MICA__CN}, {0x110000, MICA__CN},
                {0x2028, MICA__ZL}, {0x200b, MICA__CF}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("U+%04X", (unsigned)rows[i].c);
        EXPECT_INT(mica__unicode_category(rows[i].c), rows[i].category);
    }
    test_case("spaces");
    int spaces = 0;
    for (uint32_t c = 0; c < 0x110000; c++) spaces += mica__unicode_space(c);
    EXPECT_INT(spaces, 25);
}

TEST(utf8)
{
    /* every character there and back */
    for (uint32_t c = 0; c < 0x110000; c += c < 0x1000 ? 1 : 37) {
        if (c >= 0xd800 && c < 0xe000) continue;
        char text[4];
        uint32_t back;
        const size_t n = mica__utf8_set(c, text);
        CHECK(mica__utf8_get(text, n, &back) == n && back == c && mica__utf8_expected((unsigned char)text[0]) == n);
        for (size_t cut = 1; cut < n; cut++) CHECK(mica__utf8_get(text, cut, &back) == 1 && back == 0xfffd);
    }
    static const char *const wrong[] = {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        uint32_t c;
        EXPECT(mica__utf8_get(wrong[i], strlen(wrong[i]), &c) == 1 && c == 0xfffd);
    }
}

/* The length of the match at the beginning, -1 for none, -2 for a failure. */
static int match(const char *pattern, const char *text)
{
    mica__arena arena;
    mica__regex *re;
    mica__regex_stack stack = {0};
    size_t end;
    int result = -2;
    mica__arena_init(&arena);
    if (mica__regex_new(&arena, pattern, strlen(pattern), &re) == MICA_OK &&
        mica__regex_match(re, text, strlen(text), 0, &stack, &end) == MICA_OK)
        result = end == SIZE_MAX ? -1 : (int)end;
    mica__regex_stack_free(&stack);
    mica__arena_free(&arena);
    return result;
}

TEST(matches)
{
    static const struct {
        const char *pattern, *text;
        int end;
    } rows[] = {
        {"", "abc", 0},
        {"abc", "abcd", 3},
        {"abc", "abd", -1},
        {"a|b|c", "c", 1},
        {"a|ab", "ab", 1},
        {"(?:a|ab)c", "abc", 3},
        {"(a|ab)(c|bcd)", "abcd", 4},
        {"a*", "aaab", 3},
        {"a*", "b", 0},
        {"a+", "b", -1},
        {"a+b", "aaab", 4},
        {"a?a?aa", "aa", 2},
        {"a{2}", "aaa", 2},
        {"a{2,}", "aaaa", 4},
        {"a{1,3}", "aaaa", 3},
        {"a{0,2}b", "aab", 3},
        {"(?:ab){2,3}", "ababababab", 6},
        {"(?:ab){2,3}", "ab", -1},
        {"x{0}y", "y", 1},
        {"[abc]+", "cabd", 3},
        {"[^abc]+", "xyza", 3},
        {"[a-c1-3]+", "a2c4", 3},
        {"[]a]+", "]a]b", 3},
        {"[a-]+", "a-b", 2},
        {"[\\]\\-]+", "]-x", 2},
        {".+", "ab\nc", 2},
        {"\\s+", " \t\n\xc2\xa0x", 5},
        {"\\S+", "ab c", 2},
        {"\\d+", "12a", 2},
        {"\\D+", "ab1", 2},
        {"\\w+", "a_1-", 3},
        {"\\p{L}+",
         "a\xc3\xa9"
         "1",
         3},
        {"\\p{Lu}+", "ABc", 2},
        {"\\P{L}+", "12a", 2},
        {"\\p{^L}+", "12a", 2},
        {"\\pN+", "12a", 2},
        {"[^\\s\\p{L}\\p{N}]+", "!?a", 2},
        {"[\\S]+", "ab c", 2},
        {"(?i:'s|'ll)", "'S", 2},
        {"(?i:'s|'ll)", "'Ll", 3},
        {"(?i:a)b", "AB", -1},
        {"(?i:[a-c])+", "AbC", 3},
        {"(?i:[A-z])+", "a_B^", 4},
        {"(?i:[Z-a])+", "zA[Z_b", 5},
        {"(?i:'s)", "'\xc5\xbf", 3},
        {"(?i:k)", "\xe2\x84\xaa", 3},
        {"(?i:\xc5\xbf)", "S", 1},
        {"\\s+(?!\\S)", "  a", 1},
        {"\\s+(?!\\S)", " a", -1},
        {"\\s+(?!\\S)", "   ", 3},
        {"a(?=b)", "ab", 1},
        {"a(?=b)", "ac", -1},
        {"^a", "a", 1},
        {"a$", "a", 1},
        {"a$", "ab", -1},
        {"\\x41\\x{1F600}\\u0042",
         "A\xf0\x9f\x98\x80"
         "B",
         6},
        {"\\r\\n\\t", "\r\n\t", 3},
        {"\\.\\*\\/", ".*/", 3},
        {"[\\x{4e00}-\\x{9fa5}]+", "\xe4\xb8\x80\xe9\xbe\xa5x", 6},
        {"a++b", "aab", 3},
        {"a++a", "aaa", -1},
        {"a?+a", "a", -1},
        {"a{1,2}+a", "aaa", 3},
        {"(?:a|ab){2}+c", "aabc", -1},
        {"(?:x*+y|a++b)+c", "xxyaabyc", 8},
        {"(?:a*+b){2}c|a", "aabbc", 5},
        {"[^\\r\\n\\p{L}]?+\\p{L}+", " ab", 3},
        {"(?:)*a", "a", -2},
        {"(?:a*)*b", "aaac", -2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s on %s", rows[i].pattern, rows[i].text);
        EXPECT_INT(match(rows[i].pattern, rows[i].text), rows[i].end);
    }
}

TEST(patterns_that_are_refused)
{
    static const char *const rows[] = {
        "(",           ")",      "a)",        "(a",      "[a",          "[",    "[^",     "a{",  "a{,2}",    "a{3,2}",
        "a{1000}",     "*a",     "+",         "?",       "{2}",         "\\",   "\\q",    "\\1", "\\p{Foo}", "\\p{L",
        "\\x4",        "\\x{",   "\\u12",     "(?<a>b)", "(?<=a)b",     "a*?",  "a+?",    "a??", "[b-a]",    "[a-\\s]",
        "[[:alpha:]]", "[a&&b]", "\\x{d800}", "\\udfff", "\\x{110000}", "\\01", "[\\00]", "[a-", "[^'-"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s", rows[i]);
        EXPECT_INT(match(rows[i], "aaa"), -2);
        EXPECT(strstr(mica_last_error(), "regular expression"));
    }
    test_case("too deep, too long");
    char deep[1000];
    memset(deep, '(', 200), memset(deep + 200, ')', 200), deep[400] = '\0';
    EXPECT_INT(match(deep, ""), -2);
    memset(deep, 'a', 999), deep[999] = '\0';
    EXPECT_INT(match(deep, deep), 999);
    EXPECT_INT(match("(?:(?:(?:a{60}){60}){60})", "a"), -2);
}

/* Patterns that take exponential time with backtracking: matching stops with an error. */
TEST(patterns_that_take_for_ever)
{
    EXPECT_INT(
        match("(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)"
              "(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)b",
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        -2);
    EXPECT(strstr(mica_last_error(), "too many steps"));
}

TEST(long_texts)
{
    const size_t n = 1000000;
    char *text = malloc(n + 1);
    if (!text) abort();
    memset(text, ' ', n);
    text[n] = '\0';
    EXPECT_INT(match("\\s+(?!\\S)|\\s+", text), (int)n);
    text[n - 1] = 'x';
    EXPECT_INT(match("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", text), (int)n - 2);
    free(text);
}

TEST(no_memory)
{
    mica__arena arena;
    mica__regex *re;
    mica__regex_stack stack = {0};
    size_t end;
    const int64_t live = mica__alloc_live();
    mica__arena_init(&arena);
    mica__alloc_fail_at(1);
    EXPECT_INT(mica__regex_new(&arena, "a*b", 3, &re), MICA_ERR_MEMORY);
    mica__alloc_fail_at(0);
    mica__arena_free(&arena);
    CHECK_INT(mica__regex_new(&arena, "a*b", 3, &re), MICA_OK);
    mica__alloc_fail_at(1);
    EXPECT_INT(mica__regex_match(re, "aab", 3, 0, &stack, &end), MICA_ERR_MEMORY);
    mica__alloc_fail_at(0);
    EXPECT_INT(mica__regex_match(re, "aab", 3, 0, &stack, &end), MICA_OK);
    EXPECT_INT(end, 3);
    mica__regex_stack_free(&stack);
    mica__arena_free(&arena);
    EXPECT_INT(mica__alloc_live(), live);
}
