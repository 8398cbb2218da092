/* A bump allocator: many small objects that are freed together (a plan, a graph).
 * Memory is zeroed and 16-byte aligned. The first failure sticks: later calls
 * return NULL too, so a builder may check once. */
#ifndef MICA_BASE_ARENA_H
#define MICA_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mica__arena_block mica__arena_block;

typedef struct mica__arena {
    mica__arena_block *block;   /* list; the first is being filled */
    bool failed;
    size_t total;               /* bytes taken from the heap */
} mica__arena;

void mica__arena_init(mica__arena *arena);
void *mica__arena_alloc(mica__arena *arena, size_t nbytes);
void *mica__arena_array(mica__arena *arena, size_t count, size_t nbytes);
void *mica__arena_copy(mica__arena *arena, const void *from, size_t nbytes);
void mica__arena_free(mica__arena *arena);     /* frees all; the arena may be used again */
/* Moves all memory of from to into; from may be used again. */
void mica__arena_join(mica__arena *into, mica__arena *from);
/* Empties the arena but keeps the largest block, for scratch that is refilled. */
void mica__arena_reset(mica__arena *arena);

#endif
