/* The common part of the lowerings of attention and of its gradients. */
#ifndef MICA_KERNELS_ATTENTION_GPU_H
#define MICA_KERNELS_ATTENTION_GPU_H

#include "kernels/common/gpu_view.h"

#include "kernels/attention/attention_params.h"

mica_head_view mica__gpu_head_view(const mica__tensor *t);
/* The parameters for q, k, v and the mask of a launch; mask: its index, 0 if there is none. */
mica_attention_params mica__gpu_attention_params(const mica__gpu_launch *l, uint32_t mask);

#endif
