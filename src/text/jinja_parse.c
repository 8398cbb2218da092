/* Templates to trees: tags cut the text, a recursive descent with a bounded depth
 * reads what is in them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja_build.h"

typedef enum jtoken { JT_END, JT_NAME, JT_STRING, JT_NUMBER, JT_OP } jtoken;

typedef struct jparser {
    mica__arena *arena;
    const char *text;
    size_t length, at;
    int line, nesting, loops;
    bool line_start; /* the text behind the last tag begins a line */
    /* the token that comes next, inside a tag */
    jtoken kind;
    const char *token;
    size_t n;
    int64_t number;
    const char *closing; /* of the tag: "%}" or "}}" */
} jparser;

mica_status mica__jinja_fail(mica_status code, int line, const char *fmt, ...)
{
    char text[MICA__ERROR_TEXT - 60];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return mica__fail(code, "chat template, line %d: %s", line, text);
}

static mica_status jnode_new(jparser *p, mica__jop op, mica__jnode **out)
{
    mica__jnode *node = *out = mica__arena_alloc(p->arena, sizeof *node);
    if (!node) return mica__fail_memory("a chat template", sizeof *node);
    node->op = op;
    node->line = p->line;
    return MICA_OK;
}

static mica_status jparse_deeper(jparser *p)
{
    return ++p->nesting <= MICA__JINJA_NESTING ? MICA_OK
                                               : mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "nested too deeply");
}

/* ---------------------------------------------------------------- tokens --- */

static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool at_text(const jparser *p, const char *text)
{
    const size_t n = strlen(text);
    return p->length - p->at >= n && memcmp(p->text + p->at, text, n) == 0;
}

static mica_status lex_string(jparser *p)
{
    const char quote = p->text[p->at++];
    size_t end = p->at, n = 0;
    while (end < p->length && p->text[end] != quote) end += p->text[end] == '\\' ? 2 : 1;
    if (end >= p->length) return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "a string has no end");
    char *out = mica__arena_alloc(p->arena, end - p->at + 1);
    if (!out) return mica__fail_memory("a chat template", end - p->at);
    for (; p->at < end; p->at++) {
        char c = p->text[p->at];
        p->line += c == '\n';
        if (c == '\\') {
            static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
            const char *found = p->text[p->at + 1] ? strchr(from, p->text[p->at + 1]) : NULL;
            if (found) c = to[found - from], p->at++;
        }
        out[n++] = c;
    }
    p->at++;
    p->kind = JT_STRING;
    p->token = out;
    p->n = n;
    return MICA_OK;
}

static mica_status lex_number(jparser *p)
{
    p->kind = JT_NUMBER;
    for (p->number = 0; p->at < p->length && is_digit(p->text[p->at]); p->at++)
        if (__builtin_mul_overflow(p->number, (int64_t)10, &p->number) ||
            __builtin_add_overflow(p->number, (int64_t)(p->text[p->at] - '0'), &p->number))
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a number that is too large");
    if (p->at + 1 < p->length && p->text[p->at] == '.' && is_digit(p->text[p->at + 1]))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a number with a fraction");
    return MICA_OK;
}

/* The next token, or JT_END where the tag ends. */
static mica_status lex(jparser *p)
{
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    while (p->at < p->length && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at])
        p->line += p->text[p->at++] == '\n';
    if (p->at >= p->length) return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "a tag has no end");
    const char c = p->text[p->at];
    p->token = p->text + p->at;
    p->kind = JT_END;
    if (at_text(p, p->closing)) return MICA_OK;
    if ((c == '-' || c == '+') && p->length - p->at > 2 && memcmp(p->text + p->at + 1, p->closing, 2) == 0)
        return MICA_OK;
    if (c == '"' || c == '\'') return lex_string(p);
    if (is_digit(c)) return lex_number(p);
    p->kind = is_name_start(c) ? JT_NAME : JT_OP;
    p->n = 1;
    if (p->kind == JT_NAME)
        while (p->at + p->n < p->length && (is_name_start(p->token[p->n]) || is_digit(p->token[p->n]))) p->n++;
    else
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
            if (at_text(p, pairs[i])) p->n = 2;
    p->at += p->n;
    return MICA_OK;
}

