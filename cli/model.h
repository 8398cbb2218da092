/* What the commands that run a language model share: their arguments, opening the
 * model, and the figures at the end. */
#ifndef MICA_CLI_MODEL_H
#define MICA_CLI_MODEL_H

#include <mica_lm.h>

#include "args.h"
#include "cli.h"

typedef struct cli_model_args {
    const char *device;
    int64_t threads, context;
    int act, kv;
    uint64_t memory_limit;
    bool i2_s_arm, no_mmap;
    bool lazy;                  /* only the tokenizer is asked for                     */
} cli_model_args;

/* Rows for a table of arguments; field is the cli_model_args in the options. */
#define CLI_MODEL_ARGS(type, field)                                                                               \
    {                                                                                                             \
        "--device", NULL, CLI_TEXT,        offsetof(type, field.device),                                          \
        0,          0,    "cpu|metal|ref", "the best there is if not given"},                                     \
        {"--threads", "-t", CLI_INT, offsetof(type, field.threads),                                               \
         1,           256,  "N",     "threads; the fast cores if not given"},                                     \
        {"--ctx", "-c",       CLI_INT, offsetof(type, field.context),                                             \
         1,       2147483646, "N",     "tokens there is room for; as many as needed if not given"},               \
        {"--act-quant",                                                                                           \
         NULL,                                                                                                    \
         CLI_CHOICE,                                                                                              \
         offsetof(type, field.act),                                                                               \
         0,                                                                                                       \
         0,                                                                                                       \
         "trained|none|token|block256",                                                                           \
         "activations before matrices of layers"},                                                                \
        {"--kv", NULL, CLI_CHOICE, offsetof(type, field.kv), 0, 0, "f16|f32|q8", "the cache of keys and values"}, \
        {"--memory-limit",                                                                                        \
         NULL,                                                                                                    \
         CLI_BYTES,                                                                                               \
         offsetof(type, field.memory_limit),                                                                      \
         0,                                                                                                       \
         0,                                                                                                       \
         "BYTES",                                                                                                 \
         "weights and caches together: above it, exit code 4"},                                                   \
        {"--i2s-arm", NULL, CLI_FLAG, offsetof(type, field.i2_s_arm),                                             \
         0,           0,    NULL,     "I2_S as bitnet.cpp's ARM builds write it"},                                \
        {"--no-mmap", NULL, CLI_FLAG, offsetof(type, field.no_mmap),                                              \
         0,           0,    NULL,     "read the model into memory instead of mapping the file"}

typedef struct cli_sample_args {
    double temperature, top_p, min_p, repeat_penalty; /* below 0: as the model says, or the default */
    int64_t top_k, repeat_last, seed;
} cli_sample_args;

#define CLI_SAMPLE_ARGS_NONE {-1, -1, -1, -1, -1, -1, -1}

#define CLI_SAMPLE_ARGS(type, field)                                                                                 \
    {"--temp", NULL, CLI_NUMBER, offsetof(type, field.temperature), 0, 1e6, "T", "temperature; 0: always the best"}, \
        {"--top-k", NULL, CLI_INT, offsetof(type, field.top_k), 0, 1e9, "K", "the K best; 0: all"},                  \
        {"--top-p", NULL, CLI_NUMBER, offsetof(type, field.top_p),                                                   \
         1e-9,      1,    "P",        "the fewest with P of the probability"},                                       \
        {"--min-p", NULL, CLI_NUMBER, offsetof(type, field.min_p), 0, 1, "P", "those with P of the best one's"},     \
        {"--repeat-penalty",                                                                                         \
         NULL,                                                                                                       \
         CLI_NUMBER,                                                                                                 \
         offsetof(type, field.repeat_penalty),                                                                       \
         1e-3,                                                                                                       \
         1e3,                                                                                                        \
         "X",                                                                                                        \
         "what was said lately is less likely; 1: no"},                                                              \
        {"--repeat-last", NULL, CLI_INT, offsetof(type, field.repeat_last), 0, 1e6, "N", "how many tokens back"},    \
        {"--seed", NULL,                                                                                             \
         CLI_INT,  offsetof(type, field.seed),                                                                       \
         0,        9007199254740992.0,                                                                               \
         "N",      "the same seed, the same text; by chance if not given"}

typedef struct cli_model {
    const char *command;        /* "mica run"                                             */
    mica_engine *engine;
    mica_lm *lm;
    mica_lm_info info;
    double load_seconds;
} cli_model;

/* path NULL or "builtin": the model inside. CLI_OK, or an exit code after a sentence. */
int cli_model_open(const char *command, const char *path, const cli_model_args *a, cli_model *m);
void cli_model_close(cli_model *m);
/* A session with room for `needed` tokens, or for --ctx. */
int cli_model_session(const cli_model *m, const cli_model_args *a, int64_t needed, int64_t batch,
                      mica_lm_session **out);
/* Says what failed last; the exit code for it. */
int cli_model_failed(const char *command, mica_status status);
int cli_sampler_open(const cli_model *m, const cli_sample_args *a, uint64_t *seed, mica_lm_sampler **out);
/* The ids of a text, to be freed; NULL after a sentence. t NULL: opening it failed
 * last. flags: MICA_ENCODE_*. */
int32_t *cli_encode(const char *command, const mica_tokenizer *t, const char *text, size_t length, int flags,
                    int64_t *n);

/* The text of tokens as they come, with a NUL behind it; zero it first, free text. */
typedef struct cli_spoken {
    mica_detokenizer state;
    char *text;                 /* NULL: nothing was added yet                            */
    size_t n, cap;
} cli_spoken;
/* Adds what token id completes; -1: what was held back. False: no memory. */
bool cli_speak(cli_spoken *s, const mica_tokenizer *tokenizer, int32_t id);
/* Prints all behind `from`, at once. */
bool cli_print_spoken(const cli_spoken *s, size_t from);

/* From the first call on, Ctrl-C is noted; a second one ends the process. */
bool cli_interrupted(void);
void cli_forget_interrupt(void);

double cli_seconds(void);
/* Most memory that this process had, bytes; NaN: unavailable. */
double cli_peak_memory(void);
/* Is its device software that stands for a GPU? Then no time of it says anything about one. */
bool cli_is_software(const mica_engine *engine);
/* FNV-1a, 64 bits, of the bytes. */
uint64_t cli_hash(const void *data, size_t nbytes);
/* A whole text, "-" for standard input; NULL after a message, also for one that is too long (mica_text_read). To be
 * freed with mica_text_free. */
enum { CLI_TEXT_GIB = 16 };
char *cli_read_file(const char *command, const char *path, size_t *length);
/* Bytes that reading one token touches: weights, and the cache at this length. */
double cli_token_bytes(const cli_model *m, const cli_model_args *a, double length);

#endif
