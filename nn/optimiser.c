/* AdamW with clipping of the global norm, and schedules. What changes from step to
 * step is data, so that the step stays one plan; what does not is part of it. */
#include <math.h>
#include <stdlib.h>

#include "mica_nn.h"

void mica_adamw_init(mica_adamw *options)
{
    if (options)
        *options = (mica_adamw){.struct_size = sizeof *options, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip = 1};
}

void mica_adamw_rates(const mica_adamw *options, double rate, double decay, int64_t t, float rates[4])
{
    rates[0] = (float)rate;
    rates[1] = (float)decay;
    rates[2] = (float)(1 / (1 - pow(options->beta1, (double)t)));
    rates[3] = (float)(1 / (1 - pow(options->beta2, (double)t)));
}

/* a x + b y */
static mica_array *mix(mica_scope *s, double a, mica_array *x, double b, mica_array *y)
{
    return mica_add(s, mica_mul(s, x, mica_scalar(s, a)), mica_mul(s, y, mica_scalar(s, b)));
}

/* The norm of all gradients; in the dtype of the first. */
static mica_array *global_norm(mica_scope *s, size_t n, mica_array *const *g)
{
    mica_array *total = NULL;
    for (size_t i = 0; i < n; i++) {
        mica_array *square = mica_sum(s, mica_square(s, g[i]), NULL, 0, false);
        total = total ? mica_add(s, total, square) : square;
    }
    return mica_sqrt(s, total);
}

static mica_array *rate_at(mica_scope *s, mica_array *rates, int64_t i)
{
    return mica_reshape(s, mica_slice_axis(s, rates, 0, i, i + 1, 1), 0, NULL);
}

mica_status mica_adamw_step(mica_scope *s, const mica_adamw *options, mica_array *rates, size_t n, mica_array *const *p,
                            mica_array *const *g, mica_array *const *m, mica_array *const *v, mica_array **p1,
                            mica_array **m1, mica_array **v1, mica_array **norm)
{
    mica_adamw o;
    mica_adamw_init(&o);
    if (options) o = *options;
    if (n == 0) return mica_fail(MICA_ERR_ARGUMENT, "adamw: no parameters");
    mica_array *rate = rate_at(s, rates, 0), *decay = rate_at(s, rates, 1);
    mica_array *fix1 = rate_at(s, rates, 2), *fix2 = rate_at(s, rates, 3);
    mica_array *length = global_norm(s, n, g), *shrink = NULL;
    if (norm) *norm = length;
    if (o.clip > 0) /* written so that a NaN stays one */
        shrink = mica_minimum(s, mica_div(s, mica_scalar(s, o.clip), mica_maximum(s, length, mica_scalar(s, 1e-12))),
                              mica_scalar(s, 1));
    mica_array *kept = mica_sub(s, mica_scalar(s, 1), mica_mul(s, rate, decay));
    for (size_t i = 0; i < n; i++) {
        mica_array *grad = shrink ? mica_mul(s, g[i], shrink) : g[i];
        m1[i] = mix(s, o.beta1, m[i], 1 - o.beta1, grad);
        v1[i] = mix(s, o.beta2, v[i], 1 - o.beta2, mica_square(s, grad));
        mica_array *root = mica_sqrt(s, mica_mul(s, v1[i], fix2));
        mica_array *move =
            mica_div(s, mica_mul(s, m1[i], mica_mul(s, rate, fix1)), mica_add(s, root, mica_scalar(s, o.eps)));
        mica_array *old = p[i] && mica_array_ndim(p[i]) >= 2 ? mica_mul(s, p[i], kept) : p[i];
        p1[i] = mica_sub(s, old, move);
    }
    return mica_scope_status(s);
}

/* ------------------------------------------------------------- schedules --- */

void mica_schedule_at(const mica_schedule *schedule, int64_t step, double *rate, double *decay)
{
    const mica_schedule *c = schedule;
    const bool second = c->kind == MICA_SCHEDULE_TWO_STAGE && 2 * step >= c->steps;
    const double peak = second ? c->peak2 : c->peak;
    if (decay) *decay = second ? 0 : c->decay;
    if (!rate) return;
    if (step < c->warmup) {
        *rate = peak * (double)(step + 1) / (double)c->warmup;
        return;
    }
    /* 0 after the warm-up, 1 after the last step */
    const double span = (double)(c->steps > c->warmup ? c->steps - c->warmup : 1);
    const double way = fmin(1, (double)(step - c->warmup) / span);
    switch (c->kind) {
    case MICA_SCHEDULE_CONSTANT: *rate = peak; return;
    case MICA_SCHEDULE_COSINE: *rate = c->floor + (peak - c->floor) * (1 + cos(acos(-1.0) * way)) / 2; return;
    case MICA_SCHEDULE_LINEAR:
    case MICA_SCHEDULE_TWO_STAGE: *rate = c->floor + (peak - c->floor) * (1 - way); return;
    }
    *rate = peak;
}
