/* Reads tokenizer.json of HF tokenizers, kind BPE: the vocabulary and merges here, the
 * stages around them (normaliser, pre-tokenizer, ...) in tokenizer_stages.c. Unknown
 * parts are refused by name: a guess would give wrong tokens without an error. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer_stages.h"

static mica_status fail_json(const mica_tokenizer *t, const char *what)
{
    return mica__fail(MICA_ERR_FORMAT, "%s: %s", t->what, what);
}

/* *n is the largest id of both lists, plus 1. */
static mica_status count_tokens(const mica_tokenizer *t, const mica__json_node *vocab, const mica__json_node *added,
                                int32_t *n)
{
    int64_t most = -1, count = 0;
    for (const mica__json_node *v = vocab->first; v; v = v->next, count++) {
        const int64_t id = mica__json_integer(v);
        char quoted[MICA__QUOTE_TEXT];
        if (id < 0)
            return mica__fail(MICA_ERR_FORMAT, "%s: the id of token %s is not an integer from 0 on", t->what,
                              mica__quote(quoted, v->key, v->key_length));
        most = id > most ? id : most;
    }
    for (const mica__json_node *a = added ? added->first : NULL; a; a = a->next, count++) {
        const int64_t id = mica__json_integer(mica__json_get(a, "id"));
        const mica__json_node *content = mica__json_get(a, "content");
        if (id < 0 || !content || content->kind != MICA__JSON_STRING || content->length == 0)
            return mica__fail(MICA_ERR_FORMAT, "%s: added token %" PRId64 " has no id or no content", t->what, count);
        most = id > most ? id : most;
    }
    /* Ids without a token become unused tokens; the limit stops small files from allocating gigabytes. */
    if (most < 0 || most >= MICA__VOCABULARY_MAX || most > 2 * count + 4096)
        return mica__fail(MICA_ERR_FORMAT, "%s: %" PRId64 " tokens with ids up to %" PRId64, t->what, count, most);
    *n = (int32_t)most + 1;
    return MICA_OK;
}

static mica_status set_token(mica_tokenizer *t, int32_t id, const char *text, size_t length, bool bytes, int type)
{
    mica__token_text *token = &t->tokens[id];
    if (length > UINT16_MAX)
        return mica__fail(MICA_ERR_FORMAT, "%s: token %" PRId32 " has %zu bytes", t->what, id, length);
    char *out = mica__arena_alloc(&t->arena, length + 1);
    if (!out) return mica__fail_memory("a vocabulary", length);
    size_t n = bytes ? mica__bytes_decode(text, length, out) : SIZE_MAX;
    if (n == SIZE_MAX) memcpy(out, text, n = length); /* an added token in plain letters */
    out[n] = '\0';
    *token = (mica__token_text){.text = out, .length = (uint32_t)n, .type = (uint8_t)type};
    return MICA_OK;
}

static bool is_byte_name(const char *text, size_t n)
{
    return n == 6 && memcmp(text, "<0x", 3) == 0 && strchr("0123456789ABCDEF", text[3]) &&
           strchr("0123456789ABCDEF", text[4]) && text[5] == '>';
}

static mica_status json_vocabulary(mica_tokenizer *t, const mica__json_node *model, const mica__json_node *added)
{
    const mica__json_node *vocab = mica__json_get(model, "vocab");
    const bool fallback = mica__json_bool(mica__json_get(model, "byte_fallback"), false);
    if (!vocab || vocab->kind != MICA__JSON_OBJECT) return fail_json(t, "model.vocab is not an object");
    if (added && added->kind != MICA__JSON_ARRAY) return fail_json(t, "added_tokens is not a list");
    MICA_TRY(count_tokens(t, vocab, added, &t->n_tokens));
    t->tokens = mica__alloc_zero((size_t)t->n_tokens, sizeof *t->tokens);
    if (!t->tokens) return mica__fail_memory("a vocabulary", (size_t)t->n_tokens * sizeof *t->tokens);
    t->cap_tokens = t->n_tokens;
    for (int32_t i = 0; i < t->n_tokens; i++) t->tokens[i] = (mica__token_text){.text = "", .type = MICA__TOKEN_UNUSED};
    for (const mica__json_node *v = vocab->first; v; v = v->next) {
        const int32_t id = (int32_t)mica__json_integer(v);
        char quoted[MICA__QUOTE_TEXT];
        if (t->tokens[id].type != MICA__TOKEN_UNUSED)
            return mica__fail(MICA_ERR_FORMAT, "%s: token %s has the id %" PRId32 " of another token", t->what,
                              mica__quote(quoted, v->key, v->key_length), id);
        const int type = fallback && is_byte_name(v->key, v->key_length) ? MICA__TOKEN_BYTE : MICA__TOKEN_NORMAL;
        MICA_TRY(set_token(t, id, v->key, v->key_length, !t->characters, type));
    }
    for (const mica__json_node *a = added ? added->first : NULL; a; a = a->next) {
        const int32_t id = (int32_t)mica__json_integer(mica__json_get(a, "id"));
        const mica__json_node *content = mica__json_get(a, "content");
        if (mica__json_bool(mica__json_get(a, "single_word"), false))
            return mica__fail(MICA_ERR_UNSUPPORTED, "%s: added token %" PRId32 " is a single_word", t->what, id);
        const bool special = mica__json_bool(mica__json_get(a, "special"), false);
        MICA_TRY(
            set_token(t, id, content->text, content->length, false, special ? MICA__TOKEN_CONTROL : MICA__TOKEN_USER));
        t->tokens[id].strip_left = mica__json_bool(mica__json_get(a, "lstrip"), false);
        t->tokens[id].strip_right = mica__json_bool(mica__json_get(a, "rstrip"), false);
    }
    return MICA_OK;
}

