/* See jinja_templates.h. Each function writes an expression of one type; one in forty is of another type. */
#include "jinja_templates.h"

#include <stdlib.h>

/* ----------------------------------------------------------------- chats --- */

static void put_content(uint64_t *r, differ_bytes *out)
{
    static const char *const parts[] = {"Hi",      " hello ",      "caf\xc3\xa9", "\n",    "<think>x</think>",
                                        "yes",     "a,b",          "\t",          "\"q\"", "\\n",
                                        "{{ x }}", "12",           "-5",          "don't", "\xf0\x9f\x9a\x80",
                                        "A b-c",   "\xe4\xb8\x80", "'",           "",      "\xc2\xa0",
                                        "aa",      "ab",           "X",           "  "};
    for (unsigned n = differ_below(r, 5); n > 0; n--) differ_text(out, DIFFER_PICK(r, parts));
    differ_byte(out, 0);
}

static const char *keep(differ_bytes *text)
{
    char *copy = malloc(text->n);
    if (!copy) abort();
    memcpy(copy, text->data, text->n);
    text->n = 0;
    return copy;
}

const jinja_context *jinja_contexts(void)
{
    static jinja_context contexts[JINJA_CONTEXTS];
    static const char *const roles[] = {"user", "assistant", "system", "tool", "user", "assistant"};
    static bool made;
    uint64_t r = 7;
    differ_bytes text = {0};
    for (int i = 0; i < JINJA_CONTEXTS && !made; i++) {
        jinja_context *c = &contexts[i];
        c->input.messages = c->messages;
        c->input.n_messages = differ_below(&r, JINJA_MESSAGES + 1);
        c->input.prompt = differ_one_in(&r, 2);
        if (differ_below(&r, 4)) c->input.bos = "<s>", c->input.bos_length = 3;
        if (differ_below(&r, 4)) c->input.eos = "</s>", c->input.eos_length = 4;
        for (size_t k = 0; k < c->input.n_messages; k++) {
            c->messages[k].role = k == 0 && differ_one_in(&r, 3) ? "system" : DIFFER_PICK(&r, roles);
            put_content(&r, &text);
            c->messages[k].content = keep(&text);
        }
    }
    made = true;
    free(text.data);
    return contexts;
}

/* ----------------------------------------------------------- expressions --- */

/* What a template has defined so far. */
typedef struct scope {
    uint64_t *r;
    differ_bytes *out;
    int loops;       /* in each other: m and loop are defined */
    bool names, macro; /* s, n, l and ns are defined; the macro f(x, y='d') */
} scope;

static void put_string(scope *s, int depth);
static void put_int(scope *s, int depth);
static void put_bool(scope *s, int depth);
static void put_list(scope *s, int depth);

static void put(scope *s, const char *text) { differ_text(s->out, text); }

static void put_any(scope *s, int depth)
{
    static const char *const others[] = {"none",     "nothing", "true", "messages", "messages[0]",
                                         "{'a': 1}", "[]",      "''",   "tools"};
    switch (differ_below(s->r, 5)) {
    case 0: put_string(s, depth); break;
    case 1: put_int(s, depth); break;
    case 2: put_bool(s, depth); break;
    case 3: put_list(s, depth); break;
    default: put(s, DIFFER_PICK(s->r, others)); break;
    }
}

static void put_quoted(scope *s)
{
    static const char *const texts[] = {
        "'a'",       "\"b\"",         "'user'",  "'assistant'", "''",        "' x '",         "'it\\'s'", "'\\n'",
        "\"a\\tb\"", "'caf\xc3\xa9'", "'a-b c'", "'12'",        "'-7'",      "'hello World'", "'<|im|>'", "'}}'",
        "'a,b,,c'",  "'\\\\d'",       "'x' ",    "'role'",      "'content'", "'\\d'",         "'system'"};
    put(s, DIFFER_PICK(s->r, texts));
}

/* text with %s, %i, %b, %l, %a and %q for expressions: string, int, bool, list, any, a literal string. */
static void put_form(scope *s, const char *form, int depth)
{
    for (const char *p = form; *p; p++) {
        if (*p != '%') {
            differ_byte(s->out, (unsigned char)*p);
            continue;
        }
        switch (*++p) {
        case 's': put_string(s, depth - 1); break;
        case 'i': put_int(s, depth - 1); break;
        case 'b': put_bool(s, depth - 1); break;
        case 'l': put_list(s, depth - 1); break;
        case 'a': put_any(s, depth - 1); break;
        case 'q': put_quoted(s); break;
        default: differ_byte(s->out, '%'); break; /* %% */
        }
    }
}

