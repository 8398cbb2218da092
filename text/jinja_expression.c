/* Parses expressions inside tags: a tokenizer and a recursive descent with bounded depth. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja_parser.h"
#include "text/unicode.h"

mica_status mica__jinja_fail(mica_status code, int line, const char *fmt, ...)
{
    char text[MICA__ERROR_TEXT - 60];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return mica__fail(code, "chat template, line %d: %s", line, text);
}

mica_status mica__jp_node(mica__jparser *p, mica__jop op, mica__jnode **out)
{
    mica__jnode *node = *out = mica__arena_alloc(p->arena, sizeof *node);
    if (!node) return mica__fail_memory("a chat template", sizeof *node);
    node->op = op;
    node->line = p->line;
    return MICA_OK;
}

mica_status mica__jp_enter(mica__jparser *p)
{
    return ++p->nesting <= MICA__JINJA_NESTING ? MICA_OK
                                               : mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "nested too deeply");
}

/* ---------------------------------------------------------------- tokens --- */

static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool mica__jp_has_text(const mica__jparser *p, const char *text)
{
    const size_t n = strlen(text);
    return p->length - p->at >= n && memcmp(p->text + p->at, text, n) == 0;
}

static mica_status lex_string(mica__jparser *p)
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
            static const char from[] = "ntr\\'\"abfv", to[] = "\n\t\r\\'\"\a\b\f\v";
            const char next = p->text[p->at + 1], *found = next ? strchr(from, next) : NULL;
            if (found) c = to[found - from], p->at++;
            else if ((unsigned char)next >= 0x80 || (next && strchr("xuUN01234567\n", next)))
                return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "an escape for a character by its number");
        }
        out[n++] = c;
    }
    p->at++;
    p->kind = MICA__JT_STRING;
    p->token = out;
    p->n = n;
    return MICA_OK;
}

static mica_status lex_number(mica__jparser *p)
{
    const size_t from = p->at;
    p->kind = MICA__JT_NUMBER;
    for (p->number = 0; p->at < p->length && is_digit(p->text[p->at]); p->at++)
        if (__builtin_mul_overflow(p->number, (int64_t)10, &p->number) ||
            __builtin_add_overflow(p->number, (int64_t)(p->text[p->at] - '0'), &p->number))
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a number that is too large");
    if (p->text[from] == '0' && p->number != 0)
        return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "a number that begins with 0");
    if (p->at + 1 < p->length && p->text[p->at] == '.' && is_digit(p->text[p->at + 1]))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a number with a fraction");
    return MICA_OK;
}

size_t mica__jp_spaces(const mica__jparser *p)
{
    size_t at = p->at;
    uint32_t c;
    while (at < p->length) {
        const size_t n = mica__utf8_get(p->text + at, p->length - at, &c);
        if (!mica__jinja_space(c)) break;
        at += n;
    }
    return at - p->at;
}

mica_status mica__jp_lex(mica__jparser *p)
{
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    for (size_t end = p->at + mica__jp_spaces(p); p->at < end; p->at++) p->line += p->text[p->at] == '\n';
    if (p->at >= p->length) return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "a tag has no end");
    const char c = p->text[p->at];
    p->token = p->text + p->at;
    p->kind = MICA__JT_END;
    if (p->brackets == 0 && mica__jp_has_text(p, p->closing)) return MICA_OK;
    if (p->brackets == 0 && (c == '-' || c == '+') && p->length - p->at > 2 &&
        memcmp(p->text + p->at + 1, p->closing, 2) == 0)
        return MICA_OK;
    if (c == '"' || c == '\'') return lex_string(p);
    if (is_digit(c)) return lex_number(p);
    p->kind = is_name_start(c) ? MICA__JT_NAME : MICA__JT_OP;
    p->n = 1;
    if (p->kind == MICA__JT_NAME)
        while (p->at + p->n < p->length && (is_name_start(p->token[p->n]) || is_digit(p->token[p->n]))) p->n++;
    else
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
            if (mica__jp_has_text(p, pairs[i])) p->n = 2;
    if (c == '(' || c == '[' || c == '{') p->brackets++;
    if ((c == ')' || c == ']' || c == '}') && p->brackets > 0) p->brackets--;
    p->at += p->n;
    return MICA_OK;
}

