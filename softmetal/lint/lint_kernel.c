/* Checks a kernel's result, and for each parameter whether its type fits its
 * attribute. Types are judged as written: only names of the language itself are
 * checked, a name defined by the program may mean any type. */
#include "lint/lint.h"

#include <stdlib.h>
#include <string.h>

/* Attributes without further rules. */
static const char *const others[] = {"texture", "sampler", "stage_in", "id", NULL};

enum { INDEX_LAST = 30, INDEX_UNKNOWN = -1, INDEX_OUTSIDE = -2 };

typedef struct parameter {
    int first, last;
    int pointer;   /* its * & or [ token, or -1 */
    int space;     /* the address space word, or -1 */
    int type;      /* the first word of its type */
    int attribute; /* the name of the first attribute, or -1 */
    int position;  /* buffer, threadgroup: the name of the attribute, or -1 */
    int buffer, threadgroup;
    int index;       /* index of buffer or threadgroup */
    bool other;      /* has one of `others` */
    bool may_be_out; /* a function constant decides whether the parameter exists */
} parameter;

/* buffer(N): returns N if it is a plain number. */
static int index_of(const lint *l, int name)
{
    if (!is(l, name + 1, "(")) return INDEX_OUTSIDE;
    if (is(l, name + 2, "-")) return INDEX_OUTSIDE;
    if (!is_number(l, name + 2) || match(l, name + 1) != name + 3) return INDEX_UNKNOWN;
    const long value = strtol(l->tokens->text + l->tokens->list[name + 2].at, NULL, 0);
    return value > INDEX_LAST ? INDEX_OUTSIDE : (int)value;
}

static void read_attributes(const lint *l, parameter *p, int open)
{
    const int close = match(l, open + 1);
    for (int i = open + 2; i < close; i++) {
        if (opens(l, i)) i = match(l, i);
        if (!is_name(l, i)) continue;
        if (p->attribute < 0) p->attribute = i;
        if (is(l, i, "buffer")) p->buffer = i, p->index = index_of(l, i);
        else if (is(l, i, "threadgroup")) p->threadgroup = i, p->index = index_of(l, i);
        else if (is_any(l, i, msl_vector_positions) || is_any(l, i, msl_scalar_positions)) p->position = i;
        else if (is_any(l, i, others)) p->other = true;
        p->may_be_out |= is(l, i, "function_constant");
    }
}

static parameter read_parameter(const lint *l, int first, int last)
{
    static const char *const spaces[] = {"device", "constant", "threadgroup", NULL};
    static const char *const before[] = {"const", "volatile", "thread", "device", "constant", "threadgroup", NULL};
    parameter p = {first, last, -1, -1, -1, -1, -1, -1, -1, INDEX_UNKNOWN, false, false};
    for (int i = first; i <= last && !is(l, i, "="); i++) {
        const int angle = lint_angle_end(l, i, last);
        if (is_attribute(l, i)) {
            read_attributes(l, &p, i);
            i = match(l, i);
        } else if (angle > 0) i = angle;
        else if (is(l, i, "*") || is(l, i, "&") || is(l, i, "[")) {
            if (p.pointer < 0) p.pointer = i;
            if (opens(l, i)) i = match(l, i);
        } else if (opens(l, i)) i = match(l, i);
        else if (p.space < 0 && is_any(l, i, spaces)) p.space = i;
        else if (p.type < 0 && is_name(l, i) && !is_any(l, i, before)) p.type = i;
    }
    return p;
}

/* Returns whether the word is a scalar of the language, or a vector with 2, 3 or 4. *size: its number of components. */
static bool is_own_type(const lint *l, int i, const char *const *names, int *size)
{
    const msl_token *token = &l->tokens->list[i];
    const char *word = l->tokens->text + token->at;
    for (; *names != NULL; names++) {
        const size_t n = strlen(*names);
        if (token->length < n || memcmp(word, *names, n) != 0) continue;
        *size = token->length == n ? 1 : word[n] - '0';
        if (token->length == n || (token->length == n + 1 && *size >= 2 && *size <= 4)) return true;
    }
    return false;
}

static bool is_any_own_type(const lint *l, int i)
{
    static const char *const names[] = {"bool",     "char",     "uchar",    "short",   "ushort",   "int",
                                        "uint",     "long",     "ulong",    "half",    "float",    "bfloat",
                                        "size_t",   "unsigned", "signed",   "int8_t",  "uint8_t",  "int16_t",
                                        "uint16_t", "int32_t",  "uint32_t", "int64_t", "uint64_t", NULL};
    int size;
    return i >= 0 && is_own_type(l, i, names, &size);
}

