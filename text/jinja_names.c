/* Filters, tests and methods that templates may call by name. Each is a row of a
 * table; other names are refused. */
#include <inttypes.h>
#include <string.h>

#include "text/jinja_build.h"
#include "text/unicode.h"

typedef struct jname {
    const char *name;
    mica__jinja_call *call;
    int most;          /* arguments                                                              */
    const char *names; /* of the arguments, each followed by a space; NULL: the call checks them */
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

/* Puts named arguments in their positions; those left out are undefined. Too many, or unknown names, are an error. */
static mica_status bind_arguments(mica__jrun *run, const jname *f, const mica__jargs *args, const mica__jargs **out)
{
    mica__jargs *bound;
    bool named = false;
    *out = args;
    if (args->n > f->most)
        return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "'%s' has %d arguments; it takes %d", f->name, args->n,
                                f->most);
    for (int i = 0; i < args->n; i++) named |= args->name[i] != NULL;
    if (!named || !f->names) return MICA_OK;
    MICA_TRY(mica__jinja_alloc(run, sizeof *bound, &bound));
    *bound = (mica__jargs){.n = 0};
    for (int i = 0; i < args->n; i++) {
        int place = args->name[i] ? -1 : i, k = 0;
        for (const char *at = f->names; args->name[i] && *at; at += strcspn(at, " ") + 1, k++)
            if (strcspn(at, " ") == args->name_length[i] && memcmp(at, args->name[i], args->name_length[i]) == 0)
                place = k;
        if (place < 0)
            return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "'%s' has no argument '%.*s'", f->name,
                                    args->name_length[i] < 60 ? (int)args->name_length[i] : 60, args->name[i]);
        bound->v[place] = args->v[i];
        if (place >= bound->n) bound->n = place + 1;
    }
    *out = bound;
    return MICA_OK;
}

static bool is_given(const mica__jargs *args, int place)
{
    return place < args->n && args->v[place].kind != MICA__JV_UNDEFINED;
}

/* ------------------------------------------------------------- of strings -- */

static bool is_stripped(uint32_t c, const mica__jargs *args)
{
    if (args->n == 0 || args->v[0].kind != MICA__JV_STRING) return mica__jinja_space(c);
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
    MICA_TRY(mica__jv_text(run, v, &s));
    if (args->n && args->v[0].kind != MICA__JV_STRING && args->v[0].kind != MICA__JV_NONE)
        return fail_kind(run, "stripping characters", &args->v[0]);
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

/* Which letters become upper case; the others become lower case. */
typedef enum jcase {
    JCASE_ALL,
    JCASE_NONE,
    JCASE_FIRST,
    JCASE_AFTER_OTHERS, /* after a character without a case: Python's str.title       */
    JCASE_AFTER_SPACE   /* after white space or one of -({[<: the filter title of Jinja */
} jcase;

/* Changes ASCII letters only. */
static mica_status change_case(mica__jrun *run, const mica__jvalue *v, jcase which, mica__jvalue *out)
{
    mica__jvalue s;
    char *room;
    MICA_TRY(mica__jv_text(run, v, &s));
    MICA_TRY(mica__jinja_alloc(run, (size_t)s.n, &room));
    bool begins = true;
    uint32_t c;
    for (int64_t i = 0, size; i < s.n; i += size) {
        size = (int64_t)mica__utf8_get(s.as.text + i, (size_t)(s.n - i), &c);
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool up = which == JCASE_ALL || (which != JCASE_NONE && begins);
        memcpy(room + i, s.as.text + i, (size_t)size);
        if (letter) room[i] = (char)(up ? c & ~32u : c | 32);
        const mica__category k = mica__unicode_category(c);
        if (which == JCASE_AFTER_OTHERS) begins = k != MICA__LU && k != MICA__LL && k != MICA__LT;
        else
            begins = which == JCASE_AFTER_SPACE && (mica__jinja_space(c) || (c && c < 0x80 && strchr("-({[<", (int)c)));
    }
    *out = mica__jv_string(room, (size_t)s.n);
    return MICA_OK;
}

static mica_status call_upper(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, JCASE_ALL, out);
}
static mica_status call_lower(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, JCASE_NONE, out);
}
static mica_status call_capitalize(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, JCASE_FIRST, out);
}
static mica_status call_title(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, JCASE_AFTER_OTHERS, out);
}

