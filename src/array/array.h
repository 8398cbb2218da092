/* The node behind mica_array: what it is (op, dtype, shape, attributes,
 * inputs) and, once evaluated, where its elements are (buffer, offset,
 * strides).
 *
 * A node is immutable but for one change: it becomes ready. It is allocated in
 * one block with its inputs and attributes behind it. Inputs are kept until
 * its scope ends (so gradients can be taken after an evaluation too) and
 * dropped then if it is ready. */
#ifndef MICA_ARRAY_ARRAY_H
#define MICA_ARRAY_ARRAY_H

#include <stdatomic.h>

#include "array/dtype.h"
#include "base/status.h"
#include "memory/memory.h"

/* dtype and shape: the type of a value. Unused sizes are 0, so that specs can
 * be compared and hashed as bytes. */
typedef struct mica__spec {
    int32_t dtype;
    int32_t ndim;
    int64_t shape[MICA_MAX_DIMS];
} mica__spec;

typedef enum mica__state {
    MICA__LAZY,      /* a node of a graph                                          */
    MICA__READY,     /* has its elements                                           */
    MICA__PENDING,   /* an asynchronous evaluation is on it; wait for the event    */
    MICA__FAILED     /* that evaluation failed; the event has the reason           */
} mica__state;

/* In the order of use: what building a graph and walking it touch comes first,
 * what only an evaluated array has comes last (and is not set before). */
struct mica_array {
    atomic_int refs;
    _Atomic uint8_t state;
    bool weak;                       /* a constant that takes the other operand's dtype      */
    bool escaped;                    /* outlived its scope: holds a reference to the engine  */
    bool spare_size;                 /* its block has MICA__NODE_BYTES                       */
    uint16_t op;                     /* mica__op                                             */
    uint8_t process;                 /* low bits of mica__fork_count() of its process        */
    uint32_t n_in;
    uint32_t attr_size;
    uint32_t number;                 /* while it is lazy: its number in that capture         */
    uint64_t capture;
    struct mica_array **in;
    struct mica_array *few_in[2];    /* where in points to if there are no more              */
    struct mica_array *scope_next;   /* list of the owning scope; then list of nodes to free */
    struct mica_engine *engine;
    const void *attr;
    mica__spec spec;
    uint64_t serial;                 /* inputs have smaller ones: creation order is an order */
    uint64_t oldest;                 /* smallest serial of what it is computed from, itself  */
                                     /* included; kept when the inputs are dropped           */
    uint64_t scope_id;
    void (*attr_free)(const void *attr); /* attributes that own something; may be NULL       */
    struct mica_event *event;        /* pending, failed: holds a reference                   */
    mica__buffer *buffer;            /* ready: holds a reference; else NULL                  */
    char *data;                      /* ready: the first element                             */
    int64_t strides[MICA_MAX_DIMS];  /* ready: in elements; the rest 0                       */
};

/* Blocks of nodes that are gone, kept for the next ones: making a node then
 * costs no trip to the heap. Belongs to one scope at a time. */
typedef struct mica__node_list {
    mica_array *first, *last;        /* linked by scope_next                                 */
    size_t n;
} mica__node_list;

/* A block that any list may hold: a node and the attributes of nearly every op. */
enum { MICA__NODE_BYTES = 384 };

/* Elements of a spec; false if more than int64_t or size_t bytes can hold. */
bool mica__spec_count(const mica__spec *spec, int64_t *count, size_t *nbytes);
int64_t mica__spec_size(const mica__spec *spec); /* of a spec that was checked before */
/* Row-major strides in elements. */
void mica__row_major(const mica__spec *spec, int64_t *strides);
/* Row-major without gaps (sizes of 1 may have any stride; empty always is). */
bool mica__is_row_major(const mica__spec *spec, const int64_t *strides);

/* Do two evaluated arrays have an element in common? By the bytes between their
 * first and last, so also for some that have none. */
bool mica__arrays_overlap(const mica_array *a, const mica_array *b);

/* By words: a call of memcmp costs more than the few sizes there are. */
static inline bool mica__shape_equal(const mica__spec *a, const mica__spec *b)
{
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

static inline bool mica__spec_equal(const mica__spec *a, const mica__spec *b)
{
    return a->dtype == b->dtype && mica__shape_equal(a, b);
}

static inline mica__state mica__array_state(const mica_array *a)
{
    return (mica__state)atomic_load_explicit(&((mica_array *)(uintptr_t)a)->state, memory_order_acquire);
}

/* A node with room for inputs and attributes behind it, refs 1, lazy; keeps the
 * inputs and copies the attributes (16-byte aligned). Its block comes from spare
 * (may be NULL) if there is one that fits. NULL, and the thread's error set, when
 * there is no memory. */
mica_array *mica__array_from(mica__node_list *spare, uint16_t op, const mica__spec *spec, mica_array *const *in,
                             size_t n_in, const void *attr, size_t attr_size);
mica_array *mica__array_new(uint16_t op, const mica__spec *spec, mica_array *const *in, size_t n_in, const void *attr,
                            size_t attr_size);
/* Blocks of nodes that this thread frees go to this list from now on (NULL: to
 * the heap); returns the list they went to before. */
mica__node_list *mica__node_sink(mica__node_list *list);
/* All blocks of from to the front of into. */
void mica__node_list_move(mica__node_list *into, mica__node_list *from);
/* Blocks of the list back to the heap until it has no more than so many. */
void mica__node_list_trim(mica__node_list *list, size_t keep);
/* Give a node its elements; takes over the reference to buffer. */
void mica__array_set_ready(mica_array *a, mica__buffer *buffer, char *data, const int64_t *strides);
/* Let go of the inputs (they may go away with it, without recursion). */
void mica__array_detach(mica_array *a);

/* Provided by the runtime. */

/* An escaped node was freed: its reference to the engine. */
void mica__engine_release(struct mica_engine *engine);
/* Wait until a pending array is ready or failed; the status of its evaluation,
 * with its text raised on this thread. At once for one that has failed. */
mica_status mica__event_settle(mica_array *a);
void mica__event_drop(struct mica_event *event);
/* Statistics; engine is not NULL. */
void mica__count_copy(struct mica_engine *engine, uint64_t nbytes);
void mica__count_conversion(struct mica_engine *engine, bool zero_copy);

#endif
