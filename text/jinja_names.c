/* Filters, tests and methods that templates may call by name. Each is a row of a
 * table; other names are refused. */
#include <inttypes.h>
#include <string.h>

#include "text/jinja_build.h"
#include "text/unicode.h"

typedef mica_status jcall_fn(mica__jrun *run, const mica__jvalue *v, const mica__jargs *args, mica__jvalue *out);
typedef struct jname {
    const char *name;
    jcall_fn *call;
} jname;

static const jname *find_jname(const jname *table, size_t n_table, const char *name, size_t n)
{
    for (size_t i = 0; i < n_table; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0) return &table[i];
    return NULL;
}

static mica_status fail_kind(const mica__jrun *run, const char *name, const mica__jvalue *v)
{
    return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "%s of %s", name, mica__jv_kind(v));
}

static mica_status need_string(mica__jrun *run, const char *name, const mica__jvalue *v, mica__jvalue *out)
{
    *out = *v;
    if (v->kind == MICA__JV_STRING) return MICA_OK;
    if (v->kind == MICA__JV_INT || v->kind == MICA__JV_BOOL || v->kind == MICA__JV_UNDEFINED)
        return mica__jv_text(run, v, out);
    return fail_kind(run, name, v);
}

/* An argument by its name or its position; NULL if it was not given. */
static const mica__jvalue *jarg(const mica__jargs *args, int place, const char *name)
{
    for (int i = 0; i < args->n; i++)
        if (args->name[i] && args->name_length[i] == strlen(name) && memcmp(args->name[i], name, strlen(name)) == 0)
            return &args->v[i];
    return place < args->n && !args->name[place] ? &args->v[place] : NULL;
}

/* ------------------------------------------------------------- of strings -- */

static bool python_space(uint32_t c) { return mica__unicode_space(c) || (c >= 0x1c && c <= 0x1f); }

static bool is_stripped(uint32_t c, const mica__jargs *args)
{
    if (args->n == 0 || args->v[0].kind != MICA__JV_STRING) return python_space(c);
    const mica__jvalue *set = &args->v[0];
    uint32_t one;
    for (int64_t at = 0; at < set->n;) {
        at += (int64_t)mica__utf8_get(set->as.text + at, (size_t)(set->n - at), &one);
        if (one == c) return true;
    }
    return false;
}

static mica_status strip_sides(mica__jrun *run, const mica__jvalue *v, const mica__jargs *args, bool left, bool right,
                               mica__jvalue *out)
{
    mica__jvalue s;
    MICA_TRY(need_string(run, "trim", v, &s));
    int64_t from = 0, to = 0;
    bool leading = left;
    uint32_t c;
    for (int64_t at = 0, next; at < s.n; at = next) {
        next = at + (int64_t)mica__utf8_get(s.as.text + at, (size_t)(s.n - at), &c);
        if (is_stripped(c, args)) {
            if (leading) from = next;
            continue;
        }
        leading = false;
        to = next;
    }
    if (!right) to = s.n;
    *out = mica__jv_string(s.as.text + from, (size_t)(to > from ? to - from : 0));
    return MICA_OK;
}

static mica_status call_strip(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return strip_sides(r, v, a, true, true, out);
}
static mica_status call_lstrip(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return strip_sides(r, v, a, true, false, out);
}
static mica_status call_rstrip(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return strip_sides(r, v, a, false, true, out);
}

/* Changes ASCII letters only. first: the first letter is upper case; word: of each word. */
static mica_status change_case(mica__jrun *run, const mica__jvalue *v, bool upper, bool first, bool word,
                               mica__jvalue *out)
{
    mica__jvalue s;
    char *room;
    MICA_TRY(need_string(run, "upper or lower", v, &s));
    MICA_TRY(mica__jinja_alloc(run, (size_t)s.n, &room));
    bool begins = true;
    for (int64_t i = 0; i < s.n; i++) {
        const char c = s.as.text[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool up = upper || (first && (word ? begins : i == 0));
        room[i] = !letter ? c : (char)(up ? c & ~32 : c | 32);
        begins = !letter && (unsigned char)c < 0x80;
    }
    *out = mica__jv_string(room, (size_t)s.n);
    return MICA_OK;
}

static mica_status call_upper(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, true, false, false, out);
}
static mica_status call_lower(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, false, false, false, out);
}
static mica_status call_capitalize(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, false, true, false, out);
}
static mica_status call_title(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, false, true, true, out);
}

