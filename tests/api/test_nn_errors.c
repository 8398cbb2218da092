/* Invalid arguments to the functions of mica_nn.h: each call returns a status or NULL and sets an
 * error message. Nothing crashes, and the engine stays usable.
 *
 * runs: metal, check */
#include <math.h>

#include "api.h"
#include "base/alloc.h"
#include "mica_nn.h"

typedef struct trial {
    mica_engine *e;
    mica_scope *s;
    mica_params *p;
    mica_forward f;
    mica_array *x, *m, *cube; /* (4), (2, 3), (2, 3, 4) */
} trial;

static trial trial_begin(void)
{
    trial t = {.e = open_engine("cpu")};
    t.s = mica_scope_begin(t.e);
    EXPECT_OK(mica_params_new(&t.p));
    mica_forward_init(&t.f, t.s, t.p);
    t.x = count_up(t.s, 4, 1);
    t.m = count_up_2d(t.s, 2, 3);
    t.cube = mica_reshape(t.s, count_up(t.s, 24, 0), SHAPE(2, 3, 4));
    return t;
}

static void trial_end(trial *t)
{
    mica_params_free(t->p);
    mica_scope_end(t->s);
    mica_close(t->e);
}

/* Expects NULL and a last error message that contains part; clears the scope's error. */
#define NONE(call, part) none(__FILE__, __LINE__, #call, &t, call, part)
static void none(const char *file, int line, const char *call, trial *t, const mica_array *got, const char *part)
{
    if (got) test_fail(file, line, "%s gives an array", call);
    if (!strstr(mica_last_error(), part))
        test_fail(file, line, "%s: the message \"%s\" does not contain \"%s\"", call, mica_last_error(), part);
    mica_scope_clear_error(t->s);
}

#define REFUSED(call, status, part) (EXPECT_FAILS(call, status, part), mica_scope_clear_error(t.s))

TEST(bad_parameter_sets)
{
    trial t = trial_begin();
    const int64_t four = 4, negative = -4;
    REFUSED(mica_params_new(NULL), MICA_ERR_ARGUMENT, "NULL");
    REFUSED(mica_params_add(NULL, "a", t.x), MICA_ERR_ARGUMENT, "no set");
    REFUSED(mica_params_add_buffer(t.p, NULL, t.x), MICA_ERR_ARGUMENT, "no name");
    REFUSED(mica_params_add_buffer(t.p, "a", NULL), MICA_ERR_ARGUMENT, "'a'");
    REFUSED(mica_params_set(NULL, 0, t.x), MICA_ERR_ARGUMENT, "0");
    REFUSED(mica_params_keep_precision(NULL, 0), MICA_ERR_ARGUMENT, "0");
    EXPECT(mica_params_count(NULL) == 0 && mica_params_elements(NULL) == 0 && !mica_params_name(NULL, 0));
    EXPECT(!mica_params_at(NULL, 0) && mica_params_index(NULL, "a") == -1 && mica_params_index(t.p, NULL) == -1);
    EXPECT(!mica_params_is_trained(NULL, 0) && !mica_params_is_trained(t.p, 0));
    NONE(mica_params_get(t.s, NULL, "a"), "'a'");
    NONE(mica_params_get(t.s, t.p, "%300d", 1), "255 characters");
    NONE(mica_param(NULL, "a"), "no forward pass");
    NONE(mica_param(&t.f, "no.%s", "where"), "'no.where'");
    REFUSED(mica_params_make(t.s, NULL, MICA_INIT_ONES, 1, 1, &four, 1, "a"), MICA_ERR_ARGUMENT, "no set");
    REFUSED(mica_params_make(t.s, t.p, MICA_INIT_ONES, 1, 1, &four, 1, "%300d", 1), MICA_ERR_ARGUMENT, "255");
    REFUSED(mica_params_make(t.s, t.p, MICA_INIT_ONES, 1, 1, &negative, 1, "a"), MICA_ERR_SHAPE, "-4");
    REFUSED(mica_params_make_buffer(t.s, NULL, 1, 1, &four, "a"), MICA_ERR_ARGUMENT, "no set");
    REFUSED(mica_params_make_buffer(t.s, t.p, 1, 1, &negative, "a"), MICA_ERR_SHAPE, "-4");
    NONE(mica_init_array(t.s, MICA_INIT_UNIFORM, 1, MICA_F32, 1, NULL, 1), "axes");
    NONE(mica_init_array(t.s, MICA_INIT_UNIFORM, 1, MICA_F32, 99, &four, 1), "99 axes");
    NONE(mica_init_array(t.s, MICA_INIT_UNIFORM, NAN, MICA_F32, 1, &four, 1), "nan");
    REFUSED(mica_params_save(NULL, "/tmp/x", NULL, 0), MICA_ERR_ARGUMENT, "no set");
    REFUSED(mica_params_save(t.p, "/tmp/x", NULL, 3), MICA_ERR_ARGUMENT, "no settings");
    REFUSED(mica_params_load(t.p, t.s, NULL), MICA_ERR_ARGUMENT, "no file");
    EXPECT_INT(mica_params_count(t.p), 0);
    mica_params_free(NULL);
    trial_end(&t);
}

