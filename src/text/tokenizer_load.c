/* Vocabularies out of files: checked in full, because every number in them is
 * somebody else's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "text/tokenizer_build.h"
#include "text/unicode.h"

enum { VOCABULARY_MAX = 10000000 };

/* -------------------------------------------------------- pre-tokenizers --- */

static const struct {
    const char *names;
    bool whole;
    const char *patterns[MICA__PRE_PATTERNS];
} pre_table[] = {
#define MICA_PRE(names, whole, ...) {names, whole, {__VA_ARGS__}},
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

static mica_status set_pre(mica__tokenizer *t, const char *what, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof pre_table / sizeof pre_table[0]; i++) {
        if (!has_name(pre_table[i].names, name, length)) continue;
        t->whole_pieces = pre_table[i].whole;
        for (int k = 0; k < MICA__PRE_PATTERNS && pre_table[i].patterns[k]; k++) {
            const char *pattern = pre_table[i].patterns[k];
            MICA_TRY(mica__regex_new(&t->arena, pattern, strlen(pattern), &t->patterns[k]));
            t->n_patterns = k + 1;
        }
        return MICA_OK;
    }
    char quoted[MICA__QUOTE_TEXT];
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: the pre-tokenizer %s is not known", what,
                      mica__quote(quoted, name, length));
}

/* ---------------------------------------------------------------- tables --- */

static mica_status new_tokenizer(mica__tokenizer **out)
{
    mica__tokenizer *t = mica__alloc_zero(1, sizeof *t);
    *out = t;
    if (!t) return mica__fail_memory("a tokenizer", sizeof *t);
    mica__arena_init(&t->arena);
    t->seed = mica__hash_u64(mica__now_ns()) ^ (uint64_t)(uintptr_t)t;
    t->bos = t->eos = t->unknown = -1;
    return MICA_OK;
}

static int by_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The longest first, then by id. */
static mica_status sort_specials(mica__tokenizer *t)
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

static mica_status build_vocabulary(mica__tokenizer *t)
{
    size_t n_slots = 8;
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
        if (token->type != MICA__TOKEN_NORMAL || token->length == 0) continue;
        /* Of equal ones the first counts. */
        if (mica__vocabulary_find(t, token->text, token->length) >= 0) continue;
        size_t at = mica__hash(token->text, token->length, t->seed) & (n_slots - 1);
        while (t->slots[at]) at = (at + 1) & (n_slots - 1);
        t->slots[at] = (uint32_t)id + 1;
        if (!t->spm && token->length == 1) t->byte_token[(unsigned char)token->text[0]] = id;
    }
    return sort_specials(t);
}

static mica_status copy_text(mica__tokenizer *t, const char *text, size_t length, const char **out)
{
    *out = mica__arena_copy(&t->arena, text, length);
    return *out ? MICA_OK : mica__fail_memory("a vocabulary", length);
}

/* ------------------------------------------------------- byte-level names -- */

/* GPT-2 writes bytes that are no printable character as characters from U+0100
 * on: the byte of a character, -1 if it is none. */
static int byte_of_character(uint32_t c)
{
    static const struct {
        uint8_t low, high;
    } others[] = {{0, 32}, {127, 160}, {173, 173}};
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) return (int)c;
    uint32_t n = 256;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const uint32_t count = (uint32_t)(others[i].high - others[i].low) + 1;
        if (c >= n && c < n + count) return (int)(others[i].low + (c - n));
        n += count;
    }
    return -1;
}

/* Into out, which has room for length bytes; SIZE_MAX if a character is no byte. */
static size_t decode_bytes(const char *text, size_t length, char *out)
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

/* ------------------------------------------------------------------ GGUF --- */

