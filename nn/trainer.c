/* The trainer: loss, gradients, clipping and AdamW as one compiled function. Its
 * inputs are rates, data, parameters and moments; its outputs loss, norm, and the
 * new parameters and moments, which take the place of the old ones. Nothing is
 * planned after the first step, and memory is what two steps need. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

void mica_trainer_options_init(mica_trainer_options *options)
{
    if (!options) return;
    *options = (mica_trainer_options){.struct_size = sizeof *options};
    mica_adamw_init(&options->adamw);
}

/* The set's names with other values: what the loss is traced with. */
static mica_params *params_with(mica_scope *s, const mica_params *params, mica_array *const *values)
{
    mica_params *copy;
    mica_status status = mica_params_new(&copy);
    for (size_t i = 0; i < mica_params_count(params) && status == MICA_OK; i++)
        status = mica_params_add(copy, mica_params_name(params, i), values[i]);
    if (status == MICA_OK) return copy;
    mica_scope_fail(s, status, "%s", mica_last_error());
    mica_params_free(copy);
    return NULL;
}

static mica_array *trainer_loss_of(mica_trainer *t, mica_scope *s, mica_array *const *values, mica_array *const *data,
                                   size_t n_data, bool training)
{
    mica_params *view = params_with(s, t->params, values);
    if (!view) return NULL;
    mica_array *loss = t->options.loss(s, view, data, n_data, training, t->options.user);
    mica_params_free(view);
    return loss;
}

/* in: rates, data, parameters, first and second moments. out: loss, norm, the new
 * parameters, first and second moments. */
static mica_status build_step(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_out;
    mica_trainer *t = user;
    const size_t n = t->n, n_data = n_in - 1 - 3 * n;
    mica_array *const *data = in + 1, *const *p = data + n_data, *const *m = p + n, *const *v = m + n;
    mica_array **grads = calloc(n, sizeof *grads);
    if (!grads) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu gradients", n);
    out[0] = trainer_loss_of(t, s, p, data, n_data, true);
    mica_status status = out[0] ? mica_grad(s, out[0], p, n, grads) : mica_scope_status(s);
    if (status == MICA_OK)
        status = mica_adamw_step(s, &t->options.adamw, in[0], n, p, grads, m, v, out + 2, out + 2 + n, out + 2 + 2 * n,
                                 &out[1]);
    free(grads);
    return status;
}

/* in: data, parameters */
static mica_status build_loss(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_out;
    mica_trainer *t = user;
    const size_t n_data = n_in - t->n;
    out[0] = trainer_loss_of(t, s, in + n_data, in, n_data, false);
    return out[0] ? MICA_OK : mica_scope_status(s);
}

/* ------------------------------------------------------------------ life --- */

static mica_status make_moments(mica_trainer *t)
{
    mica_scope *s = mica_scope_begin(t->engine);
    if (!s) return mica_fail(MICA_ERR_MEMORY, "out of memory: a scope");
    for (size_t i = 0; i < t->n; i++) {
        const mica_array *p = mica_params_at(t->params, i);
        for (size_t k = 0; k < 2; k++)
            t->moment[k * t->n + i] = mica_zeros(s, mica_array_dtype(p), mica_array_ndim(p), mica_array_shape(p));
    }
    const mica_status status = mica_eval(s, t->moment, 2 * t->n);
    for (size_t i = 0; i < 2 * t->n; i++) {
        if (status == MICA_OK) mica_keep(t->moment[i]);
        else t->moment[i] = NULL;
    }
    mica_scope_end(s);
    return status;
}

mica_status mica_trainer_open(mica_engine *engine, mica_params *params, const mica_trainer_options *options,
                              mica_trainer **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "trainer: no place for it (out is NULL)");
    *out = NULL;
    if (!engine || !options || !options->loss || mica_params_count(params) == 0)
        return mica_fail(MICA_ERR_ARGUMENT, "trainer: no engine, no parameters or no loss");
    mica_trainer *t = calloc(1, sizeof *t);
    if (!t) return mica_fail(MICA_ERR_MEMORY, "out of memory: a trainer");
    *t = (mica_trainer){.engine = engine, .params = params, .options = *options, .n = mica_params_count(params)};
    t->moment = calloc(2 * t->n, sizeof *t->moment);
    t->out = calloc(2 + 3 * t->n, sizeof *t->out);
    mica_status status = t->moment && t->out ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "out of memory: a trainer");
    if (status == MICA_OK) status = mica_compile(engine, build_step, t, &t->step);
    if (status == MICA_OK) status = mica_compile(engine, build_loss, t, &t->loss);
    if (status == MICA_OK) status = make_moments(t);
    if (status == MICA_OK) *out = t;
    else mica_trainer_close(t);
    return status;
}

