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

/* Makes the n-th allocation from now fail, once; 0: none. The second returns the number of allocations so far. */
void faulted_fail_at(uint64_t n);
uint64_t faulted_count(void);

#ifdef MICA_FAULTED /* after the headers that declare these functions */
#define malloc faulted_malloc
#define calloc faulted_calloc
#define realloc faulted_realloc
#define free faulted_free
#endif

#endif
