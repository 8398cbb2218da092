/* Parameter sets: named arrays in a fixed order. Names are found by linear search: this happens while a graph is
 * traced or a file is read, never in a step. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forward.h"

typedef struct named_param {
    char *name;
    mica_array *value;
    bool buffer; /* not trained                    */
    bool full;   /* not cast in mixed precision    */
} named_param;

struct mica_params {
    named_param *list;
    size_t n, room;
};

mica_status mica_params_new(mica_params **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "params: out is NULL");
    *out = calloc(1, sizeof **out);
    return *out ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: a parameter set");
}

void mica_params_free(mica_params *params)
{
    if (!params) return;
    for (size_t i = 0; i < params->n; i++) {
        mica_drop(params->list[i].value);
        free(params->list[i].name);
    }
    free(params->list);
    free(params);
}

static mica_status params_grow(mica_params *params)
{
    const size_t room = params->room ? 2 * params->room : 32;
    named_param *list = realloc(params->list, room * sizeof *list);
    if (!list) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu parameters", room);
    params->list = list;
    params->room = room;
    return MICA_OK;
}

static mica_status params_append(mica_params *params, const char *name, mica_array *value, bool buffer)
{
    if (!params || !name || !*name) return mica_fail(MICA_ERR_ARGUMENT, "params_add: no set, or no name");
    if (!value) return mica_fail(MICA_ERR_ARGUMENT, "params_add: '%s' has no value", name);
    if (mica_params_index(params, name) >= 0)
        return mica_fail(MICA_ERR_ARGUMENT, "params_add: there is a parameter '%s' already", name);
    if (params->n == params->room) {
        const mica_status status = params_grow(params);
        if (status != MICA_OK) return status;
    }
    const size_t size = strlen(name) + 1;
    char *copy = malloc(size);
    if (!copy) return mica_fail(MICA_ERR_MEMORY, "out of memory: the name '%s'", name);
    memcpy(copy, name, size);
    params->list[params->n++] = (named_param){copy, mica_keep(value), buffer, false};
    return MICA_OK;
}

mica_status mica_params_add(mica_params *params, const char *name, mica_array *value)
{
    return params_append(params, name, value, false);
}

mica_status mica_params_add_buffer(mica_params *params, const char *name, mica_array *value)
{
    return params_append(params, name, value, true);
}

mica_status mica_params_keep_precision(mica_params *params, size_t i)
{
    if (!params || i >= params->n)
        return mica_fail(MICA_ERR_ARGUMENT, "params_keep_precision: there is no parameter %zu", i);
    params->list[i].full = true;
    return MICA_OK;
}

mica_status mica_params_set(mica_params *params, size_t i, mica_array *value)
{
    if (!params || i >= params->n) return mica_fail(MICA_ERR_ARGUMENT, "params_set: there is no parameter %zu", i);
    mica_array *old = params->list[i].value;
    const char *name = params->list[i].name;
    if (!value) return mica_fail(MICA_ERR_ARGUMENT, "params_set: the value of '%s' is NULL", name);
    if (mica_array_dtype(value) != mica_array_dtype(old))
        return mica_fail(MICA_ERR_DTYPE, "params_set: '%s' is %s, not %s", name, mica_dtype_name(mica_array_dtype(old)),
                         mica_dtype_name(mica_array_dtype(value)));
    const int ndim = mica_array_ndim(old);
    if (mica_array_ndim(value) != ndim ||
        memcmp(mica_array_shape(value), mica_array_shape(old), (size_t)ndim * sizeof(int64_t)) != 0)
        return mica_fail(
            MICA_ERR_SHAPE, "params_set: '%s' has %lld elements in %d axes, the value %lld in %d: shapes differ", name,
            (long long)mica_array_size(old), ndim, (long long)mica_array_size(value), mica_array_ndim(value));
    params->list[i].value = mica_keep(value);
    mica_drop(old);
    return MICA_OK;
}

size_t mica_params_count(const mica_params *params) { return params ? params->n : 0; }

const char *mica_params_name(const mica_params *params, size_t i)
{
    return params && i < params->n ? params->list[i].name : NULL;
}

mica_array *mica_params_at(const mica_params *params, size_t i)
{
    return params && i < params->n ? params->list[i].value : NULL;
}

int64_t mica_params_elements(const mica_params *params)
{
    int64_t total = 0;
    for (size_t i = 0; i < mica_params_count(params); i++) total += mica_array_size(params->list[i].value);
    return total;
}

bool mica_params_is_trained(const mica_params *params, size_t i)
{
    return params && i < params->n && !params->list[i].buffer;
}

bool mica__params_is_full(const mica_params *params, size_t i)
{
    return params && i < params->n && params->list[i].full;
}

int64_t mica_params_index(const mica_params *params, const char *name)
{
    for (size_t i = 0; name && i < mica_params_count(params); i++)
        if (strcmp(params->list[i].name, name) == 0) return (int64_t)i;
    return -1;
}

static mica_array *params_find(mica_scope *s, const mica_params *params, const char *format, va_list args)
{
    char name[NN_NAME];
    if (!mica__nn_name(name, format, args))
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "params_get: a name of more than %d characters: '%s'", NN_NAME - 1,
                               name);
    const int64_t i = mica_params_index(params, name);
    if (i < 0) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "params_get: there is no parameter '%s'", name);
    return mica_params_at(params, (size_t)i);
}

mica_array *mica_params_get(mica_scope *s, const mica_params *params, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mica_array *value = params_find(s, params, format, args);
    va_end(args);
    return value;
}

mica_array *mica_param(mica_forward *f, const char *format, ...)
{
    if (!f) return mica_scope_fail(NULL, MICA_ERR_ARGUMENT, "param: no forward pass");
    va_list args;
    va_start(args, format);
    mica_array *value = params_find(f->s, f->params, format, args);
    va_end(args);
    return value;
}

bool mica__nn_name(char name[NN_NAME], const char *format, va_list args)
{
    name[0] = '\0';
    return format && vsnprintf(name, NN_NAME, format, args) < NN_NAME;
}
