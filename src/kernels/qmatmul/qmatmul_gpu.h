/* Rows of x rounded to 8 bits on a GPU: where they lie, which of several steps make the same. */
#ifndef MICA_KERNELS_QMATMUL_GPU_H
#define MICA_KERNELS_QMATMUL_GPU_H

#include "kernels/gpu.h"
#include "plan/plan.h"

typedef struct mica__gpu_rounded {
    int64_t codes, scales;      /* in the workspace                                      */
    uint32_t pitch, each;       /* of a row: bytes of codes, floats of scales            */
} mica__gpu_rounded;

/* Scratch for so many rows: the same places for the same numbers, if it is the first of a list. */
mica__gpu_rounded mica__gpu_round_place(mica__gpu_list *list, int64_t rows, int64_t cols, int64_t act);
/* mica__target.can_share_scratch: products that round the same rows in the same way; a norm whose rows a product
 * rounds. */
bool mica__gpu_shares_rounded(const mica__graph *g, const mica__step *earlier, const mica__step *later, bool of_result);

#endif
