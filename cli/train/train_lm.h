/* Shared by the files of `mica train lm`: the options, the text as tokens, and the state
 * of a run. */
#ifndef MICA_CLI_TRAIN_LM_H
#define MICA_CLI_TRAIN_LM_H

#include <mica_lm.h>
#include <stdio.h>

#include "train/train_learning.h"
#include "train/train_run.h"

typedef struct train_options {
    const char *text, *tokenizer, *out, *init, *prompt, *name, *device;
    int preset, type, embedding;
    bool f32, resume, json, plan;
    int64_t dim, layers, heads, kv_heads, ffn, vocab, seq, batch;
    int64_t steps, warmup, seed, threads, eval_every, eval_windows, sample_every, sample_tokens;
    double lr, lr2, decay, dropout, minutes, valid;
    train_learning learning;
} train_options;

/* ------------------------------------------------------------------ text --- */

typedef struct train_text {
    mica_tokenizer *tokenizer;
    int32_t *ids;
    int64_t n, n_train;     /* all tokens; the first n_train are the training part  */
    int64_t bytes, valid_bytes; /* of the whole text, and of the validation part    */
    int32_t vocab;
} train_text;

/* Reads o->text, trains or opens the tokenizer, and splits the tokens. CLI_OK, or an exit
 * code after an error message. */
int train_text_open(const train_options *o, train_text *t);
void train_text_close(train_text *t);

/* For mica_decoder_export.more; user is the tokenizer. */
mica_status train_put_vocabulary(mica_writer *w, void *user);

/* ------------------------------------------------------------------- run --- */

typedef struct lm_run {
    train_run run;
    train_options o;
    train_text text;
    mica_decoder_shape shape;
    mica_network *logits;   /* of one sequence, for samples                         */
    double final_valid;     /* loss of the best parameters, all windows; NaN: not yet */
    const char *model;      /* path of the exported file, or NULL                   */
    int64_t model_bytes;
} lm_run;

/* Runs the command. */
int train_lm_run(const cli_call *call);
/* Fills in options that were not given; CLI_OK, or CLI_USAGE after an error message. */
int train_complete(train_options *o);
const char *train_ternary_type(const train_options *o);
const char *train_embedding_type(const train_options *o);

/* Prints mica_last_error(); returns CLI_FAILED. */
int train_lm_failed(void);

void train_lm_json(FILE *to, const train_run *run);
void train_lm_caption(const train_run *run, char *text, size_t room);
void train_lm_options(const train_run *run, char text[TRAIN_OPTIONS]);

/* Appends a text to samples.txt, and shows it on a terminal. */
mica_status train_sample(lm_run *r);
/* Writes the model file with the current parameters. */
mica_status train_write_model(lm_run *r, mica_scope *s, const char *path);

#endif
