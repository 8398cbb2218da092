/* The Deflate decoder (src/io/inflate.c) and its CRC-32 against zlib, on raw streams. zlib gets one byte more room than
 * mica: if it writes that byte, the data are larger than the buffer.
 *
 * Two generators: what zlib compresses at any level and strategy, and blocks written bit by bit with random codes. The
 * second reaches what no compressor writes: incomplete and over-subscribed codes, repeats across the two tables, far
 * distances. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "differential.h"
#include "io/inflate.h"

enum { ROOM = 1 << 15, MAX_ROOM = (1 << 17) + 1 };

enum { STORED_CUT, N_REASONS };
static const differ_reason reasons[] = {
    [STORED_CUT] = {"cut stored block",
                    "mica calls a stored block that ends after the input invalid before it copies; zlib "
                    "copies first, and the buffer is full before it notices. Neither succeeds"},
};

/* ------------------------------------------------------------- comparing --- */

/* *cut: zlib used all input and needs more. */
static mica__inflate_result zlib_inflate(mica__span in, uint8_t *out, size_t cap, size_t *written, bool *cut)
{
    static z_stream stream;
    static bool ready;
    if (ready ? inflateReset(&stream) != Z_OK : inflateInit2(&stream, -15) != Z_OK) abort();
    ready = true;
    uint8_t none = 0; /* zlib refuses a NULL pointer, also for no bytes */
    stream.next_in = in.size ? (uint8_t *)(uintptr_t)in.data : &none;
    stream.avail_in = (uInt)in.size;
    stream.next_out = out;
    stream.avail_out = (uInt)cap + 1;
    const int status = inflate(&stream, Z_FINISH);
    *written = stream.total_out;
    *cut = status == Z_BUF_ERROR && stream.avail_in == 0 && *written <= cap;
    if (*written > cap) {
        *written = cap;
        return MICA__INFLATE_FULL;
    }
    return status == Z_STREAM_END ? MICA__INFLATE_OK : MICA__INFLATE_BAD;
}

/* Does the stream end too early, whatever the size of the buffer? */
static bool is_cut(mica__span in)
{
    static uint8_t out[MAX_ROOM];
    size_t n;
    bool cut;
    (void)zlib_inflate(in, out, MAX_ROOM - 1, &n, &cut);
    return cut;
}

/* The first byte is the size of the buffer in units of 128 bytes, the rest the stream. */
static void compare(differ *d, const uint8_t *data, size_t size)
{
    static const char *const names[] = {"complete", "full", "invalid"};
    static uint8_t theirs[ROOM + 1];
    if (size == 0) return;
    const size_t cap = data[0] == 255 ? ROOM : 128u * data[0];
    uint8_t *ours = malloc(cap ? cap : 1); /* of exactly this size, for ASan */
    size_t n = 0, m = 0;
    bool cut;
    if (!ours) abort();
    const mica__span in = {data + 1, size - 1};
    const mica__inflate_result a = mica__inflate(in, ours, cap, &n), b = zlib_inflate(in, theirs, cap, &m, &cut);
    const size_t common = n < m ? n : m;
    if (memcmp(ours, theirs, common) != 0)
        differ_fail(d, "byte %zu of the output differs", differ_first(ours, common, theirs, common));
    else if (a == MICA__INFLATE_BAD && b == MICA__INFLATE_FULL && is_cut(in)) differ_listed(d, STORED_CUT);
    else if (a != b) differ_fail(d, "mica: %s after %zu bytes, zlib: %s after %zu", names[a], n, names[b], m);
    else if (a != MICA__INFLATE_BAD && n != m) differ_fail(d, "mica wrote %zu bytes, zlib %zu", n, m);
    else if (mica__crc32(0, ours, n) != crc32(0, ours, (uInt)n)) differ_fail(d, "the CRC-32 of %zu bytes differs", n);
    else differ_agree(d, a != MICA__INFLATE_BAD);
    free(ours);
}

/* ------------------------------------------------------------------ bits --- */

typedef struct bit_writer {
    differ_bytes *out;
    uint32_t bits;
    unsigned n;
} bit_writer;

/* The lowest bit first. */
static void put_bits(bit_writer *w, unsigned value, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        w->bits |= (value >> i & 1) << w->n;
        if (++w->n < 8) continue;
        differ_byte(w->out, w->bits);
        w->bits = w->n = 0;
    }
}

static void end_byte(bit_writer *w)
{
    if (w->n) put_bits(w, 0, 8 - w->n);
}

/* ----------------------------------------------------------------- codes --- */

enum { N_LITERALS = 286, N_DISTANCES = 30, N_LENGTHS = 19, LONGEST = 15 };

