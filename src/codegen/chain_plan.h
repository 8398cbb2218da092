/* Decisions of the chain builder that need no builder: how a kernel is walked
 * and cut, and what an op becomes. */
#ifndef MICA_CODEGEN_CHAIN_PLAN_H
#define MICA_CODEGEN_CHAIN_PLAN_H

#include "codegen/chain_ctx.h"

/* Fills the loops and operands of the programs, the way of folding, tasks and
 * parts. *fits is false if there are too many operands. */
mica_status mica__chain_plan_loops(const mica__kernel *k, mica__arena *arena, mica__chain *chain, bool *fits);

/* Does the instruction only name its operand (a copy, a cast that changes
 * nothing in a tile)? */
bool mica__chain_is_alias(const mica__kinst *inst);
/* The op that does the same on floats (bool: on 0 and 1); MICA__OP_COUNT if none
 * does. */
mica__op mica__chain_op_of(const mica__kinst *inst);
/* Is the result of an op in 32 bits in the range of its narrower operands already? */
bool mica__chain_int_op_stays(mica__op op);
/* Is the result of f16 or bf16 operands one already, without rounding? */
bool mica__chain_op_is_exact(mica__op op);

#endif