static bool next_is(const mica__jparser *p, mica__jtoken kind, const char *text)
{
    return p->kind == kind && p->n == strlen(text) && memcmp(p->token, text, p->n) == 0;
}
bool mica__jp_is_op(const mica__jparser *p, const char *text) { return next_is(p, MICA__JT_OP, text); }
bool mica__jp_is_name(const mica__jparser *p, const char *text) { return next_is(p, MICA__JT_NAME, text); }

mica_status mica__jp_fail_missing(const mica__jparser *p, const char *what)
{
    if (p->kind == MICA__JT_END) return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "%s is missing", what);
    return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "%s is missing before '%.*s'", what, p->n < 40 ? (int)p->n : 40,
                            p->kind == MICA__JT_NUMBER ? "" : p->token);
}

mica_status mica__jp_expect(mica__jparser *p, const char *op)
{
    return mica__jp_is_op(p, op) ? mica__jp_lex(p) : mica__jp_fail_missing(p, op);
}

mica_status mica__jp_expect_name(mica__jparser *p, const char **name, size_t *n)
{
    if (p->kind != MICA__JT_NAME) return mica__jp_fail_missing(p, "a name");
    *name = p->token;
    *n = p->n;
    return mica__jp_lex(p);
}

/* ----------------------------------------------------------- expressions --- */

/* Named arguments follow the others, and each name is given once. before: the arguments so far. */
static mica_status check_argument(const mica__jparser *p, const mica__jnode *before, const char *name, size_t n)
{
    for (; before; before = before->next) {
        if (before->name && !name)
            return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "an argument without a name follows one with a name");
        if (before->name && before->name_length == n && memcmp(before->name, name, n) == 0)
            return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "the argument '%.*s' is given twice",
                                    n < 60 ? (int)n : 60, name);
    }
    return MICA_OK;
}

/* Parses list elements and the closing bracket. named: elements may be name=value. */
static mica_status parse_list(mica__jparser *p, const char *close, bool named, mica__jnode **first)
{
    mica__jnode **last = first;
    int n = 0;
    while (!mica__jp_is_op(p, close)) {
        const char *name = NULL;
        size_t name_length = 0;
        if (named && p->kind == MICA__JT_NAME) { /* name=value */
            const mica__jparser before = *p;
            name = p->token, name_length = p->n;
            MICA_TRY(mica__jp_lex(p));
            if (mica__jp_is_op(p, "=")) MICA_TRY(mica__jp_lex(p));
            else *p = before, name = NULL;
        }
        MICA_TRY(check_argument(p, *first, name, name_length));
        MICA_TRY(mica__jp_expression(p, last));
        (*last)->name = name;
        (*last)->name_length = name_length;
        if (named && ++n > MICA__JINJA_ARGS)
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "too many arguments");
        last = &(*last)->next;
        if (!mica__jp_is_op(p, ",")) break;
        MICA_TRY(mica__jp_lex(p));
    }
    return mica__jp_expect(p, close);
}

static mica_status parse_dict(mica__jparser *p, mica__jnode **out)
{
    MICA_TRY(mica__jp_node(p, MICA__J_DICT, out));
    MICA_TRY(mica__jp_lex(p));
    for (mica__jnode **last = &(*out)->list; !mica__jp_is_op(p, "}");) {
        MICA_TRY(mica__jp_expression(p, last));
        last = &(*last)->next;
        MICA_TRY(mica__jp_expect(p, ":"));
        MICA_TRY(mica__jp_expression(p, last));
        last = &(*last)->next;
        if (!mica__jp_is_op(p, ",")) break;
        MICA_TRY(mica__jp_lex(p));
    }
    return mica__jp_expect(p, "}");
}

