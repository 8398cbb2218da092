/* Replaces malloc to count calls where that is possible: glibc without sanitizers. Include it in
 * one file of a program. */
#ifndef MICA_TEST_MALLOC_COUNT_H
#define MICA_TEST_MALLOC_COUNT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "sanitized.h"

#if defined(__GLIBC__) && defined(__x86_64__) && !defined(SANITIZED)
#define SEES_MALLOC 1
static _Atomic uint64_t malloc_calls;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    atomic_fetch_add_explicit(&malloc_calls, 1, memory_order_relaxed);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    atomic_fetch_add_explicit(&malloc_calls, 1, memory_order_relaxed);
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    atomic_fetch_add_explicit(&malloc_calls, 1, memory_order_relaxed);
    return __libc_realloc(p, n);
}
int posix_memalign(void **p, size_t align, size_t n)
{
    atomic_fetch_add_explicit(&malloc_calls, 1, memory_order_relaxed);
    *p = __libc_memalign(align, n);
    return *p ? 0 : 12;
}
static uint64_t malloc_count(void) { return atomic_load(&malloc_calls); }
#else
#define SEES_MALLOC 0
static uint64_t malloc_count(void) { return 0; }
#endif

#endif
