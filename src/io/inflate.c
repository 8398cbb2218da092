/* See inflate.h. Huffman codes are canonical, so the lengths define the code. Codes of up to
 * nine bits are decoded by one table look-up, longer ones bit by bit with the counts per length. */
#include "io/inflate.h"

#include <string.h>

enum { FAST_BITS = 9, MAX_BITS = 15, MAX_SYMBOLS = 288 };

typedef struct huffman {
    uint16_t fast[1 << FAST_BITS]; /* length << 9 | symbol; 0: a longer code */
    uint16_t count[MAX_BITS + 1], symbol[MAX_SYMBOLS];
} huffman;

typedef struct inflate_state {
    mica__span in;
    size_t at;
    uint64_t bits;
    int n_bits;
    uint8_t *out;
    size_t cap, written;
    bool full;
    huffman literals, distances;
} inflate_state;

/* ------------------------------------------------------------------ bits --- */

/* Fills the bit buffer to at least 49 bits, if the input has them. */
static void refill(inflate_state *s)
{
    while (s->n_bits <= 48 && s->at < s->in.size) {
        s->bits |= (uint64_t)s->in.data[s->at++] << s->n_bits;
        s->n_bits += 8;
    }
}

static bool take_bits(inflate_state *s, int n, unsigned *out)
{
    refill(s);
    *out = (unsigned)(s->bits & ((1u << n) - 1));
    s->bits >>= n;
    s->n_bits -= n;
    return s->n_bits >= 0;
}

/* ----------------------------------------------------------------- codes --- */

static unsigned reversed(unsigned code, int length)
{
    unsigned r = 0;
    for (int i = 0; i < length; i++) r |= (code >> i & 1) << (length - 1 - i);
    return r;
}

/* False if the lengths are not a complete prefix code. No code, or a single code of one bit, is
 * also allowed, as encoders write it for one distance. */
static bool build_code(huffman *h, const uint8_t *lengths, int n)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < n; i++) h->count[lengths[i]]++;
    h->count[0] = 0;
    int left = 1, used = 0;
    uint16_t next[MAX_BITS + 2] = {0}, code[MAX_BITS + 2] = {0};
    for (int length = 1; length <= MAX_BITS; length++) {
        left = left * 2 - h->count[length];
        if (left < 0) return false;
        used += h->count[length];
        next[length + 1] = (uint16_t)(next[length] + h->count[length]);
        code[length + 1] = (uint16_t)((code[length] + h->count[length]) << 1);
    }
    if (left > 0 && !(used <= 1 && h->count[1] == used)) return false;
    for (int i = 0; i < n; i++) {
        const int length = lengths[i];
        if (!length) continue;
        h->symbol[next[length]++] = (uint16_t)i;
        const unsigned bits = reversed(code[length]++, length);
        for (unsigned at = bits; length <= FAST_BITS && at < 1u << FAST_BITS; at += 1u << length)
            h->fast[at] = (uint16_t)(length << 9 | i);
    }
    return true;
}

static int decode(inflate_state *s, const huffman *h)
{
    refill(s);
    const unsigned entry = h->fast[s->bits & ((1u << FAST_BITS) - 1)];
    if (entry) {
        s->bits >>= entry >> 9;
        s->n_bits -= (int)(entry >> 9);
        return s->n_bits >= 0 ? (int)(entry & 511) : -1;
    }
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= MAX_BITS; length++) {
        code |= (int)(s->bits & 1);
        s->bits >>= 1;
        if (--s->n_bits < 0) return -1;
        const int count = h->count[length];
        if (code - count < first) return h->symbol[index + code - first];
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    return -1;
}

/* ---------------------------------------------------------------- blocks --- */

static bool copy_match(inflate_state *s, int length, unsigned distance)
{
    if (distance > s->written) return false;
    for (; length && s->written < s->cap; length--, s->written++) s->out[s->written] = s->out[s->written - distance];
    s->full = length > 0;
    return true;
}