/* ( ... ): an expression, or a tuple, which is a list here. */
static mica_status parse_parens(mica__jparser *p, mica__jnode **out)
{
    MICA_TRY(mica__jp_lex(p));
    if (!mica__jp_is_op(p, ")")) {
        MICA_TRY(mica__jp_expression(p, out));
        if (!mica__jp_is_op(p, ",")) return mica__jp_expect(p, ")");
        MICA_TRY(mica__jp_lex(p));
    } else *out = NULL;
    mica__jnode *first = *out;
    MICA_TRY(mica__jp_node(p, MICA__J_LIST, out));
    (*out)->list = first;
    return parse_list(p, ")", false, first ? &first->next : &(*out)->list);
}

static mica_status parse_word(mica__jparser *p, mica__jnode **out)
{
    static const struct {
        const char *name;
        mica__jop op;
        int64_t number;
    } words[] = {{"true", MICA__J_BOOL, 1},  {"True", MICA__J_BOOL, 1}, {"false", MICA__J_BOOL, 0},
                 {"False", MICA__J_BOOL, 0}, {"none", MICA__J_NONE, 0}, {"None", MICA__J_NONE, 0}};
    MICA_TRY(mica__jp_node(p, MICA__J_NAME, out));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (mica__jp_is_name(p, words[i].name)) (*out)->op = words[i].op, (*out)->number = words[i].number;
    (*out)->text = p->token;
    (*out)->length = p->n;
    return mica__jp_lex(p);
}

static mica_status parse_strings(mica__jparser *p, mica__jnode **out)
{
    MICA_TRY(mica__jp_node(p, MICA__J_STRING, out));
    mica__jnode *node = *out;
    node->text = p->token, node->length = p->n;
    MICA_TRY(mica__jp_lex(p));
    if (p->kind == MICA__JT_STRING) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "two adjacent strings");
    return MICA_OK;
}

static mica_status parse_primary(mica__jparser *p, mica__jnode **out)
{
    if (p->kind == MICA__JT_STRING) return parse_strings(p, out);
    if (p->kind == MICA__JT_NAME) return parse_word(p, out);
    if (p->kind == MICA__JT_NUMBER) {
        MICA_TRY(mica__jp_node(p, MICA__J_NUMBER, out));
        (*out)->number = p->number;
        return mica__jp_lex(p);
    }
    if (mica__jp_is_op(p, "(")) return parse_parens(p, out);
    if (mica__jp_is_op(p, "{")) return parse_dict(p, out);
    if (!mica__jp_is_op(p, "[")) return mica__jp_fail_missing(p, "an expression");
    MICA_TRY(mica__jp_node(p, MICA__J_LIST, out));
    MICA_TRY(mica__jp_lex(p));
    return parse_list(p, "]", false, &(*out)->list);
}

/* Called after "[": an index, or up to three parts of a slice. */
static mica_status parse_subscript(mica__jparser *p, mica__jnode **out)
{
    mica__jnode *parts[3] = {NULL, NULL, NULL}, *node;
    int n = 0;
    for (;; n++) {
        if (n == 3) return mica__jp_fail_missing(p, "]");
        if (mica__jp_is_op(p, ":") || mica__jp_is_op(p, "]")) MICA_TRY(mica__jp_node(p, MICA__J_NONE, &parts[n]));
        else MICA_TRY(mica__jp_expression(p, &parts[n]));
        if (mica__jp_is_op(p, ","))
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "an index of several values");
        if (!mica__jp_is_op(p, ":")) break;
        MICA_TRY(mica__jp_lex(p));
    }
    if (n == 0 && parts[0]->op == MICA__J_NONE && mica__jp_is_op(p, "]") && !parts[0]->text)
        return mica__jp_fail_missing(p, "an index");
    MICA_TRY(mica__jp_node(p, n ? MICA__J_SLICE : MICA__J_ITEM, &node));
    node->a = *out;
    if (n == 0) node->b = parts[0];
    else {
        if (!parts[2]) MICA_TRY(mica__jp_node(p, MICA__J_NONE, &parts[2]));
        node->list = parts[0];
        parts[0]->next = parts[1];
        parts[1]->next = parts[2];
    }
    *out = node;
    return mica__jp_expect(p, "]");
}

