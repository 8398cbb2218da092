/* Chats to text: templates of the table, and of files. */
#ifndef MICA_TEXT_CHAT_H
#define MICA_TEXT_CHAT_H

#include "text/tokenizer_build.h"

/* The first name of template i, NULL behind the last. */
const char *mica__chat_name(size_t i);
/* The template that t uses from now on: where the text of its file cannot be
 * rendered but is known by its parts, that one, with a note. */
mica_status mica__chat_resolve(mica_tokenizer *t);
/* Into the arena; chat as in mica_chat_render, not NULL. */
mica_status mica__chat_render(mica__arena *arena, const mica_tokenizer *t, const char *chat,
                              const mica_chat_message *messages, size_t n, bool prompt, const char **text,
                              size_t *length);

#endif
