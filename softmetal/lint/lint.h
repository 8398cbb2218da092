/* What Apple's compiler would refuse and clang with the shim would not: softmetal.h
 * has the call, sm_lint. The rules read tokens (lint_rules.c, lint_kernel.c,
 * lint_calls.c); what types decide is left to clang (lint.c). */
#ifndef SOFTMETAL_LINT_H
#define SOFTMETAL_LINT_H

#include "msl/msl.h"

typedef struct lint_function {
    int name, open, body, end; /* tokens: its name, the ( of its parameters, the { and the } of its body */
    int header;                /* the < of its template's parameters, or -1 */
    int scope;                 /* the first token of the braces it is in, 0: none */
    int parameters;
    bool is_kernel, is_member;
} lint_function;

typedef struct lint {
    const msl_tokens *tokens;
    sm_text *out;
    lint_function *functions; /* those with a body */
    int functions_count, functions_room;
} lint;

/* One complaint, "file:line: error: ...", at a token. */
void lint_say(sm_text *out, const msl_tokens *tokens, int token, const char *format, ...) SM_PRINTF(4);

/* The rules that can be seen in the tokens (lint_rules.c). */
void lint_rules(const msl_tokens *tokens, sm_text *out);

/* A kernel's result and parameters (lint_kernel.c). begin: of its declaration. */
void lint_kernel(const lint *l, int begin, int open);

/* Recursion, calls of kernels, two kernels of one name (lint_calls.c). */
void lint_calls(const lint *l);

/* Does Metal's library have this name? (lint.c) */
bool lint_is_library(const msl_tokens *tokens, int token);

/* ---- tokens, for the rules ---- */

static inline bool is(const lint *l, int i, const char *word) { return msl_is(l->tokens, i, word); }

static inline bool is_any(const lint *l, int i, const char *const *words)
{
    for (; *words != NULL; words++)
        if (is(l, i, *words)) return true;
    return false;
}

static inline bool is_name(const lint *l, int i) { return i >= 0 && l->tokens->list[i].kind == MSL_NAME; }
static inline bool is_number(const lint *l, int i) { return i >= 0 && l->tokens->list[i].kind == MSL_NUMBER; }
static inline bool is_end(const lint *l, int i) { return l->tokens->list[i].kind == MSL_END; }
static inline int match(const lint *l, int i) { return l->tokens->list[i].match; }
static inline bool is_attribute(const lint *l, int i) { return is(l, i, "[") && is(l, i + 1, "["); }

static inline bool opens(const lint *l, int i)
{
    return (is(l, i, "(") || is(l, i, "[") || is(l, i, "{")) && match(l, i) > 0;
}

static inline bool contains(const lint *l, int first, int end, const char *word)
{
    for (int i = first; i < end; i++)
        if (is(l, i, word)) return true;
    return false;
}

/* The > that closes a template's values, or -1: < compares. */
int lint_angle_end(const lint *l, int open, int last);
/* The * or & in the tokens, outside brackets and attributes and before a =; -1: none. */
int lint_pointer_in(const lint *l, int first, int last);
/* The next of the parameters between open and its match: first..last; *at begins as open + 1. */
bool lint_next_parameter(const lint *l, int open, int *at, int *first, int *last);
/* How many there are. */
int lint_count(const lint *l, int open);

#endif
