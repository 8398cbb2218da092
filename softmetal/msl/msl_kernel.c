/* Kernels, their parameters, instantiations with host names, function constants. */
#include "msl_parse.h"

#include <stdlib.h>
#include <string.h>

const char *const msl_vector_positions[] = {"thread_position_in_grid",
                                            "thread_position_in_threadgroup",
                                            "threadgroup_position_in_grid",
                                            "threads_per_threadgroup",
                                            "threads_per_grid",
                                            "threadgroups_per_grid",
                                            "dispatch_threads_per_threadgroup",
                                            "grid_origin",
                                            "grid_size",
                                            NULL};
const char *const msl_scalar_positions[] = {
    "thread_index_in_threadgroup", "thread_index_in_simdgroup",           "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",  "dispatch_simdgroups_per_threadgroup", "threads_per_simdgroup",
    "thread_execution_width",      "thread_index_in_quadgroup",           "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",  "dispatch_quadgroups_per_threadgroup", NULL};

/* Returns the list's own copy of a name; NULL: not in the list. */
static const char *find_position(const char *const *list, const char *name)
{
    while (*list && strcmp(name, *list) != 0) list++;
    return *list;
}

static bool no_memory(parser *p, int i) { return msl_error(p->unit, i, p->message, "out of memory"); }

/* The next attribute of a list: its name at *name, arguments first..last (first > last: none). */
typedef struct attribute {
    int name, first, last;
} attribute;

static bool next_attribute(const parser *p, int *i, int close, attribute *a)
{
    while (*i < close && parse_is(p, *i, ",")) ++*i;
    if (*i >= close) return false;
    *a = (attribute){*i, 0, -1};
    while (*i < close && !parse_is(p, *i, ",")) {
        if (parse_is(p, *i, "(")) {
            a->first = *i + 1;
            a->last = parse_token(p, *i)->match - 1;
            *i = parse_token(p, *i)->match;
        }
        ++*i;
    }
    return true;
}

/* One token unchanged; parse_plain would drop the word threadgroup, which is also the name of an attribute. */
static const char *word(parser *p, int i)
{
    sm_text text = {0};
    sm_text_add(&text, p->unit->tokens.text + parse_token(p, i)->at, parse_token(p, i)->length);
    return msl_own(p->unit, &text);
}

/* ---- parameters ---- */

typedef struct found {
    bool pointer, reference, konst, device, constant, threadgroup;
    int name;
    const char *position; /* the attribute, if it is a position */
    const char *index, *condition;
    int number;
    bool buffer, local;
} found;

static bool parameter_attribute(parser *p, attribute a, found *f)
{
    const char *name = word(p, a.name);
    if (!name) return no_memory(p, a.name);
    f->buffer |= !strcmp(name, "buffer");
    f->local |= !strcmp(name, "threadgroup");
    if (!strcmp(name, "buffer") || !strcmp(name, "threadgroup")) {
        if (a.first > a.last) return msl_error(p->unit, a.name, p->message, "[[%s]] needs an index", name);
        f->index = parse_plain(p, a.first, a.last);
        f->number = parse_number(p, a.first, a.last);
        return f->index || no_memory(p, a.name);
    }
    if (!strcmp(name, "function_constant") && a.first <= a.last) {
        f->condition = parse_plain(p, a.first, a.last);
        return f->condition || no_memory(p, a.name);
    }
    if (!strcmp(name, "maybe_unused")) return true;
    f->position = find_position(msl_vector_positions, name);
    if (!f->position) f->position = find_position(msl_scalar_positions, name);
    return f->position ||
           msl_error(p->unit, a.name, p->message, "unknown attribute [[%s]] of a kernel's parameter", name);
}

