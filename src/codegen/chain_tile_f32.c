/* Fused multiply-add for CPUs without such an instruction: a * b + c by the C
 * library, one lane at a time. */
#include <math.h>

#include "codegen/chain_ctx.h"

void mica__chain_tile_fma(const chain_op *ip, chain_ctx *c)
{
    const chain_f32 *pa = (const chain_f32 *)c->ptr[ip->a], *pb = (const chain_f32 *)c->ptr[ip->b];
    const chain_f32 *pc = (const chain_f32 *)c->ptr[ip->c];
    chain_f32 *pd = (chain_f32 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = fmaf(pa[k], pb[k], pc[k]);
}
