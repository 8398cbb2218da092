/* The graph node that a mica_array points to. It holds the op, dtype, shape,
 * attributes and inputs and, once evaluated, the buffer, data pointer and strides.
 *
 * A node is immutable except for one change: it becomes ready. One block holds the
 * node, its inputs and its attributes. Inputs are kept until the scope ends, so that
 * gradients can be computed after an evaluation too; then they are dropped if the
 * node is ready. */
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
    MICA__LAZY,      /* not evaluated                                              */
    MICA__READY,     /* evaluated: its elements are in memory                      */
    MICA__PENDING,   /* an asynchronous evaluation computes it; wait for the event */
    MICA__FAILED     /* that evaluation failed; the event has the error            */
} mica__state;

/* Fields are in the order of use: first those that building and walking a graph
 * access, last those that only an evaluated array has (not set before). */
struct mica_array {
    atomic_int refs;
    _Atomic uint8_t state;
    bool weak;                       /* a constant that adopts the other operand's dtype     */
    bool escaped;                    /* outlived its scope: holds a reference to the engine  */
    bool spare_size;                 /* its block has MICA__NODE_BYTES, so it can be reused  */
    uint16_t op;                     /* mica__op                                             */
    uint8_t process;                 /* low bits of mica__fork_count() of its process        */
    uint32_t n_in;
    uint32_t attr_size;
    uint32_t number;                 /* while it is lazy: its number in the capture below    */
    uint64_t capture;                /* id of the last graph capture that visited it; 0: none */
    struct mica_array **in;
    struct mica_array *few_in[2];    /* storage of in for up to 2 inputs                     */
    struct mica_array *scope_next;   /* list of the owning scope; then list of nodes to free */
    struct mica_engine *engine;
    const void *attr;
    mica__spec spec;
    uint64_t serial;                 /* creation order; inputs have smaller serials          */
    uint64_t oldest;                 /* smallest serial of the node and all its ancestors;   */
                                     /* kept when the inputs are dropped                     */
    uint64_t scope_id;
    void (*attr_free)(const void *attr); /* for attributes that own memory; may be NULL      */
    struct mica_event *event;        /* pending, failed: holds a reference                   */
    mica__buffer *buffer;            /* ready: holds a reference; else NULL                  */
    char *data;                      /* ready: the first element                             */
    int64_t strides[MICA_MAX_DIMS];  /* ready: in elements; 0 past ndim                      */
};

/* Blocks of freed nodes, kept for reuse: creating a node then needs no heap
 * allocation. Belongs to one scope at a time. */
typedef struct mica__node_list {
    mica_array *first, *last;        /* linked by scope_next                                 */
    size_t n;
} mica__node_list;

/* The size of reusable blocks: enough for a node with the attributes of nearly every op. */
enum { MICA__NODE_BYTES = 384 };

/* Elements and bytes of a spec; false if invalid, or if they overflow int64_t or size_t. */
bool mica__spec_count(const mica__spec *spec, int64_t *count, size_t *nbytes);
int64_t mica__spec_size(const mica__spec *spec); /* the spec must be valid */
/* Row-major strides in elements. */
void mica__row_major(const mica__spec *spec, int64_t *strides);
/* Is it contiguous? Axes of size 1 may have any stride; an empty array always is. */
bool mica__is_row_major(const mica__spec *spec, const int64_t *strides);

/* May two evaluated arrays share an element? Compares the address ranges from first
 * to last element, so it is also true for interleaved arrays. */
bool mica__arrays_overlap(const mica_array *a, const mica_array *b);

/* A loop: for so few sizes a call of memcmp is slower. */
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

/* Creates a lazy node with refs 1. Keeps the inputs and copies the attributes
 * (16-byte aligned) into its block. Uses a block of spare (may be NULL) if one
 * fits. Returns NULL and sets the thread's error if out of memory. */
mica_array *mica__array_from(mica__node_list *spare, uint16_t op, const mica__spec *spec, mica_array *const *in,
                             size_t n_in, const void *attr, size_t attr_size);
mica_array *mica__array_new(uint16_t op, const mica__spec *spec, mica_array *const *in, size_t n_in, const void *attr,
                            size_t attr_size);
/* Sets the list that receives blocks of nodes that this thread frees (NULL: the
 * heap); returns the previous list. */
mica__node_list *mica__node_sink(mica__node_list *list);
/* Moves all blocks of from to the front of into. */
void mica__node_list_move(mica__node_list *into, mica__node_list *from);
/* Frees blocks of the list until at most keep are left. */
void mica__node_list_trim(mica__node_list *list, size_t keep);
/* Sets the elements of a node; takes over the reference to buffer. */
void mica__array_set_ready(mica_array *a, mica__buffer *buffer, char *data, const int64_t *strides);
/* Drops the inputs, which may free them (without recursion). */
void mica__array_detach(mica_array *a);

/* Provided by the runtime. */

/* Drops the engine reference of an escaped node that was freed. */
void mica__engine_release(struct mica_engine *engine);
/* Waits until a pending array is ready or failed. Returns the status of its
 * evaluation and sets this thread's error. Does not wait for a failed array. */
mica_status mica__event_settle(mica_array *a);
void mica__event_drop(struct mica_event *event);
/* Statistics; engine is not NULL. */
void mica__count_copy(struct mica_engine *engine, uint64_t nbytes);
void mica__count_conversion(struct mica_engine *engine, bool zero_copy);

#endif