static bool scan_parameter(parser *p, int first, int last, found *f)
{
    *f = (found){.name = -1, .number = -1};
    for (int i = first; i <= last; i++) {
        int end = parse_attribute_end(p, i);
        if (end > 0) {
            attribute a;
            int k = i + 2;
            while (next_attribute(p, &k, end - 1, &a))
                if (!parameter_attribute(p, a, f)) return false;
            if (!parse_drop(p, i, end)) return false;
            i = end;
            continue;
        }
        if (parse_is(p, i, "<")) {
            int after = parse_after_angles(p, i, last + 1);
            if (after < 0) return msl_error(p->unit, i, p->message, "'<' is not closed in a kernel's parameter");
            i = after - 1;
            continue;
        }
        f->device |= parse_is(p, i, "device");
        f->constant |= parse_is(p, i, "constant");
        f->threadgroup |= parse_is(p, i, "threadgroup");
        f->pointer |= parse_is(p, i, "*") || parse_is(p, i, "[");
        f->reference |= parse_is(p, i, "&");
        f->konst |= parse_is(p, i, "const") && !f->pointer;
        if (parse_is_name(p, i)) f->name = i;
        if (parse_is(p, i, "[")) i = parse_token(p, i)->match;
    }
    return f->name >= 0 || msl_error(p->unit, first, p->message, "a kernel's parameter without a name");
}

static bool taken(const msl_kernel *kernel, sm_argument_kind kind, int number)
{
    for (int i = 0; i < kernel->count; i++) {
        const msl_parameter *q = &kernel->parameters[i];
        if (q->is_argument && q->argument.kind == kind && q->argument.index == number) return true;
    }
    return false;
}

static bool add_parameter(parser *p, msl_kernel *kernel, int first, int last)
{
    found f;
    if (!scan_parameter(p, first, last, &f)) return false;
    const char *name = word(p, f.name);
    if (!name) return no_memory(p, first);
    bool is_argument = !f.position;
    bool local = f.local || (is_argument && !f.buffer && f.threadgroup);
    if (f.position && (f.buffer || f.local || f.pointer))
        return msl_error(p->unit, f.name, p->message, "parameter '%s' cannot be both an argument and a position", name);
    if (is_argument && !f.pointer && !f.reference)
        return msl_error(p->unit, f.name, p->message,
                         "parameter '%s' of a kernel is neither a pointer or a reference nor has it an attribute",
                         name);
    if (is_argument && local && !f.threadgroup)
        return msl_error(p->unit, f.name, p->message, "parameter '%s' must be in threadgroup memory", name);
    if (is_argument && !local && !f.device && !f.constant)
        return msl_error(p->unit, f.name, p->message, "parameter '%s' must be in the address space device or constant",
                         name);
    const sm_argument_kind kind = local ? SM_ARGUMENT_THREADGROUP : SM_ARGUMENT_BUFFER;
    if (is_argument && f.index && f.number >= 0 && !f.condition && taken(kernel, kind, f.number))
        return msl_error(p->unit, f.name, p->message, "parameter '%s': index %d belongs to another parameter", name,
                         f.number);
    if (!sm_grow((void **)&kernel->parameters, kernel->count, &kernel->room, sizeof *kernel->parameters))
        return no_memory(p, first);
    sm_argument argument = {kind, f.index ? f.number : -2,     f.device && !f.konst, f.constant, f.reference,
                            name, parse_token(p, f.name)->line};
    sm_text tag = {0};
    if (f.position) sm_text_print(&tag, "sm_position<sm_kind::%s>", f.position);
    else if (f.index)
        sm_text_print(&tag, "sm_%s<(%s), bool(%s)%s>", local ? "local" : "buffer", f.index,
                      f.condition ? f.condition : "true",
                      local        ? ""
                      : f.constant ? ", true"
                                   : ", false");
    else sm_text_add(&tag, "", 0);
    const char *own = msl_own(p->unit, &tag);
    kernel->parameters[kernel->count++] = (msl_parameter){own, argument, is_argument, first, last};
    return own || no_memory(p, first);
}

