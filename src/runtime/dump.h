/* Graphs, plans and kernels as text: for mica_plan_text, and on stderr for each new
 * plan if MICA_DUMP is set. */
#ifndef MICA_RUNTIME_DUMP_H
#define MICA_RUNTIME_DUMP_H

#include "plan/planner.h"

void mica__dump_graph(mica_dump what, const mica__graph *g);
void mica__dump_plan(const mica__plan *plan);

/* One kind of text for mica_plan_text; not MICA_DUMP_GRAPH, which a plan no longer has. */
mica_status mica__dump_text(const mica__plan *plan, mica_dump what, mica__text *text);

#endif
