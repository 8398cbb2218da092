/* Rules of Metal that can be seen in the tokens, without types: words and constructs
 * that MSL leaves out of C++14, pointers and references without an address space,
 * variables where none may be.
 *
 * The walk knows one thing about structure: in which kind of braces it is (namespace,
 * struct, function, kernel), and where a statement begins. */
#include "lint/lint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum place { PLACE_NAMESPACE, PLACE_TYPE, PLACE_FUNCTION, PLACE_KERNEL } place;

typedef struct lint {
    const msl_tokens *tokens;
    sm_text *out;
} lint;

static bool is(const lint *l, int i, const char *word) { return i >= 0 && msl_is(l->tokens, i, word); }

static bool is_any(const lint *l, int i, const char *const *words)
{
    for (; *words != NULL; words++)
        if (is(l, i, *words)) return true;
    return false;
}

static bool is_name(const lint *l, int i) { return i >= 0 && l->tokens->list[i].kind == MSL_NAME; }
static int match(const lint *l, int i) { return l->tokens->list[i].match; }

static const char *const spaces[] = {"device", "constant", "threadgroup", "thread", "ray_data", "object_data", NULL};
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
    {"co_await", "MSL is C++14"},
    {"concept", "MSL is C++14"},
    {"requires", "MSL is C++14"},
};

static void check_word(const lint *l, int i)
{
    for (size_t b = 0; b < sizeof banned / sizeof *banned; b++)
        if (is(l, i, banned[b].word)) lint_say(l->out, l->tokens, i, "'%s': %s", banned[b].word, banned[b].why);
    if (is(l, i, "std") && is(l, i + 1, "::")) lint_say(l->out, l->tokens, i, "'std::': MSL has no C++ library");
    if (is(l, i, "auto") && is(l, i + 1, "[")) lint_say(l->out, l->tokens, i, "structured binding: MSL is C++14");
}

static bool is_attribute(const lint *l, int i) { return is(l, i, "[") && is(l, i + 1, "["); }

/* [...] where a value is expected is no subscript. */
static void check_lambda(const lint *l, int i)
{
    static const char *const before[] = {"=", "(", ",", "{", ";", "return", "}", ":", "?", NULL};
    if (!is(l, i, "[") || is_attribute(l, i) || is(l, i - 1, "[") || !is_any(l, i - 1, before)) return;
    const int end = match(l, i);
    if (end > 0 && (is(l, end + 1, "(") || is(l, end + 1, "{")))
        lint_say(l->out, l->tokens, i, "a lambda: MSL has none");
}

/* ---- pointers and references -------------------------------------------------------------------- */

static bool has_space(const lint *l, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (is_any(l, i, spaces)) return true;
    return false;
}

/* The > that closes a template's values, or -1: < compares. */
static int angle_end(const lint *l, int open, int last)
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

/* The * or & in the tokens, outside brackets and attributes and before a =; -1: none. */
static int pointer_in(const lint *l, int first, int last)
{
    for (int i = first; i <= last; i++) {
        if (is(l, i, "=")) return -1;
        if (is(l, i, "*") || is(l, i, "&")) return i;
        if (is(l, i, "&&")) return -1;
        const int angle = angle_end(l, i, last);
        if (angle > 0) i = angle;
        if ((is(l, i, "(") || is(l, i, "[") || is(l, i, "{")) && match(l, i) > 0) i = match(l, i);
    }
    return -1;
}

static void check_declarator(const lint *l, int first, int last, const char *what)
{
    const int at = pointer_in(l, first, last);
    if (at >= 0 && !has_space(l, first, last))
        lint_say(l->out, l->tokens, at, "%s without an address space in %s",
                 is(l, at, "*") ? "a pointer" : "a reference", what);
}

