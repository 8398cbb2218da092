/* Values of templates. Only namespaces can change, so values are shared without copies.
 * All memory is in the arena of the run, within its limit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja_build.h"
#include "text/unicode.h"

mica_status mica__jinja_alloc(mica__jrun *run, size_t nbytes, void *out_pointer)
{
    void *p = NULL;
    if (nbytes > run->limit || run->arena->total - run->start > run->limit - nbytes)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "it needs more memory than %zu MB", run->limit >> 20);
    p = mica__arena_alloc(run->arena, nbytes ? nbytes : 1);
    memcpy(out_pointer, &p, sizeof p);
    return p ? MICA_OK : mica__fail_memory("a chat template", nbytes);
}

mica_status mica__jinja_charge(mica__jrun *run, int64_t n)
{
    const size_t steps = (size_t)(n / 64);
    if (run->steps > steps) {
        run->steps -= steps;
        return MICA_OK;
    }
    run->steps = 0;
    return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "it takes too many steps");
}

int64_t mica__jv_size(const mica__jvalue *v)
{
    return v->kind == MICA__JV_STRING || v->kind == MICA__JV_LIST ? v->n
           : v->kind == MICA__JV_DICT                             ? (int64_t)v->as.dict->n
                                                                  : 0;
}

mica_status mica__jv_find(mica__jrun *run, const mica__jvalue *s, const mica__jvalue *part, int64_t from, int64_t *at)
{
    *at = part->n == 0 ? from : -1;
    MICA_TRY(mica__jinja_charge(run, s->n - from));
    while (*at < 0 && from + part->n <= s->n) {
        const char *first = memchr(s->as.text + from, part->as.text[0], (size_t)(s->n - part->n - from) + 1);
        if (!first) break;
        from = first - s->as.text;
        MICA_TRY(mica__jinja_charge(run, part->n));
        if (memcmp(first, part->as.text, (size_t)part->n) == 0) *at = from;
        from++;
    }
    return MICA_OK;
}

bool mica__jinja_space(uint32_t c) { return mica__unicode_space(c) || (c >= 0x1c && c <= 0x1f); }

mica__jvalue mica__jv_string(const char *text, size_t n)
{
    return (mica__jvalue){MICA__JV_STRING, (int64_t)n, {.text = text}};
}
mica__jvalue mica__jv_int(int64_t n) { return (mica__jvalue){MICA__JV_INT, n, {NULL}}; }
mica__jvalue mica__jv_bool(bool b) { return (mica__jvalue){MICA__JV_BOOL, b, {NULL}}; }

bool mica__jv_is_text(const mica__jvalue *v, const char *text)
{
    return v->kind == MICA__JV_STRING && (size_t)v->n == strlen(text) && memcmp(v->as.text, text, (size_t)v->n) == 0;
}

bool mica__jv_is_true(const mica__jvalue *v)
{
    switch (v->kind) {
    case MICA__JV_UNDEFINED:
    case MICA__JV_NONE: return false;
    case MICA__JV_FUNCTION: return true;
    case MICA__JV_DICT: return v->as.dict->n > 0;
    default: return v->n != 0;
    }
}

const char *mica__jv_kind(const mica__jvalue *v)
{
    static const char *const names[] = {
        "something undefined", "none", "a truth value", "a number", "a string", "a list", "a dict", "a function"};
    return names[v->kind];
}

/* A truth value counts as 0 or 1, as in Python. */
static bool is_whole(const mica__jvalue *v) { return v->kind == MICA__JV_INT || v->kind == MICA__JV_BOOL; }

/* Equality of all kinds but lists and dicts. */
static bool same_scalar(const mica__jvalue *a, const mica__jvalue *b)
{
    if (is_whole(a) && is_whole(b)) return a->n == b->n;
    if (a->kind != b->kind || a->kind == MICA__JV_LIST || a->kind == MICA__JV_DICT) return false;
    if (a->kind == MICA__JV_STRING) return a->n == b->n && memcmp(a->as.text, b->as.text, (size_t)a->n) == 0;
    return a->kind == MICA__JV_NONE || a->kind == MICA__JV_UNDEFINED || (a->n == b->n && a->as.macro == b->as.macro);
}

