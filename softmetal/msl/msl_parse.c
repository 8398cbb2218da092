/* Finds the constructs of MSL that C++ does not have, in one pass over the
 * tokens. It keeps a stack of scopes (namespace, class, function body) and the
 * start of the current declaration; each construct becomes an edit or an entry
 * of the unit. An unknown construct is an error: a threadgroup variable that is
 * treated as an ordinary one would silently compute wrong results. */
#include "msl_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- small helpers, shared with msl_kernel.c ---- */

const char *msl_own(msl_unit *unit, sm_text *text)
{
    if (text->failed || !text->bytes ||
        !sm_grow((void **)&unit->owned, unit->owned_count, &unit->owned_room, sizeof *unit->owned)) {
        sm_text_free(text);
        return NULL;
    }
    return unit->owned[unit->owned_count++] = text->bytes;
}

bool msl_add_edit(msl_unit *unit, int first, int last, const char *text)
{
    if (!sm_grow((void **)&unit->edits, unit->edits_count, &unit->edits_room, sizeof *unit->edits)) return false;
    unit->edits[unit->edits_count++] = (msl_edit){first, last, text};
    return true;
}

bool msl_error(const msl_unit *unit, int token, char **message, const char *format, ...)
{
    char what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    const msl_token *t = &unit->tokens.list[token];
    sm_set_message(message, "%s:%d: error: %s", t->file >= 0 ? unit->tokens.files[t->file] : "program_source", t->line,
                   what);
    return false;
}

bool parse_is(const parser *p, int i, const char *word) { return msl_is(&p->unit->tokens, i, word); }
const msl_token *parse_token(const parser *p, int i) { return &p->unit->tokens.list[i]; }
bool parse_is_name(const parser *p, int i) { return i >= 0 && parse_token(p, i)->kind == MSL_NAME; }

bool parse_drop(parser *p, int first, int last)
{
    for (int i = first; i <= last; i++) p->seen[i] = 1;
    return msl_add_edit(p->unit, first, last, "") || msl_error(p->unit, first, p->message, "out of memory");
}

/* Returns the last token of [[ ... ]] at i, or -1. */
int parse_attribute_end(const parser *p, int i)
{
    if (!parse_is(p, i, "[") || !parse_is(p, i + 1, "[")) return -1;
    int end = parse_token(p, i)->match;
    return end > 0 && parse_token(p, i + 1)->match == end - 1 ? end : -1;
}

/* The token after a template list that opens at i; -1 if nothing closes it before `end`. */
int parse_after_angles(const parser *p, int i, int end)
{
    int depth = 0;
    for (; i < end; i++) {
        if (parse_is(p, i, "(") || parse_is(p, i, "[") || parse_is(p, i, "{")) {
            i = parse_token(p, i)->match;
        } else if (parse_is(p, i, "<") && (depth == 0 || parse_is_name(p, i - 1))) {
            depth++;
        } else if (parse_is(p, i, ">") && --depth == 0) {
            return i + 1;
        } else if (parse_is(p, i, ";")) {
            return -1;
        }
    }
    return -1;
}

/* Tokens as C++ text on one line, without attributes and address spaces, which C++ does not have. */
const char *parse_plain(parser *p, int first, int last)
{
    sm_text text = {0};
    for (int i = first; i <= last; i++) {
        int end = parse_attribute_end(p, i);
        if (end > 0) {
            i = end;
            continue;
        }
        if (parse_token(p, i)->kind == MSL_DIRECTIVE || parse_is(p, i, "threadgroup")) continue;
        const msl_token *t = parse_token(p, i);
        bool glue = !text.length || i == first || parse_is(p, i, "::") || parse_is(p, i - 1, "::");
        if (!glue) sm_text_add(&text, " ", 1);
        sm_text_add(&text, p->unit->tokens.text + t->at, t->length);
    }
    sm_text_add(&text, "", 0);
    return msl_own(p->unit, &text);
}

