/* Merges neighbouring symbols of a piece, the best pair first, until no pair can be
 * merged. BPE and SPM share this. They differ in the cost of a pair: the rank of its
 * merge, or the score or id of the resulting token. With a heap it runs in O(n log n). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer_build.h"
#include "text/unicode.h"

typedef struct mica__candidate {
    double cost;           /* lowest first, then the leftmost pair */
    int32_t left, right, id;
    uint32_t length;       /* of both symbols; if they differ now, the entry is outdated */
} mica__candidate;

void mica__merger_free(mica__merger *m)
{
    mica__free(m->symbols);
    mica__free(m->heap);
    *m = (mica__merger){0};
}

static bool before(const mica__candidate *a, const mica__candidate *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->left < b->left);
}

static mica_status heap_push(mica__merger *m, mica__candidate c)
{
    if (m->n_heap == m->cap_heap) {
        const size_t cap = m->cap_heap ? 2 * m->cap_heap : 64;
        mica__candidate *grown = mica__realloc(m->heap, cap * sizeof *grown);
        if (!grown) return mica__fail_memory("a text", cap * sizeof *grown);
        m->heap = grown;
        m->cap_heap = cap;
    }
    size_t i = m->n_heap++;
    for (; i && before(&c, &m->heap[(i - 1) / 2]); i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = c;
    return MICA_OK;
}

static mica__candidate heap_pop(mica__merger *m)
{
    const mica__candidate top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && before(&m->heap[child + 1], &m->heap[child])) child++;
        if (!before(&m->heap[child], &last)) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = last;
    return top;
}

/* Pushes a pair of neighbours onto the heap if it can be merged. */
static mica_status push_pair(const mica_tokenizer *t, mica__merger *m, const char *text, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return MICA_OK;
    const mica__symbol *a = &m->symbols[left], *b = &m->symbols[right];
    const uint32_t length = a->length + b->length;
    uint32_t rank = 0;
    if (t->order == MICA__BY_MERGES && (rank = mica__merge_rank(t, a->id, b->id)) == UINT32_MAX) return MICA_OK;
    const int32_t id = mica__vocabulary_find(t, text + a->start, length);
    if (id < 0) return MICA_OK;
    const double cost = t->order == MICA__BY_SCORES ? -(double)t->tokens[id].score
                        : t->order == MICA__BY_IDS  ? (double)id
                                                    : (double)rank;
    return heap_push(m, (mica__candidate){cost, left, right, id, length});
}

/* Makes one symbol per byte, or per character if t->characters. */
static mica_status cut_symbols(const mica_tokenizer *t, mica__merger *m, const char *text, size_t length, int32_t *n)
{
    if (length > m->cap_symbols) {
        mica__symbol *grown = mica__realloc(m->symbols, length * sizeof *grown);
        if (!grown) return mica__fail_memory("a text", length * sizeof *grown);
        m->symbols = grown;
        m->cap_symbols = length;
    }
    *n = 0;
    for (size_t at = 0, size; at < length; at += size, ++*n) {
        uint32_t c;
        size = t->characters ? mica__utf8_get(text + at, length - at, &c) : 1;
        m->symbols[*n] = (mica__symbol){(uint32_t)at, (uint32_t)size, mica__vocabulary_find(t, text + at, size), *n - 1,
                                        at + size < length ? *n + 1 : -1};
    }
    return MICA_OK;
}

static mica_status put_symbol(const mica_tokenizer *t, const char *text, const mica__symbol *s, mica__tokens *out)
{
    if (s->id >= 0) return mica__tokens_add(out, s->id);
    for (uint32_t i = 0; i < s->length; i++) {
        const int32_t byte = t->byte_token[(unsigned char)text[s->start + i]];
        const int32_t id = byte >= 0 ? byte : t->role[MICA_TOKEN_UNKNOWN];
        if (id < 0)
            return mica__fail(MICA_ERR_UNSUPPORTED, "the vocabulary has no token for byte 0x%02x",
                              (unsigned char)text[s->start + i]);
        MICA_TRY(mica__tokens_add(out, id));
    }
    return MICA_OK;
}

mica_status mica__merge_piece(const mica_tokenizer *t, mica__merger *m, const char *text, size_t length,
                              mica__tokens *out)
{
    int32_t n;
    if (length >= INT32_MAX) return mica__fail(MICA_ERR_SIZE, "a text of %zu bytes without a cut is too long", length);
    MICA_TRY(cut_symbols(t, m, text, length, &n));
    m->n_heap = 0;
    for (int32_t i = 1; i < n; i++) MICA_TRY(push_pair(t, m, text, i - 1, i));
    while (m->n_heap) {
        const mica__candidate c = heap_pop(m);
        mica__symbol *a = &m->symbols[c.left], *b = &m->symbols[c.right];
        if (!a->length || !b->length || a->length + b->length != c.length || a->after != c.right) continue;
        a->length = c.length;
        a->id = c.id;
        a->after = b->after;
        b->length = 0;
        if (a->after >= 0) m->symbols[a->after].before = c.left;
        MICA_TRY(push_pair(t, m, text, a->before, c.left));
        MICA_TRY(push_pair(t, m, text, c.left, a->after));
    }
    for (int32_t i = n ? 0 : -1; i >= 0; i = m->symbols[i].after) MICA_TRY(put_symbol(t, text, &m->symbols[i], out));
    return MICA_OK;
}
