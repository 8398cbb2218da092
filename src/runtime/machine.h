/* What machine this is: read from the system, or unavailable. */
#ifndef MICA_RUNTIME_MACHINE_H
#define MICA_RUNTIME_MACHINE_H

#include "base/text.h"

/* CPU, features, caches, memory: lines for a person. */
void mica__machine_print(mica__text *text);

#endif
