/* Writes tokenizers as tokenizer.json or as the keys tokenizer.* of GGUF. Reading the
 * file again gives the same tokenizer. */
#include "text/tokenizer_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/model_write.h"
#include "text/tokenizer_build.h"

/* ---------------------------------------------------------------- merges --- */

typedef struct ranked_pair {
    uint32_t rank;
    int32_t left, right;
} ranked_pair;

static int by_merge_rank(const void *a, const void *b)
{
    const uint32_t x = ((const ranked_pair *)a)->rank, y = ((const ranked_pair *)b)->rank;
    return x < y ? -1 : x > y;
}

/* The merges in order of rank; the caller frees *out. */
static mica_status list_merges(const mica_tokenizer *t, ranked_pair **out, size_t *n)
{
    *n = 0;
    *out = mica__alloc_zero(t->n_pairs ? t->n_pairs : 1, sizeof **out);
    if (!*out) return mica__fail_memory("merges", t->n_pairs * sizeof **out);
    for (size_t i = 0; i < t->n_pairs; i++)
        if (t->pairs[i] != UINT64_MAX)
            (*out)[(*n)++] = (ranked_pair){t->pair_ranks[i], (int32_t)(t->pairs[i] >> 32), (int32_t)t->pairs[i]};
    if (*n > 1) qsort(*out, *n, sizeof **out, by_merge_rank);
    return MICA_OK;
}

/* The name of a token in files: byte-level tokens in printable characters. Returns its length. */
static size_t written_name(const mica_tokenizer *t, int32_t id, char *out)
{
    const mica__token_text *token = &t->tokens[id];
    if (!t->characters && token->type == MICA__TOKEN_NORMAL) return mica__bytes_encode(token->text, token->length, out);
    memcpy(out, token->text, token->length);
    return token->length;
}

/* ------------------------------------------------------------------ GGUF --- */

static mica_status meta_put(mica__meta *m, mica__arena *arena, const char *key, mica__meta_type type, const void *data,
                            size_t nbytes)
{
    void *copy = mica__arena_copy(arena, data, nbytes ? nbytes : 1);
    *m = (mica__meta){.key = key, .type = type, .count = 1, .data = copy, .nbytes = nbytes};
    return copy ? MICA_OK : mica__fail_memory("metadata", nbytes);
}

static mica_status meta_list(mica__meta *m, mica__arena *arena, const char *key, mica__meta_type item, size_t count,
                             size_t nbytes, uint8_t **data)
{
    *data = mica__arena_alloc(arena, nbytes ? nbytes : 1);
    *m = (mica__meta){key, MICA__META_ARRAY, item, count, *data, nbytes};
    return *data ? MICA_OK : mica__fail_memory("metadata", nbytes);
}

static uint8_t *meta_put_string(uint8_t *p, const char *text, uint64_t n)
{
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(n >> 8 * i);
    memcpy(p + 8, text, n);
    return p + 8 + n;
}

static mica_status meta_tokens(const mica_tokenizer *t, mica__arena *arena, mica__meta *m, char *name)
{
    const size_t count = (size_t)t->n_tokens;
    size_t total = 0;
    uint8_t *p, *types, *scores;
    for (int32_t id = 0; id < t->n_tokens; id++) total += 8 + written_name(t, id, name);
    MICA_TRY(meta_list(&m[0], arena, "tokenizer.ggml.tokens", MICA__META_STRING, count, total, &p));
    MICA_TRY(meta_list(&m[1], arena, "tokenizer.ggml.token_type", MICA__META_I32, count, 4 * count, &types));
    MICA_TRY(meta_list(&m[2], arena, "tokenizer.ggml.scores", MICA__META_F32, count, 4 * count, &scores));
    for (int32_t id = 0; id < t->n_tokens; id++) {
        p = meta_put_string(p, name, written_name(t, id, name));
        types[4 * id] = t->tokens[id].type;
        uint32_t bits;
        memcpy(&bits, &t->tokens[id].score, 4);
        for (int k = 0; k < 4; k++) scores[4 * id + k] = (uint8_t)(bits >> 8 * k);
    }
    return MICA_OK;
}

static mica_status meta_merges(const mica_tokenizer *t, mica__arena *arena, mica__meta *m, char *name)
{
    ranked_pair *merges;
    size_t n, total = 0;
    mica_status status = list_merges(t, &merges, &n);
    for (size_t i = 0; i < n && status == MICA_OK; i++)
        total += 9 + written_name(t, merges[i].left, name) + written_name(t, merges[i].right, name);
    uint8_t *p = NULL;
    if (status == MICA_OK) status = meta_list(m, arena, "tokenizer.ggml.merges", MICA__META_STRING, n, total, &p);
    for (size_t i = 0; i < n && status == MICA_OK; i++) {
        size_t length = written_name(t, merges[i].left, name);
        name[length++] = ' ';
        length += written_name(t, merges[i].right, name + length);
        p = meta_put_string(p, name, length);
    }
    mica__free(merges);
    return status;
}

