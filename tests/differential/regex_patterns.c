/* See regex_patterns.h. Few letters, so that patterns and texts meet; one pattern in six is that of a tokenizer. */
#include "regex_patterns.h"

static const char *const tokenizers[] = {
#define MICA_PRE(name, names, whole, ...) __VA_ARGS__,
#include "text/pretokenizers.def"
#undef MICA_PRE
};

static differ_bytes promise; /* the last pattern; empty if it has other syntax */

static const uint32_t letters[] = {'a', 'b', 's',  't', 'k',  'S', 'K', 'Z', '1',
                                   '2', ' ', '\'', '_', '\n', '.', '-', 0xe9};

static void put_literal(uint64_t *r, differ_bytes *out)
{
    const uint32_t c = DIFFER_PICK(r, letters);
    if (c < 0x80 && strchr(".-'", (int)c)) differ_format(out, "\\%c", (char)c);
    else differ_utf8(out, c);
}

static void put_escape(uint64_t *r, differ_bytes *out)
{
    static const char *const escapes[] = {"\\s",     "\\S",     "\\d",     "\\D",    "\\w",  "\\p{L}",  "\\P{L}",
                                          "\\p{N}",  "\\p{Lu}", "\\p{^L}", "\\pL",   "\\PN", "\\p{M}",  "\\p{P}",
                                          "\\r",     "\\n",     "\\t",     "\\f",    "\\v",  "\\x61",   "\\x{62}",
                                          "\\u0073", "\\u00e9", "\\x00",   "\\.",    "\\\\", "\\x{e9}", "\\p{Ll}",
                                          "\\p{Zs}", "\\p{S}",  "\\P{^N}", "\\p{Cn}"};
    differ_text(out, DIFFER_PICK(r, escapes));
}

static void put_class(uint64_t *r, differ_bytes *out)
{
    static const char *const ranges[] = {"a-c", "A-Z", "0-9", "a-z", "A-z", "Z-a", " -~", "\\x{80}-\\x{ffff}",
                                         "'-.", "_-t"};
    differ_text(out, differ_one_in(r, 3) ? "[^" : "[");
    if (differ_one_in(r, 20)) differ_text(out, "]");
    for (unsigned n = 1 + differ_below(r, 4); n > 0; n--) {
        const unsigned kind = differ_below(r, 5);
        if (kind < 2) put_literal(r, out);
        else if (kind < 4) differ_text(out, DIFFER_PICK(r, ranges));
        else put_escape(r, out);
    }
    differ_text(out, differ_one_in(r, 10) ? "-]" : "]");
}

static void put_repeat(uint64_t *r, differ_bytes *out)
{
    static const char *const repeats[] = {"?",     "*",     "+",    "?",   "*",    "+",    "{2}",
                                          "{0,1}", "{1,3}", "{2,}", "{0}", "{0,}", "{3,4}"};
    if (differ_below(r, 3)) return;
    differ_text(out, DIFFER_PICK(r, repeats));
    if (differ_one_in(r, 8)) differ_text(out, "+");
}

static void put_alternatives(uint64_t *r, differ_bytes *out, int depth);

static void put_atom(uint64_t *r, differ_bytes *out, int depth)
{
    static const char *const groups[] = {"(?:", "(?:", "(", "(?i:", "(?=", "(?!"};
    const unsigned kind = differ_below(r, depth > 0 ? 12 : 9);
    if (kind < 4) put_literal(r, out);
    else if (kind < 6) put_escape(r, out);
    else if (kind == 6) put_class(r, out);
    else if (kind == 7) differ_text(out, ".");
    else if (kind == 8) {
        if (differ_one_in(r, 4)) differ_text(out, differ_one_in(r, 2) ? "^" : "$");
        else put_class(r, out);
        return; /* ^* and $* are loops over nothing */
    } else {
        differ_text(out, DIFFER_PICK(r, groups));
        put_alternatives(r, out, depth - 1);
        differ_text(out, ")");
    }
    put_repeat(r, out);
}

