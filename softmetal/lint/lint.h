/* Finds errors that Apple's compiler reports and clang with the shim does not; the public
 * call is sm_lint in softmetal.h. The rules work on tokens (lint_rules.c, lint_kernel.c,
 * lint_calls.c); rules that depend on types are left to clang (lint.c). */
#ifndef SOFTMETAL_LINT_H
#define SOFTMETAL_LINT_H

#include "msl/msl.h"

typedef struct lint_function {
    int name, open, body, end; /* tokens: its name, the ( of its parameters, the { and the } of its body */
    int header;                /* the < of its template parameters, or -1 */
    int scope;                 /* the first token of the enclosing braces, 0: none */
    int parameters;
    bool is_kernel, is_member;
} lint_function;

typedef struct lint {
    const msl_tokens *tokens;
    sm_text *out;
    lint_function *functions; /* functions with a body */
    int functions_count, functions_room;
} lint;

/* Adds one error, "file:line: error: ...", at a token. */
void lint_report(sm_text *out, const msl_tokens *tokens, int token, const char *format, ...) SM_PRINTF(4);

/* The rules that need only tokens (lint_rules.c). */
void lint_rules(const msl_tokens *tokens, sm_text *out);

/* Checks a kernel's result and parameters (lint_kernel.c). begin: first token of its declaration. */
void lint_kernel(const lint *l, int begin, int open);

/* Checks recursion, calls of kernels, two kernels with one name (lint_calls.c). */
void lint_calls(const lint *l);

/* Returns whether Metal's library has this name (lint.c). */
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

/* The > that closes template arguments, or -1: the < is a comparison. */
int lint_angle_end(const lint *l, int open, int last);
/* The * or & in the tokens, outside brackets and attributes and before any =; -1: none. */
int lint_pointer_in(const lint *l, int first, int last);
/* The next parameter between open and its match: tokens first..last; *at starts as open + 1. */
bool lint_next_parameter(const lint *l, int open, int *at, int *first, int *last);
/* Returns the number of parameters. */
int lint_count(const lint *l, int open);

#endif
