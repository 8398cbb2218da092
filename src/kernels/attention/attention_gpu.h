/* What the lowerings of attention and of its gradients share. */
#ifndef MICA_KERNELS_ATTENTION_GPU_H
#define MICA_KERNELS_ATTENTION_GPU_H

#include "kernels/common/gpu_view.h"

#include "kernels/attention/attention_params.h"

mica_head_view mica__gpu_head_view(const mica__tensor *t);
/* Of q, k, v and what else the launch has; mask: its number, 0 if there is none. */
mica_attention_params mica__gpu_attention_params(const mica__gpu_launch *l, uint32_t mask);

#endif
