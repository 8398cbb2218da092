/* Rows of x rounded to 8 bits on a GPU: their place in the workspace, and which steps can share them. */
#ifndef MICA_KERNELS_QMATMUL_GPU_H
#define MICA_KERNELS_QMATMUL_GPU_H

#include "kernels/gpu.h"
#include "plan/plan.h"

typedef struct mica__gpu_rounded {
    int64_t codes, scales;      /* offsets in the workspace                              */
    uint32_t pitch, each;       /* per row: bytes of codes, floats of scales             */
} mica__gpu_rounded;

/* Reserves scratch for the rows. The first call for a list returns the same offsets for the same sizes. */
mica__gpu_rounded mica__gpu_round_place(mica__gpu_list *list, int64_t rows, int64_t cols, int64_t act);
/* mica__target.can_share_scratch: true for products that round the same rows in the same way, and for a norm whose rows
 * a product rounds. */
bool mica__gpu_shares_rounded(const mica__graph *g, const mica__step *earlier, const mica__step *later, bool of_result);

#endif