static mica_status need_args(const mica__jrun *run, const char *name, const mica__jvalue *v, const mica__jargs *args,
                             int strings)
{
    bool good = v->kind == MICA__JV_STRING && args->n >= strings;
    for (int i = 0; i < strings && good; i++) good = args->v[i].kind == MICA__JV_STRING;
    return good ? MICA_OK
                : mica__jinja_fail(MICA_ERR_FORMAT, run->line, "%s needs a string and %d string arguments", name,
                                   strings);
}

static mica_status call_startswith(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    MICA_TRY(need_args(r, "startswith", v, a, 1));
    *out = mica__jv_bool(a->v[0].n <= v->n && memcmp(v->as.text, a->v[0].as.text, (size_t)a->v[0].n) == 0);
    return MICA_OK;
}

static mica_status call_endswith(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    MICA_TRY(need_args(r, "endswith", v, a, 1));
    const int64_t n = a->v[0].n;
    *out = mica__jv_bool(n <= v->n && memcmp(v->as.text + v->n - n, a->v[0].as.text, (size_t)n) == 0);
    return MICA_OK;
}

/* Counts the occurrences of part in s that do not overlap, up to `most`. */
static mica_status count_parts(mica__jrun *run, const mica__jvalue *s, const mica__jvalue *part, int64_t most,
                               int64_t *n)
{
    *n = 0;
    for (int64_t at, from = 0; *n < most; from = at + part->n, ++*n) {
        MICA_TRY(mica__jv_find(run, s, part, from, &at));
        if (at < 0) break;
    }
    return MICA_OK;
}

static mica_status call_replace(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    MICA_TRY(need_args(r, "replace", v, a, 2));
    const mica__jvalue *from = &a->v[0], *to = &a->v[1];
    if (from->n == 0) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "replace of an empty string");
    size_t n = 0;
    int64_t count, done = 0, at = 0;
    char *room;
    MICA_TRY(count_parts(r, v, from, INT64_MAX, &count));
    if (count && (size_t)to->n > r->limit / (size_t)count)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "the result of replace is too long");
    MICA_TRY(mica__jinja_alloc(r, (size_t)v->n + (size_t)(count * to->n), &room));
    for (; count > 0; count--) {
        MICA_TRY(mica__jv_find(r, v, from, done, &at));
        memcpy(room + n, v->as.text + done, (size_t)(at - done));
        n += (size_t)(at - done);
        memcpy(room + n, to->as.text, (size_t)to->n);
        n += (size_t)to->n;
        done = at + from->n;
    }
    memcpy(room + n, v->as.text + done, (size_t)(v->n - done));
    *out = mica__jv_string(room, n + (size_t)(v->n - done));
    return MICA_OK;
}

static mica_status call_split(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    MICA_TRY(need_args(r, "split", v, a, 1));
    const mica__jvalue *by = &a->v[0];
    const int64_t most = a->n > 1 && a->v[1].kind == MICA__JV_INT && a->v[1].n >= 0 ? a->v[1].n : INT64_MAX;
    if (by->n == 0) return mica__jinja_fail(MICA_ERR_FORMAT, r->line, "split by an empty string");
    int64_t count, done = 0, at = 0;
    mica__jvalue *items;
    MICA_TRY(count_parts(r, v, by, most, &count));
    count++;
    MICA_TRY(mica__jinja_alloc(r, (size_t)count * sizeof *items, &items));
    for (int64_t i = 0; i < count; i++) {
        at = v->n;
        if (i + 1 < count) MICA_TRY(mica__jv_find(r, v, by, done, &at));
        items[i] = mica__jv_string(v->as.text + done, (size_t)(at - done));
        done = at + by->n;
    }
    *out = (mica__jvalue){MICA__JV_LIST, count, {.items = items}};
    return MICA_OK;
}

/* ------------------------------------------------------- of lists and dicts -- */

