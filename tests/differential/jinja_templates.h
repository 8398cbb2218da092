/* Generates chat templates of the syntax that text/jinja.h describes, and the chats they are rendered with. */
#ifndef MICA_DIFFERENTIAL_JINJA_TEMPLATES_H
#define MICA_DIFFERENTIAL_JINJA_TEMPLATES_H

#include "differential.h"
#include "text/jinja.h"

enum { JINJA_CONTEXTS = 256, JINJA_MESSAGES = 6 };

typedef struct jinja_context {
    mica__jinja_input input;
    mica_chat_message messages[JINJA_MESSAGES];
} jinja_context;

/* The same JINJA_CONTEXTS chats in every process and every run. */
const jinja_context *jinja_contexts(void);
/* Expressions have a type, so that most templates render. */
void jinja_generate(uint64_t *random, differ_bytes *out);

#endif