/* Evaluates numbers, + - * / and parentheses; clears *known at any other token. */
static long evaluate(const parser *p, int *i, int last, int level, bool *known)
{
    long value = 0;
    if (parse_is(p, *i, "(")) {
        int inner = *i + 1, close = parse_token(p, *i)->match;
        value = evaluate(p, &inner, close - 1, 0, known);
        *i = close + 1;
    } else if (*i <= last && parse_token(p, *i)->kind == MSL_NUMBER) {
        char *end, digits[32] = {0};
        const msl_token *t = parse_token(p, *i);
        memcpy(digits, p->unit->tokens.text + t->at, t->length < 31 ? t->length : 31);
        value = strtol(digits, &end, 0);
        if (strspn(end, "uUlL") != strlen(end)) *known = false;
        ++*i;
    } else {
        *known = false;
    }
    while (*known && *i <= last) {
        bool product = parse_is(p, *i, "*") || parse_is(p, *i, "/");
        bool sum = parse_is(p, *i, "+") || parse_is(p, *i, "-");
        if (!product && !sum) *known = false;
        if (!*known || (sum && level > 0)) break;
        char op = p->unit->tokens.text[parse_token(p, *i)->at];
        ++*i;
        long right = evaluate(p, i, last, 1 + product, known);
        if (op == '/' && right == 0) *known = false;
        if (*known)
            value = op == '*' ? value * right : op == '/' ? value / right : op == '+' ? value + right : value - right;
    }
    return value;
}

int parse_number(const parser *p, int first, int last)
{
    bool known = first <= last;
    int i = first;
    long value = known ? evaluate(p, &i, last, 0, &known) : -1;
    return known && i > last && value >= 0 && value < 1 << 20 ? (int)value : -1;
}

/* ---- scopes ---- */

/* The first token of the declaration itself: after template<...> and attributes. */
int parse_after_template(const parser *p, int i, int end)
{
    while (i >= 0 && i < end && parse_is(p, i, "template") && parse_is(p, i + 1, "<"))
        i = parse_after_angles(p, i + 1, end);
    return i;
}

static scope_kind scope_of(const parser *p, int brace)
{
    if (p->depth && p->scopes[p->depth - 1].kind >= SCOPE_FUNCTION) return p->scopes[p->depth - 1].kind;
    int i = parse_after_template(p, p->start, brace);
    if (i < 0) i = p->start;
    bool classy = false, call = false;
    for (; i < brace; i++) {
        int end = parse_attribute_end(p, i);
        if (end > 0) {
            i = end;
        } else if (parse_is(p, i, "namespace") || parse_is(p, i, "extern")) {
            return SCOPE_NAMESPACE;
        } else if (parse_is(p, i, "struct") || parse_is(p, i, "class") || parse_is(p, i, "union") ||
                   parse_is(p, i, "enum")) {
            classy = true;
        } else if (parse_is(p, i, "alignas") || parse_is(p, i, "__attribute__") || parse_is(p, i, "decltype")) {
            if (parse_is(p, i + 1, "(")) i = parse_token(p, i + 1)->match;
        } else if (parse_is(p, i, "=") && !parse_is(p, i - 1, "operator")) {
            return SCOPE_VALUE;
        } else if (parse_is(p, i, "(")) {
            call = true;
            i = parse_token(p, i)->match;
        } else if (parse_is(p, i, "<") && parse_is_name(p, i - 1) && !parse_is(p, i - 1, "operator")) {
            int after = parse_after_angles(p, i, brace);
            if (after > 0) i = after - 1;
        }
    }
    return call ? SCOPE_FUNCTION : classy ? SCOPE_CLASS : SCOPE_VALUE;
}

static bool open_scope(parser *p, int *at)
{
    int brace = *at;
    if (p->depth == PARSER_DEPTH) return msl_error(p->unit, brace, p->message, "blocks are nested too deeply");
    scope_kind kind = scope_of(p, brace);
    bool inner = p->depth && p->scopes[p->depth - 1].kind >= SCOPE_FUNCTION, dropped = false;
    if (!inner && (kind == SCOPE_FUNCTION || kind == SCOPE_CLASS)) {
        if (!parse_overload(p, brace, &dropped)) return false;
        if (dropped) {
            *at = p->start - 1;
            return true;
        }
    }
    scope *s = &p->scopes[p->depth++];
    *s = (scope){kind, -1, p->start, brace};
    if (kind == SCOPE_NAMESPACE && parse_is(p, brace - 1, "namespace")) s->name = -1;
    else if (kind == SCOPE_NAMESPACE && parse_is_name(p, brace - 1)) s->name = brace - 1;
    if (kind != SCOPE_VALUE) p->start = brace + 1;
    return true;
}

