/* From a simplified graph to a plan. */
#ifndef MICA_PLAN_PLANNER_H
#define MICA_PLAN_PLANNER_H

#include "plan/target.h"

/* Takes over the arena of the graph on success (the plan then owns it); leaves it
 * unchanged on failure. threads: number of threads that will run the plan. */
mica_status mica__plan_new(mica__graph *g, const mica__target *target, uint32_t passes, int threads, mica__plan **out);
void mica__plan_free(mica__plan *plan);

void mica__plan_print(const mica__plan *plan, mica__text *text);
/* Prints the names of its ops: "add+sin". */
void mica__step_name(const mica__plan *plan, const mica__step *step, mica__text *text);

#endif
