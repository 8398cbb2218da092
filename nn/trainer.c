/* The trainer: loss, gradients, clipping and update as one compiled function. Inputs are rates, a seed, data,
 * parameters and the optimiser's state. Outputs are loss, norm, and the new parameters and state, which replace the
 * old ones. Nothing is planned after the first step; peak memory is that of two steps.
 *
 * Gradient accumulation: PART_ADD adds the gradients of one batch to sums; PART_LAST is a step that adds its own
 * gradients to the sums and uses the mean. */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values that change from step to step, in addition to the four of mica_optimiser_rates. */
enum { RATE_SCALE = 4, RATE_UNSCALE, RATE_MEAN, N_RATES };

static const double smallest_scale = 1.0 / 16384, largest_scale = 16777216;

void mica_trainer_options_init(mica_trainer_options *options)
{
    if (!options) return;
    *options = (mica_trainer_options){.struct_size = sizeof *options, .compute = MICA_F32, .scale_every = 2000};
    mica_optimiser_init(&options->optimiser, MICA_ADAMW);
}

/* ------------------------------------------------------------------ graph -- */

/* Mixed precision: returns whether parameter i is cast to the compute dtype. */
static bool is_narrowed(const mica_trainer *t, size_t i)
{
    const mica_dtype compute = t->options.compute;
    const mica_array *p = mica_params_at(t->params, i);
    return (compute == MICA_F16 || compute == MICA_BF16) && mica_params_is_trained(t->params, i) &&
           !mica__params_is_full(t->params, i) && mica_array_ndim(p) >= 2 && mica_array_dtype(p) == MICA_F32;
}

static mica_params *params_for_loss(const mica_trainer *t, mica_scope *s, mica_array *const *values)
{
    mica_array **seen = calloc(t->n, sizeof *seen);
    if (!seen) {
        mica_scope_fail(s, MICA_ERR_MEMORY, "out of memory: %zu parameters", t->n);
        return NULL;
    }
    for (size_t i = 0; i < t->n; i++)
        seen[i] = is_narrowed(t, i) ? mica_cast(s, values[i], t->options.compute) : values[i];
    mica_params *view = mica_scope_status(s) == MICA_OK ? mica__params_view(s, t->params, seen) : NULL;
    free(seen);
    return view;
}

mica_array *mica__trainer_loss_of(mica_trainer *t, mica_forward *f, mica_array *const *values, mica_array *const *data,
                                  size_t n_data, mica_params **view)
{
    f->params = params_for_loss(t, f->s, values);
    mica_array *loss = f->params ? t->options.loss(f, data, n_data, t->options.user) : NULL;
    if (loss && (mica_array_dtype(loss) == MICA_F16 || mica_array_dtype(loss) == MICA_BF16))
        loss = mica_cast(f->s, loss, MICA_F32);
    if (view) *view = f->params;
    else mica_params_free(f->params);
    return loss;
}

/* Gradients of the loss for the n_trained parameters p. The loss is multiplied by the loss scale and the gradients are
 * divided by it. */
static mica_status scaled_gradients(const mica_trainer *t, mica_scope *s, mica_array *rates, mica_array *loss,
                                    mica_array *const *p, mica_array **grads)
{
    const bool scaled = t->scale != 1;
    if (scaled) loss = mica_mul(s, loss, mica__rate_at(s, rates, RATE_SCALE));
    const mica_status status = mica_grad(s, loss, p, t->n_trained, grads);
    for (size_t j = 0; j < t->n_trained && status == MICA_OK && scaled; j++)
        grads[j] = mica_mul(s, grads[j], mica__rate_at(s, rates, RATE_UNSCALE));
    return status;
}

/* Pointers into the inputs or outputs of a part. */
typedef struct step_inputs {
    mica_array *rates, *seed, *const *data, *const *values, *const *state, *const *sum;
    size_t n_data;
} step_inputs;

static size_t part_inputs(const mica_trainer *t, trainer_part part)
{
    return 2 + t->n + (part != PART_ADD ? t->slots * t->n_trained : 0) + (part != PART_STEP ? t->n_trained : 0);
}

