/* Measured peaks: how fast this machine multiplies and moves memory in loops
 * that do nothing else. The roofs that benchmarks are compared with, never
 * numbers from a data sheet. */
#ifndef MICA_PROFILE_PEAKS_H
#define MICA_PROFILE_PEAKS_H

#include "base/pool.h"

/* How much trouble to take. Tests take little; what they then measure is a
 * number, but no peak. */
typedef struct mica__peaks_effort {
    size_t dram_bytes;  /* memory to stream; 0: several times the last cache      */
    uint64_t sample_ns; /* one sample runs at least this long                     */
    int samples;        /* of which the fastest counts                            */
    int passes;         /* over everything, so that a short disturbance hits one  */
} mica__peaks_effort;

extern const mica__peaks_effort mica__peaks_full, mica__peaks_quick;

/* Fills all fields of peaks but struct_size. The pool should be idle. */
mica_status mica__peaks_measure(mica__pool *pool, const mica__peaks_effort *effort, mica_peaks *peaks);

/* f32 multiply-adds of two threads over those of one; NaN without a second. */
double mica__peaks_two_threads(mica__pool *pool, const mica__peaks_effort *effort);

#endif
