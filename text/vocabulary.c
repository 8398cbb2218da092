/* Builds a vocabulary: the readers of all file formats add tokens, then build the
 * lookup tables, then add merges and patterns. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "text/tokenizer_build.h"
#include "text/unicode.h"

/* -------------------------------------------------------- pre-tokenizers --- */

static const struct {
    const char *first, *names;
    bool whole;
    const char *patterns[MICA__PRE_PATTERNS];
} pre_table[] = {
#define MICA_PRE(first, others, whole, ...) {first, first " " others, whole, {__VA_ARGS__}},
#include "text/pretokenizers.def"
#undef MICA_PRE
};

static bool has_name(const char *names, const char *name, size_t length)
{
    for (const char *p = names; *p;) {
        const size_t n = strcspn(p, " ");
        if (n == length && memcmp(p, name, n) == 0) return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

mica_status mica__tokenizer_add_pattern(mica_tokenizer *t, const char *pattern, size_t length, mica__pre_pattern how)
{
    if (t->n_patterns == MICA__PRE_PATTERNS)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: more than %d patterns", t->what, MICA__PRE_PATTERNS);
    MICA_TRY(mica__tokenizer_copy(t, pattern, length, &how.text));
    MICA_TRY(mica__regex_new(&t->arena, pattern, length, &how.regex));
    t->patterns[t->n_patterns++] = how;
    return MICA_OK;
}

mica_status mica__tokenizer_set_pre(mica_tokenizer *t, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof pre_table / sizeof pre_table[0]; i++) {
        if (!has_name(pre_table[i].names, name, length)) continue;
        t->whole_pieces = pre_table[i].whole;
        t->n_patterns = 0;
        MICA_TRY(mica__tokenizer_copy(t, name, length, &t->pre));
        for (int k = 0; k < MICA__PRE_PATTERNS && pre_table[i].patterns[k]; k++) {
            const char *pattern = pre_table[i].patterns[k];
            MICA_TRY(mica__tokenizer_add_pattern(t, pattern, strlen(pattern), (mica__pre_pattern){0}));
        }
        return MICA_OK;
    }
    char quoted[MICA__QUOTE_TEXT];
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: the pre-tokenizer %s is unknown", t->what,
                      mica__quote(quoted, name, length));
}

const char *mica__pre_pattern_text(const char *name)
{
    for (size_t i = 0; i < sizeof pre_table / sizeof pre_table[0]; i++)
        if (has_name(pre_table[i].names, name, strlen(name))) return pre_table[i].patterns[0];
    return "";
}

const char *mica__pre_name_of(const mica_tokenizer *t)
{
    for (size_t i = 0; i < sizeof pre_table / sizeof pre_table[0]; i++) {
        bool same = pre_table[i].whole == t->whole_pieces && t->n_patterns > 0;
        for (int k = 0; same && k < MICA__PRE_PATTERNS; k++) {
            const char *want = pre_table[i].patterns[k];
            const mica__pre_pattern *got = &t->patterns[k];
            same = k < t->n_patterns
                       ? want && strcmp(want, got->text) == 0 && !got->mapped && !got->drop_gaps && !got->drop_matches
                       : !want;
        }
        if (same) return pre_table[i].first;
    }
    return "";
}

/* ----------------------------------------------------------- beginning ----- */

mica_status mica__tokenizer_new(const char *what, mica_tokenizer **out)
{
    mica_tokenizer *t = mica__alloc_zero(1, sizeof *t);
    *out = t;
    if (!t) return mica__fail_memory("a tokenizer", sizeof *t);
    mica__arena_init(&t->arena);
    t->seed = mica__hash_u64(mica__now_ns()) ^ (uint64_t)(uintptr_t)t;
    t->pre = "";
    for (size_t i = 0; i < sizeof t->role / sizeof t->role[0]; i++) t->role[i] = -1;
    return mica__tokenizer_copy(t, what, strlen(what), &t->what);
}

void mica__tokenizer_free(mica_tokenizer *t)
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

mica_status mica__tokenizer_finish(mica_tokenizer *t, mica_status status, mica_tokenizer **out)
{
    *out = NULL;
    if (status == MICA_OK) *out = t;
    else mica__tokenizer_free(t);
    return status;
}

mica_status mica__tokenizer_copy(mica_tokenizer *t, const char *text, size_t length, const char **out)
{
    char *copy = length < SIZE_MAX ? mica__arena_alloc(&t->arena, length + 1) : NULL;
    *out = copy;
    if (!copy) return mica__fail_memory("a tokenizer", length);
    if (length) memcpy(copy, text, length);
    return MICA_OK;
}

mica_status mica__tokenizer_add_note(mica_tokenizer *t, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (t->n_notes == MICA__TOKEN_NOTES) return MICA_OK;
    MICA_TRY(mica__tokenizer_copy(t, text, strlen(text), &t->notes[t->n_notes]));
    t->n_notes++;
    return MICA_OK;
}

