/* The JSON reader (src/io/json.c) and the tree made of its tokens (text/json_tree.c) against jansson. Both sides are
 * written as one canonical text: keys in order, strings decoded, integers exact, other numbers as the bits of a double.
 * jansson reads strictly here too: duplicate keys are refused, and any value may be the root. */
#include <jansson.h>
#include <stdlib.h>

#include "differential.h"
#include "text/json_tree.h"

enum { DEEP, LONG_NUMBER, BIG_INTEGER, NUL_IN_KEY, NUL_BYTE, N_REASONS };
static const differ_reason reasons[] = {
    [DEEP] = {"depth", "mica refuses more than 64 levels, jansson more than 2048: bounded memory for hostile headers"},
    [LONG_NUMBER] = {"long number", "mica refuses a number of more than 256 characters: bounded time"},
    [BIG_INTEGER] = {"big integer", "an integer outside 64 bits is a double in mica, as in Python and JavaScript; "
                                    "jansson refuses it"},
    [NUL_IN_KEY] = {"NUL in a key", "mica's keys have a length and may contain U+0000; jansson's are C strings"},
    [NUL_BYTE] = {"NUL byte",
                  "jansson drops a NUL byte after a number or a word, because its reader takes it for the end "
                  "of a buffer; RFC 8259 does not allow it"},
};

/* -------------------------------------------------------- canonical text --- */

static void put_text(differ_bytes *out, char kind, const char *text, size_t n)
{
    differ_format(out, "%c%zu:", kind, n);
    differ_put(out, text, n);
}

static void put_integer(differ_bytes *out, int64_t v) { differ_format(out, "i%lld;", (long long)v); }

static void put_real(differ_bytes *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    differ_format(out, "d%016llx;", (unsigned long long)bits);
}

/* False if the number is too large for a double: the caller of the reader gets an error then. */
static bool put_number(differ_bytes *out, const char *text, size_t n)
{
    mica__json j = {.what = "differential", .string = text, .length = n};
    int64_t whole, plain;
    double real;
    if (mica__json_f64(&j, &real) != MICA_OK) return false;
    if (!mica__json_is_i64(&j, &whole)) {
        put_real(out, real);
        return true;
    }
    put_integer(out, whole);
    /* the other readings of an integer agree with this one */
    if (real != (double)whole) differ_text(out, "?f64");
    if (text[0] != '-' && (mica__json_i64(&j, &plain) != MICA_OK || plain != whole)) differ_text(out, "?i64");
    return true;
}

/* One token; '}' and ']' close. */
static bool put_token(differ_bytes *out, mica__json_token t, const char *text, size_t n)
{
    static const char marks[] = "??{}[]?????";
    switch (t) {
    case MICA__JSON_KEY: put_text(out, 'k', text, n); return true;
    case MICA__JSON_STRING: put_text(out, 's', text, n); return true;
    case MICA__JSON_NUMBER: return put_number(out, text, n);
    case MICA__JSON_TRUE: differ_text(out, "t"); return true;
    case MICA__JSON_FALSE: differ_text(out, "f"); return true;
    case MICA__JSON_NULL: differ_text(out, "n"); return true;
    default: differ_byte(out, (unsigned char)marks[t]); return true;
    }
}

static bool read_tokens(const uint8_t *data, size_t size, differ_bytes *out)
{
    mica__json j;
    mica__json_token t;
    bool good = true;
    mica__json_begin(&j, "differential", data, size, 0, MICA__JSON_DEPTH, 1 << 20);
    while ((t = mica__json_next(&j)) != MICA__JSON_END && t != MICA__JSON_ERROR && good)
        good = put_token(out, t, j.string, j.length);
    mica__json_end(&j);
    return good && t == MICA__JSON_END;
}

