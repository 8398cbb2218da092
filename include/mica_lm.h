/* mica_lm.h: language models on mica.h: tokenizers, chat templates, decoders.
 *
 * The nouns. A *tokenizer* turns text into token ids and back; it is made once,
 * never changes, and may be used from many threads. A *chat template* turns
 * messages into the text that a model was trained on. A *model* is what a file
 * describes: a decoder, and its weights where they lie. A *session* is one text in
 * the making, or several of equal length: its cache of keys and values, and its
 * position. A *sampler* chooses the next token.
 *
 * A model may be used from many threads, a session or a sampler from one at a
 * time. Sessions and models are closed in any order, their engine after them.
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

/* ---------------------------------------------------------------- chat --- */

typedef struct mica_chat_message {
    const char *role;           /* "system", "user", "assistant"                       */
    const char *content;
} mica_chat_message;

/* Names of the templates that are built in: name i, NULL behind the last. */
MICA_API const char *mica_chat_name(size_t i);
/* The template that a tokenizer's model was trained with: a name of the table, or
 * the Jinja text of its file; NULL if the file has none. */
MICA_API const char *mica_chat_template(const mica_tokenizer *t);

/* The text of a chat, to be encoded with MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL.
 * chat: a name of the table or Jinja text; NULL: mica_chat_template(). t may be
 * NULL: without begin and end tokens. prompt: it ends where the answer of the
 * model begins. Written as mica_doctor_text does. MICA_ERR_UNSUPPORTED names the
 * line of what is not known in a template, MICA_ERR_ARGUMENT is what it raised. */
MICA_API MICA_CHECK_RESULT mica_status mica_chat_render(const mica_tokenizer *t, const char *chat,
                                                        const mica_chat_message *messages, size_t n, bool prompt,
                                                        char *text, size_t cap, size_t *length);

/* -------------------------------------------------------------- writing --- */

/* tokenizer.json, or, if the path ends in ".gguf", a GGUF file of metadata alone.
 * The file appears whole or not at all. MICA_ERR_UNSUPPORTED for what the format
 * cannot say. */
MICA_API MICA_CHECK_RESULT mica_status mica_tokenizer_save(const mica_tokenizer *t, const char *path);

/* The same metadata (tokenizer.*) into a model that is being written. */
MICA_API mica_status mica_tokenizer_put(const mica_tokenizer *t, mica_writer *w);

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

/* --------------------------------------------------------------- models --- */

typedef struct mica_lm mica_lm;
typedef struct mica_lm_session mica_lm_session;
typedef struct mica_lm_sampler mica_lm_sampler;

/* "As the model was trained", for mica_lm_options.act. */
#define MICA_LM_ACT_TRAINED (-1)

typedef struct mica_lm_options {
    size_t struct_size;
    int act;                    /* what happens to x before a matrix of a layer: a mica_act, or
                                 * MICA_LM_ACT_TRAINED: 8 bits a token before ternary ones     */
    uint64_t memory_limit;      /* bytes of weights and sessions together; 0: none             */
    bool i2_s_arm;              /* as in mica_file_options                                     */
    bool lazy;                  /* weights are brought into the order of the kernels (no difference for
                                 * files that have it: mica quantize --type mica_t2), and kernels
                                 * of a GPU compiled, when they are first used, not when the model
                                 * is opened                                                   */
    /* Bytes of weights that have that order so far, and in all; with a GPU how many sizes of prompts
     * have their kernels. False stops (MICA_ERR_STATE). Not called where nothing is to be done. */
    bool (*progress)(uint64_t done, uint64_t total, void *user);
    void *user;
    bool no_mmap;               /* as in mica_file_options                                     */
} mica_lm_options;

MICA_API void mica_lm_options_init(mica_lm_options *options);

/* The model inside the library as a file, to be read with mica_file_*; MICA_ERR_UNSUPPORTED: the
 * library was built without one. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_builtin_open(const mica_file_options *options, mica_file **out);

/* A GGUF file, or a folder with config.json and safetensors; path NULL: the model
 * inside the library, MICA_ERR_UNSUPPORTED if it was built without. What the file
 * asks for and we do not know is refused by name (MICA_ERR_UNSUPPORTED), what does
 * not fit together is MICA_ERR_FORMAT, weights above memory_limit MICA_ERR_MEMORY. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_open(mica_engine *engine, const char *path,
                                                    const mica_lm_options *options, mica_lm **out);
/* Sessions that are still open keep what they need. */
MICA_API void mica_lm_close(mica_lm *lm);

typedef struct mica_lm_info {
    size_t struct_size;
    const char *arch;           /* "bitnet-b1.58", ...; lives as long as the model     */
    const char *name;           /* what the file calls itself, or ""                   */
    const char *format;         /* of most of the weights in layers: "TQ2_0"           */
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int64_t context;            /* tokens it was trained for                           */
    uint64_t parameters;
    uint64_t layer_parameters;  /* of these, in matrices of layers                     */
    uint64_t weight_bytes;      /* as stored                                           */
    uint64_t token_bytes;       /* of these, read to compute one token                 */
    mica_act act;               /* before the matrices of its layers                   */
} mica_lm_info;

/* Set info->struct_size first. */
MICA_API void mica_lm_get_info(const mica_lm *lm, mica_lm_info *info);

/* Its tokenizer, made at the first call, as long as the model; NULL: it has none
 * that is known, and mica_last_error() says why. */