static void close_scope(parser *p, int brace)
{
    if (!p->depth) return;
    scope s = p->scopes[--p->depth];
    /* "struct {...} x;" and "= {...};" continue; a function or a namespace ends here. */
    p->start = s.kind == SCOPE_CLASS || s.kind == SCOPE_VALUE ? s.start : brace + 1;
    if (p->depth && p->scopes[p->depth - 1].kind == SCOPE_FUNCTION) p->start = brace + 1;
}

/* ---- threadgroup ---- */

/* The first token after the type that begins at i: words, ::, template lists. -1: not a type. */
int parse_after_type(const parser *p, int i, int end)
{
    bool named = false;
    while (i < end) {
        if (parse_is(p, i, "const") || parse_is(p, i, "volatile") || parse_is(p, i, "typename") ||
            parse_is(p, i, "struct") || parse_is(p, i, "unsigned") || parse_is(p, i, "signed") ||
            parse_is(p, i, "static") || parse_is(p, i, "coherent")) {
            named |= parse_is(p, i, "unsigned") || parse_is(p, i, "signed");
            i++;
        } else if ((parse_is(p, i, "alignas") || parse_is(p, i, "__attribute__")) && parse_is(p, i + 1, "(")) {
            i = parse_token(p, i + 1)->match + 1;
        } else if (parse_is(p, i, "decltype") && parse_is(p, i + 1, "(")) {
            i = parse_token(p, i + 1)->match + 1;
            named = true;
        } else if (parse_is(p, i, "::")) {
            i++;
            named = false;
        } else if (parse_is(p, i, "<") && named) {
            i = parse_after_angles(p, i, end);
            if (i < 0) return -1;
        } else if (parse_is_name(p, i) && (!named || parse_is(p, i, "int") || parse_is(p, i, "char") ||
                                           parse_is(p, i, "long") || parse_is(p, i, "short"))) {
            i++;
            named = true;
        } else {
            break;
        }
    }
    return named ? i : -1;
}

static bool statement_start(const parser *p, int i)
{
    for (int k = p->start; k < i; k++) {
        if (parse_is(p, k, "const") || parse_is(p, k, "static") || parse_is(p, k, "volatile")) continue;
        if (parse_is(p, k, "alignas") || parse_is(p, k, "__attribute__")) {
            k = parse_token(p, k + 1)->match;
            continue;
        }
        return false;
    }
    return true;
}

static bool threadgroup_word(parser *p, int i)
{
    int end = p->unit->tokens.count - 1;
    bool body = p->depth && p->scopes[p->depth - 1].kind == SCOPE_FUNCTION && !p->parens;
    bool prefix = body && statement_start(p, i);
    int k = i + 1;
    if (parse_is(p, k, "{") || parse_is(p, k, ";") || parse_is(p, k, ")") || parse_is(p, k, ",") ||
        parse_is(p, k, "&") || parse_is(p, k, "*") || parse_is(p, k, ">"))
        return parse_drop(p, i, i); /* T threadgroup *p, a member function's qualifier */
    k = parse_after_type(p, k, end);
    if (k < 0) return msl_error(p->unit, i, p->message, "cannot tell what 'threadgroup' qualifies here");
    bool pointer = parse_is(p, k, "*") || parse_is(p, k, "&") || parse_is(p, k, "&&") ||
                   (parse_is(p, k, "(") && (parse_is(p, k + 1, "*") || parse_is(p, k + 1, "&")));
    if (pointer) return parse_drop(p, i, i);
    if (parse_is(p, k, ">") || parse_is(p, k, ")") || parse_is(p, k, ",")) return parse_drop(p, i, i); /* only a type */
    if (p->parens && parse_is_name(p, k)) return parse_drop(p, i, i); /* an array as a parameter */
    if (!prefix || !parse_is_name(p, k))
        return msl_error(p->unit, i, p->message,
                         "'threadgroup' is not understood here: only variables of a kernel's body, "
                         "pointers and references can be in threadgroup memory");
    for (int q = k; q < end && !parse_is(p, q, ";"); q++) {
        if (parse_is(p, q, "[") || parse_is(p, q, "(")) q = parse_token(p, q)->match;
        else if (parse_is(p, q, "*") || parse_is(p, q, "&"))
            return msl_error(p->unit, i, p->message, "a threadgroup variable and a pointer in one declaration");
        else if (parse_is(p, q, "=") && parse_is(p, q + 1, "{")) { /* allowed, without effect */
            int last = parse_token(p, q + 1)->match;
            if (!parse_drop(p, q, last)) return false;
            q = last;
        } else if (parse_is(p, q, "=") || parse_is(p, q, "{"))
            return msl_error(p->unit, i, p->message, "a threadgroup variable cannot have an initial value");
    }
    for (int q = p->start; q < i; q++) /* "static threadgroup": one static is enough */
        if (parse_is(p, q, "static") && !parse_drop(p, q, q)) return false;
    return msl_add_edit(p->unit, i, i, "static thread_local") || msl_error(p->unit, i, p->message, "out of memory");
}

