/* The check of indices on a GPU. */
#ifndef MICA_KERNELS_INDEX_GPU_H
#define MICA_KERNELS_INDEX_GPU_H

#include "kernels/gpu.h"

/* Operand number `operand` holds indices of an axis of n; -1 is the last. caller: a mica__index_caller. */
void mica__gpu_check_indices(const mica__gpu_launch *l, mica__gpu_list *list, uint32_t operand, int64_t n,
                             int64_t caller);

#endif
