/* Training continues from a checkpoint with the same bits; the packed model computes the same
 * products as the network; batches are windows of the text.
 *
 * runs: metal-unsanitized */
#include <math.h>

#include "api.h"
#include "mica_nn.h"

typedef struct school {
    mica_engine *engine;
    mica_scope *scope;
    mica_decoder_shape shape;
    mica_params *params;
    mica_trainer *trainer;
    char path[64];
} school;

/* The struct must not move: the trainer keeps a pointer to the shape. */
static void school_begin(school *c, uint64_t seed)
{
    *c = (school){.engine = open_engine("cpu")};
    snprintf(c->path, sizeof c->path, "/tmp/mica-nn-%d-%d", (int)getpid(), (int)seed);
    c->scope = mica_scope_begin(c->engine);
    mica_decoder_shape_init(&c->shape);
    c->shape.vocab = 32, c->shape.dim = 128, c->shape.layers = 1, c->shape.heads = 2, c->shape.kv_heads = 1;
    c->shape.ffn = 256;
    EXPECT_OK(mica_decoder_params(c->scope, &c->shape, seed, &c->params));
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    o.loss = mica_decoder_loss;
    o.user = &c->shape;
    EXPECT_OK(mica_trainer_open(c->engine, c->params, &o, &c->trainer));
}

static void school_end(school *c)
{
    remove(c->path);
    mica_trainer_close(c->trainer);
    mica_params_free(c->params);
    mica_scope_end(c->scope);
    mica_close(c->engine);
}

/* Trains up to step `until`, each on its own batch. Returns the last loss. */
static double learn(school *c, int64_t until)
{
    int32_t text[200];
    mica_train_result r = {.struct_size = sizeof r, .loss = NAN};
    for (int i = 0; i < 200; i++) text[i] = (i * i + i / 3) % 32;
    while (mica_trainer_steps(c->trainer) < until) {
        mica_array *data[2];
        mica_scope *s = mica_scope_begin(c->engine);
        EXPECT_OK(mica_batch_random(s, text, 200, 3, 8, 5, mica_trainer_steps(c->trainer), data));
        const mica_status status = mica_trainer_step(c->trainer, s, data, 2, 0.01, 0.1, &r);
        mica_scope_end(s);
        if (!EXPECT_OK(status)) break;
    }
    return r.loss;
}

static mica_status load(school *c, const char *path, bool all)
{
    mica_file *file;
    mica_status status = mica_file_open(path, NULL, &file);
    if (status != MICA_OK) return status;
    status = all ? mica_trainer_load(c->trainer, c->scope, file) : mica_params_load(c->params, c->scope, file);
    mica_file_close(file);
    return status;
}

TEST(a_checkpoint_goes_on_bit_for_bit)
{
    school a, b;
    school_begin(&a, 1);
    school_begin(&b, 2); /* other initial values */
    learn(&a, 7);
    const mica_setting settings[] = {{"mine", "a text"}};
    CHECK_OK(mica_trainer_save(a.trainer, a.path, settings, 1));
    const double want = learn(&a, 15);
    CHECK_OK(load(&b, a.path, true));
    EXPECT_INT(mica_trainer_steps(b.trainer), 7);
    EXPECT(learn(&b, 15) == want);
    for (size_t i = 0; i < mica_params_count(a.params); i++)
        EXPECT_MSG(memcmp(mica_data_f32(mica_params_at(a.params, i)), mica_data_f32(mica_params_at(b.params, i)),
                          mica_array_nbytes(mica_params_at(a.params, i))) == 0,
                   "%s differs", mica_params_name(a.params, i));
    mica_file *file;
    const char *text = NULL;
    size_t length = 0;
    CHECK_OK(mica_file_open(a.path, NULL, &file));
    EXPECT(mica_file_string(file, "mine", &text, &length) && length == 6 && memcmp(text, "a text", 6) == 0);
    mica_file_close(file);
    school_end(&b);
    school_end(&a);
}

/* A file has the elements in row-major order, for parameters of any dtype that are views of
 * other memory. */
