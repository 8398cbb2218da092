/* mica_convert.h: tools for model files, on mica.h: quantise and convert them,
 * create random ones, describe them.
 *
 * All conversions stream: a tensor is read, changed and written in pieces of a
 * few megabytes, so the model may be larger than memory. Output appears whole
 * or not at all. Nothing is printed: messages for the user are passed to a
 * callback. */
#ifndef MICA_CONVERT_H
#define MICA_CONVERT_H

#include "mica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- quantise --- */

/* The type of tensors whose name matches; the last rule that matches applies. */
typedef struct mica_tensor_rule {
    const char *pattern;        /* a POSIX extended regular expression                 */
    const char *type;           /* "q8_0", "f16", ...                                  */
} mica_tensor_rule;

typedef struct mica_quantize_options {
    size_t struct_size;
    const char *type;           /* of matrices: f32 f16 bf16, q8_0 q6_k q5_k q4_k q4_0 q4_1 q5_0 q5_1,
                                 * tq1_0 tq2_0 i2_s q2_0 (ternary), q1_0, and the packed formats
                                 * of the kernels: mica_t2, mica_t1 (ternary), mica_q8 */
    const mica_tensor_rule *rules;
    size_t n_rules;
    const char *tokenizer;      /* llama2.c checkpoints: path of tokenizer.bin         */
    bool i2_s_arm;              /* as in mica_file_options                             */
    /* Messages for the user: tensors that were omitted or stored in another type than requested. */
    void (*note)(const char *sentence, void *user);
    /* Bytes written so far, and in total; false stops the conversion (MICA_ERR_STATE). */
    bool (*progress)(uint64_t done, uint64_t total, const char *tensor, void *user);
    void *user;
    int threads;                /* 0: one per core. The file does not depend on it     */
} mica_quantize_options;

MICA_API void mica_quantize_options_init(mica_quantize_options *options);

/* Converts the model at in (GGUF, safetensors, a Hugging Face folder, npz, a llama2.c
 * checkpoint) to out, *.gguf or *.safetensors. docs/FORMATS.md has the rules: which
 * tensors stay f32, how weights become ternary, how rows that do not fill a block are stored. */
MICA_API MICA_CHECK_RESULT mica_status mica_quantize(const char *in, const char *out,
                                                     const mica_quantize_options *options);

/* ---------------------------------------------------------- random models --- */

typedef struct mica_random_options {
    size_t struct_size;
    const char *arch;           /* "bitnet-b1.58"                                      */
    const char *shape;          /* "2b4t", "tiny", or "tiny,layers=3,hidden=256": see docs/FORMATS.md */
    const char *container;      /* "i2_s", "tq1_0", "tq2_0", "q2_0", "mica_t2", "mica_t1", "f16"; "hf": a folder */
    uint64_t seed;
    int64_t vocab;              /* 0: that of the shape                                */
    bool (*progress)(uint64_t done, uint64_t total, const char *tensor, void *user);
    void *user;
} mica_random_options;

MICA_API void mica_random_options_init(mica_random_options *options);

/* Writes a valid model with random ternary weights and a byte-level tokenizer. One
 * seed gives the same codes and scales in every container, and so the same logits in
 * all ternary ones. */
MICA_API MICA_CHECK_RESULT mica_status mica_make_random(const char *out, const mica_random_options *options);

/* -------------------------------------------------------------- describe ---- */

typedef struct mica_facts_format {
    const char *format;
    uint64_t tensors, parameters, bytes;
} mica_facts_format;

enum { MICA_FACTS_FORMATS = 24, MICA_FACTS_WARNINGS = 8 };

/* A summary of a model file. Numbers are -1 and texts "" where the file does not state them. */
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

/* Set facts->struct_size first. */
MICA_API MICA_CHECK_RESULT mica_status mica_file_facts(const mica_file *file, mica_facts *facts);

/* Counts the codes of a ternary tensor: -1, 0, 1, and invalid codes. False: the
 * tensor is not ternary. */
MICA_API bool mica_file_codes(const mica_file *file, const char *name, uint64_t counts[4]);

#ifdef __cplusplus
}
#endif

#endif
