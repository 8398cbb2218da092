/* Text to tokens and back: byte-level BPE and SPM with byte fallback.
 *
 * A tokenizer is immutable and may be used from many threads. Its vocabulary is
 * checked when it is made: every id that is used lies in it. */
#ifndef MICA_TEXT_TOKENIZER_H
#define MICA_TEXT_TOKENIZER_H

#include "io/model_file.h"

typedef struct mica__tokenizer mica__tokenizer;

/* From the metadata of a GGUF file. `pre` NULL: as the file says, or as its
 * architecture demands; an unknown pre-tokenizer is MICA_ERR_UNSUPPORTED. */
mica_status mica__tokenizer_from_gguf(const mica__file *file, const char *pre, mica__tokenizer **out);
/* Lines "base64 rank" of tiktoken. */
mica_status mica__tokenizer_from_ranks(const char *what, const void *text, size_t size, const char *pre,
                                       mica__tokenizer **out);
void mica__tokenizer_free(mica__tokenizer *t);

/* A list that grows; free it with mica__tokens_free. */
typedef struct mica__tokens {
    int32_t *ids;
    size_t n, cap;
} mica__tokens;
void mica__tokens_free(mica__tokens *tokens);

enum {
    MICA__ENCODE_BOS = 1,      /* the begin token first, if the model wants one        */
    MICA__ENCODE_SPECIAL = 2   /* "<|eot_id|>" in the text is the token, not its letters */
};
/* Appends. Any bytes are a text. */
mica_status mica__tokenizer_encode(const mica__tokenizer *t, const char *text, size_t length, int flags,
                                   mica__tokens *out);

int32_t mica__tokenizer_size(const mica__tokenizer *t);
int32_t mica__tokenizer_find(const mica__tokenizer *t, const char *text, size_t length); /* -1: none */
/* -1 where the model has none. */
int32_t mica__tokenizer_bos(const mica__tokenizer *t);
int32_t mica__tokenizer_eos(const mica__tokenizer *t);
/* The bytes of a token as text; 0 bytes for control tokens and ids that are none. */
size_t mica__tokenizer_bytes(const mica__tokenizer *t, int32_t id, const char **text, char scratch[4]);

/* Tokens to text as they come: a character that is not complete yet is held back,
 * and bytes that can become none are U+FFFD. Zero it first. */
typedef struct mica__detokenizer {
    char held[4];
    size_t n_held;
    bool started;
} mica__detokenizer;
/* Appends to text what is complete; last: all of it. Needs room for three times
 * the token's bytes plus 12; returns how many were written. */
size_t mica__detokenize(const mica__tokenizer *t, mica__detokenizer *d, int32_t id, bool last, char *out, size_t cap);

#endif
