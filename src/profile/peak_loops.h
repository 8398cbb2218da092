/* The inner loops of the measured peaks: one file for each instruction set, one line for each
 * loop in peak_loops.def.
 *
 * A compute loop keeps N_PEAK_SUMS independent accumulators in registers and does nothing else.
 * That is more than latency times issue width of current cores, so the loop reaches the limit of
 * the multiply units. The result only prevents the compiler from removing the work. */
#ifndef MICA_PROFILE_PEAK_LOOPS_H
#define MICA_PROFILE_PEAK_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* x86 has 16 vector registers, ARM has 32 (and up to four multiply units). */
enum { N_PEAK_SUMS = 12, N_PEAK_SUMS_NEON = 24 };

typedef enum mica__peak_kind {
    MICA__PEAK_FMA_F32,
    MICA__PEAK_DOT_I8,
    MICA__PEAK_DOT_BF16,
    MICA__PEAK_N_COMPUTE,
    MICA__PEAK_READ = MICA__PEAK_N_COMPUTE,
    MICA__PEAK_COPY,
    MICA__PEAK_TRIAD,
    MICA__PEAK_COUNT
} mica__peak_kind;

typedef float (*mica__peak_compute_fn)(int64_t rounds);

/* read: all of a; copy: y = a; triad: y = a + c b; repeated `rounds` times. n floats, a
 * multiple of MICA__PEAK_BLOCK; pointers are aligned to 64 bytes. */
enum { MICA__PEAK_BLOCK = 256 };
typedef float (*mica__peak_memory_fn)(float *y, const float *a, const float *b, size_t n, int64_t rounds);

#define PEAK_COMPUTE(kind, fn, needs, operations) float fn(int64_t rounds);
#define PEAK_MEMORY(kind, fn, needs) float fn(float *y, const float *a, const float *b, size_t n, int64_t rounds);
#include "profile/peak_loops.def"
#undef PEAK_COMPUTE
#undef PEAK_MEMORY

/* f(0) f(1) ...: accumulators stay in registers only if they are separate variables. */
#define PEAK_EACH_SUM(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define PEAK_EACH_SUM_NEON(f) PEAK_EACH_SUM(f) f(12) f(13) f(14) f(15) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23)

#endif
