/* The forward pass: state that layers share while the graph of a network is built. */
#include "forward.h"

#include <stdlib.h>

void mica_forward_init(mica_forward *f, mica_scope *s, mica_params *params)
{
    if (f) *f = (mica_forward){.struct_size = sizeof *f, .s = s, .params = params};
}

static bool watcher_grow(mica_watcher *w)
{
    const size_t room = w->room ? 2 * w->room : 64;
    void *seen = realloc(w->seen, room * sizeof *w->seen);
    if (!seen) return false;
    w->seen = seen;
    w->room = room;
    return true;
}

mica_array *mica_watch(mica_forward *f, mica_array *x, const char *format, ...)
{
    mica_watcher *w = f ? f->watcher : NULL;
    if (!w || !x) return x;
    if (w->n == w->room && !watcher_grow(w))
        return mica_scope_fail(f->s, MICA_ERR_MEMORY, "out of memory: %zu watched arrays", w->n + 1);
    va_list args;
    va_start(args, format);
    (void)mica__nn_name(w->seen[w->n].name, format, args); /* for an error message: a truncated name is enough */
    va_end(args);
    w->seen[w->n++].value = x;
    return x;
}

mica_array *mica_drop_some(mica_forward *f, mica_array *x, double p)
{
    return f && f->training && f->seed ? mica_dropout(f->s, x, p, f->seed, f->streams++) : x;
}
