/* Renders a template by walking its tree: statements write text, expressions return
 * values. Every visited node is a step, and the number of steps is limited. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "text/jinja_build.h"

typedef struct jvariable {
    const char *name;
    size_t n;
    mica__jvalue value;
    struct jvariable *next;
} jvariable;

/* A for and a macro call have a separate scope; an if has not. */
typedef struct jscope {
    jvariable *first;
    struct jscope *up;
} jscope;

typedef enum jflow { JF_ON, JF_BREAK, JF_CONTINUE } jflow;

typedef struct jrender {
    mica__jrun run;
    jscope *scope, *root;
    int macros; /* depth of macro calls */
    char *out;
    size_t n_out, cap_out;
    jflow flow;
} jrender;

enum { JFN_RAISE, JFN_NAMESPACE, JFN_RANGE, JFN_DICT, JFN_MACRO };

/* ------------------------------------------------------------- variables --- */

static mica_status set_variable(jrender *r, const char *name, size_t n, const mica__jvalue *value)
{
    jvariable *v = r->scope->first;
    int64_t looked = 0;
    for (; v && !(v->n == n && memcmp(v->name, name, n) == 0); looked++) v = v->next;
    MICA_TRY(mica__jinja_charge(&r->run, looked));
    if (!v) {
        MICA_TRY(mica__jinja_alloc(&r->run, sizeof *v, &v));
        *v = (jvariable){name, n, {0}, r->scope->first};
        r->scope->first = v;
    }
    v->value = *value;
    return MICA_OK;
}

static mica_status set_global(jrender *r, const char *name, mica__jvalue value)
{
    return set_variable(r, name, strlen(name), &value);
}

static mica_status get_variable(jrender *r, const char *name, size_t n, mica__jvalue *out)
{
    int64_t looked = 0;
    for (const jscope *s = r->scope; s; s = s->up)
        for (const jvariable *v = s->first; v; v = v->next, looked++)
            if (v->n == n && memcmp(v->name, name, n) == 0) {
                *out = v->value;
                return mica__jinja_charge(&r->run, looked);
            }
    *out = (mica__jvalue){0};
    return mica__jinja_charge(&r->run, looked);
}

/* ----------------------------------------------------------- expressions --- */

static mica_status jevaluate(jrender *r, const mica__jnode *node, mica__jvalue *out);

static mica_status jstep(jrender *r, int line)
{
    r->run.line = line;
    if (r->run.steps-- == 0) {
        r->run.steps = 0;
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, line, "it takes more than %d steps", MICA__JINJA_STEPS);
    }
    return MICA_OK;
}

static mica_status enter_level(jrender *r, int line)
{
    if (++r->run.depth > MICA__JINJA_LEVELS)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, line, "blocks and expressions nested too deeply: more than %d",
                                MICA__JINJA_LEVELS);
    return MICA_OK;
}

/* *out is in the arena: on the stack, nested calls would need too much of it. */
static mica_status evaluate_args(jrender *r, const mica__jnode *list, const mica__jargs **out)
{
    static const mica__jargs none = {0};
    mica__jargs *args;
    *out = &none;
    if (!list) return MICA_OK;
    MICA_TRY(mica__jinja_alloc(&r->run, sizeof *args, &args));
    *out = args;
    args->n = 0;
    for (const mica__jnode *a = list; a; a = a->next, args->n++) {
        args->name[args->n] = a->name;
        args->name_length[args->n] = a->name_length;
        MICA_TRY(jevaluate(r, a, &args->v[args->n]));
    }
    return MICA_OK;
}

static mica_status evaluate_list(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    size_t n = 0;
    mica__jvalue *items;
    for (const mica__jnode *i = node->list; i; i = i->next) n++;
    MICA_TRY(mica__jinja_alloc(&r->run, n * sizeof *items, &items));
    n = 0;
    for (const mica__jnode *i = node->list; i; i = i->next) MICA_TRY(jevaluate(r, i, &items[n++]));
    *out = (mica__jvalue){MICA__JV_LIST, (int64_t)n, {.items = items}};
    return MICA_OK;
}

static mica_status evaluate_dict(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    mica__jvalue dict, key, value;
    MICA_TRY(mica__jv_dict_new(&r->run, &dict));
    for (const mica__jnode *i = node->list; i && i->next; i = i->next->next) {
        MICA_TRY(jevaluate(r, i, &key));
        MICA_TRY(jevaluate(r, i->next, &value));
        MICA_TRY(mica__jv_dict_set(&r->run, dict.as.dict, &key, &value));
    }
    *out = dict;
    return MICA_OK;
}

