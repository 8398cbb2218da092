/* See tuner.h.
 *
 * Every candidate of a choice gets a separate engine, whose plan uses it. Then the candidates run in
 * turn, so that thermal throttling of the GPU slows all of them. The fastest candidate is chosen if its
 * time is more than 3 % below that of the rule's candidate and its result differs only by rounding. */
#include "profile/tuner.h"

#include <math.h>
#include <stdio.h>

#include "backend/metal/metal_cache.h"
#include "backend/metal/metal_tuning.h"
#include "base/clock.h"
#include "profile/tune_work.h"
#include "runtime/run.h"

enum { MOST_CANDIDATES = 8, LEAST_ROUNDS = 3, MOST_ROUNDS = 1000 };
static const double worth = 0.97; /* a candidate is chosen below this share of the rule's time */

typedef struct candidate {
    mica_engine *engine;
    mica_scope *scope;          /* owns inputs and result; NULL: not tried               */
    mica__tune_inputs inputs;
    mica_array *result;         /* as f32                                                */
    mica_dtype dtype;           /* of the result before the cast                         */
    double ns;                  /* fastest run; NaN: no GPU clock, or the CPU ran a step */
    bool wrong;                 /* the result differs by more than rounding              */
} candidate;

typedef struct tuner {
    mica_tune_options options;
    mica__metal_device device;  /* without tuning: the rules choose                      */
    mica__gpu_tuning found;
} tuner;

/* An array that was not built is NULL: the scope has the reason. */
static mica_status evaluate(mica_scope *s, mica_array *x)
{
    return x ? mica__evaluate(s, &x, 1, NULL) : s->error.status;
}

/* One evaluation. *ns is its GPU time, NaN if it is not known. result may be NULL; otherwise the
 * candidate's scope owns it and its graph. */
static mica_status run_once(candidate *c, double *ns, mica_array **result)
{
    mica_stats before = {.struct_size = sizeof before}, after = before;
    const mica__backend *backend = c->engine->backend;
    mica_scope *s = result ? c->scope : mica__scope_open(c->engine);
    if (!s) return MICA_ERR_MEMORY;
    backend->add_stats(c->engine->device, &before);
    mica_array *y = mica__tune_build(s, &c->inputs);
    mica_status status = evaluate(s, y);
    backend->add_stats(c->engine->device, &after);
    const bool timed = after.gpu_kernels > before.gpu_kernels && after.gpu_cpu_steps == before.gpu_cpu_steps &&
                       after.gpu_ns > before.gpu_ns;
    *ns = timed ? (double)(after.gpu_ns - before.gpu_ns) : NAN;
    if (status == MICA_OK && result) {
        c->dtype = mica_array_dtype(y);
        *result = mica_cast(s, y, MICA_F32);
        status = evaluate(s, *result);
    }
    if (!result) mica__scope_close(s);
    return status;
}

static mica_status open_candidate(const tuner *t, mica__gpu_knob knob, uint32_t i, candidate *c)
{
    mica_engine_options options;
    mica__gpu_tuning tuning = {{0}};
    double first;
    tuning.candidate[knob] = (uint8_t)(i + 1);
    MICA_TRY(mica__metal_tune(&tuning));
    mica_engine_options_init(&options);
    options.backend = mica__backend_metal.name;
    MICA_TRY(mica__engine_open(&options, &c->engine));
    c->ns = NAN;
    c->scope = mica__scope_open(c->engine);
    if (!c->scope) return MICA_ERR_MEMORY;
    MICA_TRY(mica__tune_inputs_make(c->scope, knob, t->device.limits.software, &c->inputs));
    return run_once(c, &first, &c->result); /* this run plans and compiles: its time is not used */
}

/* The difference allowed for sums in another order, as a share of the largest element. Integers must be equal. */
static double rounding_of(mica_dtype dtype)
{
    if (!mica__is_float(dtype)) return 0;
    return dtype == MICA_F32 ? 1e-4 : 2e-2;
}

static bool is_same_result(const candidate *a, const candidate *b)
{
    const float *x = mica_data_f32(a->result), *y = mica_data_f32(b->result);
    const int64_t n = mica_array_size(a->result);
    const double rounding = rounding_of(a->dtype);
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)x[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= rounding * largest)) return false;
    return true;
}

/* Runs the candidates in turn until the time is over. One round is enough for a software device, whose
 * times are not used. */
