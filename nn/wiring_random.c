/* See wiring_random.h. The number of words that a generator draws per call is part of the reproduced behaviour: numpy
 * rejects 32-bit words with Lemire's method for Generator and with a mask for RandomState. Wirings have fewer than
 * 2^32 synapses (checked by mica_wiring_new), so no call needs a 64-bit word. */
#include "wiring_random.h"

#include <string.h>

/* ------------------------------------------------------------------ PCG64 --- */

typedef struct seed_hash {
    uint32_t constant, factor;
} seed_hash;

static uint32_t seed_mix(seed_hash *h, uint32_t value)
{
    value ^= h->constant;
    h->constant *= h->factor;
    value *= h->constant;
    return value ^ value >> 16;
}

/* SeedSequence(seed).generate_state(4, uint64) */
static void seed_sequence(uint64_t seed, uint64_t out[4])
{
    seed_hash h = {0x43b0d7e5u, 0x931e8875u};
    uint32_t pool[4], words[8];
    for (int i = 0; i < 4; i++) pool[i] = seed_mix(&h, i < 2 ? (uint32_t)(seed >> 32 * i) : 0);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            if (from == to) continue;
            const uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * seed_mix(&h, pool[from]);
            pool[to] = mixed ^ mixed >> 16;
        }
    h = (seed_hash){0x8b51f9ddu, 0x58f38dedu};
    for (int i = 0; i < 8; i++) words[i] = seed_mix(&h, pool[i % 4]);
    for (int i = 0; i < 4; i++) out[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

__extension__ typedef unsigned __int128 wide_word;

static wide_word wide_of(uint64_t high, uint64_t low) { return (wide_word)high << 64 | low; }

static void pcg_step(wiring_pcg *g)
{
    const wide_word factor = wide_of(0x2360ED051FC65DA4u, 0x4385DF649FCCF645u);
    const wide_word state = wide_of(g->state_high, g->state_low) * factor + wide_of(g->inc_high, g->inc_low);
    g->state_high = (uint64_t)(state >> 64);
    g->state_low = (uint64_t)state;
}

void mica__wiring_pcg_seed(wiring_pcg *g, uint64_t seed)
{
    uint64_t v[4];
    seed_sequence(seed, v);
    const wide_word inc = wide_of(v[2], v[3]) << 1 | 1;
    *g = (wiring_pcg){.inc_high = (uint64_t)(inc >> 64), .inc_low = (uint64_t)inc};
    pcg_step(g);
    const wide_word state = wide_of(g->state_high, g->state_low) + wide_of(v[0], v[1]);
    g->state_high = (uint64_t)(state >> 64);
    g->state_low = (uint64_t)state;
    pcg_step(g);
}

static uint32_t pcg_next32(wiring_pcg *g)
{
    if (g->has_kept) {
        g->has_kept = false;
        return g->kept;
    }
    pcg_step(g);
    const uint64_t mixed = g->state_high ^ g->state_low;
    const unsigned turn = (unsigned)(g->state_high >> 58);
    const uint64_t word = mixed >> turn | mixed << (-turn & 63);
    g->kept = (uint32_t)(word >> 32);
    g->has_kept = true;
    return (uint32_t)word;
}

/* Returns 0 ... most with equal probability (Lemire's multiplication). */
static uint32_t pcg_bounded(wiring_pcg *g, uint32_t most)
{
    if (most == 0) return 0;
    const uint32_t n = most + 1;
    uint64_t m = (uint64_t)pcg_next32(g) * n;
    if ((uint32_t)m < n) {
        const uint32_t refused = (UINT32_MAX - most) % n;
        while ((uint32_t)m < refused) m = (uint64_t)pcg_next32(g) * n;
    }
    return (uint32_t)(m >> 32);
}

int64_t mica__wiring_pcg_choice(wiring_pcg *g, int64_t n) { return pcg_bounded(g, (uint32_t)(n - 1)); }

static void pcg_shuffle(wiring_pcg *g, int64_t n, int64_t first, int64_t *list)
{
    for (int64_t i = n - 1; i >= first; i--) {
        const int64_t j = pcg_bounded(g, (uint32_t)i), t = list[j];
        list[j] = list[i];
        list[i] = t;
    }
}

void mica__wiring_pcg_sample(wiring_pcg *g, int64_t n, int64_t k, int64_t *work, int64_t *out)
{
    if (n > 10000 && k > n / 50) { /* the tail of a shuffle */
        for (int64_t i = 0; i < n; i++) work[i] = i;
        pcg_shuffle(g, n, n - k > 1 ? n - k : 1, work);
        memcpy(out, work + (n - k), (size_t)k * sizeof *out);
        return;
    }
    /* Floyd's sampling, then a shuffle; work marks the indices already chosen */
    memset(work, 0, (size_t)n * sizeof *work);
    for (int64_t j = n - k; j < n; j++) {
        int64_t v = pcg_bounded(g, (uint32_t)j);
        if (work[v]) v = j;
        work[v] = 1;
        out[j - (n - k)] = v;
    }
    pcg_shuffle(g, k, 1, out);
}

/* ---------------------------------------------------------------- MT19937 --- */

void mica__wiring_mt_seed(wiring_mt *g, uint32_t seed)
{
    g->word[0] = seed;
    for (uint32_t i = 1; i < 624; i++) g->word[i] = 1812433253u * (g->word[i - 1] ^ g->word[i - 1] >> 30) + i;
    g->at = 624;
}

static void mt_refill(wiring_mt *g)
{
    for (int i = 0; i < 624; i++) {
        const uint32_t y = (g->word[i] & 0x80000000u) | (g->word[(i + 1) % 624] & 0x7fffffffu);
        g->word[i] = g->word[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    g->at = 0;
}

static uint32_t mt_next32(wiring_mt *g)
{
    if (g->at == 624) mt_refill(g);
    uint32_t y = g->word[g->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Returns 0 ... most: draws words under the smallest mask until one is in range. */
static uint32_t mt_interval(wiring_mt *g, uint32_t most)
{
    uint32_t mask = most, value;
    if (most == 0) return 0;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do value = mt_next32(g) & mask;
    while (value > most);
    return value;
}

int64_t mica__wiring_mt_choice(wiring_mt *g, int64_t n) { return mt_interval(g, (uint32_t)(n - 1)); }

void mica__wiring_mt_permutation(wiring_mt *g, int64_t n, int64_t *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = mt_interval(g, (uint32_t)i), t = out[j];
        out[j] = out[i];
        out[i] = t;
    }
}