TEST(a_view_is_saved_as_it_reads)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_params *p, *q;
    char path[64];
    snprintf(path, sizeof path, "/tmp/mica-nn-view-%d", (int)getpid());
    mica_array *x = mica_reshape(s, mica_arange(s, MICA_F32, 0, 24, 1), SHAPE(2, 3, 4));
    mica_array *views[] = {mica_transpose(s, x),
                           mica_flip(s, x, 1),
                           mica_broadcast_to(s, mica_scalar(s, 3), SHAPE(2, 3)),
                           mica_zeros(s, MICA_F32, SHAPE(0, 3)),
                           mica_transpose(s, mica_cast(s, x, MICA_I64)),
                           mica_greater(s, x, mica_scalar(s, 5)),
                           mica_cast(s, x, MICA_BF16),
                           mica_cast(s, x, MICA_U16)};
    CHECK_OK(mica_eval(s, views, COUNT(views)));
    EXPECT_OK(mica_params_new(&p));
    EXPECT_OK(mica_params_new(&q));
    for (size_t i = 0; i < COUNT(views); i++) {
        char name[8];
        snprintf(name, sizeof name, "%zu", i);
        EXPECT_OK(mica_params_add(p, name, views[i]));
        mica_array *zeros =
            mica_zeros(s, mica_array_dtype(views[i]), mica_array_ndim(views[i]), mica_array_shape(views[i]));
        EXPECT_OK(mica_params_add(q, name, zeros));
    }
    mica_file *file;
    CHECK_OK(mica_params_save(p, path, NULL, 0));
    CHECK_OK(mica_file_open(path, NULL, &file));
    EXPECT_OK(mica_params_load(q, s, file));
    for (size_t i = 0; i < COUNT(views); i++) EXPECT_MSG(close_arrays(mica_params_at(q, i), views[i]), "view %zu", i);
    mica_file_close(file);
    remove(path);
    mica_params_free(p);
    mica_params_free(q);
    mica_scope_end(s);
    mica_close(e);
}

TEST(checkpoints_that_do_not_fit)
{
    school a, b;
    school_begin(&a, 3);
    school_begin(&b, 4);
    learn(&a, 1);
    CHECK_OK(mica_params_save(a.params, a.path, NULL, 0));
    CHECK_OK(load(&b, a.path, false));
    EXPECT_FAILS(load(&b, a.path, true), MICA_ERR_FORMAT, "steps"); /* a file with parameters only */
    /* a tensor of another shape: nothing is replaced */
    mica_params *other;
    mica_decoder_shape wider = a.shape;
    wider.ffn = 384;
    CHECK_OK(mica_decoder_params(a.scope, &wider, 1, &other));
    CHECK_OK(mica_params_save(other, b.path, NULL, 0));
    mica_array *first = mica_params_at(b.params, 0);
    EXPECT_FAILS(load(&b, b.path, false), MICA_ERR_SHAPE, "blk.0.ffn_gate.weight");
    EXPECT(mica_params_at(b.params, 0) == first);
    mica_params_free(other);
    /* a parameter is missing */
    mica_params *fewer;
    CHECK_OK(mica_params_new(&fewer));
    CHECK_OK(mica_params_add(fewer, "token_embd.weight", first));
    CHECK_OK(mica_params_save(fewer, b.path, NULL, 0));
    EXPECT_FAILS(load(&b, b.path, false), MICA_ERR_FORMAT, "no tensor 'blk.0.attn_norm.weight'");
    CHECK_OK(mica_params_add(fewer, "lazy", mica_neg(b.scope, first)));
    EXPECT_FAILS(mica_params_save(fewer, b.path, NULL, 0), MICA_ERR_STATE, "'lazy'");
    EXPECT_FAILS(mica_params_save(a.params, "/nowhere/x", NULL, 0), MICA_ERR_FILE, "/nowhere/x");
    EXPECT_FAILS(mica_trainer_save(NULL, b.path, NULL, 0), MICA_ERR_ARGUMENT, "no trainer");
    EXPECT_FAILS(mica_trainer_load(NULL, a.scope, NULL), MICA_ERR_ARGUMENT, "no trainer");
    mica_params_free(fewer);
    school_end(&b);
    school_end(&a);
}

/* ------------------------------------------------------------- the model ---- */

static mica_quant matrix_of(mica_scope *s, mica_file *file, const char *name)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    EXPECT(mica_file_find(file, name, &info));
    return (mica_quant){.struct_size = sizeof(mica_quant),
                        .format = info.format,
                        .rows = info.shape[0],
                        .cols = info.shape[1],
                        .data = mica_file_array(s, file, name)};
}

