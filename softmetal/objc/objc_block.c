/* Blocks: the closures of clang's C extension, which a C program may also build by
 * hand. Metal copies the ones it is given and calls them later.
 *
 * A block on the stack is copied to the heap; a copied one is counted in its flags;
 * a global one is never copied. */
#include "objc/objc_runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_COUNT = 0xfffe,          /* references times two */
    BLOCK_ON_HEAP = 1 << 24,
    BLOCK_HAS_HELPERS = 1 << 25,
    BLOCK_IS_GLOBAL = 1 << 28,
};

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