mica_status mica__tokenizer_meta(const mica_tokenizer *t, mica__arena *arena, mica__meta *m, size_t *n)
{
    static const struct {
        const char *key;
        mica_token_role role;
    } roles[] = {{"tokenizer.ggml.bos_token_id", MICA_TOKEN_BOS},
                 {"tokenizer.ggml.eos_token_id", MICA_TOKEN_EOS},
                 {"tokenizer.ggml.eot_token_id", MICA_TOKEN_EOT},
                 {"tokenizer.ggml.unknown_token_id", MICA_TOKEN_UNKNOWN},
                 {"tokenizer.ggml.padding_token_id", MICA_TOKEN_PADDING}};
    const bool spm = t->order == MICA__BY_SCORES;
    const uint8_t add_bos = t->add_bos, space = t->prefix != MICA__PREFIX_NONE;
    *n = 0;
    if (spm ? !t->characters || !t->spaces : t->order != MICA__BY_MERGES || t->characters || !*t->pre)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: GGUF cannot describe this tokenizer", t->what);
    char *name = mica__alloc(4 * UINT16_MAX + 16);
    if (!name) return mica__fail_memory("a tokenizer", 4 * UINT16_MAX);
    mica_status status =
        meta_put(&m[(*n)++], arena, "tokenizer.ggml.model", MICA__META_STRING, spm ? "llama" : "gpt2", spm ? 5 : 4);
    if (status == MICA_OK && !spm)
        status = meta_put(&m[(*n)++], arena, "tokenizer.ggml.pre", MICA__META_STRING, t->pre, strlen(t->pre));
    if (status == MICA_OK) status = meta_tokens(t, arena, m + *n, name), *n += 3;
    if (status == MICA_OK && !spm) status = meta_merges(t, arena, &m[(*n)++], name);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0] && status == MICA_OK; i++)
        if (t->role[roles[i].role] >= 0)
            status = meta_put(&m[(*n)++], arena, roles[i].key, MICA__META_U32, &t->role[roles[i].role], 4);
    if (status == MICA_OK)
        status = meta_put(&m[(*n)++], arena, "tokenizer.ggml.add_bos_token", MICA__META_BOOL, &add_bos, 1);
    if (status == MICA_OK && spm)
        status = meta_put(&m[(*n)++], arena, "tokenizer.ggml.add_space_prefix", MICA__META_BOOL, &space, 1);
    if (status == MICA_OK && t->chat)
        status = meta_put(&m[(*n)++], arena, "tokenizer.chat_template", MICA__META_STRING, t->chat, strlen(t->chat));
    mica__free(name);
    return status;
}

static mica_status save_gguf(const mica_tokenizer *t, const char *path)
{
    mica__meta meta[MICA__TOKENIZER_META];
    mica__arena arena;
    size_t n;
    mica__arena_init(&arena);
    mica_status status = mica__tokenizer_meta(t, &arena, meta, &n);
    if (status == MICA_OK) status = mica__gguf_write(path, &(mica__out_file){.meta = meta, .n_meta = n});
    mica__arena_free(&arena);
    return status;
}

/* ------------------------------------------------------------------ JSON --- */

static void json_put(mica__writer *w, const char *text) { (void)mica__writer_put(w, text, strlen(text)); }

static void json_put_string(mica__writer *w, const char *text, size_t n)
{
    json_put(w, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        char code[8] = {'\\', (char)c, 0};
        if (c < 0x20) snprintf(code, sizeof code, "\\u%04x", c);
        if (c < 0x20 || c == '"' || c == '\\') json_put(w, code);
        else (void)mica__writer_put(w, text + i, 1);
    }
    json_put(w, "\"");
}

static void json_put_id(mica__writer *w, int32_t id)
{
    char text[16];
    snprintf(text, sizeof text, "%" PRId32, id);
    json_put(w, text);
}

