/* Array memory: reference-counted buffers, a pool that keeps freed blocks for
 * reuse, and the accounting of both.
 *
 * Block sizes are rounded up (mica__memory_round), and a block is reused only for
 * the same rounded size. So the size that a plan computes is the size that is used.
 * The cache evicts the least recently freed block first. All calls are
 * thread-safe. A memory object lives until its last buffer is freed. */
#ifndef MICA_MEMORY_MEMORY_H
#define MICA_MEMORY_MEMORY_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct mica__memory mica__memory;
typedef struct mica__packed_set mica__packed_set;

typedef struct mica__buffer {
    atomic_int refs;
    void *data;
    size_t nbytes;             /* as requested                                     */
    size_t capacity;           /* rounded size of the block; 0 for foreign memory  */
    mica__memory *memory;
    mica_release_fn release;   /* foreign memory: called when it is no longer used */
    void *user;
    mica_status (*check)(const void *user); /* foreign: called before data is read; NULL: no check */
    bool file_pages;           /* foreign: a mapped file, whose pages can be read again */
    size_t below;              /* foreign: bytes of nbytes that are before data    */
    struct mica__packed *packed; /* list of packed copies; packed.h, under its lock */
    uint32_t packed_seen;      /* mask of hashed views that were used before       */
    bool packing;              /* a thread is making a packed copy                 */
    bool changes;              /* a state: its contents change                     */
    _Atomic(void *) device;    /* the device's object for it; NULL: not made yet   */
    struct mica__slab *slab;   /* small blocks of engines with a device; else NULL */
    const void *whole;         /* the readable memory that contains this buffer and lives as long: */
    size_t whole_nbytes;       /* a slab or a mapped file; 0: not set              */
    /* The links are in the record, so putting a block into the cache allocates nothing. */
    struct mica__buffer *next; /* free records; sizes of one cache bucket          */
    struct mica__buffer *newer, *older;           /* all cached blocks, by age     */
    struct mica__buffer *newer_same, *older_same; /* cached blocks of one size     */
} mica__buffer;

typedef struct mica__memory_stats {
    uint64_t in_use, peak, cached;
    uint64_t allocated, freed;       /* from and to the system, in total           */
    uint64_t hits, misses;           /* buffers from the cache, from the system    */
    uint64_t evictions;              /* cached blocks freed to stay below a limit  */
    uint64_t largest_cached;
    uint64_t packed, packed_bytes;   /* packed copies; part of in_use              */
} mica__memory_stats;

/* limit: bytes in use, 0: no limit. cache_limit: bytes of free blocks that are kept. */
mica_status mica__memory_new(uint64_t limit, uint64_t cache_limit, mica__memory **out);
/* release is called with mica__buffer.device before the memory of that buffer is freed, also after
 * mica__memory_free. It runs under the lock of the memory object and must not call it. */
void mica__memory_on_release(mica__memory *memory, void (*release)(void *device));
/* Ends the ownership: the object is freed now or with its last buffer. */
void mica__memory_free(mica__memory *memory);

/* The size of a block for nbytes: a multiple of 256 bytes, of 16 KiB from 1 MiB
 * on; at least 256. SIZE_MAX if it cannot be represented. */
size_t mica__memory_round(size_t nbytes);

/* Contents are not initialised. data is at least 64-byte aligned; blocks of 16 KiB
 * and more are page-aligned, of 4 MiB and more 2 MiB-aligned. MICA_ERR_MEMORY if the
 * limit would be exceeded even with an empty cache; the message has both numbers. If
 * the system has no memory, the cache is freed and the allocation is tried again. */
mica_status mica__buffer_new(mica__memory *memory, size_t nbytes, mica__buffer **out);
/* A buffer of foreign memory. On failure release has been called already. */
mica_status mica__buffer_wrap(mica__memory *memory, const void *data, size_t nbytes, mica_release_fn release,
                              void *user, mica__buffer **out);
/* Releases the pages that are completely inside this part of a mapped file. A later
 * access reads them from the file again. */
void mica__pages_leave(const void *data, size_t nbytes);
mica__buffer *mica__buffer_keep(mica__buffer *buffer);
void mica__buffer_drop(mica__buffer *buffer);

/* MICA_OK if nbytes more (already rounded) fit under the limit with an empty cache;
 * otherwise MICA_ERR_MEMORY with the bytes that are needed and left. */
mica_status mica__memory_check(mica__memory *memory, const char *what, uint64_t nbytes);

/* Bytes that can still be allocated under the limit with an empty cache. */
uint64_t mica__memory_room(mica__memory *memory);
mica__packed_set *mica__memory_packed(mica__memory *memory);

/* Frees the cache and all packed copies; returns the freed bytes. */
uint64_t mica__memory_trim(mica__memory *memory);
void mica__memory_stats_get(mica__memory *memory, mica__memory_stats *out);
void mica__memory_reset_peak(mica__memory *memory);

#endif