mica_status mica__tokenizer_add(mica_tokenizer *t, const char *text, size_t length, float score, int type)
{
    if (t->n_tokens == t->cap_tokens) {
        const int32_t cap = t->cap_tokens ? 2 * t->cap_tokens : 1024;
        mica__token_text *grown = mica__realloc(t->tokens, (size_t)cap * sizeof *grown);
        if (!grown) return mica__fail_memory("a vocabulary", (size_t)cap * sizeof *grown);
        t->tokens = grown;
        t->cap_tokens = cap;
    }
    if (t->n_tokens >= MICA__VOCABULARY_MAX || length > UINT16_MAX || type < MICA__TOKEN_NORMAL ||
        type > MICA__TOKEN_BYTE || score != score)
        return mica__fail(MICA_ERR_FORMAT, "%s: token %" PRId32 " has %zu bytes, type %d, score %g", t->what,
                          t->n_tokens, length, type, (double)score);
    mica__token_text token = {.length = (uint32_t)length, .score = score, .type = (uint8_t)type};
    MICA_TRY(mica__tokenizer_copy(t, text, length, &token.text));
    t->tokens[t->n_tokens++] = token;
    return MICA_OK;
}

/* ---------------------------------------------------------------- tables --- */

static int by_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts special tokens by length, longest first, then by id. */
static mica_status sort_specials(mica_tokenizer *t)
{
    uint64_t *keys = mica__alloc_zero((size_t)t->n_specials, sizeof *keys);
    if (!keys) return mica__fail_memory("a vocabulary", (size_t)t->n_specials * sizeof *keys);
    for (int32_t i = 0; i < t->n_specials; i++) {
        const mica__token_text *token = &t->tokens[t->specials[i]];
        keys[i] = (uint64_t)(UINT32_MAX - token->length) << 32 | (uint32_t)t->specials[i];
        t->special_first[(unsigned char)token->text[0]] = true;
    }
    if (t->n_specials > 1) qsort(keys, (size_t)t->n_specials, sizeof *keys, by_u64);
    for (int32_t i = 0; i < t->n_specials; i++) t->specials[i] = (int32_t)(keys[i] & UINT32_MAX);
    mica__free(keys);
    return MICA_OK;
}

/* Records the byte that a token <0xNN> stands for. */
static mica_status index_byte(mica_tokenizer *t, int32_t id)
{
    static const char digits[] = "0123456789ABCDEF";
    const mica__token_text *token = &t->tokens[id];
    const char *high = token->length == 6 && token->text[3] ? strchr(digits, token->text[3]) : NULL;
    const char *low = token->length == 6 && token->text[4] ? strchr(digits, token->text[4]) : NULL;
    if (!high || !low || memcmp(token->text, "<0x", 3) != 0 || token->text[5] != '>')
        return mica__fail(MICA_ERR_FORMAT, "%s: token %" PRId32 " has the type byte, but its text is not <0xNN>",
                          t->what, id);
    t->byte_token[(high - digits) << 4 | (low - digits)] = id;
    return MICA_OK;
}

mica_status mica__tokenizer_index(mica_tokenizer *t)
{
    size_t n_slots = 8;
    if (t->n_tokens == 0) return mica__fail(MICA_ERR_FORMAT, "%s: the vocabulary is empty", t->what);
    while (n_slots < 2 * (size_t)t->n_tokens) n_slots *= 2;
    t->slots = mica__alloc_zero(n_slots, sizeof *t->slots);
    t->specials = mica__alloc_zero((size_t)t->n_tokens, sizeof *t->specials);
    if (!t->slots || !t->specials) return mica__fail_memory("a vocabulary", n_slots * sizeof *t->slots);
    t->n_slots = n_slots;
    for (int i = 0; i < 256; i++) t->byte_token[i] = -1;
    for (int32_t id = 0; id < t->n_tokens; id++) {
        const mica__token_text *token = &t->tokens[id];
        if (token->type == MICA__TOKEN_CONTROL || token->type == MICA__TOKEN_USER) {
            if (token->length) t->specials[t->n_specials++] = id;
            continue;
        }
        if (token->type == MICA__TOKEN_UNKNOWN && t->role[MICA_TOKEN_UNKNOWN] < 0) t->role[MICA_TOKEN_UNKNOWN] = id;
        if (token->type == MICA__TOKEN_BYTE) MICA_TRY(index_byte(t, id));
        if (token->type != MICA__TOKEN_NORMAL || token->length == 0) continue;
        /* of duplicates the first counts */
        if (mica__vocabulary_find(t, token->text, token->length) >= 0) continue;
        size_t at = mica__hash(token->text, token->length, t->seed) & (n_slots - 1);
        while (t->slots[at]) at = (at + 1) & (n_slots - 1);
        t->slots[at] = (uint32_t)id + 1;
        if (!t->characters && token->length == 1) t->byte_token[(unsigned char)token->text[0]] = id;
    }
    return sort_specials(t);
}

