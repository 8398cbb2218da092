/* The steps of a counted build that work on textual LLVM IR. */
#ifndef SOFTMETAL_COUNT_PASS_H
#define SOFTMETAL_COUNT_PASS_H

#include "../msl/text.h"

/* Names another target, without 64-bit integers and without features of this machine, so that the optimiser keeps
 * indices at 32 bits as a GPU's compiler does. */
bool sm_count_retarget(const sm_text *in, sm_text *out, char **message);

/* Adds counters and calls for accesses to the optimised text, and the tables (sm_count_module); names this machine's
 * target again, which `original`, the text before sm_count_retarget, has. */
bool sm_count_instrument(const sm_text *in, const sm_text *original, bool precise, sm_text *out, char **message);

#endif
