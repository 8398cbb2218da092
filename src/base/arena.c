/* A list of blocks of growing size; the first is the one being filled. A large
 * request gets a separate block, inserted after the first, so that the free room
 * of the first block stays usable. */
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

enum { ARENA_ALIGN = 16, ARENA_BLOCK_MIN = 4096, ARENA_BLOCK_MAX = 256 * 1024 };

struct mica__arena_block {
    mica__arena_block *next;
    size_t size;   /* bytes that follow this header */
    size_t used;
};

static size_t arena_head(void) { return mica__round_up(sizeof(mica__arena_block), ARENA_ALIGN); }

void mica__arena_init(mica__arena *arena) { *arena = (mica__arena){0}; }

static mica__arena_block *arena_grow(mica__arena *arena, size_t size)
{
    size_t total;
    if (!mica__add_size(size, arena_head(), &total)) return NULL;
    mica__arena_block *block = mica__alloc_zero(1, total);
    if (!block) return NULL;
    block->size = size;
    arena->total += total;
    return block;
}

void *mica__arena_alloc(mica__arena *arena, size_t nbytes)
{
    if (arena->failed) return NULL;
    size_t want;
    if (!mica__add_size(nbytes ? nbytes : 1, ARENA_ALIGN - 1, &want)) {
        arena->failed = true;
        return NULL;
    }
    want -= want % ARENA_ALIGN;

    mica__arena_block *block = arena->block;
    if (!block || block->size - block->used < want) {
        /* Doubling the total keeps the number of blocks small. */
        size_t size = arena->total;
        if (size < ARENA_BLOCK_MIN) size = ARENA_BLOCK_MIN;
        if (size > ARENA_BLOCK_MAX) size = ARENA_BLOCK_MAX;
        size -= arena_head();
        size -= size % ARENA_ALIGN;
        const bool own = want > size / 4;
        block = arena_grow(arena, own ? want : size);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        if (own && arena->block) {
            block->next = arena->block->next;
            arena->block->next = block;
        } else {
            block->next = arena->block;
            arena->block = block;
        }
    }
    void *p = (char *)block + arena_head() + block->used;
    block->used += want;
    return p;
}

void *mica__arena_array(mica__arena *arena, size_t count, size_t nbytes)
{
    size_t total;
    if (mica__mul_size(count, nbytes, &total)) return mica__arena_alloc(arena, total);
    arena->failed = true;
    return NULL;
}

void *mica__arena_copy(mica__arena *arena, const void *from, size_t nbytes)
{
    void *p = mica__arena_alloc(arena, nbytes);
    if (p && nbytes) memcpy(p, from, nbytes);
    return p;
}

void mica__arena_free(mica__arena *arena)
{
    for (mica__arena_block *block = arena->block, *next; block; block = next) {
        next = block->next;
        mica__free(block);
    }
    mica__arena_init(arena);
}

void mica__arena_join(mica__arena *into, mica__arena *from)
{
    mica__arena_block **last = &into->block; /* appended: the first block of into still has room */
    while (*last) last = &(*last)->next;
    *last = from->block;
    into->total += from->total;
    into->failed = into->failed || from->failed;
    mica__arena_init(from);
}

void mica__arena_reset(mica__arena *arena)
{
    mica__arena_block *largest = arena->block;
    for (mica__arena_block *b = arena->block; b; b = b->next)
        if (b->size > largest->size) largest = b;
    for (mica__arena_block *b = arena->block, *next; b; b = next) {
        next = b->next;
        if (b != largest) mica__free(b);
    }
    mica__arena_init(arena);
    if (!largest) return;
    memset((char *)largest + arena_head(), 0, largest->used);
    largest->used = 0;
    largest->next = NULL;
    arena->block = largest;
    arena->total = largest->size + arena_head();
}
