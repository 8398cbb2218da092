/* See step_times.h. */
#include "backend/step_times.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "plan/planner.h"

bool mica__step_times_add(mica__step_times *t, const mica__plan *plan, const mica__step *step)
{
    if (t->n == t->capacity) {
        const uint32_t capacity = t->capacity ? 2 * t->capacity : 64;
        mica__step_time *more = t->n < MICA__STEP_TIMES ? mica__alloc(capacity * sizeof *more) : NULL;
        if (!more) return false;
        if (t->n) memcpy(more, t->time, t->n * sizeof *more);
        mica__free(t->time);
        t->time = more;
        t->capacity = capacity;
    }
    mica__step_time *one = &t->time[t->n++];
    *one = (mica__step_time){.start_ns = 0};
    mica__text text;
    mica__text_init(&text, one->name, sizeof one->name);
    mica__step_name(plan, step, &text);
    return true;
}

void mica__step_times_free(mica__step_times *t)
{
    mica__free(t->time);
    *t = (mica__step_times){.n = 0};
}
