/* Translates MSL text to C++ text. There is no syntax tree: the text is preprocessed and
 * split into tokens, and a few constructs are found among them (kernels, instantiations,
 * function constants, threadgroup variables, attributes). Changes are a list of edits
 * beside the tokens; the tokens are never modified. Types are left to the C++ compiler: a
 * kernel is called through a template that deduces them (shim/entry.h), and each of its
 * parameters has one tag that states what is passed. */
#ifndef SOFTMETAL_MSL_H
#define SOFTMETAL_MSL_H

#include "../core.h"
#include "text.h"

/* Preprocesses the text of a library (library.c). */
bool msl_preprocess(const char *source, size_t length, const sm_options *options, sm_text *out, char **message);

/* ---- tokens (msl_lex.c) ---- */

typedef enum msl_kind { MSL_NAME, MSL_NUMBER, MSL_STRING, MSL_PUNCT, MSL_DIRECTIVE, MSL_END } msl_kind;

typedef struct msl_token {
    msl_kind kind;
    uint32_t at, length; /* position in the preprocessed text */
    int line;            /* line in the user's text */
    int file;            /* index into files */
    int match;           /* for a bracket ( [ { the token that closes it, and vice versa; else -1 */
} msl_token;

typedef struct msl_tokens {
    const char *text;
    msl_token *list; /* the last is MSL_END */
    int count, room;
    char **files; /* names in the line markers */
    int files_count, files_room;
} msl_tokens;

bool msl_lex(msl_tokens *tokens, const char *text, size_t length, char **message);
void msl_tokens_free(msl_tokens *tokens);
bool msl_is(const msl_tokens *tokens, int index, const char *word);

/* Attributes of kernel parameters that are positions; the first list may be vectors. The shim has a tag for each
 * (shim/entry.h). NULL ends a list (msl_kernel.c). */
extern const char *const msl_vector_positions[], *const msl_scalar_positions[];

/* ---- what was found (msl_parse.c) ---- */

typedef struct msl_edit {
    int first, last;  /* tokens to replace, both included */
    const char *text; /* owned by the unit */
} msl_edit;

typedef struct msl_parameter {
    const char *tag;       /* its sm_argument<...> of the shim */
    sm_argument argument;  /* index -1: known only to the compiler */
    bool is_argument;
    int first, last;       /* its tokens */
} msl_parameter;

typedef struct msl_kernel {
    const char *name;      /* qualified: "space::f" */
    bool is_template;
    bool threadgroup; /* has an argument or a variable in threadgroup memory */
    const char *header; /* "template <class T, int N>" */
    msl_parameter *parameters;
    int count, room;
    const char *max_threads; /* the expression of the attribute, or NULL */
    int line;
    sm_argument *arguments; /* those parameters that are arguments */
    int arguments_count;
} msl_kernel;

typedef struct msl_name {
    const char *host, *target; /* for example "add_f32", "add<float>" */
    const char *signature;     /* third form: the type to cast &target to, else NULL */
    int kernel;                /* index into kernels */
    int line;
} msl_name;

typedef struct msl_constant {
    sm_function_constant facts;
    int first, last;       /* tokens of the whole declaration */
    const char *type_text;
} msl_constant;

typedef struct msl_unit {
    msl_tokens tokens;
    msl_edit *edits;
    int edits_count, edits_room;
    msl_kernel *kernels;
    int kernels_count, kernels_room;
    msl_name *names; /* the kernels that can be built */
    int names_count, names_room;
    msl_constant *constants;
    int constants_count, constants_room;
    sm_function_constant *facts; /* descriptions of the constants */
    int *questions; /* tokens is_function_constant_defined */
    int questions_count, questions_room;
    char **owned; /* strings that live as long as the unit */
    int owned_count, owned_room;
} msl_unit;

/* Refuses names that this version of the language does not have (msl_names.c). */
bool msl_check_names(const msl_unit *unit, int version, char **message);

/* unit->tokens must be lexed already. */
bool msl_parse(msl_unit *unit, char **message);
void msl_unit_free(msl_unit *unit);

/* Makes the unit own the text; NULL: out of memory. */
const char *msl_own(msl_unit *unit, sm_text *text);
bool msl_add_edit(msl_unit *unit, int first, int last, const char *text);
/* "file:line: error: ..." at a token; returns false. */
bool msl_error(const msl_unit *unit, int token, char **message, const char *format, ...) SM_PRINTF(4);

/* ---- the C++ text (msl_edit.c) ---- */

/* Writes the whole text. values[i] is the C++ text of each function constant, or NULL: not defined. values NULL:
 * only for checking the syntax. */
bool msl_emit(const msl_unit *unit, const char *const *values, sm_text *out);
/* Writes the entry of one kernel, which follows the text. */
void msl_emit_entry(const msl_unit *unit, const msl_name *name, sm_text *out);

#endif
