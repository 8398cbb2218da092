/* The parts of tokenizer.json around its model, and the other files in its folder. */
#ifndef MICA_TEXT_TOKENIZER_STAGES_H
#define MICA_TEXT_TOKENIZER_STAGES_H

#include "text/json_tree.h"
#include "text/tokenizer_build.h"

/* Normaliser and pre-tokenizer: they decide whether tokens are bytes or characters. */
mica_status mica__stages_before(mica_tokenizer *t, const mica__json_node *root);
/* Post-processor and decoder; call after the vocabulary is read. */
mica_status mica__stages_after(mica_tokenizer *t, const mica__json_node *root);
/* special_tokens_map.json, tokenizer_config.json, generation_config.json, chat_template.jinja: roles and the
 * template. */
mica_status mica__stages_folder(mica_tokenizer *t, const char *folder);

#endif
