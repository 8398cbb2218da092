/* A state machine; its state is what may follow: a value, a first element, a key, a comma or an
 * end, nothing. Open containers are a stack of booleans, keys of open objects a stack of spans.
 * When an object closes, its keys are compared and removed. */
#include "io/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"

enum { JSON_VALUE, JSON_FIRST, JSON_KEY_NEXT, JSON_AFTER, JSON_DONE };

void mica__json_begin(mica__json *j, const char *what, const void *text, size_t size, size_t base, int max_depth,
                      size_t max_keys)
{
    *j = (mica__json){.what = what, .text = text, .size = size, .base = base, .max_keys = max_keys};
    j->max_depth = max_depth < MICA__JSON_DEPTH ? max_depth : MICA__JSON_DEPTH;
    mica__arena_init(&j->arena);
}

void mica__json_end(mica__json *j)
{
    mica__free(j->keys);
    j->keys = NULL;
    mica__arena_free(&j->arena);
}

mica_status mica__json_fail(mica__json *j, const char *sentence)
{
    if (j->status == MICA_OK)
        j->status = mica__fail(MICA_ERR_FORMAT, "%s: JSON at byte %zu: %s", j->what, j->base + j->at, sentence);
    return j->status;
}

mica_status mica__json_status(const mica__json *j) { return j->status; }

static mica__json_token json_error(mica__json *j, const char *sentence)
{
    (void)mica__json_fail(j, sentence);
    return MICA__JSON_ERROR;
}

static mica__json_token json_no_memory(mica__json *j, size_t nbytes)
{
    j->status = mica__fail_memory("reading JSON", nbytes);
    return MICA__JSON_ERROR;
}

/* --------------------------------------------------------------- strings --- */

/* Bytes of the valid UTF-8 character at p, 0 if there is none. */
static size_t utf8_length(const unsigned char *p, size_t room)
{
    const unsigned c = p[0];
    if (c < 0x80) return 1;
    const size_t n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (n == 0 || n > room) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f)) return 0; /* overlong; surrogates */
    if ((c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f)) return 0; /* overlong; above 10ffff */
    return n;
}

bool mica__utf8_valid(const void *text, size_t size)
{
    const unsigned char *p = text;
    for (size_t n; size; p += n, size -= n)
        if ((n = utf8_length(p, size)) == 0) return false;
    return true;
}

static size_t utf8_put(unsigned c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63));
    return 4;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four hex digits at p, after \u; -1 if they are not hex digits. */
