/* Regular expressions (text/regex.c) against PCRE2: the end of the match at each position of a text, as a tokenizer
 * asks for it. An input is a pattern, a zero byte, and texts with a zero byte between them.
 *
 * The pattern for PCRE2 is translated where the two syntaxes name one thing differently (translate). What mica refuses
 * must be on the list below; a pattern that was generated from mica's own syntax must not be refused at all. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#include "differential.h"
#include "regex_patterns.h"
#include "text/regex.h"
#include "text/unicode.h"

/* Refusals and limits of mica: X(NAME, text in mica's error message, name, why) */
#define REFUSALS(X)                                                                                                   \
    X(LAZY, "a lazy repetition", "lazy repetition", "not in the subset")                                              \
    X(ESCAPE, "an unknown escape", "escape", "\\b, \\h, \\Q and others are not in the subset")                        \
    X(GROUP, "an unknown group", "group", "lookbehind, names and flags are not in the subset")                        \
    X(NESTED, "a class in a class", "class in a class", "[[:alpha:]] and && are not in the subset")                   \
    X(PROPERTY, "an unknown property", "property", "scripts and named properties are not in the subset")              \
    X(NUMBER, "a wrong number", "\\x", "mica needs two digits or braces; PCRE2 takes none or one")                    \
    X(REPEAT, "a wrong repetition", "{..}", "more than 64 repetitions, or braces that PCRE2 takes literally")         \
    X(NOTHING, "nothing to repeat", "{ alone", "a { that begins no repetition must be escaped")                       \
    X(NUL, "\\0 before a digit", "octal", "mica has no octal numbers: \\0 is NUL, and no digit may follow")           \
    X(LONG, "too long", "long pattern", "more than 2000 instructions, or 256 that are repeated: bounded memory")      \
    X(DEEP, "nested too deeply", "depth", "more than 50 groups in each other: bounded stack")                         \
    X(CLASSES, "too many characters in classes", "large classes", "more than 1000 items: bounded memory")             \
    X(STEPS, "takes too many steps", "steps", "a loop over nothing, or exponential time: an error instead of a hang") \
    X(LOOKS, "in each other", "lookahead depth", "more than 8 lookaheads or possessives in each other: bounded stack")

#define AS_ENUM(NAME, text, name, why) NAME,
#define AS_REASON(NAME, text, name, why) {name, why},
#define AS_TEXT(NAME, text, name, why) text,
enum { REFUSALS(AS_ENUM) N_REFUSALS, HYPHEN = N_REFUSALS, POSIX, ANCHOR, FOLD, MONGOLIAN, PEER_LIMIT, N_REASONS };
static const char *const refusals[] = {REFUSALS(AS_TEXT)};
static const differ_reason reasons[] = {
    REFUSALS(AS_REASON){"[\\d-z]", "mica takes the hyphen after a class literally, as Oniguruma; PCRE2 refuses it"},
    {"[:name:]", "outside of a class these are characters in mica; PCRE2 refuses them"},
    {"$+", "mica repeats ^ and $; PCRE2 refuses it"},
    {"case", "(?i:..) ignores the case of ASCII letters only; the pattern has others"},
    {"U+180E", "it is not White_Space since Unicode 6.3; PCRE2 counts it in \\s"},
    {"limit of PCRE2", "PCRE2 gave up"},
};

static pcre2_compile_context *compile_context;
static pcre2_match_data *match_data;

static void begin(void)
{
    compile_context = pcre2_compile_context_create(NULL);
    match_data = pcre2_match_data_create(1, NULL);
    if (!compile_context || !match_data) abort();
    pcre2_set_newline(compile_context, PCRE2_NEWLINE_LF);
}

/* ------------------------------------------------------------ translating -- */

/* Copies valid UTF-8; another byte becomes U+FFFD, as mica reads it. at[i] is where the byte i of `text` went. */
static void make_valid(differ_bytes *out, const uint8_t *text, size_t n, size_t *at)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        const size_t size = mica__utf8_get((const char *)text + i, n - i, &c);
        for (size_t k = 0; at && k < size; k++) at[i + k] = out->n;
        if (size == 1 && text[i] >= 0x80) differ_utf8(out, 0xfffd);
        else differ_put(out, text + i, size);
        i += size;
    }
    if (at) at[n] = out->n;
}