static bool fits_position(const lint *l, int type, int position)
{
    static const char *const names[] = {"uint", "ushort", "uint32_t", "uint16_t", "unsigned", NULL};
    int size;
    if (!is_own_type(l, type, names, &size)) return false;
    if (is(l, type, "unsigned") && (is(l, type + 1, "char") || is(l, type + 1, "long"))) return false;
    return size <= (is_any(l, position, msl_vector_positions) ? 3 : 1);
}

static void report_type(const lint *l, const parameter *p, int attribute)
{
    const msl_token *type = &l->tokens->list[p->type < 0 ? p->first : p->type];
    const msl_token *name = &l->tokens->list[attribute];
    lint_report(l->out, l->tokens, attribute, "the type '%.*s%s' is not valid for the attribute '%.*s'",
                (int)type->length, l->tokens->text + type->at,
                p->pointer < 0           ? ""
                : is(l, p->pointer, "&") ? " &"
                                         : " *",
                (int)name->length, l->tokens->text + name->at);
}

static void check_memory(const lint *l, const parameter *p)
{
    const int name = p->buffer >= 0 ? p->buffer : p->threadgroup;
    if (p->index == INDEX_OUTSIDE)
        lint_report(l->out, l->tokens, name, "the index of '%s' must be between 0 and %d",
                    p->buffer >= 0 ? "buffer" : "threadgroup", INDEX_LAST);
    if (p->pointer < 0) {
        if (is_any_own_type(l, p->type)) report_type(l, p, name);
    } else if (p->space >= 0 && is(l, p->space, "threadgroup") != (p->threadgroup >= 0))
        lint_report(l->out, l->tokens, name, "a pointer to %s memory cannot be a '%s'",
                    p->threadgroup >= 0 ? "other" : "threadgroup", p->buffer >= 0 ? "buffer" : "threadgroup");
}

static void check_parameter(const lint *l, const parameter *p)
{
    if (p->pointer >= 0 && is(l, p->pointer, "*") && is(l, p->pointer + 1, "*"))
        lint_report(l->out, l->tokens, p->pointer, "a kernel's parameter is a pointer to a pointer");
    if (p->pointer >= 0 && p->space < 0 && contains(l, p->first, p->pointer, "thread"))
        lint_report(l->out, l->tokens, p->pointer, "a kernel's pointer must be device, constant or threadgroup");
    if (p->pointer >= 0 && p->space < 0 && is(l, p->pointer, "["))
        lint_report(l->out, l->tokens, p->pointer, "a pointer without an address space in a parameter");
    if (p->buffer >= 0 || p->threadgroup >= 0) check_memory(l, p);
    else if (p->position >= 0) {
        const bool own = is_any_own_type(l, p->type);
        if (p->pointer >= 0 || (own && !fits_position(l, p->type, p->position))) report_type(l, p, p->position);
    } else if (p->pointer < 0 && !p->other && is_any_own_type(l, p->type)) {
        if (p->attribute < 0) lint_report(l->out, l->tokens, p->type, "a kernel's parameter without an attribute");
        else {
            const msl_token *name = &l->tokens->list[p->attribute];
            lint_report(l->out, l->tokens, p->attribute, "'%.*s' is not an attribute of a kernel's parameter",
                        (int)name->length, l->tokens->text + name->at);
        }
    }
}

/* The number of components of a position's type, 1: a scalar, or a type of unknown size. */
static int components(const lint *l, const parameter *p)
{
    static const char *const names[] = {"uint", "ushort", NULL};
    int size = 1;
    return p->position >= 0 && p->type >= 0 && is_own_type(l, p->type, names, &size) ? size : 1;
}

void lint_kernel(const lint *l, int begin, int open)
{
    int buffers[INDEX_LAST + 1] = {0}, groups[INDEX_LAST + 1] = {0}, size = 1;
    if (!contains(l, begin, open - 1, "void"))
        lint_report(l->out, l->tokens, open - 1, "a kernel's result must be void");
    for (int at = open + 1, first, last; lint_next_parameter(l, open, &at, &first, &last);) {
        if (is(l, first, ".")) lint_report(l->out, l->tokens, first, "a kernel has no variable arguments");
        if (!is_name(l, first) && !is_attribute(l, first)) continue;
        const parameter p = read_parameter(l, first, last);
        check_parameter(l, &p);
        const int n = components(l, &p);
        if (n > 1 && size > 1 && n != size)
            lint_report(l->out, l->tokens, p.type, "positions that are vectors of different sizes");
        size = n > 1 ? n : size;
        if (p.index < 0 || p.may_be_out) continue;
        int *taken = p.buffer >= 0 ? buffers : groups;
        if (taken[p.index]++ > 0)
            lint_report(l->out, l->tokens, p.buffer >= 0 ? p.buffer : p.threadgroup,
                        "another parameter has the '%s' of index %d", p.buffer >= 0 ? "buffer" : "threadgroup",
                        p.index);
    }
}
