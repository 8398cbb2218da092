/* The n-th allocation of the library fails, for n = 1, 2, 3 and so on, while a small network is
 * made, trained, saved, loaded and exported. A status with an error message is returned, nothing
 * leaks, and no incomplete file has a final name.
 *
 * runs: metal-unsanitized, faults */
#include <math.h>

#include "api.h"
#include "base/alloc.h"
#include "mica_nn.h"

enum { VOCAB = 8, WIDTH = 128, LENGTH = 40 };

static mica_array *small_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n, (void)user;
    mica_scope *s = f->s;
    mica_array *x = mica_embedding(s, mica_param(f, "table"), mica_flatten(s, data[0]));
    x = mica_bit_linear(s, x, mica_param(f, "blk.0.attn_q.weight"));
    return mica_mean(s, mica_cross_entropy(s, x, mica_flatten(s, data[1])), NULL, 0, false);
}

static mica_status make_params(mica_scope *s, mica_params **out)
{
    mica_array *values[] = {mica_init_array(s, MICA_INIT_NORMAL, 1, MICA_F32, SHAPE(VOCAB, WIDTH), 1),
                            mica_init_array(s, MICA_INIT_KAIMING_NORMAL, 1, MICA_F32, SHAPE(VOCAB, WIDTH), 2)};
    mica_status status = mica_eval(s, values, 2);
    if (status == MICA_OK) status = mica_params_new(out);
    if (status == MICA_OK) status = mica_params_add(*out, "table", values[0]);
    if (status == MICA_OK) status = mica_params_add(*out, "blk.0.attn_q.weight", values[1]);
    return status;
}

static mica_status little_batch(void *user, mica_scope *s, int64_t step, int64_t part, mica_array **data, size_t *n)
{
    int32_t text[LENGTH];
    (void)user, (void)part;
    for (int i = 0; i < LENGTH; i++) text[i] = i * i % VOCAB;
    *n = 2;
    return mica_batch_random(s, text, LENGTH, 2, 6, 3, step, data);
}

/* Two steps by the training loop, with a checkpoint after each, and resuming from it. */
static mica_status train_a_little(mica_scope *s, mica_trainer *t, const char *path, double *loss)
{
    mica_fit *fit, *resumed = NULL;
    mica_fit_options o;
    mica_fit_options_init(&o);
    o.steps = 2, o.validate_every = 1, o.checkpoint = path, o.batch = little_batch;
    o.schedule = (mica_schedule){
        .struct_size = sizeof o.schedule, .kind = MICA_SCHEDULE_CONSTANT, .steps = 2, .peak = 0.01, .decay = 0.1};
    mica_status status = mica_fit_open(t, &o, &fit);
    if (status != MICA_OK) return status;
    status = mica_fit_run(fit);
    *loss = mica_fit_progress(fit)->loss;
    if (status == MICA_OK) status = mica_fit_open(t, &o, &resumed);
    if (status == MICA_OK) status = mica_fit_resume(resumed, s, path);
    mica_fit_close(fit);
    mica_fit_close(resumed);
    return status;
}

static mica_status save_and_load(mica_scope *s, mica_trainer *t, const mica_params *p, const char *path)
{
    mica_decoder_shape shape;
    mica_decoder_shape_init(&shape);
    mica_file *file;
    mica_status status = mica_trainer_save(t, path, NULL, 0);
    if (status == MICA_OK) status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    status = mica_trainer_load(t, s, file);
    mica_file_close(file);
    if (status == MICA_OK) status = mica_decoder_write(s, &shape, p, path, NULL);
    return status;
}

static mica_status whole_life(mica_engine *e, const char *path, double *loss)
{
    mica_scope *s = mica_scope_begin(e);
    if (!s) return MICA_ERR_MEMORY;
    mica_params *p = NULL;
    mica_trainer *t = NULL;
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    o.loss = small_loss;
    mica_status status = make_params(s, &p);
    if (status == MICA_OK) status = mica_trainer_open(e, p, &o, &t);
    if (status == MICA_OK) status = train_a_little(s, t, path, loss);
    if (status == MICA_OK) status = save_and_load(s, t, p, path);
    mica_trainer_close(t);
    mica_params_free(p);
    mica_scope_end(s);
    return status;
}

/* ------------------------------------------------------- layers as data ---- */

enum { ROWS = 4, TIME = 3, SIZE = 4 };

static size_t make_layers(mica_layer out[8])
{
    mica_layer *l = out;
    *l++ = mica_attention_layer(SIZE, 2, true);
    *l++ = mica_dropout_layer(0.1);
    *l++ = mica_recurrent_layer(MICA_LAYER_LSTM, SIZE, SIZE);
    l[-1].last_step = l[-1].bidirectional = true;
    *l++ = mica_norm_layer(MICA_LAYER_BATCH_NORM, 2 * SIZE);
    *l++ = mica_linear_layer(2 * SIZE, SIZE);
    l[-1].init = MICA_INIT_ORTHOGONAL;
    return (size_t)(l - out);
}

static mica_array *layers_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n, (void)user;
    mica_layer layers[8];
    const size_t n_layers = make_layers(layers);
    mica_array *y = mica_sequential(f, layers, n_layers, data[0], "net");
    return mica_cross_entropy_loss(f->s, y, data[1], 0.1);
}

