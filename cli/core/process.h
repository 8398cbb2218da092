/* Time, memory and hashes of this process. */
#ifndef MICA_CLI_PROCESS_H
#define MICA_CLI_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Seconds of a monotonic clock. */
double cli_seconds(void);
/* Peak resident memory of this process in bytes; NaN: unavailable. */
double cli_peak_memory(void);
/* FNV-1a, 64 bits, of the bytes. */
uint64_t cli_hash(const void *data, size_t nbytes);

#endif
