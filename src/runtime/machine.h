/* What machine this is: read from the system, or unavailable. */
#ifndef MICA_RUNTIME_MACHINE_H
#define MICA_RUNTIME_MACHINE_H

#include "base/text.h"

/* Cores worth a thread each: performance cores where the system tells, else
 * those this process may run on. At least 1. */
int mica__machine_cores(void);

/* CPU, features, caches, memory: lines for a person. */
void mica__machine_print(mica__text *text);

#endif