/* ---- literals and directives ---- */

/* MSL has no double: 0.5 is a float, 0.5h a half. */
static bool number_literal(parser *p, int i)
{
    const msl_token *t = parse_token(p, i);
    const char *s = p->unit->tokens.text + t->at;
    int n = (int)t->length;
    bool hex = n > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'), real = false;
    for (int k = 0; k < n; k++) {
        real |= s[k] == '.' || (!hex && (s[k] == 'e' || s[k] == 'E')) || s[k] == 'p' || s[k] == 'P';
        if (k + 1 < n && k > 0 && !hex && (s[k] == 'h' || s[k] == 'b') && s[0] != '0') real = true;
    }
    char last = s[n - 1], before = n > 1 ? s[n - 2] : '0';
    if (n > 3 && !memcmp(s + n - 3, "f16", 3)) return true; /* from a macro of the shim */
    sm_text text = {0};
    if (!hex && (last == 'h' || last == 'H')) {
        sm_text_print(&text, "%.*s%sf16", n - 1, s, real ? "" : ".0");
    } else if (!hex && (last == 'f' || last == 'F') && (before == 'b' || before == 'B')) {
        sm_text_print(&text, "bfloat(%.*s%sf)", n - 2, s, memchr(s, '.', (size_t)n) ? "" : ".0");
    } else if (real && last != 'f' && last != 'F') {
        if (last == 'l' || last == 'L')
            return msl_error(p->unit, i, p->message, "long double literals are not part of MSL");
        sm_text_print(&text, "%.*sf", n, s);
    } else if (!hex && !real && (last == 'f' || last == 'F')) {
        sm_text_print(&text, "%.*s.0f", n - 1, s);
    } else {
        return true;
    }
    const char *own = msl_own(p->unit, &text);
    return (own && msl_add_edit(p->unit, i, i, own)) || msl_error(p->unit, i, p->message, "out of memory");
}

static bool pragma(parser *p, int i)
{
    char words[3][16] = {"", "", ""};
    const msl_token *t = parse_token(p, i);
    char line[96] = {0};
    memcpy(line, p->unit->tokens.text + t->at, t->length < 95 ? t->length : 95);
    if (sscanf(line, "#%15s %15[a-zA-Z] %15s", words[0], words[1], words[2]) < 1 || strcmp(words[0], "pragma"))
        return msl_error(p->unit, i, p->message, "unknown directive %.40s", line);
    bool drop = !strcmp(words[1], "unroll") || !strcmp(words[1], "METAL") || !strcmp(words[1], "nounroll") ||
                !strcmp(words[1], "mark") || !strcmp(words[1], "once");
    return !drop || parse_drop(p, i, i);
}

/* ---- swizzles ---- */

static bool is_swizzle(const parser *p, int i)
{
    const msl_token *t = parse_token(p, i);
    if (t->kind != MSL_NAME || t->length < 2 || t->length > 4) return false;
    const char *s = p->unit->tokens.text + t->at;
    return strspn(s, "xyzw") >= t->length || strspn(s, "rgba") >= t->length;
}

static bool after_dot(const parser *p, int i) { return parse_is(p, i - 1, ".") || parse_is(p, i - 1, "->"); }

/* A name that the text declares itself is not a swizzle, or not always. */
static bool is_own_name(const parser *p, int i)
{
    const msl_token *t = parse_token(p, i);
    for (int k = 0; k < p->own_count; k++) {
        const msl_token *o = parse_token(p, p->own[k]);
        const char *text = p->unit->tokens.text;
        if (o->length == t->length && !memcmp(text + o->at, text + t->at, t->length)) return true;
    }
    return false;
}

/* A swizzle becomes a call that reads it, or one that returns an assignable reference. Outside templates the
 * property of that name would work too, but in templates clang finds no operators for it. */