/* Order: rates, seed, data, all parameters, then the state (not PART_ADD), then sums (not PART_STEP). */
static step_inputs inputs_of(const mica_trainer *t, trainer_part part, mica_array *const *in, size_t n_in)
{
    step_inputs i = {.rates = in[0], .seed = in[1], .data = in + 2, .n_data = n_in - part_inputs(t, part)};
    i.values = i.data + i.n_data;
    i.state = i.values + t->n;
    i.sum = i.state + (part != PART_ADD ? t->slots * t->n_trained : 0);
    return i;
}

static size_t part_outputs(const mica_trainer *t, trainer_part part)
{
    return 2 + t->n - t->n_trained + (part == PART_ADD ? 1 : 1 + t->slots) * t->n_trained;
}

/* out: loss, norm, buffers, then new parameters and state, or sums. p and grads have room for n_trained each. */
static mica_status build_with(mica_trainer *t, trainer_part part, mica_scope *s, const step_inputs *in, mica_array **p,
                              mica_array **grads, mica_array **out)
{
    mica_array **rest = out + 2 + t->n - t->n_trained;
    mica_forward f;
    mica_forward_init(&f, s, NULL);
    f.training = true;
    f.seed = in->seed;
    mica_params *view;
    out[0] = mica__trainer_loss_of(t, &f, in->values, in->data, in->n_data, &view);
    for (size_t j = t->n_trained; j < t->n; j++) /* the loss may have replaced buffers */
        out[2 + j - t->n_trained] = mica_params_at(view, t->order[j]);
    mica_params_free(view);
    if (!out[0]) return mica_scope_status(s);
    for (size_t j = 0; j < t->n_trained; j++) p[j] = in->values[t->order[j]];
    mica_status status = scaled_gradients(t, s, in->rates, out[0], p, grads);
    if (status != MICA_OK) return status;
    if (part == PART_ADD) {
        out[1] = mica_global_norm(s, t->n_trained, grads);
        for (size_t j = 0; j < t->n_trained; j++) rest[j] = mica_add(s, in->sum[j], grads[j]);
        return mica_scope_status(s);
    }
    for (size_t j = 0; j < t->n_trained && part == PART_LAST; j++)
        grads[j] = mica_mul(s, mica_add(s, in->sum[j], grads[j]), mica__rate_at(s, in->rates, RATE_MEAN));
    return mica_optimiser_step(s, &t->options.optimiser, in->rates, t->n_trained, p, grads, in->state, rest,
                               rest + t->n_trained, &out[1]);
}

static mica_status build_part(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_out;
    const trainer_function *f = user;
    mica_trainer *t = f->trainer;
    const step_inputs inputs = inputs_of(t, f->part, in, n_in);
    mica_array **room = calloc(2 * t->n_trained, sizeof *room);
    if (!room) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu gradients", t->n_trained);
    const mica_status status = build_with(t, f->part, s, &inputs, room, room + t->n_trained, out);
    free(room);
    return status;
}

/* in: data, parameters */
static mica_status build_loss(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    (void)n_out;
    mica_trainer *t = user;
    const size_t n_data = n_in - t->n;
    mica_forward f;
    mica_forward_init(&f, s, NULL);
    out[0] = mica__trainer_loss_of(t, &f, in + n_data, in, n_data, NULL);
    return out[0] ? MICA_OK : mica_scope_status(s);
}

/* ------------------------------------------------------------------ life --- */

/* Makes `copies` zero arrays per trained parameter, evaluated and kept. Each is evaluated alone: equal ones would
 * share memory, and the second step would have to allocate more. */