/* Arguments without an index get the next free index, in order. */
static bool number_parameters(parser *p, msl_kernel *kernel)
{
    int next[2] = {0, 0};
    for (int i = 0; i < kernel->count; i++) {
        msl_parameter *q = &kernel->parameters[i];
        if (!q->is_argument || q->argument.index != -2) continue;
        int *n = &next[q->argument.kind];
        while (taken(kernel, q->argument.kind, *n)) ++*n;
        q->argument.index = *n;
        sm_text tag = {0};
        const bool local = q->argument.kind == SM_ARGUMENT_THREADGROUP;
        sm_text_print(&tag, "sm_%s<%d, true%s>", local ? "local" : "buffer", *n,
                      local                  ? ""
                      : q->argument.constant ? ", true"
                                             : ", false");
        q->tag = msl_own(p->unit, &tag);
        if (!q->tag) return no_memory(p, q->first);
    }
    for (int i = 0; i < kernel->count; i++) {
        const msl_parameter *q = &kernel->parameters[i];
        if (q->is_argument && q->argument.index >= SM_BUFFERS)
            return msl_error(p->unit, q->first, p->message, "parameter '%s': index %d is above %d", q->argument.name,
                             q->argument.index, SM_BUFFERS - 1);
    }
    return true;
}

static bool parse_parameters(parser *p, msl_kernel *kernel, int open)
{
    int close = parse_token(p, open)->match, first = open + 1;
    if (first == close || (first + 1 == close && parse_is(p, first, "void"))) return true;
    for (int i = first; i <= close; i++) {
        if (parse_is(p, i, "<") && parse_is_name(p, i - 1)) {
            int after = parse_after_angles(p, i, close);
            if (after > 0) i = after - 1;
        } else if (i == close || parse_is(p, i, ",")) {
            if (i == first) return msl_error(p->unit, i, p->message, "an empty parameter");
            if (!add_parameter(p, kernel, first, i - 1)) return false;
            first = i + 1;
        } else if (parse_is(p, i, "(") || parse_is(p, i, "[") || parse_is(p, i, "{")) {
            i = parse_token(p, i)->match;
        }
    }
    return number_parameters(p, kernel);
}

/* ---- kernels and instantiations ---- */

typedef struct head {
    const char *host, *max_threads;
    const char *instead; /* replaces the first dropped word: "static", because unused kernels need no code */
} head;

static const char *joined_string(parser *p, int first, int last)
{
    sm_text text = {0};
    sm_text_add(&text, "", 0);
    for (int i = first; i <= last; i++) {
        const msl_token *t = parse_token(p, i);
        if (t->kind == MSL_STRING) sm_text_add(&text, p->unit->tokens.text + t->at + 1, t->length - 2);
    }
    return msl_own(p->unit, &text);
}

static bool drop_head(parser *p, int first, int last, head *h)
{
    for (int i = first; i <= last; i++) p->seen[i] = 1;
    const char *text = h->instead ? h->instead : "";
    h->instead = NULL;
    return msl_add_edit(p->unit, first, last, text) || no_memory(p, first);
}

/* Reads the attributes of a kernel's head. */
static bool head_attributes(parser *p, int first, int last, head *h)
{
    attribute a;
    int i = first + 2;
    while (next_attribute(p, &i, last - 1, &a)) {
        if (parse_is(p, a.name, "kernel") || parse_is(p, a.name, "clang") || parse_is(p, a.name, "maybe_unused"))
            continue;
        if (parse_is(p, a.name, "host_name")) {
            h->host = joined_string(p, a.first, a.last);
            if (!h->host) return no_memory(p, a.name);
        } else if (parse_is(p, a.name, "max_total_threads_per_threadgroup") && a.first <= a.last) {
            h->max_threads = parse_plain(p, a.first, a.last);
            if (!h->max_threads) return no_memory(p, a.name);
        } else {
            return msl_error(p->unit, a.name, p->message, "unknown attribute [[%s]] of a kernel", word(p, a.name));
        }
    }
    return drop_head(p, first, last, h);
}

static const char *qualified(parser *p, int name)
{
    sm_text text = {0};
    for (int i = 0; i < p->depth; i++)
        if (p->scopes[i].name >= 0) sm_text_print(&text, "%s::", word(p, p->scopes[i].name));
    sm_text_print(&text, "%s", word(p, name));
    return msl_own(p->unit, &text);
}