static bool next_is(const jparser *p, jtoken kind, const char *text)
{
    return p->kind == kind && p->n == strlen(text) && memcmp(p->token, text, p->n) == 0;
}
static bool next_op(const jparser *p, const char *text) { return next_is(p, JT_OP, text); }
static bool next_name(const jparser *p, const char *text) { return next_is(p, JT_NAME, text); }

static mica_status wanted(const jparser *p, const char *what)
{
    if (p->kind == JT_END) return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "%s is missing", what);
    return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "%s is missing before '%.*s'", what, p->n < 40 ? (int)p->n : 40,
                            p->kind == JT_NUMBER ? "" : p->token);
}

static mica_status take_op(jparser *p, const char *op) { return next_op(p, op) ? lex(p) : wanted(p, op); }

static mica_status take_name(jparser *p, const char **name, size_t *n)
{
    if (p->kind != JT_NAME) return wanted(p, "a name");
    *name = p->token;
    *n = p->n;
    return lex(p);
}

/* ----------------------------------------------------------- expressions --- */

static mica_status parse_expression(jparser *p, mica__jnode **out);

/* Of a list, up to the closing bracket, which is taken; named: arguments may have names. */
static mica_status parse_list(jparser *p, const char *close, bool named, mica__jnode **first)
{
    mica__jnode **last = first;
    int n = 0;
    while (!next_op(p, close)) {
        const char *name = NULL;
        size_t name_length = 0;
        if (named && p->kind == JT_NAME) { /* name=value */
            const jparser before = *p;
            name = p->token, name_length = p->n;
            MICA_TRY(lex(p));
            if (next_op(p, "=")) MICA_TRY(lex(p));
            else *p = before, name = NULL;
        }
        MICA_TRY(parse_expression(p, last));
        (*last)->name = name;
        (*last)->name_length = name_length;
        if (named && ++n > MICA__JINJA_ARGS)
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "too many arguments");
        last = &(*last)->next;
        if (!next_op(p, ",")) break;
        MICA_TRY(lex(p));
    }
    return take_op(p, close);
}

static mica_status parse_dict(jparser *p, mica__jnode **out)
{
    MICA_TRY(jnode_new(p, MICA__J_DICT, out));
    MICA_TRY(lex(p));
    for (mica__jnode **last = &(*out)->list; !next_op(p, "}");) {
        MICA_TRY(parse_expression(p, last));
        last = &(*last)->next;
        MICA_TRY(take_op(p, ":"));
        MICA_TRY(parse_expression(p, last));
        last = &(*last)->next;
        if (!next_op(p, ",")) break;
        MICA_TRY(lex(p));
    }
    return take_op(p, "}");
}

/* ( ... ): an expression, or a tuple, which is a list here. */
static mica_status parse_parens(jparser *p, mica__jnode **out)
{
    MICA_TRY(lex(p));
    if (!next_op(p, ")")) {
        MICA_TRY(parse_expression(p, out));
        if (!next_op(p, ",")) return take_op(p, ")");
        MICA_TRY(lex(p));
    } else *out = NULL;
    mica__jnode *first = *out;
    MICA_TRY(jnode_new(p, MICA__J_LIST, out));
    (*out)->list = first;
    return parse_list(p, ")", false, first ? &first->next : &(*out)->list);
}

