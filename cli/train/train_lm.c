/* mica train lm: trains a small language model on a text. This file defines a batch, a
 * validation and the end of a run. The loop is shared (train_run.h); the network, its
 * step and its files are in the library (mica_nn.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cli.h"
#include "train/train_lm.h"

int train_lm_failed(void) { return cli_fail(CLI_FAILED, "mica train lm: %s", mica_last_error()); }

/* --------------------------------------------------------------- validate -- */

/* The mean loss over `windows` sequences of the validation part, evenly spread. */
static mica_status validate(lm_run *r, int64_t windows, double *loss)
{
    const int32_t *tokens = r->text.ids + r->text.n_train;
    const int64_t n = r->text.n - r->text.n_train, all = mica_batch_count(n, r->o.seq);
    mica_status status = MICA_OK;
    double total = 0;
    if (windows > all) windows = all;
    for (int64_t done = 0, size; done < windows && status == MICA_OK; done += size) {
        size = windows - done < r->o.batch ? windows - done : r->o.batch;
        const int64_t spread = windows < all ? (all - size) * done / (windows > size ? windows - size : 1) : done;
        double part = NAN;
        mica_array *data[2];
        mica_scope *s = mica_scope_begin(r->run.engine);
        status = mica_batch_windows(s, tokens, n, size, r->o.seq, spread < all - size ? spread : all - size, data);
        if (status == MICA_OK) status = mica_trainer_loss(r->run.trainer, s, data, 2, &part);
        mica_scope_end(s);
        total += part * (double)size;
    }
    *loss = total / (double)windows;
    return status;
}

/* ------------------------------------------------------------------ steps -- */

static mica_status lm_validate(train_run *run, double *loss)
{
    lm_run *r = run->user;
    return validate(r, r->o.eval_windows, loss);
}

static mica_status lm_batch(train_run *run, mica_scope *s, int64_t step, int64_t part, mica_array *data[TRAIN_DATA],
                            size_t *n)
{
    const lm_run *r = run->user;
    const uint64_t seed = mica_seed_split((uint64_t)r->o.seed, 1);
    *n = 2;
    return mica_batch_random(s, r->text.ids, r->text.n_train, r->o.batch, r->o.seq, seed, step * run->accumulate + part,
                             data);
}

static mica_status lm_save_best(train_run *run, const char *path)
{
    return mica_params_save(run->params, path, NULL, 0);
}

static mica_status lm_after_step(train_run *run, int64_t step)
{
    lm_run *r = run->user;
    return r->o.sample_every && step % r->o.sample_every == 0 ? train_sample(r) : MICA_OK;
}

static const train_job lm_job = {.command = "mica train lm",
                                 .items = "tokens",
                                 .batch = lm_batch,
                                 .validate = lm_validate,
                                 .options = train_lm_options,
                                 .save_best = lm_save_best,
                                 .print_json = train_lm_json,
                                 .caption = train_lm_caption,
                                 .after_step = lm_after_step};

/* -------------------------------------------------------------------- end -- */

static void print_result(const lm_run *r)
{
    const double bits = r->final_valid / log(2) * (double)(r->text.n - r->text.n_train) / (double)r->text.valid_bytes;
    printf("%s: %s weights, %lld parameters, step %lld of %lld in %.0f s\n", train_state_name(&r->run),
           r->shape.ternary ? "ternary" : "f32", (long long)mica_params_elements(r->run.params),
           (long long)mica_trainer_steps(r->run.trainer), (long long)r->o.steps, train_state(&r->run)->seconds);
    printf("validation loss %.4f nats per token, %.4f bits per byte", r->final_valid, bits);
    if (train_state(&r->run)->best_step >= 0)
        printf(" (best of step %lld)", (long long)train_state(&r->run)->best_step);
    printf("\n");
    if (r->model) printf("model %s, %lld bytes\n", r->model, (long long)r->model_bytes);
}

/* Evaluates the best parameters on the whole validation part and writes the model file.
 * A run without steps evaluates the initial parameters and writes nothing. */
static int finish_run(lm_run *r)
{
    static char model[TRAIN_PATH];
    char best[TRAIN_PATH];
    struct stat info;
    train_run *run = &r->run;
    mica_scope *s = mica_scope_begin(run->engine);
    mica_status status = MICA_OK;
    if (run->steps > 0) status = train_load_params(run, s, train_path(run, "best.safetensors", best));
    if (status == MICA_OK) status = validate(r, INT64_MAX, &r->final_valid);
    if (status == MICA_OK && run->steps > 0 && r->shape.ternary) {
        status = train_write_model(r, s, train_path(run, "model.gguf", model));
        if (status == MICA_OK && stat(model, &info) == 0) r->model = model, r->model_bytes = info.st_size;
    }
    mica_scope_end(s);
    if (status != MICA_OK) return train_lm_failed();
    if (r->o.json) train_lm_json(stdout, run);
    else print_result(r);
    return run->steps == 0 || train_write_report(run) ? CLI_OK : CLI_FAILED;
}

/* ------------------------------------------------------------------ begin -- */

static int print_plan(lm_run *r, mica_scope *s)
{
    mica_array *data[2];
    if (mica_batch_random(s, r->text.ids, r->text.n_train, r->o.batch, r->o.seq, 1, 0, data) != MICA_OK)
        return train_lm_failed();
    return train_print_plan(&r->run, s, data, 2);
}