static bool add_name(parser *p, int i, msl_name name)
{
    msl_unit *u = p->unit;
    for (int k = 0; k < u->names_count; k++)
        if (!strcmp(u->names[k].host, name.host))
            return msl_error(u, i, p->message, "a second kernel with the name '%s' (the first is in line %d)",
                             name.host, u->names[k].line);
    if (!sm_grow((void **)&u->names, u->names_count, &u->names_room, sizeof *u->names)) return no_memory(p, i);
    u->names[u->names_count++] = name;
    return true;
}

/* template [[host_name("x")]] [[kernel]] decltype(f<A>) f<A>;     or ... void f<A>(...);     or ... void f(...); */
static bool instantiation(parser *p, int *at)
{
    int first = p->start, end = first, name = -1;
    head h = {0};
    while (!parse_is(p, end, ";")) {
        int close = parse_attribute_end(p, end);
        if (parse_token(p, end)->kind == MSL_END)
            return msl_error(p->unit, first, p->message, "an instantiation without ;");
        if (close > 0) {
            if (name < 0 && !head_attributes(p, end, close, &h)) return false;
            end = close;
        } else if (name < 0 && !parse_is(p, end, "template") && !parse_is(p, end, "kernel")) {
            name = end; /* decltype or void */
        }
        end++;
    }
    if (name < 0) return msl_error(p->unit, first, p->message, "an instantiation without a kernel");
    msl_name n = {.line = parse_token(p, first)->line, .kernel = -1};
    if (parse_is(p, name, "decltype")) {
        n.target = parse_plain(p, parse_token(p, name + 1)->match + 1, end - 1);
    } else {
        int open = parse_is(p, end - 1, ")") ? parse_token(p, end - 1)->match : -1;
        int after = open < 0 ? parse_after_type(p, name, end) : -1;
        if (after > 0 && after < end) { /* a type that is decltype(f<A>): the name is what follows */
            n.target = parse_plain(p, after, end - 1);
        } else if (!parse_is(p, name, "void") || open <= name + 1)
            return msl_error(p->unit, first, p->message, "this form of instantiation is not understood");
        else n.target = parse_plain(p, name + 1, open - 1);
        if (open > 0 && !parse_is(p, open - 1, ">")) {
            sm_text cast = {0};
            sm_text_print(&cast, "void (*)%s", parse_plain(p, open, end - 1));
            n.signature = msl_own(p->unit, &cast);
        }
    }
    n.host = h.host ? h.host : n.target;
    if (!n.target || !n.host) return no_memory(p, first);
    for (int i = first; i <= end; i++) p->seen[i] = 1;
    p->start = end + 1;
    *at = end;
    /* Edits inside a deleted stretch are skipped, so the order does not matter. */
    return add_name(p, first, n) && parse_drop(p, first, end);
}

bool parse_kernel(parser *p, int *at)
{
    int limit = p->unit->tokens.count - 1, i = p->start, name = -1;
    if (parse_is(p, i, "template") && !parse_is(p, i + 1, "<")) return instantiation(p, at);
    msl_kernel kernel = {.line = parse_token(p, *at)->line};
    kernel.is_template = parse_is(p, i, "template");
    if (kernel.is_template) i = parse_after_template(p, i, limit);
    if (i < 0) return msl_error(p->unit, p->start, p->message, "a template list that is not closed");
    if (kernel.is_template) kernel.header = parse_plain(p, p->start, i - 1);
    head h = {.instead = "static"};
    for (; name < 0; i++) {
        int end = parse_attribute_end(p, i);
        if (i >= limit || parse_is(p, i, ";") || parse_is(p, i, "{"))
            return msl_error(p->unit, *at, p->message, "'kernel' without a function");
        if (end > 0) {
            if (!head_attributes(p, i, end, &h)) return false;
            i = end;
        } else if (parse_is(p, i, "kernel")) {
            if (!drop_head(p, i, i, &h)) return false;
        } else if (parse_is(p, i, "static")) {
            h.instead = NULL;
        } else if (parse_is(p, i, "__attribute__") && parse_is(p, i + 1, "(")) {
            i = parse_token(p, i + 1)->match;
        } else if (parse_is_name(p, i) && parse_is(p, i + 1, "(")) {
            name = i;
        }
    }
    int open = name + 1, close = parse_token(p, open)->match;
    kernel.name = qualified(p, name);
    kernel.max_threads = h.max_threads;
    if (!kernel.name) return no_memory(p, name);
    bool good = parse_parameters(p, &kernel, open);
    bool defined = parse_is(p, close + 1, "{");
    if (!good || !defined) { /* a declaration only: the definition follows */
        free(kernel.parameters);
        *at = open - 1;
        return good && (parse_is(p, close + 1, ";") ||
                        msl_error(p->unit, close, p->message, "a kernel's parameters are not followed by its body"));
    }
    msl_unit *u = p->unit;
    if (!sm_grow((void **)&u->kernels, u->kernels_count, &u->kernels_room, sizeof *u->kernels)) {
        free(kernel.parameters);
        return no_memory(p, name);
    }
    int index = u->kernels_count;
    for (int t = open; t < parse_token(p, close + 1)->match; t++) kernel.threadgroup |= parse_is(p, t, "threadgroup");
    u->kernels[u->kernels_count++] = kernel;
    *at = open - 1; /* the list and the body are parsed as usual */
    if (kernel.is_template) return true;
    return add_name(p, name, (msl_name){h.host ? h.host : kernel.name, kernel.name, NULL, index, kernel.line});
}

