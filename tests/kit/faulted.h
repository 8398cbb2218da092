/* Allocation functions for nn/ and models/, which call malloc directly. The fault tests compile
 * them to call these functions instead, and the n-th call fails (Makefile, FAULTED). The calls also
 * count as allocations of the library (base/alloc.h). */
#ifndef MICA_TEST_FAULTED_H
#define MICA_TEST_FAULTED_H

#include <stdint.h>
#include <stdlib.h>

void *faulted_malloc(size_t nbytes);
void *faulted_calloc(size_t count, size_t nbytes);
void *faulted_realloc(void *p, size_t nbytes);
void faulted_free(void *p);

/* The n-th from now fails, once; 0: none. And how many there were. */
void faulted_fail_at(uint64_t n);
uint64_t faulted_count(void);

#ifdef MICA_FAULTED /* behind the headers that declare them */
#define malloc faulted_malloc
#define calloc faulted_calloc
#define realloc faulted_realloc
#define free faulted_free
#endif

#endif
