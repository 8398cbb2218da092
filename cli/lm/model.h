/* Shared by the commands that run a language model: options, opening the model, encoding
 * and decoding text, and figures. */
#ifndef MICA_CLI_MODEL_H
#define MICA_CLI_MODEL_H

#include <mica_lm.h>

#include "core/cli.h"
#include "core/process.h"
#include "core/signals.h"

typedef struct cli_model_args {
    const char *device;
    int64_t threads, context;
    int act, kv;
    uint64_t memory_limit;
    bool i2_s_arm, no_mmap;
    bool lazy; /* only the tokenizer is needed */
} cli_model_args;

/* Rows for a group of options, with a cli_model_args at the offset of the group. */
extern const cli_option cli_model_rows[];

typedef struct cli_sample_args {
    double temperature, top_p, min_p, repeat_penalty; /* below 0: not given; the model's value or the default */
    int64_t top_k, repeat_last, seed;
} cli_sample_args;

#define CLI_SAMPLE_UNSET {-1, -1, -1, -1, -1, -1, -1}

/* Rows for a group of options, with a cli_sample_args at the offset of the group. */
extern const cli_option cli_sample_rows[];

typedef struct cli_model {
    const char *command; /* "mica run" */
    mica_engine *engine;
    mica_lm *lm;
    mica_lm_info info;
    double load_seconds;
} cli_model;

/* path NULL or "builtin": the built-in model. CLI_OK, or an exit code after an error message. */
int cli_model_open(const char *command, const char *path, const cli_model_args *a, cli_model *m);
void cli_model_close(cli_model *m);
/* A session with room for `needed` tokens, or for --ctx-size. */
int cli_model_session(const cli_model *m, const cli_model_args *a, int64_t needed, int64_t batch,
                      mica_lm_session **out);
int cli_sampler_open(const cli_model *m, const cli_sample_args *a, uint64_t *seed, mica_lm_sampler **out);
/* The ids of a text, which the caller frees; NULL after an error message. t NULL: prints the
 * error of opening the tokenizer. flags: MICA_ENCODE_*. */
int32_t *cli_encode(const char *command, const mica_tokenizer *t, const char *text, size_t length, int flags,
                    int64_t *n);

/* The text of generated tokens, NUL-terminated. Start with {0}; the caller frees text. */
typedef struct cli_decoded {
    mica_detokenizer state;
    char *text; /* NULL: nothing was added yet */
    size_t n, cap;
} cli_decoded;
/* Adds the text that token id completes; -1: the bytes held back. False: out of memory. */
bool cli_decode_token(cli_decoded *d, const mica_tokenizer *tokenizer, int32_t id);
/* Prints the text from byte `from` on and flushes stdout. */
bool cli_print_decoded(const cli_decoded *d, size_t from);

/* Bytes that the decoding of one token reads: the weights, and the KV cache at this length. */
double cli_token_bytes(const cli_model *m, const cli_model_args *a, double length);

#endif