static mica_status call_length(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    int64_t n = 0;
    uint32_t c;
    (void)a;
    if (v->kind == MICA__JV_LIST) n = v->n;
    else if (v->kind == MICA__JV_DICT) n = (int64_t)v->as.dict->n;
    else if (v->kind == MICA__JV_STRING)
        for (int64_t at = 0; at < v->n; n++) at += (int64_t)mica__utf8_get(v->as.text + at, (size_t)(v->n - at), &c);
    else if (v->kind != MICA__JV_UNDEFINED) return fail_kind(r, "length", v);
    *out = mica__jv_int(n);
    return MICA_OK;
}

static mica_status call_default(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)r;
    const bool falsy = a->n > 1 && mica__jv_is_true(&a->v[1]); /* default(x, true) */
    *out = v->kind != MICA__JV_UNDEFINED && (!falsy || mica__jv_is_true(v)) ? *v
           : a->n                                                           ? a->v[0]
                                                                            : mica__jv_string("", 0);
    return MICA_OK;
}

static mica_status call_tojson(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    const mica__jvalue *indent = jarg(a, 0, "indent");
    return mica__jv_json(r, v, indent && indent->kind == MICA__JV_INT && indent->n >= 0 ? indent->n : -1, out);
}

static mica_status call_first(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    const mica__jvalue zero = mica__jv_int(0);
    return mica__jv_item(r, v, &zero, out);
}

static mica_status call_last(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    const mica__jvalue last = mica__jv_int(-1);
    return mica__jv_item(r, v, &last, out);
}

static mica_status call_join(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    mica__jvalue text;
    if (v->kind != MICA__JV_LIST) return fail_kind(r, "join", v);
    *out = mica__jv_string("", 0);
    for (int64_t i = 0; i < v->n; i++) {
        if (i && a->n && a->v[0].kind == MICA__JV_STRING) MICA_TRY(mica__jv_join(r, out, &a->v[0], out));
        MICA_TRY(mica__jv_text(r, &v->as.items[i], &text));
        MICA_TRY(mica__jv_join(r, out, &text, out));
    }
    return MICA_OK;
}

static mica_status call_string(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return mica__jv_text(r, v, out);
}

static mica_status call_int(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    int64_t n = 0;
    (void)a;
    if (v->kind == MICA__JV_INT || v->kind == MICA__JV_BOOL) {
        *out = mica__jv_int(v->n);
        return MICA_OK;
    }
    if (v->kind != MICA__JV_STRING || v->n > 18) return fail_kind(r, "int", v);
    for (int64_t i = 0; i < v->n; i++) {
        if (v->as.text[i] < '0' || v->as.text[i] > '9') {
            *out = mica__jv_int(0);
            return MICA_OK;
        } /* as Jinja */
        n = 10 * n + (v->as.text[i] - '0');
    }
    *out = mica__jv_int(n);
    return MICA_OK;
}

static mica_status call_list(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    *out = *v;
    if (v->kind == MICA__JV_DICT)
        *out = (mica__jvalue){MICA__JV_LIST, (int64_t)v->as.dict->n, {.items = v->as.dict->keys}};
    else if (v->kind != MICA__JV_LIST) return fail_kind(r, "list", v);
    return MICA_OK;
}

static mica_status call_reverse(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    const mica__jvalue parts[3] = {{.kind = MICA__JV_NONE}, {.kind = MICA__JV_NONE}, mica__jv_int(-1)};
    return mica__jv_slice(r, v, parts, out);
}

static mica_status call_items(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    mica__jvalue *items;
    (void)a;
    if (v->kind != MICA__JV_DICT) return fail_kind(r, "items", v);
    const mica__jdict *d = v->as.dict;
    MICA_TRY(mica__jinja_alloc(r, 3 * d->n * sizeof *items, &items));
    for (size_t i = 0; i < d->n; i++) {
        mica__jvalue *pair = items + d->n + 2 * i;
        pair[0] = d->keys[i], pair[1] = d->values[i];
        items[i] = (mica__jvalue){MICA__JV_LIST, 2, {.items = pair}};
    }
    *out = (mica__jvalue){MICA__JV_LIST, (int64_t)d->n, {.items = items}};
    return MICA_OK;
}

static mica_status call_values(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    if (v->kind != MICA__JV_DICT) return fail_kind(r, "values", v);
    *out = (mica__jvalue){MICA__JV_LIST, (int64_t)v->as.dict->n, {.items = v->as.dict->values}};
    return MICA_OK;
}