TEST(bad_arguments_of_layers)
{
    trial t = trial_begin();
    mica_heads_options heads;
    mica_heads_options_init(&heads);
    mica_heads_options_init(NULL);
    mica_batch_norm_options_init(NULL);
    mica_forward_init(NULL, t.s, t.p);
    mica_array *mean = t.x, *var = t.x, *none_yet = NULL, *h = NULL, *c = NULL, *y = NULL;
    NONE(mica_linear(t.s, t.m, t.cube, NULL), "matmul");
    NONE(mica_bit_linear(t.s, NULL, t.m), "");
    NONE(mica_ternary_codes(t.s, NULL, NULL), "");
    NONE(mica_int8_codes(t.s, NULL, NULL), "");
    NONE(mica_dropout(t.s, t.x, -0.1, t.x, 0), "-0.1");
    NONE(mica_activate(t.s, (mica_activation)99, t.x), "99");
    NONE(mica_activate(t.s, MICA_ACTIVATION_TANH, NULL), "tanh");
    NONE(mica_batch_norm(t.s, t.x, NULL, NULL, &mean, &var, NULL), "1 axes");
    NONE(mica_batch_norm(t.s, t.m, NULL, NULL, &mean, &var, NULL), "3 channels, but statistics of 4");
    NONE(mica_batch_norm(t.s, t.m, NULL, NULL, &none_yet, &var, NULL), "no running mean");
    NONE(mica_batch_norm(t.s, t.m, NULL, NULL, NULL, &var, NULL), "no running mean");
    mica_batch_norm_options train;
    mica_batch_norm_options_init(&train);
    train.training = true;
    mica_array *one = mica_ones(t.s, MICA_F32, SHAPE(1, 4));
    NONE(mica_batch_norm(t.s, one, NULL, NULL, &mean, &var, &train), "one value a channel");
    NONE(mica_multi_head(t.s, t.cube, t.cube, t.cube, NULL, NULL), "no options");
    NONE(mica_multi_head(t.s, t.m, t.cube, t.cube, NULL, &heads), "2 axes");
    heads.heads = 3;
    NONE(mica_multi_head(t.s, t.cube, t.cube, t.cube, NULL, &heads), "3 heads");
    NONE(mica_multi_head(t.s, NULL, t.cube, t.cube, NULL, &heads), "");
    const mica_recurrent_weights w = {sizeof w, t.m, t.m, NULL, NULL}, empty = {.struct_size = sizeof empty};
    REFUSED(mica_lstm(t.s, t.cube, &w, false, &h, &c, &y), MICA_ERR_SHAPE, "lstm: ");
    REFUSED(mica_gru(t.s, t.cube, &w, false, &h, &y), MICA_ERR_SHAPE, "gru: ");
    REFUSED(mica_gru(t.s, t.m, &w, false, &h, &y), MICA_ERR_SHAPE, "2 axes");
    REFUSED(mica_lstm(t.s, t.cube, &empty, false, &h, &c, &y), MICA_ERR_ARGUMENT, "lstm: no");
    REFUSED(mica_gru(t.s, NULL, &w, false, &h, &y), MICA_ERR_ARGUMENT, "gru: no");
    REFUSED(mica_gru(t.s, t.cube, NULL, false, &h, &y), MICA_ERR_ARGUMENT, "gru: no");
    REFUSED(mica_lstm(t.s, t.cube, &w, false, NULL, &c, &y), MICA_ERR_ARGUMENT, "lstm: no place");
    REFUSED(mica_gru(t.s, t.cube, &w, false, &h, NULL), MICA_ERR_ARGUMENT, "gru: no place");
    EXPECT(!y);
    EXPECT(mica_watch(NULL, t.x, "x") == t.x && mica_drop_some(NULL, t.x, 0.5) == t.x);
    trial_end(&t);
}