void mica_trainer_close(mica_trainer *trainer)
{
    if (!trainer) return;
    for (size_t i = 0; i < 2 * trainer->n && trainer->moment; i++) mica_drop(trainer->moment[i]);
    mica_function_free(trainer->step);
    mica_function_free(trainer->loss);
    free(trainer->moment);
    free(trainer->in);
    free(trainer->out);
    free(trainer);
}

int64_t mica_trainer_steps(const mica_trainer *trainer) { return trainer ? trainer->steps : 0; }

/* ------------------------------------------------------------------ steps -- */

/* Room for rates, n data, parameters and moments, filled in but for the rates. */
static mica_status gather_inputs(mica_trainer *t, mica_array *const *data, size_t n)
{
    const size_t want = 1 + n + 3 * t->n;
    if (n > 0 && !data) return mica_fail(MICA_ERR_ARGUMENT, "trainer: no data");
    if (want > t->room) {
        mica_array **in = realloc(t->in, want * sizeof *in);
        if (!in) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu inputs of a step", want);
        t->in = in;
        t->room = want;
    }
    if (n > 0) memcpy(t->in + 1, data, n * sizeof *data);
    for (size_t i = 0; i < t->n; i++) t->in[1 + n + i] = mica_params_at(t->params, i);
    memcpy(t->in + 1 + n + t->n, t->moment, 2 * t->n * sizeof *t->moment);
    return MICA_OK;
}

static mica_array *step_rates(mica_trainer *t, mica_scope *s, double rate, double decay)
{
    float rates[4];
    mica_adamw_rates(&t->options.adamw, rate, decay, t->steps + 1, rates);
    return mica_from_data(s, MICA_F32, 1, (const int64_t[]){4}, rates);
}

/* The new parameters and moments take the place of the old ones. */
static mica_status adopt_results(mica_trainer *t)
{
    mica_status status = MICA_OK;
    for (size_t i = 0; i < t->n && status == MICA_OK; i++) status = mica_params_set(t->params, i, t->out[2 + i]);
    for (size_t i = 0; i < 2 * t->n && status == MICA_OK; i++) {
        mica_drop(t->moment[i]);
        t->moment[i] = mica_keep(t->out[2 + t->n + i]);
    }
    if (status == MICA_OK) t->steps++;
    return status;
}

mica_status mica_trainer_step(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n, double rate,
                              double decay, mica_train_result *result)
{
    mica_trainer *t = trainer;
    mica_train_result r = {0};
    if (!t) return mica_fail(MICA_ERR_ARGUMENT, "trainer_step: no trainer");
    mica_status status = gather_inputs(t, data, n);
    if (status == MICA_OK) {
        t->in[0] = step_rates(t, s, rate, decay);
        status = mica_call(s, t->step, t->in, 1 + n + 3 * t->n, t->out, 2 + 3 * t->n);
    }
    if (status == MICA_OK) status = mica_item(t->out[0], &r.loss);
    if (status == MICA_OK) status = mica_item(t->out[1], &r.norm);
    if (result) *result = r;
    if (status == MICA_OK && !(isfinite(r.loss) && isfinite(r.norm)))
        status = mica_fail(MICA_ERR_STATE, "step %lld: the loss is %g and the norm of its gradients %g",
                           (long long)t->steps, r.loss, r.norm);
    return status == MICA_OK ? adopt_results(t) : status;
}

mica_status mica_trainer_loss(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n, double *loss)
{
    if (!trainer || !loss) return mica_fail(MICA_ERR_ARGUMENT, "trainer_loss: no trainer, or no place for the loss");
    mica_array *out = NULL;
    mica_status status = gather_inputs(trainer, data, n);
    if (status == MICA_OK) status = mica_call(s, trainer->loss, trainer->in + 1, n + trainer->n, &out, 1);
    return status == MICA_OK ? mica_item(out, loss) : status;
}

mica_status mica_trainer_graph(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n,
                               mica_array **out)
{
    if (!trainer || !out) return mica_fail(MICA_ERR_ARGUMENT, "trainer_graph: no trainer, or no place for the graph");
    const mica_status status = gather_inputs(trainer, data, n);
    if (status != MICA_OK) return status;
    trainer->in[0] = step_rates(trainer, s, 0, 0);
    return build_step(s, trainer->in, 1 + n + 3 * trainer->n, out, 2 + 3 * trainer->n, trainer);
}
