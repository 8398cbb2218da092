/* The table of kernel families. */
#include "kernels/argreduce/argreduce.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_cached.h"
#include "kernels/attention/attention_grad.h"
#include "kernels/conv/conv.h"
#include "kernels/cumulative/cumulative.h"
#include "kernels/gpu.h"
#include "kernels/index/index.h"
#include "kernels/matmul/matmul.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/random/random.h"
#include "kernels/rope/rope.h"
#include "kernels/softmax/softmax.h"
#include "kernels/sort/sort.h"
#include "kernels/state/update.h"
#include "kernels/synapses/synapses.h"

static const mica__family family_table[] = {
#define MICA_FAMILY(OP, ...) {.op = MICA__OP_##OP, __VA_ARGS__},
#include "kernels/families.def"
#undef MICA_FAMILY
};

/* Linear search: few rows, one lookup per step of a new plan. */
const mica__family *mica__family_get(mica__op op)
{
    for (size_t i = 0; i < sizeof family_table / sizeof *family_table; i++)
        if (family_table[i].op == op) return &family_table[i];
    return NULL;
}