/* May this token begin the argument of a test that has no brackets: x is eq y? */
static bool begins_argument(const mica__jparser *p)
{
    if (p->kind == MICA__JT_NAME)
        return !mica__jp_is_name(p, "else") && !mica__jp_is_name(p, "or") && !mica__jp_is_name(p, "and");
    return p->kind == MICA__JT_STRING || p->kind == MICA__JT_NUMBER || mica__jp_is_op(p, "[") || mica__jp_is_op(p, "{");
}

static mica_status parse_postfix(mica__jparser *p, mica__jnode **out);

/* A filter or a test, with its arguments: a | name(...), a is [not] name [argument]. */
static mica_status parse_named(mica__jparser *p, mica__jop op, mica__jnode **out)
{
    mica__jnode *node;
    MICA_TRY(mica__jp_node(p, op, &node));
    node->a = *out;
    MICA_TRY(mica__jp_lex(p));
    if (op == MICA__J_TEST && mica__jp_is_name(p, "not")) {
        node->number = 1;
        MICA_TRY(mica__jp_lex(p));
    }
    MICA_TRY(mica__jp_expect_name(p, &node->text, &node->length));
    *out = node;
    if (mica__jp_is_op(p, "(")) {
        MICA_TRY(mica__jp_lex(p));
        return parse_list(p, ")", true, &node->list);
    }
    if (op != MICA__J_TEST || !begins_argument(p)) return MICA_OK;
    if (mica__jp_is_name(p, "is")) return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "two tests in a row");
    MICA_TRY(parse_primary(p, &node->list));
    return parse_postfix(p, &node->list);
}

static mica_status parse_call(mica__jparser *p, mica__jnode **out)
{
    mica__jnode *node;
    MICA_TRY(mica__jp_node(p, MICA__J_CALL, &node));
    node->a = *out;
    *out = node;
    MICA_TRY(mica__jp_lex(p));
    return parse_list(p, ")", true, &node->list);
}

/* What may follow a primary expression: .name, [item] and (arguments). */
static mica_status parse_postfix(mica__jparser *p, mica__jnode **out)
{
    for (;;) {
        mica__jnode *node;
        if (mica__jp_is_op(p, ".")) {
            MICA_TRY(mica__jp_node(p, MICA__J_ATTR, &node));
            node->a = *out;
            MICA_TRY(mica__jp_lex(p));
            if (p->kind == MICA__JT_NUMBER)
                return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "an index after a point");
            MICA_TRY(mica__jp_expect_name(p, &node->text, &node->length));
            *out = node;
        } else if (mica__jp_is_op(p, "[")) {
            MICA_TRY(mica__jp_lex(p));
            MICA_TRY(parse_subscript(p, out));
        } else if (mica__jp_is_op(p, "(")) MICA_TRY(parse_call(p, out));
        else return MICA_OK;
    }
}

/* What may follow a signed expression: filters and tests. As in Jinja, no .name and no [item] may follow them. */
static mica_status parse_filters(mica__jparser *p, mica__jnode **out)
{
    for (;;) {
        if (mica__jp_is_op(p, "|")) MICA_TRY(parse_named(p, MICA__J_FILTER, out));
        else if (mica__jp_is_name(p, "is")) MICA_TRY(parse_named(p, MICA__J_TEST, out));
        else if (mica__jp_is_op(p, "(")) MICA_TRY(parse_call(p, out));
        else return MICA_OK;
    }
}

/* -a|f is (-a)|f. */
static mica_status parse_unary(mica__jparser *p, bool filters, mica__jnode **out)
{
    if (mica__jp_is_op(p, "-") || mica__jp_is_op(p, "+")) {
        mica__jnode *node;
        MICA_TRY(mica__jp_enter(p));
        MICA_TRY(mica__jp_node(p, MICA__J_MINUS, &node));
        node->number = mica__jp_is_op(p, "+");
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(parse_unary(p, false, &node->a));
        *out = node;
        p->nesting--;
    } else MICA_TRY(parse_primary(p, out));
    MICA_TRY(parse_postfix(p, out));
    return filters ? parse_filters(p, out) : MICA_OK;
}

