/* Reads 16 bytes per step into two independent 64-bit states, so that their multiplies overlap. Each step is a
 * multiply and a rotation; the finaliser is that of MurmurHash3. Hash values differ between machines and are never
 * stored in files. */
#include "base/hash.h"

#include <string.h>

uint64_t mica__hash_u64(uint64_t value)
{
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdull;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ull;
    return value ^ value >> 33;
}

static uint64_t hash_step(uint64_t hash, uint64_t word)
{
    hash ^= word * 0x9e3779b97f4a7c15ull;
    hash = hash << 29 | hash >> 35;
    return hash * 0x87c37b91114253d5ull;
}

static uint64_t hash_word(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

uint64_t mica__hash(const void *data, size_t nbytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t hash = mica__hash_u64(seed ^ 0x6d6963615f686173ull) ^ nbytes, other = ~hash;
    for (; nbytes >= 16; nbytes -= 16, p += 16) {
        hash = hash_step(hash, hash_word(p));
        other = hash_step(other, hash_word(p + 8));
    }
    if (nbytes >= 8) {
        hash = hash_step(hash, hash_word(p));
        nbytes -= 8;
        p += 8;
    }
    if (nbytes) {
        uint64_t word = 0;
        memcpy(&word, p, nbytes);
        other = hash_step(other, word);
    }
    return mica__hash_u64(hash_step(hash, other));
}