static mica_status open_network(lm_run *r, mica_scope *s)
{
    const train_options *o = &r->o;
    mica_decoder_shape_init(&r->shape);
    r->shape.vocab = r->text.vocab, r->shape.dim = o->dim, r->shape.layers = o->layers, r->shape.heads = o->heads;
    r->shape.kv_heads = o->kv_heads, r->shape.ffn = o->ffn, r->shape.context = o->seq;
    r->shape.ternary = !o->f32, r->shape.dropout = o->dropout;
    r->run.schedule = (mica_schedule){.struct_size = sizeof r->run.schedule,
                                      .kind = o->f32 ? MICA_SCHEDULE_COSINE : MICA_SCHEDULE_TWO_STAGE,
                                      .steps = o->steps,
                                      .warmup = o->warmup,
                                      .peak = o->lr,
                                      .peak2 = o->lr2,
                                      .decay = o->decay};
    mica_trainer_options t;
    mica_trainer_options_init(&t);
    train_learning_apply(&o->learning, &t);
    t.loss = mica_decoder_loss;
    t.user = &r->shape;
    t.seed = mica_seed_split((uint64_t)o->seed, 1);
    mica_status status = mica_decoder_params(s, &r->shape, mica_seed_split((uint64_t)o->seed, 0), &r->run.params);
    if (status == MICA_OK) status = mica_trainer_open(r->run.engine, r->run.params, &t, &r->run.trainer);
    return status;
}

/* Refuses sizes that the network or the format cannot have before any work is done. */
static int check_sizes(const train_options *o)
{
    mica_decoder_shape shape;
    mica_decoder_shape_init(&shape);
    shape.vocab = o->vocab, shape.dim = o->dim, shape.layers = o->layers, shape.heads = o->heads;
    shape.kv_heads = o->kv_heads, shape.ffn = o->ffn, shape.context = o->seq;
    mica_status status = mica_decoder_shape_check(&shape);
    const int64_t cols[] = {o->dim, o->ffn};
    for (int i = 0; i < 2 && status == MICA_OK && !o->f32; i++)
        if (mica_quant_nbytes(train_ternary_type(o), 1, cols[i]) == 0)
            status = mica_fail(MICA_ERR_ARGUMENT, "--%s %lld does not fit the blocks of --type %s: %s",
                               i ? "ffn" : "dim", (long long)cols[i], train_ternary_type(o), mica_last_error());
    if (status == MICA_OK) return CLI_OK;
    train_lm_failed();
    return CLI_USAGE;
}

/* Loads the parameters of --init, or with --resume the last checkpoint. */
static int load_start(lm_run *r, mica_scope *s)
{
    if (!r->o.init || r->o.resume) return train_resume(&r->run, s);
    const mica_status status = train_load_params(&r->run, s, r->o.init);
    if (status == MICA_OK) return CLI_OK;
    train_lm_failed();
    return status == MICA_ERR_MEMORY ? CLI_MEMORY : CLI_FILE;
}

static int run_training(lm_run *r, mica_scope *s)
{
    if (open_network(r, s) != MICA_OK) return train_lm_failed();
    if (r->o.plan) return print_plan(r, s);
    if (r->run.steps > 0 && train_open_fit(&r->run) != MICA_OK) return train_lm_failed();
    int code = load_start(r, s);
    if (code == CLI_OK && r->run.steps > 0) code = train_make_folder(&r->run);
    if (code == CLI_OK && r->run.steps > 0) code = train_steps(&r->run);
    return code == CLI_OK ? finish_run(r) : code;
}

static int open_and_train(lm_run *r)
{
    mica_engine_options e;
    int code = check_sizes(&r->o);
    if (code == CLI_OK && r->o.steps > 0 && !r->o.plan) code = train_check_folder(&r->run);
    if (code == CLI_OK) code = train_text_open(&r->o, &r->text);
    if (code != CLI_OK) return code;
    mica_engine_options_init(&e);
    e.backend = r->o.device;
    e.threads = (int)r->o.threads;
    const mica_status status = mica_open(&e, &r->run.engine);
    if (status != MICA_OK) return cli_engine_failed("mica train lm", status);
    mica_scope *s = mica_scope_begin(r->run.engine);
    code = run_training(r, s);
    mica_scope_end(s);
    return code;
}

int train_lm_run(const cli_call *call)
{
    lm_run r = {.final_valid = NAN, .o = *(const train_options *)call->options};
    int code = train_complete(&r.o);
    if (code != CLI_OK) return code;
    r.run = (train_run){.job = &lm_job,
                        .user = &r,
                        .out = r.o.out,
                        .resume = r.o.resume,
                        .steps = r.o.steps,
                        .eval_every = r.o.eval_every,
                        .items = r.o.batch * r.o.seq * r.o.learning.accumulate,
                        .accumulate = r.o.learning.accumulate,
                        .minutes = r.o.minutes};
    code = open_and_train(&r);
    mica_network_close(r.logits);
    train_close(&r.run);
    mica_params_free(r.run.params);
    mica_close(r.run.engine);
    train_text_close(&r.text);
    return code;
}
