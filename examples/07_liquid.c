/* A liquid network (CfC, wired as an NCP) learns to continue a sine wave. A whole sequence is one plan.
 * Exits with an error unless the loss falls below a tenth of its first value. */
#include <math.h>
#include <mica_liquid.h>
#include <stdio.h>

enum { TIME = 48, STEPS = 150 };

static mica_array *next_value_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    const mica_liquid_data in = {.struct_size = sizeof in, .x = data[0]};
    mica_liquid_result r = {.struct_size = sizeof r};
    if (mica_liquid_forward(f->s, user, f->params, &in, &r) != MICA_OK) return NULL;
    return n == 2 ? mica_mse_loss(f->s, r.y, data[1]) : NULL;
}

static mica_status train(mica_engine *e, mica_scope *s, mica_liquid *net, mica_params *params, double loss[2])
{
    float wave[TIME + 1];
    for (int i = 0; i <= TIME; i++) wave[i] = sinf(0.3f * (float)i);
    mica_array *data[2]; /* x (batch 1, time, inputs 1) and the same sequence one step later */
    for (int i = 0; i < 2; i++) data[i] = mica_from_data(s, MICA_F32, 3, (int64_t[]){1, TIME, 1}, wave + i);
    mica_trainer *trainer = NULL;
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    o.loss = next_value_loss, o.user = net;
    mica_status status = mica_eval(s, data, 2);
    if (status == MICA_OK) status = mica_liquid_params(s, net, MICA_F32, 1, params);
    if (status == MICA_OK) status = mica_trainer_open(e, params, &o, &trainer);
    for (int i = 0; i < STEPS && status == MICA_OK; i++) {
        mica_train_result r = {.struct_size = sizeof r};
        mica_scope *step = mica_scope_begin(e);
        status = mica_trainer_step(trainer, step, data, 2, 0.01, 0, &r); /* planned once, then replayed */
        mica_scope_end(step);
        loss[i > 0] = r.loss;
    }
    mica_trainer_close(trainer);
    return status;
}

int main(void)
{
    mica_engine *e = NULL;
    mica_wiring *wiring = NULL;
    mica_params *params = NULL;
    mica_liquid net;
    double loss[2] = {0, 0};
    mica_liquid_init(&net, MICA_LIQUID_CFC);
    mica_status status = mica_open(NULL, &e);
    mica_scope *s = mica_scope_begin(e);
    if (status == MICA_OK) status = mica_wiring_parse("autoncp:16,1", 1, &wiring); /* 16 neurons, 1 output, 1 input */
    if (status == MICA_OK) status = mica_params_new(&params);
    net.inputs = 1, net.wiring = wiring;
    if (status == MICA_OK) status = train(e, s, &net, params, loss);
    if (status == MICA_OK) printf("loss %.4f at the first step, %.4f at the last\n", loss[0], loss[1]);
    else fprintf(stderr, "%s\n", mica_last_error());
    mica_params_free(params);
    mica_wiring_free(wiring);
    mica_scope_end(s);
    mica_close(e);
    return status == MICA_OK && loss[1] < 0.1 * loss[0] ? 0 : 1;
}