static int hex4(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const int d = hex_digit(p[i]);
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* Decodes the escape whose backslash is before p; returns the position after it, or NULL if it is invalid. */
static const char *unescape(const char *p, const char *end, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *plain = p < end && *p ? strchr(from, *p) : NULL;
    if (plain) {
        *(*out)++ = to[plain - from];
        return p + 1;
    }
    if (p >= end || *p != 'u') return NULL;
    int c = hex4(p + 1, end);
    if (c < 0 || (c >= 0xdc00 && c < 0xe000)) return NULL;
    p += 5;
    if (c >= 0xd800 && c < 0xdc00) {
        if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return NULL;
        const int low = hex4(p + 2, end);
        if (low < 0xdc00 || low >= 0xe000) return NULL;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    *out += utf8_put((unsigned)c, *out);
    return p;
}

/* Reads the string whose first quote is at j->at. */
static bool json_string(mica__json *j)
{
    const char *begin = j->text + j->at + 1, *end = j->text + j->size, *p = begin;
    bool escapes = false;
    while (p < end && *p != '"') {
        if ((unsigned char)*p < 0x20) {
            j->at = (size_t)(p - j->text);
            mica__json_fail(j, "a control character in a string");
            return false;
        }
        if (*p == '\\') {
            escapes = true;
            p += end - p > 1 ? 2 : 1;
            continue;
        }
        const size_t n = utf8_length((const unsigned char *)p, (size_t)(end - p));
        if (n == 0) {
            j->at = (size_t)(p - j->text);
            mica__json_fail(j, "a string is not UTF-8");
            return false;
        }
        p += n;
    }
    if (p >= end) {
        mica__json_fail(j, "a string has no end");
        return false;
    }
    j->string = begin;
    j->length = (size_t)(p - begin);
    if (escapes) {
        /* a decoded string is never longer */
        char *copy = mica__arena_alloc(&j->arena, j->length), *out = copy;
        if (!copy) {
            json_no_memory(j, j->length);
            return false;
        }
        for (const char *q = begin; q < p;) {
            if (*q != '\\') *out++ = *q++;
            else if (!(q = unescape(q + 1, p, &out))) {
                mica__json_fail(j, "a string has a wrong escape");
                return false;
            }
        }
        j->string = copy;
        j->length = (size_t)(out - copy);
    }
    j->at = (size_t)(p - j->text) + 1;
    return true;
}

/* ------------------------------------------------------------------ keys --- */

static bool same_key(mica__json_key a, mica__json_key b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static bool push_key(mica__json *j)
{
    if (j->n_keys >= j->max_keys) {
        mica__json_fail(j, "too many keys");
        return false;
    }
    if (j->n_keys == j->cap_keys) {
        const size_t cap = j->cap_keys ? 2 * j->cap_keys : 16;
        mica__json_key *grown = mica__realloc(j->keys, cap * sizeof *grown);
        if (!grown) {
            json_no_memory(j, cap * sizeof *grown);
            return false;
        }
        j->keys = grown;
        j->cap_keys = cap;
    }
    j->keys[j->n_keys++] = (mica__json_key){j->string, j->length};
    return true;
}

/* Is a key repeated? 1 yes, 0 no, -1 out of memory. The hash has an unpredictable seed, so
 * that a file cannot make all keys collide. */
static int repeated_key(const mica__json_key *keys, size_t n)
{
    if (n <= 8) {
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (same_key(keys[i], keys[k])) return 1;
        return 0;
    }
    size_t cap = 32;
    while (cap < 2 * n) cap *= 2;
    uint32_t *table = mica__alloc_zero(cap, sizeof *table);
    if (!table) return -1;
    const uint64_t seed = mica__now_ns() ^ (uint64_t)(uintptr_t)table;
    int found = 0;
    for (size_t i = 0; i < n && !found; i++) {
        size_t at = mica__hash(keys[i].text, keys[i].length, seed) & (cap - 1);
        for (; table[at] && !found; at = (at + 1) & (cap - 1)) found = same_key(keys[table[at] - 1], keys[i]);
        if (!found) table[at] = (uint32_t)i + 1;
    }
    mica__free(table);
    return found;
}

static mica__json_token json_close(mica__json *j)
{
    const bool object = j->in_object[j->depth - 1];
    if (object) {
        const size_t first = j->first_key[j->depth - 1];
        const size_t n = j->n_keys - first;
        const int found = n > 1 ? repeated_key(j->keys + first, n) : 0;
        if (found < 0) return json_no_memory(j, n * 8);
        if (found) return json_error(j, "the object that ends here has a key twice");
        j->n_keys = first;
    }
    j->at++;
    j->depth--;
    j->state = j->depth ? JSON_AFTER : JSON_DONE;
    return object ? MICA__JSON_OBJECT_END : MICA__JSON_ARRAY_END;
}

/* ---------------------------------------------------------------- tokens --- */

static void json_space(mica__json *j)
{
    while (j->at < j->size && strchr(" \t\n\r", j->text[j->at]) && j->text[j->at]) j->at++;
}

static size_t json_digits(mica__json *j)
{
    const size_t from = j->at;
    while (j->at < j->size && j->text[j->at] >= '0' && j->text[j->at] <= '9') j->at++;
    return j->at - from;
}

static bool json_eat(mica__json *j, const char *any)
{
    if (j->at >= j->size || !j->text[j->at] || !strchr(any, j->text[j->at])) return false;
    j->at++;
    return true;
}

static mica__json_token json_number(mica__json *j)
{
    const size_t from = j->at;
    (void)json_eat(j, "-");
    const size_t whole = j->at, n = json_digits(j);
    bool good = n == 1 || (n > 1 && j->text[whole] != '0');
    if (json_eat(j, ".")) good &= json_digits(j) > 0;
    if (json_eat(j, "eE")) {
        (void)json_eat(j, "+-");
        good &= json_digits(j) > 0;
    }
    if (!good) return json_error(j, "not a number");
    if (j->at - from > 256) return json_error(j, "a number of more than 256 characters");
    j->string = j->text + from;
    j->length = j->at - from;
    return MICA__JSON_NUMBER;
}

static mica__json_token json_open(mica__json *j, bool object)
{
    if (j->depth >= j->max_depth) return json_error(j, "nested too deeply");
    j->in_object[j->depth] = object;
    j->first_key[j->depth] = j->n_keys;
    j->depth++;
    j->at++;
    j->state = JSON_FIRST;
    return object ? MICA__JSON_OBJECT : MICA__JSON_ARRAY;
}

static mica__json_token json_value(mica__json *j)
{
    static const struct {
        const char *text;
        mica__json_token token;
    } words[] = {{"true", MICA__JSON_TRUE}, {"false", MICA__JSON_FALSE}, {"null", MICA__JSON_NULL}};
    if (j->at >= j->size) return json_error(j, "a value is missing");
    const char c = j->text[j->at];
    if (c == '{' || c == '[') return json_open(j, c == '{');
    mica__json_token token = MICA__JSON_ERROR;
    if (c == '"') {
        if (json_string(j)) token = MICA__JSON_STRING;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        token = json_number(j);
    } else {
        for (size_t i = 0; i < sizeof words / sizeof words[0] && token == MICA__JSON_ERROR; i++) {
            const size_t n = strlen(words[i].text);
            if (j->size - j->at < n || memcmp(j->text + j->at, words[i].text, n) != 0) continue;
            j->at += n;
            token = words[i].token;
        }
        if (token == MICA__JSON_ERROR) return json_error(j, "not a value");
    }
    j->state = j->depth ? JSON_AFTER : JSON_DONE;
    return token;
}

static mica__json_token json_key(mica__json *j)
{
    if (j->at >= j->size || j->text[j->at] != '"') return json_error(j, "a key is missing");
    if (!json_string(j) || !push_key(j)) return MICA__JSON_ERROR;
    json_space(j);
    if (!json_eat(j, ":")) return json_error(j, "a colon is missing");
    j->state = JSON_VALUE;
    return MICA__JSON_KEY;
}

mica__json_token mica__json_next(mica__json *j)
{
    if (j->status != MICA_OK) return MICA__JSON_ERROR;
    json_space(j);
    const bool more = j->at < j->size;
    if (j->state == JSON_DONE) return more ? json_error(j, "something follows the end") : MICA__JSON_END;
    if (j->state == JSON_FIRST || j->state == JSON_AFTER) {
        const bool object = j->in_object[j->depth - 1];
        if (more && j->text[j->at] == (object ? '}' : ']')) return json_close(j);
        if (j->state == JSON_AFTER) {
            if (!json_eat(j, ",")) return json_error(j, more ? "a comma is missing" : "the text ends too early");
            json_space(j);
        }
        j->state = object ? JSON_KEY_NEXT : JSON_VALUE;
    }
    return j->state == JSON_KEY_NEXT ? json_key(j) : json_value(j);
}

mica_status mica__json_skip(mica__json *j)
{
    const int depth = j->depth;
    do (void)mica__json_next(j);
    while (j->status == MICA_OK && j->depth > depth);
    return j->status;
}

mica__json_mark mica__json_save(const mica__json *j) { return (mica__json_mark){j->at, j->n_keys, j->depth, j->state}; }

void mica__json_restore(mica__json *j, mica__json_mark mark)
{
    j->at = mark.at;
    j->n_keys = mark.n_keys;
    j->depth = mark.depth;
    j->state = mark.state;
}

mica_status mica__json_expect(mica__json *j, mica__json_token token, const char *wanted)
{
    const mica__json_token got = mica__json_next(j);
    return got == token || got == MICA__JSON_ERROR ? j->status : mica__json_fail(j, wanted);
}

bool mica__json_is(const mica__json *j, const char *text)
{
    return strlen(text) == j->length && memcmp(text, j->string, j->length) == 0;
}

/* --------------------------------------------------------------- numbers --- */

mica_status mica__json_i64(mica__json *j, int64_t *out)
{
    int64_t v = 0;
    for (size_t i = 0; i < j->length; i++) {
        const char c = j->string[i];
        if (c < '0' || c > '9') return mica__json_fail(j, "a size must be an integer in plain digits");
        if (__builtin_mul_overflow(v, (int64_t)10, &v) || __builtin_add_overflow(v, (int64_t)(c - '0'), &v))
            return mica__json_fail(j, "an integer does not fit into 63 bits");
    }
    *out = v;
    return MICA_OK;
}

bool mica__json_is_i64(const mica__json *j, int64_t *out)
{
    const bool negative = j->length > 0 && j->string[0] == '-';
    *out = 0;
    for (size_t i = negative; i < j->length; i++) {
        const char c = j->string[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(*out, (int64_t)10, out) ||
            __builtin_add_overflow(*out, (int64_t)(negative ? '0' - c : c - '0'), out))
            return false;
    }
    return true;
}

mica_status mica__json_f64(mica__json *j, double *out)
{
    return mica_number_parse(j->string, j->length, out) ? MICA_OK : mica__json_fail(j, "a number is too large");
}
