/* All heap memory is allocated here. Every allocation can fail, and tests make
 * each one fail in turn (mica__alloc_fail_at), so no caller may ignore NULL. */
#ifndef MICA_BASE_ALLOC_H
#define MICA_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

void *mica__alloc(size_t nbytes);              /* not initialised; nbytes 0 gives a valid pointer */
void *mica__alloc_zero(size_t count, size_t nbytes); /* NULL too if count * nbytes overflows      */
void *mica__realloc(void *p, size_t nbytes);
void mica__free(void *p);                      /* NULL is fine */

/* Memory for array data, 64-byte aligned. From 16 KiB on it is page-aligned; from
 * 1 MiB on it is a separate mapping; from 4 MiB on it is 2 MiB-aligned and uses huge
 * pages if the system has them. Free with the same nbytes. */
void *mica__alloc_pages(size_t nbytes);
void mica__free_pages(void *p, size_t nbytes);

/* Tests: the n-th allocation from now fails, once (1: the next); 0 turns it
 * off. Counts allocations of all threads. */
void mica__alloc_fail_at(uint64_t n);
/* Allocation requests since the program began, failed ones included. */
uint64_t mica__alloc_count(void);
/* Blocks allocated and not freed yet. */
int64_t mica__alloc_live(void);

#endif