static mica_status time_candidates(const tuner *t, candidate *c, uint32_t n)
{
    const uint64_t start = mica__now_ns();
    const int least = t->device.limits.software ? 1 : LEAST_ROUNDS;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        for (uint32_t i = 0; i < n; i++) {
            double ns;
            if (!c[i].scope) continue;
            MICA_TRY(run_once(&c[i], &ns, NULL));
            if (!(c[i].ns <= ns)) c[i].ns = ns;
        }
        if (round + 1 >= least && (double)(mica__now_ns() - start) > t->options.seconds * 1e9) break;
    }
    return MICA_OK;
}

static mica_status measure_choice(const tuner *t, const mica__gpu_knob_info *info, mica__gpu_knob knob, uint32_t usual,
                                  candidate *c, mica_tuned *tuned)
{
    for (uint32_t i = 0; i < info->n; i++) {
        if (!mica__gpu_fits(&t->device.limits, &info->shape[i])) continue;
        MICA_TRY(open_candidate(t, knob, i, &c[i]));
        tuned->tried++;
    }
    for (uint32_t i = 0; i < info->n; i++) {
        if (!c[i].scope) continue;
        c[i].wrong = !is_same_result(&c[usual], &c[i]);
        tuned->wrong += c[i].wrong;
    }
    return time_candidates(t, c, info->n);
}

static mica_status tune_choice(tuner *t, mica__gpu_knob knob)
{
    const mica__gpu_knob_info info = mica__gpu_knob_get(knob);
    const mica__gpu_shape *rule = mica__gpu_pick(&t->device.limits, knob, NULL, NULL);
    candidate c[MOST_CANDIDATES] = {{0}};
    char work[MICA__TUNE_TEXT] = "";
    mica_tuned tuned = {.struct_size = sizeof tuned, .choice = info.name, .work = work, .best_ns = NAN};
    if (info.n > MOST_CANDIDATES) return mica__fail(MICA_ERR_INTERNAL, "tune: %s has %u shapes", info.name, info.n);
    if (!rule) return MICA_OK; /* no candidate fits the device: the CPU runs the op */
    const uint32_t usual = (uint32_t)(rule - info.shape);
    mica_status status = measure_choice(t, &info, knob, usual, c, &tuned);
    uint32_t best = usual;
    for (uint32_t i = 0; i < info.n; i++)
        if (c[i].scope && !c[i].wrong && c[i].ns < c[best].ns) best = i;
    if (!(c[best].ns < worth * c[usual].ns)) best = usual;
    if (status == MICA_OK) {
        tuned.usual = rule->name, tuned.usual_ns = c[usual].ns;
        tuned.best = info.shape[best].name, tuned.best_ns = c[best].ns;
        t->found.candidate[knob] = best == usual ? 0 : (uint8_t)(best + 1);
        mica__tune_text(&c[usual].inputs, work);
        if (t->options.progress && !t->options.progress(&tuned, t->options.user))
            status = mica__fail(MICA_ERR_STATE, "tune: the progress function stopped it");
    }
    for (uint32_t i = 0; i < info.n; i++) {
        if (c[i].scope) mica__scope_close(c[i].scope);
        if (c[i].engine) mica__engine_close(c[i].engine);
    }
    return status;
}

mica_status mica__tune(const mica_tune_options *options, char *path, size_t cap)
{
    tuner t = {.options = *options};
    const char *why;
    char file[MICA__CACHE_PATH] = "";
    const mica__metal_device *device = mica__metal_get(&why);
    if (!device)
        return mica__fail(MICA_ERR_UNSUPPORTED, "tune: only GPU kernels have choices, and there is no GPU: %s", why);
    if (t.options.keep) MICA_TRY(mica__tuning_path(device, file)); /* fails before the measurements */
    const mica__gpu_tuning before = device->limits.tuning;
    t.device = *device;
    t.device.limits.tuning = (mica__gpu_tuning){{0}};
    mica_status status = MICA_OK;
    for (int k = 0; k < MICA__GPU_KNOBS && status == MICA_OK; k++) status = tune_choice(&t, (mica__gpu_knob)k);
    if (status == MICA_OK && t.options.keep) status = mica__tuning_store(device, &t.found);
    const mica_status set = mica__metal_tune(status == MICA_OK && t.options.keep ? &t.found : &before);
    if (status == MICA_OK && path && cap) snprintf(path, cap, "%s", file);
    return status != MICA_OK ? status : set;
}

mica_status mica__tune_reset(void)
{
    const char *why;
    const mica__gpu_tuning rules = {{0}};
    const mica__metal_device *device = mica__metal_get(&why);
    if (!device) return mica__fail(MICA_ERR_UNSUPPORTED, "tune: there is no GPU: %s", why);
    MICA_TRY(mica__tuning_remove(device));
    return mica__metal_tune(&rules);
}
