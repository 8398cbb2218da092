/* When the steps of a run began and ended, wherever they ran: by mica__now_ns, to which a
 * device's clock is converted. */
#ifndef MICA_BACKEND_STEP_TIMES_H
#define MICA_BACKEND_STEP_TIMES_H

#include "plan/plan.h"

typedef struct mica__step_time {
    char name[64];
    uint64_t start_ns, end_ns;  /* 0: not known                                          */
    bool on_device;             /* the backend fills the times in, at the latest when its end() returns */
} mica__step_time;

typedef struct mica__step_times {
    mica__step_time *time;
    uint32_t n, capacity;
} mica__step_times;

/* One more, the last; past MICA__STEP_TIMES, or without memory, there are no more. */
enum { MICA__STEP_TIMES = 1 << 16 };
bool mica__step_times_add(mica__step_times *times, const mica__plan *plan, const mica__step *step);
void mica__step_times_free(mica__step_times *times);

#endif
