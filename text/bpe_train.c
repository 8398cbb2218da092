/* Trains byte-level BPE: the most frequent pair of neighbours becomes a token, and
 * this repeats. Among pairs with equal counts the one with the smaller ids wins.
 *
 * The text is cut into words once; each distinct word is stored once with its count.
 * Each pair has a list of the words that contain it, so a merge visits only those.
 * A heap returns the best pair. An entry with an outdated count is pushed again with
 * the current count. The cost is one pass over the text plus the words that merges visit. */
#include "text/bpe_train.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "text/tokenizer_build.h"
#include "text/unicode.h"

/* Merging stops at tokens of this length: readers of vocabularies refuse names over 65535 bytes, and a text of equal
 * letters would double the length of a token at each merge. */
enum { BYTE_TOKENS = 256, TOKEN_BYTES = 4096 };

typedef struct bpe_word {
    uint32_t start, length; /* in symbols */
    int64_t count;
} bpe_word;

typedef struct bpe_pair {
    uint64_t key; /* left id in the high 32 bits, right id in the low 32 */
    int64_t count;
    uint32_t seen; /* first entry of the list of words, index + 1; 0: empty */
} bpe_pair;

typedef struct bpe_seen {
    uint32_t word, next;
} bpe_seen;

typedef struct bpe_entry {
    int64_t count;
    uint64_t key;
} bpe_entry;

/* A growing array. */
typedef struct bpe_list {
    void *data;
    size_t n, cap;
} bpe_list;

typedef struct bpe_trainer {
    bpe_list words, symbols, pairs, seen, heap;
    uint32_t *word_slots, *pair_slots; /* hash tables: index + 1; 0: free */
    size_t n_word_slots, n_pair_slots;
} bpe_trainer;

static void *list_add(bpe_list *list, size_t size)
{
    if (list->n == list->cap) {
        const size_t cap = list->cap ? 2 * list->cap : 1024;
        void *grown = cap < UINT32_MAX ? mica__realloc(list->data, cap * size) : NULL;
        if (!grown) return NULL;
        list->data = grown;
        list->cap = cap;
    }
    return (char *)list->data + size * list->n++;
}

static mica_status fail_no_memory(void) { return mica__fail_memory("training a tokenizer", 0); }

/* Keeps the hash table at most half full. Doubles it and inserts all n entries again if needed. */
static mica_status slots_grow(uint32_t **slots, size_t *n_slots, size_t n,
                              uint64_t (*hash)(const bpe_trainer *, size_t), const bpe_trainer *b)
{
    if (2 * (n + 1) <= *n_slots) return MICA_OK;
    const size_t n_new = *n_slots ? 2 * *n_slots : 4096;
    uint32_t *grown = mica__alloc_zero(n_new, sizeof *grown);
    if (!grown) return fail_no_memory();
    for (size_t i = 0; i < n; i++) {
        size_t at = hash(b, i) & (n_new - 1);
        while (grown[at]) at = (at + 1) & (n_new - 1);
        grown[at] = (uint32_t)i + 1;
    }
    mica__free(*slots);
    *slots = grown;
    *n_slots = n_new;
    return MICA_OK;
}

/* ----------------------------------------------------------------- words --- */

/* Before the first merge the symbols of a word are its bytes. */
static const int32_t *word_symbols(const bpe_trainer *b, const bpe_word *w)
{
    return (const int32_t *)b->symbols.data + w->start;
}

static uint64_t symbols_hash(const int32_t *symbols, size_t n) { return mica__hash(symbols, n * sizeof *symbols, 0); }

static uint64_t word_hash(const bpe_trainer *b, size_t i)
{
    const bpe_word *w = (const bpe_word *)b->words.data + i;
    return symbols_hash(word_symbols(b, w), w->length);
}