static mica_status gguf_tokens(mica__tokenizer *t, const mica__file *file)
{
    const char *path = mica__file_path(file), *text;
    const mica__meta *tokens = mica__file_meta_find(file, "tokenizer.ggml.tokens");
    const mica__meta *scores = mica__file_meta_find(file, "tokenizer.ggml.scores");
    const mica__meta *types = mica__file_meta_find(file, "tokenizer.ggml.token_type");
    if (!tokens || tokens->type != MICA__META_ARRAY || tokens->item != MICA__META_STRING || tokens->count == 0 ||
        tokens->count > VOCABULARY_MAX)
        return mica__fail(MICA_ERR_FORMAT, "%s: tokenizer.ggml.tokens is no list of tokens", path);
    if ((scores && scores->count != tokens->count) || (types && types->count != tokens->count))
        return mica__fail(MICA_ERR_FORMAT, "%s: %" PRIu64 " tokens, %" PRIu64 " scores, %" PRIu64 " types", path,
                          tokens->count, scores ? scores->count : 0, types ? types->count : 0);
    if (t->spm && !scores) return mica__fail(MICA_ERR_FORMAT, "%s: tokenizer.ggml.scores is missing", path);
    t->tokens = mica__alloc_zero((size_t)tokens->count, sizeof *t->tokens);
    if (!t->tokens) return mica__fail_memory("a vocabulary", (size_t)tokens->count * sizeof *t->tokens);
    size_t at = 0, length;
    for (uint64_t i = 0; i < tokens->count && mica__meta_next_string(tokens, &at, &text, &length); i++) {
        mica__token_text *token = &t->tokens[t->n_tokens++];
        int64_t type = MICA__TOKEN_NORMAL;
        double score = 0;
        if ((types && !mica__meta_item_i64(types, i, &type)) || (scores && !mica__meta_item_f64(scores, i, &score)) ||
            type < MICA__TOKEN_NORMAL || type > MICA__TOKEN_BYTE || score != score || length > UINT16_MAX)
            return mica__fail(MICA_ERR_FORMAT, "%s: token %" PRIu64 " has %zu bytes, type %" PRId64 ", score %g", path,
                              i, length, type, score);
        token->type = (uint8_t)type;
        token->score = (float)score;
        MICA_TRY(copy_text(t, text, length, &token->text));
        token->length = (uint32_t)length;
    }
    return MICA_OK;
}

/* Normal tokens of byte-level BPE become the bytes they stand for. */
static mica_status decode_vocabulary(mica__tokenizer *t)
{
    for (int32_t id = 0; id < t->n_tokens; id++) {
        mica__token_text *token = &t->tokens[id];
        if (token->type != MICA__TOKEN_NORMAL) continue;
        char *out = mica__arena_alloc(&t->arena, token->length);
        if (!out) return mica__fail_memory("a vocabulary", token->length);
        const size_t n = decode_bytes(token->text, token->length, out);
        if (n == SIZE_MAX) continue; /* an added token in plain letters */
        token->text = out;
        token->length = (uint32_t)n;
    }
    return MICA_OK;
}

/* <0xNN> of SPM. */
static mica_status byte_tokens(mica__tokenizer *t, const char *path)
{
    for (int32_t id = 0; id < t->n_tokens; id++) {
        const mica__token_text *token = &t->tokens[id];
        if (token->type == MICA__TOKEN_UNKNOWN && t->unknown < 0) t->unknown = id; /* unless the file names another */
        if (token->type != MICA__TOKEN_BYTE) continue;
        static const char digits[] = "0123456789ABCDEF";
        const char *high = token->length == 6 && token->text[3] ? strchr(digits, token->text[3]) : NULL;
        const char *low = token->length == 6 && token->text[4] ? strchr(digits, token->text[4]) : NULL;
        if (!high || !low || memcmp(token->text, "<0x", 3) != 0 || token->text[5] != '>')
            return mica__fail(MICA_ERR_FORMAT, "%s: token %" PRId32 " says it is a byte and is not <0xNN>", path, id);
        t->byte_token[(high - digits) << 4 | (low - digits)] = id;
    }
    return MICA_OK;
}

static mica_status add_merge(mica__tokenizer *t, const char *text, size_t length, uint32_t rank, char *scratch)
{
    /* the space in the middle; a space inside a token is another character there */
    const char *space = length > 1 ? memchr(text + 1, ' ', length - 1) : NULL;
    if (!space) return mica__fail(MICA_ERR_FORMAT, "merge %" PRIu32 " of the tokenizer is no pair", rank);
    const size_t left_length = (size_t)(space - text), right_length = length - left_length - 1;
    const size_t a = decode_bytes(text, left_length, scratch);
    const int32_t left = a == SIZE_MAX ? -1 : mica__vocabulary_find(t, scratch, a);
    const size_t b = decode_bytes(space + 1, right_length, scratch);
    const int32_t right = b == SIZE_MAX ? -1 : mica__vocabulary_find(t, scratch, b);
    if (left < 0 || right < 0) return MICA_OK; /* can never be used */
    const uint64_t key = (uint64_t)left << 32 | (uint32_t)right;
    size_t at = mica__hash_u64(key ^ t->seed) & (t->n_pairs - 1);
    while (t->pairs[at] != UINT64_MAX && t->pairs[at] != key) at = (at + 1) & (t->n_pairs - 1);
    if (t->pairs[at] == key) return MICA_OK;
    t->pairs[at] = key;
    t->pair_ranks[at] = rank;
    return MICA_OK;
}

