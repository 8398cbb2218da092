/* What the two halves of the parser share: expressions (jinja_expression.c), and the
 * text and statements around them (jinja_parse.c). */
#ifndef MICA_TEXT_JINJA_PARSER_H
#define MICA_TEXT_JINJA_PARSER_H

#include "text/jinja_build.h"

typedef enum mica__jtoken { MICA__JT_END, MICA__JT_NAME, MICA__JT_STRING, MICA__JT_NUMBER, MICA__JT_OP } mica__jtoken;

typedef struct mica__jparser {
    mica__arena *arena;
    const char *text;
    size_t length, at;
    int line, nesting, loops;
    bool line_start; /* the text behind the last tag begins a line */
    /* the token that comes next, inside a tag */
    mica__jtoken kind;
    const char *token;
    size_t n;
    int64_t number;
    const char *closing; /* of the tag: "%}" or "}}" */
} mica__jparser;

mica_status mica__jp_node(mica__jparser *p, mica__jop op, mica__jnode **out);
/* One level more; the caller counts it back. */
mica_status mica__jp_deeper(mica__jparser *p);
/* The next token, or MICA__JT_END where the tag ends. */
mica_status mica__jp_lex(mica__jparser *p);
/* Is it this operator, this name? Does the text go on so? */
bool mica__jp_op(const mica__jparser *p, const char *text);
bool mica__jp_name(const mica__jparser *p, const char *text);
bool mica__jp_at(const mica__jparser *p, const char *text);
/* It must be, and is passed over. */
mica_status mica__jp_take(mica__jparser *p, const char *op);
mica_status mica__jp_take_name(mica__jparser *p, const char **name, size_t *n);
/* "... is missing before ..." */
mica_status mica__jp_wanted(const mica__jparser *p, const char *what);
/* Any expression; one without "a if b else c" outside of brackets, with level 0. */
mica_status mica__jp_expression(mica__jparser *p, mica__jnode **out);
mica_status mica__jp_logic(mica__jparser *p, int level, mica__jnode **out);

#endif
