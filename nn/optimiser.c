/* Optimisers: the parameter update as a graph. Values that change from step to step are inputs, so that one plan
 * serves all steps; constants are part of the plan. */
#include <math.h>
#include <string.h>

#include "trainer.h"

static const struct {
    const char *name;
    mica_optimiser first;
} optimisers[] = {
    [MICA_SGD] = {"sgd", {.kind = MICA_SGD}},
    [MICA_ADAM] = {"adam", {.kind = MICA_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    [MICA_ADAMW] = {"adamw", {.kind = MICA_ADAMW, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip = 1}},
    [MICA_LION] = {"lion", {.kind = MICA_LION, .beta1 = 0.9, .beta2 = 0.99}},
};
enum { N_OPTIMISERS = sizeof optimisers / sizeof optimisers[0] };

static bool is_optimiser(mica_optimiser_kind kind) { return (unsigned)kind < N_OPTIMISERS; }

void mica_optimiser_init(mica_optimiser *options, mica_optimiser_kind kind)
{
    if (!options) return;
    *options = is_optimiser(kind) ? optimisers[kind].first : (mica_optimiser){.kind = kind};
    options->struct_size = sizeof *options;
}

const char *mica_optimiser_name(mica_optimiser_kind kind) { return is_optimiser(kind) ? optimisers[kind].name : NULL; }

bool mica_optimiser_named(const char *name, mica_optimiser_kind *kind)
{
    for (int i = 0; name && kind && i < N_OPTIMISERS; i++)
        if (strcmp(name, optimisers[i].name) == 0) {
            *kind = (mica_optimiser_kind)i;
            return true;
        }
    return false;
}

/* Reads the caller's options and fills in the defaults of their kind. */
static mica_status read_optimiser(const mica_optimiser *given, mica_optimiser *o)
{
    if (!given) return mica_fail(MICA_ERR_ARGUMENT, "optimiser: no options");
    const char *name = "optimiser: mica_optimiser";
    *o = (mica_optimiser){.struct_size = sizeof *o};
    const mica_status status = mica_struct_read(name, o, sizeof *o, given);
    if (status != MICA_OK) return status;
    mica_optimiser_init(o, o->kind);
    return mica_struct_read(name, o, sizeof *o, given);
}

static mica_status check_optimiser(const mica_optimiser *o)
{
    if (!is_optimiser(o->kind))
        return mica_fail(MICA_ERR_ARGUMENT, "optimiser: kind %d is not a mica_optimiser_kind", (int)o->kind);
    const struct {
        const char *name;
        double value, below;
    } numbers[] = {{"beta1", o->beta1, 1}, {"beta2", o->beta2, 1},      {"momentum", o->momentum, 1},
                   {"eps", o->eps, 1},     {"clip", o->clip, INFINITY}, {"clip_value", o->clip_value, INFINITY}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!(numbers[i].value >= 0 && numbers[i].value < numbers[i].below))
            return mica_fail(MICA_ERR_ARGUMENT, "optimiser: %s is %g, not 0 to below %g", numbers[i].name,
                             numbers[i].value, numbers[i].below);
    return MICA_OK;
}

mica_status mica_optimiser_check(const mica_optimiser *options)
{
    mica_optimiser o;
    const mica_status status = read_optimiser(options, &o);
    return status == MICA_OK ? check_optimiser(&o) : status;
}

size_t mica_optimiser_slots(const mica_optimiser *options)
{
    mica_optimiser o;
    if (read_optimiser(options, &o) != MICA_OK) return 0;
    switch (o.kind) {
    case MICA_SGD: return o.momentum > 0 ? 1 : 0;
    case MICA_ADAM:
    case MICA_ADAMW: return 2;
    case MICA_LION: return 1;
    }
    return 0;
}

void mica_optimiser_rates(const mica_optimiser *options, double rate, double decay, int64_t t, float rates[4])
{
    mica_optimiser o;
    if (!rates || read_optimiser(options, &o) != MICA_OK) return;
    rates[0] = (float)rate;
    rates[1] = (float)decay;
    rates[2] = (float)(1 / (1 - pow(o.beta1, (double)t)));
    rates[3] = (float)(1 / (1 - pow(o.beta2, (double)t)));
}

/* -------------------------------------------------------------- clipping --- */

/* The result has the dtype of the first array. */
mica_array *mica_global_norm(mica_scope *s, size_t n, mica_array *const *g)
{
    mica_array *total = NULL;
    for (size_t i = 0; i < n && g; i++) {
        mica_array *square = mica_sum(s, mica_square(s, g[i]), NULL, 0, false);
        total = total ? mica_add(s, total, square) : square;
    }
    return mica_sqrt(s, total);
}

void mica_clip_gradients(mica_scope *s, mica_array *length, double norm, double value, size_t n, mica_array *const *g,
                         mica_array **out)
{
    mica_array *shrink = NULL;
    if (norm > 0) /* written so that a NaN stays NaN */
        shrink = mica_minimum(s, mica_div(s, mica_scalar(s, norm), mica_maximum(s, length, mica_scalar(s, 1e-12))),
                              mica_scalar(s, 1));
    for (size_t i = 0; i < n && g && out; i++) {
        out[i] = shrink ? mica_mul(s, g[i], shrink) : g[i];
        if (value > 0) out[i] = mica_clip(s, out[i], mica_scalar(s, -value), mica_scalar(s, value));
    }
}

/* ------------------------------------------------------------- the rules --- */

typedef struct param_update {
    mica_scope *s;
    const mica_optimiser *o;
    mica_array *rate, *decay, *fix1, *fix2;
    mica_array *kept; /* 1 - rate decay */
} param_update;

/* a x + b y */
static mica_array *mix(mica_scope *s, double a, mica_array *x, double b, mica_array *y)
{
    return mica_add(s, mica_mul(s, x, mica_scalar(s, a)), mica_mul(s, y, mica_scalar(s, b)));
}

/* Each rule returns the amount to subtract from the parameter and updates its state: m is the first slot, v the
 * second. */

static mica_array *sgd_move(const param_update *u, mica_array *g, mica_array **m, mica_array **v)
{
    (void)v;
    if (u->o->momentum > 0) {
        *m = mica_add(u->s, mica_mul(u->s, *m, mica_scalar(u->s, u->o->momentum)), g);
        g = u->o->nesterov ? mica_add(u->s, g, mica_mul(u->s, *m, mica_scalar(u->s, u->o->momentum))) : *m;
    }
    return mica_mul(u->s, g, u->rate);
}

static mica_array *adam_move(const param_update *u, mica_array *g, mica_array **m, mica_array **v)
{
    mica_scope *s = u->s;
    *m = mix(s, u->o->beta1, *m, 1 - u->o->beta1, g);
    *v = mix(s, u->o->beta2, *v, 1 - u->o->beta2, mica_square(s, g));
    mica_array *root = mica_sqrt(s, mica_mul(s, *v, u->fix2));
    return mica_div(s, mica_mul(s, *m, mica_mul(s, u->rate, u->fix1)), mica_add(s, root, mica_scalar(s, u->o->eps)));
}

static mica_array *lion_move(const param_update *u, mica_array *g, mica_array **m, mica_array **v)
{
    (void)v;
    mica_array *way = mica_sign(u->s, mix(u->s, u->o->beta1, *m, 1 - u->o->beta1, g));
    *m = mix(u->s, u->o->beta2, *m, 1 - u->o->beta2, g);
    return mica_mul(u->s, way, u->rate);
}

static const struct {
    mica_array *(*move)(const param_update *u, mica_array *g, mica_array **m, mica_array **v);
    bool apart; /* decay is subtracted from the parameter, not added to the gradient */
} update_rules[] = {
    [MICA_SGD] = {sgd_move, false},
    [MICA_ADAM] = {adam_move, false},
    [MICA_ADAMW] = {adam_move, true},
    [MICA_LION] = {lion_move, true},
};

static mica_array *update_one(const param_update *u, mica_array *p, mica_array *g, mica_array **m, mica_array **v)
{
    const bool decays = p && (u->o->decay_all || mica_array_ndim(p) >= 2), apart = update_rules[u->o->kind].apart;
    if (decays && !apart) g = mica_add(u->s, g, mica_mul(u->s, p, u->decay));
    mica_array *move = update_rules[u->o->kind].move(u, g, m, v);
    return mica_sub(u->s, decays && apart ? mica_mul(u->s, p, u->kept) : p, move);
}

mica_array *mica__rate_at(mica_scope *s, mica_array *rates, int64_t i)
{
    return mica_reshape(s, mica_slice_axis(s, rates, 0, i, i + 1, 1), 0, NULL);
}

mica_status mica_optimiser_step(mica_scope *s, const mica_optimiser *options, mica_array *rates, size_t n,
                                mica_array *const *p, mica_array *const *g, mica_array *const *state, mica_array **p1,
                                mica_array **state1, mica_array **norm)
{
    mica_optimiser all, *o = &all;
    mica_status status = read_optimiser(options, o);
    if (status == MICA_OK) status = check_optimiser(o);
    if (status != MICA_OK) return status;
    const size_t slots = mica_optimiser_slots(o);
    if (n == 0 || !p || !g || !p1 || (slots > 0 && (!state || !state1)))
        return mica_fail(MICA_ERR_ARGUMENT, "optimiser: no parameters, gradients or state");
    param_update u = {.s = s,
                      .o = o,
                      .rate = mica__rate_at(s, rates, 0),
                      .decay = mica__rate_at(s, rates, 1),
                      .fix1 = mica__rate_at(s, rates, 2),
                      .fix2 = mica__rate_at(s, rates, 3)};
    u.kept = mica_sub(s, mica_scalar(s, 1), mica_mul(s, u.rate, u.decay));
    mica_array *length = norm || o->clip > 0 ? mica_global_norm(s, n, g) : NULL;
    if (norm) *norm = length;
    for (size_t i = 0; i < n; i++) {
        mica_array *clipped, *slot[2] = {NULL, NULL};
        mica_clip_gradients(s, length, o->clip, o->clip_value, 1, &g[i], &clipped);
        for (size_t k = 0; k < slots; k++) slot[k] = state[k * n + i];
        p1[i] = update_one(&u, p[i], clipped, &slot[0], &slot[1]);
        for (size_t k = 0; k < slots; k++) state1[k * n + i] = slot[k];
    }
    return mica_scope_status(s);
}
