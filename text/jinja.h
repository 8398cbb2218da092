/* The part of Jinja that chat templates are written in, closed: no file, no clock,
 * no code of anybody is reached from a template, and time, memory and output are
 * limited. What is not known is refused with its name and line.
 *
 * Statements: for (with if, else, break, continue, several names), if/elif/else,
 * set (names, attributes of a namespace, blocks), macro, generation. Expressions:
 * literals, lists, dicts, attributes, items, slices, calls, filters, tests, `not
 * and or`, `in`, comparisons, `~ + - * / // %`, `a if b else c`. White space as
 * transformers sets it: trim_blocks, lstrip_blocks. */
#ifndef MICA_TEXT_JINJA_H
#define MICA_TEXT_JINJA_H

#include "base/arena.h"
#include "mica_lm.h"

typedef struct mica__jinja mica__jinja;

/* In the arena. MICA_ERR_FORMAT for what is no template, MICA_ERR_UNSUPPORTED for
 * what is not known. */
mica_status mica__jinja_parse(mica__arena *arena, const char *text, size_t length, mica__jinja **out);

typedef struct mica__jinja_input {
    const mica_chat_message *messages;
    size_t n_messages;
    bool prompt;            /* add_generation_prompt */
    const char *bos, *eos;  /* texts of the tokens, NULL: not there */
    size_t bos_length, eos_length;
} mica__jinja_input;

/* The text in the arena, with a NUL behind it. raise_exception of the template is
 * MICA_ERR_ARGUMENT with its sentence. */
mica_status mica__jinja_render(mica__arena *arena, const mica__jinja *jinja, const mica__jinja_input *input,
                               const char **text, size_t *length);

#endif
