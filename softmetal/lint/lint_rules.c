/* Rules of Metal that need only tokens, no types: words and constructs of C++14 that
 * MSL does not have, pointers and references without an address space, variables
 * where they are not allowed.
 *
 * The walk tracks only this structure: the kind of the enclosing braces (namespace,
 * struct, function, kernel), and where a statement begins. */
#include "lint/lint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum place { PLACE_NAMESPACE, PLACE_TYPE, PLACE_FUNCTION, PLACE_KERNEL } place;

static const char *const spaces[] = {"device", "constant", "threadgroup", "thread", "ray_data", "object_data", NULL};
static const char *const access[] = {"public", "private", "protected", NULL};
static const char *const words_that_call[] = {"return", "if",   "while", "for", "switch",
                                              "sizeof", "else", "case",  "do",  NULL};

/* ---- words ---------------------------------------------------------------------------------- */

static const struct {
    const char *word, *why;
} banned[] = {
    {"double", "MSL has no double"},
    {"goto", "MSL has no goto"},
    {"virtual", "MSL has no virtual functions"},
    {"new", "MSL has no new"},
    {"delete", "MSL has no delete"},
    {"throw", "MSL has no exceptions"},
    {"try", "MSL has no exceptions"},
    {"catch", "MSL has no exceptions"},
    {"dynamic_cast", "MSL has no dynamic_cast"},
    {"typeid", "MSL has no type information at run time"},
    {"thread_local", "MSL has no thread_local"},
    {"register", "MSL has no register"},
    {"asm", "MSL has no inline assembler"},
    {"__asm__", "MSL has no inline assembler"},
    {"__asm", "MSL has no inline assembler"},
    {"__int128", "MSL has no integers of 128 bits"},
};

static void check_word(const lint *l, int i)
{
    for (size_t b = 0; b < sizeof banned / sizeof *banned; b++)
        if (is(l, i, banned[b].word) && !(is(l, i, "delete") && is(l, i - 1, "=")))
            lint_report(l->out, l->tokens, i, "'%s': %s", banned[b].word, banned[b].why);
    if (is(l, i, "std") && is(l, i + 1, "::")) lint_report(l->out, l->tokens, i, "'std::': MSL has no C++ library");
    if (is(l, i, "auto") && is(l, i + 1, "[")) lint_report(l->out, l->tokens, i, "structured binding: MSL is C++14");
    if (is(l, i, "long") && is(l, i + 1, "long")) lint_report(l->out, l->tokens, i, "MSL has no long long");
}

/* 1.5l, 1h and 1f; not 15l, nor 0x1fL. */
static void check_number(const lint *l, int i)
{
    const msl_token *token = &l->tokens->list[i];
    const char *text = l->tokens->text + token->at;
    const char last = text[token->length - 1];
    const bool hex = token->length > 1 && (text[1] == 'x' || text[1] == 'X');
    bool real = false;
    for (uint32_t k = 0; k < token->length; k++)
        real |= text[k] == '.' || (hex ? text[k] == 'p' || text[k] == 'P' : text[k] == 'e' || text[k] == 'E');
    if (real && (last == 'l' || last == 'L')) lint_report(l->out, l->tokens, i, "MSL has no long double");
    if (!real && !hex && (last == 'h' || last == 'H' || last == 'f' || last == 'F'))
        lint_report(l->out, l->tokens, i, "the suffix %c needs a decimal point in the number", last);
}

/* [...] where a value is expected is not a subscript. */
static void check_lambda(const lint *l, int i)
{
    static const char *const before[] = {"=", "(", ",", "{", ";", "return", "}", ":", "?", NULL};
    if (!is(l, i, "[") || is_attribute(l, i) || is(l, i - 1, "[") || !is_any(l, i - 1, before)) return;
    const int end = match(l, i);
    if (end > 0 && (is(l, end + 1, "(") || is(l, end + 1, "{")))
        lint_report(l->out, l->tokens, i, "MSL has no lambda expressions");
}

/* ---- pointers and references -------------------------------------------------------------------- */

static bool has_space(const lint *l, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (is_any(l, i, spaces)) return true;
    return false;
}

int lint_angle_end(const lint *l, int open, int last)
{
    if (!is(l, open, "<") || !is_name(l, open - 1)) return -1;
    int depth = 0;
    for (int i = open; i <= last; i++) {
        depth += is(l, i, "<") ? 1 : is(l, i, ">") ? -1 : is(l, i, ">>") ? -2 : 0;
        if (depth <= 0) return i;
        if (is(l, i, ";") || is(l, i, "{")) return -1;
        if ((is(l, i, "(") || is(l, i, "[")) && match(l, i) > 0) i = match(l, i);
    }
    return -1;
}

