/* Shared by the two halves of the parser: msl_parse.c walks over the tokens,
 * msl_kernel.c handles kernels, instantiations and function constants. */
#ifndef SOFTMETAL_MSL_PARSE_H
#define SOFTMETAL_MSL_PARSE_H

#include "msl.h"

#include <stdarg.h>

enum { PARSER_DEPTH = 200 };

typedef enum scope_kind { SCOPE_NAMESPACE, SCOPE_CLASS, SCOPE_FUNCTION, SCOPE_VALUE } scope_kind;

typedef struct scope {
    scope_kind kind;
    int name;  /* the token that names a namespace, or -1 */
    int start; /* first token of its declaration */
    int brace; /* the { that opened it */
} scope;

typedef struct head_seen {
    sm_hash hash;
    int scope; /* the enclosing brace, -1: none */
    bool spaces;
} head_seen;

typedef struct parser {
    msl_unit *unit;
    char **message;
    char *seen; /* tokens that are already handled */
    int start;  /* first token of the current declaration or statement */
    int parens; /* number of open ( */
    int depth;
    scope scopes[PARSER_DEPTH];
    head_seen *heads; /* heads of functions and classes (msl_overload.c) */
    int heads_count, heads_room;
    int *own; /* tokens: declared names that look like swizzles */
    int own_count, own_room;
} parser;

bool parse_is(const parser *p, int i, const char *word);
bool parse_is_name(const parser *p, int i);
const msl_token *parse_token(const parser *p, int i);
bool parse_drop(parser *p, int first, int last);
int parse_attribute_end(const parser *p, int i);
int parse_after_angles(const parser *p, int i, int end);
int parse_after_type(const parser *p, int i, int end);
int parse_after_template(const parser *p, int i, int end);
const char *parse_plain(parser *p, int first, int last);
int parse_number(const parser *p, int first, int last);

/* [[...]] outside a kernel's head. *kernel: it belongs to a kernel or an instantiation, which must be parsed. */
bool parse_attributes(parser *p, int first, int last, bool outside, bool *kernel);
/* Leaves *i at the kernel's parameter list, or at the end of an instantiation. */
bool parse_kernel(parser *p, int *i);
bool parse_is_trailing_space(const parser *p, int i);
/* Returns whether a member function without a body ends at `end`. */
bool parse_is_member_function(const parser *p, int end);
/* Call at `end` where a body of a function or class opens, or a declaration ends. A repeated head is dropped. */
bool parse_overload(parser *p, int end, bool *dropped);
bool parse_question(parser *p, int *i);
/* Adds names of plain kernels and argument lists; finds the kernels of instantiations. */
bool parse_finish(parser *p);

#endif
