/* RANDOM: numbers that depend on seed and index only, so that every backend and number
 * of threads has the same ones; cpu computes them in vectors (random_body.inc). Philox 4x32-10
 * (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) gives four words for a counter:
 *
 *   32 bits of element i   word i % 4 of philox(counter i / 4, key seed)
 *   64 bits of element i   words 2 * (i % 2), low, and 2 * (i % 2) + 1, high, of
 *                          philox(counter i / 2, key seed)
 *
 * with counter {low, high, 0, 0} and key {low, high}. f16, bf16, f32 use 32
 * bits and the arithmetic of random_math.h, which gives the same result on
 * every machine; f64 and integers use 64 bits.
 *
 *   UNIFORM    a + u * (b - a), u = the upper 24 (f64: 53) bits as a fraction;
 *              never b: then the largest number below b.
 *   NORMAL, TRUNCATED_NORMAL, GUMBEL   from u = (bits + 1/2) / 2^32 (2^64), kept
 *              as the distance from the nearer end of (0, 1), so that both
 *              tails are as fine as the bits allow. A truncated normal that begins 8 (f64: 30) or more standard
 *              deviations from 0 is drawn from ratios of probabilities (mica__normal_far_f32).
 *   INTEGER    low + the upper 64 bits of bits * (high - low): the bias of a
 *              value is below (high - low) / 2^64.
 *
 * f16 and bf16 are the f32 number rounded, but not out of the requested range. */
#ifndef MICA_KERNELS_RANDOM_H
#define MICA_KERNELS_RANDOM_H

#include "kernels/launch.h"

mica_status mica__random_ref(const mica__launch *launch);
mica_status mica__random_cpu(const mica__launch *launch);
mica_status mica__random_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);

/* Four words for a 128-bit counter and a 64-bit key. */
void mica__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