static mica_status call_get(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    if (v->kind != MICA__JV_DICT || a->n == 0) return fail_kind(r, "get", v);
    *out = mica__jv_dict_get(v->as.dict, &a->v[0]);
    if (out->kind == MICA__JV_UNDEFINED) *out = a->n > 1 ? a->v[1] : (mica__jvalue){.kind = MICA__JV_NONE};
    return MICA_OK;
}

/* Keeps the elements for which a test returns `wanted`. first: index of the argument that names the test;
 * if it is 1, argument 0 names an attribute to test. */
static mica_status filter_items(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, int first, bool wanted,
                                mica__jvalue *out)
{
    mica__jvalue *kept, item;
    mica__jargs rest = {.n = 0};
    int64_t n = 0;
    if (!mica__jv_is_true(v)) { /* empty input */
        *out = (mica__jvalue){.kind = MICA__JV_LIST};
        return MICA_OK;
    }
    if (v->kind != MICA__JV_LIST) return fail_kind(r, "select", v);
    for (int i = first + 1; i < a->n; i++) rest.v[rest.n++] = a->v[i];
    for (int i = 0; i < a->n; i++)
        if (a->name[i] || a->v[i].kind != MICA__JV_STRING)
            if (i <= first) return mica__jinja_fail(MICA_ERR_FORMAT, r->line, "select needs its names as strings");
    if (first && a->n == 0) return mica__jinja_fail(MICA_ERR_FORMAT, r->line, "selectattr needs a name");
    MICA_TRY(mica__jinja_alloc(r, (size_t)v->n * sizeof *kept, &kept));
    for (int64_t i = 0; i < v->n; i++) {
        item = v->as.items[i];
        if (first) MICA_TRY(mica__jv_item(r, &v->as.items[i], &a->v[0], &item));
        bool holds = mica__jv_is_true(&item);
        if (a->n > first)
            MICA_TRY(mica__jinja_test(r, a->v[first].as.text, (size_t)a->v[first].n, &item, &rest, &holds));
        if (holds == wanted) kept[n++] = v->as.items[i];
    }
    *out = (mica__jvalue){MICA__JV_LIST, n, {.items = kept}};
    return MICA_OK;
}

static mica_status call_select(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 0, true, out);
}
static mica_status call_reject(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 0, false, out);
}
static mica_status call_selectattr(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 1, true, out);
}
static mica_status call_rejectattr(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 1, false, out);
}

/* map(attribute='x'), or map('filter'). */
static mica_status call_map(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    const mica__jvalue *attribute = jarg(a, MICA__JINJA_ARGS, "attribute"), *filter = jarg(a, 0, "");
    const mica__jargs none = {.n = 0};
    mica__jvalue *items;
    if (!mica__jv_is_true(v)) {
        *out = (mica__jvalue){.kind = MICA__JV_LIST};
        return MICA_OK;
    }
    if (v->kind != MICA__JV_LIST) return fail_kind(r, "map", v);
    if (!attribute && (!filter || filter->kind != MICA__JV_STRING || a->n > 1 || mica__jv_is_text(filter, "map")))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "map needs an attribute or the name of a filter");
    MICA_TRY(mica__jinja_alloc(r, (size_t)v->n * sizeof *items, &items));
    for (int64_t i = 0; i < v->n; i++)
        MICA_TRY(attribute
                     ? mica__jv_item(r, &v->as.items[i], attribute, &items[i])
                     : mica__jinja_filter(r, filter->as.text, (size_t)filter->n, &v->as.items[i], &none, &items[i]));
    *out = (mica__jvalue){MICA__JV_LIST, v->n, {.items = items}};
    return MICA_OK;
}

static mica_status call_same(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)r, (void)a;
    *out = *v;
    return MICA_OK;
}

