/* Writes tokenizers to files. */
#ifndef MICA_TEXT_TOKENIZER_WRITE_H
#define MICA_TEXT_TOKENIZER_WRITE_H

#include "base/arena.h"
#include "text/tokenizer.h"

enum { MICA__TOKENIZER_META = 20 };

/* The keys tokenizer.* for a GGUF file, at most MICA__TOKENIZER_META; their data are in
 * the arena. MICA_ERR_UNSUPPORTED for a tokenizer that GGUF cannot describe. */
mica_status mica__tokenizer_meta(const mica_tokenizer *t, mica__arena *arena, mica__meta *meta, size_t *n);

/* Writes only metadata if the path ends in ".gguf", otherwise tokenizer.json. */
mica_status mica__tokenizer_save(const mica_tokenizer *t, const char *path);

#endif