static mica_status call_title_filter(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return change_case(r, v, JCASE_AFTER_SPACE, out);
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
    const mica__jkind k = a->n > 2 ? a->v[2].kind : MICA__JV_NONE;
    if (k != MICA__JV_INT && k != MICA__JV_BOOL && k != MICA__JV_NONE)
        return fail_kind(r, "the count of replace", &a->v[2]);
    const bool limited = k != MICA__JV_NONE && a->v[2].n >= 0;
    size_t n = 0;
    int64_t count, done = 0, at = 0;
    char *room;
    MICA_TRY(count_parts(r, v, from, limited ? a->v[2].n : INT64_MAX, &count));
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

/* The filter: numbers and the like are replaced in their text. */
static mica_status call_replace_filter(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    mica__jvalue s;
    mica__jargs *texts;
    if (a->n < 2) return mica__jinja_fail(MICA_ERR_FORMAT, r->line, "replace needs two arguments");
    MICA_TRY(mica__jinja_alloc(r, sizeof *texts, &texts));
    *texts = *a;
    MICA_TRY(mica__jv_text(r, v, &s));
    for (int i = 0; i < 2; i++) MICA_TRY(mica__jv_text(r, &a->v[i], &texts->v[i]));
    return call_replace(r, &s, texts, out);
}

static mica_status call_split(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    if (!is_given(a, 0) || a->v[0].kind == MICA__JV_NONE)
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "split without a separator");
    MICA_TRY(need_args(r, "split", v, a, 1));
    const mica__jvalue *by = &a->v[0];
    if (a->n > 1 && a->v[1].kind != MICA__JV_INT && a->v[1].kind != MICA__JV_BOOL)
        return fail_kind(r, "the maxsplit of split", &a->v[1]);
    const int64_t most = a->n > 1 && a->v[1].n >= 0 ? a->v[1].n : INT64_MAX;
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
    if (is_given(a, 0) || is_given(a, 2) || is_given(a, 3))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "tojson with an argument other than indent");
    const bool plain = a->n < 2 || a->v[1].kind == MICA__JV_NONE;
    if (!plain && a->v[1].kind == MICA__JV_UNDEFINED) return fail_kind(r, "tojson with an indent", &a->v[1]);
    if (!plain && (a->v[1].kind != MICA__JV_INT || a->v[1].n < 0))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "tojson with an indent that is %s",
                                mica__jv_kind(&a->v[1]));
    return mica__jv_json(r, v, plain ? -1 : a->v[1].n, out);
}

static mica_status pick(mica__jrun *r, const char *name, const mica__jvalue *v, int64_t place, mica__jvalue *out)
{
    const mica__jvalue key = mica__jv_int(place);
    mica__jvalue list;
    if (v->kind == MICA__JV_STRING) return mica__jv_item(r, v, &key, out);
    MICA_TRY(mica__jv_list(r, name, v, &list));
    return mica__jv_item(r, &list, &key, out);
}

static mica_status call_first(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return pick(r, "first of", v, 0, out);
}

static mica_status call_last(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return pick(r, "last of", v, -1, out);
}

static mica_status call_join(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    mica__jvalue text, list, between = mica__jv_string("", 0);
    if (is_given(a, 1)) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "join of an attribute");
    if (a->n) MICA_TRY(mica__jv_text(r, &a->v[0], &between));
    MICA_TRY(mica__jv_list(r, "join of", v, &list));
    *out = mica__jv_string("", 0);
    for (int64_t i = 0; i < list.n; i++) {
        if (i) MICA_TRY(mica__jv_join(r, out, &between, out));
        MICA_TRY(mica__jv_text(r, &list.as.items[i], &text));
        MICA_TRY(mica__jv_join(r, out, &text, out));
    }
    return MICA_OK;
}

static mica_status call_string(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return mica__jv_text(r, v, out);
}

/* Digits with a sign and single underscores between them, as Python's int reads them; spaces were removed. */
static mica_status read_int(mica__jrun *r, const mica__jvalue *s, int64_t *n, bool *whole)
{
    int64_t i = s->n && (s->as.text[0] == '-' || s->as.text[0] == '+');
    const bool negative = i && s->as.text[0] == '-';
    *whole = i < s->n;
    for (*n = 0; i < s->n && *whole; i++) {
        const char c = s->as.text[i];
        const bool digit = c >= '0' && c <= '9', before = i > 0 && s->as.text[i - 1] >= '0' && s->as.text[i - 1] <= '9';
        *whole = digit || (c == '_' && before && i + 1 < s->n);
        if (digit && (__builtin_mul_overflow(*n, (int64_t)10, n) || __builtin_add_overflow(*n, (int64_t)(c - '0'), n)))
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "a number that does not fit into 64 bits");
        if (c == '_' && *whole) *whole = s->as.text[i + 1] >= '0' && s->as.text[i + 1] <= '9';
    }
    if (negative) *n = -*n;
    return MICA_OK;
}

