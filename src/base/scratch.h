/* Memory for the tiles of kernels: one block a thread, used like a stack. Kernels need up to
 * half a megabyte at a time, but the stack of a thread of the host program may have 64 KB in
 * all. A run gives its block to the calling thread for as long as it
 * lasts, and each worker of a pool has its own, so that no kernel allocates and none can fail. */
#ifndef MICA_BASE_SCRATCH_H
#define MICA_BASE_SCRATCH_H

#include <stddef.h>

/* The most that nested kernels take is about 500 KB: a region of a large product, and a chain
 * with a fold as its epilogue. */
enum { MICA__SCRATCH_BYTES = 1 << 20 };

typedef struct mica__scratch mica__scratch;

/* NULL: out of memory. */
mica__scratch *mica__scratch_new(void);
void mica__scratch_free(mica__scratch *scratch); /* NULL is fine */

/* From now on kernels on this thread use this block; returns the one they used before. */
mica__scratch *mica__scratch_use(mica__scratch *scratch);

/* nbytes, 64-byte aligned, not initialised. The thread must have a block. */
void *mica__scratch_take(size_t nbytes);
/* Gives back p and everything that was taken after it. */
void mica__scratch_give(void *p);

#endif