TEST(bad_layers_as_data)
{
    trial t = trial_begin();
    mica_layer l = mica_linear_layer(0, 3);
    REFUSED(mica_layer_params(t.s, t.p, &l, 1, "l"), MICA_ERR_ARGUMENT, "layer 'l': 0 in");
    REFUSED(mica_layer_params(t.s, t.p, NULL, 1, "l"), MICA_ERR_ARGUMENT, "layer 'l'");
    REFUSED(mica_layer_params(t.s, NULL, &l, 1, "%300d", 1), MICA_ERR_ARGUMENT, "too long");
    l = mica_linear_layer(3, 3);
    REFUSED(mica_layer_params(t.s, NULL, &l, 1, "l"), MICA_ERR_ARGUMENT, "no set");
    l.kind = (mica_layer_kind)77;
    REFUSED(mica_layer_params(t.s, t.p, &l, 1, "l"), MICA_ERR_ARGUMENT, "kind 77");
    NONE(mica_layer_apply(&t.f, &l, t.m, "l"), "kind 77");
    NONE(mica_layer_apply(&t.f, NULL, t.m, "l"), "layer 'l'");
    l = mica_flatten_layer();
    NONE(mica_layer_apply(NULL, &l, t.m, "l"), "no forward pass");
    NONE(mica_layer_apply(NULL, &l, t.m, "%300d", 1), "too long");
    NONE(mica_layer_apply(&t.f, &l, NULL, "l"), "");
    l = mica_conv2d_layer(3, 4, 0);
    REFUSED(mica_layer_params(t.s, t.p, &l, 1, "l"), MICA_ERR_ARGUMENT, "kernel 0");
    l = mica_conv1d_layer(3, 4, 2);
    l.conv.groups = 2;
    REFUSED(mica_layer_params(t.s, t.p, &l, 1, "l"), MICA_ERR_ARGUMENT, "2 groups");
    l = mica_attention_layer(6, 4, false);
    REFUSED(mica_layer_params(t.s, t.p, &l, 1, "l"), MICA_ERR_ARGUMENT, "4 heads");
    l = mica_recurrent_layer(MICA_LAYER_GRU, 3, 0);
    REFUSED(mica_layer_params(t.s, t.p, &l, 1, "l"), MICA_ERR_ARGUMENT, "0 out");
    l = mica_activation_layer((mica_activation)55);
    NONE(mica_layer_apply(&t.f, &l, t.m, "l"), "55");
    l = mica_dropout_layer(2);
    const int32_t seed = 1;
    t.f.training = true, t.f.seed = mica_from_data(t.s, MICA_I32, 0, NULL, &seed);
    NONE(mica_layer_apply(&t.f, &l, t.m, "l"), "probability 2 is out of range");
    l = mica_pool_layer(MICA_LAYER_AVG_POOL2D, 2);
    NONE(mica_layer_apply(&t.f, &l, t.m, "l"), "avg_pool2d");
    l = mica_norm_layer(MICA_LAYER_RMS_NORM, 3);
    NONE(mica_layer_apply(&t.f, &l, t.m, "l"), "'l.weight'");
    l = mica_bit_linear_layer(3, 3);
    NONE(mica_layer_apply(&t.f, &l, t.m, "l"), "'l.weight'");
    l = mica_embedding_layer(3, 3);
    char longest[300];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    REFUSED(mica_sequential_params(t.s, t.p, &l, 1, 1, longest), MICA_ERR_ARGUMENT, "too long");
    REFUSED(mica_sequential_params(t.s, NULL, &l, 1, 1, NULL), MICA_ERR_ARGUMENT, "no set");
    REFUSED(mica_sequential_params(t.s, t.p, NULL, 1, 1, NULL), MICA_ERR_ARGUMENT, "no layers");
    NONE(mica_sequential(&t.f, &l, 1, t.m, longest), "too long");
    NONE(mica_sequential(NULL, &l, 1, t.m, NULL), "no forward pass");
    NONE(mica_sequential(&t.f, NULL, 1, t.m, NULL), "no layers");
    EXPECT(mica_sequential(&t.f, NULL, 0, t.m, NULL) == t.m);
    EXPECT_INT(mica_params_count(t.p), 0);
    EXPECT_INT(mica_mlp(NULL, 0, MICA_ACTIVATION_RELU, 0, NULL, 0), 0);
    trial_end(&t);
}

