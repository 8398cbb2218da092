/* Nodes: creating them, setting them ready, freeing them; and shape arithmetic.
 *
 * Freeing a node may free its inputs, its attributes and foreign memory, and each
 * of these may drop more arrays. A thread that is already freeing only appends
 * such arrays to its list, so a long chain needs no recursion and no stack. */
#include "array/array.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/fork.h"

enum { NODE_ALIGN = 16 };

static _Thread_local mica_array *doomed_list;
static _Thread_local bool doomed_busy;
static _Thread_local mica__node_list *node_sink;

bool mica__spec_count(const mica__spec *spec, int64_t *count, size_t *nbytes)
{
    if (spec->ndim < 0 || spec->ndim > MICA_MAX_DIMS || !mica__dtype_valid((mica_dtype)spec->dtype)) return false;
    /* For an empty array, axes of size 0 count as 1 here: then its strides and
     * all later products of its sizes cannot overflow either. */
    int64_t elements = 1, bytes;
    bool empty = false;
    for (int i = 0; i < spec->ndim; i++) {
        if (spec->shape[i] < 0) return false;
        empty |= spec->shape[i] == 0;
        if (!mica__mul_i64(elements, mica__max_i64(spec->shape[i], 1), &elements)) return false;
    }
    if (!mica__mul_i64(elements, (int64_t)mica_dtype_size((mica_dtype)spec->dtype), &bytes)) return false;
    if ((uint64_t)bytes > SIZE_MAX) return false;
    if (count) *count = empty ? 0 : elements;
    if (nbytes) *nbytes = empty ? 0 : (size_t)bytes;
    return true;
}

int64_t mica__spec_size(const mica__spec *spec)
{
    int64_t count = 1;
    for (int i = 0; i < spec->ndim; i++) {
        if (spec->shape[i] == 0) return 0;
        count *= spec->shape[i];
    }
    return count;
}

void mica__row_major(const mica__spec *spec, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = spec->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= mica__max_i64(spec->shape[i], 1);
    }
}

/* The address range of an array's elements: *low ... *high - 1. */
static void array_span(const mica_array *a, uintptr_t *low, uintptr_t *high)
{
    const int64_t size = (int64_t)mica_dtype_size((mica_dtype)a->spec.dtype);
    int64_t first = 0, last = size;
    *low = *high = (uintptr_t)a->data;
    for (int d = 0; d < a->spec.ndim; d++) {
        if (a->spec.shape[d] == 0) return;
        const int64_t reach = (a->spec.shape[d] - 1) * a->strides[d] * size;
        *(reach < 0 ? &first : &last) += reach;
    }
    *low += (uintptr_t)first;
    *high += (uintptr_t)last;
}

bool mica__arrays_overlap(const mica_array *a, const mica_array *b)
{
    uintptr_t low[2], high[2];
    array_span(a, &low[0], &high[0]);
    array_span(b, &low[1], &high[1]);
    return low[0] < high[1] && low[1] < high[0];
}

bool mica__is_row_major(const mica__spec *spec, const int64_t *strides)
{
    if (mica__spec_size(spec) == 0) return true;
    int64_t stride = 1;
    for (int i = spec->ndim - 1; i >= 0; i--) {
        if (spec->shape[i] == 1) continue;
        if (strides[i] != stride) return false;
        stride *= spec->shape[i];
    }
    return true;
}

/* ---------------------------------------------------------------- blocks --- */

static mica_array *block_take(mica__node_list *spare, size_t nbytes)
{
    mica_array *a = spare && nbytes <= MICA__NODE_BYTES ? spare->first : NULL;
    if (!a) {
        const bool common = nbytes <= MICA__NODE_BYTES;
        a = mica__alloc(common ? MICA__NODE_BYTES : nbytes);
        if (a) a->spare_size = common;
        return a;
    }
    spare->first = a->scope_next;
    if (--spare->n == 0) spare->last = NULL;
    return a;
}

static void block_give(mica_array *a)
{
    /* Debug builds never reuse a block, so that sanitizers detect accesses to freed
     * nodes. */
#if !defined(MICA_DEBUG)
    mica__node_list *list = node_sink;
    if (list && a->spare_size) {
        a->scope_next = list->first;
        list->first = a;
        if (list->n++ == 0) list->last = a;
        return;
    }
#endif
    mica__free(a);
}

mica__node_list *mica__node_sink(mica__node_list *list)
{
    mica__node_list *before = node_sink;
    node_sink = list;
    return before;
}

