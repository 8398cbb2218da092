/* Text to tokens and back: byte-level BPE and SPM with byte fallback.
 *
 * A tokenizer is immutable and may be used from many threads. Its vocabulary is
 * validated when it is created: every id that is used is in range. The public
 * interface is in mica_lm.h; this header has the readers and what they call. */
#ifndef MICA_TEXT_TOKENIZER_H
#define MICA_TEXT_TOKENIZER_H

#include "io/model_file.h"
#include "mica_lm.h"

/* `pre` NULL: the pre-tokenizer that the file names or its architecture requires. An
 * unknown one is MICA_ERR_UNSUPPORTED. Error messages begin with `what`. */

/* The metadata of a GGUF file. */
mica_status mica__tokenizer_from_gguf(const mica__file *file, const char *pre, mica_tokenizer **out);
/* A tiktoken file with lines "base64 rank". */
mica_status mica__tokenizer_from_ranks(const char *what, const void *text, size_t size, const char *pre,
                                       mica_tokenizer **out);
/* tokenizer.bin of llama2.c. */
mica_status mica__tokenizer_from_llama2c(const char *what, const void *data, size_t size, mica_tokenizer **out);
/* tokenizer.model of SentencePiece, of the kind BPE. */
mica_status mica__tokenizer_from_sentencepiece(const char *what, const void *data, size_t size, mica_tokenizer **out);
/* tokenizer.json of HF tokenizers; `folder`, or NULL, may have more files (mica__stages_folder). */
mica_status mica__tokenizer_from_json(const char *what, const void *text, size_t size, const char *folder,
                                      const char *pre, mica_tokenizer **out);
/* Any of these, detected by content; for a folder, the tokenizer file in it. */
mica_status mica__tokenizer_open(const char *path, const char *pre, mica_tokenizer **out);
/* The tokenizer of an open model file: in its metadata (GGUF) or in its folder. */
mica_status mica__tokenizer_from_file(const mica__file *file, const char *pre, mica_tokenizer **out);
void mica__tokenizer_free(mica_tokenizer *t);

/* A list that grows; free it with mica__tokens_free. */
typedef struct mica__tokens {
    int32_t *ids;
    size_t n, cap;
} mica__tokens;
void mica__tokens_free(mica__tokens *tokens);

/* Appends to out; flags are MICA_ENCODE_*. The text may be any bytes. */
mica_status mica__tokenizer_encode(const mica_tokenizer *t, const char *text, size_t length, int flags,
                                   mica__tokens *out);
int32_t mica__tokenizer_find(const mica_tokenizer *t, const char *text, size_t length); /* -1: none */
/* The bytes of a token as text; returns 0 for ids out of range, and for control
 * tokens unless flags have MICA_DECODE_SPECIAL. */
size_t mica__tokenizer_bytes(const mica_tokenizer *t, int32_t id, int flags, const char **text, char scratch[4]);
/* mica_detokenize, whose contract is in mica_lm.h. */
size_t mica__detokenize(const mica_tokenizer *t, mica_detokenizer *state, int32_t id, int flags, char *out, size_t cap);
/* Decodes n ids; returns the length of the text, of which at most cap bytes are written. */
size_t mica__decode(const mica_tokenizer *t, const int32_t *ids, size_t n, int flags, char *out, size_t cap);

#endif
