/* Faults of kernels and kernels without an end, turned into a status. */
#ifndef SOFTMETAL_SIGNALS_H
#define SOFTMETAL_SIGNALS_H

#include "engine.h"

/* Before and after an OS thread runs threadgroups with the engine. */
bool sm_signals_enter(sm_engine *engine, char **message);
void sm_signals_leave(sm_engine *engine);

/* After a run was ended from a signal handler, whose signal is still blocked. */
void sm_signals_unblock(void);

#endif