int lint_pointer_in(const lint *l, int first, int last)
{
    for (int i = first; i <= last; i++) {
        if (is(l, i, "=")) return -1;
        if (is(l, i, "*") || is(l, i, "&")) return i;
        if (is(l, i, "&&")) return -1;
        const int angle = lint_angle_end(l, i, last);
        if (angle > 0) i = angle;
        if (opens(l, i)) i = match(l, i);
    }
    return -1;
}

static void check_declarator(const lint *l, int first, int last, const char *what)
{
    const int at = lint_pointer_in(l, first, last);
    if (at >= 0 && !has_space(l, first, last))
        lint_report(l->out, l->tokens, at, "%s without an address space in %s",
                    is(l, at, "*") ? "a pointer" : "a reference", what);
}

bool lint_next_parameter(const lint *l, int open, int *at, int *first, int *last)
{
    const int close = match(l, open);
    if (*at >= close) return false;
    int i = *first = *at;
    for (; i < close && !is(l, i, ","); i++) {
        const int angle = lint_angle_end(l, i, close - 1);
        if (angle > 0) i = angle;
        else if (opens(l, i)) i = match(l, i);
    }
    *last = i - 1;
    *at = i + 1;
    return true;
}

int lint_count(const lint *l, int open)
{
    int values = 0;
    for (int at = open + 1, first, last; lint_next_parameter(l, open, &at, &first, &last);) values++;
    return values;
}

/* The word of a space other than thread that applies to a value: not in brackets, not before a * & or [. */
static int space_of_value(const lint *l, int first, int last)
{
    int found = -1;
    for (int i = first; i <= last && !is(l, i, "="); i++) {
        const int angle = lint_angle_end(l, i, last);
        if (is(l, i, "*") || is(l, i, "&") || is(l, i, "&&")) return -1;
        if (is(l, i, "[") && !is_attribute(l, i)) return -1;
        if (angle > 0) i = angle;
        else if (opens(l, i)) i = match(l, i);
        else if (is(l, i, "device") || is(l, i, "constant") || is(l, i, "threadgroup")) found = i;
    }
    return found;
}

static void check_parameters(const lint *l, int open)
{
    for (int at = open + 1, first, last; lint_next_parameter(l, open, &at, &first, &last);) {
        check_declarator(l, first, last, "a parameter");
        const int space = space_of_value(l, first, last);
        if (space >= 0)
            lint_report(l->out, l->tokens, space, "an address space of a parameter that is passed by value");
    }
}

/* (T *) and x_cast<T *> */
static void check_cast(const lint *l, int i)
{
    if (is_name(l, i) && is(l, i + 1, "<")) {
        static const char *const casts[] = {"reinterpret_cast", "static_cast", "const_cast", NULL};
        if (!is_any(l, i, casts)) return;
        int end = i + 2;
        while (!is_end(l, end) && !is(l, end, "(") && !is(l, end, ";")) end++;
        check_declarator(l, i + 2, end - 1, "a cast");
    }
    if (!is(l, i, "(") || match(l, i) < 0) return;
    const int end = match(l, i);
    if (!is(l, end - 1, "*") || end - i < 3) return;
    for (int k = i + 1; k < end; k++)
        if (!is_name(l, k) && !is(l, k, "*") && !is(l, k, "::") && !is(l, k, "<") && !is(l, k, ">")) return;
    if (is_name(l, end + 1) || is(l, end + 1, "(") || is(l, end + 1, "&") || is(l, end + 1, "*"))
        check_declarator(l, i + 1, end - 1, "a cast");
}

/* ---- statements ------------------------------------------------------------------------------------ */

/* The end of the declaration that begins here: its ; or the { of its body. Attributes and brackets are skipped. */
static int declaration_end(const lint *l, int i)
{
    for (; !is_end(l, i); i++) {
        if (is(l, i, ";") || is(l, i, "{") || is(l, i, "}")) return i;
        if (opens(l, i)) i = match(l, i);
    }
    return i;
}

/* The ( of a function's parameters: after a name, before { ; const or an attribute; -1: not a function. */
static int parameters_at(const lint *l, int first, int end)
{
    static const char *const with_values[] = {"__attribute__", "alignas", "decltype", NULL};
    for (int i = first; i < end; i++) {
        if (is(l, i, "=")) return -1;
        if (is_attribute(l, i)) {
            i = match(l, i);
            continue;
        }
        if (is_any(l, i, with_values) && opens(l, i + 1)) {
            i = match(l, i + 1);
            continue;
        }
        if (is(l, i, "operator")) { /* its operator sign; () and [] are brackets */
            const int open = is(l, i + 1, "(") || is(l, i + 1, "[") ? match(l, i + 1) + 1 : i + 2;
            return is(l, open, "(") && match(l, open) > 0 ? open : -1;
        }
        if (is(l, i, "(") && i > first && (is_name(l, i - 1) || is(l, i - 1, ">")) && match(l, i) > 0) return i;
    }
    return -1;
}

