/* Measured peaks: the rates of arithmetic and memory of this machine, in loops that do
 * nothing else. Benchmarks are compared with these rates (roofline), never with numbers
 * from a data sheet. */
#ifndef MICA_PROFILE_PEAKS_H
#define MICA_PROFILE_PEAKS_H

#include "base/pool.h"

/* The effort of a measurement. Tests use little effort; their results are not peaks. */
typedef struct mica__peaks_effort {
    size_t dram_bytes;  /* memory to stream; 0: several times the last cache      */
    uint64_t sample_ns; /* one sample runs at least this long                     */
    int samples;        /* samples per figure; the fastest one counts             */
    int passes;         /* repetitions of all: a short disturbance affects only one */
} mica__peaks_effort;

extern const mica__peaks_effort mica__peaks_full, mica__peaks_quick;

/* Sets all fields of peaks except struct_size. The pool should be idle. */
mica_status mica__peaks_measure(mica__pool *pool, const mica__peaks_effort *effort, mica_peaks *peaks);

/* The f32 multiply-add rate of two threads divided by that of one; NaN if the pool has one thread. */
double mica__peaks_two_threads(mica__pool *pool, const mica__peaks_effort *effort);

#endif