static mica_status count_word(bpe_trainer *b, const char *text, size_t length)
{
    const size_t start = b->symbols.n;
    for (size_t i = 0; i < length; i++) {
        int32_t *symbol = list_add(&b->symbols, sizeof *symbol);
        if (!symbol) return fail_no_memory();
        *symbol = (unsigned char)text[i];
    }
    const int32_t *symbols = (const int32_t *)b->symbols.data + start;
    MICA_TRY(slots_grow(&b->word_slots, &b->n_word_slots, b->words.n, word_hash, b));
    size_t at = symbols_hash(symbols, length) & (b->n_word_slots - 1);
    for (; b->word_slots[at]; at = (at + 1) & (b->n_word_slots - 1)) {
        bpe_word *w = (bpe_word *)b->words.data + (b->word_slots[at] - 1);
        if (w->length != length || memcmp(word_symbols(b, w), symbols, length * sizeof *symbols) != 0) continue;
        w->count++;
        b->symbols.n = start;
        return MICA_OK;
    }
    bpe_word *w = list_add(&b->words, sizeof *w);
    if (!w) return fail_no_memory();
    *w = (bpe_word){(uint32_t)start, (uint32_t)length, 1};
    b->word_slots[at] = (uint32_t)b->words.n;
    return MICA_OK;
}

/* Cuts the text as encode_piece of the tokenizer does, and counts the words. */
static mica_status cut_words(bpe_trainer *b, const mica_tokenizer *t, mica__regex_stack *stack, const char *text,
                             size_t length, int k)
{
    if (length == 0) return MICA_OK;
    if (k == t->n_patterns) return count_word(b, text, length);
    size_t gap = 0;
    for (size_t at = 0; at < length;) {
        size_t end;
        uint32_t c;
        MICA_TRY(mica__regex_match(t->patterns[k].regex, text, length, at, stack, &end));
        if (end == SIZE_MAX || end == at) {
            at += mica__utf8_get(text + at, length - at, &c);
            continue;
        }
        MICA_TRY(cut_words(b, t, stack, text + gap, at - gap, k + 1));
        MICA_TRY(cut_words(b, t, stack, text + at, end - at, k + 1));
        gap = at = end;
    }
    return cut_words(b, t, stack, text + gap, length - gap, k + 1);
}

/* ----------------------------------------------------------------- pairs --- */

static uint64_t pair_hash(const bpe_trainer *b, size_t i)
{
    return mica__hash_u64(((const bpe_pair *)b->pairs.data)[i].key);
}

/* Finds the pair or adds it; NULL if memory runs out. */
static bpe_pair *pair_at(bpe_trainer *b, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)left << 32 | (uint32_t)right;
    if (slots_grow(&b->pair_slots, &b->n_pair_slots, b->pairs.n, pair_hash, b) != MICA_OK) return NULL;
    size_t at = mica__hash_u64(key) & (b->n_pair_slots - 1);
    for (; b->pair_slots[at]; at = (at + 1) & (b->n_pair_slots - 1)) {
        bpe_pair *p = (bpe_pair *)b->pairs.data + (b->pair_slots[at] - 1);
        if (p->key == key) return p;
    }
    bpe_pair *p = list_add(&b->pairs, sizeof *p);
    if (!p) return NULL;
    *p = (bpe_pair){.key = key};
    b->pair_slots[at] = (uint32_t)b->pairs.n;
    return p;
}

static bool better(const bpe_entry *a, const bpe_entry *b)
{
    return a->count > b->count || (a->count == b->count && a->key < b->key);
}