static bool is_hex(uint8_t c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f'); }

/* What the escape that ends before text[i] is in PCRE2; the number of bytes used. */
static size_t translate_escape(differ_bytes *out, const uint8_t *text, size_t n, size_t i, bool in_class)
{
    static const char word[] = "\\p{L}\\p{M}\\p{N}_";
    switch (text[i]) {
    case 'w': differ_format(out, in_class ? "%s" : "[%s]", word); return 1;
    case 'v': differ_text(out, "\\x{b}"); return 1;
    case '0': differ_text(out, "\\x{0}"); return 1;
    case 'u':
        for (size_t k = 1; k <= 4; k++)
            if (i + k >= n || !is_hex(text[i + k])) break;
            else if (k == 4) {
                differ_format(out, "\\x{%.4s}", (const char *)text + i + 1);
                return 5;
            }
        break;
    default: break;
    }
    differ_text(out, "\\");
    if (text[i] >= 0x80) return 0;
    differ_byte(out, text[i]);
    return 1;
}

static void translate(differ_bytes *out, const uint8_t *text, size_t n)
{
    bool in_class = false;
    for (size_t i = 0; i < n;) {
        if (text[i] == '\\' && i + 1 < n) {
            i += 1 + translate_escape(out, text, n, i + 1, in_class);
            continue;
        }
        if (in_class && text[i] == ']') in_class = false;
        else if (!in_class && text[i] == '[') {
            in_class = true;
            differ_byte(out, text[i++]);
            if (i < n && text[i] == '^') differ_byte(out, text[i++]);
            if (i < n && text[i] == ']') differ_byte(out, text[i++]);
            continue;
        }
        differ_byte(out, text[i++]);
    }
}

/* ------------------------------------------------------------- comparing --- */

static int refusal_of(const char *message)
{
    for (int i = 0; i < N_REFUSALS; i++)
        if (strstr(message, refusals[i])) return i;
    return -1;
}

static bool contains(const uint8_t *text, size_t n, const char *part)
{
    return n > 0 && memmem(text, n, part, strlen(part)) != NULL;
}

/* Does a pattern with (?i:..) name a character above ASCII? */
static bool folds_others(const uint8_t *pattern, size_t n)
{
    if (!contains(pattern, n, "(?i:")) return false;
    if (contains(pattern, n, "\\x") || contains(pattern, n, "\\u")) return true;
    for (size_t i = 0; i < n; i++)
        if (pattern[i] >= 0x80) return true;
    return false;
}

typedef struct both {
    mica__regex *ours;
    pcre2_code *theirs;
    mica__regex_stack stack;
    const uint8_t *pattern;
    size_t n_pattern;
} both;

/* Why two ends may differ; -1: they may not. */
static int excuse(const both *b, const uint8_t *text, size_t n)
{
    if (folds_others(b->pattern, b->n_pattern)) return FOLD;
    if (contains(text, n, "\xe1\xa0\x8e")) return MONGOLIAN;
    return -1;
}

/* Cuts the text as a tokenizer does: the match at a position, or the next character. */
static void compare_text(differ *d, both *b, const uint8_t *text, size_t n)
{
    static differ_bytes valid;
    static size_t at[4097];
    if (n > 4096) n = 4096;
    valid.n = 0;
    make_valid(&valid, text, n, at);
    for (size_t from = 0;;) {
        size_t end;
        if (mica__regex_match(b->ours, (const char *)text, n, from, &b->stack, &end) != MICA_OK) {
            const int why = refusal_of(mica_last_error());
            if (why >= 0) differ_listed(d, why);
            else differ_fail(d, "mica: %s", mica_last_error());
            return;
        }
        const int code = pcre2_match(b->theirs, valid.data ? valid.data : (PCRE2_SPTR) "", valid.n, at[from],
                                     PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, match_data, NULL);
        if (code < 0 && code != PCRE2_ERROR_NOMATCH) {
            differ_listed(d, PEER_LIMIT);
            return;
        }
        const size_t theirs = code < 0 ? SIZE_MAX : pcre2_get_ovector_pointer(match_data)[1];
        if ((end == SIZE_MAX ? SIZE_MAX : at[end]) != theirs) {
            const int why = excuse(b, text, n);
            if (why >= 0) differ_listed(d, why);
            else
                differ_fail(d, "/%.*s/ at byte %zu of '%.*s': mica ends at %zd, PCRE2 at %zd", (int)b->n_pattern,
                            (const char *)b->pattern, from, (int)n, (const char *)text,
                            end == SIZE_MAX ? -1 : (ssize_t)at[end], (ssize_t)theirs);
            return;
        }
        if (from >= n) break;
        uint32_t c;
        from = end != SIZE_MAX && end > from ? end : from + mica__utf8_get((const char *)text + from, n - from, &c);
    }
    differ_agree(d, true);
}

/* One of them refused the pattern. */
static void judge_pattern(differ *d, const both *b, int error)
{
    if (!b->ours && !b->theirs) {
        differ_agree(d, false);
        return;
    }
    if (!b->ours) {
        const int why = refusal_of(mica_last_error());
        const bool limit = why >= LONG;
        const bool promised = regex_is_promised(b->pattern, b->n_pattern);
        if (why >= 0 && (limit || !promised)) differ_listed(d, why);
        else differ_fail(d, "PCRE2 accepts the pattern, mica does not: %s", mica_last_error());
        return;
    }
    PCRE2_UCHAR text[200];
    pcre2_get_error_message(error, text, sizeof text);
    if (error == PCRE2_ERROR_CLASS_INVALID_RANGE) differ_listed(d, HYPHEN);
    else if (error == PCRE2_ERROR_POSIX_CLASS_NOT_IN_CLASS || error == PCRE2_ERROR_POSIX_NO_SUPPORT_COLLATING)
        differ_listed(d, POSIX);
    else if (error == PCRE2_ERROR_QUANTIFIER_INVALID) differ_listed(d, ANCHOR);
    else differ_fail(d, "mica accepts /%.*s/, PCRE2 does not: %s", (int)b->n_pattern, (const char *)b->pattern, text);
}

static void compare(differ *d, const uint8_t *data, size_t size)
{
    static differ_bytes valid, translated;
    static mica__arena arena;
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    both b = {.pattern = data, .n_pattern = zero ? (size_t)(zero - data) : size};
    int error;
    PCRE2_SIZE place;
    valid.n = translated.n = 0;
    make_valid(&valid, data, b.n_pattern, NULL);
    translate(&translated, valid.data, valid.n);
    mica__arena_reset(&arena);
    if (mica__regex_new(&arena, (const char *)data, b.n_pattern, &b.ours) != MICA_OK) b.ours = NULL;
    /* Two optimisations of PCRE2 10.42 are wrong and are switched off: with auto-possessification /\PN?\P{L}/ does not
     * match a space, and with the start optimisation /(?:a|(?=b)\p{^L}c){0}/ does not match nothing. */
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_POSSESS |
                             PCRE2_NO_START_OPTIMIZE | PCRE2_NO_UTF_CHECK;
    b.theirs = pcre2_compile(translated.data ? translated.data : (PCRE2_SPTR) "", translated.n, options, &error, &place,
                             compile_context);
    if (!b.ours || !b.theirs) judge_pattern(d, &b, error);
    else {
        const uint8_t *from = zero ? zero + 1 : data + size;
        for (const uint8_t *end = data + size; from <= end;) {
            const uint8_t *next = from < end ? memchr(from, 0, (size_t)(end - from)) : NULL;
            const size_t n = (size_t)((next ? next : end) - from);
            uint8_t *exact = malloc(n ? n : 1); /* of exactly this size, for ASan */
            if (!exact) abort();
            if (n) memcpy(exact, from, n);
            compare_text(d, &b, exact, n);
            free(exact);
            from += n + 1;
        }
    }
    pcre2_code_free(b.theirs);
    mica__regex_stack_free(&b.stack);
}

int main(int argc, char **argv)
{
    char peer[64], version[32] = "";
    if (pcre2_config(PCRE2_CONFIG_VERSION, version) < 0) return 1;
    snprintf(peer, sizeof peer, "PCRE2 %s", version);
    const differ_program program = {.name = "regex",
                                    .peer = peer,
                                    .corpus = "text_regex",
                                    .reasons = reasons,
                                    .n_reasons = N_REASONS,
                                    .begin = begin,
                                    .generate = regex_generate,
                                    .compare = compare};
    return differ_main(&program, argc, argv);
}
