/* See faulted.h. */
#include "faulted.h"

#include <stdatomic.h>

#include "base/alloc.h"

static atomic_uint_fast64_t asked, fail_at;

static int fails_now(void)
{
    const uint64_t n = atomic_fetch_add(&asked, 1) + 1;
    return n == atomic_load(&fail_at);
}

void *faulted_malloc(size_t nbytes) { return fails_now() ? NULL : mica__alloc(nbytes); }
void *faulted_calloc(size_t count, size_t nbytes) { return fails_now() ? NULL : mica__alloc_zero(count, nbytes); }
void *faulted_realloc(void *p, size_t nbytes) { return fails_now() ? NULL : mica__realloc(p, nbytes); }
void faulted_free(void *p) { mica__free(p); }

void faulted_fail_at(uint64_t n) { atomic_store(&fail_at, n ? atomic_load(&asked) + n : 0); }
uint64_t faulted_count(void) { return atomic_load(&asked); }
