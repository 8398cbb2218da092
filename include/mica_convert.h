/* mica_convert.h: model files into model files, on mica.h: quantise, convert,
 * make one up, look into one.
 *
 * Everything here streams: a tensor is read, changed and written in pieces of a
 * few megabytes, so that the model may be larger than memory. Output appears whole
 * or not at all. Nothing is printed: what a user should know comes through a
 * function of the caller. */
#ifndef MICA_CONVERT_H
#define MICA_CONVERT_H

#include "mica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- quantise --- */

/* What a tensor whose name matches becomes; the last rule that matches counts. */
typedef struct mica_tensor_rule {
    const char *pattern;        /* a POSIX extended regular expression                 */
    const char *type;           /* "q8_0", "f16", ...                                  */
} mica_tensor_rule;

typedef struct mica_quantize_options {
    size_t struct_size;
    const char *type;           /* of matrices: f32 f16 bf16, q8_0 q6_k q5_k q4_k q4_0 q4_1 q5_0 q5_1,
                                 * tq1_0 tq2_0 i2_s q2_0 (ternary), q1_0, and as kernels read
                                 * them: mica_t2, mica_t1 (ternary), mica_q8           */
    const mica_tensor_rule *rules;
    size_t n_rules;
    const char *tokenizer;      /* of a llama2.c checkpoint: its tokenizer.bin         */
    bool i2_s_arm;              /* as in mica_file_options                             */
    /* Sentences for the user: what was left out or stored otherwise than asked for. */
    void (*note)(const char *sentence, void *user);
    /* Bytes written so far, and in all; false stops the work (MICA_ERR_STATE). */
    bool (*progress)(uint64_t done, uint64_t total, const char *tensor, void *user);
    void *user;
    int threads;                /* 0: one a core. The file is the same                 */
} mica_quantize_options;

MICA_API void mica_quantize_options_init(mica_quantize_options *options);

/* The model at in (GGUF, safetensors, a Hugging Face folder, npz, a checkpoint of
 * llama2.c) into out, *.gguf or *.safetensors. docs/FORMATS.md has the rules: what
 * stays f32, how weights become ternary, what happens to rows that fill no block. */
MICA_API MICA_CHECK_RESULT mica_status mica_quantize(const char *in, const char *out,
                                                     const mica_quantize_options *options);

/* ---------------------------------------------------------- random models --- */

typedef struct mica_random_options {
    size_t struct_size;
    const char *arch;           /* "bitnet-b1.58"                                      */
    const char *shape;          /* "2b4t", "tiny", or "tiny,layers=3,hidden=256": see docs/FORMATS.md */
    const char *container;      /* "i2_s", "tq1_0", "tq2_0", "mica_t2", "mica_t1", "f16"; "hf": a folder */
    uint64_t seed;
    int64_t vocab;              /* 0: what the shape says                              */
    bool (*progress)(uint64_t done, uint64_t total, const char *tensor, void *user);
    void *user;
} mica_random_options;

MICA_API void mica_random_options_init(mica_random_options *options);

/* A valid model with random ternary weights and a tokenizer of bytes. One seed gives
 * the same codes and scales in every container, and so the same logits in those
 * that are ternary. */
MICA_API MICA_CHECK_RESULT mica_status mica_make_random(const char *out, const mica_random_options *options);

/* -------------------------------------------------------------- look into --- */

typedef struct mica_facts_format {
    const char *format;
    uint64_t tensors, parameters, bytes;
} mica_facts_format;

enum { MICA_FACTS_FORMATS = 24, MICA_FACTS_WARNINGS = 8 };

/* What a model file is. Numbers are -1, texts "", where the file does not say. */
typedef struct mica_facts {
    size_t struct_size;
    char kind[16], arch[64], name[128];
    uint64_t tensors, parameters, bytes;
    int64_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, context;
    double rope_theta, norm_eps;
    char tokenizer[32], pre[32]; /* "gpt2", "llama-bpe"                                */
    int64_t tokens, merges, bos, eos;
    bool chat_template, tied;
    mica_facts_format formats[MICA_FACTS_FORMATS]; /* most bytes first                 */
    int n_formats;
    char warnings[MICA_FACTS_WARNINGS][256];
    int n_warnings;
} mica_facts;

/* Set facts->struct_size. */
MICA_API MICA_CHECK_RESULT mica_status mica_file_facts(const mica_file *file, mica_facts *facts);

/* How often each code of a ternary tensor is there: -1, 0, 1, and what is none.
 * false: the tensor is not ternary. */
MICA_API bool mica_file_codes(const mica_file *file, const char *name, uint64_t counts[4]);

#ifdef __cplusplus
}
#endif

#endif