TEST(bad_losses)
{
    trial t = trial_begin();
    mica_array *row = mica_reshape(t.s, t.x, SHAPE(4, 1)), *labels = mica_zeros(t.s, MICA_I32, SHAPE(2));
    NONE(mica_mse_loss(t.s, row, t.x), "mse_loss: 4 values in 2 axes and 4 targets in 1");
    NONE(mica_mae_loss(t.s, t.m, t.x), "mae_loss: 6 values");
    NONE(mica_huber_loss(t.s, t.m, t.x, 1), "huber_loss: 6 values");
    NONE(mica_huber_loss(t.s, t.m, t.m, 0), "delta 0");
    NONE(mica_bce_loss(t.s, row, t.x), "bce_loss");
    NONE(mica_bce_loss(t.s, NULL, t.x), "");
    NONE(mica_mse_loss(t.s, t.x, NULL), "");
    NONE(mica_cross_entropy_loss(t.s, t.m, labels, 1), "smoothing 1");
    NONE(mica_cross_entropy_loss(t.s, t.m, t.m, 0), "cross_entropy");
    trial_end(&t);
}

TEST(bad_optimisers)
{
    trial t = trial_begin();
    mica_optimiser o;
    mica_optimiser_init(NULL, MICA_SGD);
    mica_optimiser_init(&o, MICA_ADAM);
    mica_array *p1, *state1[2], *state[] = {t.x, t.x}, *rates = t.x;
    EXPECT(mica_optimiser_slots(NULL) == 0);
    mica_optimiser_rates(NULL, 1, 1, 1, NULL);
    REFUSED(mica_optimiser_step(t.s, NULL, rates, 1, &t.x, &t.x, state, &p1, state1, NULL), MICA_ERR_ARGUMENT,
            "optimiser");
    REFUSED(mica_optimiser_step(t.s, &o, rates, 0, &t.x, &t.x, state, &p1, state1, NULL), MICA_ERR_ARGUMENT,
            "no param");
    REFUSED(mica_optimiser_step(t.s, &o, rates, 1, &t.x, &t.x, NULL, &p1, state1, NULL), MICA_ERR_ARGUMENT, "state");
    REFUSED(mica_optimiser_step(t.s, &o, rates, 1, &t.m, &t.x, state, &p1, state1, NULL), MICA_ERR_SHAPE, "");
    REFUSED(mica_optimiser_step(t.s, &o, NULL, 1, &t.x, &t.x, state, &p1, state1, NULL), MICA_ERR_ARGUMENT, "");
    mica_array *none_of[] = {NULL};
    NONE(mica_global_norm(t.s, 1, NULL), "");
    mica_clip_gradients(t.s, NULL, 1, 1, 1, NULL, none_of);
    mica_clip_gradients(t.s, NULL, 1, 1, 1, none_of, none_of);
    EXPECT(!none_of[0]);
    mica_scope_clear_error(t.s);
    double rate = -1, decay = -1;
    mica_schedule_at(NULL, 3, &rate, &decay);
    EXPECT(rate == 0 && decay == 0);
    const mica_schedule step = {.struct_size = sizeof step, .kind = MICA_SCHEDULE_STEP, .peak = 1, .factor = 0.5};
    mica_schedule_at(&step, 3, &rate, NULL);
    EXPECT(rate == 1); /* every 0 steps: never */
    mica_schedule_at(&step, 3, NULL, &decay);
    trial_end(&t);
}

static mica_array *no_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)data, (void)n, (void)user;
    return mica_scope_fail(f->s, MICA_ERR_UNSUPPORTED, "there is no loss today");
}