typedef struct code {
    uint8_t length[320];
    uint16_t bits[320]; /* reversed, ready to write */
    int n;
} code;

/* The canonical code of the lengths (RFC 1951, 3.2.2). */
static void number_codes(code *c)
{
    unsigned count[LONGEST + 1] = {0}, next[LONGEST + 2] = {0};
    for (int i = 0; i < c->n; i++) count[c->length[i]]++;
    count[0] = 0;
    for (int l = 1; l <= LONGEST; l++) next[l + 1] = (next[l] + count[l]) << 1;
    for (int i = 0; i < c->n; i++) {
        unsigned v = next[c->length[i]]++, r = 0;
        for (int k = 0; k < c->length[i]; k++) r |= (v >> k & 1) << (c->length[i] - 1 - k);
        c->bits[i] = (uint16_t)r;
    }
}

/* A complete code with `used` symbols of n: leaves of a random tree are split until there are enough. */
static void random_code(uint64_t *r, code *c, int n, int used, int longest)
{
    uint8_t leaves[320] = {1, 1};
    int n_leaves = used < 2 ? used : 2;
    memset(c->length, 0, sizeof c->length);
    c->n = n;
    for (int tries = 0; n_leaves < used && tries < 4000; tries++) {
        const unsigned at = differ_below(r, (unsigned)n_leaves);
        if (leaves[at] >= longest) continue;
        leaves[n_leaves++] = ++leaves[at];
    }
    for (int i = 0; i < n_leaves;) {
        const unsigned at = differ_below(r, (unsigned)n);
        if (!c->length[at]) c->length[at] = leaves[i++];
    }
}

/* Makes sure that a symbol has a code, by moving that of another. */
static void need_symbol(code *c, int symbol)
{
    for (int i = 0; i < c->n && !c->length[symbol]; i++)
        if (c->length[i] && i != 256) {
            c->length[symbol] = c->length[i];
            c->length[i] = 0;
        }
}

/* ---------------------------------------------------------------- blocks --- */

static void put_symbol(bit_writer *w, const code *c, int symbol) { put_bits(w, c->bits[symbol], c->length[symbol]); }

/* A symbol that has a code; -1 if there is none. */
static int any_symbol(uint64_t *r, const code *c)
{
    const int from = (int)differ_below(r, (unsigned)c->n);
    for (int i = 0; i < c->n; i++)
        if (c->length[(from + i) % c->n]) return (from + i) % c->n;
    return -1;
}

static unsigned length_bits(int symbol) { return symbol < 265 || symbol > 284 ? 0 : (unsigned)(symbol - 261) / 4; }
static unsigned distance_bits(int symbol) { return symbol < 4 ? 0 : (unsigned)symbol / 2 - 1; }

/* Symbols with their extra bits. Distances are short at first, so that most of them are valid. */
static void put_data(uint64_t *r, bit_writer *w, const code *literals, const code *distances)
{
    for (unsigned n = differ_below(r, 60), done = 0; n > 0; n--) {
        int symbol = any_symbol(r, literals);
        if (symbol == 256 || (symbol > 256 && done < 4 && !differ_one_in(r, 30))) continue;
        if (symbol < 0) break;
        put_symbol(w, literals, symbol);
        done++;
        if (symbol < 256) continue;
        if (symbol == 284 && differ_one_in(r, 2)) put_bits(w, 31, 5); /* 258, the other way */
        else put_bits(w, (unsigned)parity_random(r), length_bits(symbol));
        int d = any_symbol(r, distances);
        for (int tries = 0; tries < 6 && d > 5; tries++) d = any_symbol(r, distances);
        if (d < 0) d = 0;
        put_symbol(w, distances, d);
        put_bits(w, differ_one_in(r, 4) ? (unsigned)parity_random(r) : 0, distance_bits(d));
    }
    if (!differ_one_in(r, 60)) put_symbol(w, literals, 256);
}

static void put_stored(uint64_t *r, bit_writer *w)
{
    const unsigned n = differ_one_in(r, 10) ? differ_below(r, 4000) : differ_below(r, 40);
    end_byte(w);
    put_bits(w, n, 16);
    put_bits(w, (n ^ 0xffff) ^ (differ_one_in(r, 60) ? 1u << differ_below(r, 16) : 0), 16);
    for (unsigned i = differ_one_in(r, 60) ? n / 2 : n; i > 0; i--) put_bits(w, (unsigned)parity_random(r) & 255, 8);
}

