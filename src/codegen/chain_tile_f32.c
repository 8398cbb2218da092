/* The one op on floats that registers do not have everywhere: without an instruction
 * that rounds once, a * b + c is the C library's, a lane at a time. */
#include <math.h>

#include "codegen/chain_ctx.h"

void mica__chain_tile_fma(const chain_op *ip, chain_ctx *c)
{
    const chain_f32 *pa = (const chain_f32 *)c->ptr[ip->a], *pb = (const chain_f32 *)c->ptr[ip->b];
    const chain_f32 *pc = (const chain_f32 *)c->ptr[ip->c];
    chain_f32 *pd = (chain_f32 *)c->ptr[ip->dst];
    for (int64_t k = 0; k < c->n; k++) pd[k] = fmaf(pa[k], pb[k], pc[k]);
}