static mica_status make_zeros(mica_trainer *t, size_t copies, mica_array **out)
{
    const size_t n = copies * t->n_trained;
    if (n == 0) return MICA_OK;
    mica_scope *s = mica_scope_begin(t->engine);
    if (!s) return mica_fail(MICA_ERR_MEMORY, "out of memory: a scope");
    mica_status status = MICA_OK;
    for (size_t i = 0; i < n && status == MICA_OK; i++) {
        const mica_array *p = mica_params_at(t->params, t->order[i % t->n_trained]);
        out[i] = mica_zeros(s, mica_array_dtype(p), mica_array_ndim(p), mica_array_shape(p));
        status = mica_eval(s, &out[i], 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (status == MICA_OK) mica_keep(out[i]);
        else out[i] = NULL;
    }
    mica_scope_end(s);
    return status;
}

static mica_status check_trainer_options(const mica_engine *engine, const mica_params *params,
                                         const mica_trainer_options *o)
{
    if (!engine || !o || !o->loss || mica_params_count(params) == 0)
        return mica_fail(MICA_ERR_ARGUMENT, "trainer: no engine, no parameters or no loss");
    const mica_status status = mica_optimiser_check(&o->optimiser);
    if (status != MICA_OK) return status;
    if (o->compute != MICA_F32 && o->compute != MICA_F16 && o->compute != MICA_BF16)
        return mica_fail(MICA_ERR_DTYPE, "trainer: computation in %s, not f32, f16 or bf16",
                         mica_dtype_name(o->compute));
    if (!(o->loss_scale >= 0 && o->loss_scale <= largest_scale) || o->scale_every < 1)
        return mica_fail(MICA_ERR_ARGUMENT, "trainer: loss scale %g (0 to %g), doubled every %lld steps", o->loss_scale,
                         largest_scale, (long long)o->scale_every);
    return MICA_OK;
}

static mica_status trainer_make(mica_trainer *t)
{
    t->order = calloc(t->n, sizeof *t->order);
    if (!t->order) return mica_fail(MICA_ERR_MEMORY, "out of memory: a trainer");
    for (size_t i = 0; i < t->n; i++)
        if (mica_params_is_trained(t->params, i)) t->order[t->n_trained++] = i;
    for (size_t i = 0, j = t->n_trained; i < t->n; i++)
        if (!mica_params_is_trained(t->params, i)) t->order[j++] = i;
    if (t->n_trained == 0) return mica_fail(MICA_ERR_ARGUMENT, "trainer: no parameter of the set is trained");
    t->slots = mica_optimiser_slots(&t->options.optimiser);
    t->state = calloc(t->slots * t->n_trained + 1, sizeof *t->state);
    t->out = calloc(part_outputs(t, PART_STEP), sizeof *t->out);
    if (!t->state || !t->out) return mica_fail(MICA_ERR_MEMORY, "out of memory: a trainer");
    mica_status status = mica_compile(t->engine, build_loss, t, &t->loss);
    for (int i = 0; i < N_PARTS && status == MICA_OK; i++) {
        t->parts[i] = (trainer_function){.trainer = t, .part = (trainer_part)i};
        status = mica_compile(t->engine, build_part, &t->parts[i], &t->parts[i].call);
    }
    return status == MICA_OK ? make_zeros(t, t->slots, t->state) : status;
}

mica_status mica_trainer_open(mica_engine *engine, mica_params *params, const mica_trainer_options *options,
                              mica_trainer **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "trainer: out is NULL");
    *out = NULL;
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    mica_status status = mica_struct_read("trainer: mica_trainer_options", &o, sizeof o, options);
    if (status == MICA_OK) status = check_trainer_options(engine, params, options ? &o : NULL);
    if (status != MICA_OK) return status;
    mica_trainer *t = calloc(1, sizeof *t);
    if (!t) return mica_fail(MICA_ERR_MEMORY, "out of memory: a trainer");
    *t = (mica_trainer){.engine = engine, .params = params, .options = o, .n = mica_params_count(params)};
    t->scale = o.loss_scale > 0 ? o.loss_scale : o.compute == MICA_F16 ? 65536 : 1;
    status = trainer_make(t);
    if (status == MICA_OK) *out = t;
    else mica_trainer_close(t);
    return status;
}

static void drop_all(mica_array **list, size_t n)
{
    for (size_t i = 0; i < n && list; i++) mica_drop(list[i]);
    free(list);
}

void mica_trainer_close(mica_trainer *trainer)
{
    if (!trainer) return;
    drop_all(trainer->state, trainer->slots * trainer->n_trained);
    drop_all(trainer->sum, trainer->n_trained);
    for (int i = 0; i < N_PARTS; i++) mica_function_free(trainer->parts[i].call);
    mica_function_free(trainer->loss);
    free(trainer->order);
    free(trainer->in);
    free(trainer->out);
    free(trainer);
}

int64_t mica_trainer_steps(const mica_trainer *trainer) { return trainer ? trainer->steps : 0; }

size_t mica_trainer_outputs(const mica_trainer *trainer) { return trainer ? part_outputs(trainer, PART_STEP) : 0; }

