/* The n-th allocation of the library fails, for n = 1, 2, 3 and so on, while a small
 * network is made, trained, saved, loaded and exported: a status with a sentence comes
 * back, nothing leaks, and nothing is left under a final name that is not whole. */
#include "../api/api.h"
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

static mica_status train_a_little(mica_scope *s, mica_trainer *t, double *loss)
{
    int32_t text[LENGTH];
    for (int i = 0; i < LENGTH; i++) text[i] = i * i % VOCAB;
    mica_train_result r = {0};
    mica_status status = MICA_OK;
    for (int i = 0; i < 2 && status == MICA_OK; i++) {
        mica_array *data[2];
        status = mica_batch_random(s, text, LENGTH, 2, 6, 3, i, data);
        if (status == MICA_OK) status = mica_trainer_step(t, s, data, 2, 0.01, 0.1, &r);
    }
    *loss = r.loss;
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
    if (status == MICA_OK) status = train_a_little(s, t, loss);
    if (status == MICA_OK) status = save_and_load(s, t, p, path);
    mica_trainer_close(t);
    mica_params_free(p);
    mica_scope_end(s);
    return status;
}

TEST(a_network_without_memory)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/mica-fault-nn-%d", (int)getpid());
    const mica_engine_options o = options_for("cpu", 1);
    uint64_t last = 0, survived = 0;
    double clean = 0;
    for (uint64_t n = 0; n <= last; n++) {
        const int64_t live = mica__alloc_live();
        const uint64_t before = mica__alloc_count();
        mica_engine *e = open_with(&o);
        double loss = 0;
        mica__alloc_fail_at(n);
        const mica_status status = whole_life(e, path, &loss);
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
        EXPECT_MSG(mica__alloc_live() == live, "allocation %d failed: %d blocks leaked", (int)n,
                   (int)(mica__alloc_live() - live));
        remove(path);
    }
    EXPECT_MSG(survived * 2 <= last, "%d of %d failures went unnoticed", (int)survived, (int)last);
}
