/* Random words and floats in vectors, once for each kind of CPU (random.def), with the
 * bits that random.c defines. */
#ifndef MICA_KERNELS_RANDOM_CPU_H
#define MICA_KERNELS_RANDOM_CPU_H

#include "graph/attrs.h"
#include "kernels/random/random_math.h"

/* A distribution of f32: see mica__normal_f32. */
typedef struct mica__random_floats {
    mica__dist dist;            /* UNIFORM, GUMBEL, or a normal one                      */
    float a, b, low, middle, high;
    int32_t side;
    mica__normal_far far;       /* end 0: not used                                       */
} mica__random_floats;

/* mica__normal_far in f64. */
typedef struct mica__random_far {
    double end, square, log_end, inside, beyond;
} mica__random_far;

/* The constants of a launch: the bounds of the result and, for a normal distribution, the
 * probabilities below a, between, above b; side: as in mica__normal_f32. */
typedef struct mica__random_parts {
    double a, b, low, middle, high;
    int32_t side;
    mica__random_far far;       /* end 0: the interval is not far from 0                 */
} mica__random_parts;

mica__random_parts mica__random_parts_of(const mica__attr_random *attr);
mica__normal_far mica__random_far_f32(const mica__random_far *far);

/* The words of blocks first ... first + blocks - 1, four each. */
typedef void mica__random_words_fn(uint64_t seed, uint64_t first, int64_t blocks, uint32_t *to);
typedef void mica__random_floats_fn(const mica__random_floats *f, const uint32_t *words, int64_t n, float *to);

typedef struct mica__random_variant {
    const char *name;
    unsigned needs;             /* CPU features                                          */
    mica__random_words_fn *words;
    mica__random_floats_fn *floats;
} mica__random_variant;

/* The *n variants that this CPU can run, the best last. */
const mica__random_variant *mica__random_variants(size_t *n);

#endif