static const jname jfilters[] = {
    {"trim", call_strip},
    {"upper", call_upper},
    {"lower", call_lower},
    {"capitalize", call_capitalize},
    {"title", call_title},
    {"length", call_length},
    {"count", call_length},
    {"default", call_default},
    {"d", call_default},
    {"tojson", call_tojson},
    {"first", call_first},
    {"last", call_last},
    {"join", call_join},
    {"string", call_string},
    {"int", call_int},
    {"list", call_list},
    {"reverse", call_reverse},
    {"items", call_items},
    {"replace", call_replace},
    {"safe", call_same},
    {"select", call_select},
    {"reject", call_reject},
    {"selectattr", call_selectattr},
    {"rejectattr", call_rejectattr},
    {"map", call_map},
};
static const jname jmethods[] = {
    {"strip", call_strip},
    {"lstrip", call_lstrip},
    {"rstrip", call_rstrip},
    {"upper", call_upper},
    {"lower", call_lower},
    {"title", call_title},
    {"capitalize", call_capitalize},
    {"startswith", call_startswith},
    {"endswith", call_endswith},
    {"replace", call_replace},
    {"split", call_split},
    {"items", call_items},
    {"keys", call_list},
    {"values", call_values},
    {"get", call_get},
};
enum { N_FILTERS = sizeof jfilters / sizeof jfilters[0], N_METHODS = sizeof jmethods / sizeof jmethods[0] };

mica_status mica__jinja_filter(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                               const mica__jargs *args, mica__jvalue *out)
{
    const jname *filter = find_jname(jfilters, N_FILTERS, name, n);
    if (!filter)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "the filter '%.*s' is not known", n < 60 ? (int)n : 60,
                                name);
    MICA_TRY(mica__jinja_charge(run, mica__jv_size(v)));
    return filter->call(run, v, args, out);
}

mica_status mica__jinja_method(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                               const mica__jargs *args, mica__jvalue *out)
{
    const jname *method = find_jname(jmethods, N_METHODS, name, n);
    if (!method || (v->kind != MICA__JV_STRING && v->kind != MICA__JV_DICT))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "the method '%.*s' of %s is not known",
                                n < 60 ? (int)n : 60, name, mica__jv_kind(v));
    return method->call(run, v, args, out);
}

/* ----------------------------------------------------------------- tests --- */

static const char *const jtests[] = {"defined",  "undefined", "none", "string", "number",  "integer", "mapping",
                                     "iterable", "sequence",  "true", "false",  "boolean", "odd",     "even",
                                     "equalto",  "eq",        "ne",   "in",     "callable"};
enum { N_TESTS = sizeof jtests / sizeof jtests[0] };

static int find_test(const char *name, size_t n)
{
    for (int i = 0; i < N_TESTS; i++)
        if (strlen(jtests[i]) == n && memcmp(jtests[i], name, n) == 0) return i;
    return -1;
}

mica_status mica__jinja_test(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                             const mica__jargs *args, bool *out)
{
    const mica__jkind k = v->kind;
    mica__jvalue in;
    switch (find_test(name, n)) {
    case 0: *out = k != MICA__JV_UNDEFINED; break;
    case 1: *out = k == MICA__JV_UNDEFINED; break;
    case 2: *out = k == MICA__JV_NONE; break;
    case 3: *out = k == MICA__JV_STRING; break;
    case 4: *out = k == MICA__JV_INT || k == MICA__JV_BOOL; break;
    case 5: *out = k == MICA__JV_INT; break;
    case 6: *out = k == MICA__JV_DICT; break;
    case 7:
    case 8: *out = k == MICA__JV_LIST || k == MICA__JV_STRING || k == MICA__JV_DICT; break;
    case 9: *out = k == MICA__JV_BOOL && v->n; break;
    case 10: *out = k == MICA__JV_BOOL && !v->n; break;
    case 11: *out = k == MICA__JV_BOOL; break;
    case 12: *out = k == MICA__JV_INT && v->n % 2 != 0; break;
    case 13: *out = k == MICA__JV_INT && v->n % 2 == 0; break;
    case 18: *out = k == MICA__JV_FUNCTION; break;
    case -1:
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "the test '%.*s' is not known", n < 60 ? (int)n : 60,
                                name);
    default:
        if (args->n == 0)
            return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "the test '%.*s' needs a value", (int)n, name);
        *out = mica__jv_equal(v, &args->v[0], 0) != (name[0] == 'n');
        if (name[0] == 'i') {
            MICA_TRY(mica__jv_binary(run, MICA__JB_IN, v, &args->v[0], &in));
            *out = in.n != 0;
        }
    }
    return MICA_OK;
}