static mica_status parse_word(jparser *p, mica__jnode **out)
{
    static const struct {
        const char *name;
        mica__jop op;
        int64_t number;
    } words[] = {{"true", MICA__J_BOOL, 1},  {"True", MICA__J_BOOL, 1}, {"false", MICA__J_BOOL, 0},
                 {"False", MICA__J_BOOL, 0}, {"none", MICA__J_NONE, 0}, {"None", MICA__J_NONE, 0}};
    MICA_TRY(jnode_new(p, MICA__J_NAME, out));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (next_name(p, words[i].name)) (*out)->op = words[i].op, (*out)->number = words[i].number;
    (*out)->text = p->token;
    (*out)->length = p->n;
    return lex(p);
}

static mica_status parse_strings(jparser *p, mica__jnode **out)
{
    MICA_TRY(jnode_new(p, MICA__J_STRING, out));
    mica__jnode *node = *out;
    node->text = p->token, node->length = p->n;
    MICA_TRY(lex(p));
    if (p->kind == JT_STRING) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "two strings side by side");
    return MICA_OK;
}

static mica_status parse_primary(jparser *p, mica__jnode **out)
{
    if (p->kind == JT_STRING) return parse_strings(p, out);
    if (p->kind == JT_NAME) return parse_word(p, out);
    if (p->kind == JT_NUMBER) {
        MICA_TRY(jnode_new(p, MICA__J_NUMBER, out));
        (*out)->number = p->number;
        return lex(p);
    }
    if (next_op(p, "(")) return parse_parens(p, out);
    if (next_op(p, "{")) return parse_dict(p, out);
    if (!next_op(p, "[")) return wanted(p, "an expression");
    MICA_TRY(jnode_new(p, MICA__J_LIST, out));
    MICA_TRY(lex(p));
    return parse_list(p, "]", false, &(*out)->list);
}

/* Behind [: an item, or up to three parts of a slice. */
static mica_status parse_subscript(jparser *p, mica__jnode **out)
{
    mica__jnode *parts[3] = {NULL, NULL, NULL}, *node;
    int n = 0;
    for (;; n++) {
        if (n == 3) return wanted(p, "]");
        if (next_op(p, ":") || next_op(p, "]")) MICA_TRY(jnode_new(p, MICA__J_NONE, &parts[n]));
        else MICA_TRY(parse_expression(p, &parts[n]));
        if (!next_op(p, ":")) break;
        MICA_TRY(lex(p));
    }
    if (n == 0 && parts[0]->op == MICA__J_NONE && next_op(p, "]") && !parts[0]->text) return wanted(p, "an index");
    MICA_TRY(jnode_new(p, n ? MICA__J_SLICE : MICA__J_ITEM, &node));
    node->a = *out;
    if (n == 0) node->b = parts[0];
    else {
        if (!parts[2]) MICA_TRY(jnode_new(p, MICA__J_NONE, &parts[2]));
        node->list = parts[0];
        parts[0]->next = parts[1];
        parts[1]->next = parts[2];
    }
    *out = node;
    return take_op(p, "]");
}

/* A filter or a test, with its arguments: a | name(...), a is [not] name [argument]. */
static mica_status parse_named(jparser *p, mica__jop op, mica__jnode **out)
{
    mica__jnode *node;
    MICA_TRY(jnode_new(p, op, &node));
    node->a = *out;
    MICA_TRY(lex(p));
    if (op == MICA__J_TEST && next_name(p, "not")) {
        node->number = 1;
        MICA_TRY(lex(p));
    }
    MICA_TRY(take_name(p, &node->text, &node->length));
    const bool known = op == MICA__J_TEST ? mica__jinja_has_test(node->text, node->length)
                                          : mica__jinja_has_filter(node->text, node->length);
    if (!known)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, node->line, "the %s '%.*s' is not known",
                                op == MICA__J_TEST ? "test" : "filter", node->length < 60 ? (int)node->length : 60,
                                node->text);
    *out = node;
    if (next_op(p, "(")) {
        MICA_TRY(lex(p));
        return parse_list(p, ")", true, &node->list);
    }
    if (op == MICA__J_TEST && (p->kind == JT_STRING || p->kind == JT_NUMBER)) return parse_primary(p, &node->list);
    return MICA_OK;
}

