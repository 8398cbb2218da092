/* Encoding: special tokens cut the text, patterns cut what is left, pieces are
 * merged. Decoding: bytes of tokens, held back until they are characters. */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "text/tokenizer_build.h"
#include "text/unicode.h"

static const char spm_space[] = "\xe2\x96\x81"; /* U+2581 stands for a space */

/* ------------------------------------------------------------ vocabulary --- */

int32_t mica__vocabulary_find(const mica__tokenizer *t, const char *text, size_t length)
{
    if (!t->n_slots) return -1;
    size_t at = mica__hash(text, length, t->seed) & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const mica__token_text *token = &t->tokens[t->slots[at] - 1];
        if (token->length == length && memcmp(token->text, text, length) == 0) return (int32_t)t->slots[at] - 1;
    }
    return -1;
}

uint32_t mica__merge_rank(const mica__tokenizer *t, int32_t left, int32_t right)
{
    if (left < 0 || right < 0 || !t->n_pairs) return UINT32_MAX;
    const uint64_t key = (uint64_t)left << 32 | (uint32_t)right;
    size_t at = mica__hash_u64(key ^ t->seed) & (t->n_pairs - 1);
    for (; t->pairs[at] != UINT64_MAX; at = (at + 1) & (t->n_pairs - 1))
        if (t->pairs[at] == key) return t->pair_ranks[at];
    return UINT32_MAX;
}

int32_t mica__tokenizer_size(const mica__tokenizer *t) { return t->n_tokens; }
int32_t mica__tokenizer_bos(const mica__tokenizer *t) { return t->bos; }
int32_t mica__tokenizer_eos(const mica__tokenizer *t) { return t->eos; }

int32_t mica__tokenizer_find(const mica__tokenizer *t, const char *text, size_t length)
{
    for (int32_t i = 0; i < t->n_specials; i++) {
        const mica__token_text *token = &t->tokens[t->specials[i]];
        if (token->length == length && memcmp(token->text, text, length) == 0) return t->specials[i];
    }
    return mica__vocabulary_find(t, text, length);
}

void mica__tokenizer_free(mica__tokenizer *t)
{
    if (!t) return;
    mica__free(t->tokens);
    mica__free(t->slots);
    mica__free(t->pairs);
    mica__free(t->pair_ranks);
    mica__free(t->specials);
    mica__arena_free(&t->arena);
    mica__free(t);
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
    const mica__tokenizer *t;
    mica__tokens *out;
    mica__merger merger;
    mica__regex_stack stack;
    char *spaced; /* SPM: the text with its spaces replaced */
    size_t cap_spaced;
} encoder;

/* The pieces that pattern k and the ones behind it make of this text. */
static mica_status encode_piece(encoder *e, const char *text, size_t length, int k)
{
    const mica__tokenizer *t = e->t;
    if (length == 0) return MICA_OK;
    if (k == t->n_patterns) {
        const int32_t id = t->whole_pieces ? mica__vocabulary_find(t, text, length) : -1;
        return id >= 0 ? mica__tokens_add(e->out, id) : mica__merge_piece(t, &e->merger, text, length, e->out);
    }
    size_t gap = 0;
    for (size_t at = 0; at < length;) {
        size_t end;
        uint32_t c;
        MICA_TRY(mica__regex_match(t->patterns[k], text, length, at, &e->stack, &end));
        if (end == SIZE_MAX || end == at) {
            at += mica__utf8_get(text + at, length - at, &c);
            continue;
        }
        MICA_TRY(encode_piece(e, text + gap, at - gap, k + 1));
        MICA_TRY(encode_piece(e, text + at, end - at, k + 1));
        gap = at = end;
    }
    return encode_piece(e, text + gap, length - gap, k + 1);
}

static mica_status encode_spm(encoder *e, const char *text, size_t length, bool first)
{
    const bool prefix = first && e->t->add_space;
    const size_t most = 3 * (length + 1);
    if (length > SIZE_MAX / 4) return mica__fail(MICA_ERR_SIZE, "a text of %zu bytes", length);
    if (most > e->cap_spaced) {
        char *grown = mica__realloc(e->spaced, most);
        if (!grown) return mica__fail_memory("a text", most);
        e->spaced = grown;
        e->cap_spaced = most;
    }
    size_t n = 0;
    if (prefix) memcpy(e->spaced, spm_space, 3), n = 3;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') memcpy(e->spaced + n, spm_space, 3), n += 3;
        else e->spaced[n++] = text[i];
    }
    return mica__merge_piece(e->t, &e->merger, e->spaced, n, e->out);
}