MICA_API const mica_tokenizer *mica_lm_tokenizer(mica_lm *lm);

/* ------------------------------------------------------------- sessions --- */

typedef enum mica_lm_kv {
    MICA_LM_KV_F16 = 0,
    MICA_LM_KV_F32 = 1,
    MICA_LM_KV_Q8 = 2           /* 8 bits, one scale for each key and value of a head  */
} mica_lm_kv;

typedef struct mica_lm_session_options {
    size_t struct_size;
    int64_t context;            /* tokens there is room for; 0: what the model was trained for */
    int64_t batch;              /* texts of equal length, computed together: 1                 */
    mica_lm_kv kv;
} mica_lm_session_options;

MICA_API void mica_lm_session_options_init(mica_lm_session_options *options);

/* MICA_ERR_MEMORY, with both numbers, if the cache would pass the memory_limit. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_session_open(mica_lm *lm, const mica_lm_session_options *options,
                                                            mica_lm_session **out);
MICA_API void mica_lm_session_close(mica_lm_session *session);

/* Bytes of the cache that such a session holds; 0: no such session is possible. */
MICA_API uint64_t mica_lm_session_nbytes(const mica_lm *lm, const mica_lm_session_options *options);

/* Tokens fed so far; and for how many there is room. */
MICA_API int64_t mica_lm_session_position(const mica_lm_session *session);
MICA_API int64_t mica_lm_session_context(const mica_lm_session *session);

/* Forget what came at this position and later. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_session_rewind(mica_lm_session *session, int64_t position);

/* Reads tokens (batch, n). *logits (may be NULL: none wanted) becomes (batch,
 * vocabulary), of the token after the last, and lives until the session is used
 * again. More tokens than there is room for is MICA_ERR_SIZE with both numbers, a
 * token that is none is MICA_ERR_INDEX, and nothing was read. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_feed(mica_lm_session *session, const int32_t *tokens, int64_t n,
                                                    const float **logits);

/* Those logits again; NULL if there are none. */
MICA_API const float *mica_lm_session_logits(const mica_lm_session *session);

/* Reads tokens (batch, n) and says how surprising each was: losses (batch, n - 1)
 * is -log p(token i + 1 | all before). */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_score(mica_lm_session *session, const int32_t *tokens, int64_t n,
                                                     float *losses);

/* Shows what is computed in between, in order, for each piece of what is fed: name
 * ("embed", "q", "attn", "down", "logits", ...), layer (-1: outside of them), f32. */
typedef void (*mica_lm_trace_fn)(const char *name, int layer, mica_array *value, void *user);
/* NULL: no longer. Slow, and the results are the same. */
MICA_API MICA_UNSTABLE void mica_lm_session_trace(mica_lm_session *session, mica_lm_trace_fn fn, void *user);

/* ------------------------------------------------------------- sampling --- */

/* In this order: what was said lately is made less likely; the top_k best stay;
 * of these the fewest that have top_p of the probability; of these the ones with
 * at least min_p of the best one's; one of them is drawn, with its logit divided by
 * the temperature. Of equal logits the smaller token comes first. The k-th draw
 * uses mica_seed_split(seed, k) >> 11 as a number of [0, 1) in 2^-53: the same
 * logits and seed give the same tokens everywhere. */
typedef struct mica_lm_sampler_options {
    size_t struct_size;
    double temperature;         /* 0: always the best                                  */
    int64_t top_k;              /* 0: all                                              */
    double top_p;               /* 1: all                                              */
    double min_p;               /* 0: all                                              */
    double repeat_penalty;      /* 1: none; logits > 0 are divided by it, others multiplied */
    int64_t repeat_last;        /* how many tokens back; 64                            */
    uint64_t seed;
} mica_lm_sampler_options;

MICA_API void mica_lm_sampler_options_init(mica_lm_sampler_options *options);

/* Puts what the model's files suggest, if they do, into options. */
MICA_API void mica_lm_suggested_sampling(const mica_lm *lm, mica_lm_sampler_options *options);

MICA_API MICA_CHECK_RESULT mica_status mica_lm_sampler_open(const mica_lm_sampler_options *options,
                                                            mica_lm_sampler **out);
MICA_API void mica_lm_sampler_close(mica_lm_sampler *sampler);
/* A token that was read or chosen elsewhere, for the repeat penalty. */
MICA_API void mica_lm_sampler_accept(mica_lm_sampler *sampler, int32_t token);
/* Chooses (and accepts) a token from n logits; MICA_ERR_STATE if one is not a
 * number or all are -inf. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_sample(mica_lm_sampler *sampler, const float *logits, int64_t n,
                                                      int32_t *token);

/* Gets each token as soon as it is chosen, before it is read; false: enough. */
typedef bool (*mica_lm_token_fn)(int32_t token, void *user);

/* Reads the prompt (n may be 0 if something was fed before), then goes on for at
 * most max_tokens, until a token that ends a text (which is not shown), or until
 * the callback has enough. A full context is MICA_ERR_SIZE. A session of one text.
 * *count (may be NULL) says how many tokens were shown. */
MICA_API MICA_CHECK_RESULT mica_status mica_lm_generate(mica_lm_session *session, mica_lm_sampler *sampler,
                                                        const int32_t *prompt, int64_t n, int64_t max_tokens,
                                                        mica_lm_token_fn fn, void *user, int64_t *count);

#ifdef __cplusplus
}
#endif

#endif
