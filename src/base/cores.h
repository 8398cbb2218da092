/* The default number of threads. */
#ifndef MICA_BASE_CORES_H
#define MICA_BASE_CORES_H

#include <stdbool.h>

/* The number of CPUs that this process may run on, at least 1. On hybrid CPUs only
 * the fast cores count, because a job ends when its slowest thread ends. The CPU
 * quota of the control group is an upper limit. */
int mica__cores(void);

/* The same from the Linux files below root ("" for the real ones; tests pass a
 * folder), for a process that may run on the CPUs i < n with allowed[i]. */
int mica__cores_under(const char *root, const bool *allowed, int n);

#endif
