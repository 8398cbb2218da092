/* mica_lm.h: language models on mica.h: tokenizers, chat templates, decoders.
 *
 * The nouns. A *tokenizer* turns text into token ids and back; it is made once,
 * never changes, and may be used from many threads. A *chat template* turns
 * messages into the text that a model was trained on.
 *
 * Texts are bytes with a length; what is not UTF-8 is a text too. Calls that fill
 * a buffer take its capacity and say how much there is: more than the capacity
 * means "call again with more room", and what fits was written. */
#ifndef MICA_LM_H
#define MICA_LM_H

#include "mica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ tokenizer --- */

typedef struct mica_tokenizer mica_tokenizer;

typedef struct mica_tokenizer_options {
    size_t struct_size;
    const char *pre;            /* a pre-tokenizer by name ("llama-bpe", "qwen2", ...), whatever the file says */
    const char *chat_template;  /* a chat template by name or as Jinja, whatever the file says                 */
} mica_tokenizer_options;

MICA_API void mica_tokenizer_options_init(mica_tokenizer_options *options);

/* Of an open model: the metadata of a GGUF file, or what lies in the folder of its
 * other files. options may be NULL. MICA_ERR_UNSUPPORTED names the part of a
 * tokenizer that is not known: nothing is guessed. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_from_file(const mica_file *file,
                                                                const mica_tokenizer_options *options,
                                                                mica_tokenizer **out);
/* By content: GGUF, tokenizer.json, tokenizer.model (SentencePiece, or the ranks of
 * tiktoken), tokenizer.bin of llama2.c, or a folder that has one of them. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_open(const char *path, const mica_tokenizer_options *options,
                                                           mica_tokenizer **out);
MICA_API void mica_tokenizer_close(mica_tokenizer *t);

/* What was done differently from what the file says, and why: sentence i, NULL
 * behind the last. */
MICA_API const char *mica_tokenizer_note(const mica_tokenizer *t, size_t i);
/* "bpe" or "spm"; the name of the pre-tokenizer, "" if it has no name. */
MICA_API const char *mica_tokenizer_kind(const mica_tokenizer *t);
MICA_API const char *mica_tokenizer_pre(const mica_tokenizer *t);

MICA_API int32_t mica_tokenizer_size(const mica_tokenizer *t);

typedef enum mica_token_role {
    MICA_TOKEN_BOS = 0,         /* begins a text                                       */
    MICA_TOKEN_EOS = 1,         /* ends a text                                         */
    MICA_TOKEN_EOT = 2,         /* ends a turn of a chat                               */
    MICA_TOKEN_UNKNOWN = 3,
    MICA_TOKEN_PADDING = 4
} mica_token_role;

/* -1: the model has none. */
MICA_API int32_t mica_tokenizer_role(const mica_tokenizer *t, mica_token_role role);
/* Does a model that says this token mean that it is done? */
MICA_API bool mica_tokenizer_ends(const mica_tokenizer *t, int32_t id);
/* A token that is no text: <|eot_id|> and the like. */
MICA_API bool mica_tokenizer_is_control(const mica_tokenizer *t, int32_t id);
/* Does encoding with MICA_ENCODE_BOS put one? */
MICA_API bool mica_tokenizer_adds_bos(const mica_tokenizer *t);
/* The token with exactly this text, -1 if there is none. */
MICA_API int32_t mica_tokenizer_find(const mica_tokenizer *t, const char *text, size_t length);
/* The bytes of a token, of a control token its name; lives as long as t. False: id
 * is no token. */
MICA_API bool mica_tokenizer_text(const mica_tokenizer *t, int32_t id, const char **text, size_t *length);

enum {
    MICA_ENCODE_BOS = 1, /* the begin token first, if the model wants one and the text does not begin with it */
    MICA_ENCODE_SPECIAL = 2 /* "<|eot_id|>" in the text is the token, not its letters */
};
/* The first cap tokens into ids, how many there are into *count. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_encode(const mica_tokenizer *t, const char *text, size_t length,
                                                             int flags, int32_t *ids, size_t cap, size_t *count);

enum {
    MICA_DECODE_SPECIAL = 1 /* control tokens appear by name; else they are no text */
};
/* Valid UTF-8; bytes that are none come as U+FFFD. No NUL is added. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_decode(const mica_tokenizer *t, const int32_t *ids, size_t n,
                                                             int flags, char *text, size_t cap, size_t *length);

/* Tokens to text as they come: a character that is not complete yet is held back.
 * Zero it first. */
typedef struct mica_detokenizer {
    char held[4];
    size_t n_held;
    bool started;
} mica_detokenizer;

/* Writes the text that token id completes and returns its bytes; id -1: the text
 * is over, and what was held back comes as U+FFFD. If it returns more than cap,
 * nothing was written and the state is as before. */
MICA_API size_t mica_detokenize(const mica_tokenizer *t, mica_detokenizer *state, int32_t id, int flags, char *text,
                                size_t cap);

/* tokenizer.json, or, if the path ends in ".gguf", a GGUF file of metadata alone.
 * The file appears whole or not at all. MICA_ERR_UNSUPPORTED for what the format
 * cannot say. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_save(const mica_tokenizer *t, const char *path);

/* ------------------------------------------------------ training of BPE --- */

typedef struct mica_bpe_options {
    size_t struct_size;
    int32_t vocab;              /* tokens wanted, 256 bytes and the special ones among them            */
    const char *pre;            /* how texts are cut into words: a pre-tokenizer by name; NULL: "gpt-2" */
    const char *const *specials; /* control tokens, the last ids; the first of them begins and ends a text */
    size_t n_specials;          /* mica_bpe_options_init gives one, "<|endoftext|>"                    */
} mica_bpe_options;

MICA_API void mica_bpe_options_init(mica_bpe_options *options);

/* Byte-level BPE learned from a text: every text can be encoded with it. Ids 0-255
 * are the bytes. The same text gives the same tokenizer; one without enough
 * pairs that are seen twice gives a smaller vocabulary. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_train(const char *text, size_t length,
                                                            const mica_bpe_options *options, mica_tokenizer **out);

#ifdef __cplusplus
}
#endif

#endif
