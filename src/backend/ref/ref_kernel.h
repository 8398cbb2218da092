/* The reference interpreter: runs a kernel element by element, exactly as
 * graph/scalar.h defines each op. */
#ifndef MICA_BACKEND_REF_KERNEL_H
#define MICA_BACKEND_REF_KERNEL_H

#include "codegen/index_fault.h"
#include "codegen/kernel.h"

/* Most instructions of a kernel. The interpreter keeps one number for each in
 * scratch memory. */
enum { MICA__REF_MAX_INST = 1024 };

/* Computes the elements [begin, end) of the outer loops, in row-major order. block[i] is
 * the address of block i of the plan. */
void mica__ref_kernel(const mica__kernel *k, char *const *block, int64_t begin, int64_t end, mica__index_fault *fault);

#endif
