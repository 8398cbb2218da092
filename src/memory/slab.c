/* See slab.h. One bit per unit, first fit. A slab has 16 words of bits, so a search
 * costs less than an allocation from the system. */
#include "memory/slab.h"

#include "base/alloc.h"

enum { SLAB_UNITS = MICA__SLAB_BYTES / MICA__SLAB_UNIT };

static bool unit_used(const mica__slab *s, uint32_t unit) { return s->used[unit / 64] >> (unit % 64) & 1; }

static void units_mark(mica__slab *s, uint32_t first, uint32_t n, bool used)
{
    for (uint32_t i = first; i < first + n; i++) {
        if (used) s->used[i / 64] |= (uint64_t)1 << (i % 64);
        else s->used[i / 64] &= ~((uint64_t)1 << (i % 64));
    }
    s->n_used = used ? s->n_used + n : s->n_used - n;
}

/* The first of n consecutive free units; SLAB_UNITS if there are not so many. */
static uint32_t units_find(const mica__slab *s, uint32_t n)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < SLAB_UNITS; i++) {
        if (i % 64 == 0 && s->used[i / 64] == UINT64_MAX) {
            i += 63;
            run = 0;
            continue;
        }
        run = unit_used(s, i) ? 0 : run + 1;
        if (run == n) return i + 1 - n;
    }
    return SLAB_UNITS;
}

static mica__slab *slab_new(mica__slab **list)
{
    mica__slab *s = mica__alloc_zero(1, sizeof *s);
    if (!s) return NULL;
    s->data = mica__alloc_pages(MICA__SLAB_BYTES);
    if (!s->data) {
        mica__free(s);
        return NULL;
    }
    s->next = *list;
    s->link = list;
    if (s->next) s->next->link = &s->next;
    return *list = s;
}

void *mica__slab_take(mica__slab **list, size_t capacity, mica__slab **slab)
{
    const uint32_t n = (uint32_t)(capacity / MICA__SLAB_UNIT);
    uint32_t at = SLAB_UNITS;
    mica__slab *s = *list;
    while (s && (SLAB_UNITS - s->n_used < n || (at = units_find(s, n)) == SLAB_UNITS)) s = s->next;
    if (!s) {
        s = slab_new(list);
        if (!s) return NULL;
        at = 0;
    }
    units_mark(s, at, n, true);
    *slab = s;
    return s->data + (size_t)at * MICA__SLAB_UNIT;
}

void mica__slab_give(mica__slab *s, void *block, size_t capacity)
{
    units_mark(s, (uint32_t)((size_t)((char *)block - s->data) / MICA__SLAB_UNIT),
               (uint32_t)(capacity / MICA__SLAB_UNIT), false);
    if (s->n_used > 0) return;
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
    mica__free_pages(s->data, MICA__SLAB_BYTES);
    mica__free(s);
}
