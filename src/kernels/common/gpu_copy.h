/* A copy of an operand into the result, as a dispatch; what CONCAT and SCATTER begin with. */
#ifndef MICA_KERNELS_GPU_COPY_H
#define MICA_KERNELS_GPU_COPY_H

#include "kernels/gpu.h"

/* To where element `first` of the result is, with the result's strides. */
void mica__gpu_copy(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t operand, int64_t first);

#endif