static mica_status gguf_merges(mica__tokenizer *t, const mica__file *file)
{
    const mica__meta *merges = mica__file_meta_find(file, "tokenizer.ggml.merges");
    if (!merges || merges->type != MICA__META_ARRAY || merges->item != MICA__META_STRING ||
        merges->count > VOCABULARY_MAX)
        return mica__fail(MICA_ERR_FORMAT, "%s: tokenizer.ggml.merges is no list of pairs", mica__file_path(file));
    size_t n_pairs = 8, at = 0, length, longest = 1;
    const char *text;
    while (n_pairs < 2 * merges->count) n_pairs *= 2;
    while (mica__meta_next_string(merges, &at, &text, &length)) longest = length > longest ? length : longest;
    t->pairs = mica__alloc(n_pairs * sizeof *t->pairs);
    t->pair_ranks = mica__alloc_zero(n_pairs, sizeof *t->pair_ranks);
    char *scratch = mica__alloc(longest);
    mica_status status = MICA_OK;
    if (!t->pairs || !t->pair_ranks || !scratch) status = mica__fail_memory("merges", n_pairs * sizeof *t->pairs);
    else {
        memset(t->pairs, 0xff, n_pairs * sizeof *t->pairs);
        t->n_pairs = n_pairs;
        at = 0;
        for (uint32_t rank = 0; status == MICA_OK && mica__meta_next_string(merges, &at, &text, &length); rank++)
            status = add_merge(t, text, length, rank, scratch);
    }
    mica__free(scratch);
    return status;
}

/* A special id, in the vocabulary or an error; -1 where there is none. */
static mica_status gguf_id(const mica__tokenizer *t, const mica__file *file, const char *key, int32_t *out)
{
    int64_t id;
    if (!mica__meta_i64(file, key, &id)) return MICA_OK;
    if (id < 0 || id >= t->n_tokens)
        return mica__fail(MICA_ERR_FORMAT, "%s: %s is %" PRId64 ", the vocabulary has %" PRId32 " tokens",
                          mica__file_path(file), key, id, t->n_tokens);
    *out = (int32_t)id;
    return MICA_OK;
}

static mica_status gguf_pre(mica__tokenizer *t, const mica__file *file, const char *pre)
{
    const char *name = pre, *arch = "";
    size_t length = pre ? strlen(pre) : 0, n = 0;
    if (!pre && !mica__meta_string(file, "tokenizer.ggml.pre", &name, &length)) {
        /* The official BitNet files do not say; their tokenizer is Llama 3's. */
        (void)mica__meta_string(file, "general.architecture", &arch, &n);
        if (n < 7 || memcmp(arch, "bitnet-", 7) != 0)
            return mica__fail(MICA_ERR_UNSUPPORTED, "%s: tokenizer.ggml.pre is missing: which pre-tokenizer is it?",
                              mica__file_path(file));
        name = "llama-bpe", length = 9;
    }
    return set_pre(t, mica__file_path(file), name, length);
}

static mica_status load_gguf(mica__tokenizer *t, const mica__file *file, const char *pre)
{
    const char *model, *path = mica__file_path(file);
    size_t n;
    if (!mica__meta_string(file, "tokenizer.ggml.model", &model, &n))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: has no tokenizer", path);
    t->spm = n == 5 && memcmp(model, "llama", 5) == 0;
    char quoted[MICA__QUOTE_TEXT];
    if (!t->spm && !(n == 4 && memcmp(model, "gpt2", 4) == 0))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a tokenizer of kind %s; gpt2 and llama are read", path,
                          mica__quote(quoted, model, n));
    MICA_TRY(gguf_tokens(t, file));
    if (!t->spm) MICA_TRY(decode_vocabulary(t));
    MICA_TRY(build_vocabulary(t));
    if (t->spm) MICA_TRY(byte_tokens(t, path));
    else MICA_TRY(gguf_merges(t, file));
    if (!t->spm) MICA_TRY(gguf_pre(t, file, pre));
    t->add_bos = t->add_space = t->spm;
    (void)mica__meta_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos);
    if (t->spm) (void)mica__meta_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space);
    MICA_TRY(gguf_id(t, file, "tokenizer.ggml.bos_token_id", &t->bos));
    MICA_TRY(gguf_id(t, file, "tokenizer.ggml.eos_token_id", &t->eos));
    return gguf_id(t, file, "tokenizer.ggml.unknown_token_id", &t->unknown);
}