/* Values may share parts, so that a short template makes comparisons that take for ever: each element is charged. */
static mica_status same_value(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, int depth, bool *same)
{
    const bool lists = a->kind == MICA__JV_LIST && b->kind == MICA__JV_LIST;
    const bool dicts = a->kind == MICA__JV_DICT && b->kind == MICA__JV_DICT;
    if (!lists && !dicts) {
        *same = same_scalar(a, b);
        return MICA_OK;
    }
    const int64_t n = mica__jv_size(a);
    if (depth > 16)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "a comparison of values nested deeper than 16 levels");
    MICA_TRY(mica__jinja_charge(run, 8 * n));
    *same = n == mica__jv_size(b);
    for (int64_t i = 0; i < n && *same && lists; i++)
        MICA_TRY(same_value(run, &a->as.items[i], &b->as.items[i], depth + 1, same));
    for (int64_t i = 0; i < n && *same && dicts && a->as.dict != b->as.dict; i++) {
        MICA_TRY(mica__jinja_charge(run, n));
        const mica__jvalue other = mica__jv_dict_get(b->as.dict, &a->as.dict->keys[i]);
        MICA_TRY(same_value(run, &a->as.dict->values[i], &other, depth + 1, same));
    }
    return MICA_OK;
}

mica_status mica__jv_equal(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, bool *same)
{
    return same_value(run, a, b, 0, same);
}

mica_status mica__jv_text(mica__jrun *run, const mica__jvalue *v, mica__jvalue *out)
{
    char *room;
    switch (v->kind) {
    case MICA__JV_STRING: *out = *v; return MICA_OK;
    case MICA__JV_UNDEFINED: *out = mica__jv_string("", 0); return MICA_OK;
    case MICA__JV_NONE: *out = mica__jv_string("None", 4); return MICA_OK;
    case MICA__JV_BOOL: *out = mica__jv_string(v->n ? "True" : "False", v->n ? 4 : 5); return MICA_OK;
    case MICA__JV_INT:
        MICA_TRY(mica__jinja_alloc(run, 24, &room));
        *out = mica__jv_string(room, (size_t)snprintf(room, 24, "%" PRId64, v->n));
        return MICA_OK;
    default: return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "%s as text", mica__jv_kind(v));
    }
}

/* The number of characters of a string. */
static int64_t count_characters(const mica__jvalue *v)
{
    int64_t n = 0;
    uint32_t c;
    for (int64_t at = 0; at < v->n; n++) at += (int64_t)mica__utf8_get(v->as.text + at, (size_t)(v->n - at), &c);
    return n;
}

mica_status mica__jv_list(mica__jrun *run, const char *what, const mica__jvalue *v, mica__jvalue *out)
{
    mica__jvalue *items;
    *out = (mica__jvalue){.kind = MICA__JV_LIST};
    if (v->kind == MICA__JV_LIST) *out = *v;
    if (v->kind == MICA__JV_LIST || v->kind == MICA__JV_UNDEFINED) return MICA_OK;
    if (v->kind == MICA__JV_DICT) {
        *out = (mica__jvalue){MICA__JV_LIST, (int64_t)v->as.dict->n, {.items = v->as.dict->keys}};
        return MICA_OK;
    }
    if (v->kind != MICA__JV_STRING)
        return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "%s %s", what, mica__jv_kind(v));
    const int64_t n = count_characters(v);
    MICA_TRY(mica__jinja_alloc(run, (size_t)n * sizeof *items, &items));
    for (int64_t i = 0, at = 0; i < n; i++) {
        uint32_t c;
        const size_t size = mica__utf8_get(v->as.text + at, (size_t)(v->n - at), &c);
        items[i] = mica__jv_string(v->as.text + at, size);
        at += (int64_t)size;
    }
    *out = (mica__jvalue){MICA__JV_LIST, n, {.items = items}};
    return MICA_OK;
}

