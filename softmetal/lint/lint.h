/* What Apple's compiler would refuse and clang with the shim would not: softmetal.h
 * has the call, sm_lint. */
#ifndef SOFTMETAL_LINT_H
#define SOFTMETAL_LINT_H

#include "msl/msl.h"

/* One complaint, "file:line: error: ...", at a token. */
void lint_say(sm_text *out, const msl_tokens *tokens, int token, const char *format, ...) SM_PRINTF(4);

/* The rules that can be seen in the tokens (lint_rules.c). */
void lint_rules(const msl_tokens *tokens, sm_text *out);

#endif
