/* How many threads are worth starting. */
#ifndef MICA_BASE_CORES_H
#define MICA_BASE_CORES_H

#include <stdbool.h>

/* The CPUs that this process may run on; where they are unlike, only the fast
 * ones, because work is waited for by the slowest thread; and no more than its
 * control group may use at a time. At least 1. */
int mica__cores(void);

/* The same from the files of Linux below root ("" for the system's own), for a
 * process that may run on the CPUs i < n with allowed[i]. */
int mica__cores_under(const char *root, const bool *allowed, int n);

#endif
