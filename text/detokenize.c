/* Decodes tokens to text. Bytes are held back until they form complete UTF-8 characters. */
#include <string.h>

#include "text/tokenizer_build.h"
#include "text/unicode.h"

static int hex_value(char c) { return c >= '0' && c <= '9' ? c - '0' : c - 'A' + 10; }

size_t mica__tokenizer_bytes(const mica_tokenizer *t, int32_t id, int flags, const char **text, char scratch[4])
{
    *text = scratch;
    if (id < 0 || id >= t->n_tokens) return 0;
    const mica__token_text *token = &t->tokens[id];
    const bool special = token->type == MICA__TOKEN_CONTROL || token->type == MICA__TOKEN_UNKNOWN;
    if (token->type == MICA__TOKEN_UNUSED || (special && !(flags & MICA_DECODE_SPECIAL))) return 0;
    if (token->type == MICA__TOKEN_BYTE) { /* <0xNN>, validated by mica__tokenizer_index */
        scratch[0] = (char)(hex_value(token->text[3]) << 4 | hex_value(token->text[4]));
        return 1;
    }
    *text = token->text;
    return token->length;
}

/* Writes complete characters to out. Keeps an incomplete one that more bytes may complete, unless `last`. */
static size_t put_characters(mica_detokenizer *d, char *out, bool last)
{
    size_t n = 0;
    while (d->n_held) {
        uint32_t c;
        const size_t want = mica__utf8_expected((unsigned char)d->held[0]);
        const size_t size = mica__utf8_get(d->held, d->n_held, &c);
        if (c == 0xfffd && size == 1 && !last) {
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

/* An output buffer; n also counts bytes that did not fit. */
typedef struct text_sink {
    char *out;
    size_t cap, n;
} text_sink;

static void sink_put(text_sink *sink, const char *text, size_t n)
{
    const size_t room = sink->n < sink->cap ? sink->cap - sink->n : 0, fits = n < room ? n : room;
    if (fits) memcpy(sink->out + sink->n, text, fits);
    sink->n += n;
}

static void sink_byte(text_sink *sink, mica_detokenizer *d, char byte)
{
    char characters[16];
    if (d->n_held >= sizeof d->held) d->n_held = 0; /* the caller's state is corrupt */
    d->held[d->n_held++] = byte;
    sink_put(sink, characters, put_characters(d, characters, false));
}

static void sink_token(const mica_tokenizer *t, mica_detokenizer *d, int32_t id, int flags, text_sink *sink)
{
    char scratch[12];
    const char *text;
    if (id < 0 && d->n_held <= sizeof d->held) sink_put(sink, scratch, put_characters(d, scratch, true));
    const size_t length = mica__tokenizer_bytes(t, id, flags, &text, scratch);
    const uint8_t type = length ? t->tokens[id].type : 0;
    const bool spaced = t->spaces && type != MICA__TOKEN_CONTROL && type != MICA__TOKEN_BYTE;
    for (size_t i = 0; i < length; i++) {
        if (spaced && length - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0) {
            i += 2;
            /* the space that encoding put first is not part of the text */
            if (d->started || !t->strip_space) sink_byte(sink, d, ' ');
        } else {
            sink_byte(sink, d, text[i]);
        }
        d->started = true;
    }
}

size_t mica__detokenize(const mica_tokenizer *t, mica_detokenizer *state, int32_t id, int flags, char *out, size_t cap)
{
    text_sink sink = {out, cap, 0};
    mica_detokenizer d = *state;
    sink_token(t, &d, id, flags, &sink);
    if (sink.n <= cap) *state = d;
    return sink.n;
}

size_t mica__decode(const mica_tokenizer *t, const int32_t *ids, size_t n, int flags, char *out, size_t cap)
{
    text_sink sink = {out, cap, 0};
    mica_detokenizer d = {0};
    for (size_t i = 0; i < n; i++) sink_token(t, &d, ids[i], flags, &sink);
    sink_token(t, &d, -1, flags, &sink);
    return sink.n;
}