static mica_status parse_postfix(jparser *p, mica__jnode **out)
{
    MICA_TRY(parse_primary(p, out));
    for (;;) {
        mica__jnode *node;
        if (next_op(p, ".")) {
            MICA_TRY(jnode_new(p, MICA__J_ATTR, &node));
            node->a = *out;
            MICA_TRY(lex(p));
            MICA_TRY(take_name(p, &node->text, &node->length));
            *out = node;
        } else if (next_op(p, "[")) {
            MICA_TRY(lex(p));
            MICA_TRY(parse_subscript(p, out));
        } else if (next_op(p, "(")) {
            MICA_TRY(jnode_new(p, MICA__J_CALL, &node));
            node->a = *out;
            MICA_TRY(lex(p));
            MICA_TRY(parse_list(p, ")", true, &node->list));
            *out = node;
        } else if (next_op(p, "|")) MICA_TRY(parse_named(p, MICA__J_FILTER, out));
        else if (next_name(p, "is")) MICA_TRY(parse_named(p, MICA__J_TEST, out));
        else return MICA_OK;
    }
}

static mica_status parse_unary(jparser *p, mica__jnode **out)
{
    if (!next_op(p, "-") && !next_op(p, "+")) return parse_postfix(p, out);
    const bool minus = next_op(p, "-");
    mica__jnode *node;
    MICA_TRY(jnode_new(p, MICA__J_MINUS, &node));
    MICA_TRY(lex(p));
    MICA_TRY(parse_postfix(p, &node->a)); /* no chains of signs */
    *out = minus ? node : node->a;
    return MICA_OK;
}

/* Operators from the loosest to the tightest, as Jinja has them. */
static const struct {
    const char *text;
    int level;
    mica__jbinary op;
} jbinaries[] = {
    {"==", 0, MICA__JB_EQ},    {"!=", 0, MICA__JB_NE},  {"<", 0, MICA__JB_LT},  {"<=", 0, MICA__JB_LE},
    {">", 0, MICA__JB_GT},     {">=", 0, MICA__JB_GE},  {"in", 0, MICA__JB_IN}, {"+", 1, MICA__JB_ADD},
    {"-", 1, MICA__JB_SUB},    {"~", 2, MICA__JB_JOIN}, {"*", 3, MICA__JB_MUL}, {"/", 3, MICA__JB_DIV},
    {"//", 3, MICA__JB_FLOOR}, {"%", 3, MICA__JB_MOD},
};

static mica_status parse_binary(jparser *p, int level, mica__jnode **out)
{
    if (level == 4) return parse_unary(p, out);
    MICA_TRY(parse_binary(p, level + 1, out));
    for (;;) {
        int found = -1;
        bool negated = false;
        if (level == 0 && next_name(p, "not")) { /* a not in b */
            MICA_TRY(lex(p));
            if (!next_name(p, "in")) return wanted(p, "in");
            negated = true;
        }
        for (int i = 0; i < (int)(sizeof jbinaries / sizeof jbinaries[0]); i++)
            if (jbinaries[i].level == level &&
                (jbinaries[i].op == MICA__JB_IN ? next_name(p, "in") : next_op(p, jbinaries[i].text)))
                found = i;
        if (found < 0) return MICA_OK;
        mica__jnode *node;
        MICA_TRY(jnode_new(p, MICA__J_BINARY, &node));
        node->number = negated ? MICA__JB_NOT_IN : jbinaries[found].op;
        node->a = *out;
        MICA_TRY(lex(p));
        MICA_TRY(parse_binary(p, level + 1, &node->b));
        *out = node;
    }
}