/* ------------------------------------------------------------------ steps -- */

/* Returns the inputs of a part without rates and seed; *count: their number. */
static mica_status gather_inputs(mica_trainer *t, trainer_part part, mica_array *const *data, size_t n, size_t *count)
{
    const size_t want = n + part_inputs(t, part);
    if (n > 0 && !data) return mica_fail(MICA_ERR_ARGUMENT, "trainer: no data");
    if (want > t->room) {
        mica_array **in = realloc(t->in, want * sizeof *in);
        if (!in) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu inputs of a step", want);
        t->in = in;
        t->room = want;
    }
    mica_array **at = t->in + 2;
    for (size_t i = 0; i < n; i++) *at++ = data[i];
    for (size_t i = 0; i < t->n; i++) *at++ = mica_params_at(t->params, i);
    for (size_t i = 0; i < t->slots * t->n_trained && part != PART_ADD; i++) *at++ = t->state[i];
    for (size_t j = 0; j < t->n_trained && part != PART_STEP; j++) *at++ = t->sum[j];
    *count = want;
    return MICA_OK;
}

static mica_array *step_rates(const mica_trainer *t, mica_scope *s, double rate, double decay)
{
    float rates[N_RATES];
    mica_optimiser_rates(&t->options.optimiser, rate, decay, t->steps + 1, rates);
    rates[RATE_SCALE] = (float)t->scale;
    rates[RATE_UNSCALE] = (float)(1 / t->scale);
    rates[RATE_MEAN] = (float)(1.0 / (double)(t->batches + 1));
    return mica_from_data(s, MICA_F32, 1, (const int64_t[]){N_RATES}, rates);
}

/* The seed of a batch: a function of the trainer's seed, the step and the index of the batch. */
static mica_array *step_seed(const mica_trainer *t, mica_scope *s)
{
    uint64_t seed = mica_seed_split(t->options.seed, (uint64_t)t->steps);
    if (t->batches > 0) seed = mica_seed_split(seed, (uint64_t)t->batches);
    const int32_t bits = (int32_t)(seed >> 33);
    return mica_from_data(s, MICA_I32, 0, NULL, &bits);
}

static mica_status not_finite(mica_trainer *t, mica_array *const *data, size_t n, const mica_train_result *r)
{
    char where[NN_NAME + 128];
    mica__trainer_diagnose(t, data, n, t->in[1], where, sizeof where);
    return mica_fail(MICA_ERR_STATE, "step %lld: the loss is %g and the norm of its gradients %g%s",
                     (long long)t->steps, r->loss, r->norm, where);
}

/* Runs a part; while gradients overflow, repeats it with half the loss scale. */
static mica_status run_trainer_part(mica_trainer *t, trainer_part part, mica_scope *s, mica_array *const *data,
                                    size_t n, double rate, double decay, mica_train_result *r)
{
    size_t count;
    mica_status status = gather_inputs(t, part, data, n, &count);
    if (status != MICA_OK) return status;
    t->in[1] = step_seed(t, s);
    for (;;) {
        t->in[0] = step_rates(t, s, rate, decay);
        status = mica_call(s, t->parts[part].call, t->in, count, t->out, part_outputs(t, part));
        if (status == MICA_OK) status = mica_item(t->out[0], &r->loss);
        if (status == MICA_OK) status = mica_item(t->out[1], &r->norm);
        if (status != MICA_OK) return status;
        r->loss_scale = t->scale;
        if (isfinite(r->loss) && isfinite(r->norm)) return MICA_OK;
        if (!isfinite(r->loss) || t->scale == 1 || t->scale / 2 < smallest_scale) return not_finite(t, data, n, r);
        t->scale /= 2;
        t->good = 0;
        r->overflows++;
    }
}

static void replace_arrays(mica_array **old, mica_array *const *new_ones, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mica_drop(old[i]);
        old[i] = mica_keep(new_ones[i]);
    }
}

/* Replaces the buffers and, after a step, the parameters. */
static mica_status adopt_params(mica_trainer *t, bool step)
{
    const size_t buffers = t->n - t->n_trained;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < buffers && status == MICA_OK; i++)
        status = mica_params_set(t->params, t->order[t->n_trained + i], t->out[2 + i]);
    for (size_t j = 0; j < t->n_trained && step && status == MICA_OK; j++)
        status = mica_params_set(t->params, t->order[j], t->out[2 + buffers + j]);
    return status;
}

