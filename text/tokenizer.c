/* Encodes text: special tokens cut the text, patterns cut the parts between them
 * into pieces, and each piece is merged into tokens. */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "text/nfc.h"
#include "text/tokenizer_build.h"
#include "text/unicode.h"

/* ------------------------------------------------------------ vocabulary --- */

int32_t mica__vocabulary_find(const mica_tokenizer *t, const char *text, size_t length)
{
    if (!t->n_slots) return -1;
    size_t at = mica__hash(text, length, t->seed) & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const mica__token_text *token = &t->tokens[t->slots[at] - 1];
        if (token->length == length && memcmp(token->text, text, length) == 0) return (int32_t)t->slots[at] - 1;
    }
    return -1;
}

uint32_t mica__merge_rank(const mica_tokenizer *t, int32_t left, int32_t right)
{
    if (left < 0 || right < 0 || !t->n_pairs) return UINT32_MAX;
    const uint64_t key = (uint64_t)left << 32 | (uint32_t)right;
    size_t at = mica__hash_u64(key ^ t->seed) & (t->n_pairs - 1);
    for (; t->pairs[at] != UINT64_MAX; at = (at + 1) & (t->n_pairs - 1))
        if (t->pairs[at] == key) return t->pair_ranks[at];
    return UINT32_MAX;
}

int32_t mica__tokenizer_find(const mica_tokenizer *t, const char *text, size_t length)
{
    for (int32_t i = 0; i < t->n_specials; i++) {
        const mica__token_text *token = &t->tokens[t->specials[i]];
        if (token->length == length && memcmp(token->text, text, length) == 0) return t->specials[i];
    }
    return mica__vocabulary_find(t, text, length);
}

void mica__tokens_free(mica__tokens *tokens)
{
    mica__free(tokens->ids);
    *tokens = (mica__tokens){0};
}

mica_status mica__tokens_add(mica__tokens *tokens, int32_t id)
{
    if (tokens->n == tokens->cap) {
        const size_t cap = tokens->cap ? 2 * tokens->cap : 64;
        int32_t *grown = mica__realloc(tokens->ids, cap * sizeof *grown);
        if (!grown) return mica__fail_memory("tokens", cap * sizeof *grown);
        tokens->ids = grown;
        tokens->cap = cap;
    }
    tokens->ids[tokens->n++] = id;
    return MICA_OK;
}

/* -------------------------------------------------------------- encoding --- */

typedef struct encoder {
    const mica_tokenizer *t;
    mica__tokens *out;
    mica__merger merger;
    mica__regex_stack stack;
    char *room; /* the text with its spaces replaced */
    size_t cap_room;
} encoder;

/* The next match of a pattern in seen[from..]; *at and *end are n_seen if there is none. */
static mica_status next_match(encoder *e, const mica__pre_pattern *p, const char *seen, size_t n_seen, size_t from,
                              size_t *at, size_t *end)
{
    uint32_t c;
    for (*at = from; *at < n_seen; *at += mica__utf8_get(seen + *at, n_seen - *at, &c)) {
        MICA_TRY(mica__regex_match(p->regex, seen, n_seen, *at, &e->stack, end));
        if (*end != SIZE_MAX && *end != *at) return MICA_OK;
    }
    *at = *end = n_seen;
    return MICA_OK;
}

static mica_status encode_piece(encoder *e, const char *text, size_t length, int k);

/* A mapped pattern is matched against one character per byte; the pieces are cut from the bytes. */
static mica_status cut_mapped(encoder *e, const char *text, size_t length, int k)
{
    const mica__pre_pattern *p = &e->t->patterns[k];
    char few[512], *seen = length <= sizeof few / 2 ? few : length <= SIZE_MAX / 2 ? mica__alloc(2 * length) : NULL;
    if (!seen) return mica__fail_memory("a text", length);
    const size_t n_seen = mica__bytes_encode(text, length, seen);
    mica_status status = MICA_OK;
    for (size_t done = 0, at, end; done < n_seen && status == MICA_OK; done = end) {
        status = next_match(e, p, seen, n_seen, done, &at, &end);
        if (status != MICA_OK) break;
        size_t n[2] = {0, 0}; /* characters before the match, and in it */
        for (size_t i = done; i < end; i++) n[i >= at] += ((unsigned char)seen[i] & 0xc0) != 0x80;
        if (!p->drop_gaps) status = encode_piece(e, text, n[0], k + 1);
        if (status == MICA_OK && !p->drop_matches) status = encode_piece(e, text + n[0], n[1], k + 1);
        text += n[0] + n[1];
    }
    if (seen != few) mica__free(seen);
    return status;
}