static mica_status parse_logic(jparser *p, int level, mica__jnode **out)
{
    mica__jnode *node;
    if (level == 2) {
        int negations = 0;
        for (; next_name(p, "not"); negations++) MICA_TRY(lex(p));
        MICA_TRY(parse_binary(p, 0, out));
        for (; negations > 0; negations--) {
            MICA_TRY(jnode_new(p, MICA__J_NOT, &node));
            node->a = *out;
            *out = node;
            if (negations > MICA__JINJA_NESTING)
                return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "too many 'not'");
        }
        return MICA_OK;
    }
    MICA_TRY(parse_logic(p, level + 1, out));
    while (next_name(p, level ? "and" : "or")) {
        MICA_TRY(jnode_new(p, level ? MICA__J_AND : MICA__J_OR, &node));
        node->a = *out;
        MICA_TRY(lex(p));
        MICA_TRY(parse_logic(p, level + 1, &node->b));
        *out = node;
    }
    return MICA_OK;
}

static mica_status parse_expression(jparser *p, mica__jnode **out)
{
    MICA_TRY(jparse_deeper(p));
    MICA_TRY(parse_logic(p, 0, out));
    if (next_name(p, "if")) {
        mica__jnode *node;
        MICA_TRY(jnode_new(p, MICA__J_CHOICE, &node));
        node->a = *out;
        MICA_TRY(lex(p));
        MICA_TRY(parse_logic(p, 0, &node->b));
        if (next_name(p, "else")) {
            MICA_TRY(lex(p));
            MICA_TRY(parse_expression(p, &node->other));
        }
        *out = node;
    }
    p->nesting--;
    return MICA_OK;
}

/* ------------------------------------------------------------ statements --- */

/* Behind the closing mark: what of the white space after the tag goes away. */
static mica_status end_tag(jparser *p)
{
    if (p->kind != JT_END) return wanted(p, "the end of the tag");
    const char mark = p->text[p->at];
    const bool block = p->closing[0] != '}';
    if (mark == '-' || mark == '+') p->at++;
    p->at += 2;
    const size_t from = p->at;
    if (mark == '-')
        while (p->at < p->length && strchr(" \t\r\n\f\v", p->text[p->at]) && p->text[p->at]) p->at++;
    else if (block && mark != '+') { /* trim_blocks */
        if (at_text(p, "\r\n")) p->at += 2;
        else if (at_text(p, "\n")) p->at++;
    }
    for (size_t i = from; i < p->at; i++) p->line += p->text[i] == '\n';
    p->line_start = p->at > from && p->text[p->at - 1] == '\n';
    return MICA_OK;
}

/* The text up to the next tag, as a node if anything is left of it. */
static mica_status parse_text(jparser *p, mica__jnode ***last)
{
    const size_t from = p->at;
    size_t end = from;
    while (end < p->length &&
           !(p->text[end] == '{' && end + 1 < p->length && strchr("{%#", p->text[end + 1]) && p->text[end + 1]))
        end++;
    p->at = end;
    size_t keep = end;
    if (end < p->length) {
        const char mark = end + 2 < p->length ? p->text[end + 2] : ' ';
        if (mark == '-') {
            while (keep > from && strchr(" \t\r\n\f\v", p->text[keep - 1]) && p->text[keep - 1]) keep--;
        } else if (p->text[end + 1] != '{' && mark != '+') { /* lstrip_blocks */
            size_t line = end;
            while (line > from && (p->text[line - 1] == ' ' || p->text[line - 1] == '\t')) line--;
            if (line > from ? p->text[line - 1] == '\n' : p->line_start) keep = line;
        }
    }
    const int begins = p->line;
    for (size_t i = from; i < end; i++) p->line += p->text[i] == '\n';
    if (keep == from) return MICA_OK;
    MICA_TRY(jnode_new(p, MICA__J_TEXT, *last));
    (**last)->line = begins;
    (**last)->text = p->text + from;
    (**last)->length = keep - from;
    *last = &(**last)->next;
    return MICA_OK;
}

