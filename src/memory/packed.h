/* Packed copies: the elements of a buffer once more, in the order in which a
 * kernel reads them, made when the buffer is used so a second time (or the first)
 * and kept for as long as it lives. Weights are that: given once, multiplied with
 * again and again.
 *
 * A copy is array memory: it counts as memory in use, and gives way when the
 * limit would be passed otherwise. Having none is never an error. All calls are
 * thread-safe; two evaluations at once may share a copy. */
#ifndef MICA_MEMORY_PACKED_H
#define MICA_MEMORY_PACKED_H

#include <pthread.h>

#include "memory/memory.h"

/* What is packed, and for whom: two views of one buffer are two copies. */
typedef struct mica__packed_key {
    const void *format;
    int64_t offset, size[2], step[2];
} mica__packed_key;

/* All copies of one memory object; part of it. */
struct mica__packed_set {
    pthread_mutex_t lock;      /* the lists, and those of the buffers              */
    atomic_bool on;
    atomic_uint_fast64_t count, nbytes;
    struct mica__packed *first;
};

bool mica__packed_init(mica__packed_set *set);
void mica__packed_destroy(mica__packed_set *set);

/* fill writes the copy: nbytes, 64-byte aligned. */
typedef void (*mica__repack_fn)(const void *context, void *to);
/* What is wished for. */
typedef struct mica__packing {
    size_t nbytes;
    mica__repack_fn fill;
    const void *context;
    bool at_once;              /* at the first use already                         */
    size_t replaces;           /* bytes at the key's offset that nobody reads then  */
} mica__packing;
/* The copy, to be dropped after use; or NULL: this is the first use, or there is
 * no room, or somebody is at it. */
mica__buffer *mica__packed_get(mica__buffer *buffer, const mica__packed_key *key, const mica__packing *packing);
/* Called by memory.c: the buffer goes; memory is short. */
void mica__packed_release(mica__packed_set *set, mica__buffer *buffer);
uint64_t mica__packed_trim(mica__packed_set *set);

#endif