static mica_status run_layers(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_out;
    out[0] = layers_loss(f, data, n, user);
    return mica_scope_status(f->s);
}

/* A step on data that is not finite is refused, also without memory to find the cause. */
static mica_status refused_step(mica_scope *s, mica_trainer *t, mica_array *const *data)
{
    mica_array *bad[] = {mica_full(s, MICA_F32, SHAPE(ROWS, TIME, SIZE), NAN), data[1]};
    mica_status status = mica_eval(s, bad, 1);
    if (status == MICA_OK) status = mica_trainer_step(t, s, bad, 2, 0.01, 0, NULL);
    return status == MICA_ERR_STATE ? MICA_OK : status == MICA_OK ? MICA_ERR_INTERNAL : status;
}

static mica_status steps_of_layers(mica_scope *s, mica_trainer *t, double *loss)
{
    static const int32_t labels[ROWS] = {0, 3, 1, 1};
    mica_train_result r = {.struct_size = sizeof r};
    mica_array *data[] = {mica_random_normal(s, MICA_F32, SHAPE(ROWS, TIME, SIZE), 3),
                          mica_from_data(s, MICA_I32, SHAPE(ROWS), labels)};
    mica_status status = mica_eval(s, data, 2);
    for (int i = 0; i < 2 && status == MICA_OK; i++) {
        status = mica_trainer_accumulate(t, s, data, 2, &r);
        if (status == MICA_OK) status = mica_trainer_step(t, s, data, 2, 0.01, 0.1, &r);
    }
    if (status == MICA_OK) status = refused_step(s, t, data);
    *loss = r.loss;
    return status;
}

static mica_status run_once(mica_engine *e, mica_scope *s, mica_params *p)
{
    static const int32_t labels[ROWS] = {0, 3, 1, 1};
    mica_network *net = NULL;
    mica_array *data[] = {mica_ones(s, MICA_F32, SHAPE(ROWS, TIME, SIZE)),
                          mica_from_data(s, MICA_I32, SHAPE(ROWS), labels)},
               *y;
    mica_status status = mica_eval(s, data, 2);
    if (status == MICA_OK) status = mica_network_open(e, p, run_layers, NULL, &net);
    if (status == MICA_OK) status = mica_network_run(net, s, data, 2, &y, 1);
    mica_network_close(net);
    return status;
}

static mica_status life_of_layers(mica_engine *e, const char *path, double *loss)
{
    mica_scope *s = mica_scope_begin(e);
    if (!s) return MICA_ERR_MEMORY;
    mica_params *p = NULL;
    mica_trainer *t = NULL;
    mica_file *file = NULL;
    mica_layer layers[8];
    const size_t n = make_layers(layers);
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    o.loss = layers_loss;
    o.compute = MICA_F16;
    mica_status status = mica_params_new(&p);
    if (status == MICA_OK) status = mica_sequential_params(s, p, layers, n, 1, "net");
    if (status == MICA_OK) status = mica_trainer_open(e, p, &o, &t);
    if (status == MICA_OK) status = steps_of_layers(s, t, loss);
    if (status == MICA_OK) status = mica_trainer_save(t, path, NULL, 0);
    if (status == MICA_OK) status = mica_file_open(path, NULL, &file);
    if (status == MICA_OK) status = mica_trainer_load(t, s, file);
    if (status == MICA_OK) status = run_once(e, s, p);
    mica_file_close(file);
    mica_trainer_close(t);
    mica_params_free(p);
    mica_scope_end(s);
    return status;
}

/* ------------------------------------------------------------------ faults -- */

static void each_allocation_fails(mica_status (*life)(mica_engine *e, const char *path, double *loss))
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/mica-fault-nn-%d", (int)getpid());
    const mica_engine_options o = options_for("cpu", 1);
    uint64_t last = 0, survived = 0, tried = 0;
    double clean = 0;
    for (uint64_t n = 0; n <= last; n += 1 + last / 250) { /* about 250 of the allocations */
        tried++;
        const int64_t live = live_blocks();
        const uint64_t before = mica__alloc_count();
        mica_engine *e = open_with(&o);
        double loss = 0;
        mica__alloc_fail_at(n);
        const mica_status status = life(e, path, &loss);
        mica__alloc_fail_at(0);
        if (n == 0) {
            CHECK_MSG(status == MICA_OK, "undisturbed: %s", mica_last_error());
            clean = loss;
            last = mica__alloc_count() - before;
        } else if (status == MICA_OK) {
            survived++;
            EXPECT(loss == clean);
        } else {
            EXPECT_MSG(status == MICA_ERR_MEMORY && mica_last_error()[0], "allocation %d: status %d, \"%s\"", (int)n,
                       (int)status, mica_last_error());
        }
        mica_close(e);
        EXPECT_MSG(live_blocks() == live, "allocation %d failed: %d blocks leaked", (int)n,
                   (int)(live_blocks() - live));
        remove(path);
    }
    EXPECT_MSG(survived * 2 <= tried, "%d of %d failures went unnoticed", (int)survived, (int)tried);
}

TEST(a_network_without_memory) { each_allocation_fails(whole_life); }
TEST(layers_without_memory) { each_allocation_fails(life_of_layers); }