static bool put_node(differ_bytes *out, const mica__json_node *node)
{
    const bool object = node->kind == MICA__JSON_OBJECT, list = node->kind == MICA__JSON_ARRAY;
    if (!put_token(out, node->kind, node->text, node->length)) return false;
    for (const mica__json_node *c = node->first; c; c = c->next) {
        if (object) put_text(out, 'k', c->key, c->key_length);
        if (!put_node(out, c)) return false;
    }
    if (object || list) differ_text(out, object ? "}" : "]");
    return true;
}

static bool read_tree(const uint8_t *data, size_t size, differ_bytes *out)
{
    mica__json_tree tree;
    const bool good = mica__json_tree_read(&tree, "differential", data, size) == MICA_OK && put_node(out, tree.root);
    mica__json_tree_free(&tree);
    return good;
}

static void put_jansson(differ_bytes *out, json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        differ_text(out, "{");
        for (void *i = json_object_iter(v); i; i = json_object_iter_next(v, i)) {
            put_text(out, 'k', json_object_iter_key(i), json_object_iter_key_len(i));
            put_jansson(out, json_object_iter_value(i));
        }
        differ_text(out, "}");
        return;
    case JSON_ARRAY:
        differ_text(out, "[");
        for (size_t i = 0; i < json_array_size(v); i++) put_jansson(out, json_array_get(v, i));
        differ_text(out, "]");
        return;
    case JSON_STRING: put_text(out, 's', json_string_value(v), json_string_length(v)); return;
    case JSON_INTEGER: put_integer(out, json_integer_value(v)); return;
    case JSON_REAL: put_real(out, json_real_value(v)); return;
    case JSON_TRUE: differ_text(out, "t"); return;
    case JSON_FALSE: differ_text(out, "f"); return;
    case JSON_NULL: differ_text(out, "n"); return;
    }
}

/* ------------------------------------------------------------- comparing --- */

/* mica refused, jansson did not. */
static void judge_refused(differ *d, const uint8_t *data, size_t size)
{
    const char *message = mica_last_error();
    if (strstr(message, "nested too deeply")) differ_listed(d, DEEP);
    else if (strstr(message, "a number of more than 256 characters")) differ_listed(d, LONG_NUMBER);
    else if (memchr(data, 0, size)) differ_listed(d, NUL_BYTE);
    else differ_fail(d, "jansson accepts it, mica does not: %s", message);
}

/* jansson refused, mica did not. */
static void judge_accepted(differ *d, const json_error_t *error)
{
    const enum json_error_code code = json_error_code(error);
    const bool integer = strncmp(error->text, "too big", 7) == 0; /* "too big integer", "too big negative integer" */
    if (code == json_error_numeric_overflow && integer) differ_listed(d, BIG_INTEGER);
    else if (code == json_error_null_byte_in_key) differ_listed(d, NUL_IN_KEY);
    else differ_fail(d, "mica accepts it, jansson does not: %s at byte %d", error->text, error->position);
}

static void compare(differ *d, const uint8_t *data, size_t size)
{
    static differ_bytes ours, tree, theirs;
    json_error_t error;
    ours.n = tree.n = theirs.n = 0;
    const bool by_tree = read_tree(data, size, &tree), by_token = read_tokens(data, size, &ours);
    json_t *root =
        json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (root) put_jansson(&theirs, root);
    if (by_token != by_tree) differ_fail(d, "the tokens and the tree of mica disagree");
    else if (by_token && (ours.n != tree.n || memcmp(ours.data, tree.data, ours.n) != 0))
        differ_fail(d, "the tree differs from the tokens at byte %zu of the canonical text",
                    differ_first(ours.data, ours.n, tree.data, tree.n));
    else if (!by_token && !root) differ_agree(d, false);
    else if (!by_token) judge_refused(d, data, size);
    else if (!root) judge_accepted(d, &error);
    else if (ours.n != theirs.n || memcmp(ours.data, theirs.data, ours.n) != 0)
        differ_fail(d, "mica: %.*s, jansson: %.*s", (int)(ours.n < 400 ? ours.n : 400), (const char *)ours.data,
                    (int)(theirs.n < 400 ? theirs.n : 400), (const char *)theirs.data);
    else differ_agree(d, true);
    json_decref(root);
}

