/* A copy of an operand into the result, as a dispatch; the first step of CONCAT and SCATTER. */
#ifndef MICA_KERNELS_GPU_COPY_H
#define MICA_KERNELS_GPU_COPY_H

#include "kernels/gpu.h"

/* Copies to element `first` of the result, with the result's strides. */
void mica__gpu_copy(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t operand, int64_t first);

#endif
