/* The heap, with two counters and fault injection. Each allocation request gets
 * a number. The fault is the number that fails, so setting it is one store and
 * needs no lock. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

static _Atomic uint64_t alloc_asked;
static _Atomic uint64_t alloc_fault;   /* the request number that fails; 0: no fault */
static _Atomic int64_t alloc_blocks;

static bool fault_now(void)
{
    const uint64_t number = atomic_fetch_add_explicit(&alloc_asked, 1, memory_order_relaxed) + 1;
    return number == atomic_load_explicit(&alloc_fault, memory_order_relaxed);
}

static void *count_block(void *p)
{
    if (p) atomic_fetch_add_explicit(&alloc_blocks, 1, memory_order_relaxed);
    return p;
}

void *mica__alloc(size_t nbytes)
{
    if (fault_now()) return NULL;
    return count_block(malloc(nbytes ? nbytes : 1));
}

void *mica__alloc_zero(size_t count, size_t nbytes)
{
    size_t total;
    if (fault_now() || !mica__mul_size(count, nbytes, &total)) return NULL;
    return count_block(calloc(1, total ? total : 1));
}

void *mica__realloc(void *p, size_t nbytes)
{
    if (fault_now()) return NULL;
    void *moved = realloc(p, nbytes ? nbytes : 1);
    return p ? moved : count_block(moved);
}

void mica__free(void *p)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&alloc_blocks, 1, memory_order_relaxed);
    free(p);
}

/* Blocks of this size and larger are separate mappings: their pages return to
 * the system when they are freed, however fragmented the heap is. */
static const size_t map_from = (size_t)1 << 20;
/* The common size of a huge page. Blocks below two of them rarely gain from huge pages. */
static const size_t huge_page = (size_t)2 << 20;

static void *map_pages(size_t nbytes)
{
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Aligned to a huge page, so that huge pages can hold the whole block: maps one huge
 * page more than needed and unmaps the parts before and after the block. */
static void *map_huge_pages(size_t nbytes)
{
    size_t total;
    char *p = mica__add_size(nbytes, huge_page, &total) ? map_pages(total) : NULL;
    if (!p) return map_pages(nbytes);
    const size_t before = (huge_page - (uintptr_t)p % huge_page) % huge_page, after = huge_page - before;
    if (before) (void)munmap(p, before);
    if (after) (void)munmap(p + before + nbytes, after);
#ifdef MADV_HUGEPAGE
    /* Only a hint: a kernel without huge pages refuses it. */
    (void)madvise(p + before, nbytes, MADV_HUGEPAGE);
#endif
    return p + before;
}

static void *system_pages(size_t nbytes)
{
    if (nbytes >= 2 * huge_page) return map_huge_pages(nbytes);
    if (nbytes >= map_from) return map_pages(nbytes);
    const size_t align = nbytes >= 16384 ? (size_t)sysconf(_SC_PAGESIZE) : 64;
    void *p = NULL;
    return posix_memalign(&p, align, nbytes ? nbytes : 1) == 0 ? p : NULL;
}

void *mica__alloc_pages(size_t nbytes)
{
    if (fault_now()) return NULL;
    return count_block(system_pages(nbytes));
}

void mica__free_pages(void *p, size_t nbytes)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&alloc_blocks, 1, memory_order_relaxed);
    if (nbytes >= map_from) (void)munmap(p, nbytes);
    else free(p);
}

void mica__alloc_fail_at(uint64_t n)
{
    const uint64_t asked = atomic_load_explicit(&alloc_asked, memory_order_relaxed);
    atomic_store_explicit(&alloc_fault, n ? asked + n : 0, memory_order_relaxed);
}

uint64_t mica__alloc_count(void) { return atomic_load_explicit(&alloc_asked, memory_order_relaxed); }

int64_t mica__alloc_live(void) { return atomic_load_explicit(&alloc_blocks, memory_order_relaxed); }
