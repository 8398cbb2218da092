/* Renders chats as text, with built-in templates or the template of a model file. */
#ifndef MICA_TEXT_CHAT_H
#define MICA_TEXT_CHAT_H

#include "text/tokenizer_build.h"

/* The first name of template i, NULL past the last one. */
const char *mica__chat_name(size_t i);
/* Checks that the template of t can be rendered. If it cannot and a built-in template
 * matches it by its telltale parts, t uses that one and gets a note. */
mica_status mica__chat_resolve(mica_tokenizer *t);
/* The text is in the arena. `chat` is as in mica_chat_render, but not NULL. */
mica_status mica__chat_render(mica__arena *arena, const mica_tokenizer *t, const char *chat,
                              const mica_chat_message *messages, size_t n, bool prompt, const char **text,
                              size_t *length);

#endif
