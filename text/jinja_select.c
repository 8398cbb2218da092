/* The filters that apply a test or another filter to each element: select, reject, selectattr, rejectattr, map. */
#include <string.h>

#include "text/jinja_build.h"

/* 'a.b' and '0' are paths in Jinja. */
static mica_status check_attribute(const mica__jrun *run, const mica__jvalue *name)
{
    if (name->kind != MICA__JV_STRING ||
        (name->n && !memchr(name->as.text, '.', (size_t)name->n) && (name->as.text[0] < '0' || name->as.text[0] > '9')))
        return MICA_OK;
    return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "an attribute that is no name");
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
    mica__jvalue list;
    MICA_TRY(mica__jv_list(r, "select of", v, &list));
    v = &list;
    for (int i = first + 1; i < a->n; i++) rest.v[rest.n++] = a->v[i];
    for (int i = 0; i < a->n; i++)
        if (a->name[i] || a->v[i].kind != MICA__JV_STRING)
            if (i <= first) return mica__jinja_fail(MICA_ERR_FORMAT, r->line, "select needs its names as strings");
    if (first && a->n == 0) return mica__jinja_fail(MICA_ERR_FORMAT, r->line, "selectattr needs a name");
    if (first) MICA_TRY(check_attribute(r, &a->v[0]));
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

mica_status mica__jinja_select(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 0, true, out);
}
mica_status mica__jinja_reject(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 0, false, out);
}
mica_status mica__jinja_selectattr(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 1, true, out);
}
mica_status mica__jinja_rejectattr(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    return filter_items(r, v, a, 1, false, out);
}

/* map(attribute='x'), or map('filter'). */
mica_status mica__jinja_map(mica__jrun *r, const mica__jvalue *v, const mica__jargs *a, mica__jvalue *out)
{
    const bool by_name = a->n == 1 && a->name[0];
    const mica__jvalue *attribute =
        by_name && a->name_length[0] == 9 && memcmp(a->name[0], "attribute", 9) == 0 ? a->v : NULL;
    const mica__jvalue *filter = a->n && !a->name[0] ? a->v : NULL;
    const mica__jargs none = {.n = 0};
    mica__jvalue *items;
    if (!mica__jv_is_true(v)) {
        *out = (mica__jvalue){.kind = MICA__JV_LIST};
        return MICA_OK;
    }
    mica__jvalue list;
    MICA_TRY(mica__jv_list(r, "map of", v, &list));
    v = &list;
    if (!attribute && (!filter || filter->kind != MICA__JV_STRING || a->n > 1 || mica__jv_is_text(filter, "map")))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, r->line, "map needs an attribute or the name of a filter");
    if (attribute) MICA_TRY(check_attribute(r, attribute));
    MICA_TRY(mica__jinja_alloc(r, (size_t)v->n * sizeof *items, &items));
    for (int64_t i = 0; i < v->n; i++)
        MICA_TRY(attribute
                     ? mica__jv_item(r, &v->as.items[i], attribute, &items[i])
                     : mica__jinja_filter(r, filter->as.text, (size_t)filter->n, &v->as.items[i], &none, &items[i]));
    *out = (mica__jvalue){MICA__JV_LIST, v->n, {.items = items}};
    return MICA_OK;
}
