/* Reads vocabularies that are separate files: ranks of tiktoken, tokenizer.bin of
 * llama2.c, tokenizer.model of SentencePiece. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer_build.h"

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

/* Decodes base64 into out, which has room for n bytes; returns SIZE_MAX for malformed text. */
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

static mica_status load_ranks(mica_tokenizer *t, const char *text, size_t size)
{
    enum { LONGEST = 4096 };
    char token[LONGEST];
    for (size_t at = 0, line = 1; at < size; line++) {
        const char *from = text + at, *end = memchr(from, '\n', size - at);
        const size_t length = end ? (size_t)(end - from) : size - at;
        at += length + 1;
        if (length == 0) continue;
        const char *space = memchr(from, ' ', length);
        int64_t rank = space && space + 1 < from + length ? 0 : -1;
        for (const char *p = space ? space + 1 : from + length; p < from + length && rank <= MICA__VOCABULARY_MAX; p++)
            rank = *p >= '0' && *p <= '9' ? rank * 10 + (*p - '0') : MICA__VOCABULARY_MAX + 1;
        const size_t digits = space ? (size_t)(space - from) : 0;
        const size_t n = space && digits <= LONGEST ? base64(from, digits, token) : SIZE_MAX;
        if (n == SIZE_MAX || n == 0 || rank != t->n_tokens)
            return mica__fail(MICA_ERR_FORMAT, "%s: line %zu is not a token in base64 with rank %" PRId32, t->what,
                              line, t->n_tokens);
        MICA_TRY(mica__tokenizer_add(t, token, n, 0, MICA__TOKEN_NORMAL));
    }
    return MICA_OK;
}

/* Llama 3 defines its 256 special tokens in code, not in the file of ranks. */
static mica_status llama3_specials(mica_tokenizer *t)
{
    static const char *const names[] = {"<|begin_of_text|>",   "<|end_of_text|>",   NULL, NULL,        NULL, NULL,
                                        "<|start_header_id|>", "<|end_header_id|>", NULL, "<|eot_id|>"};
    enum { N_NAMES = sizeof names / sizeof names[0], N_SPECIALS = 256 };
    const int32_t first = t->n_tokens;
    for (int i = 0, reserved = 0; i < N_SPECIALS; i++) {
        char other[48];
        const char *name = i < N_NAMES && names[i] ? names[i] : other;
        if (name == other) snprintf(other, sizeof other, "<|reserved_special_token_%d|>", reserved++);
        MICA_TRY(mica__tokenizer_add(t, name, strlen(name), 0, MICA__TOKEN_CONTROL));
    }
    t->role[MICA_TOKEN_BOS] = first;
    t->role[MICA_TOKEN_EOS] = first + 1;
    t->add_bos = true;
    return mica__tokenizer_add_note(t, "the file has ranks only: llama-bpe and the special tokens of Llama 3 are used");
}

static mica_status finish_ranks(mica_tokenizer *t, const char *pre)
{
    enum { LLAMA3_RANKS = 128000 };
    if (!pre && t->n_tokens != LLAMA3_RANKS)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: %" PRId32 " ranks name no pre-tokenizer; give it by name", t->what,
                          t->n_tokens);
    if (!pre) MICA_TRY(llama3_specials(t));
    MICA_TRY(mica__tokenizer_index(t));
    MICA_TRY(mica__tokenizer_set_pre(t, pre ? pre : "llama-bpe", pre ? strlen(pre) : 9));
    mica__tokenizer_add_known_ends(t);
    return MICA_OK;
}

mica_status mica__tokenizer_from_ranks(const char *what, const void *text, size_t size, const char *pre,
                                       mica_tokenizer **out)
{
    mica_tokenizer *t;
    mica_status status = mica__tokenizer_new(what, &t);
    if (status == MICA_OK) {
        t->order = MICA__BY_IDS;
        status = load_ranks(t, text, size);
    }
    if (status == MICA_OK) status = finish_ranks(t, pre);
    return mica__tokenizer_finish(t, status, out);
}

/* ------------------------------------------------------------------- SPM --- */

static mica_status new_spm(const char *what, mica_tokenizer **t)
{
    MICA_TRY(mica__tokenizer_new(what, t));
    (*t)->order = MICA__BY_SCORES;
    (*t)->characters = (*t)->spaces = (*t)->add_bos = (*t)->strip_space = true;
    (*t)->prefix = MICA__PREFIX_ALL;
    return MICA_OK;
}