/* ------------------------------------------------------------ generating --- */

static void make_space(uint64_t *r, differ_bytes *out)
{
    static const char *const spaces[] = {" ", "\n", "\t", "\r", "  ", "\r\n", " \t"};
    if (differ_one_in(r, 4)) differ_text(out, DIFFER_PICK(r, spaces));
    if (differ_one_in(r, 400)) differ_text(out, differ_one_in(r, 2) ? "\f" : "\xc2\xa0"); /* not a space of JSON */
}

static void make_character(uint64_t *r, differ_bytes *out)
{
    static const char *const escapes[] = {"\\n", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t"};
    static const char *const wrong[] = {"\\x41",    "\\u12", "\\ud800",  "\\udc00",      "\\ud800\\u0041",   "\\U0041",
                                        "\n",       "\x1f",  "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
                                        "\xe2\x82", "\\'"};
    static const uint32_t points[] = {0x7f,   0x80,   0x7ff,   0x800,    0xd7ff,  0xe000,
                                      0xfffd, 0xffff, 0x10000, 0x10ffff, 0x1f600, 0x2028};
    switch (differ_below(r, 16)) {
    case 0: differ_text(out, DIFFER_PICK(r, escapes)); break;
    case 1: differ_utf8(out, DIFFER_PICK(r, points)); break;
    case 2: differ_format(out, differ_one_in(r, 2) ? "\\u%04x" : "\\u%04X", differ_below(r, 0xd800)); break;
    case 3: differ_format(out, "\\u%04x\\u%04X", 0xd800 + differ_below(r, 1024), 0xdc00 + differ_below(r, 1024)); break;
    case 4: differ_format(out, "\\u%04x", 0xe000 + differ_below(r, 0x2000)); break;
    case 5: differ_utf8(out, 0x80 + differ_below(r, 0x780)); break;
    case 6: differ_utf8(out, 0x800 + differ_below(r, 0xd000)); break;
    case 7:
        if (differ_one_in(r, 40)) differ_text(out, DIFFER_PICK(r, wrong));
        break;
    case 8:
        if (differ_one_in(r, 60)) differ_text(out, "\\u0000");
        break;
    case 9: /* alone it is invalid; so are most pairs of such bytes */
        if (differ_one_in(r, 80)) differ_format(out, "\\u%04x", 0xd800 + differ_below(r, 2048));
        if (differ_one_in(r, 80))
            differ_byte(out, 0xe0 + differ_below(r, 32)), differ_byte(out, 0x80 + differ_below(r, 64));
        break;
    default: differ_byte(out, 'a' + differ_below(r, 26)); break;
    }
}

static void make_string(uint64_t *r, differ_bytes *out, unsigned most)
{
    differ_text(out, "\"");
    for (unsigned n = differ_below(r, most); n > 0; n--) make_character(r, out);
    differ_text(out, "\"");
}

static void make_digits(uint64_t *r, differ_bytes *out, unsigned n)
{
    for (; n > 0; n--) differ_byte(out, '0' + differ_below(r, 10));
}

static void make_number(uint64_t *r, differ_bytes *out)
{
    static const char *const edges[] = {"9223372036854775807",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "-9223372036854775809",
                                        "18446744073709551615",
                                        "-0",
                                        "0",
                                        "-0.0",
                                        "1e308",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "2.2250738585072014e-308",
                                        "4.9e-324",
                                        "2.4e-324",
                                        "5e-325",
                                        "1e400",
                                        "-1e400",
                                        "9007199254740993",
                                        "9007199254740993.0",
                                        "0.1",
                                        "123456789012345678901234567890",
                                        "6.631236846766476e-316",
                                        "8.5e-323",
                                        "1e23",
                                        "0e5",
                                        "-0e-5",
                                        "2.2250738585072011e-308"};
    static const char *const wrong[] = {"01",   "-",   "1.",       ".5",        "1e",    "1e+", "+1",    "0x10", "-01",
                                        "1.e5", "NaN", "Infinity", "-Infinity", "1_000", "00",  "1e5.5", "--1"};
    switch (differ_below(r, 10)) {
    case 0: differ_text(out, DIFFER_PICK(r, edges)); return;
    case 1:
        if (differ_one_in(r, 20)) {
            differ_text(out, DIFFER_PICK(r, wrong));
            return;
        }
        break;
    default: break;
    }
    if (differ_one_in(r, 3)) differ_text(out, "-");
    if (differ_one_in(r, 5)) differ_text(out, "0");
    else {
        differ_byte(out, '1' + differ_below(r, 9));
        make_digits(r, out, differ_below(r, differ_one_in(r, 8) ? 40 : 19));
    }
    if (differ_one_in(r, 3)) {
        differ_text(out, ".");
        make_digits(r, out, 1 + differ_below(r, differ_one_in(r, 300) ? 260 : 20));
    }
    if (differ_one_in(r, 4)) {
        differ_text(out, differ_one_in(r, 2) ? "e" : "E");
        if (differ_one_in(r, 2)) differ_text(out, differ_one_in(r, 2) ? "-" : "+");
        make_digits(r, out, 1 + differ_below(r, 3));
    }
}

static void make_value(uint64_t *r, differ_bytes *out, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    static const char *const wrong[] = {"True",
                                        "nul",
                                        "undefined",
                                        "",
                                        "'a'",
                                        "tru e",
                                        "[1,]",
                                        "{\"a\":1,}",
                                        "[,]",
                                        "{a:1}",
                                        "{\"a\"}",
                                        "//x\n1",
                                        "[1 2]",
                                        "{\"a\":1 \"b\":2}",
                                        "{\"a\":1,\"a\":2}"};
    make_space(r, out);
    const unsigned kind = differ_below(r, depth > 0 ? 10 : 6);
    if (kind < 2) make_number(r, out);
    else if (kind < 4) make_string(r, out, 12);
    else if (kind < 6) differ_text(out, differ_one_in(r, 30) ? DIFFER_PICK(r, wrong) : DIFFER_PICK(r, words));
    else {
        const bool object = kind < 8;
        differ_text(out, object ? "{" : "[");
        const unsigned n = differ_below(r, differ_one_in(r, 20) ? 24 : 5);
        for (unsigned i = 0; i < n; i++) {
            if (i) differ_text(out, ",");
            make_space(r, out);
            if (object) {
                if (differ_one_in(r, 2)) differ_format(out, "\"k%u\"", differ_one_in(r, 30) ? 0 : i);
                else make_string(r, out, 6);
                make_space(r, out);
                differ_text(out, ":");
            }
            make_value(r, out, depth - 1);
        }
        make_space(r, out);
        differ_text(out, object ? "}" : "]");
    }
    make_space(r, out);
}

static void generate(uint64_t *r, differ_bytes *out)
{
    if (!differ_one_in(r, 64)) {
        make_value(r, out, (int)differ_below(r, 6));
        return;
    }
    const unsigned levels = 56 + differ_below(r, 16);
    const bool objects = differ_one_in(r, 2);
    for (unsigned i = 0; i < levels; i++) differ_text(out, objects ? "{\"a\":" : "[");
    make_value(r, out, 1);
    for (unsigned i = 0; i < levels; i++) differ_text(out, objects ? "}" : "]");
}

int main(int argc, char **argv)
{
    const differ_program program = {.name = "json",
                                    .peer = "jansson " JANSSON_VERSION,
                                    .corpus = "io_json",
                                    .reasons = reasons,
                                    .n_reasons = N_REASONS,
                                    .generate = generate,
                                    .compare = compare};
    return differ_main(&program, argc, argv);
}
