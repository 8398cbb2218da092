/* Small blocks as parts of a few large allocations (slabs), for engines with a device. The device
 * then needs one object (a Metal buffer) per slab and not one per scalar.
 * Not thread-safe; memory.c does locking and accounting. */
#ifndef MICA_MEMORY_SLAB_H
#define MICA_MEMORY_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MICA__SLAB_BYTES = 262144,
    MICA__SLAB_UNIT = 256,      /* capacities are multiples of it: mica__memory_round    */
    MICA__SLAB_BELOW = 16384    /* larger blocks are page-aligned and not in slabs       */
};

typedef struct mica__slab {
    struct mica__slab *next, **link; /* link: the pointer that points to this slab       */
    char *data;
    uint32_t n_used;            /* units                                                 */
    uint64_t used[MICA__SLAB_BYTES / MICA__SLAB_UNIT / 64];
} mica__slab;

/* Returns a block of capacity bytes and its slab; NULL if out of memory. */
void *mica__slab_take(mica__slab **list, size_t capacity, mica__slab **slab);
/* Frees a block; the last block frees the slab too. */
void mica__slab_give(mica__slab *slab, void *block, size_t capacity);

#endif
