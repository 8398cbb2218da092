/* The subset of Jinja that chat templates use, in a sandbox: a template cannot reach
 * files, clocks or other code, and its time, memory and output are limited.
 * Unsupported features are refused with their name and line.
 *
 * Statements: for (with if, else, break, continue, several names), if/elif/else,
 * set (names, attributes of a namespace, blocks), macro, generation. Expressions:
 * literals, lists, dicts, attributes, items, slices, calls, filters, tests, `not
 * and or`, `in`, comparisons, `~ + - * / // %`, `a if b else c`. White space is handled
 * as in transformers: with trim_blocks and lstrip_blocks. */
#ifndef MICA_TEXT_JINJA_H
#define MICA_TEXT_JINJA_H

#include "base/arena.h"
#include "mica_lm.h"

typedef struct mica__jinja mica__jinja;

/* *out is in the arena and may point into text. MICA_ERR_FORMAT for a malformed template,
 * MICA_ERR_UNSUPPORTED for an unsupported feature. */
mica_status mica__jinja_parse(mica__arena *arena, const char *text, size_t length, mica__jinja **out);

typedef struct mica__jinja_input {
    const mica_chat_message *messages;
    size_t n_messages;
    bool prompt;            /* add_generation_prompt */
    const char *bos, *eos;  /* texts of the tokens; NULL: undefined in the template */
    size_t bos_length, eos_length;
} mica__jinja_input;

/* The text is in the arena and NUL-terminated. If the template calls raise_exception,
 * the status is MICA_ERR_ARGUMENT with that error message. */
mica_status mica__jinja_render(mica__arena *arena, const mica__jinja *jinja, const mica__jinja_input *input,
                               const char **text, size_t *length);

#endif
