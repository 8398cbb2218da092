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

struct mica_array {
    atomic_int refs;
    _Atomic uint8_t state;
    bool weak;                       /* a constant that takes the other operand's dtype      */
    bool escaped;                    /* outlived its scope: holds a reference to the engine  */
    uint16_t op;                     /* mica__op                                             */
    uint32_t n_in;
    uint32_t attr_size;
    mica__spec spec;
    uint64_t serial;                 /* inputs have smaller ones: creation order is an order */
    uint64_t scope_id;
    struct mica_engine *engine;
    struct mica_array **in;
    const void *attr;
    void (*attr_free)(const void *attr); /* attributes that own something; may be NULL       */
    mica__buffer *buffer;            /* ready: holds a reference                             */
    char *data;                      /* ready: the first element                             */
    int64_t strides[MICA_MAX_DIMS];  /* ready: in elements                                   */
    struct mica_event *event;        /* pending, failed: holds a reference                   */
    struct mica_array *scope_next;   /* list of the owning scope; then list of nodes to free */
};

/* Elements of a spec; false if more than int64_t or size_t bytes can hold. */
bool mica__spec_count(const mica__spec *spec, int64_t *count, size_t *nbytes);
int64_t mica__spec_size(const mica__spec *spec); /* of a spec that was checked before */
bool mica__spec_equal(const mica__spec *a, const mica__spec *b);
bool mica__shape_equal(const mica__spec *a, const mica__spec *b);
/* Row-major strides in elements. */
void mica__row_major(const mica__spec *spec, int64_t *strides);
/* Row-major without gaps (sizes of 1 may have any stride; empty always is). */
bool mica__is_row_major(const mica__spec *spec, const int64_t *strides);

static inline mica__state mica__array_state(const mica_array *a)
{
    return (mica__state)atomic_load_explicit(&((mica_array *)(uintptr_t)a)->state, memory_order_acquire);
}

/* Allocates a node with room for inputs and attributes behind it, refs 1, lazy;
 * keeps the inputs and copies the attributes (16-byte aligned). NULL, and the
 * thread's error set, when there is no memory. */
mica_array *mica__array_new(uint16_t op, const mica__spec *spec, mica_array *const *in, size_t n_in, const void *attr,
                            size_t attr_size);
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