TEST(bad_trainers)
{
    trial t = trial_begin();
    mica_trainer_options o;
    mica_trainer_options_init(NULL);
    mica_trainer_options_init(&o);
    o.loss = no_loss;
    mica_trainer *trainer;
    double loss;
    REFUSED(mica_trainer_open(t.e, t.p, &o, &trainer), MICA_ERR_ARGUMENT, "no parameters");
    CHECK_OK(mica_params_make(t.s, t.p, MICA_INIT_ONES, 1, SHAPE(3), 1, "p"));
    REFUSED(mica_trainer_open(t.e, t.p, &o, NULL), MICA_ERR_ARGUMENT, "NULL");
    REFUSED(mica_trainer_open(NULL, t.p, &o, &trainer), MICA_ERR_ARGUMENT, "no engine");
    REFUSED(mica_trainer_open(t.e, t.p, NULL, &trainer), MICA_ERR_ARGUMENT, "no loss");
    CHECK_OK(mica_trainer_open(t.e, t.p, &o, &trainer));
    REFUSED(mica_trainer_step(trainer, t.s, NULL, 0, 1, 0, NULL), MICA_ERR_UNSUPPORTED, "no loss today");
    REFUSED(mica_trainer_step(trainer, t.s, NULL, 2, 1, 0, NULL), MICA_ERR_ARGUMENT, "no data");
    REFUSED(mica_trainer_accumulate(trainer, t.s, NULL, 0, NULL), MICA_ERR_UNSUPPORTED, "no loss today");
    REFUSED(mica_trainer_loss(trainer, t.s, NULL, 0, &loss), MICA_ERR_UNSUPPORTED, "no loss today");
    REFUSED(mica_trainer_loss(trainer, t.s, NULL, 0, NULL), MICA_ERR_ARGUMENT, "no place");
    REFUSED(mica_trainer_graph(trainer, t.s, NULL, 0, NULL), MICA_ERR_ARGUMENT, "no place");
    EXPECT(mica_trainer_outputs(trainer) == 5 && mica_trainer_outputs(NULL) == 0 && mica_trainer_steps(NULL) == 0);
    REFUSED(mica_trainer_load(trainer, t.s, NULL), MICA_ERR_ARGUMENT, "no file");
    REFUSED(mica_trainer_save(NULL, "/tmp/x", NULL, 0), MICA_ERR_ARGUMENT, "no trainer");
    mica_trainer_close(trainer);
    mica_trainer_close(NULL);
    trial_end(&t);
}

TEST(bad_decoders_and_batches)
{
    trial t = trial_begin();
    mica_decoder_shape shape;
    mica_decoder_shape_init(NULL);
    mica_decoder_shape_init(&shape);
    mica_decoder_export_init(NULL);
    mica_params *p;
    mica_array *ids = mica_zeros(t.s, MICA_I32, SHAPE(2, 3)), *out[2], *data[] = {ids, NULL};
    NONE(mica_decoder_logits(NULL, &shape, ids), "no forward pass");
    NONE(mica_decoder_logits(&t.f, NULL, ids), "no shape");
    NONE(mica_decoder_logits(&t.f, &shape, t.x), "1 axes");
    NONE(mica_decoder_loss(NULL, data, 2, &shape), "decoder_loss");
    NONE(mica_decoder_loss(&t.f, data, 2, &shape), "decoder_loss");
    REFUSED(mica_decoder_params(t.s, &shape, 1, NULL), MICA_ERR_ARGUMENT, "NULL");
    REFUSED(mica_decoder_params(t.s, NULL, 1, &p), MICA_ERR_ARGUMENT, "no shape");
    EXPECT(!p && !mica_decoder_is_ternary(NULL));
    const int32_t tokens[] = {1, 2, 3};
    REFUSED(mica_batch_random(t.s, NULL, 3, 1, 1, 1, 0, out), MICA_ERR_ARGUMENT, "no tokens");
    REFUSED(mica_batch_random(t.s, tokens, 3, 1, 3, 1, 0, out), MICA_ERR_ARGUMENT, "3 tokens");
    REFUSED(mica_batch_windows(t.s, tokens, 3, 1, 1, 2, out), MICA_ERR_INDEX, "2");
    EXPECT_INT(mica_batch_count(3, 0), 0);
    trial_end(&t);
}

static void is_named(const char *name, void *user) { EXPECT_MSG(has_word(user, name), "%s is in no test", name); }

TEST(no_function_of_the_header_is_left_out)
{
    static const char *const files[] = {"tests/api/test_nn_errors.c", "tests/api/test_nn_files.c",
                                        "tests/api/test_nn_steps.c",  "tests/api/test_nn_layers.c",
                                        "tests/api/test_nn_table.c",  "tests/api/test_nn_train.c",
                                        "tests/api/test_nn_fit.c"};
    char *all = files_text(files, COUNT(files));
    if (!all) SKIP("not run from the root of the project");
    EXPECT(each_public_function("include/mica_nn.h", is_named, all) > 80);
    free(all);
}
