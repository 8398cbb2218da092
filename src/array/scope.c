/* The part of scopes that graph-building calls use: check the scope, add a node,
 * store the first error. The runtime begins and ends scopes. */
#include "array/scope.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fork.h"

static _Atomic uint64_t serial_last;

mica_status mica__scope_check(mica_scope *s, const char *op)
{
    if (!s) return mica__fail(MICA_ERR_ARGUMENT, "%s: the scope is NULL", op);
    if (s->magic == MICA__SCOPE_OPEN) return s->process == mica__fork_count() ? MICA_OK : mica__fork_fail(op);
    if (s->magic == MICA__SCOPE_ENDED) return mica__fail(MICA_ERR_STATE, "%s: the scope has ended", op);
    return mica__fail(MICA_ERR_ARGUMENT, "%s: not a scope", op);
}

mica_array *mica__scope_failed(mica_scope *s, mica_status code)
{
    if (s && s->magic == MICA__SCOPE_OPEN && s->error.status == MICA_OK) mica__error_capture(&s->error, code);
    return NULL;
}

mica_array *mica__scope_fail(mica_scope *s, mica_status code, const char *fmt, ...)
{
    char text[MICA__ERROR_TEXT];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    mica__fail(code, "%s", n < 0 ? "" : text);
    return mica__scope_failed(s, code);
}

mica_array *mica__scope_own(mica_scope *s, mica_array *node)
{
    if (!node) return mica__scope_failed(s, MICA_ERR_MEMORY);
    node->serial = atomic_fetch_add_explicit(&serial_last, 1, memory_order_relaxed) + 1;
    node->oldest = node->serial;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i]->oldest < node->oldest) node->oldest = node->in[i]->oldest;
    node->scope_id = s->id;
    node->engine = s->engine;
    node->scope_next = s->nodes;
    s->nodes = node;
    return node;
}

uint64_t mica__serial_now(void) { return atomic_load_explicit(&serial_last, memory_order_relaxed); }