static mica_status finish_spm(mica_tokenizer *t, int32_t bos, int32_t eos)
{
    if (bos >= t->n_tokens || eos >= t->n_tokens)
        return mica__fail(MICA_ERR_FORMAT,
                          "%s: the begin or end token (%" PRId32 ", %" PRId32 ") is not in a vocabulary of %" PRId32,
                          t->what, bos, eos, t->n_tokens);
    t->role[MICA_TOKEN_BOS] = bos < 0 ? -1 : bos;
    t->role[MICA_TOKEN_EOS] = eos < 0 ? -1 : eos;
    MICA_TRY(mica__tokenizer_index(t));
    mica__tokenizer_add_known_ends(t);
    return MICA_OK;
}

static uint32_t little_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float little_f32(const uint8_t *p)
{
    const uint32_t bits = little_u32(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Adds a token of llama2.c. Its spaces become U+2581, and <s> and </s>, which have line breaks around them in the
 * file, get their plain names. */
static mica_status add_llama2c(mica_tokenizer *t, const char *text, uint32_t length, float score)
{
    const int32_t id = t->n_tokens;
    if (id == 1 || id == 2)
        return mica__tokenizer_add(t, id == 1 ? "<s>" : "</s>", id == 1 ? 3 : 4, score, MICA__TOKEN_CONTROL);
    const int type = id == 0 ? MICA__TOKEN_UNKNOWN : id < 259 ? MICA__TOKEN_BYTE : MICA__TOKEN_NORMAL;
    char spaced[3 * 256];
    size_t n = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (text[i] == ' ') memcpy(spaced + n, "\xe2\x96\x81", 3), n += 3;
        else spaced[n++] = text[i];
    }
    return mica__tokenizer_add(t, spaced, n, score, type);
}

static mica_status load_llama2c(mica_tokenizer *t, const uint8_t *data, size_t size)
{
    enum { FIRST = 259, LONGEST = 256 };
    if (size < 4 || little_u32(data) > LONGEST)
        return mica__fail(MICA_ERR_FORMAT, "%s: not a tokenizer.bin of llama2.c", t->what);
    for (size_t at = 4; at < size;) {
        const uint32_t length = size - at >= 8 ? little_u32(data + at + 4) : UINT32_MAX;
        if (length > LONGEST || length > size - at - 8)
            return mica__fail(MICA_ERR_FORMAT, "%s: token %" PRId32 " at byte %zu does not fit into the file", t->what,
                              t->n_tokens, at);
        MICA_TRY(add_llama2c(t, (const char *)data + at + 8, length, little_f32(data + at)));
        at += 8 + length;
    }
    if (t->n_tokens < FIRST)
        return mica__fail(MICA_ERR_FORMAT, "%s: %" PRId32 " tokens; at least 256 bytes and 3 special tokens are needed",
                          t->what, t->n_tokens);
    return finish_spm(t, 1, 2);
}

mica_status mica__tokenizer_from_llama2c(const char *what, const void *data, size_t size, mica_tokenizer **out)
{
    mica_tokenizer *t;
    mica_status status = new_spm(what, &t);
    if (status == MICA_OK) status = load_llama2c(t, data, size);
    return mica__tokenizer_finish(t, status, out);
}

/* --------------------------------------------------------- SentencePiece --- */

/* One field of a protobuf message: its number, and a value or bytes. */
typedef struct proto_field {
    uint32_t number;
    uint64_t value;      /* of integers                        */
    const uint8_t *data; /* of messages, strings and fixed-width fields */
    size_t size;
} proto_field;

static bool proto_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        const uint8_t byte = *(*p)++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* Reads the next field; false at the end, or for malformed data, which also sets *bad. */
static bool proto_next(const uint8_t **p, const uint8_t *end, proto_field *f, bool *bad)
{
    uint64_t tag, n;
    *f = (proto_field){0};
    if (*p == end) return false;
    *bad = true;
    if (!proto_varint(p, end, &tag) || tag >> 3 > UINT32_MAX || tag >> 3 == 0) return false;
    f->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case 0:
        if (!proto_varint(p, end, &f->value)) return false;
        break;
    case 1:
    case 5:
        n = (tag & 7) == 1 ? 8 : 4;
        if ((size_t)(end - *p) < n) return false;
        f->data = *p;
        f->size = (size_t)n;
        *p += n;
        break;
    case 2:
        if (!proto_varint(p, end, &n) || n > (uint64_t)(end - *p)) return false;
        f->data = *p;
        f->size = (size_t)n;
        *p += n;
        break;
    default: return false;
    }
    *bad = false;
    return true;
}

