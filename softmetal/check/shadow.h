/* Shadow memory: the last accesses to each byte, in sparse pages of cells. A page begins
 * with one cell per four bytes and is split into finer cells at the first smaller access. */
#ifndef SOFTMETAL_SHADOW_H
#define SOFTMETAL_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The owner of an access: one thread, or several that were not ordered with each other. */
enum { STAMP_THREAD, STAMP_SIMDGROUP, STAMP_GROUP, STAMP_GROUPS };

typedef struct sm_stamp {
    uint32_t dispatch; /* 0: no access yet */
    uint32_t other;    /* an earlier dispatch with the same kind of access */
    uint32_t group, epoch, barriers, pc;
    uint16_t simd_epoch;
    uint16_t thread : 10, who : 2, atomic : 1;
} sm_stamp;

typedef struct sm_cell {
    sm_stamp write, read;
} sm_cell;

enum { SHADOW_BITS = 12 }; /* log2 of the bytes of a page */

typedef struct sm_shadow_page {
    uintptr_t number;
    int shift; /* a cell covers 1 << shift bytes */
    sm_cell *cells;
} sm_shadow_page;

typedef struct sm_shadow {
    sm_shadow_page **table; /* hashed by page number */
    size_t room, count;
    sm_shadow_page *last;
} sm_shadow;

/* Returns the page of an address, with cells that fit an access of that size; NULL: out of memory. */
sm_shadow_page *sm_shadow_page_of(sm_shadow *shadow, uintptr_t address, size_t size);
void sm_shadow_clear(sm_shadow *shadow, uintptr_t address, size_t size);
void sm_shadow_free(sm_shadow *shadow);

#endif