static bool inflate_codes(inflate_state *s)
{
    static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                             31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                               33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                               1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
        const int symbol = decode(s, &s->literals);
        if (symbol < 0 || symbol > 285) return false;
        if (symbol == 256) return true;
        if (symbol < 256) {
            if (s->written == s->cap) {
                s->full = true;
                return true;
            }
            s->out[s->written++] = (uint8_t)symbol;
            continue;
        }
        unsigned extra;
        if (!take_bits(s, length_extra[symbol - 257], &extra)) return false;
        const int length = length_base[symbol - 257] + (int)extra;
        const int d = decode(s, &s->distances);
        if (d < 0 || d > 29 || !take_bits(s, d < 4 ? 0 : d / 2 - 1, &extra)) return false;
        if (!copy_match(s, length, distance_base[d] + extra)) return false;
        if (s->full) return true;
    }
}

static bool inflate_stored(inflate_state *s)
{
    /* return unused bytes of the bit buffer: a stored block begins at a byte */
    s->at -= (size_t)(s->n_bits / 8);
    s->bits = 0;
    s->n_bits = 0;
    if (s->in.size - s->at < 4) return false;
    const uint8_t *p = s->in.data + s->at;
    const unsigned n = (unsigned)(p[0] | p[1] << 8), inverse = (unsigned)(p[2] | p[3] << 8);
    s->at += 4;
    if ((n ^ 0xffff) != inverse || n > s->in.size - s->at) return false;
    const size_t fit = n < s->cap - s->written ? n : s->cap - s->written;
    memcpy(s->out + s->written, s->in.data + s->at, fit);
    s->written += fit;
    s->at += n;
    s->full = fit < n;
    return true;
}

static bool fixed_codes(inflate_state *s)
{
    uint8_t lengths[MAX_SYMBOLS], distances[32];
    for (int i = 0; i < MAX_SYMBOLS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distances, 5, sizeof distances);
    return build_code(&s->literals, lengths, MAX_SYMBOLS) && build_code(&s->distances, distances, 32);
}

static bool dynamic_codes(inflate_state *s)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned n_literals, n_distances, n_lengths, v;
    uint8_t lengths[286 + 32] = {0};
    if (!take_bits(s, 5, &n_literals) || !take_bits(s, 5, &n_distances) || !take_bits(s, 4, &n_lengths)) return false;
    n_literals += 257, n_distances += 1, n_lengths += 4;
    if (n_literals > 286 || n_distances > 30) return false;
    for (unsigned i = 0; i < n_lengths; i++) {
        if (!take_bits(s, 3, &v)) return false;
        lengths[order[i]] = (uint8_t)v;
    }
    if (!build_code(&s->literals, lengths, 19)) return false;
    for (unsigned i = 0; i < n_literals + n_distances;) {
        const int symbol = decode(s, &s->literals);
        if (symbol < 0) return false;
        unsigned repeat = 1;
        uint8_t value = (uint8_t)symbol;
        if (symbol >= 16) {
            static const uint8_t extra[3] = {2, 3, 7}, base[3] = {3, 3, 11};
            if (!take_bits(s, extra[symbol - 16], &repeat)) return false;
            repeat += base[symbol - 16];
            if (symbol == 16 && i == 0) return false;
            value = symbol == 16 ? lengths[i - 1] : 0;
        }
        if (repeat > n_literals + n_distances - i) return false;
        for (; repeat; repeat--) lengths[i++] = value;
    }
    if (lengths[256] == 0) return false; /* the block would have no end symbol */
    uint8_t distances[32];
    memcpy(distances, lengths + n_literals, n_distances);
    return build_code(&s->literals, lengths, (int)n_literals) && build_code(&s->distances, distances, (int)n_distances);
}

mica__inflate_result mica__inflate(mica__span in, uint8_t *out, size_t cap, size_t *written)
{
    inflate_state s = {.in = in, .out = out, .cap = cap};
    unsigned last = 0, kind;
    bool good = true;
    while (good && !last && !s.full) {
        good = take_bits(&s, 1, &last) && take_bits(&s, 2, &kind);
        if (!good) break;
        if (kind == 0) good = inflate_stored(&s);
        else good = kind < 3 && (kind == 1 ? fixed_codes(&s) : dynamic_codes(&s)) && inflate_codes(&s);
    }
    *written = s.written;
    return !good ? MICA__INFLATE_BAD : s.full ? MICA__INFLATE_FULL : MICA__INFLATE_OK;
}

uint32_t mica__crc32(uint32_t crc, const void *data, size_t size)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) crc = table[(crc ^ p[i]) & 255] ^ crc >> 8;
    return ~crc;
}
