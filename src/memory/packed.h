/* Packed copies: the elements of a buffer in the order in which a kernel reads them.
 * A copy is made at the second such use of the buffer (at the first, if at_once) and
 * kept while the buffer lives. This is for weights, which are multiplied many times.
 *
 * A copy is array memory: it counts as memory in use, and is freed if the limit
 * would be exceeded otherwise. Having no copy is never an error. All calls are
 * thread-safe; concurrent evaluations may share a copy. */
#ifndef MICA_MEMORY_PACKED_H
#define MICA_MEMORY_PACKED_H

#include <pthread.h>

#include "memory/memory.h"

/* What is packed, and in which format: two views of one buffer have two copies. */
typedef struct mica__packed_key {
    const void *format;
    int64_t offset, size[2], step[2];
} mica__packed_key;

/* All copies of one memory object; part of it. */
struct mica__packed_set {
    pthread_mutex_t lock;      /* guards this list and the lists of the buffers    */
    atomic_bool on;
    atomic_uint_fast64_t count, nbytes;
    struct mica__packed *first;
};

bool mica__packed_init(mica__packed_set *set);
void mica__packed_destroy(mica__packed_set *set);

/* Writes the packed copy to `to`: nbytes, 64-byte aligned. */
typedef void (*mica__repack_fn)(const void *context, void *to);
/* How to make a copy. */
typedef struct mica__packing {
    size_t nbytes;
    mica__repack_fn fill;
    const void *context;
    bool at_once;              /* make it at the first use                         */
    size_t replaces;           /* bytes at the key's offset that are not read any more */
} mica__packing;
/* The copy, which the caller drops after use; or NULL: this is the first use, or
 * there is no room, or another thread is packing it. */
mica__buffer *mica__packed_get(mica__buffer *buffer, const mica__packed_key *key, const mica__packing *packing);
/* Called by memory.c: release when the buffer is freed, trim when memory is short. */
void mica__packed_release(mica__packed_set *set, mica__buffer *buffer);
uint64_t mica__packed_trim(mica__packed_set *set);

#endif