static mica_status heap_add(bpe_trainer *b, bpe_entry entry)
{
    if (!list_add(&b->heap, sizeof entry)) return fail_no_memory();
    bpe_entry *heap = b->heap.data;
    size_t i = b->heap.n - 1;
    for (; i && better(&entry, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
    return MICA_OK;
}

static bpe_entry heap_pop_best(bpe_trainer *b)
{
    bpe_entry *heap = b->heap.data;
    const bpe_entry top = heap[0], last = heap[--b->heap.n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < b->heap.n; i = child) {
        if (child + 1 < b->heap.n && better(&heap[child + 1], &heap[child])) child++;
        if (!better(&heap[child], &last)) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* Adds `by` to the count of a pair. If `by` is positive, the word is added to the pair's list. */
static mica_status change_pair(bpe_trainer *b, int32_t left, int32_t right, int64_t by, uint32_t word)
{
    bpe_pair *p = pair_at(b, left, right);
    if (!p) return fail_no_memory();
    p->count += by;
    if (by < 0) return MICA_OK;
    if (!p->seen || ((bpe_seen *)b->seen.data)[p->seen - 1].word != word) {
        bpe_seen *s = list_add(&b->seen, sizeof *s);
        if (!s) return fail_no_memory();
        *s = (bpe_seen){word, p->seen};
        p->seen = (uint32_t)b->seen.n;
    }
    return MICA_OK;
}

static mica_status count_pairs(bpe_trainer *b)
{
    for (uint32_t i = 0; i < b->words.n; i++) {
        const bpe_word w = ((bpe_word *)b->words.data)[i];
        const int32_t *s = word_symbols(b, &w);
        for (uint32_t k = 1; k < w.length; k++) MICA_TRY(change_pair(b, s[k - 1], s[k], w.count, i));
    }
    for (size_t i = 0; i < b->pairs.n; i++) {
        const bpe_pair *p = (const bpe_pair *)b->pairs.data + i;
        MICA_TRY(heap_add(b, (bpe_entry){p->count, p->key}));
    }
    return MICA_OK;
}

/* Replaces a pair by token id in one word, and updates the counts of the pairs around it.
 * New pairs are appended to b->pairs; the caller pushes them onto the heap. */
static mica_status merge_in_word(bpe_trainer *b, uint32_t word, int32_t left, int32_t right, int32_t id)
{
    bpe_word *w = (bpe_word *)b->words.data + word;
    int32_t *s = (int32_t *)b->symbols.data + w->start;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->length; i++) {
        if (i + 1 < w->length && s[i] == left && s[i + 1] == right) {
            if (n) {
                MICA_TRY(change_pair(b, s[n - 1], left, -w->count, word));
                MICA_TRY(change_pair(b, s[n - 1], id, w->count, word));
            }
            if (i + 2 < w->length) {
                MICA_TRY(change_pair(b, right, s[i + 2], -w->count, word));
                MICA_TRY(change_pair(b, id, s[i + 2], w->count, word));
            }
            s[n++] = id;
            i++;
        } else s[n++] = s[i];
    }
    w->length = n;
    return MICA_OK;
}

static mica_status merge_pair(bpe_trainer *b, uint64_t key, int32_t id)
{
    const int32_t left = (int32_t)(key >> 32), right = (int32_t)(key & UINT32_MAX);
    bpe_pair *p = pair_at(b, left, right);
    if (!p) return fail_no_memory();
    const size_t n_before = b->pairs.n;
    uint32_t next = p->seen;
    p->count = 0;
    while (next) {
        const bpe_seen s = ((bpe_seen *)b->seen.data)[next - 1];
        MICA_TRY(merge_in_word(b, s.word, left, right, id));
        next = s.next;
    }
    if (!(p = pair_at(b, left, right))) return fail_no_memory();
    p->count = 0; /* merge_in_word may have changed the count; no occurrence is left */
    for (size_t i = n_before; i < b->pairs.n; i++) {
        p = (bpe_pair *)b->pairs.data + i;
        if (p->count > 0) MICA_TRY(heap_add(b, (bpe_entry){p->count, p->key}));
    }
    return MICA_OK;
}

/* Takes the most frequent pair from the heap; *found is false if no pair occurs at least twice. */
static mica_status best_pair(bpe_trainer *b, uint64_t *key, bool *found)
{
    *found = false;
    while (b->heap.n && !*found) {
        const bpe_entry e = heap_pop_best(b);
        const bpe_pair *p = pair_at(b, (int32_t)(e.key >> 32), (int32_t)(e.key & UINT32_MAX));
        if (!p) return fail_no_memory();
        if (p->count == e.count) *found = e.count >= 2, *key = e.key;
        else if (p->count > 0) MICA_TRY(heap_add(b, (bpe_entry){p->count, p->key}));
        if (p->count == e.count && !*found) break; /* the best pair occurs once */
    }
    return MICA_OK;
}

/* ------------------------------------------------------------- tokenizer --- */

/* Adds the token whose text is the concatenation of two tokens. */
static mica_status add_joined(mica_tokenizer *t, int32_t left, int32_t right)
{
    const mica__token_text a = t->tokens[left], b = t->tokens[right];
    char *joined = mica__alloc(a.length + b.length + 1);
    if (!joined) return fail_no_memory();
    memcpy(joined, a.text, a.length);
    memcpy(joined + a.length, b.text, b.length);
    const mica_status status = mica__tokenizer_add(t, joined, a.length + b.length, 0, MICA__TOKEN_NORMAL);
    mica__free(joined);
    return status;
}

static mica_status learn(bpe_trainer *b, mica_tokenizer *t, int32_t vocab, bpe_list *merges)
{
    for (int i = 0; i < BYTE_TOKENS; i++) MICA_TRY(mica__tokenizer_add(t, &(char){(char)i}, 1, 0, MICA__TOKEN_NORMAL));
    MICA_TRY(count_pairs(b));
    while (t->n_tokens < vocab) {
        uint64_t key;
        bool found;
        MICA_TRY(best_pair(b, &key, &found));
        if (!found) break;
        const int32_t left = (int32_t)(key >> 32), right = (int32_t)(key & UINT32_MAX);
        if (t->tokens[left].length + t->tokens[right].length > TOKEN_BYTES) continue; /* this pair is not merged */
        uint64_t *merge = list_add(merges, sizeof *merge);
        if (!merge) return fail_no_memory();
        *merge = key;
        MICA_TRY(add_joined(t, left, right));
        MICA_TRY(merge_pair(b, key, t->n_tokens - 1));
    }
    return MICA_OK;
}

static mica_status finish_training(mica_tokenizer *t, const mica_bpe_options *o, const bpe_list *merges)
{
    const int32_t first = t->n_tokens;
    for (size_t i = 0; i < o->n_specials; i++)
        MICA_TRY(mica__tokenizer_add(t, o->specials[i], strlen(o->specials[i]), 0, MICA__TOKEN_CONTROL));
    MICA_TRY(mica__tokenizer_index(t));
    if (o->n_specials) {
        t->role[MICA_TOKEN_BOS] = t->role[MICA_TOKEN_EOS] = first;
        t->add_bos = true;
    }
    mica__tokenizer_add_known_ends(t);
    MICA_TRY(mica__tokenizer_reserve_merges(t, merges->n));
    for (size_t i = 0; i < merges->n; i++) {
        const uint64_t key = ((const uint64_t *)merges->data)[i];
        mica__tokenizer_add_merge(t, (int32_t)(key >> 32), (int32_t)(key & UINT32_MAX), (uint32_t)i);
    }
    return MICA_OK;
}

mica_status mica__bpe_train(const char *text, size_t length, const mica_bpe_options *options, mica_tokenizer **out)
{
    mica_tokenizer *t;
    bpe_trainer b = {0};
    bpe_list merges = {0};
    mica__regex_stack stack = {0};
    mica_status status = mica__tokenizer_new("a trained tokenizer", &t);
    if (status == MICA_OK) status = mica__tokenizer_set_pre(t, options->pre, strlen(options->pre));
    /* in parts of at least 64 KB that end at a line, so that one word cannot be the whole text */
    for (size_t at = 0, n; at < length && status == MICA_OK; at += n) {
        n = length - at;
        if (n > 65536) {
            const char *line = memchr(text + at + 65536, '\n', n - 65536);
            n = line ? (size_t)(line - (text + at)) : n;
        }
        status = cut_words(&b, t, &stack, text + at, n, 0);
    }
    if (status == MICA_OK) status = learn(&b, t, options->vocab - (int32_t)options->n_specials, &merges);
    if (status == MICA_OK) status = finish_training(t, options, &merges);
    mica__regex_stack_free(&stack);
    mica__free(b.words.data), mica__free(b.symbols.data), mica__free(b.pairs.data), mica__free(b.seen.data);
    mica__free(b.heap.data), mica__free(b.word_slots), mica__free(b.pair_slots), mica__free(merges.data);
    return mica__tokenizer_finish(t, status, out);
}