/* range(to), range(from, to), range(from, to, step). */
static mica_status make_range(jrender *r, const mica__jargs *args, mica__jvalue *out)
{
    mica__jvalue *items;
    int64_t span, part[3] = {0, 0, 1};
    for (int i = 0; i < args->n && i < 3; i++) part[args->n == 1 ? 1 : i] = args->v[i].n;
    for (int i = 0; i < args->n; i++)
        if (args->v[i].kind != MICA__JV_INT || i == 3 || args->name[i])
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->run.line, "range needs one to three numbers");
    if (args->n == 0 || part[2] == 0 || part[2] < -1000000 || part[2] > 1000000 ||
        __builtin_sub_overflow(part[1], part[0], &span) || span == INT64_MIN)
        return mica__jinja_fail(MICA_ERR_FORMAT, r->run.line,
                                "range needs bounds that do not overflow and a step of -1000000 to 1000000, not 0");
    const int64_t step = part[2];
    int64_t n = (span > 0) == (step > 0) ? span / step + (span % step != 0) : 0;
    if (n > 100000) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->run.line, "a range of more than 100000");
    MICA_TRY(mica__jinja_alloc(&r->run, (size_t)n * sizeof *items, &items));
    for (int64_t i = 0; i < n; i++) items[i] = mica__jv_int(part[0] + i * step);
    *out = (mica__jvalue){MICA__JV_LIST, n, {.items = items}};
    return MICA_OK;
}

static mica_status call_function(jrender *r, int64_t which, const mica__jargs *args, mica__jvalue *out)
{
    mica__jvalue text;
    if (which == JFN_RAISE) {
        if (args->n != 1) return mica__jinja_fail(MICA_ERR_FORMAT, r->run.line, "raise_exception needs one message");
        MICA_TRY(mica__jv_text(&r->run, &args->v[0], &text));
        return mica__jinja_fail(MICA_ERR_ARGUMENT, r->run.line, "%.*s", text.n < 300 ? (int)text.n : 300, text.as.text);
    }
    if (which == JFN_RANGE) return make_range(r, args, out);
    MICA_TRY(mica__jv_dict_new(&r->run, out));
    out->as.dict->space = which == JFN_NAMESPACE;
    for (int i = 0; i < args->n; i++) {
        if (!args->name[i])
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->run.line, "namespace and dict need named arguments");
        const mica__jvalue key = mica__jv_string(args->name[i], args->name_length[i]);
        MICA_TRY(mica__jv_dict_set(&r->run, out->as.dict, &key, &args->v[i]));
    }
    return MICA_OK;
}

static mica_status run_body(jrender *r, const mica__jnode *first);

/* Runs a body and returns the text that it writes as a value. */
static mica_status capture(jrender *r, const mica__jnode *body, mica__jvalue *out)
{
    const size_t from = r->n_out;
    char *copy;
    MICA_TRY(run_body(r, body));
    const size_t n = r->n_out - from;
    MICA_TRY(mica__jinja_alloc(&r->run, n, &copy));
    if (n) memcpy(copy, r->out + from, n);
    r->n_out = from;
    *out = mica__jv_string(copy, n);
    return MICA_OK;
}

/* Runs a body in a separate scope: the variables that it sets end with it. If text is not NULL, it gets what the body
 * writes. */
static mica_status run_scoped(jrender *r, const mica__jnode *body, mica__jvalue *text)
{
    jscope scope = {NULL, r->scope};
    r->scope = &scope;
    const mica_status status = text ? capture(r, body, text) : run_body(r, body);
    r->scope = scope.up;
    return status;
}

/* Sets the parameters of a macro from the arguments, by position or by name, or from their defaults. */
static mica_status bind_macro(jrender *r, const mica__jnode *macro, const mica__jargs *args)
{
    int place = 0, used = 0;
    for (const mica__jnode *p = macro->list; p; p = p->next, place++) {
        mica__jvalue v = {0};
        int found = place < args->n && !args->name[place] ? place : -1;
        for (int i = 0; i < args->n; i++)
            if (args->name[i] && args->name_length[i] == p->length && memcmp(args->name[i], p->text, p->length) == 0)
                found = i;
        used += found >= 0;
        if (found >= 0) v = args->v[found];
        else if (p->a) MICA_TRY(jevaluate(r, p->a, &v));
        MICA_TRY(set_variable(r, p->text, p->length, &v));
    }
    if (used < args->n)
        return mica__jinja_fail(MICA_ERR_FORMAT, r->run.line, "a macro call has arguments that it has no names for");
    return MICA_OK;
}

