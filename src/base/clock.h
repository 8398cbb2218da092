/* Monotonic time. */
#ifndef MICA_BASE_CLOCK_H
#define MICA_BASE_CLOCK_H

#include <stdint.h>

uint64_t mica__now_ns(void);

#endif
