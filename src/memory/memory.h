/* Array memory: reference-counted buffers, a pool that keeps freed blocks for
 * reuse, and the accounting of both.
 *
 * Blocks are rounded up (mica__memory_round) and reused only for the same
 * rounded size, so what a plan adds up beforehand is what is measured
 * afterwards. The cache evicts the least recently freed block first. All calls
 * are thread-safe. A memory object lives until its last buffer is gone. */
#ifndef MICA_MEMORY_MEMORY_H
#define MICA_MEMORY_MEMORY_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct mica__memory mica__memory;
typedef struct mica__packed_set mica__packed_set;

typedef struct mica__buffer {
    atomic_int refs;
    void *data;
    size_t nbytes;             /* as asked for                                     */
    size_t capacity;           /* as taken from the pool; 0 for foreign memory     */
    mica__memory *memory;
    mica_release_fn release;   /* foreign memory: whom to tell                     */
    void *user;
    mica_status (*check)(const void *user); /* foreign: called before data is read; NULL: no check */
    bool file_pages;           /* foreign: a mapped file, whose pages can be read again */
    size_t below;              /* foreign: bytes of nbytes that lie before data    */
    struct mica__packed *packed; /* copies of it for kernels: packed.h, under its lock */
    uint32_t packed_seen;
    bool packing;
    bool changes;              /* a state: what it holds changes                   */
    _Atomic(void *) device;    /* what a device knows it by; NULL: nothing yet     */
    struct mica__slab *slab;   /* small blocks of engines with a device; else NULL */
    const void *whole;         /* the memory that this is a part of, may be seen whole and lives as long: */
    size_t whole_nbytes;       /* a slab, a mapped file; 0: none                   */
    /* A block in the cache is its record: freeing one allocates nothing.          */
    struct mica__buffer *next; /* free records; sizes of one cache bucket          */
    struct mica__buffer *newer, *older;           /* cached blocks, by time        */
    struct mica__buffer *newer_same, *older_same; /* and those of one size         */
} mica__buffer;

typedef struct mica__memory_stats {
    uint64_t in_use, peak, cached;
    uint64_t allocated, freed;       /* from and to the system, ever               */
    uint64_t hits, misses;           /* buffers from the cache, from the system    */
    uint64_t evictions;              /* cached blocks given up to keep to a limit  */
    uint64_t largest_cached;
    uint64_t packed, packed_bytes;   /* copies for kernels, part of in_use         */
} mica__memory_stats;

/* limit 0: none. cache_limit: bytes of free blocks kept. */
mica_status mica__memory_new(uint64_t limit, uint64_t cache_limit, mica__memory **out);
/* release is called with mica__buffer.device before the memory of that buffer is freed, also after
 * mica__memory_free. It runs under the lock of the memory object and must not call it. */
void mica__memory_on_release(mica__memory *memory, void (*release)(void *device));
/* The owner lets go; freed at once, or with the last buffer. */
void mica__memory_free(mica__memory *memory);

/* What a block of nbytes occupies: a multiple of 256 bytes, of 16 KiB from
 * 1 MiB on; at least 256. SIZE_MAX if it cannot be represented. */
size_t mica__memory_round(size_t nbytes);

/* Contents are not initialised. data is 64-byte aligned at least; blocks of
 * 16 KiB and more are page-aligned, of 4 MiB and more 2 MiB-aligned. Over the limit, were the cache evicted:
 * MICA_ERR_MEMORY with both numbers. A system that refuses is asked again when
 * evicting the cache gave something back. */
mica_status mica__buffer_new(mica__memory *memory, size_t nbytes, mica__buffer **out);
/* Foreign memory. On failure release has been called already. */
mica_status mica__buffer_wrap(mica__memory *memory, const void *data, size_t nbytes, mica_release_fn release,
                              void *user, mica__buffer **out);
/* The whole pages of this part of a mapped file need not stay in memory: they are
 * read again if somebody wants them. */
void mica__pages_leave(const void *data, size_t nbytes);
mica__buffer *mica__buffer_keep(mica__buffer *buffer);
void mica__buffer_drop(mica__buffer *buffer);

/* Would nbytes (already rounded) more fit under the limit, the cache given up?
 * If not: MICA_ERR_MEMORY naming what is needed and what is left. */
mica_status mica__memory_check(mica__memory *memory, const char *what, uint64_t nbytes);

/* Bytes that could still be taken under the limit, the cache given up. */
uint64_t mica__memory_room(mica__memory *memory);
mica__packed_set *mica__memory_packed(mica__memory *memory);

/* Give up the whole cache, packed copies too; the bytes they held. */
uint64_t mica__memory_trim(mica__memory *memory);
void mica__memory_stats_get(mica__memory *memory, mica__memory_stats *out);
void mica__memory_reset_peak(mica__memory *memory);

#endif