static mica_status finish(mica__tokenizer *t, mica_status status, mica__tokenizer **out)
{
    *out = NULL;
    if (status == MICA_OK) *out = t;
    else mica__tokenizer_free(t);
    return status;
}

mica_status mica__tokenizer_from_gguf(const mica__file *file, const char *pre, mica__tokenizer **out)
{
    mica__tokenizer *t;
    mica_status status = new_tokenizer(&t);
    if (status == MICA_OK) status = load_gguf(t, file, pre);
    return finish(t, status, out);
}

/* ----------------------------------------------------------------- ranks --- */

static int base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Into out, which has room for n bytes; SIZE_MAX if it is none. */
static size_t base64(const char *text, size_t n, char *out)
{
    uint32_t bits = 0;
    size_t written = 0;
    int count = 0;
    if (n % 4) return SIZE_MAX;
    while (n && text[n - 1] == '=') n--;
    for (size_t i = 0; i < n; i++) {
        const int d = base64_digit(text[i]);
        if (d < 0) return SIZE_MAX;
        bits = bits << 6 | (uint32_t)d;
        if ((count += 6) >= 8) out[written++] = (char)(bits >> (count -= 8) & 255);
    }
    return written;
}

static mica_status load_ranks(mica__tokenizer *t, const char *what, const char *text, size_t size)
{
    int32_t cap = 0;
    for (size_t at = 0, line = 1; at < size; line++) {
        const char *from = text + at, *end = memchr(from, '\n', size - at);
        const size_t length = end ? (size_t)(end - from) : size - at;
        at += length + 1;
        if (length == 0) continue;
        const char *space = memchr(from, ' ', length);
        int64_t rank = space && space + 1 < from + length ? 0 : -1;
        for (const char *p = space ? space + 1 : from + length; p < from + length && rank <= VOCABULARY_MAX; p++)
            rank = *p >= '0' && *p <= '9' ? rank * 10 + (*p - '0') : VOCABULARY_MAX + 1;
        if (t->n_tokens == cap) {
            const int32_t more = cap ? 2 * cap : 1024;
            mica__token_text *grown = mica__realloc(t->tokens, (size_t)more * sizeof *grown);
            if (!grown) return mica__fail_memory("a vocabulary", (size_t)more * sizeof *grown);
            t->tokens = grown;
            cap = more;
        }
        const size_t digits = space ? (size_t)(space - from) : 0;
        char *out = mica__arena_alloc(&t->arena, digits + 1);
        if (!out) return mica__fail_memory("a vocabulary", digits);
        const size_t n = space ? base64(from, digits, out) : SIZE_MAX;
        if (n == SIZE_MAX || n == 0 || rank != t->n_tokens || n > UINT16_MAX)
            return mica__fail(MICA_ERR_FORMAT, "%s: line %zu is no token in base64 with the rank %" PRId32, what, line,
                              t->n_tokens);
        t->tokens[t->n_tokens++] = (mica__token_text){out, (uint32_t)n, 0, MICA__TOKEN_NORMAL};
    }
    return t->n_tokens ? build_vocabulary(t) : mica__fail(MICA_ERR_FORMAT, "%s: has no ranks", what);
}

mica_status mica__tokenizer_from_ranks(const char *what, const void *text, size_t size, const char *pre,
                                       mica__tokenizer **out)
{
    mica__tokenizer *t;
    mica_status status = new_tokenizer(&t);
    if (status == MICA_OK) {
        t->merge_by_rank = true;
        status = load_ranks(t, what, text, size);
    }
    if (status == MICA_OK) status = set_pre(t, what, pre, strlen(pre));
    return finish(t, status, out);
}
