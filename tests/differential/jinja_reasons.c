/* See jinja_reasons.h. */
#include "jinja_reasons.h"

#define AS_REASON(NAME, text, name, why) {name, why},
#define AS_TEXT(NAME, text, name, why) text,
static const char *const unsupported[] = {JINJA_UNSUPPORTED(AS_TEXT)};
const differ_reason jinja_reasons[] = {
    JINJA_UNSUPPORTED(AS_REASON){"case of letters",
                                 "upper, lower, capitalize and title change ASCII letters only (docs/TEXT.md)"},
    {"lazy",
     "map, select, reverse, items, range and keys give lists; in Python they are iterators and views, which are true, "
     "have no length and no items"},
    {"late",
     "filters and tests are checked when a chat reaches them, because many templates have parts for tools that a "
     "plain chat never reaches; jinja2 checks them when it compiles"},
    {"comma", "tuples without brackets, and x[], are no expressions in mica"},
    {"{# at the end", "jinja2 renders a template that ends in an opened comment without text; mica refuses it"},
    {"constant slice", "[1]['a':] is an error, as in Python; jinja2 makes it undefined if it is a constant expression"},
    {"time", "jinja2 took more than ten seconds"},
};

static bool has(const jinja_facts *f, const char *part)
{
    return f->n && memmem(f->template, f->n, part, strlen(part));
}

static bool has_one(const jinja_facts *f, const char *const *parts)
{
    for (; *parts; parts++)
        if (has(f, *parts)) return true;
    return false;
}

/* Are the texts equal but for bytes above ASCII? */
static bool same_ascii(const char *a, const char *b)
{
    for (;;) {
        while ((unsigned char)*a >= 0x80) a++;
        while ((unsigned char)*b >= 0x80) b++;
        if (*a != *b) return false;
        if (!*a) return true;
        a++, b++;
    }
}

/* Is this the message of an error about an iterator or a view, or about the arguments of a filter that makes one? */
static bool names_iterator(const char *message)
{
    static const char *const kinds[] = {
        "requires a filter argument", "generator", "iterator", "dict_keys", "dict_values", "dict_items", "type range"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(message, kinds[i])) return true;
    return false;
}

int jinja_reason(mica_status status, const char *ours, char kind, const char *theirs, const jinja_facts *facts)
{
    static const char *const changes_case[] = {"upper", "lower", "capitalize", "title", NULL};
    if (status == MICA_ERR_UNSUPPORTED)
        for (int i = 0; i < N_UNSUPPORTED; i++)
            if (strstr(ours, unsupported[i])) return i;
    if (strncmp(theirs, "Timeout", 7) == 0) return JINJA_PEER_TIME;
    const char *raised = status == MICA_ERR_ARGUMENT && kind == 'R' ? strstr(ours, ": ") : NULL;
    if (has_one(facts, changes_case) &&
        ((status == MICA_OK && kind == 'O' && same_ascii(ours, theirs)) || (raised && same_ascii(raised + 2, theirs))))
        return JINJA_CASE;
    if (kind == 'O' && strstr(ours, "is missing before '.'"))
        return JINJA_LATE; /* x is a.b, in a part that is not reached */
    if (kind == 'E' && (strstr(theirs, "No filter named") || strstr(theirs, "No test named"))) return JINJA_LATE;
    if (strstr(ours, "an index is missing") || strstr(ours, "is missing before ','")) return JINJA_COMMA;
    if (strstr(ours, "a slice by") && kind == 'O') return JINJA_FOLDED;
    if (strstr(ours, "a comment has no end") && kind == 'O') return JINJA_COMMENT;
    if (status == MICA_OK && kind == 'E' && names_iterator(theirs)) return JINJA_LAZY;
    return -1;
}