static mica_status call_macro(jrender *r, const mica__jnode *macro, const mica__jargs *args, mica__jvalue *out)
{
    jscope scope = {NULL, r->root}, *before = r->scope;
    if (r->macros == MICA__JINJA_MACROS)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->run.line, "macros call each other too deeply");
    r->macros++;
    r->scope = &scope;
    mica_status status = bind_macro(r, macro, args);
    if (status == MICA_OK) status = capture(r, macro->body, out);
    r->scope = before;
    r->macros--;
    return status;
}

static mica_status evaluate_call(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    const mica__jargs *args;
    mica__jvalue value;
    MICA_TRY(evaluate_args(r, node->list, &args));
    if (node->a->op == MICA__J_ATTR) {
        MICA_TRY(jevaluate(r, node->a->a, &value));
        r->run.line = node->line;
        MICA_TRY(mica__jinja_charge(&r->run, mica__jv_size(&value)));
        return mica__jinja_method(&r->run, node->a->text, node->a->length, &value, args, out);
    }
    MICA_TRY(jevaluate(r, node->a, &value));
    r->run.line = node->line;
    if (value.kind == MICA__JV_FUNCTION && value.n == JFN_MACRO) return call_macro(r, value.as.macro, args, out);
    if (value.kind == MICA__JV_FUNCTION) return call_function(r, value.n, args, out);
    if (node->a->op == MICA__J_NAME)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, node->line, "the function '%.*s' is not known",
                                node->a->length < 60 ? (int)node->a->length : 60, node->a->text);
    return mica__jinja_fail(MICA_ERR_FORMAT, node->line, "a call of %s", mica__jv_kind(&value));
}

static mica_status evaluate_named(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    const mica__jargs *args;
    mica__jvalue value;
    bool truth = false;
    MICA_TRY(jevaluate(r, node->a, &value));
    MICA_TRY(evaluate_args(r, node->list, &args));
    r->run.line = node->line;
    MICA_TRY(mica__jinja_charge(&r->run, mica__jv_size(&value)));
    if (node->op == MICA__J_FILTER) return mica__jinja_filter(&r->run, node->text, node->length, &value, args, out);
    MICA_TRY(mica__jinja_test(&r->run, node->text, node->length, &value, args, &truth));
    *out = mica__jv_bool(truth != (node->number != 0));
    return MICA_OK;
}

/* a + b + c is (a + b) + c. A loop over the operators, starting at the innermost one, needs no stack
 * for long chains. */
static mica_status evaluate_chain(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    int n = 0;
    const mica__jnode *first = node;
    mica__jvalue a, b;
    for (; first->op == MICA__J_BINARY; first = first->a)
        if (++n > MICA__JINJA_CHAIN)
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, node->line,
                                    "an expression that is too long: more than %d operators", MICA__JINJA_CHAIN);
    MICA_TRY(jevaluate(r, first, &a));
    while (n-- > 0) {
        const mica__jnode *at = node;
        for (int i = 0; i < n; i++) at = at->a;
        MICA_TRY(jstep(r, at->line));
        MICA_TRY(jevaluate(r, at->b, &b));
        r->run.line = at->line;
        MICA_TRY(mica__jv_binary(&r->run, (mica__jbinary)at->number, &a, &b, out));
        a = *out;
    }
    return MICA_OK;
}

