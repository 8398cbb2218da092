/* Blocks: the closures of clang's C extension, which a C program may also build by
 * hand. Metal copies the blocks that it is given and calls them later.
 *
 * A block on the stack is copied to the heap. A block on the heap has a reference count in
 * its flags. A global block is never copied. A __block variable is copied together with the
 * first block that captures it; after that it is accessed through its own pointer to the
 * copy. Each handler of metal-cpp uses one. */
#include "objc/objc_runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_COUNT = 0xfffe,          /* reference count times two */
    BLOCK_ON_HEAP = 1 << 24,
    BLOCK_HAS_HELPERS = 1 << 25,
    BLOCK_IS_GLOBAL = 1 << 28,
};

/* The kinds of captured fields, for the two functions below. */
enum { FIELD_OBJECT = 3, FIELD_BLOCK = 7, FIELD_SHARED = 8, FIELD_WEAK = 16, FIELD_INSIDE_SHARED = 128 };

/* A __block variable; the value follows the struct. The helpers exist only if their flag is set. */
typedef struct sm_shared {
    void *isa;
    struct sm_shared *here; /* where the variable is now: on the stack, later in its copy */
    int32_t flags, size;
    void (*copy)(void *to, void *from);
    void (*dispose)(void *variable);
} sm_shared;

SM_API void *_NSConcreteGlobalBlock[32];
SM_API void *_NSConcreteStackBlock[32];
SM_API void *_NSConcreteMallocBlock[32];

void *_Block_copy(const void *from)
{
    const sm_block *block = from;
    union {
        const sm_block *given;
        sm_block *ours;
    } as = {block};
    if (block == NULL || (block->flags & BLOCK_IS_GLOBAL) != 0) return as.ours;
    if ((block->flags & BLOCK_ON_HEAP) != 0) {
        __atomic_fetch_add(&as.ours->flags, 2, __ATOMIC_RELAXED);
        return as.ours;
    }
    sm_block *copy = malloc(block->descriptor->size);
    if (copy == NULL) return NULL;
    memcpy(copy, block, block->descriptor->size);
    copy->isa = _NSConcreteMallocBlock;
    copy->flags = (block->flags & ~BLOCK_COUNT) | BLOCK_ON_HEAP | 2;
    if ((copy->flags & BLOCK_HAS_HELPERS) != 0) copy->descriptor->copy(copy, block);
    return copy;
}

void _Block_release(const void *given)
{
    union {
        const void *given;
        sm_block *ours;
    } as = {given};
    sm_block *block = as.ours;
    if (block == NULL || (block->flags & BLOCK_ON_HEAP) == 0) return;
    if ((__atomic_sub_fetch(&block->flags, 2, __ATOMIC_ACQ_REL) & BLOCK_COUNT) != 0) return;
    if ((block->flags & BLOCK_HAS_HELPERS) != 0) block->descriptor->dispose(block);
    free(block);
}

static sm_shared *share(sm_shared *variable)
{
    sm_shared *here = variable->here;
    if ((here->flags & BLOCK_ON_HEAP) != 0) {
        __atomic_fetch_add(&here->flags, 2, __ATOMIC_RELAXED);
        return here;
    }
    sm_shared *copy = malloc((size_t)variable->size);
    if (copy == NULL) return NULL;
    memcpy(copy, variable, (size_t)variable->size);
    copy->here = copy;
    copy->flags = (variable->flags & ~BLOCK_COUNT) | BLOCK_ON_HEAP | 4; /* references: block, frame */
    variable->here = copy;
    if ((copy->flags & BLOCK_HAS_HELPERS) != 0) copy->copy(copy, variable);
    return copy;
}

static void unshare(sm_shared *variable)
{
    sm_shared *here = variable->here;
    if ((here->flags & BLOCK_ON_HEAP) == 0) return;
    if ((__atomic_sub_fetch(&here->flags, 2, __ATOMIC_ACQ_REL) & BLOCK_COUNT) != 0) return;
    if ((here->flags & BLOCK_HAS_HELPERS) != 0) here->dispose(here);
    free(here);
}

/* Called by the helpers that clang generates for a block with captured objects. */
void _Block_object_assign(void *field, const void *value, int what)
{
    union {
        const void *given;
        void *ours;
    } as = {value};
    if ((what & FIELD_INSIDE_SHARED) == 0) {
        switch (what & ~FIELD_WEAK) {
        case FIELD_OBJECT: as.ours = objc_retain(as.ours); break;
        case FIELD_BLOCK: as.ours = _Block_copy(value); break;
        case FIELD_SHARED: as.ours = share(as.ours); break;
        default: break;
        }
    }
    memcpy(field, &as.ours, sizeof as.ours);
}

void _Block_object_dispose(const void *value, int what)
{
    union {
        const void *given;
        void *ours;
    } as = {value};
    if ((what & FIELD_INSIDE_SHARED) != 0) return;
    switch (what & ~FIELD_WEAK) {
    case FIELD_OBJECT: objc_release(as.ours); break;
    case FIELD_BLOCK: _Block_release(value); break;
    case FIELD_SHARED: unshare(as.ours); break;
    default: break;
    }
}
