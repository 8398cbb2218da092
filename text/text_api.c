/* mica_tokenizer_*, mica_detokenize, mica_chat_*: check the arguments and call the implementation. */
#include <string.h>

#include "text/bpe_train.h"
#include "text/chat.h"
#include "text/tokenizer_build.h"
#include "text/tokenizer_write.h"

void mica_tokenizer_options_init(mica_tokenizer_options *options)
{
    if (options) *options = (mica_tokenizer_options){.struct_size = sizeof *options};
}

static mica_status tokenizer_options(const char *call, const mica_tokenizer_options *given, mica_tokenizer_options *all)
{
    *all = (mica_tokenizer_options){.struct_size = sizeof *all};
    return mica_struct_read(call, all, sizeof *all, given);
}

/* Applies the options to a tokenizer that was read; frees it if that fails. */
static mica_status apply_options(mica_status status, const mica_tokenizer_options *options, mica_tokenizer **out)
{
    if (status != MICA_OK) return status;
    mica_tokenizer *t = *out;
    const char *chat = options->chat_template;
    status = chat ? mica__tokenizer_copy(t, chat, strlen(chat), &t->chat) : mica__chat_resolve(t);
    return mica__tokenizer_finish(t, status, out);
}

mica_status mica_tokenizer_from_file(const mica_file *file, const mica_tokenizer_options *options, mica_tokenizer **out)
{
    mica_tokenizer_options all;
    if (!file || !out) return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_from_file: %s is NULL", file ? "out" : "file");
    *out = NULL;
    MICA_TRY(tokenizer_options("tokenizer_from_file", options, &all));
    return apply_options(mica__tokenizer_from_file((const mica__file *)file, all.pre, out), &all, out);
}

mica_status mica_tokenizer_open(const char *path, const mica_tokenizer_options *options, mica_tokenizer **out)
{
    mica_tokenizer_options all;
    if (!path || !out) return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_open: %s is NULL", path ? "out" : "path");
    *out = NULL;
    MICA_TRY(tokenizer_options("tokenizer_open", options, &all));
    return apply_options(mica__tokenizer_open(path, all.pre, out), &all, out);
}

void mica_tokenizer_close(mica_tokenizer *t) { mica__tokenizer_free(t); }

const char *mica_tokenizer_note(const mica_tokenizer *t, size_t i)
{
    return t && i < (size_t)t->n_notes ? t->notes[i] : NULL;
}

const char *mica_tokenizer_kind(const mica_tokenizer *t) { return t && t->characters ? "spm" : "bpe"; }
const char *mica_tokenizer_pre(const mica_tokenizer *t) { return t ? t->pre : ""; }
int32_t mica_tokenizer_size(const mica_tokenizer *t) { return t ? t->n_tokens : 0; }
bool mica_tokenizer_adds_bos(const mica_tokenizer *t) { return t && t->add_bos && t->role[MICA_TOKEN_BOS] >= 0; }

int32_t mica_tokenizer_role(const mica_tokenizer *t, mica_token_role role)
{
    return t && (unsigned)role <= MICA_TOKEN_PADDING ? t->role[role] : -1;
}

bool mica_tokenizer_ends(const mica_tokenizer *t, int32_t id)
{
    for (int i = 0; t && i < t->n_ends; i++)
        if (t->ends[i] == id) return true;
    return false;
}

bool mica_tokenizer_is_control(const mica_tokenizer *t, int32_t id)
{
    return t && id >= 0 && id < t->n_tokens && t->tokens[id].type == MICA__TOKEN_CONTROL;
}

int32_t mica_tokenizer_find(const mica_tokenizer *t, const char *text, size_t length)
{
    return t && text ? mica__tokenizer_find(t, text, length) : -1;
}

bool mica_tokenizer_text(const mica_tokenizer *t, int32_t id, const char **text, size_t *length)
{
    if (!t || !text || !length || id < 0 || id >= t->n_tokens) return false;
    *text = t->tokens[id].text;
    *length = t->tokens[id].length;
    return true;
}

mica_status mica_tokenizer_encode(const mica_tokenizer *t, const char *text, size_t length, int flags, int32_t *ids,
                                  size_t cap, size_t *count)
{
    if (!t || !count || (!text && length) || (!ids && cap))
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_encode: %s is NULL",
                          !t       ? "the tokenizer"
                          : !count ? "count"
                          : !text  ? "text"
                                   : "ids");
    if (flags & ~(MICA_ENCODE_BOS | MICA_ENCODE_SPECIAL))
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_encode: unknown flags %#x", (unsigned)flags);
    mica__tokens tokens = {0};
    *count = 0;
    const mica_status status = mica__tokenizer_encode(t, text ? text : "", length, flags, &tokens);
    const size_t n = tokens.n < cap ? tokens.n : cap;
    if (status == MICA_OK) {
        if (n) memcpy(ids, tokens.ids, n * sizeof *ids);
        *count = tokens.n;
    }
    mica__tokens_free(&tokens);
    return status;
}

mica_status mica_tokenizer_decode(const mica_tokenizer *t, const int32_t *ids, size_t n, int flags, char *text,
                                  size_t cap, size_t *length)
{
    if (!t || !length || (!ids && n) || (!text && cap))
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_decode: %s is NULL",
                          !t        ? "the tokenizer"
                          : !length ? "length"
                          : !ids    ? "ids"
                                    : "text");
    if (flags & ~MICA_DECODE_SPECIAL)
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_decode: unknown flags %#x", (unsigned)flags);
    *length = 0;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= t->n_tokens)
            return mica__fail(MICA_ERR_INDEX, "tokenizer_decode: id %zu is %ld, the vocabulary has %ld tokens", i,
                              (long)ids[i], (long)t->n_tokens);
    *length = mica__decode(t, ids, n, flags, text, cap);
    return MICA_OK;
}