static mica_status evaluate_inner(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    mica__jvalue a = {0}, b = {0}, parts[3];
    switch (node->op) {
    case MICA__J_STRING: *out = mica__jv_string(node->text, node->length); return MICA_OK;
    case MICA__J_NUMBER: *out = mica__jv_int(node->number); return MICA_OK;
    case MICA__J_BOOL: *out = mica__jv_bool(node->number); return MICA_OK;
    case MICA__J_NONE: *out = (mica__jvalue){.kind = MICA__JV_NONE}; return MICA_OK;
    case MICA__J_NAME: return get_variable(r, node->text, node->length, out);
    case MICA__J_LIST: return evaluate_list(r, node, out);
    case MICA__J_DICT: return evaluate_dict(r, node, out);
    case MICA__J_CALL: return evaluate_call(r, node, out);
    case MICA__J_FILTER:
    case MICA__J_TEST: return evaluate_named(r, node, out);
    case MICA__J_BINARY: return evaluate_chain(r, node, out);
    case MICA__J_CHOICE:
        MICA_TRY(jevaluate(r, node->b, &b));
        if (mica__jv_is_true(&b)) return jevaluate(r, node->a, out);
        *out = (mica__jvalue){0};
        return node->other ? jevaluate(r, node->other, out) : MICA_OK;
    case MICA__J_SLICE: {
        int n = 0;
        for (const mica__jnode *p = node->list; p && n < 3; p = p->next) MICA_TRY(jevaluate(r, p, &parts[n++]));
        MICA_TRY(jevaluate(r, node->a, &a));
        return mica__jv_slice(&r->run, &a, parts, out);
    }
    default: break;
    }
    MICA_TRY(jevaluate(r, node->a, &a));
    r->run.line = node->line;
    switch (node->op) {
    case MICA__J_NOT: *out = mica__jv_bool(!mica__jv_is_true(&a)); return MICA_OK;
    case MICA__J_AND:
    case MICA__J_OR:
        if (mica__jv_is_true(&a) == (node->op == MICA__J_OR)) {
            *out = a;
            return MICA_OK;
        }
        return jevaluate(r, node->b, out);
    case MICA__J_MINUS:
        if (a.kind != MICA__JV_INT && a.kind != MICA__JV_BOOL)
            return mica__jinja_fail(MICA_ERR_FORMAT, node->line, "a sign before %s", mica__jv_kind(&a));
        b = mica__jv_int(0);
        return mica__jv_binary(&r->run, node->number ? MICA__JB_ADD : MICA__JB_SUB, &b, &a, out);
    case MICA__J_ATTR: b = mica__jv_string(node->text, node->length); return mica__jv_item(&r->run, &a, &b, out);
    default: /* MICA__J_ITEM */ MICA_TRY(jevaluate(r, node->b, &b)); return mica__jv_item(&r->run, &a, &b, out);
    }
}

static mica_status jevaluate(jrender *r, const mica__jnode *node, mica__jvalue *out)
{
    MICA_TRY(jstep(r, node->line));
    MICA_TRY(enter_level(r, node->line));
    const mica_status status = evaluate_inner(r, node, out);
    r->run.depth--;
    return status;
}

/* ------------------------------------------------------------ statements --- */

static mica_status write_text(jrender *r, const char *text, size_t n)
{
    if (n > r->cap_out - r->n_out) {
        const size_t cap = 2 * (r->cap_out + n) + 256;
        if (cap > r->run.limit)
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->run.line, "it writes more than %zu MB",
                                    r->run.limit >> 21);
        char *grown = mica__realloc(r->out, cap);
        if (!grown) return mica__fail_memory("a chat", cap);
        r->out = grown;
        r->cap_out = cap;
    }
    if (n) memcpy(r->out + r->n_out, text, n);
    r->n_out += n;
    return MICA_OK;
}

/* The elements that a for iterates over. */
static mica_status for_items(jrender *r, const mica__jnode *node, mica__jvalue *list)
{
    mica__jvalue v, one, *kept;
    MICA_TRY(jevaluate(r, node->a, &v));
    r->run.line = node->line;
    MICA_TRY(mica__jv_list(&r->run, "a for over", &v, list));
    v = *list;
    if (!node->b) return MICA_OK;
    if (node->list->next)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, node->line, "a for of several names with an if");
    MICA_TRY(mica__jinja_alloc(&r->run, (size_t)v.n * sizeof *kept, &kept));
    int64_t n = 0;
    for (int64_t i = 0; i < v.n; i++) {
        MICA_TRY(set_variable(r, node->list->text, node->list->length, &v.as.items[i]));
        MICA_TRY(jevaluate(r, node->b, &one));
        if (mica__jv_is_true(&one)) kept[n++] = v.as.items[i];
    }
    *list = (mica__jvalue){MICA__JV_LIST, n, {.items = kept}};
    return MICA_OK;
}

/* Assigns v to one name, or the elements of v to several names. */
static mica_status assign(jrender *r, const mica__jnode *names, const mica__jvalue *v)
{
    int64_t n = 0;
    for (const mica__jnode *i = names; i; i = i->next) n++;
    if (n == 1) return set_variable(r, names->text, names->length, v);
    if (v->kind != MICA__JV_LIST || v->n != n)
        return mica__jinja_fail(MICA_ERR_FORMAT, names->line, "%" PRId64 " names for %s", n, mica__jv_kind(v));
    n = 0;
    for (const mica__jnode *i = names; i; i = i->next) MICA_TRY(set_variable(r, i->text, i->length, &v->as.items[n++]));
    return MICA_OK;
}