static mica_status call_int(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    const mica__jargs none = {.n = 0};
    mica__jvalue s;
    int64_t n;
    bool whole = false;
    if (v->kind == MICA__JV_UNDEFINED) return fail_kind(r, "int", v);
    if (is_given(a, 1)) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "int with a base");
    *out = a->n ? a->v[0] : mica__jv_int(0);
    if (v->kind == MICA__JV_INT || v->kind == MICA__JV_BOOL) *out = mica__jv_int(v->n);
    if (v->kind != MICA__JV_STRING) return MICA_OK;
    MICA_TRY(strip_sides(r, v, &none, true, true, &s));
    MICA_TRY(read_int(r, &s, &n, &whole));
    if (whole) *out = mica__jv_int(n);
    for (int64_t i = 0; i < s.n && !whole; i++) /* 1.5, 1e3, inf, digits of other scripts: Python reads these too */
        if ((s.as.text[i] >= '0' && s.as.text[i] <= '9') || (unsigned char)s.as.text[i] >= 0x80 ||
            (s.as.text[i] | 32) == 'n')
            return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "int of a text that is no integer");
    return MICA_OK;
}

static mica_status call_list(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return mica__jv_list(r, "list of", v, out);
}

static mica_status call_keys(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)a;
    return v->kind == MICA__JV_DICT ? mica__jv_list(r, "keys of", v, out) : fail_kind(r, "keys", v);
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
    if (v->kind == MICA__JV_UNDEFINED) { /* of the filter only: methods need a value */
        *out = (mica__jvalue){.kind = MICA__JV_LIST};
        return MICA_OK;
    }
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

static mica_status call_same(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    (void)r, (void)a;
    *out = *v;
    return MICA_OK;
}

static const jname jfilters[] = {
    {"trim", call_strip, 1, "chars "},
    {"upper", call_upper, 0, ""},
    {"lower", call_lower, 0, ""},
    {"capitalize", call_capitalize, 0, ""},
    {"title", call_title_filter, 0, ""},
    {"length", call_length, 0, ""},
    {"count", call_length, 0, ""},
    {"default", call_default, 2, "default_value boolean "},
    {"d", call_default, 2, "default_value boolean "},
    {"tojson", call_tojson, 4, "ensure_ascii indent separators sort_keys "}, /* as in transformers */
    {"first", call_first, 0, ""},
    {"last", call_last, 0, ""},
    {"join", call_join, 2, "d attribute "},
    {"string", call_string, 0, ""},
    {"int", call_int, 2, "default base "},
    {"list", call_list, 0, ""},
    {"reverse", call_reverse, 0, ""},
    {"items", call_items, 0, ""},
    {"replace", call_replace_filter, 3, "old new count "},
    {"safe", call_same, 0, ""},
    {"select", mica__jinja_select, MICA__JINJA_ARGS, NULL},
    {"reject", mica__jinja_reject, MICA__JINJA_ARGS, NULL},
    {"selectattr", mica__jinja_selectattr, MICA__JINJA_ARGS, NULL},
    {"rejectattr", mica__jinja_rejectattr, MICA__JINJA_ARGS, NULL},
    {"map", mica__jinja_map, MICA__JINJA_ARGS, NULL},
};
static const jname jmethods[] = {
    {"strip", call_strip, 1, ""},
    {"lstrip", call_lstrip, 1, ""},
    {"rstrip", call_rstrip, 1, ""},
    {"upper", call_upper, 0, ""},
    {"lower", call_lower, 0, ""},
    {"title", call_title, 0, ""},
    {"capitalize", call_capitalize, 0, ""},
    {"startswith", call_startswith, 1, ""},
    {"endswith", call_endswith, 1, ""},
    {"replace", call_replace, 3, ""},
    {"split", call_split, 2, "sep maxsplit "},
    {"items", call_items, 0, ""},
    {"keys", call_keys, 0, ""},
    {"values", call_values, 0, ""},
    {"get", call_get, 2, ""},
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
    MICA_TRY(bind_arguments(run, filter, args, &args));
    return filter->call(run, v, args, out);
}

mica_status mica__jinja_method(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                               const mica__jargs *args, mica__jvalue *out)
{
    const jname *method = find_jname(jmethods, N_METHODS, name, n);
    if (!method || (v->kind != MICA__JV_STRING && v->kind != MICA__JV_DICT))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "the method '%.*s' of %s is not known",
                                n < 60 ? (int)n : 60, name, mica__jv_kind(v));
    MICA_TRY(bind_arguments(run, method, args, &args));
    return method->call(run, v, args, out);
}