/* ---- function constants ---- */

static const struct {
    const char *name;
    sm_type type;
} types[] = {
    {"bool", SM_BOOL},       {"char", SM_CHAR},     {"uchar", SM_UCHAR},   {"short", SM_SHORT},
    {"ushort", SM_USHORT},   {"int", SM_INT},       {"uint", SM_UINT},     {"long", SM_LONG},
    {"ulong", SM_ULONG},     {"half", SM_HALF},     {"bfloat", SM_BFLOAT}, {"float", SM_FLOAT},
    {"int8_t", SM_CHAR},     {"uint8_t", SM_UCHAR}, {"int16_t", SM_SHORT}, {"int32_t", SM_INT},
    {"uint16_t", SM_USHORT}, {"uint32_t", SM_UINT}, {"int64_t", SM_LONG},  {"uint64_t", SM_ULONG},
    {"size_t", SM_ULONG},
};

static bool constant_type(const char *text, sm_type *type, int *width)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t n = strlen(types[i].name);
        if (strncmp(text, types[i].name, n)) continue;
        bool vector = text[n] >= '2' && text[n] <= '4' && !text[n + 1];
        if (text[n] && !vector) continue;
        *type = types[i].type;
        *width = vector ? text[n] - '0' : 1;
        return true;
    }
    return false;
}

/* constant T X [[function_constant(E)]]; with the attribute at first..last */
static bool function_constant(parser *p, attribute a, int first, int last)
{
    int name = first - 1, i = p->start;
    bool constant = false;
    for (; i < name; i++) {
        if (parse_is(p, i, "constant")) constant = true;
        else if (!parse_is(p, i, "const") && !parse_is(p, i, "static") && !parse_is(p, i, "constexpr")) break;
    }
    if (!constant || i >= name || !parse_is_name(p, name) || !parse_is(p, last + 1, ";"))
        return msl_error(p->unit, first, p->message,
                         "a function constant must be: constant TYPE NAME [[function_constant(n)]];");
    msl_constant c = {.first = p->start, .last = last + 1};
    c.type_text = parse_plain(p, i, name - 1);
    c.facts.name = word(p, name);
    c.facts.index = parse_number(p, a.first, a.last);
    c.facts.line = parse_token(p, name)->line;
    if (!c.type_text || !c.facts.name) return no_memory(p, first);
    if (!constant_type(c.type_text, &c.facts.type, &c.facts.width))
        return msl_error(p->unit, first, p->message, "a function constant cannot have the type %s", c.type_text);
    if (c.facts.index < 0)
        return msl_error(p->unit, first, p->message, "the index of a function constant must be a number");
    msl_unit *u = p->unit;
    for (int k = 0; k < u->constants_count; k++)
        if (u->constants[k].facts.index == c.facts.index)
            return msl_error(u, first, p->message, "function constant %d is declared twice: '%s' and '%s'",
                             c.facts.index, u->constants[k].facts.name, c.facts.name);
    if (!sm_grow((void **)&u->constants, u->constants_count, &u->constants_room, sizeof *u->constants))
        return no_memory(p, first);
    u->constants[u->constants_count++] = c;
    return true;
}

