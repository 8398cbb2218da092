/* The two random streams of numpy that wirings are drawn from, bit for bit: numpy.random.default_rng and
 * numpy.random.RandomState, limited to the calls of the reference package. */
#ifndef MICA_NN_WIRING_RANDOM_H
#define MICA_NN_WIRING_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* PCG64 (XSL-RR 128/64) seeded by a SeedSequence, as default_rng does. */
typedef struct wiring_pcg {
    uint64_t state_high, state_low, inc_high, inc_low;
    uint32_t kept; /* the high half of a draw whose low half was used */
    bool has_kept;
} wiring_pcg;

void mica__wiring_pcg_seed(wiring_pcg *g, uint64_t seed);
/* Generator.choice of n items: returns an index. Nothing is drawn for n == 1. */
int64_t mica__wiring_pcg_choice(wiring_pcg *g, int64_t n);
/* Generator.choice without replacement: writes k of n indices to out; work has room for n. */
void mica__wiring_pcg_sample(wiring_pcg *g, int64_t n, int64_t k, int64_t *work, int64_t *out);

/* MT19937, as RandomState does. */
typedef struct wiring_mt {
    uint32_t word[624];
    int at;
} wiring_mt;

void mica__wiring_mt_seed(wiring_mt *g, uint32_t seed);
int64_t mica__wiring_mt_choice(wiring_mt *g, int64_t n);
/* out has room for n: the first k of a permutation are the sample. */
void mica__wiring_mt_permutation(wiring_mt *g, int64_t n, int64_t *out);

#endif
