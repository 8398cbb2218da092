/* Scratch memory for tests that call kernels on the main thread without an engine. Otherwise the
 * engine provides it (base/scratch.h). Including this header is enough. */
#ifndef MICA_TESTS_KERNEL_SCRATCH_H
#define MICA_TESTS_KERNEL_SCRATCH_H

#include <stdlib.h>

#include "base/scratch.h"

static __attribute__((constructor)) void kernel_scratch_begin(void)
{
    mica__scratch *scratch = mica__scratch_new();
    if (!scratch) abort();
    (void)mica__scratch_use(scratch);
}

static __attribute__((destructor)) void kernel_scratch_end(void) { mica__scratch_free(mica__scratch_use(NULL)); }

#endif