static mica_status parse_comment(jparser *p)
{
    const int line = p->line;
    for (p->at += 2; p->at < p->length && !at_text(p, "#}"); p->at++) p->line += p->text[p->at] == '\n';
    if (p->at >= p->length) return mica__jinja_fail(MICA_ERR_FORMAT, line, "a comment has no end");
    if (p->text[p->at - 1] == '-') p->at--;
    p->kind = JT_END;
    p->closing = "#}";
    return end_tag(p);
}

static mica_status parse_body(jparser *p, const char *ends, mica__jnode **first);

/* The end of a block whose name was just read. */
static mica_status parse_for(jparser *p, mica__jnode *node)
{
    for (mica__jnode **last = &node->list;; last = &(*last)->next) {
        MICA_TRY(jnode_new(p, MICA__J_NAME, last));
        MICA_TRY(take_name(p, &(*last)->text, &(*last)->length));
        if (!next_op(p, ",")) break;
        MICA_TRY(lex(p));
    }
    if (!next_name(p, "in")) return wanted(p, "in");
    MICA_TRY(lex(p));
    MICA_TRY(parse_logic(p, 0, &node->a));
    if (next_name(p, "if")) {
        MICA_TRY(lex(p));
        MICA_TRY(parse_expression(p, &node->b));
    }
    if (next_name(p, "recursive")) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a recursive for");
    MICA_TRY(end_tag(p));
    p->loops++;
    MICA_TRY(parse_body(p, "else endfor", &node->body));
    p->loops--;
    const bool other = next_name(p, "else");
    MICA_TRY(lex(p));
    if (!other) return end_tag(p);
    MICA_TRY(end_tag(p));
    MICA_TRY(parse_body(p, "endfor", &node->other));
    MICA_TRY(lex(p));
    return end_tag(p);
}

static mica_status parse_cond(jparser *p, mica__jnode *node)
{
    MICA_TRY(parse_expression(p, &node->a));
    MICA_TRY(end_tag(p));
    MICA_TRY(parse_body(p, "elif else endif", &node->body));
    /* a chain of elif is a list, not a nesting */
    while (next_name(p, "elif")) {
        node->number = 1; /* other is an elif */
        MICA_TRY(jnode_new(p, MICA__J_COND, &node->other));
        node = node->other;
        MICA_TRY(lex(p));
        MICA_TRY(parse_expression(p, &node->a));
        MICA_TRY(end_tag(p));
        MICA_TRY(parse_body(p, "elif else endif", &node->body));
    }
    if (next_name(p, "else")) {
        MICA_TRY(lex(p));
        MICA_TRY(end_tag(p));
        MICA_TRY(parse_body(p, "endif", &node->other));
    }
    MICA_TRY(lex(p));
    return end_tag(p);
}

static mica_status parse_set(jparser *p, mica__jnode *node)
{
    MICA_TRY(jnode_new(p, MICA__J_NAME, &node->list));
    mica__jnode *name = node->list;
    MICA_TRY(take_name(p, &name->text, &name->length));
    if (next_op(p, ".")) {
        MICA_TRY(lex(p));
        MICA_TRY(take_name(p, &node->text, &node->length));
    }
    for (mica__jnode *last = name; next_op(p, ","); last = last->next) {
        MICA_TRY(lex(p));
        MICA_TRY(jnode_new(p, MICA__J_NAME, &last->next));
        MICA_TRY(take_name(p, &last->next->text, &last->next->length));
    }
    if (p->kind == JT_END && !node->text && !name->next) { /* a block */
        MICA_TRY(end_tag(p));
        MICA_TRY(parse_body(p, "endset", &node->body));
        MICA_TRY(lex(p));
        return end_tag(p);
    }
    MICA_TRY(take_op(p, "="));
    MICA_TRY(parse_expression(p, &node->a));
    if (next_op(p, ","))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a set of several values without brackets");
    return end_tag(p);
}