bool parse_attributes(parser *p, int first, int last, bool outside, bool *kernel)
{
    attribute a;
    int i = first + 2;
    while (next_attribute(p, &i, last - 1, &a)) {
        bool of_kernel = parse_is(p, a.name, "kernel") || parse_is(p, a.name, "host_name") ||
                         parse_is(p, a.name, "max_total_threads_per_threadgroup");
        if (outside && of_kernel) {
            *kernel = true;
            return true;
        }
        if (outside && parse_is(p, a.name, "function_constant") && a.first <= a.last)
            return function_constant(p, a, first, last);
        bool standard =
            parse_is(p, a.name, "clang") || parse_is(p, a.name, "gnu") || parse_is(p, a.name, "maybe_unused") ||
            parse_is(p, a.name, "nodiscard") || parse_is(p, a.name, "fallthrough") || parse_is(p, a.name, "noreturn") ||
            parse_is(p, a.name, "deprecated") || parse_is(p, a.name, "unlikely") || parse_is(p, a.name, "likely");
        found unused = {0};
        if (standard) continue;
        if (!p->parens) return msl_error(p->unit, a.name, p->message, "unknown attribute [[%s]] here", word(p, a.name));
        /* Functions that are not kernels may have attributes on parameters: they have no effect. */
        if (!parameter_attribute(p, a, &unused)) return false;
        if (!p->seen[first] && !parse_drop(p, first, last)) return false;
    }
    return true;
}

bool parse_question(parser *p, int *i)
{
    msl_unit *u = p->unit;
    if (!parse_is(p, *i + 1, "(") || parse_token(p, *i + 1)->match != *i + 3)
        return msl_error(u, *i, p->message, "is_function_constant_defined takes the name of a function constant");
    if (!sm_grow((void **)&u->questions, u->questions_count, &u->questions_room, sizeof *u->questions))
        return no_memory(p, *i);
    u->questions[u->questions_count++] = *i;
    *i += 3;
    return true;
}

/* ---- the end ---- */

/* "f" of "space::f<float>" is the kernel f of that or of any namespace. */
static int kernel_of(const msl_unit *u, const char *target)
{
    size_t n = strcspn(target, " <(");
    for (int exact = 1; exact >= 0; exact--)
        for (int k = 0; k < u->kernels_count; k++) {
            const char *name = u->kernels[k].name, *last = name;
            for (const char *q = name; (q = strstr(q, "::")); last = q) q += 2;
            if (exact) last = name;
            if (strlen(last) == n && !memcmp(last, target, n)) return k;
        }
    return -1;
}

bool parse_finish(parser *p)
{
    msl_unit *u = p->unit;
    for (int i = 0; i < u->names_count; i++) {
        if (u->names[i].kernel < 0) u->names[i].kernel = kernel_of(u, u->names[i].target);
        if (u->names[i].kernel < 0) {
            sm_set_message(p->message, "line %d: error: '%s' instantiates %s, which is not a kernel", u->names[i].line,
                           u->names[i].host, u->names[i].target);
            return false;
        }
    }
    for (int i = 0; i < u->kernels_count; i++) {
        msl_kernel *k = &u->kernels[i];
        k->arguments = calloc((size_t)k->count + 1, sizeof *k->arguments);
        if (!k->arguments) return no_memory(p, 0);
        for (int j = 0; j < k->count; j++)
            if (k->parameters[j].is_argument) k->arguments[k->arguments_count++] = k->parameters[j].argument;
    }
    u->facts = calloc((size_t)u->constants_count + 1, sizeof *u->facts);
    if (!u->facts) return no_memory(p, 0);
    for (int i = 0; i < u->constants_count; i++) u->facts[i] = u->constants[i].facts;
    return true;
}