mica_status mica__jv_join(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, mica__jvalue *out)
{
    char *room;
    MICA_TRY(mica__jinja_alloc(run, (size_t)a->n + (size_t)b->n, &room));
    memcpy(room, a->as.text, (size_t)a->n);
    memcpy(room + a->n, b->as.text, (size_t)b->n);
    *out = mica__jv_string(room, (size_t)(a->n + b->n));
    return MICA_OK;
}

/* ----------------------------------------------------------------- dicts --- */

mica_status mica__jv_dict_new(mica__jrun *run, mica__jvalue *out)
{
    *out = (mica__jvalue){.kind = MICA__JV_DICT};
    return mica__jinja_alloc(run, sizeof *out->as.dict, &out->as.dict);
}

mica_status mica__jv_dict_set(mica__jrun *run, mica__jdict *dict, const mica__jvalue *key, const mica__jvalue *value)
{
    MICA_TRY(mica__jinja_charge(run, (int64_t)dict->n));
    if (key->kind == MICA__JV_LIST || key->kind == MICA__JV_DICT)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "a dict with a key that is %s", mica__jv_kind(key));
    for (size_t i = 0; i < dict->n; i++)
        if (same_scalar(&dict->keys[i], key)) {
            dict->values[i] = *value;
            return MICA_OK;
        }
    if (dict->n == dict->cap) {
        const size_t cap = dict->cap ? 2 * dict->cap : 8;
        mica__jvalue *grown;
        MICA_TRY(mica__jinja_alloc(run, 2 * cap * sizeof *grown, &grown));
        if (dict->n) memcpy(grown, dict->keys, dict->n * sizeof *grown);
        if (dict->n) memcpy(grown + cap, dict->values, dict->n * sizeof *grown);
        dict->keys = grown;
        dict->values = grown + cap;
        dict->cap = cap;
    }
    dict->keys[dict->n] = *key;
    dict->values[dict->n++] = *value;
    return MICA_OK;
}

mica__jvalue mica__jv_dict_get(const mica__jdict *dict, const mica__jvalue *key)
{
    for (size_t i = 0; i < dict->n; i++)
        if (same_scalar(&dict->keys[i], key)) return dict->values[i];
    return (mica__jvalue){0};
}

/* ---------------------------------------------------------- items, slices -- */

/* The byte at which character i of a string begins. */
static int64_t character_at(const mica__jvalue *v, int64_t i)
{
    int64_t at = 0;
    uint32_t c;
    for (; i > 0 && at < v->n; i--) at += (int64_t)mica__utf8_get(v->as.text + at, (size_t)(v->n - at), &c);
    return at;
}

mica_status mica__jv_item(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *key, mica__jvalue *out)
{
    *out = (mica__jvalue){0};
    if (a->kind != MICA__JV_LIST) MICA_TRY(mica__jinja_charge(run, mica__jv_size(a)));
    if (a->kind == MICA__JV_DICT) {
        *out = mica__jv_dict_get(a->as.dict, key);
        return MICA_OK;
    }
    if ((a->kind == MICA__JV_LIST || a->kind == MICA__JV_STRING) && is_whole(key)) {
        const int64_t n = a->kind == MICA__JV_LIST ? a->n : count_characters(a);
        const int64_t i = key->n < 0 ? key->n + n : key->n;
        if (i < 0 || i >= n) return MICA_OK; /* undefined, as in Jinja */
        if (a->kind == MICA__JV_LIST) {
            *out = a->as.items[i];
            return MICA_OK;
        }
        const int64_t from = character_at(a, i), to = character_at(a, i + 1);
        *out = mica__jv_string(a->as.text + from, (size_t)(to - from));
        return MICA_OK;
    }
    if (a->kind == MICA__JV_UNDEFINED)
        return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "an item of %s", mica__jv_kind(a));
    return MICA_OK;
}

/* A bound of a slice with this step over n elements, clamped as in Python. */
static int64_t jslice_bound(const mica__jvalue *part, int64_t n, int64_t step, bool first)
{
    int64_t i = step > 0 ? (first ? 0 : n) : (first ? n - 1 : -1);
    if (part->kind == MICA__JV_NONE) return i;
    i = part->n < 0 ? (part->n < -n ? -1 : part->n + n) : part->n;
    if (part->n < 0 && part->n < -n) return step > 0 ? 0 : -1;
    if (step > 0) return i > n ? n : i;
    return i > n - 1 ? n - 1 : i;
}