#define N_OF(a) ((unsigned)(sizeof(a) / sizeof(a)[0]))

/* One of the forms; those at the end need a loop, the names or nothing. */
static void put_one(scope *s, const char *const *forms, unsigned n, int depth)
{
    put_form(s, forms[differ_below(s->r, n)], depth);
}

static bool put_elsewhere(scope *s, int depth)
{
    if (!differ_one_in(s->r, 40)) return false;
    put_any(s, depth);
    return true;
}

static void put_string(scope *s, int depth)
{
    static const char *const simple[] = {"%q", "%q", "%q", "bos_token", "eos_token|default('')"};
    static const char *const named[] = {"s", "ns.t", "%q"};
    static const char *const looped[] = {"m.role", "m['content']", "m.content", "m['role']", "m.get('role')"};
    static const char *const forms[] = {"%s + %s",
                                        "%s ~ %s",
                                        "%s ~ %i",
                                        "(%s)",
                                        "%s|trim",
                                        "(%s)|upper",
                                        "(%s)|lower",
                                        "(%s)|capitalize",
                                        "(%s)|title",
                                        "(%s).strip()",
                                        "(%s).lstrip()",
                                        "(%s).rstrip('\\n')",
                                        "(%s).upper()",
                                        "(%s).title()",
                                        "(%s).replace(%q, %q)",
                                        "(%s)|replace('a', %q)",
                                        "%l|join(%q)",
                                        "%l|join",
                                        "(%s)[%i:]",
                                        "(%s)[:%i]",
                                        "(%s)[%i:%i]",
                                        "(%s)[%i]|default('')",
                                        "%s if %b else %s",
                                        "%s if %b",
                                        "%i|string",
                                        "(%s).split(',')[0]",
                                        "(%s).split(%s)|first|default('-')",
                                        "%s|default(%q)",
                                        "nothing|default(%s)",
                                        "(%s or %s)",
                                        "%l|tojson",
                                        "%s|tojson",
                                        "messages|tojson",
                                        "{'a': %s, 'b': %i}|tojson",
                                        "{'k': %l}|tojson(indent=2)",
                                        "messages|map(attribute='role')|join(',')",
                                        "{'a': %s}['a']",
                                        "{'a': %s}.get('b', %s)",
                                        "(messages|first).role|default('none')",
                                        "messages[0]['role']|default(%q)",
                                        "(%s).capitalize()",
                                        "%b|string",
                                        "(%s)|replace(%q, %q, %i)",
                                        "%i ~ %b",
                                        "[%i, %b, none]|tojson",
                                        "(%l)[%i]|default('?')",
                                        "%l|last|default('x')"};
    if (put_elsewhere(s, depth)) return;
    if (depth > 0 && differ_below(s->r, 3)) put_one(s, forms, N_OF(forms), depth);
    else if (s->loops && differ_one_in(s->r, 2)) put_one(s, looped, N_OF(looped), depth);
    else if (s->names && differ_one_in(s->r, 3)) put_one(s, named, N_OF(named), depth);
    else if (s->macro && differ_one_in(s->r, 8)) put_form(s, differ_one_in(s->r, 2) ? "f(%s)" : "f(y=%q, x=%q)", depth);
    else put_one(s, simple, N_OF(simple), depth);
}

static void put_int(scope *s, int depth)
{
    static const char *const simple[] = {"0", "1", "2", "3", "-1", "10", "messages|length"};
    static const char *const looped[] = {"loop.index",  "loop.index0",    "loop.revindex",
                                         "loop.length", "loop.revindex0", "loop.depth"};
    static const char *const named[] = {"n", "ns.c"};
    static const char *const forms[] = {"%i + %i",
                                        "%i - %i",
                                        "(%i) * %i",
                                        "%i // 2",
                                        "(%i) %% 3",
                                        "(%i)",
                                        "-%i",
                                        "(%s)|length",
                                        "%l|length",
                                        "(%s)|int",
                                        "%i if %b else %i",
                                        "{'a': 1}|length",
                                        "%q|int",
                                        "%l|count",
                                        "(%i) %% -2",
                                        "(%i) // -3",
                                        "+%i",
                                        "(%l)|select('number')|list|length",
                                        "%s|int(%i)"};
    if (put_elsewhere(s, depth)) return;
    if (depth > 0 && differ_below(s->r, 3)) put_one(s, forms, N_OF(forms), depth);
    else if (s->loops && differ_one_in(s->r, 2)) put_one(s, looped, N_OF(looped), depth);
    else if (s->names && differ_one_in(s->r, 3)) put_one(s, named, N_OF(named), depth);
    else put_one(s, simple, N_OF(simple), depth);
}

