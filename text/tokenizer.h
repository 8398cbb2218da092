/* Text to tokens and back: byte-level BPE and SPM with byte fallback.
 *
 * A tokenizer is immutable and may be used from many threads. Its vocabulary is
 * checked when it is made: every id that is used lies in it. What callers see is
 * declared in mica_lm.h; here is where it comes from. */
#ifndef MICA_TEXT_TOKENIZER_H
#define MICA_TEXT_TOKENIZER_H

#include "io/model_file.h"
#include "mica_lm.h"

/* `pre` NULL: as the file says, or as its architecture demands; an unknown
 * pre-tokenizer is MICA_ERR_UNSUPPORTED. `what` begins the messages. */

/* The metadata of a GGUF file. */
mica_status mica__tokenizer_from_gguf(const mica__file *file, const char *pre, mica_tokenizer **out);
/* Lines "base64 rank" of tiktoken. */
mica_status mica__tokenizer_from_ranks(const char *what, const void *text, size_t size, const char *pre,
                                       mica_tokenizer **out);
/* tokenizer.bin of llama2.c. */
mica_status mica__tokenizer_from_llama2c(const char *what, const void *data, size_t size, mica_tokenizer **out);
/* tokenizer.model of SentencePiece, of the kind BPE. */
mica_status mica__tokenizer_from_sentencepiece(const char *what, const void *data, size_t size, mica_tokenizer **out);
/* tokenizer.json of HF tokenizers; `folder` may have files that say more, or be NULL. */
mica_status mica__tokenizer_from_json(const char *what, const void *text, size_t size, const char *folder,
                                      const char *pre, mica_tokenizer **out);
/* Any of them, told by what is in it; a folder: the one it has. */
mica_status mica__tokenizer_open(const char *path, const char *pre, mica_tokenizer **out);
/* Of an open model: its metadata, or its folder. */
mica_status mica__tokenizer_from_file(const mica__file *file, const char *pre, mica_tokenizer **out);
void mica__tokenizer_free(mica_tokenizer *t);

/* A list that grows; free it with mica__tokens_free. */
typedef struct mica__tokens {
    int32_t *ids;
    size_t n, cap;
} mica__tokens;
void mica__tokens_free(mica__tokens *tokens);

/* Appends; flags are MICA_ENCODE_*. Any bytes are a text. */
mica_status mica__tokenizer_encode(const mica_tokenizer *t, const char *text, size_t length, int flags,
                                   mica__tokens *out);
int32_t mica__tokenizer_find(const mica_tokenizer *t, const char *text, size_t length); /* -1: none */
/* The bytes of a token as text; 0 bytes for ids that are none, and for control
 * tokens unless flags have MICA_DECODE_SPECIAL. */
size_t mica__tokenizer_bytes(const mica_tokenizer *t, int32_t id, int flags, const char **text, char scratch[4]);
/* mica_detokenize, whose contract is in mica_lm.h. */
size_t mica__detokenize(const mica_tokenizer *t, mica_detokenizer *state, int32_t id, int flags, char *out, size_t cap);
/* All of them; returns the bytes of the text, of which cap are written. */
size_t mica__decode(const mica_tokenizer *t, const int32_t *ids, size_t n, int flags, char *out, size_t cap);

#endif
