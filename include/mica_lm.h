/* mica_lm.h: language models on mica.h: tokenizers, chat templates, decoders.
 *
 * Terms. A *tokenizer* turns text into token ids and back; it is made once,
 * never changes, and may be used from many threads. A *chat template* turns
 * messages into the text that a model was trained on. A *model* is the decoder that
 * a file describes, with its weights in the mapped file. A *session* is the context
 * of one text, or of several of equal length: their KV cache and position. A
 * *sampler* chooses the next token.
 *
 * A model may be used from many threads, a session or a sampler from one at a
 * time. Sessions and models are closed in any order, their engine after them.
 *
 * Texts are bytes with a length and need not be valid UTF-8. Calls that fill a
 * buffer take its capacity and return the full size. If that exceeds the capacity,
 * the part that fits was written: call again with a larger buffer. */
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
    const char *pre;            /* pre-tokenizer by name ("llama-bpe", "qwen2", ...), overrides the file       */
    const char *chat_template;  /* chat template by name or as Jinja text, overrides the file                  */
} mica_tokenizer_options;

MICA_API void mica_tokenizer_options_init(mica_tokenizer_options *options);

/* The tokenizer of an open model: from the metadata of a GGUF file, or from the
 * tokenizer files in its folder. options may be NULL. MICA_ERR_UNSUPPORTED names the
 * part of a tokenizer that is not supported: nothing is guessed. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_from_file(const mica_file *file,
                                                                const mica_tokenizer_options *options,
                                                                mica_tokenizer **out);
/* Recognised by content: GGUF, tokenizer.json, tokenizer.model (SentencePiece, or the
 * ranks of tiktoken), tokenizer.bin of llama2.c, or a folder with one of them. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_open(const char *path, const mica_tokenizer_options *options,
                                                           mica_tokenizer **out);
MICA_API void mica_tokenizer_close(mica_tokenizer *t);

/* Note i on where the tokenizer deviates from the file, and why; NULL after the last
 * note. */
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
/* True if generation ends with this token. */
MICA_API bool mica_tokenizer_ends(const mica_tokenizer *t, int32_t id);
/* True for control tokens, which are not text: <|eot_id|>. */
MICA_API bool mica_tokenizer_is_control(const mica_tokenizer *t, int32_t id);
/* True if encoding with MICA_ENCODE_BOS adds a begin token. */
MICA_API bool mica_tokenizer_adds_bos(const mica_tokenizer *t);
/* The token with exactly this text, -1 if there is none. */
MICA_API int32_t mica_tokenizer_find(const mica_tokenizer *t, const char *text, size_t length);
/* The bytes of a token, or the name of a control token; valid as long as t. False:
 * id is not a token. */
MICA_API bool mica_tokenizer_text(const mica_tokenizer *t, int32_t id, const char **text, size_t *length);

enum {
    MICA_ENCODE_BOS = 1, /* prepend the begin token if the model uses one and the text does not begin with it */
    MICA_ENCODE_SPECIAL = 2 /* "<|eot_id|>" in the text is the token, not its letters */
};
/* Writes the first cap tokens to ids and the number of all tokens to *count. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_encode(const mica_tokenizer *t, const char *text, size_t length,
                                                             int flags, int32_t *ids, size_t cap, size_t *count);

enum {
    MICA_DECODE_SPECIAL = 1 /* write control tokens by name; else they are omitted */
};
/* Writes valid UTF-8; invalid bytes become U+FFFD. No NUL is added. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_decode(const mica_tokenizer *t, const int32_t *ids, size_t n,
                                                             int flags, char *text, size_t cap, size_t *length);

/* The state of decoding one token at a time: bytes of an incomplete character are
 * held back. Initialise it with zeros. */
typedef struct mica_detokenizer {
    char held[4];
    size_t n_held;
    bool started;
} mica_detokenizer;

/* Writes the text that token id completes and returns its size in bytes. id -1 ends
 * the text: bytes that were held back become U+FFFD. If it returns more than cap,
 * nothing was written and the state is unchanged. */
MICA_API size_t mica_detokenize(const mica_tokenizer *t, mica_detokenizer *state, int32_t id, int flags, char *text,
                                size_t cap);

/* ---------------------------------------------------------------- chat --- */

typedef struct mica_chat_message {
    const char *role;           /* "system", "user", "assistant"                       */
    const char *content;
} mica_chat_message;

/* Name i of the built-in templates; NULL after the last. */
MICA_API const char *mica_chat_name(size_t i);
/* The chat template of the tokenizer's model: the name of a built-in template, or the
 * Jinja text of its file; NULL if the file has none. */
MICA_API const char *mica_chat_template(const mica_tokenizer *t);

/* The text of a chat, to be encoded with MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL.
 * chat: a built-in name or Jinja text; NULL: mica_chat_template(). t may be NULL:
 * without begin and end tokens. prompt: the text ends where the answer of the model
 * begins. Written as mica_doctor_text does. MICA_ERR_UNSUPPORTED names the line of an
 * unsupported construct, MICA_ERR_ARGUMENT has the message that the template raised. */
