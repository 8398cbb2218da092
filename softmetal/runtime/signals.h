/* Turns faults of kernels and endless kernels into a status. */
#ifndef SOFTMETAL_SIGNALS_H
#define SOFTMETAL_SIGNALS_H

#include "engine.h"

/* Call before and after an OS thread runs threadgroups with the engine. */
bool sm_signals_enter(sm_engine *engine, char **message);
void sm_signals_leave(sm_engine *engine);

/* Call after a run was ended by a signal handler: its signal is still blocked. */
void sm_signals_unblock(void);

#endif
