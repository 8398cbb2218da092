/* What the files of `mica train lm` share: the options, the text as tokens, and what
 * a run has reached so far. */
#ifndef MICA_CLI_TRAIN_H
#define MICA_CLI_TRAIN_H

#include <mica_lm.h>
#include <mica_nn.h>
#include <stdio.h>

typedef struct train_options {
    const char *text, *tokenizer, *out, *init, *prompt, *name, *device;
    int preset, type, embedding;
    bool f32, resume, json, plan;
    int64_t dim, layers, heads, kv_heads, ffn, vocab, seq, batch;
    int64_t steps, warmup, seed, threads, eval_every, eval_windows, sample_every, sample_tokens;
    double lr, lr2, decay, dropout, minutes, valid;
} train_options;

/* ------------------------------------------------------------------ text --- */

typedef struct train_text {
    mica_tokenizer *tokenizer;
    int32_t *ids;
    int64_t n, n_train;     /* tokens; of these the first are trained on            */
    int64_t bytes, valid_bytes; /* of the whole text, and of the rest               */
    int32_t vocab;
} train_text;

/* Reads o->text, makes or opens the tokenizer, cuts. CLI_OK or an exit code after a
 * sentence. */
int train_text_open(const train_options *o, train_text *t);
void train_text_close(train_text *t);

/* For mica_decoder_export.more; user is the tokenizer. */
mica_status train_put_vocabulary(mica_writer *w, void *user);

/* --------------------------------------------------------------- history --- */

typedef struct train_point {
    int64_t step;
    double train, valid; /* losses in nats a token: the mean since the last point; NaN: none */
} train_point;

typedef struct train_history {
    train_point *points;
    size_t n, room;
    double best;         /* the lowest validation loss, and where                   */
    int64_t best_step;
    double seconds;      /* of training, over all parts of an interrupted run       */
} train_history;

bool train_history_add(train_history *h, train_point p);
/* As text for a checkpoint, to be freed; and back. NULL, false: no memory, no history. */
char *train_history_text(const train_history *h);
bool train_history_parse(train_history *h, const char *text, size_t length);

/* Both losses over the steps; false after a sentence. */
bool train_write_chart(const char *command, const char *path, const train_history *h, int64_t steps,
                       const char *caption);

/* ---------------------------------------------------------------- report --- */

typedef struct train_report {
    const train_options *options;
    const mica_decoder_shape *shape;
    const train_text *text;
    const train_history *history;
    const char *state;      /* "finished", "interrupted", ...                       */
    int64_t step, parameters;
    double final_valid;     /* of the best parameters, all windows; NaN: not yet    */
    double tokens_per_second;
    const char *model;      /* the exported file, NULL: none                        */
    int64_t model_bytes;
} train_report;

void train_print_json(FILE *to, const train_report *r);
/* Both appear whole or not at all. False after a sentence. */
bool train_write_json(const char *path, const train_report *r);
bool train_write_svg(const char *path, const train_report *r);

/* ------------------------------------------------------------------- run --- */

enum { TRAIN_PATH = 4096 };

typedef struct lm_run {
    train_options o;
    train_text text;
    mica_engine *engine;
    mica_decoder_shape shape;
    mica_schedule schedule;
    mica_params *params;
    mica_trainer *trainer;
    mica_network *logits;   /* of one sequence, for samples                         */
    train_history history;
    double sum;             /* of losses since the last validation                  */
    int64_t summed;
    double began, spent;    /* this part of the run; seconds of those before        */
    int64_t first;          /* the step that this part of the run began with        */
    double last_rate, last_loss;
} lm_run;

/* CLI_OK; CLI_HELP_SHOWN; CLI_USAGE after a sentence. */
int train_parse(int argc, char **argv, train_options *o);
const char *train_ternary_type(const train_options *o);
const char *train_embedding_type(const train_options *o);

const char *train_path(const lm_run *r, const char *name, char path[TRAIN_PATH]);
/* Says the last failure; CLI_FAILED. */
int train_failed(void);

/* Appends a text to samples.txt, and shows it on a terminal. */
mica_status train_sample(lm_run *r);

/* last.safetensors; and back, with --resume, or only parameters, with --init. */
mica_status train_save_last(lm_run *r);
int train_load_start(lm_run *r, mica_scope *s);
/* The parameters of the lowest validation loss. */
mica_status train_save_best(lm_run *r);
mica_status train_load_best(lm_run *r, mica_scope *s);
/* The model file of these parameters. */
mica_status train_write_model(lm_run *r, mica_scope *s, const char *path);

#endif