MICA_API MICA_CHECK_RESULT mica_status mica_chat_render(const mica_tokenizer *t, const char *chat,
                                                        const mica_chat_message *messages, size_t n, bool prompt,
                                                        char *text, size_t cap, size_t *length);

/* -------------------------------------------------------------- writing --- */

/* Writes tokenizer.json or, if the path ends in ".gguf", a GGUF file with metadata
 * only. The file appears whole or not at all. MICA_ERR_UNSUPPORTED if the format
 * cannot express the tokenizer. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_save(const mica_tokenizer *t, const char *path);

/* Adds the same metadata (tokenizer.*) to a model that is being written. */
MICA_API mica_status mica_tokenizer_put(const mica_tokenizer *t, mica_writer *w);

/* ------------------------------------------------------ training of BPE --- */

typedef struct mica_bpe_options {
    size_t struct_size;
    int32_t vocab;              /* most tokens, with 256 bytes and the special tokens; default 1024    */
    const char *pre;            /* pre-tokenizer that splits texts into words, by name; NULL: "gpt-2"   */
    const char *const *specials; /* control tokens, the last ids; the first of them begins and ends a text */
    size_t n_specials;          /* mica_bpe_options_init sets one, "<|endoftext|>"                     */
} mica_bpe_options;

MICA_API void mica_bpe_options_init(mica_bpe_options *options);

/* Learns byte-level BPE from a text; the tokenizer can encode every text. Ids 0-255
 * are the bytes. The same text gives the same tokenizer. The vocabulary is smaller if
 * the text has too few pairs that occur twice. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_train(const char *text, size_t length,
                                                            const mica_bpe_options *options, mica_tokenizer **out);

/* --------------------------------------------------------------- models --- */

typedef struct mica_lm mica_lm;
typedef struct mica_lm_session mica_lm_session;
typedef struct mica_lm_sampler mica_lm_sampler;

/* For mica_lm_options.act: quantise x as the model was trained. */
#define MICA_LM_ACT_TRAINED (-1)

typedef struct mica_lm_options {
    size_t struct_size;
    int act;                    /* quantisation of x before the matrices of layers: a mica_act, or
                                 * MICA_LM_ACT_TRAINED: 8 bits per token before ternary ones   */
    uint64_t memory_limit;      /* bytes of weights and sessions together; 0: no limit         */
    bool i2_s_arm;              /* as in mica_file_options                                     */
    bool lazy;                  /* pack weights and compile GPU kernels at their first use, not when
                                 * the model is opened (files that are packed already need no
                                 * packing: mica quantize --type mica_t2)                      */
    /* Bytes of weights packed so far, and in total; on a GPU the number of prompt sizes whose kernels are
     * compiled. False stops (MICA_ERR_STATE). Not called if there is nothing to do. */
    bool (*progress)(uint64_t done, uint64_t total, void *user);
    void *user;
    bool no_mmap;               /* as in mica_file_options                                     */
} mica_lm_options;

MICA_API void mica_lm_options_init(mica_lm_options *options);

/* The built-in model as a file, to be read with mica_file_*; MICA_ERR_UNSUPPORTED: the library
 * was built without one. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_builtin_open(const mica_file_options *options, mica_file **out);

/* Opens a GGUF file, or a folder with config.json and safetensors; path NULL: the
 * built-in model, MICA_ERR_UNSUPPORTED if there is none. A feature of the file that is
 * not supported is refused by name (MICA_ERR_UNSUPPORTED). A file that contradicts
 * itself is MICA_ERR_FORMAT, weights above memory_limit are MICA_ERR_MEMORY. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_open(mica_engine *engine, const char *path,
                                                    const mica_lm_options *options, mica_lm **out);
/* Sessions that are still open keep what they need. */
MICA_API void mica_lm_close(mica_lm *lm);

typedef struct mica_lm_info {
    size_t struct_size;
    const char *arch;           /* "bitnet-b1.58", ...; valid as long as the model     */
    const char *name;           /* the name in the file, or ""                         */
    const char *format;         /* format of most layer weights: "TQ2_0"               */
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int64_t context;            /* tokens it was trained for                           */
    uint64_t parameters;
    uint64_t layer_parameters;  /* of these, those in matrices of layers               */
    uint64_t weight_bytes;      /* as stored                                           */
    uint64_t token_bytes;       /* of these, bytes read to compute one token           */
    mica_act act;               /* quantisation of x before layer matrices             */
} mica_lm_info;

/* Set info->struct_size first. */
MICA_API void mica_lm_get_info(const mica_lm *lm, mica_lm_info *info);

/* Its tokenizer, made at the first call and valid as long as the model. NULL: it has
 * no supported tokenizer; mica_last_error() returns the reason. */
MICA_API const mica_tokenizer *mica_lm_tokenizer(mica_lm *lm);

/* ------------------------------------------------------------- sessions --- */

typedef enum mica_lm_kv {
    MICA_LM_KV_F16 = 0,
    MICA_LM_KV_F32 = 1,
    MICA_LM_KV_Q8 = 2           /* 8 bits, one scale for each key and value of a head  */
} mica_lm_kv;

