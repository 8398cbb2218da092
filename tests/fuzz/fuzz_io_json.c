/* JSON from any bytes: tokens nest, strings are UTF-8, and printing the tokens and reading them
 * again gives the same tokens. */
#include "io/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held, const char *what)
{
    if (held) return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

typedef struct printer {
    char *text;
    size_t n, cap;
} printer;

static void print(printer *p, const char *text, size_t n)
{
    if (n > p->cap - p->n && !(p->text = realloc(p->text, p->cap = 2 * (p->cap + n)))) abort();
    if (n) memcpy(p->text + p->n, text, n);
    p->n += n;
}

static void print_string(printer *p, const char *text, size_t n)
{
    print(p, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        char code[8];
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == '"' || c == '\\') print(p, code, (size_t)snprintf(code, sizeof code, "\\u%04x", c));
        else print(p, text + i, 1);
    }
    print(p, "\"", 1);
}

/* Prints all tokens without spaces; false if the input is not JSON. */
static bool print_all(const uint8_t *data, size_t size, printer *out)
{
    mica__json j;
    mica__json_token t, before = MICA__JSON_END;
    mica__json_begin(&j, "fuzz", data, size, 0, 16, 1000);
    while ((t = mica__json_next(&j)) != MICA__JSON_END && t != MICA__JSON_ERROR) {
        const bool closes = t == MICA__JSON_OBJECT_END || t == MICA__JSON_ARRAY_END;
        const bool opened = before == MICA__JSON_OBJECT || before == MICA__JSON_ARRAY || before == MICA__JSON_KEY;
        if (before != MICA__JSON_END && !opened && !closes) print(out, ",", 1);
        static const char *const plain[] = {"", "", "{", "}", "[", "]", "", "", "", "true", "false", "null"};
        print(out, plain[t], strlen(plain[t]));
        if (t == MICA__JSON_KEY || t == MICA__JSON_STRING) {
            must(mica__utf8_valid(j.string, j.length), "strings are UTF-8");
            print_string(out, j.string, j.length);
        }
        if (t == MICA__JSON_KEY) print(out, ":", 1);
        if (t == MICA__JSON_NUMBER) {
            int64_t whole;
            double real;
            mica__json copy = j;
            (void)mica__json_f64(&copy, &real);
            copy = j;
            (void)mica__json_i64(&copy, &whole);
            print(out, j.string, j.length);
        }
        before = t;
    }
    mica__json_end(&j);
    return t == MICA__JSON_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t live = mica__alloc_live();
    printer once = {0}, twice = {0};
    if (print_all(data, size, &once)) {
        must(print_all((const uint8_t *)once.text, once.n, &twice), "what was printed can be read");
        must(once.n == twice.n && memcmp(once.text, twice.text, once.n) == 0, "and is the same");
    } else {
        must(strncmp(mica_last_error(), "fuzz: JSON at byte ", 19) == 0, "an error message names the byte");
    }
    free(once.text);
    free(twice.text);
    must(mica__alloc_live() == live, "nothing is left");
    return 0;
}