/* Operators with Jinja's precedence; level 0 binds least. */
static const struct {
    const char *text;
    int level;
    mica__jbinary op;
} jbinaries[] = {
    /* clang-format off */
    {"==", 0, MICA__JB_EQ},
    {"!=", 0, MICA__JB_NE},
    {"<",  0, MICA__JB_LT},
    {"<=", 0, MICA__JB_LE},
    {">",  0, MICA__JB_GT},
    {">=", 0, MICA__JB_GE},
    {"in", 0, MICA__JB_IN},
    {"+",  1, MICA__JB_ADD},
    {"-",  1, MICA__JB_SUB},
    {"~",  2, MICA__JB_JOIN},
    {"*",  3, MICA__JB_MUL},
    {"/",  3, MICA__JB_DIV},
    {"//", 3, MICA__JB_FLOOR},
    {"%",  3, MICA__JB_MOD},
    /* clang-format on */
};

static mica_status parse_binary(mica__jparser *p, int level, mica__jnode **out)
{
    if (level == 4) return parse_unary(p, true, out);
    mica__jnode *right = NULL; /* of the comparison before */
    MICA_TRY(parse_binary(p, level + 1, out));
    for (;;) {
        int found = -1;
        bool negated = false;
        if (level == 0 && mica__jp_is_name(p, "not")) { /* a not in b */
            MICA_TRY(mica__jp_lex(p));
            if (!mica__jp_is_name(p, "in")) return mica__jp_fail_missing(p, "in");
            negated = true;
        }
        for (int i = 0; i < (int)(sizeof jbinaries / sizeof jbinaries[0]); i++)
            if (jbinaries[i].level == level &&
                (jbinaries[i].op == MICA__JB_IN ? mica__jp_is_name(p, "in") : mica__jp_is_op(p, jbinaries[i].text)))
                found = i;
        if (found < 0) return MICA_OK;
        mica__jnode *node;
        MICA_TRY(mica__jp_node(p, MICA__J_BINARY, &node));
        node->number = negated ? MICA__JB_NOT_IN : jbinaries[found].op;
        node->a = right ? right : *out;
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(parse_binary(p, level + 1, &node->b));
        if (right) { /* a < b < c is a < b and b < c */
            mica__jnode *both;
            MICA_TRY(mica__jp_node(p, MICA__J_AND, &both));
            both->a = *out;
            both->b = node;
            *out = both;
        } else *out = node;
        if (level == 0) right = node->b;
    }
}

mica_status mica__jp_logic(mica__jparser *p, int level, mica__jnode **out)
{
    mica__jnode *node;
    if (level == 2) {
        int negations = 0;
        for (; mica__jp_is_name(p, "not"); negations++) MICA_TRY(mica__jp_lex(p));
        MICA_TRY(parse_binary(p, 0, out));
        for (; negations > 0; negations--) {
            MICA_TRY(mica__jp_node(p, MICA__J_NOT, &node));
            node->a = *out;
            *out = node;
            if (negations > MICA__JINJA_NESTING)
                return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "too many 'not'");
        }
        return MICA_OK;
    }
    MICA_TRY(mica__jp_logic(p, level + 1, out));
    while (mica__jp_is_name(p, level ? "and" : "or")) {
        MICA_TRY(mica__jp_node(p, level ? MICA__J_AND : MICA__J_OR, &node));
        node->a = *out;
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(mica__jp_logic(p, level + 1, &node->b));
        *out = node;
    }
    return MICA_OK;
}

mica_status mica__jp_expression(mica__jparser *p, mica__jnode **out)
{
    MICA_TRY(mica__jp_enter(p));
    MICA_TRY(mica__jp_logic(p, 0, out));
    while (mica__jp_is_name(p, "if")) {
        mica__jnode *node;
        MICA_TRY(mica__jp_node(p, MICA__J_CHOICE, &node));
        node->a = *out;
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(mica__jp_logic(p, 0, &node->b));
        if (mica__jp_is_name(p, "else")) {
            MICA_TRY(mica__jp_lex(p));
            MICA_TRY(mica__jp_expression(p, &node->other));
        }
        *out = node;
    }
    p->nesting--;
    return MICA_OK;
}