static void fixed_codes(code *literals, code *distances)
{
    *literals = (code){.n = 288};
    *distances = (code){.n = 32};
    for (int i = 0; i < 288; i++) literals->length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distances->length, 5, 32);
    number_codes(literals);
    number_codes(distances);
}

static void put_fixed(uint64_t *r, bit_writer *w)
{
    code literals, distances;
    fixed_codes(&literals, &distances);
    if (!differ_one_in(r, 20)) literals.n = 286, distances.n = 30; /* the rest has codes that are invalid */
    put_data(r, w, &literals, &distances);
}

/* 28 KB and more from few bytes, then distances that reach back so far. */
static void put_far(uint64_t *r, bit_writer *w)
{
    enum { COPIES = 110 };
    code literals, distances;
    fixed_codes(&literals, &distances);
    for (int i = 0; i < 4; i++) put_symbol(w, &literals, (int)differ_below(r, 256));
    for (int i = 0; i < COPIES; i++) {
        put_symbol(w, &literals, 285);
        put_symbol(w, &distances, (int)differ_below(r, 4));
        if (differ_one_in(r, 4)) put_symbol(w, &literals, (int)differ_below(r, 256));
    }
    for (unsigned n = differ_below(r, 12); n > 0; n--) {
        const int d = 20 + (int)differ_below(r, 10);
        put_symbol(w, &literals, 257 + (int)differ_below(r, 8));
        put_symbol(w, &distances, d);
        put_bits(w, (unsigned)parity_random(r), distance_bits(d));
    }
    put_symbol(w, &literals, 256);
}

/* The lengths of both codes, with symbols 16, 17 and 18 for repeats where they fit. */
static void put_lengths(uint64_t *r, bit_writer *w, const uint8_t *lengths, int n, const code *c)
{
    int i = 0;
    if (c->length[16] && !lengths[0] && !lengths[1] && !lengths[2] && differ_one_in(r, 30)) {
        put_symbol(w, c, 16), put_bits(w, 0, 2); /* there is no length before it to repeat: invalid */
        i = 3;
    }
    while (i < n) {
        int same = 1;
        while (i + same < n && lengths[i + same] == lengths[i]) same++;
        if (lengths[i] == 0 && same >= 11 && c->length[18] && !differ_one_in(r, 8)) {
            if (same > 138) same = 138;
            put_symbol(w, c, 18), put_bits(w, (unsigned)same - 11, 7);
        } else if (lengths[i] == 0 && same >= 3 && c->length[17] && !differ_one_in(r, 4)) {
            if (same > 10) same = 10;
            put_symbol(w, c, 17), put_bits(w, (unsigned)same - 3, 3);
        } else if (i && lengths[i] == lengths[i - 1] && same >= 3 && c->length[16] && !differ_one_in(r, 4)) {
            if (same > 6) same = 6;
            put_symbol(w, c, 16), put_bits(w, (unsigned)same - 3, 2);
        } else {
            put_symbol(w, c, lengths[i]);
            same = 1;
        }
        i += same;
    }
}

/* Now and then one length is wrong, which makes the code incomplete or over-subscribed. */
static void damage(uint64_t *r, code *c, unsigned one_in, int longest)
{
    if (!differ_one_in(r, one_in)) return;
    c->length[differ_below(r, (unsigned)c->n)] = (uint8_t)differ_below(r, (unsigned)longest + 1);
}