typedef struct mica_lm_session_options {
    size_t struct_size;
    int64_t context;            /* most tokens; 0: the context that the model was trained for  */
    int64_t batch;              /* texts of equal length, computed together; default 1         */
    mica_lm_kv kv;
} mica_lm_session_options;

MICA_API void mica_lm_session_options_init(mica_lm_session_options *options);

/* MICA_ERR_MEMORY, with both numbers, if the cache would exceed the memory_limit. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_session_open(mica_lm *lm, const mica_lm_session_options *options,
                                                            mica_lm_session **out);
MICA_API void mica_lm_session_close(mica_lm_session *session);

/* Bytes of the cache that such a session holds; 0: no such session is possible. */
MICA_API uint64_t mica_lm_session_nbytes(const mica_lm *lm, const mica_lm_session_options *options);

/* The tokens read so far, and the most that the session can hold. */
MICA_API int64_t mica_lm_session_position(const mica_lm_session *session);
MICA_API int64_t mica_lm_session_context(const mica_lm_session *session);

/* Removes the tokens at this position and after it. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_session_rewind(mica_lm_session *session, int64_t position);

/* Reads tokens (batch, n). *logits (logits may be NULL: not wanted) becomes (batch,
 * vocabulary), for the token after the last, and is valid until the session is used
 * again. More tokens than fit are MICA_ERR_SIZE with both numbers, an id that is not a
 * token is MICA_ERR_INDEX; in both cases nothing was read. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_feed(mica_lm_session *session, const int32_t *tokens, int64_t n,
                                                    const float **logits);

/* Those logits again; NULL if there are none. */
MICA_API const float *mica_lm_session_logits(const mica_lm_session *session);

/* Reads tokens (batch, n) and computes their losses (batch, n - 1):
 * -log p(token i + 1 | all before). */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_score(mica_lm_session *session, const int32_t *tokens, int64_t n,
                                                     float *losses);

/* Gets the intermediate values (f32), in order, for each part of the tokens that are
 * read: name ("embed", "q", "attn", "down", "logits", ...), layer (-1: not in a layer). */
typedef void (*mica_lm_trace_fn)(const char *name, int layer, mica_array *value, void *user);
/* fn NULL turns tracing off. Tracing is slow and does not change results. */
MICA_API MICA_UNSTABLE void mica_lm_session_trace(mica_lm_session *session, mica_lm_trace_fn fn, void *user);

/* ------------------------------------------------------------- sampling --- */

/* In this order: recent tokens get the repeat penalty; the top_k best tokens stay; of
 * these the smallest set whose probability reaches top_p; of these the tokens with at
 * least min_p times the probability of the best; one of them is drawn, with logits
 * divided by the temperature. Of equal logits the smaller id is first. Draw k uses
 * mica_seed_split(seed, k) >> 11 as a number of [0, 1) in units of 2^-53: the same
 * logits and seed give the same tokens on every machine. */
typedef struct mica_lm_sampler_options {
    size_t struct_size;
    double temperature;         /* 0: always the best token; default 0.8               */
    int64_t top_k;              /* 0: all; default 40                                  */
    double top_p;               /* 1: all; default 0.95                                */
    double min_p;               /* 0: all; default 0.05                                */
    double repeat_penalty;      /* 1: none (default); logits > 0 are divided by it, others multiplied */
    int64_t repeat_last;        /* number of recent tokens; default 64                 */
    uint64_t seed;
} mica_lm_sampler_options;

MICA_API void mica_lm_sampler_options_init(mica_lm_sampler_options *options);

/* Sets the options that the model's files suggest, if any. */
MICA_API void mica_lm_suggested_sampling(const mica_lm *lm, mica_lm_sampler_options *options);

MICA_API MICA_CHECK_RESULT mica_status mica_lm_sampler_open(const mica_lm_sampler_options *options,
                                                            mica_lm_sampler **out);
MICA_API void mica_lm_sampler_close(mica_lm_sampler *sampler);
/* Adds a token that was read or chosen elsewhere to those of the repeat penalty. */
MICA_API void mica_lm_sampler_accept(mica_lm_sampler *sampler, int32_t token);
/* Chooses (and accepts) a token from n logits; MICA_ERR_STATE if one is not a
 * number, one is +inf or all are -inf. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_sample(mica_lm_sampler *sampler, const float *logits, int64_t n,
                                                      int32_t *token);

/* Called with each token as soon as it is chosen, before it is read; false stops. */
typedef bool (*mica_lm_token_fn)(int32_t token, void *user);

/* Reads the prompt (n may be 0 if tokens were read before), then generates at most
 * max_tokens, until a token that ends a text (fn does not get it) or until fn returns
 * false. The session does not read the last token that was chosen. A full context is
 * MICA_ERR_SIZE. The session must have batch 1. *count (count may be NULL) becomes the
 * number of tokens passed to fn, which may be NULL. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_generate(mica_lm_session *session, mica_lm_sampler *sampler,
                                                        const int32_t *prompt, int64_t n, int64_t max_tokens,
                                                        mica_lm_token_fn fn, void *user, int64_t *count);

#ifdef __cplusplus
}
#endif

#endif