/* Checks a variable's declaration, as far as tokens show one: TYPE ... NAME then = ; , [ or (. */
static void check_local(const lint *l, int first, int end, place where)
{
    static const char *const starts[] = {"const",    "constexpr",   "volatile", "static",   "auto",   "device",
                                         "constant", "threadgroup", "thread",   "unsigned", "signed", NULL};
    int i = first;
    if (is_any(l, i, words_that_call) || is(l, i, "using") || is(l, i, "typedef") || is(l, i, "template")) return;
    if (is_name(l, i) && is(l, i + 1, ":") && !is(l, i, "default") && !is_any(l, i, access))
        lint_report(l->out, l->tokens, i, "MSL has no labels");
    while (is_any(l, i, starts)) i++;
    const bool qualified = i > first;
    if (is_name(l, i) && !qualified && !is_name(l, i + 1) && !is(l, i + 1, "*") && !is(l, i + 1, "&") &&
        !is(l, i + 1, "<") && !is(l, i + 1, "::"))
        return;
    int name = i;
    while (name < end && !is(l, name, "=") && !is(l, name, ";") && !is(l, name, ",") && !is(l, name, "(") &&
           !is(l, name, "[") && !is(l, name, "{"))
        name++;
    const int at = lint_pointer_in(l, i, name - 1);
    /* a * b; as a statement has no effect, so it is a declaration. a[i] * b = c: no plain name before the star. */
    const bool declares = at > first && (is_name(l, at - 1) || is(l, at - 1, ">") || is(l, at - 1, "*")) &&
                          is_name(l, name - 1) && name - 1 > at;
    if (declares && !has_space(l, first, name - 1))
        lint_report(l->out, l->tokens, at, "%s without an address space in a declaration",
                    is(l, at, "*") ? "a pointer" : "a reference");
    if (at < 0 && contains(l, first, i, "threadgroup") && where != PLACE_KERNEL)
        lint_report(l->out, l->tokens, first, "a variable in threadgroup memory outside a kernel's body");
    if (contains(l, first, i, "static") && !contains(l, first, name, "constant"))
        lint_report(l->out, l->tokens, first, "a static variable in a function");
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

static void walk(lint *l, int first, int last, place where);

/* The token after template <...>, and the < of the last one. After a name < opens; in sizeof(T) < 8 it compares. */
static int after_template(const lint *l, int first, int *header)
{
    int depth = 0;
    if (!is(l, first, "template") || !is(l, first + 1, "<")) return first;
    for (int i = first + 1; !is_end(l, i) && !is(l, i, ";"); i++) {
        if (is(l, i, "<") && is_name(l, i - 1)) depth++;
        else if (is(l, i, ">") && --depth == 0) {
            *header = first + 1;
            return after_template(l, i + 1, header);
        } else if (opens(l, i)) i = match(l, i);
    }
    return first;
}

static void walk_function(lint *l, const lint_function *f, int begin)
{
    check_parameters(l, f->open);
    check_declarator(l, begin, f->open - 2, "a result");
    if (is(l, f->name, "main")) lint_report(l->out, l->tokens, f->name, "a function cannot be called main");
    if (f->is_kernel) lint_kernel(l, begin, f->open);
    if (f->is_kernel && f->is_member) lint_report(l->out, l->tokens, f->name, "a kernel cannot be a member");
    if (f->end < 0) return;
    if (sm_grow((void **)&l->functions, l->functions_count, &l->functions_room, sizeof *l->functions))
        l->functions[l->functions_count++] = *f;
    walk(l, f->body + 1, f->end - 1, f->is_kernel ? PLACE_KERNEL : PLACE_FUNCTION);
}

/* T S::x[2]; is initialised in S. */
static bool is_members(const lint *l, int begin, int end)
{
    int name = begin;
    while (name < end && !is(l, name, "[")) name++;
    return is(l, name - 2, "::");
}

static void check_variable(const lint *l, int begin, int end, bool has_value, place where)
{
    const bool is_constant = contains(l, begin, end, "constant");
    if (where == PLACE_NAMESPACE && is_name(l, begin) && end > begin + 1) {
        if (!is_constant && !contains(l, begin, end, "sampler"))
            lint_report(l->out, l->tokens, begin, "a variable outside functions that is not constant");
        else if (!has_value && !contains(l, begin, end, "=") && !contains(l, begin, end, "function_constant") &&
                 !is(l, begin, "extern") && !is_members(l, begin, end))
            lint_report(l->out, l->tokens, begin, "a constant without a value");
    }
    if (where != PLACE_TYPE) return;
    check_declarator(l, begin, end - 1, "a member");
    if (contains(l, begin, end, "static") && !is_constant)
        lint_report(l->out, l->tokens, begin, "a static member that is not constant");
    for (int i = begin; i + 1 < end && !is(l, i, "="); i++)
        if (is(l, i, ":") && is_number(l, i + 1)) lint_report(l->out, l->tokens, i, "MSL has no bit-fields");
}

/* A declaration outside functions that begins at first; returns its last token. */
static int walk_declaration(lint *l, int first, place where, int scope)
{
    int header = -1;
    int begin = after_template(l, first, &header);
    static const char *const types[] = {"struct", "class", "union", "enum", NULL};
    static const char *const plain[] = {"using",  "typedef", "static_assert", "friend",
                                        "public", "private", "template",      NULL};
    const int end = declaration_end(l, begin);
    const bool has_body = is(l, end, "{") && match(l, end) > 0;
    const bool linkage = is(l, begin, "extern") && l->tokens->list[begin + 1].kind == MSL_STRING;
    if (is(l, begin, "namespace") || (linkage && end == begin + 2)) {
        if (has_body) walk(l, end + 1, match(l, end) - 1, PLACE_NAMESPACE);
        return has_body ? match(l, end) : end;
    }
    begin += linkage ? 2 : 0;
    const int type = is(l, begin, "typedef") ? begin + 1 : begin;
    if (is_any(l, type, types) && has_body) {
        if (!is(l, type, "enum")) walk(l, end + 1, match(l, end) - 1, PLACE_TYPE);
        return declaration_end(l, match(l, end) + 1); /* its ; */
    }
    if (is(l, begin, "using") || is(l, begin, "typedef")) {
        const int from = is(l, begin + 2, "=") ? begin + 3 : begin + 1;
        check_declarator(l, from, end - 1, "a type's name");
        if (has_body) return declaration_end(l, match(l, end) + 1);
    }
    if (is_any(l, begin, plain) || is_any(l, begin, types)) return end;
    const int open = parameters_at(l, begin, end);
    if (open > 0) {
        const lint_function f = {open - 1,
                                 open,
                                 end,
                                 has_body ? match(l, end) : -1,
                                 header,
                                 scope,
                                 lint_count(l, open),
                                 contains(l, begin, open, "kernel"),
                                 where == PLACE_TYPE};
        walk_function(l, &f, begin);
        return has_body ? match(l, end) : end;
    }
    check_variable(l, begin, end, has_body, where);
    return has_body ? declaration_end(l, match(l, end) + 1) : end; /* an initialiser in braces, then ; */
}

/* Returns whether a statement begins after this token. Not in the condition of a for, nor in a braced list. */
static bool begins_after(const lint *l, int i, int depth)
{
    static const char *const before_block[] = {")", "else", "do", ";", "{", "}", ":", NULL};
    if (is(l, i, "(")) return is(l, i - 1, "for");
    if (is(l, i, ")")) return match(l, i) > 0 && is_any(l, match(l, i) - 1, words_that_call);
    if (is(l, i, "{")) return is_any(l, i - 1, before_block);
    if (is(l, i, "}")) return match(l, i) > 0 && is_any(l, match(l, i) - 1, before_block); /* T{}.x continues */
    return is(l, i, "else") || (is(l, i, ";") && depth == 0);
}

static void walk(lint *l, int first, int last, place where)
{
    bool begins = true; /* a statement begins */
    int depth = 0;      /* number of open ( */
    for (int i = first; i <= last; i++) {
        if (l->tokens->list[i].kind == MSL_DIRECTIVE) continue;
        if (where <= PLACE_TYPE) {
            if (is(l, i, ";") || is(l, i, "}")) continue;
            if (is_any(l, i, access) && is(l, i + 1, ":")) {
                i++;
                continue;
            }
            const int end = walk_declaration(l, i, where, first);
            i = end > i ? end : i;
            continue;
        }
        if (begins) check_local(l, i, declaration_end(l, i), where);
        check_cast(l, i);
        depth += is(l, i, "(") ? 1 : is(l, i, ")") ? -1 : 0;
        begins = begins_after(l, i, depth);
    }
}

void lint_rules(const msl_tokens *tokens, sm_text *out)
{
    lint l = {tokens, out, NULL, 0, 0};
    for (int i = 0; i < tokens->count; i++) {
        if (tokens->list[i].kind == MSL_NAME) check_word(&l, i);
        if (tokens->list[i].kind == MSL_NUMBER) check_number(&l, i);
        check_lambda(&l, i);
    }
    walk(&l, 0, tokens->count - 2, PLACE_NAMESPACE);
    lint_calls(&l);
    free(l.functions);
}