mica_status mica__jv_slice(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *part, mica__jvalue *out)
{
    MICA_TRY(mica__jinja_charge(run, mica__jv_size(a)));
    for (int i = 0; i < 3; i++)
        if (part[i].kind != MICA__JV_NONE && !is_whole(&part[i]))
            return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "a slice by %s", mica__jv_kind(&part[i]));
    const int64_t step = part[2].kind == MICA__JV_NONE ? 1 : part[2].n;
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX ||
        (a->kind != MICA__JV_LIST && a->kind != MICA__JV_STRING) || (a->kind == MICA__JV_STRING && step != 1))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "a slice of %s with the step %" PRId64,
                                mica__jv_kind(a), step);
    const int64_t n = a->kind == MICA__JV_LIST ? a->n : count_characters(a);
    const int64_t from = jslice_bound(&part[0], n, step, true), to = jslice_bound(&part[1], n, step, false);
    int64_t count = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
    if (step > 0 ? to <= from : from <= to) count = 0;
    if (a->kind == MICA__JV_STRING) {
        const int64_t begin = character_at(a, from), end = count ? character_at(a, to) : begin;
        *out = mica__jv_string(a->as.text + begin, (size_t)(end - begin));
        return MICA_OK;
    }
    mica__jvalue *items;
    MICA_TRY(mica__jinja_alloc(run, (size_t)count * sizeof *items, &items));
    for (int64_t i = 0; i < count; i++) items[i] = a->as.items[from + i * step];
    *out = (mica__jvalue){MICA__JV_LIST, count, {.items = items}};
    return MICA_OK;
}

/* ------------------------------------------------------------- operators --- */

static mica_status jcontains(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, bool *found)
{
    *found = false;
    if (b->kind == MICA__JV_STRING && a->kind == MICA__JV_STRING) {
        int64_t at;
        MICA_TRY(mica__jv_find(run, b, a, 0, &at));
        *found = at >= 0;
    } else if (b->kind == MICA__JV_LIST) {
        for (int64_t i = 0; i < b->n && !*found; i++) MICA_TRY(mica__jv_equal(run, a, &b->as.items[i], found));
    } else if (b->kind == MICA__JV_DICT && a->kind != MICA__JV_LIST && a->kind != MICA__JV_DICT) {
        for (size_t i = 0; i < b->as.dict->n && !*found; i++) *found = same_scalar(a, &b->as.dict->keys[i]);
    } else if (b->kind != MICA__JV_UNDEFINED) {
        return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "%s in %s", mica__jv_kind(a), mica__jv_kind(b));
    }
    return MICA_OK;
}

static mica_status compare(mica__jrun *run, mica__jbinary op, const mica__jvalue *a, const mica__jvalue *b, bool *out)
{
    int order;
    if (a->kind == MICA__JV_STRING && b->kind == MICA__JV_STRING) {
        const size_t n = (size_t)(a->n < b->n ? a->n : b->n);
        order = memcmp(a->as.text, b->as.text, n);
        if (order == 0) order = a->n < b->n ? -1 : a->n > b->n;
    } else if (is_whole(a) && is_whole(b)) {
        order = a->n < b->n ? -1 : a->n > b->n;
    } else {
        const bool lists = a->kind == MICA__JV_LIST && b->kind == MICA__JV_LIST;
        return mica__jinja_fail(lists ? MICA_ERR_UNSUPPORTED : MICA_ERR_FORMAT, run->line, "the order of %s and %s",
                                mica__jv_kind(a), mica__jv_kind(b));
    }
    *out = op == MICA__JB_LT ? order < 0 : op == MICA__JB_LE ? order <= 0 : op == MICA__JB_GT ? order > 0 : order >= 0;
    return MICA_OK;
}

