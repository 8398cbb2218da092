/* The intended differences between mica's chat templates and jinja2, and how each is recognised. */
#ifndef MICA_DIFFERENTIAL_JINJA_REASONS_H
#define MICA_DIFFERENTIAL_JINJA_REASONS_H

#include "differential.h"
#include "jinja_templates.h"

/* mica refuses it with MICA_ERR_UNSUPPORTED: X(NAME, part of the error message, name, why) */
#define JINJA_UNSUPPORTED(X)                                                                                     \
    X(AS_TEXT, " as text", "a list as text", "Python's repr of lists and dicts; templates use tojson")           \
    X(FILTER, "the filter '", "filter", "filters outside of the table in text/jinja_names.c")                    \
    X(TEST, "the test '", "test", "tests outside of the table in text/jinja_tests.c")                            \
    X(METHOD, "the method '", "method", "methods outside of the table: a template reaches no objects")           \
    X(FUNCTION, "the function '", "function", "functions other than range, dict, namespace, raise_exception")    \
    X(TAG, "the tag '", "tag", "include, import, call, filter, raw and others")                                  \
    X(FRACTION, "fraction", "fraction", "numbers are integers")                                                  \
    X(LARGE, "64 bits", "64 bits", "integers of 64 bits, with an error on overflow; Python's are unlimited")     \
    X(TOO_LARGE, "too large", "large literal", "the same for literals")                                          \
    X(SLICE, "a slice of", "slice", "slices of strings with a step, and of what is no sequence")                 \
    X(SPLIT, "split without a separator", "split()", "a separator must be given")                                \
    X(EMPTY, "replace of an empty string", "replace('')", "an empty string is not replaced")                     \
    X(OPERATOR, " * ", "'a' * 3", "repeated strings and lists: bounded memory")                                  \
    X(FORMATTED, "a string % ", "'%s' % x", "formatted strings")                                                 \
    X(ORDER, "the order of a list", "order of lists", "lists have no order")                                     \
    X(INT, "no integer", "int of a fraction", "numbers are integers")                                            \
    X(SIDE, "side by side", "'a' 'b'", "strings side by side")                                                   \
    X(ESCAPE, "an escape for a character", "escape", "\\x, \\u, \\N and octal escapes in strings")               \
    X(SEVERAL, "several", "several values", "x[1, 2], for a, b in c if d, and set a = 1, 2")                     \
    X(TOJSON, "tojson ", "tojson", "arguments other than indent, an indent above 16, more than 16 levels")       \
    X(MAP, "map needs", "map", "map with other arguments")                                                       \
    X(RANGE, "range", "range", "arguments that are not one to three numbers, or more than 100,000")              \
    X(PATH, "an index after a point", "x.0", "items by number after a point")                                    \
    X(ATTRIBUTE, "an attribute that is no name", "attribute='a.b'", "paths of attributes in map and selectattr") \
    X(NAMED, "named arguments", "dict(x)", "dict and namespace with positional arguments")                       \
    X(KEY, "a dict with a key", "list as a key", "Python has tuples as keys, and refuses lists when it runs")    \
    X(NESTED, "too deeply", "depth", "nesting is limited: bounded stack")                                        \
    X(STEPS, "steps", "steps", "2,000,000 steps: bounded time")                                                  \
    X(MEMORY, " MB", "memory", "64 MB: bounded memory")                                                          \
    X(OTHER, "", "other",                                                                                        \
      "recursive loops, too many arguments, join of an attribute, long chains of operators, deep comparisons")

#define JINJA_AS_ENUM(NAME, text, name, why) JINJA_##NAME,
enum {
    JINJA_UNSUPPORTED(JINJA_AS_ENUM) N_UNSUPPORTED,
    JINJA_CASE = N_UNSUPPORTED,
    JINJA_LAZY,
    JINJA_LATE,
    JINJA_COMMA,
    JINJA_COMMENT,
    JINJA_FOLDED,
    JINJA_PEER_TIME,
    N_JINJA_REASONS
};
extern const differ_reason jinja_reasons[];

/* What a difference is judged by, besides the two results. */
typedef struct jinja_facts {
    const char *template;
    size_t n;
    const jinja_context *chat;
} jinja_facts;

/* The reason for a difference, -1 if there is none. ours: mica's text or error message; kind and theirs: the answer of
 * jinja2 (jinja_peer.py). */
int jinja_reason(mica_status status, const char *ours, char kind, const char *theirs, const jinja_facts *facts);

#endif
