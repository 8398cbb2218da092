/* A perceptron on generated flowers: three kinds with four measures each, two kinds overlap. Layers, loss, optimiser
 * and schedule are those of mica_nn.h; the whole step is one compiled plan. Exits with an error unless the loss falls
 * and more than 95 % of held-out flowers are classified correctly. */
#include <stdio.h>

#include "mica_nn.h"

enum { MEASURES = 4, KINDS = 3, TRAIN = 150, TEST = 600, STEPS = 200 };

typedef struct flower_net {
    mica_layer layers[8];
    size_t n;
} flower_net;

/* x (n, MEASURES) around the middle of its kind, and the kind of each row. */
static mica_status draw_flowers(mica_scope *s, int64_t n, uint64_t seed, mica_array **x, mica_array **kind)
{
    static const float middle[KINDS][MEASURES] = {
        {-1.0f, 0.9f, -1.3f, -1.2f}, {0.1f, -0.7f, 0.3f, 0.2f}, {0.9f, -0.2f, 1.0f, 1.1f}};
    const int64_t shape[] = {n, MEASURES}, kinds[] = {KINDS, MEASURES};
    *kind = mica_random_randint(s, MICA_I32, 1, &n, 0, KINDS, mica_seed_split(seed, 0));
    mica_array *noise = mica_random_normal(s, MICA_F32, 2, shape, mica_seed_split(seed, 1));
    mica_array *centre = mica_embedding(s, mica_from_data(s, MICA_F32, 2, kinds, middle), *kind);
    *x = mica_add(s, centre, mica_mul(s, noise, mica_scalar(s, 0.35)));
    return mica_eval(s, (mica_array *[]){*x, *kind}, 2);
}

static mica_array *flower_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n;
    const flower_net *net = user;
    mica_array *logits = mica_sequential(f, net->layers, net->n, data[0], "net");
    return mica_cross_entropy_loss(f->s, logits, data[1], 0.05);
}

static mica_status train(mica_engine *e, mica_trainer *t, mica_array *const *data, double *first, double *last)
{
    const mica_schedule schedule = {.struct_size = sizeof schedule,
                                    .kind = MICA_SCHEDULE_COSINE,
                                    .steps = STEPS,
                                    .warmup = 10,
                                    .peak = 0.02,
                                    .decay = 0.01};
    mica_status status = MICA_OK;
    for (int64_t i = 0; i < STEPS && status == MICA_OK; i++) {
        double rate, decay;
        mica_train_result r = {.struct_size = sizeof r};
        mica_schedule_at(&schedule, i, &rate, &decay);
        mica_scope *s = mica_scope_begin(e);
        status = mica_trainer_step(t, s, data, 2, rate, decay, &r);
        mica_scope_end(s);
        if (i == 0) *first = r.loss;
        *last = r.loss;
        if (i % 40 == 0 && status == MICA_OK) printf("step %3d  loss %.4f\n", (int)i, r.loss);
    }
    return status;
}

/* The share of new flowers that are classified correctly. */
static mica_status accuracy(mica_scope *s, const flower_net *net, mica_params *params, double *share)
{
    mica_array *x, *kind;
    mica_status status = draw_flowers(s, TEST, 99, &x, &kind);
    if (status != MICA_OK) return status;
    mica_forward f;
    mica_forward_init(&f, s, params);
    mica_array *named = mica_argmax(s, mica_sequential(&f, net->layers, net->n, x, "net"), 1, false);
    mica_array *right = mica_mean(s, mica_equal(s, named, kind), NULL, 0, false);
    status = mica_eval(s, &right, 1);
    return status == MICA_OK ? mica_item(right, share) : status;
}

static mica_status run(mica_engine *e, mica_scope *s, mica_params *params, double *fallen, double *share)
{
    flower_net net;
    mica_array *data[2];
    mica_trainer *trainer = NULL;
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    o.loss = flower_loss;
    o.user = &net;
    double first = 0, last = 0;
    net.n = mica_mlp((const int64_t[]){MEASURES, 16, 16, KINDS}, 4, MICA_ACTIVATION_RELU, 0.1, net.layers, 8);
    mica_status status = draw_flowers(s, TRAIN, 1, &data[0], &data[1]);
    if (status == MICA_OK) status = mica_sequential_params(s, params, net.layers, net.n, 42, "net");
    if (status == MICA_OK) status = mica_trainer_open(e, params, &o, &trainer);
    if (status == MICA_OK) status = train(e, trainer, data, &first, &last);
    if (status == MICA_OK) status = accuracy(s, &net, params, share);
    mica_trainer_close(trainer);
    *fallen = first > 0 ? last / first : 1;
    return status;
}

int main(void)
{
    mica_engine *e;
    mica_params *params;
    double fallen = 1, share = 0;
    if (mica_open(NULL, &e) != MICA_OK) {
        fprintf(stderr, "mlp: %s\n", mica_last_error());
        return 1;
    }
    mica_scope *s = mica_scope_begin(e);
    mica_status status = mica_params_new(&params);
    if (status == MICA_OK) status = run(e, s, params, &fallen, &share);
    if (status != MICA_OK) fprintf(stderr, "mlp: %s\n", mica_last_error());
    else printf("%.1f %% of %d new flowers are named right\n", 100 * share, TEST);
    mica_params_free(params);
    mica_scope_end(s);
    mica_close(e);
    return status == MICA_OK && fallen < 0.4 && share > 0.95 ? 0 : 1;
}