static mica_status encode_plain(encoder *e, const char *text, size_t length, bool first)
{
    if (length == 0) return MICA_OK;
    return e->t->spm ? encode_spm(e, text, length, first) : encode_piece(e, text, length, 0);
}

/* The longest special token that begins here, or -1. */
static int32_t special_at(const mica__tokenizer *t, const char *text, size_t room, bool control)
{
    if (!t->special_first[(unsigned char)text[0]]) return -1;
    for (int32_t i = 0; i < t->n_specials; i++) {
        const mica__token_text *token = &t->tokens[t->specials[i]];
        if (token->type == MICA__TOKEN_CONTROL && !control) continue;
        if (token->length <= room && memcmp(token->text, text, token->length) == 0) return t->specials[i];
    }
    return -1;
}

static mica_status encode_all(encoder *e, const char *text, size_t length, int flags)
{
    const mica__tokenizer *t = e->t;
    if ((flags & MICA__ENCODE_BOS) && t->add_bos && t->bos >= 0) MICA_TRY(mica__tokens_add(e->out, t->bos));
    size_t from = 0;
    bool first = true;
    for (size_t at = 0; at < length;) {
        const int32_t id = special_at(t, text + at, length - at, flags & MICA__ENCODE_SPECIAL);
        if (id < 0) {
            at++;
            continue;
        }
        MICA_TRY(encode_plain(e, text + from, at - from, first));
        MICA_TRY(mica__tokens_add(e->out, id));
        from = at += t->tokens[id].length;
        first = true; /* SPM puts its space behind a special token too */
    }
    return encode_plain(e, text + from, length - from, first);
}

mica_status mica__tokenizer_encode(const mica__tokenizer *t, const char *text, size_t length, int flags,
                                   mica__tokens *out)
{
    encoder e = {.t = t, .out = out};
    const size_t before = out->n;
    const mica_status status = encode_all(&e, text, length, flags);
    if (status != MICA_OK) out->n = before;
    mica__merger_free(&e.merger);
    mica__regex_stack_free(&e.stack);
    mica__free(e.spaced);
    return status;
}

/* -------------------------------------------------------------- decoding --- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

size_t mica__tokenizer_bytes(const mica__tokenizer *t, int32_t id, const char **text, char scratch[4])
{
    *text = scratch;
    if (id < 0 || id >= t->n_tokens) return 0;
    const mica__token_text *token = &t->tokens[id];
    if (token->type == MICA__TOKEN_CONTROL || token->type == MICA__TOKEN_UNKNOWN || token->type == MICA__TOKEN_UNUSED)
        return 0;
    if (token->type == MICA__TOKEN_BYTE) { /* <0xNN>, checked when it was read */
        scratch[0] = (char)(hex_value(token->text[3]) << 4 | hex_value(token->text[4]));
        return 1;
    }
    *text = token->text;
    return token->length;
}

/* One byte more; what is a character goes out. */
static size_t detokenize_byte(mica__detokenizer *d, char byte, char *out)
{
    size_t n = 0;
    d->held[d->n_held++] = byte;
    while (d->n_held) {
        uint32_t c;
        const size_t want = mica__utf8_expected((unsigned char)d->held[0]);
        size_t size = mica__utf8_get(d->held, d->n_held, &c);
        if (c == 0xfffd && size == 1) {
            bool may_come = d->n_held < want;
            for (size_t i = 1; i < d->n_held; i++) may_come &= ((unsigned char)d->held[i] & 0xc0) == 0x80;
            if (may_come) break;
        }
        n += mica__utf8_set(c, out + n);
        d->n_held -= size;
        memmove(d->held, d->held + size, d->n_held);
    }
    return n;
}

size_t mica__detokenize(const mica__tokenizer *t, mica__detokenizer *d, int32_t id, bool last, char *out, size_t cap)
{
    char scratch[4];
    const char *text;
    size_t length = mica__tokenizer_bytes(t, id, &text, scratch), n = 0;
    if (cap < 12 || (cap - 12) / 3 < length) return 0;
    for (size_t i = 0; i < length; i++) {
        if (t->spm && length - i >= 3 && memcmp(text + i, spm_space, 3) == 0) {
            i += 2;
            /* the space that encoding put first is no part of the text */
            if (d->started || !t->add_space) n += detokenize_byte(d, ' ', out + n);
        } else {
            n += detokenize_byte(d, text[i], out + n);
        }
        d->started = true;
    }
    for (; last && d->n_held; d->n_held--) n += mica__utf8_set(0xfffd, out + n);
    return n;
}
