/* The parser state and the functions that both halves of the parser share:
 * expressions (jinja_expression.c), and text and statements (jinja_parse.c). */
#ifndef MICA_TEXT_JINJA_PARSER_H
#define MICA_TEXT_JINJA_PARSER_H

#include "text/jinja_build.h"

typedef enum mica__jtoken { MICA__JT_END, MICA__JT_NAME, MICA__JT_STRING, MICA__JT_NUMBER, MICA__JT_OP } mica__jtoken;

typedef struct mica__jparser {
    mica__arena *arena;
    const char *text;
    size_t length, at;
    int line, nesting, loops;
    int brackets;    /* open in this tag: its end inside of them is none, as in {{ {'a': {}} }} */
    bool line_start; /* the text after the last tag begins a line */
    /* the current token, inside a tag */
    mica__jtoken kind;
    const char *token;
    size_t n;
    int64_t number;
    const char *closing; /* of the tag: "%}" or "}}" */
} mica__jparser;

mica_status mica__jp_node(mica__jparser *p, mica__jop op, mica__jnode **out);
/* Increments the nesting level within its limit; the caller decrements it. */
mica_status mica__jp_enter(mica__jparser *p);
/* Reads the next token; its kind is MICA__JT_END at the end of the tag. */
mica_status mica__jp_lex(mica__jparser *p);
/* Bytes of white space at p->at. */
size_t mica__jp_spaces(const mica__jparser *p);
/* True if the current token is this operator or this name; if the text at p->at begins with `text`. */
bool mica__jp_is_op(const mica__jparser *p, const char *text);
bool mica__jp_is_name(const mica__jparser *p, const char *text);
bool mica__jp_has_text(const mica__jparser *p, const char *text);
/* Requires this operator, or any name, and reads the next token. */
mica_status mica__jp_expect(mica__jparser *p, const char *op);
mica_status mica__jp_expect_name(mica__jparser *p, const char **name, size_t *n);
/* Fails with "... is missing before ...". */
mica_status mica__jp_fail_missing(const mica__jparser *p, const char *what);
/* mica__jp_expression parses any expression. mica__jp_logic with level 0 parses one without
 * "a if b else c" outside of brackets. */
mica_status mica__jp_expression(mica__jparser *p, mica__jnode **out);
mica_status mica__jp_logic(mica__jparser *p, int level, mica__jnode **out);

#endif