static __attribute__((noinline)) mica_status set_loop(jrender *r, const mica__jvalue *list, int64_t i,
                                                      mica__jdict *loop)
{
    const struct {
        const char *name;
        mica__jvalue value;
    } facts[] = {{"index", mica__jv_int(i + 1)},
                 {"index0", mica__jv_int(i)},
                 {"revindex", mica__jv_int(list->n - i)},
                 {"revindex0", mica__jv_int(list->n - i - 1)},
                 {"first", mica__jv_bool(i == 0)},
                 {"last", mica__jv_bool(i + 1 == list->n)},
                 {"length", mica__jv_int(list->n)},
                 {"depth", mica__jv_int(1)}, /* recursive loops are refused */
                 {"depth0", mica__jv_int(0)},
                 {"previtem", i ? list->as.items[i - 1] : (mica__jvalue){0}},
                 {"nextitem", i + 1 < list->n ? list->as.items[i + 1] : (mica__jvalue){0}}};
    for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++) {
        const mica__jvalue key = mica__jv_string(facts[k].name, strlen(facts[k].name));
        MICA_TRY(mica__jv_dict_set(&r->run, loop, &key, &facts[k].value));
    }
    return MICA_OK;
}

static mica_status run_for(jrender *r, const mica__jnode *node)
{
    jscope scope = {NULL, r->scope};
    mica__jvalue list = {0}, loop = {0};
    bool completed = false; /* an iteration reached the end of the body */
    r->scope = &scope;
    mica_status status = for_items(r, node, &list);
    if (status == MICA_OK) status = mica__jv_dict_new(&r->run, &loop);
    for (int64_t i = 0; status == MICA_OK && i < list.n; i++) {
        scope.first = NULL; /* variables last for one iteration */
        status = mica__jinja_charge(&r->run, 512);
        if (status == MICA_OK) status = set_loop(r, &list, i, loop.as.dict);
        if (status == MICA_OK) status = set_variable(r, "loop", 4, &loop);
        if (status == MICA_OK) status = assign(r, node->list, &list.as.items[i]);
        if (status == MICA_OK) status = run_body(r, node->body);
        const jflow flow = r->flow;
        completed |= flow == JF_ON;
        r->flow = JF_ON;
        if (flow == JF_BREAK) break;
    }
    r->scope = scope.up;
    if (status != MICA_OK) return status;
    /* Jinja2 runs the else also if each iteration ended in a break or continue. */
    return !completed && node->other ? run_scoped(r, node->other, NULL) : MICA_OK;
}

static mica_status run_set(jrender *r, const mica__jnode *node)
{
    mica__jvalue v;
    if (node->body) MICA_TRY(run_scoped(r, node->body, &v));
    else if (node->a) MICA_TRY(jevaluate(r, node->a, &v));
    else v = mica__jv_string("", 0);
    if (!node->text) return assign(r, node->list, &v);
    mica__jvalue space;
    MICA_TRY(get_variable(r, node->list->text, node->list->length, &space));
    if (space.kind != MICA__JV_DICT || !space.as.dict->space)
        return mica__jinja_fail(MICA_ERR_FORMAT, node->line, "an attribute of %s cannot be set", mica__jv_kind(&space));
    const mica__jvalue key = mica__jv_string(node->text, node->length);
    return mica__jv_dict_set(&r->run, space.as.dict, &key, &v);
}

static mica_status run_cond(jrender *r, const mica__jnode *node)
{
    for (;; node = node->other) {
        mica__jvalue v;
        MICA_TRY(jevaluate(r, node->a, &v));
        if (mica__jv_is_true(&v)) return run_body(r, node->body);
        if (!node->other) return MICA_OK;
        if (!node->number) return run_body(r, node->other); /* an else, not an elif */
    }
}

