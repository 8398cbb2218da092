/* Start and end times of the steps of a run, on the clock of mica__now_ns. Times of a device are
 * converted to this clock. */
#ifndef MICA_BACKEND_STEP_TIMES_H
#define MICA_BACKEND_STEP_TIMES_H

#include "plan/plan.h"

typedef struct mica__step_time {
    char name[64];
    uint64_t start_ns, end_ns;  /* 0: not known                                          */
    bool on_device;             /* the backend sets the times, at the latest in end_run  */
} mica__step_time;

typedef struct mica__step_times {
    mica__step_time *time;
    uint32_t n, capacity;
} mica__step_times;

/* Appends an entry for the step. False: there are MICA__STEP_TIMES entries, or no memory. */
enum { MICA__STEP_TIMES = 1 << 16 };
bool mica__step_times_add(mica__step_times *times, const mica__plan *plan, const mica__step *step);
void mica__step_times_free(mica__step_times *times);

#endif
