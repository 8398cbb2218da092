/* Scratch memory for the tiles of kernels: one block per thread, used like a stack. Kernels need
 * up to half a megabyte at a time, but a thread of the host program may have a stack of only
 * 64 KB. A run lends its block to the calling thread while it lasts, and each worker of a pool
 * has a block. So kernels never allocate and cannot fail. */
#ifndef MICA_BASE_SCRATCH_H
#define MICA_BASE_SCRATCH_H

#include <stddef.h>

/* Nested kernels use at most about 500 KB: a region of a large product, and a chain with a fold
 * as its epilogue. */
enum { MICA__SCRATCH_BYTES = 1 << 20 };

typedef struct mica__scratch mica__scratch;

/* NULL: out of memory. */
mica__scratch *mica__scratch_new(void);
void mica__scratch_free(mica__scratch *scratch); /* NULL is fine */

/* Sets the block that kernels on this thread use; returns the previous one. */
mica__scratch *mica__scratch_use(mica__scratch *scratch);

/* Allocates nbytes, 64-byte aligned, not initialised. The thread must have a block. */
void *mica__scratch_alloc(size_t nbytes);
/* Frees p and everything that was allocated after it. */
void mica__scratch_release(void *p);

#endif
