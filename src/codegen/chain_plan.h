/* Decisions of the chain builder that do not need its state: how a kernel is walked
 * and split, and which op implements an instruction. */
#ifndef MICA_CODEGEN_CHAIN_PLAN_H
#define MICA_CODEGEN_CHAIN_PLAN_H

#include "codegen/chain_ctx.h"

/* Fills in the loops and operands of the programs, the fold mode, tasks and
 * parts. *fits is false if there are too many operands. */
mica_status mica__chain_plan_loops(const mica__kernel *k, mica__arena *arena, mica__chain *chain, bool *fits);

/* Is the instruction an alias of its operand (a copy, or a cast that changes
 * nothing in a tile)? */
bool mica__chain_is_alias(const mica__kinst *inst);
/* The op that computes the same on floats (bool: on 0 and 1); MICA__OP_COUNT if there is
 * none. */
mica__op mica__chain_op_of(const mica__kinst *inst);
/* Is the 32-bit result of an op always in the range of its narrower operands? */
bool mica__chain_int_op_stays(mica__op op);
/* Is the result for f16 or bf16 operands exact in that dtype, without rounding? */
bool mica__chain_op_is_exact(mica__op op);

#endif