static void put_dynamic(uint64_t *r, bit_writer *w)
{
    static const uint8_t order[N_LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    code literals, distances, lengths;
    const int n_literals = 257 + (int)differ_below(r, differ_one_in(r, 30) ? 32 : 30);
    const int n_distances = 1 + (int)differ_below(r, differ_one_in(r, 30) ? 32 : 30);
    const int longest = differ_one_in(r, 3) ? LONGEST : 9;
    const int used = differ_one_in(r, 6) ? 1 + (int)differ_below(r, 3) : 2 + (int)differ_below(r, 120);
    random_code(r, &literals, n_literals, used, longest);
    random_code(r, &distances, n_distances, (int)differ_below(r, (unsigned)n_distances + 1), longest);
    if (!differ_one_in(r, 50)) need_symbol(&literals, 256);
    damage(r, &literals, 40, longest);
    damage(r, &distances, 20, longest);
    uint8_t all[640];
    bool seen[N_LENGTHS] = {false};
    int n_seen = 0;
    memcpy(all, literals.length, (size_t)n_literals);
    memcpy(all + n_literals, distances.length, (size_t)n_distances);
    for (int i = 0; i < n_literals + n_distances; i++) seen[all[i]] = true;
    for (int i = 16; i < 19; i++) seen[i] = differ_below(r, 3) > 0;
    for (int i = 0; i < N_LENGTHS; i++) n_seen += seen[i];
    random_code(r, &lengths, N_LENGTHS, n_seen, 7);
    /* the same code lengths, for the symbols that are needed */
    uint8_t given[N_LENGTHS];
    int n_given = 0;
    for (int i = 0; i < N_LENGTHS; i++)
        if (lengths.length[i]) given[n_given++] = lengths.length[i];
    for (int i = 0, k = 0; i < N_LENGTHS; i++) lengths.length[i] = seen[i] && k < n_given ? given[k++] : 0;
    damage(r, &lengths, 40, 7);
    number_codes(&literals), number_codes(&distances), number_codes(&lengths);
    int n_lengths = N_LENGTHS;
    while (n_lengths > 4 && !lengths.length[order[n_lengths - 1]]) n_lengths--;
    put_bits(w, (unsigned)n_literals - 257, 5);
    put_bits(w, (unsigned)n_distances - 1, 5);
    put_bits(w, (unsigned)n_lengths - 4, 4);
    for (int i = 0; i < n_lengths; i++) put_bits(w, lengths.length[order[i]], 3);
    put_lengths(r, w, all, n_literals + n_distances, &lengths);
    put_data(r, w, &literals, &distances);
}

static void make_blocks(uint64_t *r, differ_bytes *out)
{
    bit_writer w = {.out = out};
    if (differ_one_in(r, 60)) put_bits(&w, 0, 1), put_bits(&w, 1, 2), put_far(r, &w);
    for (unsigned n = 1 + differ_below(r, 3); n > 0; n--) {
        const unsigned kind = differ_one_in(r, 60) ? 3 : differ_below(r, 8);
        put_bits(&w, n == 1, 1);
        if (kind == 0) put_bits(&w, 0, 2), put_stored(r, &w);
        else if (kind == 1 || kind == 2) put_bits(&w, 1, 2), put_fixed(r, &w);
        else if (kind == 3) put_bits(&w, 3, 2);
        else put_bits(&w, 2, 2), put_dynamic(r, &w);
    }
    end_byte(&w);
}

/* ----------------------------------------------------------- compressing --- */

/* Text that repeats, from a small alphabet. */
static size_t make_text(uint64_t *r, uint8_t *text, size_t cap)
{
    const size_t n = differ_below(r, differ_one_in(r, 16) ? (unsigned)cap : 400);
    const unsigned letters = 1 + differ_below(r, differ_one_in(r, 3) ? 256 : 12);
    for (size_t i = 0; i < n;) {
        if (i && differ_one_in(r, 6)) {
            const size_t back = 1 + differ_below(r, (unsigned)i);
            for (unsigned k = 3 + differ_below(r, 60); k > 0 && i < n; k--, i++) text[i] = text[i - back];
        } else text[i++] = (uint8_t)differ_below(r, letters);
    }
    return n;
}

static void make_compressed(uint64_t *r, differ_bytes *out)
{
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
    static z_stream streams[3];
    static uint8_t text[12000], packed[16000];
    const unsigned window = differ_below(r, 3);
    z_stream *s = &streams[window];
    if (!s->state &&
        deflateInit2(s, 6, Z_DEFLATED, window == 2 ? -15 : -9 - (int)window, 1, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    if (deflateReset(s) != Z_OK) abort();
    s->next_out = packed, s->avail_out = sizeof packed;
    if (deflateParams(s, (int)differ_below(r, 10), DIFFER_PICK(r, strategies)) != Z_OK) abort();
    const size_t n = make_text(r, text, sizeof text);
    s->next_in = text;
    s->avail_in = (uInt)n / 2;
    if (differ_one_in(r, 3)) (void)deflate(s, differ_one_in(r, 2) ? Z_SYNC_FLUSH : Z_BLOCK);
    s->avail_in += (uInt)(n - n / 2);
    (void)deflate(s, Z_FINISH);
    differ_put(out, packed, sizeof packed - s->avail_out);
}

static void generate(uint64_t *r, differ_bytes *out)
{
    differ_byte(out, differ_one_in(r, 8) ? differ_below(r, 8) : 255);
    if (differ_one_in(r, 3)) make_compressed(r, out);
    else make_blocks(r, out);
}

int main(int argc, char **argv)
{
    const differ_program program = {.name = "inflate",
                                    .peer = "zlib " ZLIB_VERSION,
                                    .corpus = "io_npz",
                                    .reasons = reasons,
                                    .n_reasons = N_REASONS,
                                    .generate = generate,
                                    .compare = compare};
    return differ_main(&program, argc, argv);
}
