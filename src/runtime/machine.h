/* A description of this machine for `mica doctor`, as the system reports it. */
#ifndef MICA_RUNTIME_MACHINE_H
#define MICA_RUNTIME_MACHINE_H

#include "base/text.h"

/* Adds lines about the library file, CPU, features, caches and memory. */
void mica__machine_print(mica__text *text);

#endif
