/* Small blocks out of few large pieces of memory, for engines with a device: what a device
 * knows by one name each (a buffer of Metal's) is then a slab, not every scalar.
 * Not thread-safe; memory.c has the lock and the accounting. */
#ifndef MICA_MEMORY_SLAB_H
#define MICA_MEMORY_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MICA__SLAB_BYTES = 262144,
    MICA__SLAB_UNIT = 256,      /* of a block's capacity: mica__memory_round             */
    MICA__SLAB_BELOW = 16384    /* capacity of a block; from here on they are page-aligned */
};

typedef struct mica__slab {
    struct mica__slab *next, **link; /* link: who points here                            */
    char *data;
    uint32_t n_used;            /* units                                                 */
    uint64_t used[MICA__SLAB_BYTES / MICA__SLAB_UNIT / 64];
} mica__slab;

/* A block of capacity bytes and where it lies; NULL without memory. */
void *mica__slab_take(mica__slab **list, size_t capacity, mica__slab **slab);
/* The last block takes the slab with it. */
void mica__slab_give(mica__slab *slab, void *block, size_t capacity);

#endif