mica_status mica__tokenizer_reserve_merges(mica_tokenizer *t, size_t count)
{
    size_t n_pairs = 8;
    if (count > MICA__VOCABULARY_MAX) return mica__fail(MICA_ERR_FORMAT, "%s: %zu merges", t->what, count);
    while (n_pairs < 2 * count) n_pairs *= 2;
    t->pairs = mica__alloc(n_pairs * sizeof *t->pairs);
    t->pair_ranks = mica__alloc_zero(n_pairs, sizeof *t->pair_ranks);
    if (!t->pairs || !t->pair_ranks) return mica__fail_memory("merges", n_pairs * sizeof *t->pairs);
    memset(t->pairs, 0xff, n_pairs * sizeof *t->pairs);
    t->n_pairs = n_pairs;
    return MICA_OK;
}

void mica__tokenizer_add_merge(mica_tokenizer *t, int32_t left, int32_t right, uint32_t rank)
{
    if (left < 0 || right < 0) return; /* a merge of unknown tokens can never be used */
    const uint64_t key = (uint64_t)left << 32 | (uint32_t)right;
    size_t at = mica__hash_u64(key ^ t->seed) & (t->n_pairs - 1);
    while (t->pairs[at] != UINT64_MAX && t->pairs[at] != key) at = (at + 1) & (t->n_pairs - 1);
    if (t->pairs[at] == key) return;
    t->pairs[at] = key;
    t->pair_ranks[at] = rank;
}

/* ------------------------------------------------------------------ ends --- */

void mica__tokenizer_add_end(mica_tokenizer *t, int32_t id)
{
    for (int i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id) return;
    if (id >= 0 && id < t->n_tokens && t->n_ends < MICA__TOKEN_ENDS) t->ends[t->n_ends++] = id;
}

void mica__tokenizer_add_known_ends(mica_tokenizer *t)
{
    /* the first TURNS names also end a turn */
    static const char *const names[] = {"<|eot_id|>",
                                        "<|im_end|>",
                                        "<|end|>",
                                        "<end_of_turn>",
                                        "<|end_of_turn|>",
                                        "<|eom_id|>",
                                        "<|endoftext|>",
                                        "<|end_of_text|>",
                                        "</s>",
                                        "<|endofassistant|>",
                                        "<|assistant_end|>",
                                        "<|return|>",
                                        "<|call|>",
                                        "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"};
    enum { TURNS = 5 };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const int32_t id = mica__tokenizer_find(t, names[i], strlen(names[i]));
        if (id < 0 || t->tokens[id].type != MICA__TOKEN_CONTROL) continue; /* ordinary text, not a marker */
        if (i < TURNS && t->role[MICA_TOKEN_EOT] < 0) t->role[MICA_TOKEN_EOT] = id;
        mica__tokenizer_add_end(t, id);
    }
    mica__tokenizer_add_end(t, t->role[MICA_TOKEN_EOS]);
    mica__tokenizer_add_end(t, t->role[MICA_TOKEN_EOT]);
}

/* ------------------------------------------------------- byte-level names -- */

/* GPT-2 writes bytes that are not printable characters as characters from U+0100
 * on, in the order of these ranges. */
static const struct {
    uint8_t low, high;
} unprintable[] = {{0, 32}, {127, 160}, {173, 173}};
enum { N_UNPRINTABLE = sizeof unprintable / sizeof unprintable[0] };

/* The byte that a character stands for, -1 if there is none. */
static int byte_of_character(uint32_t c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) return (int)c;
    uint32_t n = 256;
    for (int i = 0; i < N_UNPRINTABLE; i++) {
        const uint32_t count = (uint32_t)(unprintable[i].high - unprintable[i].low) + 1;
        if (c >= n && c < n + count) return (int)(unprintable[i].low + (c - n));
        n += count;
    }
    return -1;
}

static uint32_t character_of_byte(uint8_t byte)
{
    uint32_t n = 256;
    for (int i = 0; i < N_UNPRINTABLE; i++) {
        if (byte >= unprintable[i].low && byte <= unprintable[i].high) return n + byte - unprintable[i].low;
        n += (uint32_t)(unprintable[i].high - unprintable[i].low) + 1;
    }
    return byte;
}

size_t mica__bytes_decode(const char *text, size_t length, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < length;) {
        uint32_t c;
        at += mica__utf8_get(text + at, length - at, &c);
        const int byte = byte_of_character(c);
        if (byte < 0) return SIZE_MAX;
        out[n++] = (char)byte;
    }
    return n;
}

size_t mica__bytes_encode(const char *bytes, size_t length, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) n += mica__utf8_set(character_of_byte((uint8_t)bytes[i]), out + n);
    return n;
}