static void check_parameters(const lint *l, int open, bool in_kernel)
{
    const int close = match(l, open);
    int first = open + 1;
    for (int i = open + 1; i <= close; i++) {
        if ((is(l, i, "(") || is(l, i, "[") || is(l, i, "{")) && i != open && match(l, i) > 0) {
            i = match(l, i);
            continue;
        }
        const int angle = angle_end(l, i, close - 1);
        if (angle > 0) i = angle;
        if (i != close && !is(l, i, ",")) continue;
        check_declarator(l, first, i - 1, "a parameter");
        const int at = pointer_in(l, first, i - 1);
        if (in_kernel && at >= 0 && has_space(l, first, at) && !is(l, at, "&&")) {
            bool outside = false;
            for (int k = first; k < at; k++)
                outside |= is(l, k, "device") || is(l, k, "constant") || is(l, k, "threadgroup");
            if (is(l, at + 1, "*")) lint_say(l->out, l->tokens, at, "a kernel's parameter is a pointer to a pointer");
            if (!outside) lint_say(l->out, l->tokens, at, "a kernel's pointer must be device, constant or threadgroup");
        }
        first = i + 1;
    }
}

/* (T *) and x_cast<T *> */
static void check_cast(const lint *l, int i)
{
    if (is_name(l, i) && is(l, i + 1, "<")) {
        static const char *const casts[] = {"reinterpret_cast", "static_cast", "const_cast", NULL};
        if (!is_any(l, i, casts)) return;
        int end = i + 2;
        while (l->tokens->list[end].kind != MSL_END && !is(l, end, "(") && !is(l, end, ";")) end++;
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

/* The end of the declaration that begins here: its ; or the { of its body, attributes and brackets stepped over. */
static int declaration_end(const lint *l, int i)
{
    for (; l->tokens->list[i].kind != MSL_END; i++) {
        if (is(l, i, ";") || is(l, i, "{") || is(l, i, "}")) return i;
        if ((is(l, i, "(") || is(l, i, "[")) && match(l, i) > 0) i = match(l, i);
    }
    return i;
}

/* The ( of a function's parameters: after a name, before { ; const or an attribute; -1: no function. */
static int parameters_at(const lint *l, int first, int end)
{
    for (int i = first; i < end; i++) {
        if (is(l, i, "=")) return -1;
        if (is_attribute(l, i)) {
            i = match(l, i);
            continue;
        }
        if (is(l, i, "__attribute__") && is(l, i + 1, "(")) {
            i = match(l, i + 1);
            continue;
        }
        if (is(l, i, "operator")) { /* its sign, of which () and [] are brackets */
            const int open = is(l, i + 1, "(") || is(l, i + 1, "[") ? match(l, i + 1) + 1 : i + 2;
            return is(l, open, "(") && match(l, open) > 0 ? open : -1;
        }
        if (is(l, i, "(") && i > first && (is_name(l, i - 1) || is(l, i - 1, ">")) && match(l, i) > 0) return i;
    }
    return -1;
}

static bool contains(const lint *l, int first, int end, const char *word)
{
    for (int i = first; i < end; i++)
        if (is(l, i, word)) return true;
    return false;
}

/* A variable's declaration, as far as tokens tell: TYPE ... NAME then = ; , [ or (. */
static void check_local(const lint *l, int first, int end, place where)
{
    static const char *const starts[] = {"const",    "constexpr",   "volatile", "static",   "auto",   "device",
                                         "constant", "threadgroup", "thread",   "unsigned", "signed", NULL};
    int i = first;
    if (is_any(l, i, words_that_call) || is(l, i, "using") || is(l, i, "typedef") || is(l, i, "template")) return;
    while (is_any(l, i, starts)) i++;
    const bool qualified = i > first;
    if (is_name(l, i) && !qualified && !is_name(l, i + 1) && !is(l, i + 1, "*") && !is(l, i + 1, "&") &&
        !is(l, i + 1, "<") && !is(l, i + 1, "::"))
        return;
    int name = i;
    while (name < end && !is(l, name, "=") && !is(l, name, ";") && !is(l, name, ",") && !is(l, name, "(") &&
           !is(l, name, "[") && !is(l, name, "{"))
        name++;
    const int at = pointer_in(l, i, name - 1);
    /* a * b; as a statement does nothing: nobody writes it. a[i] * b = c has no plain name before the star. */
    const bool declares = at > first && (is_name(l, at - 1) || is(l, at - 1, ">") || is(l, at - 1, "*")) &&
                          is_name(l, name - 1) && name - 1 > at;
    if (declares && !has_space(l, first, name - 1))
        lint_say(l->out, l->tokens, at, "%s without an address space in a declaration",
                 is(l, at, "*") ? "a pointer" : "a reference");
    if (at < 0 && is(l, first, "threadgroup") && where != PLACE_KERNEL)
        lint_say(l->out, l->tokens, first, "a variable in threadgroup memory outside a kernel's body");
    if (is(l, first, "static") && where >= PLACE_FUNCTION && !contains(l, first, name, "constant"))
        lint_say(l->out, l->tokens, first, "a static variable in a function");
}

/* ---- recursion --------------------------------------------------------------------------------------- */

typedef struct function {
    int name, open, end; /* tokens: its name, the ( of its parameters, the } of its body */
    int body;
    int parameters;
} function;

typedef struct functions {
    function *list;
    int count, room;
} functions;

/* How many values are between the brackets; angle brackets are not looked into. */
static int count_values(const lint *l, int open)
{
    const int close = match(l, open);
    int values = close > open + 1 ? 1 : 0;
    for (int i = open + 1; i < close; i++) {
        if ((is(l, i, "(") || is(l, i, "[") || is(l, i, "{")) && match(l, i) > 0) i = match(l, i);
        else if (is(l, i, ",")) values++;
    }
    return values;
}

static bool same_name(const lint *l, int a, int b)
{
    const msl_token *x = &l->tokens->list[a], *y = &l->tokens->list[b];
    return x->length == y->length && memcmp(l->tokens->text + x->at, l->tokens->text + y->at, x->length) == 0;
}

/* The one function that a call means; -1: none, or overloads that only types tell apart. */
static int called(const lint *l, const functions *all, int name)
{
    int found = -1;
    const int values = count_values(l, name + 1);
    for (int f = 0; f < all->count; f++) {
        if (!same_name(l, all->list[f].name, name) || all->list[f].parameters != values) continue;
        if (found >= 0) return -1;
        found = f;
    }
    return found;
}

static bool reaches(const lint *l, const functions *all, int from, int target, char *seen)
{
    const function *f = &all->list[from];
    for (int i = f->body; i < f->end; i++) {
        if (!is_name(l, i) || !is(l, i + 1, "(") || is(l, i - 1, ".") || is(l, i - 1, "::")) continue;
        const int next = called(l, all, i);
        if (next == target) return true;
        if (next >= 0 && !seen[next]) {
            seen[next] = 1;
            if (reaches(l, all, next, target, seen)) return true;
        }
    }
    return false;
}

static void check_recursion(const lint *l, const functions *all)
{
    for (int f = 0; f < all->count; f++) {
        char *seen = calloc((size_t)all->count, 1);
        if (seen != NULL && reaches(l, all, f, f, seen))
            lint_say(l->out, l->tokens, all->list[f].name, "recursion: the function calls itself, or one that does");
        free(seen);
    }
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

static void walk(const lint *l, int first, int last, place where, functions *all);

static void note_function(const lint *l, functions *all, int open, int body)
{
    if (!sm_grow((void **)&all->list, all->count, &all->room, sizeof *all->list)) return;
    all->list[all->count++] = (function){open - 1, open, match(l, body), body, count_values(l, open)};
}

/* A declaration outside functions that begins at first; returns its last token. */
static int walk_declaration(const lint *l, int first, place where, functions *all)
{
    int begin = first;
    if (is(l, begin, "template") && is(l, begin + 1, "<")) {
        int depth = 0;
        for (begin++; l->tokens->list[begin].kind != MSL_END; begin++) {
            depth += is(l, begin, "<") ? 1 : is(l, begin, ">") ? -1 : is(l, begin, ">>") ? -2 : 0;
            if ((is(l, begin, "(") || is(l, begin, "[")) && match(l, begin) > 0) begin = match(l, begin);
            if (depth <= 0) break;
        }
        begin++;
    }
    static const char *const types[] = {"struct", "class", "union", "enum", NULL};
    static const char *const plain[] = {"using",  "typedef", "static_assert", "friend",
                                        "public", "private", "template",      NULL};
    const int end = declaration_end(l, begin);
    const bool has_body = is(l, end, "{") && match(l, end) > 0;
    if (is(l, begin, "namespace") || is(l, begin, "extern")) {
        if (has_body) walk(l, end + 1, match(l, end) - 1, PLACE_NAMESPACE, all);
        return has_body ? match(l, end) : end;
    }
    const int type = is(l, begin, "typedef") ? begin + 1 : begin;
    if (is_any(l, type, types) && has_body) {
        if (!is(l, type, "enum")) walk(l, end + 1, match(l, end) - 1, PLACE_TYPE, all);
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
        const bool in_kernel = contains(l, begin, open, "kernel");
        check_parameters(l, open, in_kernel);
        check_declarator(l, begin, open - 2, "a result");
        if (!has_body) return end;
        note_function(l, all, open, end);
        walk(l, end + 1, match(l, end) - 1, in_kernel ? PLACE_KERNEL : PLACE_FUNCTION, all);
        return match(l, end);
    }
    if (where == PLACE_NAMESPACE && is_name(l, begin) && !contains(l, begin, end, "constant") && end > begin + 1)
        lint_say(l->out, l->tokens, begin, "a variable outside functions that is not constant");
    else if (where == PLACE_TYPE) {
        check_declarator(l, begin, end - 1, "a member");
        for (int i = begin; i + 1 < end && !is(l, i, "="); i++)
            if (is(l, i, ":") && l->tokens->list[i + 1].kind == MSL_NUMBER)
                lint_say(l->out, l->tokens, i, "a bit-field: MSL has none");
    }
    return has_body ? declaration_end(l, match(l, end) + 1) : end; /* an initialiser in braces, then ; */
}

/* Does a statement begin after this token? Not in the condition of a for, nor in values in braces. */
static bool begins_after(const lint *l, int i, int depth)
{
    static const char *const before_block[] = {")", "else", "do", ";", "{", "}", ":", NULL};
    if (is(l, i, "(")) return is(l, i - 1, "for");
    if (is(l, i, ")")) return match(l, i) > 0 && is_any(l, match(l, i) - 1, words_that_call);
    if (is(l, i, "{")) return is_any(l, i - 1, before_block);
    return is(l, i, "}") || is(l, i, "else") || (is(l, i, ";") && depth == 0);
}

static void walk(const lint *l, int first, int last, place where, functions *all)
{
    bool begins = true; /* a statement */
    int depth = 0;      /* of ( */
    for (int i = first; i <= last; i++) {
        if (l->tokens->list[i].kind == MSL_DIRECTIVE) continue;
        if (where <= PLACE_TYPE) {
            if (is(l, i, ";") || is(l, i, "}")) continue;
            if ((is(l, i, "public") || is(l, i, "private")) && is(l, i + 1, ":")) {
                i++;
                continue;
            }
            const int end = walk_declaration(l, i, where, all);
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
    const lint l = {tokens, out};
    functions all = {NULL, 0, 0};
    for (int i = 0; i < tokens->count; i++) {
        if (tokens->list[i].kind == MSL_NAME) check_word(&l, i);
        check_lambda(&l, i);
    }
    walk(&l, 0, tokens->count - 2, PLACE_NAMESPACE, &all);
    check_recursion(&l, &all);
    free(all.list);
}