static bool swizzle_word(parser *p, int i)
{
    static const char *const changes[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"};
    if (!after_dot(p, i) || !is_swizzle(p, i) || is_own_name(p, i) || parse_is(p, i + 1, "(")) return true;
    bool changed =
        (parse_is(p, i + 1, "<<") && parse_is(p, i + 2, "=")) || (parse_is(p, i + 1, ">") && parse_is(p, i + 2, ">="));
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) changed |= parse_is(p, i + 1, changes[k]);
    sm_text text = {0};
    const msl_token *t = parse_token(p, i);
    sm_text_print(&text, "sm_%c_%.*s()", changed ? 'r' : 'g', (int)t->length, p->unit->tokens.text + t->at);
    const char *own = msl_own(p->unit, &text);
    return (own && msl_add_edit(p->unit, i, i, own)) || msl_error(p->unit, i, p->message, "out of memory");
}

static bool find_own_names(parser *p)
{
    for (int i = 0; i < p->unit->tokens.count; i++) {
        if (!is_swizzle(p, i) || after_dot(p, i) || is_own_name(p, i)) continue;
        if (!sm_grow((void **)&p->own, p->own_count, &p->own_room, sizeof *p->own))
            return msl_error(p->unit, i, p->message, "out of memory");
        p->own[p->own_count++] = i;
    }
    return true;
}

/* ---- the pass ---- */

static bool at_token(parser *p, int *i)
{
    int at = *i, end;
    switch (parse_token(p, at)->kind) {
    case MSL_NUMBER: return number_literal(p, at);
    case MSL_DIRECTIVE:
        if (p->start == at) p->start = at + 1;
        return pragma(p, at);
    case MSL_STRING:
    case MSL_END: return true;
    default: break;
    }
    bool outside = !p->depth || p->scopes[p->depth - 1].kind == SCOPE_NAMESPACE;
    if ((end = parse_attribute_end(p, at)) > 0) {
        bool kernel = false;
        if (!parse_attributes(p, at, end, outside && !p->parens, &kernel)) return false;
        if (kernel) return parse_kernel(p, i);
        *i = end;
        return true;
    }
    if (parse_token(p, at)->kind == MSL_NAME && !swizzle_word(p, at)) return false;
    if (parse_is_trailing_space(p, at)) return parse_drop(p, at, at);
    if (parse_is(p, at, "threadgroup")) return threadgroup_word(p, at);
    if (parse_is(p, at, "is_function_constant_defined")) return parse_question(p, i);
    if (outside && !p->parens && parse_is(p, at, "kernel")) return parse_kernel(p, i);
    if (parse_is(p, at, "(")) p->parens++;
    if (parse_is(p, at, ")")) p->parens--;
    if (parse_is(p, at, "{")) {
        if (p->parens && p->depth && p->scopes[p->depth - 1].kind < SCOPE_FUNCTION) {
            *i = parse_token(p, at)->match; /* a default argument */
            return true;
        }
        return open_scope(p, i);
    }
    if (parse_is(p, at, "}")) close_scope(p, at);
    if (parse_is(p, at, ";") && !p->parens) {
        bool dropped = false;
        if (parse_is_member_function(p, at) && !parse_overload(p, at, &dropped)) return false;
        p->start = at + 1;
    }
    return true;
}

bool msl_parse(msl_unit *unit, char **message)
{
    parser p = {.unit = unit, .message = message, .seen = calloc((size_t)unit->tokens.count, 1)};
    bool good = p.seen || msl_error(unit, 0, message, "out of memory");
    good = good && find_own_names(&p);
    for (int i = 0; good && i < unit->tokens.count; i++)
        if (!p.seen[i]) good = at_token(&p, &i);
    good = good && parse_finish(&p);
    free(p.seen);
    free(p.heads);
    free(p.own);
    return good;
}

void msl_unit_free(msl_unit *unit)
{
    for (int i = 0; i < unit->owned_count; i++) free(unit->owned[i]);
    for (int i = 0; i < unit->kernels_count; i++) {
        free(unit->kernels[i].parameters);
        free(unit->kernels[i].arguments);
    }
    free(unit->owned);
    free(unit->edits);
    free(unit->kernels);
    free(unit->names);
    free(unit->constants);
    free(unit->facts);
    free(unit->questions);
    msl_tokens_free(&unit->tokens);
    *unit = (msl_unit){0};
}
