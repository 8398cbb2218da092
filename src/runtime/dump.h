/* Showing what the engine does with a graph: as text for a caller, or on stderr
 * at each new plan if MICA_DUMP asks for it. */
#ifndef MICA_RUNTIME_DUMP_H
#define MICA_RUNTIME_DUMP_H

#include "plan/planner.h"

void mica__dump_graph(mica_dump what, const mica__graph *g);
void mica__dump_plan(const mica__plan *plan);

/* The text of one kind (all but MICA_DUMP_GRAPH), for mica_plan_text. */
mica_status mica__dump_text(const mica__plan *plan, mica_dump what, mica__text *text);

#endif