static mica_status calculate(mica__jrun *run, mica__jbinary op, int64_t a, int64_t b, mica__jvalue *out)
{
    int64_t v = 0;
    bool wrong = false;
    switch (op) {
    case MICA__JB_ADD: wrong = __builtin_add_overflow(a, b, &v); break;
    case MICA__JB_SUB: wrong = __builtin_sub_overflow(a, b, &v); break;
    case MICA__JB_MUL: wrong = __builtin_mul_overflow(a, b, &v); break;
    case MICA__JB_FLOOR:
    case MICA__JB_MOD:
        if (b == 0) return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "division by zero");
        if ((wrong = a == INT64_MIN && b == -1)) break;
        /* rounds towards minus infinity, as in Python */
        v = a / b - (a % b != 0 && (a < 0) != (b < 0));
        if (op == MICA__JB_MOD) v = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        break;
    default: return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "a quotient with a fraction");
    }
    if (wrong) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "a number that does not fit into 64 bits");
    *out = mica__jv_int(v);
    return MICA_OK;
}

static mica_status join_lists(mica__jrun *run, const mica__jvalue *a, const mica__jvalue *b, mica__jvalue *out)
{
    mica__jvalue *items;
    MICA_TRY(mica__jinja_alloc(run, (size_t)(a->n + b->n) * sizeof *items, &items));
    if (a->n) memcpy(items, a->as.items, (size_t)a->n * sizeof *items);
    if (b->n) memcpy(items + a->n, b->as.items, (size_t)b->n * sizeof *items);
    *out = (mica__jvalue){MICA__JV_LIST, a->n + b->n, {.items = items}};
    return MICA_OK;
}

mica_status mica__jv_binary(mica__jrun *run, mica__jbinary op, const mica__jvalue *a, const mica__jvalue *b,
                            mica__jvalue *out)
{
    bool truth = false;
    MICA_TRY(mica__jinja_charge(run, mica__jv_size(a) + mica__jv_size(b)));
    if (op == MICA__JB_JOIN) {
        mica__jvalue x, y;
        MICA_TRY(mica__jv_text(run, a, &x));
        MICA_TRY(mica__jv_text(run, b, &y));
        return mica__jv_join(run, &x, &y, out);
    }
    if (op >= MICA__JB_ADD) {
        if (op == MICA__JB_ADD && a->kind == MICA__JV_STRING && b->kind == MICA__JV_STRING)
            return mica__jv_join(run, a, b, out);
        if (op == MICA__JB_ADD && a->kind == MICA__JV_LIST && b->kind == MICA__JV_LIST)
            return join_lists(run, a, b, out);
        if (!is_whole(a) || !is_whole(b)) {
            static const char *const signs[] = {"+", "-", "*", "/", "//", "%"};
            const bool repeats = op == MICA__JB_MUL && (is_whole(a) || is_whole(b)); /* 'a' * 3, which Python has */
            const bool formats = op == MICA__JB_MOD && a->kind == MICA__JV_STRING;
            return mica__jinja_fail(repeats || formats ? MICA_ERR_UNSUPPORTED : MICA_ERR_FORMAT, run->line, "%s %s %s",
                                    mica__jv_kind(a), signs[op - MICA__JB_ADD], mica__jv_kind(b));
        }
        return calculate(run, op, a->n, b->n, out);
    }
    if (op == MICA__JB_EQ || op == MICA__JB_NE) {
        MICA_TRY(mica__jv_equal(run, a, b, &truth));
        truth ^= op == MICA__JB_NE;
    } else if (op == MICA__JB_IN || op == MICA__JB_NOT_IN) {
        MICA_TRY(jcontains(run, a, b, &truth));
        truth ^= op == MICA__JB_NOT_IN;
    } else MICA_TRY(compare(run, op, a, b, &truth));
    *out = mica__jv_bool(truth);
    return MICA_OK;
}

/* ------------------------------------------------------------------ JSON --- */

typedef struct jtext {
    mica__jrun *run;
    char *text;
    size_t n, cap;
} jtext;