static mica_status parse_generation(jparser *p, mica__jnode *node)
{
    MICA_TRY(end_tag(p));
    MICA_TRY(parse_body(p, "endgeneration", &node->body));
    MICA_TRY(lex(p));
    return end_tag(p);
}

static mica_status parse_jump(jparser *p, mica__jnode *node)
{
    return p->loops ? end_tag(p) : mica__jinja_fail(MICA_ERR_FORMAT, node->line, "break or continue outside of a for");
}

static mica_status parse_statement(jparser *p, mica__jnode **out)
{
    static const struct {
        const char *name;
        mica__jop op;
        mica_status (*parse)(jparser *, mica__jnode *);
    } tags[] = {{"for", MICA__J_FOR, parse_for},      {"if", MICA__J_COND, parse_cond},
                {"set", MICA__J_SET, parse_set},      {"generation", MICA__J_BLOCK, parse_generation},
                {"break", MICA__J_BREAK, parse_jump}, {"continue", MICA__J_CONTINUE, parse_jump}};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!next_name(p, tags[i].name)) continue;
        MICA_TRY(jnode_new(p, tags[i].op, out));
        MICA_TRY(lex(p));
        return tags[i].parse(p, *out);
    }
    if (p->kind != JT_NAME) return wanted(p, "the name of a tag");
    return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "the tag '%.*s' is not known here",
                            p->n < 60 ? (int)p->n : 60, p->token);
}

static bool is_one_of(const jparser *p, const char *names)
{
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");
        if (p->kind == JT_NAME && n == p->n && memcmp(at, p->token, n) == 0) return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* Statements up to a tag of these names, which is the next token; "": to the end. */
static mica_status parse_body(jparser *p, const char *ends, mica__jnode **first)
{
    mica__jnode **last = first;
    const int line = p->line;
    MICA_TRY(jparse_deeper(p));
    for (;;) {
        MICA_TRY(parse_text(p, &last));
        if (p->at >= p->length) break;
        const char kind = p->text[p->at + 1];
        if (kind == '#') {
            MICA_TRY(parse_comment(p));
            continue;
        }
        p->closing = kind == '%' ? "%}" : "}}";
        p->at += 2;
        if (p->at < p->length && (p->text[p->at] == '-' || (p->text[p->at] == '+' && kind == '%'))) p->at++;
        MICA_TRY(lex(p));
        if (kind == '%' && is_one_of(p, ends)) {
            p->nesting--;
            return MICA_OK;
        }
        if (kind == '%') MICA_TRY(parse_statement(p, last));
        else {
            MICA_TRY(jnode_new(p, MICA__J_PRINT, last));
            MICA_TRY(parse_expression(p, &(*last)->a));
            MICA_TRY(end_tag(p));
        }
        last = &(*last)->next;
    }
    p->nesting--;
    if (*ends) return mica__jinja_fail(MICA_ERR_FORMAT, line, "the block that begins here has no end (%s)", ends);
    return MICA_OK;
}

mica_status mica__jinja_parse(mica__arena *arena, const char *text, size_t length, mica__jinja **out)
{
    *out = NULL;
    if (length > MICA__JINJA_TEXT)
        return mica__fail(MICA_ERR_UNSUPPORTED, "a chat template of %zu bytes; %d are the most", length,
                          MICA__JINJA_TEXT);
    mica__jinja *jinja = mica__arena_alloc(arena, sizeof *jinja);
    if (!jinja) return mica__fail_memory("a chat template", sizeof *jinja);
    /* one line break at the end is not part of a template */
    if (length && text[length - 1] == '\n') length -= length > 1 && text[length - 2] == '\r' ? 2 : 1;
    jparser p = {.arena = arena, .text = text, .length = length, .line = 1, .line_start = true};
    MICA_TRY(parse_body(&p, "", &jinja->body));
    *out = jinja;
    return MICA_OK;
}