/* Discards accumulated gradients. */
void mica__trainer_take_state(mica_trainer *t, mica_array *const *state)
{
    replace_arrays(t->state, state, t->slots * t->n_trained);
    drop_all(t->sum, t->n_trained);
    t->sum = NULL;
    t->batches = 0;
    t->loss_sum = 0;
}

/* Also called before a step, so that the step changes nothing if its result cannot be written. NULL: no result
 * wanted. */
static mica_status put_result(const mica_train_result *full, mica_train_result *result)
{
    return result ? mica_struct_write("trainer: mica_train_result", result, full, sizeof *full) : MICA_OK;
}

mica_status mica_trainer_step(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n, double rate,
                              double decay, mica_train_result *result)
{
    mica_trainer *t = trainer;
    mica_train_result r = {.struct_size = sizeof r};
    if (!t) return mica_fail(MICA_ERR_ARGUMENT, "trainer_step: no trainer");
    mica_status status = put_result(&r, result);
    if (status != MICA_OK) return status;
    status = run_trainer_part(t, t->batches > 0 ? PART_LAST : PART_STEP, s, data, n, rate, decay, &r);
    if (status == MICA_OK) status = adopt_params(t, true);
    if (status == MICA_OK) {
        r.loss = (t->loss_sum + r.loss) / (double)(t->batches + 1);
        t->steps++;
        mica__trainer_take_state(t, t->out + 2 + t->n);
        if (t->scale != 1 && ++t->good >= t->options.scale_every) {
            t->scale = fmin(2 * t->scale, largest_scale);
            t->good = 0;
        }
    }
    const mica_status put = put_result(&r, result);
    return status != MICA_OK ? status : put;
}

mica_status mica_trainer_accumulate(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n,
                                    mica_train_result *result)
{
    mica_trainer *t = trainer;
    mica_train_result r = {.struct_size = sizeof r};
    if (!t) return mica_fail(MICA_ERR_ARGUMENT, "trainer_accumulate: no trainer");
    mica_status status = put_result(&r, result);
    if (status != MICA_OK) return status;
    if (!t->sum) {
        t->sum = calloc(t->n_trained, sizeof *t->sum);
        status = t->sum ? make_zeros(t, 1, t->sum) : mica_fail(MICA_ERR_MEMORY, "out of memory: sums of gradients");
    }
    if (status == MICA_OK) status = run_trainer_part(t, PART_ADD, s, data, n, 0, 0, &r);
    if (status == MICA_OK) status = adopt_params(t, false);
    if (status == MICA_OK) {
        replace_arrays(t->sum, t->out + 2 + t->n - t->n_trained, t->n_trained);
        t->loss_sum += r.loss;
        t->batches++;
    }
    const mica_status put = put_result(&r, result);
    return status != MICA_OK ? status : put;
}

mica_status mica_trainer_loss(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n, double *loss)
{
    if (!trainer || !loss) return mica_fail(MICA_ERR_ARGUMENT, "trainer_loss: no trainer, or no place for the loss");
    mica_array *out = NULL;
    size_t count;
    mica_status status = gather_inputs(trainer, PART_STEP, data, n, &count);
    if (status == MICA_OK) status = mica_call(s, trainer->loss, trainer->in + 2, n + trainer->n, &out, 1);
    return status == MICA_OK ? mica_item(out, loss) : status;
}

mica_status mica_trainer_graph(mica_trainer *trainer, mica_scope *s, mica_array *const *data, size_t n,
                               mica_array **out)
{
    if (!trainer || !out) return mica_fail(MICA_ERR_ARGUMENT, "trainer_graph: no trainer, or no place for the graph");
    size_t count;
    const mica_status status = gather_inputs(trainer, PART_STEP, data, n, &count);
    if (status != MICA_OK) return status;
    trainer->in[0] = step_rates(trainer, s, 0, 0);
    trainer->in[1] = step_seed(trainer, s);
    return build_part(s, trainer->in, count, out, part_outputs(trainer, PART_STEP), &trainer->parts[PART_STEP]);
}