static void put_bool(scope *s, int depth)
{
    static const char *const simple[] = {"true",
                                         "false",
                                         "add_generation_prompt",
                                         "messages",
                                         "nothing is defined",
                                         "bos_token is defined",
                                         "True",
                                         "tools is none",
                                         "not nothing"};
    static const char *const looped[] = {"loop.first",
                                         "loop.last",
                                         "m.role == 'user'",
                                         "m['role'] != %q",
                                         "'name' in m",
                                         "loop.previtem is defined",
                                         "m.tool_calls is defined",
                                         "m is mapping",
                                         "loop.nextitem"};
    static const char *const forms[] = {"%s == %s",
                                        "%i == %i",
                                        "%a == %a",
                                        "%i < %i",
                                        "%i >= %i",
                                        "%s < %s",
                                        "%s in %s",
                                        "%s not in %l",
                                        "%i in %l",
                                        "not %b",
                                        "%b and %b",
                                        "%b or %b",
                                        "(%b)",
                                        "%s is string",
                                        "%a is none",
                                        "%a is defined",
                                        "%a is mapping",
                                        "%a is iterable",
                                        "%a is sequence",
                                        "%i is odd",
                                        "%i is even",
                                        "%a is number",
                                        "%a is integer",
                                        "%a is boolean",
                                        "%a is true",
                                        "%a is not false",
                                        "(%s).startswith(%s)",
                                        "(%s).endswith(%q)",
                                        "%s is eq %q",
                                        "%i is ne 1",
                                        "%s is in %q",
                                        "%a != %a",
                                        "%i > %i > %i",
                                        "1 <= %i < 3",
                                        "%l == %l",
                                        "%a in %l",
                                        "%a is callable",
                                        "%s == %s == %s",
                                        "%a is undefined",
                                        "-%i is odd",
                                        "%a is eq(%a)"};
    if (put_elsewhere(s, depth)) return;
    if (depth > 0 && differ_below(s->r, 3)) put_one(s, forms, N_OF(forms), depth);
    else if (s->loops && differ_one_in(s->r, 2)) put_one(s, looped, N_OF(looped), depth);
    else put_one(s, simple, N_OF(simple), depth);
}

static void put_list(scope *s, int depth)
{
    static const char *const simple[] = {"[]",       "['a', 'b']", "[1, 2, 3]",  "range(3)|list",
                                         "[%q, %q]", "[3, %i, 1]", "(1, 2)|list"};
    static const char *const forms[] = {"[%s, %s]",
                                        "[%i, %s]",
                                        "(%l + %l)",
                                        "(%s).split(%q)",
                                        "(%l)[%i:]",
                                        "(%l)[:%i]",
                                        "(%l)[::-1]",
                                        "(%l)[%i:%i:%i]",
                                        "(%l)|reverse|list",
                                        "messages|map(attribute='content')|list",
                                        "%l|select|list",
                                        "%l|map('string')|list",
                                        "range(%i)|list",
                                        "range(%i, %i)|list",
                                        "{'a': 1, 'b': %i}|list",
                                        "{'a': %s}.keys()|list",
                                        "{'x': %i}.values()|list",
                                        "%l|select('string')|list",
                                        "(%s).split(%q, %i)",
                                        "%l|reject('equalto', %i)|list",
                                        "%l|map('upper')|list",
                                        "[%a, %a]",
                                        "%l if %b else %l",
                                        "(%s)|list",
                                        "(%s).split()"};
    if (put_elsewhere(s, depth)) return;
    if (s->names && differ_one_in(s->r, 8)) put(s, "l");
    else if (depth > 0 && differ_below(s->r, 3)) put_one(s, forms, N_OF(forms), depth);
    else put_one(s, simple, N_OF(simple), depth);
}

/* ------------------------------------------------------------ statements --- */

static void put_text(scope *s)
{
    static const char *const texts[] = {"x",    " ",    "\n", "  ",           "\n\n", "text\n",        " a",
                                        "\n  ", "{",    "}",  "<|im_start|>", "\t",   "caf\xc3\xa9\n", "%",
                                        "#",    "\r\n", "''", "\n \n"};
    for (unsigned n = differ_below(s->r, 3); n > 0; n--) put(s, DIFFER_PICK(s->r, texts));
}