static mica_status jtext_put(jtext *t, const char *text, size_t n)
{
    if (n > t->cap - t->n) {
        const size_t cap = 2 * (t->cap + n) + 64;
        char *grown;
        MICA_TRY(mica__jinja_alloc(t->run, cap, &grown));
        if (t->n) memcpy(grown, t->text, t->n);
        t->text = grown;
        t->cap = cap;
    }
    if (n) memcpy(t->text + t->n, text, n);
    t->n += n;
    return MICA_OK;
}

static mica_status json_text(jtext *t, const mica__jvalue *v)
{
    MICA_TRY(jtext_put(t, "\"", 1));
    for (int64_t i = 0; i < v->n; i++) {
        static const char plain[] = "\"\\\n\r\t\b\f", marks[] = "\"\\nrtbf";
        const unsigned char c = (unsigned char)v->as.text[i];
        const char *found = c ? strchr(plain, c) : NULL;
        char code[8];
        if (found) MICA_TRY(jtext_put(t, (const char[]){'\\', marks[found - plain]}, 2));
        else if (c < 0x20) MICA_TRY(jtext_put(t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", c)));
        else MICA_TRY(jtext_put(t, v->as.text + i, 1));
    }
    return jtext_put(t, "\"", 1);
}

/* A line break and its indentation, or, without indentation, a space after a comma. */
static mica_status json_break(jtext *t, int64_t indent, int depth, bool after_comma)
{
    if (indent < 0) return after_comma ? jtext_put(t, " ", 1) : MICA_OK;
    MICA_TRY(jtext_put(t, "\n", 1));
    for (int64_t i = 0; i < indent * depth; i++) MICA_TRY(jtext_put(t, " ", 1));
    return MICA_OK;
}

static mica_status json_any(jtext *t, const mica__jvalue *v, int64_t indent, int depth)
{
    const bool list = v->kind == MICA__JV_LIST;
    mica__jvalue text;
    if (depth > 16)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, t->run->line, "tojson of a value nested deeper than 16 levels");
    switch (v->kind) {
    case MICA__JV_NONE: return jtext_put(t, "null", 4);
    case MICA__JV_BOOL: return jtext_put(t, v->n ? "true" : "false", v->n ? 4 : 5);
    case MICA__JV_STRING: return json_text(t, v);
    case MICA__JV_INT: MICA_TRY(mica__jv_text(t->run, v, &text)); return jtext_put(t, text.as.text, (size_t)text.n);
    case MICA__JV_LIST:
    case MICA__JV_DICT: break;
    default: return mica__jinja_fail(MICA_ERR_FORMAT, t->run->line, "tojson of %s", mica__jv_kind(v));
    }
    const size_t n = list ? (size_t)v->n : v->as.dict->n;
    MICA_TRY(jtext_put(t, list ? "[" : "{", 1));
    for (size_t i = 0; i < n; i++) {
        if (i) MICA_TRY(jtext_put(t, ",", 1));
        MICA_TRY(json_break(t, indent, depth + 1, i > 0));
        if (!list) { /* a key is a string: "true", "null", "1" */
            const mica__jvalue *key = &v->as.dict->keys[i];
            if (key->kind == MICA__JV_BOOL) text = mica__jv_string(key->n ? "true" : "false", key->n ? 4 : 5);
            else if (key->kind == MICA__JV_NONE) text = mica__jv_string("null", 4);
            else MICA_TRY(mica__jv_text(t->run, key, &text));
            MICA_TRY(json_text(t, &text));
            MICA_TRY(jtext_put(t, ": ", 2));
        }
        MICA_TRY(json_any(t, list ? &v->as.items[i] : &v->as.dict->values[i], indent, depth + 1));
    }
    if (n) MICA_TRY(json_break(t, indent, depth, false));
    return jtext_put(t, list ? "]" : "}", 1);
}

mica_status mica__jv_json(mica__jrun *run, const mica__jvalue *v, int64_t indent, mica__jvalue *out)
{
    jtext t = {.run = run};
    if (indent > 16) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "tojson with an indent above 16");
    MICA_TRY(json_any(&t, v, indent, 0));
    *out = mica__jv_string(t.text, t.n);
    return MICA_OK;
}