static void json_put_added(const mica_tokenizer *t, mica__writer *w)
{
    bool first = true;
    json_put(w, "  \"added_tokens\": [");
    for (int32_t id = 0; id < t->n_tokens; id++) {
        const mica__token_text *token = &t->tokens[id];
        if (token->type != MICA__TOKEN_CONTROL && token->type != MICA__TOKEN_USER) continue;
        json_put(w, first ? "\n    {\"id\": " : ",\n    {\"id\": ");
        json_put_id(w, id);
        json_put(w, ", \"content\": ");
        json_put_string(w, token->text, token->length);
        json_put(w, ", \"single_word\": false, \"lstrip\": ");
        json_put(w, token->strip_left ? "true, \"rstrip\": " : "false, \"rstrip\": ");
        json_put(w, token->strip_right ? "true, \"normalized\": false, \"special\": "
                                       : "false, \"normalized\": false, \"special\": ");
        json_put(w, token->type == MICA__TOKEN_CONTROL ? "true}" : "false}");
        first = false;
    }
    json_put(w, "\n  ],\n");
}

static void json_put_stages(const mica_tokenizer *t, mica__writer *w)
{
    json_put(w, t->nfc ? "  \"normalizer\": {\"type\": \"NFC\"},\n" : "  \"normalizer\": null,\n");
    json_put(w, "  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n");
    for (int i = 0; i < t->n_patterns; i++) {
        json_put(w, "    {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        json_put_string(w, t->patterns[i].text, strlen(t->patterns[i].text));
        json_put(w, "}, \"behavior\": \"Isolated\", \"invert\": false},\n");
    }
    json_put(w, "    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": "
                "false}]},\n");
    const int32_t bos = t->role[MICA_TOKEN_BOS];
    if (t->add_bos && bos >= 0) {
        const mica__token_text *token = &t->tokens[bos];
        json_put(w,
                 "  \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": ");
        json_put_string(w, token->text, token->length);
        json_put(w, ", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], "
                    "\"special_tokens\": {");
        json_put_string(w, token->text, token->length);
        json_put(w, ": {\"id\": ");
        json_put_string(w, token->text, token->length);
        json_put(w, ", \"ids\": [");
        json_put_id(w, bos);
        json_put(w, "], \"tokens\": [");
        json_put_string(w, token->text, token->length);
        json_put(w, "]}}},\n");
    } else json_put(w, "  \"post_processor\": null,\n");
    json_put(w, "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "
                "\"use_regex\": true},\n");
}

static mica_status json_put_model(const mica_tokenizer *t, mica__writer *w, char *name)
{
    ranked_pair *merges;
    size_t n;
    bool first = true;
    json_put(w, "  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                "\"continuing_subword_prefix\": null,\n"
                "    \"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": ");
    json_put(w, t->whole_pieces ? "true,\n    \"vocab\": {" : "false,\n    \"vocab\": {");
    for (int32_t id = 0; id < t->n_tokens; id++) {
        const mica__token_text *token = &t->tokens[id];
        if (token->type != MICA__TOKEN_NORMAL || mica__vocabulary_find(t, token->text, token->length) != id) continue;
        json_put(w, first ? "\n      " : ",\n      ");
        json_put_string(w, name, written_name(t, id, name));
        json_put(w, ": ");
        json_put_id(w, id);
        first = false;
    }
    json_put(w, "\n    },\n    \"merges\": [");
    MICA_TRY(list_merges(t, &merges, &n));
    for (size_t i = 0; i < n; i++) {
        json_put(w, i ? ",\n      [" : "\n      [");
        json_put_string(w, name, written_name(t, merges[i].left, name));
        json_put(w, ", ");
        json_put_string(w, name, written_name(t, merges[i].right, name));
        json_put(w, "]");
    }
    mica__free(merges);
    json_put(w, "\n    ]\n  }\n}\n");
    return MICA_OK;
}

static mica_status save_json(const mica_tokenizer *t, const char *path)
{
    mica__writer w;
    bool plain = t->order == MICA__BY_MERGES && !t->characters;
    for (int i = 0; i < t->n_patterns; i++)
        plain = plain && !t->patterns[i].mapped && !t->patterns[i].drop_gaps && !t->patterns[i].drop_matches;
    if (!plain)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: only byte-level BPE with merges is written as tokenizer.json",
                          t->what);
    char *name = mica__alloc(2 * UINT16_MAX + 2);
    if (!name) return mica__fail_memory("a tokenizer", 2 * UINT16_MAX);
    mica_status status = mica__writer_open(&w, path);
    if (status == MICA_OK) {
        json_put(&w, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
        json_put_added(t, &w);
        json_put_stages(t, &w);
        status = json_put_model(t, &w, name);
        if (status == MICA_OK) status = mica__writer_finish(&w); /* the first failure of all */
        else mica__writer_abandon(&w);
    }
    mica__free(name);
    return status;
}

mica_status mica__tokenizer_save(const mica_tokenizer *t, const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".gguf") == 0 ? save_gguf(t, path) : save_json(t, path);
}