/* The id of one side of a merge, -1 if there is no such token. */
static int32_t merge_side(const mica_tokenizer *t, const char *text, size_t length, char *scratch)
{
    if (t->characters) return mica__vocabulary_find(t, text, length);
    const size_t n = mica__bytes_decode(text, length, scratch);
    return n == SIZE_MAX ? -1 : mica__vocabulary_find(t, scratch, n);
}

/* "a b" or ["a", "b"]. */
static mica_status json_merge(mica_tokenizer *t, const mica__json_node *m, uint32_t rank, char *scratch)
{
    const char *left = m->text, *right = NULL;
    size_t n_left = 0, n_right = 0;
    if (m->kind == MICA__JSON_STRING && m->length > 2) {
        const char *space = memchr(left + 1, ' ', m->length - 1);
        n_left = space ? (size_t)(space - left) : 0;
        right = space ? space + 1 : NULL;
        n_right = space ? m->length - n_left - 1 : 0;
    } else if (m->kind == MICA__JSON_ARRAY && m->length == 2 && m->first->kind == MICA__JSON_STRING &&
               m->first->next->kind == MICA__JSON_STRING) {
        left = m->first->text, n_left = m->first->length;
        right = m->first->next->text, n_right = m->first->next->length;
    }
    if (!n_left || !n_right || n_left > UINT16_MAX || n_right > UINT16_MAX)
        return mica__fail(MICA_ERR_FORMAT, "%s: merge %" PRIu32 " is not a pair", t->what, rank);
    const int32_t a = merge_side(t, left, n_left, scratch), b = merge_side(t, right, n_right, scratch);
    mica__tokenizer_add_merge(t, a, b, rank);
    return MICA_OK;
}

static mica_status json_merges(mica_tokenizer *t, const mica__json_node *merges)
{
    if (!merges || merges->kind != MICA__JSON_ARRAY) return fail_json(t, "model.merges is not a list");
    MICA_TRY(mica__tokenizer_reserve_merges(t, merges->length));
    char *scratch = mica__alloc(UINT16_MAX);
    if (!scratch) return mica__fail_memory("merges", UINT16_MAX);
    mica_status status = MICA_OK;
    uint32_t rank = 0;
    for (const mica__json_node *m = merges->first; m && status == MICA_OK; m = m->next)
        status = json_merge(t, m, rank++, scratch);
    mica__free(scratch);
    return status;
}

static mica_status json_model(mica_tokenizer *t, const mica__json_node *root)
{
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const mica__json_node *model = mica__json_get(root, "model"), *type = mica__json_get(model, "type");
    char quoted[MICA__QUOTE_TEXT];
    if (!model) return fail_json(t, "there is no model: this is not a tokenizer.json");
    if (type ? !mica__json_text_is(type, "BPE") : !mica__json_get(model, "merges"))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a model of kind %s; only BPE is supported", t->what,
                          type ? mica__quote(quoted, type->text, type->length) : "unknown");
    for (size_t i = 0; i < 2; i++) {
        const mica__json_node *n = mica__json_get(model, empty[i]);
        if (n && n->length) return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a model with %s", t->what, empty[i]);
    }
    t->whole_pieces = mica__json_bool(mica__json_get(model, "ignore_merges"), false);
    MICA_TRY(json_vocabulary(t, model, mica__json_get(root, "added_tokens")));
    MICA_TRY(mica__tokenizer_index(t));
    const mica__json_node *unknown = mica__json_get(model, "unk_token");
    if (unknown && unknown->kind == MICA__JSON_STRING)
        t->role[MICA_TOKEN_UNKNOWN] = mica__tokenizer_find(t, unknown->text, unknown->length);
    return json_merges(t, mica__json_get(model, "merges"));
}

static mica_status load_json(mica_tokenizer *t, const mica__json_node *root, const char *folder, const char *pre)
{
    t->order = MICA__BY_MERGES;
    MICA_TRY(mica__stages_before(t, root));
    MICA_TRY(json_model(t, root));
    t->pre = mica__pre_name_of(t);
    if (pre) MICA_TRY(mica__tokenizer_set_pre(t, pre, strlen(pre)));
    MICA_TRY(mica__stages_after(t, root));
    if (folder) MICA_TRY(mica__stages_folder(t, folder));
    mica__tokenizer_add_known_ends(t);
    /* tokenizer.json does not name the end token; a token with a well-known name is used. */
    for (int i = 0; i < t->n_ends && t->role[MICA_TOKEN_EOS] < 0; i++)
        if (t->ends[i] != t->role[MICA_TOKEN_EOT] || i + 1 == t->n_ends) t->role[MICA_TOKEN_EOS] = t->ends[i];
    return MICA_OK;
}

mica_status mica__tokenizer_from_json(const char *what, const void *text, size_t size, const char *folder,
                                      const char *pre, mica_tokenizer **out)
{
    mica_tokenizer *t;
    mica__json_tree tree;
    mica_status status = mica__tokenizer_new(what, &t);
    if (status == MICA_OK) {
        status = mica__json_tree_read(&tree, what, text, size);
        if (status == MICA_OK) status = load_json(t, tree.root, folder, pre);
        mica__json_tree_free(&tree);
    }
    return mica__tokenizer_finish(t, status, out);
}