size_t mica_detokenize(const mica_tokenizer *t, mica_detokenizer *state, int32_t id, int flags, char *text, size_t cap)
{
    return t && state && (text || !cap) ? mica__detokenize(t, state, id, flags, text, cap) : 0;
}

const char *mica_chat_name(size_t i) { return mica__chat_name(i); }
const char *mica_chat_template(const mica_tokenizer *t) { return t ? t->chat : NULL; }

mica_status mica_chat_render(const mica_tokenizer *t, const char *chat, const mica_chat_message *messages, size_t n,
                             bool prompt, char *text, size_t cap, size_t *length)
{
    if ((!messages && n) || (!text && cap) || !length)
        return mica__fail(MICA_ERR_ARGUMENT, "chat_render: %s is NULL",
                          !length        ? "length"
                          : !text && cap ? "text"
                                         : "messages");
    *length = 0;
    for (size_t i = 0; i < n; i++)
        if (!messages[i].role || !messages[i].content)
            return mica__fail(MICA_ERR_ARGUMENT, "chat_render: message %zu has no role or no content", i);
    if (!chat && !(chat = mica_chat_template(t)))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s has no chat template; give one by name",
                          t ? t->what : "chat_render: the tokenizer is NULL and");
    mica__arena arena;
    const char *rendered;
    size_t n_rendered;
    mica__arena_init(&arena);
    const mica_status status = mica__chat_render(&arena, t, chat, messages, n, prompt, &rendered, &n_rendered);
    if (status == MICA_OK) {
        const size_t fits = n_rendered < cap ? n_rendered + 1 : cap; /* with its NUL */
        if (fits) memcpy(text, rendered, fits);
        if (fits) text[fits - 1] = '\0';
        *length = n_rendered;
    }
    mica__arena_free(&arena);
    return status;
}

mica_status mica_tokenizer_save(const mica_tokenizer *t, const char *path)
{
    if (!t || !path) return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_save: %s is NULL", t ? "path" : "the tokenizer");
    return mica__tokenizer_save(t, path);
}

static mica_dtype meta_dtype(mica__meta_type type)
{
    return type == MICA__META_U32   ? MICA_U32
           : type == MICA__META_I32 ? MICA_I32
           : type == MICA__META_F32 ? MICA_F32
                                    : MICA_BOOL; /* mica__tokenizer_meta uses no other types */
}

mica_status mica_tokenizer_put(const mica_tokenizer *t, mica_writer *w)
{
    mica__meta meta[MICA__TOKENIZER_META];
    mica__arena arena;
    size_t n;
    if (!t || !w) return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_put: %s is NULL", t ? "the writer" : "the tokenizer");
    mica__arena_init(&arena);
    mica_status status = mica__tokenizer_meta(t, &arena, meta, &n);
    for (size_t i = 0; i < n && status == MICA_OK; i++) {
        const bool array = meta[i].type == MICA__META_ARRAY;
        const mica__meta_type type = array ? meta[i].item : meta[i].type;
        const mica_meta_info info = {.struct_size = sizeof info,
                                     .key = meta[i].key,
                                     .dtype = type == MICA__META_STRING ? -1 : (int)meta_dtype(type),
                                     .array = array,
                                     .count = meta[i].count,
                                     .data = meta[i].data,
                                     .nbytes = meta[i].nbytes};
        status = mica_writer_meta(w, &info);
    }
    mica__arena_free(&arena);
    return status;
}

void mica_bpe_options_init(mica_bpe_options *options)
{
    static const char *const specials[] = {"<|endoftext|>"};
    if (options)
        *options = (mica_bpe_options){
            .struct_size = sizeof *options, .vocab = 1024, .pre = "gpt-2", .specials = specials, .n_specials = 1};
}

mica_status mica_tokenizer_train(const char *text, size_t length, const mica_bpe_options *options, mica_tokenizer **out)
{
    enum { MOST_TEXT = 1 << 30, MOST_SPECIALS = 1000 };
    mica_bpe_options all;
    if (!out || (!text && length))
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_train: %s is NULL", out ? "text" : "out");
    *out = NULL;
    mica_bpe_options_init(&all);
    MICA_TRY(mica_struct_read("tokenizer_train: mica_bpe_options", &all, sizeof all, options));
    if (!all.pre) all.pre = "gpt-2";
    if (length > MOST_TEXT)
        return mica__fail(MICA_ERR_SIZE, "tokenizer_train: a text of %zu bytes; the limit is 1 GiB", length);
    if ((all.n_specials && !all.specials) || all.n_specials > MOST_SPECIALS)
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_train: n_specials is %zu (0 to 1000), or specials is NULL",
                          all.n_specials);
    for (size_t i = 0; i < all.n_specials; i++)
        if (!all.specials[i] || !*all.specials[i])
            return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_train: special token %zu is empty", i);
    if (all.vocab < 256 + (int32_t)all.n_specials || all.vocab > 1000000)
        return mica__fail(MICA_ERR_ARGUMENT, "tokenizer_train: vocab %ld is out of range (%zu to 1000000)",
                          (long)all.vocab, 256 + all.n_specials);
    return mica__bpe_train(text, length, &all, out);
}