static void put_alternatives(uint64_t *r, differ_bytes *out, int depth)
{
    for (unsigned n = 1 + differ_below(r, 3); n > 0; n--) {
        for (unsigned k = differ_one_in(r, 12) ? 0 : 1 + differ_below(r, 3); k > 0; k--) put_atom(r, out, depth);
        if (n > 1) differ_text(out, "|");
    }
}

/* Syntax that mica refuses, or that the two might read differently. */
static void put_other(uint64_t *r, differ_bytes *out)
{
    static const char *const others[] = {
        "a*?",     "\\b",   "(?<=a)b", "(?<n>a)", "[[:alpha:]]", "[a&&b]",    "\\p{Greek}",  "\\x4",    "a{,2}",
        "a{65}",   "{",     "}",       "]",       "a{2}{3}",     "[a-\\d]",   "[\\d-z]",     "\\01",    "\\0",
        "\\8",     "\\1",   "a**",     "(?#c)",   "(?x)",        "\\x{d800}", "\\x{110000}", "\\ud800", "[:a:]",
        "(?>a+)a", "\\K",   "\\R",     "\\Qa\\E", "[a-z&&[^b]]", "*a",        "+",           "(",       ")",
        "[",       "[z-a]", "a{3,2}",  "\\",      "(?i)a",       "\\h"};
    differ_text(out, DIFFER_PICK(r, others));
}

static void put_text(uint64_t *r, differ_bytes *out)
{
    static const uint32_t others[] = {0xa0,    0x85,  0x3000, 0x180e, 0x17f,  0x212a, 0xc9, 0x301, 0x4e00,
                                      0x1f600, 0x661, 0x2028, 0x378,  0xfffd, '\r',   '\t', 0x1c,  '!'};
    static const char *const words[] = {"'s",   "'LL", "'\xc5\xbf", "don't", " the", "123",
                                        "  \n", "Ab",  "\r\n",      "...",   "\xff", "ab"};
    for (unsigned n = differ_below(r, 14); n > 0; n--) {
        const unsigned kind = differ_below(r, 10);
        if (kind < 6) differ_utf8(out, DIFFER_PICK(r, letters));
        else if (kind < 8) differ_text(out, DIFFER_PICK(r, words));
        else if (kind == 8) differ_utf8(out, DIFFER_PICK(r, others));
        else differ_utf8(out, 0x20 + differ_below(r, 0x700));
    }
}

/* Patterns near the limits of mica: groups and lookaheads in each other, a class of many characters. */
static void put_large(uint64_t *r, differ_bytes *out)
{
    const unsigned kind = differ_below(r, 3);
    const unsigned n = kind == 0   ? 44 + differ_below(r, 12)
                       : kind == 1 ? 5 + differ_below(r, 8)
                                   : 990 + differ_below(r, 20);
    static const char *const opens[] = {"(?:", "(?=", ""};
    for (unsigned i = 0; i < n; i++) differ_text(out, opens[kind]);
    differ_text(out, kind == 2 ? "[" : "a");
    for (unsigned i = 0; i < n; i++)
        if (kind == 2) differ_utf8(out, 0x100 + 3 * i);
        else differ_text(out, ")");
    if (kind == 2) differ_text(out, "a]+");
}

void regex_generate(uint64_t *r, differ_bytes *out)
{
    enum { TEXTS = 8 };
    bool own = true;
    if (differ_one_in(r, 6)) differ_text(out, DIFFER_PICK(r, tokenizers));
    else if (differ_one_in(r, 400)) put_large(r, out);
    else {
        put_alternatives(r, out, (int)differ_below(r, 4));
        if ((own = !differ_one_in(r, 16)) == false) put_other(r, out);
    }
    promise.n = 0;
    if (own) differ_put(&promise, out->data, out->n);
    for (int i = 0; i < TEXTS; i++) {
        differ_byte(out, 0);
        put_text(r, out);
    }
}

bool regex_is_promised(const uint8_t *pattern, size_t n)
{
    return n > 0 && promise.n == n && memcmp(promise.data, pattern, n) == 0;
}