static void open_tag(scope *s) { put(s, differ_one_in(s->r, 3) ? "{%- " : differ_one_in(s->r, 20) ? "{%+ " : "{% "); }
static void close_tag(scope *s) { put(s, differ_one_in(s->r, 3) ? " -%}" : differ_one_in(s->r, 20) ? " +%}" : " %}"); }

static void put_tag(scope *s, const char *form, int depth)
{
    open_tag(s);
    put_form(s, form, depth);
    close_tag(s);
}

static void put_body(scope *s, int depth);

static void put_for(scope *s, int depth)
{
    static const char *const forms[] = {"for m in messages",       "for m in messages",
                                        "for m in messages[%i:]",  "for m in messages if m.role == %q",
                                        "for m in messages[::-1]", "for m in messages if loop is defined or %b"};
    put_tag(s, forms[differ_below(s->r, 5 + differ_one_in(s->r, 10))], 1);
    s->loops++;
    put_body(s, depth - 1);
    if (differ_one_in(s->r, 5)) {
        put_tag(s, "if %b", 1);
        put_tag(s, differ_one_in(s->r, 2) ? "break" : "continue", 0);
        put_tag(s, "endif", 0);
        put_body(s, depth - 2);
    }
    s->loops--;
    if (differ_one_in(s->r, 6)) {
        put_tag(s, "else", 0);
        put_body(s, depth - 2);
    }
    put_tag(s, "endfor", 0);
}

static void put_if(scope *s, int depth)
{
    put_tag(s, "if %b", 2);
    put_body(s, depth - 1);
    if (differ_one_in(s->r, 4)) {
        put_tag(s, "elif %b", 2);
        put_body(s, depth - 1);
    }
    if (differ_one_in(s->r, 3)) {
        put_tag(s, "else", 0);
        put_body(s, depth - 1);
    }
    put_tag(s, "endif", 0);
}

static void put_print(scope *s)
{
    put(s, differ_one_in(s->r, 3) ? "{{- " : "{{ ");
    switch (differ_below(s->r, 8)) {
    case 0: put_int(s, 3); break;
    case 1: put_bool(s, 3); break;
    case 2: put_list(s, 2), put(s, "|tojson"); break;
    default: put_string(s, 3); break;
    }
    put(s, differ_one_in(s->r, 3) ? " -}}" : " }}");
}

static void put_statement(scope *s, int depth)
{
    static const char *const sets[] = {"set s = %s",          "set n = %i",           "set l = %l",
                                       "set ns.c = ns.c + 1", "set ns.t = ns.t + %s", "set ns.t = %q"};
    switch (differ_below(s->r, depth > 0 ? 10 : 6)) {
    case 0: put(s, differ_one_in(s->r, 2) ? "{#- c -#}" : "{# a comment #}"); break;
    case 1:
        if (s->names) put_tag(s, DIFFER_PICK(s->r, sets), 2);
        break;
    case 6: put_for(s, depth); break;
    case 7: put_for(s, depth); break;
    case 8: put_if(s, depth); break;
    case 9:
        if (differ_one_in(s->r, 4)) {
            put_tag(s, "generation", 0), put_print(s), put_tag(s, "endgeneration", 0);
        } else if (differ_one_in(s->r, 3) && s->names) {
            put_tag(s, "set s", 0), put_body(s, depth - 1), put_tag(s, "endset", 0);
        } else if (differ_one_in(s->r, 10)) put(s, "{{ raise_exception('no ' + "), put_string(s, 1), put(s, ") }}");
        else put_if(s, depth);
        break;
    default: put_print(s); break;
    }
}

static void put_body(scope *s, int depth)
{
    for (unsigned n = differ_below(s->r, 4); n > 0; n--) {
        put_text(s);
        put_statement(s, depth);
    }
    put_text(s);
}

void jinja_generate(uint64_t *random, differ_bytes *out)
{
    scope s = {.r = random, .out = out};
    if (differ_below(random, 3)) {
        put_form(&s, "{%% set s = %q %%}{%% set n = %i %%}{%% set l = %l %%}{%% set ns = namespace(c=0, t=%q) %%}", 1);
        s.names = true;
    }
    if (differ_one_in(random, 6)) {
        put(&s, "{% macro f(x, y='d') %}{{ x }}");
        put_print(&s);
        put(&s, "{{ y }}{% endmacro %}");
        s.macro = true;
    }
    put_body(&s, 3);
    put_statement(&s, 3);
}