void mica__node_list_move(mica__node_list *into, mica__node_list *from)
{
    if (from->n == 0) return;
    from->last->scope_next = into->first;
    into->first = from->first;
    if (into->n == 0) into->last = from->last;
    into->n += from->n;
    *from = (mica__node_list){0};
}

void mica__node_list_trim(mica__node_list *list, size_t keep)
{
    while (list->n > keep) {
        mica_array *a = list->first;
        list->first = a->scope_next;
        if (--list->n == 0) list->last = NULL;
        mica__free(a);
    }
}

/* ----------------------------------------------------------------- nodes --- */

/* Bytes of a node and the offset of its attributes; false on overflow. */
static bool node_size(size_t n_in, size_t attr_size, size_t *attr_at, size_t *total)
{
    size_t inputs = 0;
    if (n_in > UINT32_MAX || attr_size > UINT16_MAX) return false; /* attributes are structs, not data */
    if (n_in > 2 && !mica__mul_size(n_in, sizeof(mica_array *), &inputs)) return false;
    if (!mica__add_size(inputs, sizeof(mica_array) + NODE_ALIGN - 1, attr_at)) return false;
    *attr_at -= *attr_at % NODE_ALIGN;
    return mica__add_size(*attr_at, attr_size, total);
}

mica_array *mica__array_from(mica__node_list *spare, uint16_t op, const mica__spec *spec, mica_array *const *in,
                             size_t n_in, const void *attr, size_t attr_size)
{
    size_t attr_at, total = SIZE_MAX;
    mica_array *a = node_size(n_in, attr_size, &attr_at, &total) ? block_take(spare, total) : NULL;
    if (!a) {
        mica__fail_memory("a node of the graph", total);
        return NULL;
    }
    atomic_init(&a->refs, 1);
    atomic_init(&a->state, MICA__LAZY);
    a->weak = a->escaped = false;
    a->op = op;
    a->process = (uint8_t)mica__fork_count();
    a->n_in = (uint32_t)n_in;
    a->attr_size = (uint32_t)attr_size;
    a->capture = a->serial = a->oldest = a->scope_id = 0;
    a->engine = NULL;
    a->scope_next = NULL;
    a->in = n_in > 2 ? (mica_array **)(a + 1) : a->few_in;
    a->attr = NULL;
    a->spec = *spec;
    a->attr_free = NULL;
    a->event = NULL;
    a->buffer = NULL;
    a->data = NULL;
    for (size_t i = 0; i < n_in; i++) a->in[i] = mica_keep(in[i]);
    if (attr_size) a->attr = memcpy((char *)a + attr_at, attr, attr_size);
    return a;
}

mica_array *mica__array_new(uint16_t op, const mica__spec *spec, mica_array *const *in, size_t n_in, const void *attr,
                            size_t attr_size)
{
    return mica__array_from(NULL, op, spec, in, n_in, attr, attr_size);
}

void mica__array_set_ready(mica_array *a, mica__buffer *buffer, char *data, const int64_t *strides)
{
    a->buffer = buffer;
    a->data = data;
    for (int d = 0; d < MICA_MAX_DIMS; d++) a->strides[d] = d < a->spec.ndim ? strides[d] : 0;
    atomic_store_explicit(&a->state, (uint8_t)MICA__READY, memory_order_release);
}

static void node_free(mica_array *a)
{
    for (uint32_t i = 0; i < a->n_in; i++) mica_drop(a->in[i]);
    if (a->attr_free) a->attr_free(a->attr);
    mica__buffer_drop(a->buffer);
    if (a->event) mica__event_drop(a->event);
    struct mica_engine *engine = a->escaped ? a->engine : NULL;
    block_give(a);
    if (engine) mica__engine_release(engine);
}

void mica_drop(mica_array *a)
{
    if (!a || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) > 1) return;
    if (a->process != (uint8_t)mica__fork_count()) return; /* an array of the parent: base/fork.h */
    a->scope_next = doomed_list;
    doomed_list = a;
    if (doomed_busy) return;
    doomed_busy = true;
    while (doomed_list) {
        mica_array *node = doomed_list;
        doomed_list = node->scope_next;
        node_free(node);
    }
    doomed_busy = false;
}

mica_array *mica_keep(mica_array *a)
{
    if (a) atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void mica__array_detach(mica_array *a)
{
    const uint32_t n = a->n_in;
    a->n_in = 0;
    for (uint32_t i = 0; i < n; i++) mica_drop(a->in[i]);
}
