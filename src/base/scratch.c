/* See scratch.h. */
#include "base/scratch.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/checked.h"

struct mica__scratch {
    size_t used;                /* bytes of the block, including this header            */
};

/* Arrays begin on pages. A tile with the same offset in its page makes a load of the array wait for the store to the
 * tile (4 KB aliasing), so tiles begin a quarter of a page later. */
enum { SCRATCH_LINE = 64, SCRATCH_FIRST = 1024 + SCRATCH_LINE };

static _Thread_local mica__scratch *current;

mica__scratch *mica__scratch_new(void)
{
    mica__scratch *scratch = mica__alloc_pages(MICA__SCRATCH_BYTES);
    if (scratch) scratch->used = SCRATCH_FIRST;
    return scratch;
}

void mica__scratch_free(mica__scratch *scratch) { mica__free_pages(scratch, MICA__SCRATCH_BYTES); }

mica__scratch *mica__scratch_use(mica__scratch *scratch)
{
    mica__scratch *before = current;
    current = scratch;
    return before;
}

void *mica__scratch_alloc(size_t nbytes)
{
    mica__scratch *scratch = current;
    assert(scratch && nbytes <= MICA__SCRATCH_BYTES - scratch->used);
    void *p = (char *)scratch + scratch->used;
    scratch->used += mica__round_up(nbytes, SCRATCH_LINE);
    return p;
}

void mica__scratch_release(void *p) { current->used = (size_t)((char *)p - (char *)current); }