/* The settings of a SentencePiece model. */
typedef struct spm_spec {
    uint64_t kind, bos, eos, remove_spaces, prefix;
    size_t n_normalizer;
} spm_spec;

static bool read_spec(const proto_field *message, bool trainer, spm_spec *spec)
{
    const uint8_t *p = message->data, *end = p + message->size;
    proto_field f;
    bool bad = false;
    while (proto_next(&p, end, &f, &bad)) {
        if (trainer && f.number == 3) spec->kind = f.value;
        else if (trainer && f.number == 41) spec->bos = f.value;
        else if (trainer && f.number == 42) spec->eos = f.value;
        else if (!trainer && f.number == 2) spec->n_normalizer = f.size;
        else if (!trainer && f.number == 3) spec->prefix = f.value;
        else if (!trainer && f.number == 4) spec->remove_spaces = f.value;
    }
    return !bad;
}

static mica_status read_sentence_piece(mica_tokenizer *t, const proto_field *message)
{
    const uint8_t *p = message->data, *end = p + message->size;
    proto_field f, piece = {0};
    float score = 0;
    uint64_t type = MICA__TOKEN_NORMAL;
    bool bad = false;
    while (proto_next(&p, end, &f, &bad)) {
        if (f.number == 1) piece = f;
        else if (f.number == 2 && f.size == 4) score = little_f32(f.data);
        else if (f.number == 3) type = f.value;
    }
    if (bad) return mica__fail(MICA_ERR_FORMAT, "%s: piece %" PRId32 " is malformed", t->what, t->n_tokens);
    return mica__tokenizer_add(t, piece.data ? (const char *)piece.data : "", piece.size, score,
                               type > MICA__TOKEN_BYTE ? 0 : (int)type);
}

static mica_status load_sentencepiece(mica_tokenizer *t, const uint8_t *data, size_t size)
{
    enum { KIND_BPE = 2 };
    const uint8_t *p = data, *end = data + size;
    spm_spec spec = {.kind = 1, .bos = 1, .eos = 2, .remove_spaces = 1, .prefix = 1};
    proto_field f;
    bool bad = false, good = true;
    while (good && proto_next(&p, end, &f, &bad)) {
        if (f.number == 1 && f.data) MICA_TRY(read_sentence_piece(t, &f));
        else if ((f.number == 2 || f.number == 3) && f.data) good = read_spec(&f, f.number == 2, &spec);
    }
    if (bad || !good)
        return mica__fail(MICA_ERR_FORMAT, "%s: byte %zu is not a field of a SentencePiece model", t->what,
                          (size_t)(p - data));
    static const char *const kinds[] = {"?", "unigram", "bpe", "word", "char"};
    if (spec.kind != KIND_BPE)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a SentencePiece model of kind %s; only bpe is supported", t->what,
                          kinds[spec.kind < 5 ? spec.kind : 0]);
    if (spec.n_normalizer || spec.remove_spaces)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a SentencePiece model that %s", t->what,
                          spec.n_normalizer ? "normalises its text by a table" : "removes spaces");
    if (!spec.prefix) t->prefix = MICA__PREFIX_NONE, t->strip_space = false;
    /* -1, "none", is a varint of ten bytes */
    return finish_spm(t, spec.bos > INT32_MAX ? -1 : (int32_t)spec.bos, spec.eos > INT32_MAX ? -1 : (int32_t)spec.eos);
}

mica_status mica__tokenizer_from_sentencepiece(const char *what, const void *data, size_t size, mica_tokenizer **out)
{
    mica_tokenizer *t;
    mica_status status = new_spm(what, &t);
    if (status == MICA_OK) status = load_sentencepiece(t, data, size);
    return mica__tokenizer_finish(t, status, out);
}
