/* Learning rate and weight decay as functions of the step. */
#include <math.h>

#include "mica_nn.h"

void mica_schedule_at(const mica_schedule *schedule, int64_t step, double *rate, double *decay)
{
    mica_schedule all = {.struct_size = sizeof all}, *c = &all;
    if (rate) *rate = 0;
    if (decay) *decay = 0;
    if (mica_struct_read("schedule_at: mica_schedule", c, sizeof *c, schedule) != MICA_OK) return; /* mica_last_error */
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
    case MICA_SCHEDULE_STEP:
        *rate = fmax(c->floor, peak * pow(c->factor, (double)(c->every > 0 ? (step - c->warmup) / c->every : 0)));
        return;
    case MICA_SCHEDULE_COSINE: *rate = c->floor + (peak - c->floor) * (1 + cos(acos(-1.0) * way)) / 2; return;
    case MICA_SCHEDULE_LINEAR:
    case MICA_SCHEDULE_TWO_STAGE: *rate = c->floor + (peak - c->floor) * (1 - way); return;
    }
    *rate = peak;
}