static mica_status run_statement(jrender *r, const mica__jnode *node)
{
    mica__jvalue v, text;
    switch (node->op) {
    case MICA__J_TEXT: return write_text(r, node->text, node->length);
    case MICA__J_PRINT:
        MICA_TRY(jevaluate(r, node->a, &v));
        MICA_TRY(mica__jv_text(&r->run, &v, &text));
        return write_text(r, text.as.text, (size_t)text.n);
    case MICA__J_FOR: return run_for(r, node);
    case MICA__J_COND: return run_cond(r, node);
    case MICA__J_SET: return run_set(r, node);
    case MICA__J_BLOCK: return run_scoped(r, node->body, NULL);
    case MICA__J_MACRO:
        v = (mica__jvalue){MICA__JV_FUNCTION, JFN_MACRO, {.macro = node}};
        return set_variable(r, node->text, node->length, &v);
    case MICA__J_BREAK: r->flow = JF_BREAK; return MICA_OK;
    default: r->flow = JF_CONTINUE; return MICA_OK;
    }
}

static mica_status run_body(jrender *r, const mica__jnode *first)
{
    MICA_TRY(enter_level(r, r->run.line));
    for (const mica__jnode *node = first; node && r->flow == JF_ON; node = node->next) {
        MICA_TRY(jstep(r, node->line));
        MICA_TRY(run_statement(r, node));
    }
    r->run.depth--;
    return MICA_OK;
}

/* -------------------------------------------------------------- rendering -- */

static mica_status set_messages(jrender *r, const mica__jinja_input *input)
{
    mica__jvalue *items;
    MICA_TRY(mica__jinja_alloc(&r->run, input->n_messages * sizeof *items, &items));
    for (size_t i = 0; i < input->n_messages; i++) {
        const mica__jvalue keys[2] = {mica__jv_string("role", 4), mica__jv_string("content", 7)};
        const char *const texts[2] = {input->messages[i].role, input->messages[i].content};
        MICA_TRY(mica__jv_dict_new(&r->run, &items[i]));
        for (int k = 0; k < 2; k++) {
            const mica__jvalue text = mica__jv_string(texts[k], strlen(texts[k]));
            MICA_TRY(mica__jv_dict_set(&r->run, items[i].as.dict, &keys[k], &text));
        }
    }
    return set_global(r, "messages", (mica__jvalue){MICA__JV_LIST, (int64_t)input->n_messages, {.items = items}});
}

static mica_status set_globals(jrender *r, const mica__jinja_input *input)
{
    static const struct {
        const char *name;
        int64_t which;
    } functions[] = {
        {"raise_exception", JFN_RAISE}, {"namespace", JFN_NAMESPACE}, {"range", JFN_RANGE}, {"dict", JFN_DICT}};
    MICA_TRY(set_messages(r, input));
    MICA_TRY(set_global(r, "add_generation_prompt", mica__jv_bool(input->prompt)));
    MICA_TRY(set_global(r, "tools", (mica__jvalue){.kind = MICA__JV_NONE}));
    MICA_TRY(set_global(r, "documents", (mica__jvalue){.kind = MICA__JV_NONE}));
    if (input->bos) MICA_TRY(set_global(r, "bos_token", mica__jv_string(input->bos, input->bos_length)));
    if (input->eos) MICA_TRY(set_global(r, "eos_token", mica__jv_string(input->eos, input->eos_length)));
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        MICA_TRY(set_global(r, functions[i].name, (mica__jvalue){MICA__JV_FUNCTION, functions[i].which, {NULL}}));
    return MICA_OK;
}

mica_status mica__jinja_render(mica__arena *arena, const mica__jinja *jinja, const mica__jinja_input *input,
                               const char **text, size_t *length)
{
    jscope scope = {NULL, NULL};
    jrender r = {.run = {.arena = arena,
                         .steps = MICA__JINJA_STEPS,
                         .limit = MICA__JINJA_MEMORY,
                         .start = arena->total,
                         .line = 1},
                 .scope = &scope,
                 .root = &scope};
    char *copy = NULL;
    /* the limits grow with the length of the chat */
    for (size_t i = 0; i < input->n_messages; i++) {
        const size_t n = strlen(input->messages[i].content);
        r.run.steps += 64 + n / 4;
        r.run.limit += 16 * n;
    }
    mica_status status = set_globals(&r, input);
    if (status == MICA_OK) status = run_body(&r, jinja->body);
    if (status == MICA_OK) {
        copy = mica__arena_alloc(arena, r.n_out + 1);
        if (!copy) status = mica__fail_memory("a chat", r.n_out);
        else if (r.n_out) memcpy(copy, r.out, r.n_out);
    }
    mica__free(r.out);
    *text = copy;
    *length = copy ? r.n_out : 0;
    return status;
}
