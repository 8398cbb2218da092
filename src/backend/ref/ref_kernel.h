/* The reference interpreter: runs a kernel element by element, exactly as
 * graph/scalar.h defines each op. */
#ifndef MICA_BACKEND_REF_KERNEL_H
#define MICA_BACKEND_REF_KERNEL_H

#include "codegen/index_fault.h"
#include "codegen/kernel.h"

/* More instructions than any kernel has; the interpreter keeps one number for
 * each on its stack. */
enum { MICA__REF_MAX_INST = 1024 };

/* The elements [begin, end) of the outer loops, in row-major order. block[i] is
 * where block i of the plan is. */
void mica__ref_kernel(const mica__kernel *k, char *const *block, int64_t begin, int64_t end, mica__index_fault *fault);

#endif