TEST(the_packed_model_multiplies_as_the_network_did)
{
    static const char *const formats[] = {"I2_S", "TQ2_0", "TQ1_0"};
    static const char *const names[] = {"blk.0.ffn_down.weight", "blk.0.attn_q.weight", "blk.0.attn_k.weight"};
    school c;
    school_begin(&c, 5);
    learn(&c, 5);
    for (size_t f = 0; f < COUNT(formats); f++) {
        mica_decoder_export e;
        mica_decoder_export_init(&e);
        e.ternary = formats[f];
        e.name = "a model";
        mica_decoder_shape shape = c.shape;
        if (f > 0) { /* these formats need 256 columns: only ffn_down has them here */
            EXPECT_FAILS(mica_decoder_write(c.scope, &shape, c.params, c.path, &e), MICA_ERR_ARGUMENT, "attn_q");
            continue;
        }
        CHECK_OK(mica_decoder_write(c.scope, &shape, c.params, c.path, &e));
        mica_file *file;
        int64_t value = 0;
        CHECK_OK(mica_file_open(c.path, &(mica_file_options){.struct_size = sizeof(mica_file_options), .check = true},
                                &file));
        EXPECT_STR(mica_file_kind(file), "gguf");
        EXPECT(mica_file_i64(file, "bitnet-b1.58.feed_forward_length", &value) && value == 256);
        EXPECT_INT(mica_file_tensor_count(file), mica_params_count(c.params));
        for (size_t i = 0; i < COUNT(names); i++) {
            test_case("%s, %s", formats[f], names[i]);
            const mica_quant w = matrix_of(c.scope, file, names[i]);
            mica_array *x = mica_random_normal(c.scope, MICA_F32, SHAPE(3, w.cols), i);
            mica_array *p = mica_params_get(c.scope, c.params, "%s", names[i]);
            mica_array *out[] = {mica_quant_matmul(c.scope, x, &w, MICA_ACT_TOKEN), mica_bit_linear(c.scope, x, p)};
            CHECK_OK(mica_eval(c.scope, out, 2));
            CHECK_INT(mica_array_size(out[0]), mica_array_size(out[1]));
            for (int64_t k = 0; k < mica_array_size(out[0]); k++)
                EXPECT_CLOSE(element(out[0], k), element(out[1], k), 1e-6, 1e-9);
        }
        mica_file_close(file);
    }
    school_end(&c);
}

static mica_status no_more(mica_writer *w, void *user)
{
    (void)w, (void)user;
    return mica_fail(MICA_ERR_STATE, "no vocabulary");
}

TEST(a_model_appears_whole_or_not_at_all)
{
    school c;
    school_begin(&c, 6);
    mica_decoder_export e;
    mica_decoder_export_init(&e);
    e.more = no_more;
    EXPECT_FAILS(mica_decoder_write(c.scope, &c.shape, c.params, c.path, &e), MICA_ERR_STATE, "no vocabulary");
    EXPECT(access(c.path, F_OK) != 0);
    EXPECT_FAILS(mica_decoder_write(c.scope, &c.shape, c.params, "/nowhere/x", NULL), MICA_ERR_FILE, "/nowhere/x");
    school_end(&c);
}

/* --------------------------------------------------------------- batches ---- */

TEST(batches_are_windows)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    int32_t text[50];
    for (int i = 0; i < 50; i++) text[i] = i;
    mica_array *a[2], *b[2];
    CHECK_OK(mica_batch_random(s, text, 50, 64, 10, 7, 3, a));
    CHECK_OK(mica_batch_random(s, text, 50, 64, 10, 7, 3, b));
    int seen[50] = {0};
    for (int i = 0; i < 64; i++) {
        const int32_t *ids = mica_data_i32(a[0]) + i * 10, *next = mica_data_i32(a[1]) + i * 10;
        for (int k = 0; k < 10; k++) {
            CHECK(ids[k] == ids[0] + k && next[k] == ids[k] + 1 && next[k] < 50);
            CHECK(mica_data_i32(b[0])[i * 10 + k] == ids[k]);
        }
        seen[ids[0]]++;
    }
    int places = 0;
    for (int i = 0; i < 50; i++) places += seen[i] > 0;
    EXPECT_MSG(places > 20, "only %d places", places);
    EXPECT_INT(seen[40] + seen[41], 0); /* the last window that fits begins at 39 */
    EXPECT_INT(mica_batch_count(50, 10), 4);
    EXPECT_INT(mica_batch_count(51, 10), 5);
    EXPECT_INT(mica_batch_count(0, 10), 0);
    CHECK_OK(mica_batch_windows(s, text, 50, 2, 10, 2, a));
    EXPECT_INT(mica_data_i32(a[0])[0], 20);
    EXPECT_INT(mica_data_i32(a[1])[19], 40);
    EXPECT_FAILS(mica_batch_windows(s, text, 50, 2, 10, 3, a), MICA_ERR_INDEX,
                 "windows 3 to 5 are out of range; there are 4");
    EXPECT_FAILS(mica_batch_random(s, text, 10, 2, 10, 0, 0, a), MICA_ERR_ARGUMENT, "10 tokens");
    EXPECT_FAILS(mica_batch_random(s, NULL, 10, 2, 10, 0, 0, a), MICA_ERR_ARGUMENT, "no tokens");
    mica_scope_end(s);
    mica_close(e);
}
