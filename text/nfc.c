/* Three steps over code points: decompose characters, sort combining marks by class,
 * compose again. Hangul is computed; other characters use a table. */
#include "text/nfc.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/unicode.h"

static const struct {
    uint32_t c, first, second;
    bool composes;
} nfc_pairs[] = {
#define MICA_NFC_PAIRS
#include "text/unicode_nfc.def"
#undef MICA_NFC_PAIRS
};
static const uint16_t nfc_order[] = {
#define MICA_NFC_ORDER
#include "text/unicode_nfc.def"
#undef MICA_NFC_ORDER
};
static const struct {
    uint32_t first, last;
    uint8_t order;
} nfc_classes[] = {
#define MICA_NFC_CLASSES
#include "text/unicode_nfc.def"
#undef MICA_NFC_CLASSES
};
#define N_OF(a) (sizeof(a) / sizeof(a)[0])

enum {
    HANGUL = 0xac00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7,
    N_L = 19,
    N_V = 21,
    N_T = 28,
    FIRST_MARK = 0x300, /* below it everything is in normal form */
    NO_CHARACTER = 1 << 30 /* + a byte that is not valid UTF-8 */
};

typedef struct nfc_points {
    uint32_t *c;
    size_t n, cap;
} nfc_points;

static mica_status add_point(nfc_points *p, uint32_t c)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap ? 2 * p->cap : 256;
        uint32_t *grown = cap <= SIZE_MAX / 8 ? mica__realloc(p->c, cap * sizeof *grown) : NULL;
        if (!grown) return mica__fail_memory("a text", cap * sizeof *grown);
        p->c = grown;
        p->cap = cap;
    }
    p->c[p->n++] = c;
    return MICA_OK;
}

static uint8_t mark_class(uint32_t c)
{
    size_t low = 0, high = N_OF(nfc_classes);
    if (c < FIRST_MARK) return 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (nfc_classes[middle].last < c) low = middle + 1;
        else high = middle;
    }
    return low < N_OF(nfc_classes) && nfc_classes[low].first <= c ? nfc_classes[low].order : 0;
}

/* The full decomposition of a character: its first part may be decomposed further. */
static mica_status decompose_point(nfc_points *p, uint32_t c)
{
    uint32_t tail[8];
    int n_tail = 0;
    if (c >= HANGUL && c < HANGUL + N_L * N_V * N_T) {
        const uint32_t s = c - HANGUL;
        MICA_TRY(add_point(p, HANGUL_L + s / (N_V * N_T)));
        MICA_TRY(add_point(p, HANGUL_V + s % (N_V * N_T) / N_T));
        return s % N_T ? add_point(p, HANGUL_T + s % N_T) : MICA_OK;
    }
    for (bool more = c >= 0xc0; more && n_tail < 8;) {
        size_t low = 0, high = N_OF(nfc_pairs);
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (nfc_pairs[middle].c < c) low = middle + 1;
            else high = middle;
        }
        more = low < N_OF(nfc_pairs) && nfc_pairs[low].c == c;
        if (more && nfc_pairs[low].second) tail[n_tail++] = nfc_pairs[low].second;
        if (more) c = nfc_pairs[low].first;
    }
    MICA_TRY(add_point(p, c));
    while (n_tail) MICA_TRY(add_point(p, tail[--n_tail]));
    return MICA_OK;
}

static int by_class(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the marks after a character by class; the sort is stable. */
static mica_status sort_marks(nfc_points *p)
{
    for (size_t from = 0, to; from < p->n; from = to) {
        for (to = from; to < p->n && mark_class(p->c[to]); to++) {
        }
        const size_t n = to - from;
        if (n > 1) {
            uint64_t few[16], *keys = n <= N_OF(few) ? few : mica__alloc_zero(n, sizeof *keys);
            if (!keys) return mica__fail_memory("a text", n * sizeof *keys);
            /* 8 bits of class, 35 of position, 21 of character */
            for (size_t i = 0; i < n; i++)
                keys[i] =
                    (uint64_t)mark_class(p->c[from + i]) << 56 | (uint64_t)(i & 0x7ffffffff) << 21 | p->c[from + i];
            qsort(keys, n, sizeof *keys, by_class);
            for (size_t i = 0; i < n; i++) p->c[from + i] = (uint32_t)(keys[i] & 0x1fffff);
            if (keys != few) mica__free(keys);
        }
        to += to == from;
    }
    return MICA_OK;
}

/* The composition of two characters, 0 if there is none. */
static uint32_t compose_pair(uint32_t a, uint32_t b)
{
    if (a >= HANGUL_L && a < HANGUL_L + N_L && b >= HANGUL_V && b < HANGUL_V + N_V)
        return HANGUL + ((a - HANGUL_L) * N_V + (b - HANGUL_V)) * N_T;
    if (a >= HANGUL && a < HANGUL + N_L * N_V * N_T && (a - HANGUL) % N_T == 0 && b > HANGUL_T && b < HANGUL_T + N_T)
        return a + (b - HANGUL_T);
    size_t low = 0, high = N_OF(nfc_order);
    while (low < high) {
        const size_t middle = (low + high) / 2, i = nfc_order[middle];
        if (nfc_pairs[i].first < a || (nfc_pairs[i].first == a && nfc_pairs[i].second < b)) low = middle + 1;
        else high = middle;
    }
    if (low == N_OF(nfc_order)) return 0;
    const size_t i = nfc_order[low];
    return nfc_pairs[i].first == a && nfc_pairs[i].second == b ? nfc_pairs[i].c : 0;
}

static void compose_points(nfc_points *p)
{
    size_t n = 0, starter = SIZE_MAX;
    uint8_t last = 0;
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t c = p->c[i];
        const uint8_t order = mark_class(c);
        /* a mark combines with its starter only if all marks between them have lower classes */
        const bool reaches = starter != SIZE_MAX && (n == starter + 1 || (last < order && last != 0));
        const uint32_t whole = reaches ? compose_pair(p->c[starter], c) : 0;
        if (whole) {
            p->c[starter] = whole;
            continue;
        }
        if (order == 0) starter = n;
        last = order;
        p->c[n++] = c;
    }
    p->n = n;
}

mica_status mica__nfc(const char *text, size_t length, char **out, size_t *n)
{
    nfc_points p = {0};
    bool plain = true;
    mica_status status = MICA_OK;
    *out = NULL;
    for (size_t i = 0; i < length && plain; i++) plain = (unsigned char)text[i] < 0xcc; /* U+0300 begins with 0xcc */
    if (plain || length > UINT32_MAX / 8) return MICA_OK;
    for (size_t at = 0; at < length && status == MICA_OK;) {
        uint32_t c;
        const size_t size = mica__utf8_get(text + at, length - at, &c);
        const bool wrong = size == 1 && (unsigned char)text[at] >= 0x80;
        status = wrong ? add_point(&p, NO_CHARACTER + (unsigned char)text[at]) : decompose_point(&p, c);
        at += size;
    }
    if (status == MICA_OK) status = sort_marks(&p);
    if (status == MICA_OK) {
        compose_points(&p);
        *out = mica__alloc(4 * p.n + 1);
        if (!*out) status = mica__fail_memory("a text", 4 * p.n);
    }
    *n = 0;
    for (size_t i = 0; i < p.n && status == MICA_OK; i++) {
        if (p.c[i] >= NO_CHARACTER) (*out)[(*n)++] = (char)(p.c[i] - NO_CHARACTER);
        else *n += mica__utf8_set(p.c[i], *out + *n);
    }
    mica__free(p.c);
    return status;
}

#undef N_OF