/* Cuts the text by pattern k and the patterns after it, and encodes the pieces. */
static mica_status encode_piece(encoder *e, const char *text, size_t length, int k)
{
    const mica_tokenizer *t = e->t;
    if (length == 0) return MICA_OK;
    if (k == t->n_patterns) {
        const int32_t id = t->whole_pieces ? mica__vocabulary_find(t, text, length) : -1;
        return id >= 0 ? mica__tokens_add(e->out, id) : mica__merge_piece(t, &e->merger, text, length, e->out);
    }
    const mica__pre_pattern *p = &t->patterns[k];
    if (p->mapped) return cut_mapped(e, text, length, k);
    for (size_t done = 0, at, end; done < length; done = end) {
        MICA_TRY(next_match(e, p, text, length, done, &at, &end));
        if (!p->drop_gaps) MICA_TRY(encode_piece(e, text + done, at - done, k + 1));
        if (!p->drop_matches) MICA_TRY(encode_piece(e, text + at, end - at, k + 1));
    }
    return MICA_OK;
}

static mica_status encode_spaced(encoder *e, const char *text, size_t length, bool prefix)
{
    static const char space[] = "\xe2\x96\x81"; /* U+2581 */
    if (length > SIZE_MAX / 4) return mica__fail(MICA_ERR_SIZE, "a text of %zu bytes", length);
    const size_t most = 3 * (length + 1);
    if (most > e->cap_room) {
        char *grown = mica__realloc(e->room, most);
        if (!grown) return mica__fail_memory("a text", most);
        e->room = grown;
        e->cap_room = most;
    }
    char *spaced = e->room;
    size_t n = 0;
    if (prefix) memcpy(spaced, space, 3), n = 3;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') memcpy(spaced + n, space, 3), n += 3;
        else spaced[n++] = text[i];
    }
    return encode_piece(e, spaced, n, 0);
}

static mica_status encode_composed(encoder *e, const char *text, size_t length, bool first)
{
    const mica_tokenizer *t = e->t;
    if (t->spaces) {
        const bool wanted = t->prefix == MICA__PREFIX_ALL || (t->prefix == MICA__PREFIX_FIRST && first);
        return encode_spaced(e, text, length, wanted && !(t->prefix_once && text[0] == ' '));
    }
    return encode_piece(e, text, length, 0);
}

static mica_status encode_plain(encoder *e, const char *text, size_t length, bool first)
{
    char *composed = NULL;
    size_t n = length;
    if (length == 0) return MICA_OK;
    if (e->t->nfc) MICA_TRY(mica__nfc(text, length, &composed, &n));
    const mica_status status = encode_composed(e, composed ? composed : text, composed ? n : length, first);
    mica__free(composed);
    return status;
}

/* The longest special token that begins here, or -1. */
static int32_t special_at(const mica_tokenizer *t, const char *text, size_t room, bool control)
{
    if (!t->special_first[(unsigned char)text[0]]) return -1;
    for (int32_t i = 0; i < t->n_specials; i++) {
        const mica__token_text *token = &t->tokens[t->specials[i]];
        if (token->type == MICA__TOKEN_CONTROL && !control) continue;
        if (token->length <= room && memcmp(token->text, text, token->length) == 0) return t->specials[i];
    }
    return -1;
}

/* The end of text[from..to) without its trailing white space. */
static size_t trim_end(const char *text, size_t from, size_t to)
{
    size_t good = from;
    uint32_t c;
    for (size_t at = from; at < to;) {
        at += mica__utf8_get(text + at, to - at, &c);
        if (!mica__unicode_space(c)) good = at;
    }
    return good;
}

static mica_status encode_all(encoder *e, const char *text, size_t length, int flags)
{
    const mica_tokenizer *t = e->t;
    const bool control = flags & MICA_ENCODE_SPECIAL;
    const int32_t bos = t->role[MICA_TOKEN_BOS];
    if ((flags & MICA_ENCODE_BOS) && t->add_bos && bos >= 0 && !(length && special_at(t, text, length, control) == bos))
        MICA_TRY(mica__tokens_add(e->out, bos));
    size_t from = 0;
    for (size_t at = 0; at < length;) {
        const int32_t id = special_at(t, text + at, length - at, control);
        if (id < 0) {
            at++;
            continue;
        }
        const mica__token_text *token = &t->tokens[id];
        const size_t end = token->strip_left ? trim_end(text, from, at) : at;
        MICA_TRY(encode_plain(e, text + from, end - from, from == 0));
        MICA_TRY(mica__tokens_add(e->out, id));
        at += token->length;
        for (uint32_t c; token->strip_right && at < length;) {
            const size_t size = mica__utf8_get(text + at, length - at, &c);
            if (!mica__unicode_space(c)) break;
            at += size;
        }
        from = at;
    }
    return encode_plain(e, text + from, length - from, from == 0);
}

mica_status mica__tokenizer_encode(const mica_tokenizer *t, const char *text, size_t length, int flags,
                                   mica__tokens *out)
{
    encoder e = {.t = t, .out = out};
    const size_t before = out->n;
    const mica_status status = encode_all(&e, text, length, flags);
    if (status != MICA_OK) out->n = before;
    mica__merger_free(&e.merger);
    mica__regex_stack_free(&e.stack);
    mica__free(e.room);
    return status;
}
