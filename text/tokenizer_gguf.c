/* Reads a vocabulary from GGUF metadata. Every value is validated because files are
 * untrusted. Known defects of published BitNet files are corrected, with a note. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer_build.h"

static mica_status gguf_tokens(mica_tokenizer *t, const mica__file *file)
{
    const char *text;
    const mica__meta *tokens = mica__file_meta_find(file, "tokenizer.ggml.tokens");
    const mica__meta *scores = mica__file_meta_find(file, "tokenizer.ggml.scores");
    const mica__meta *types = mica__file_meta_find(file, "tokenizer.ggml.token_type");
    if (!tokens || tokens->type != MICA__META_ARRAY || tokens->item != MICA__META_STRING || tokens->count == 0 ||
        tokens->count > MICA__VOCABULARY_MAX)
        return mica__fail(MICA_ERR_FORMAT, "%s: tokenizer.ggml.tokens is not a list of tokens", t->what);
    if ((scores && scores->count != tokens->count) || (types && types->count != tokens->count))
        return mica__fail(MICA_ERR_FORMAT, "%s: %" PRIu64 " tokens, %" PRIu64 " scores, %" PRIu64 " types", t->what,
                          tokens->count, scores ? scores->count : 0, types ? types->count : 0);
    if (t->order == MICA__BY_SCORES && !scores)
        return mica__fail(MICA_ERR_FORMAT, "%s: tokenizer.ggml.scores is missing", t->what);
    size_t at = 0, length;
    for (uint64_t i = 0; i < tokens->count && mica__meta_next_string(tokens, &at, &text, &length); i++) {
        int64_t type = MICA__TOKEN_NORMAL;
        double score = 0;
        if ((types && !mica__meta_item_i64(types, i, &type)) || (scores && !mica__meta_item_f64(scores, i, &score)))
            return mica__fail(MICA_ERR_FORMAT, "%s: a token score or type is not a number", t->what);
        const int small = type < MICA__TOKEN_NORMAL || type > MICA__TOKEN_BYTE ? 0 : (int)type; /* 0 is refused */
        MICA_TRY(mica__tokenizer_add(t, text, length, (float)score, small));
    }
    return MICA_OK;
}

/* Replaces the names of normal byte-level tokens by the bytes they stand for. */
static mica_status decode_vocabulary(mica_tokenizer *t)
{
    for (int32_t id = 0; id < t->n_tokens; id++) {
        mica__token_text *token = &t->tokens[id];
        if (token->type != MICA__TOKEN_NORMAL) continue;
        char *out = mica__arena_alloc(&t->arena, token->length + 1);
        if (!out) return mica__fail_memory("a vocabulary", token->length);
        const size_t n = mica__bytes_decode(token->text, token->length, out);
        if (n == SIZE_MAX) continue; /* an added token in plain letters */
        out[n] = '\0';
        token->text = out;
        token->length = (uint32_t)n;
    }
    return MICA_OK;
}

static mica_status gguf_merge(mica_tokenizer *t, const char *text, size_t length, uint32_t rank, char *scratch)
{
    /* the separator is the first space; spaces inside a token are encoded as another character */
    const char *space = length > 1 ? memchr(text + 1, ' ', length - 1) : NULL;
    if (!space) return mica__fail(MICA_ERR_FORMAT, "%s: merge %" PRIu32 " is not a pair", t->what, rank);
    const size_t left_length = (size_t)(space - text), right_length = length - left_length - 1;
    const size_t a = mica__bytes_decode(text, left_length, scratch);
    const int32_t left = a == SIZE_MAX ? -1 : mica__vocabulary_find(t, scratch, a);
    const size_t b = mica__bytes_decode(space + 1, right_length, scratch);
    const int32_t right = b == SIZE_MAX ? -1 : mica__vocabulary_find(t, scratch, b);
    mica__tokenizer_add_merge(t, left, right, rank);
    return MICA_OK;
}

static mica_status gguf_merges(mica_tokenizer *t, const mica__file *file)
{
    const mica__meta *merges = mica__file_meta_find(file, "tokenizer.ggml.merges");
    if (!merges || merges->type != MICA__META_ARRAY || merges->item != MICA__META_STRING ||
        merges->count > MICA__VOCABULARY_MAX)
        return mica__fail(MICA_ERR_FORMAT, "%s: tokenizer.ggml.merges is not a list of pairs", t->what);
    size_t at = 0, length, longest = 1;
    const char *text;
    MICA_TRY(mica__tokenizer_reserve_merges(t, (size_t)merges->count));
    while (mica__meta_next_string(merges, &at, &text, &length)) longest = length > longest ? length : longest;
    char *scratch = mica__alloc(longest);
    if (!scratch) return mica__fail_memory("merges", longest);
    mica_status status = MICA_OK;
    at = 0;
    for (uint32_t rank = 0; status == MICA_OK && mica__meta_next_string(merges, &at, &text, &length); rank++)
        status = gguf_merge(t, text, length, rank, scratch);
    mica__free(scratch);
    return status;
}

/* Reads a special id and checks its range; *out is unchanged if the key is missing. */
static mica_status gguf_id(mica_tokenizer *t, const mica__file *file, const char *key, int32_t *out)
{
    int64_t id;
    if (!mica__meta_i64(file, key, &id)) return MICA_OK;
    if (id < 0 || id >= t->n_tokens)
        return mica__fail(MICA_ERR_FORMAT, "%s: %s is %" PRId64 ", the vocabulary has %" PRId32 " tokens", t->what, key,
                          id, t->n_tokens);
    *out = (int32_t)id;
    return MICA_OK;
}

/* bitnet-b1.58 and bitnet-25: the official files, whose tokenizer is Llama 3's. */
static bool is_bitnet(const mica__file *file)
{
    const char *arch;
    size_t n;
    return mica__meta_string(file, "general.architecture", &arch, &n) && n > 7 && memcmp(arch, "bitnet-", 7) == 0;
}

static mica_status gguf_pre(mica_tokenizer *t, const mica__file *file, const char *pre)
{
    const char *name;
    size_t length;
    if (pre) return mica__tokenizer_set_pre(t, pre, strlen(pre));
    if (mica__meta_string(file, "tokenizer.ggml.pre", &name, &length)) return mica__tokenizer_set_pre(t, name, length);
    if (!is_bitnet(file))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: tokenizer.ggml.pre is missing; give the pre-tokenizer by name",
                          t->what);
    MICA_TRY(mica__tokenizer_set_pre(t, "llama-bpe", 9));
    return mica__tokenizer_add_note(t,
                                    "tokenizer.ggml.pre is missing: llama-bpe is used, as BitNet models were trained");
}

static mica_status gguf_roles(mica_tokenizer *t, const mica__file *file)
{
    static const struct {
        const char *key;
        mica_token_role role;
    } roles[] = {
        {"tokenizer.ggml.bos_token_id", MICA_TOKEN_BOS},
        {"tokenizer.ggml.eos_token_id", MICA_TOKEN_EOS},
        {"tokenizer.ggml.eot_token_id", MICA_TOKEN_EOT},
        {"tokenizer.ggml.unknown_token_id", MICA_TOKEN_UNKNOWN},
        {"tokenizer.ggml.padding_token_id", MICA_TOKEN_PADDING},
    };
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        MICA_TRY(gguf_id(t, file, roles[i].key, &t->role[roles[i].role]));
    int32_t message = -1;
    MICA_TRY(gguf_id(t, file, "tokenizer.ggml.eom_token_id", &message));
    mica__tokenizer_add_end(t, message);
    if (is_bitnet(file) && t->role[MICA_TOKEN_EOT] < 0) {
        const int32_t id = mica__tokenizer_find(t, "<|eot_id|>", 10);
        if (id >= 0) {
            t->role[MICA_TOKEN_EOT] = id;
            MICA_TRY(mica__tokenizer_add_note(
                t, "tokenizer.ggml.eot_token_id is missing: <|eot_id|> (%" PRId32 ") ends a turn too", id));
        }
    }
    mica__tokenizer_add_known_ends(t);
    return MICA_OK;
}

static mica_status gguf_chat(mica_tokenizer *t, const mica__file *file)
{
    const char *text;
    size_t n;
    if (mica__meta_string(file, "tokenizer.chat_template", &text, &n) && n)
        MICA_TRY(mica__tokenizer_copy(t, text, n, &t->chat));
    if (!is_bitnet(file)) return MICA_OK;
    /* The converter of the official files wrote a template that no BitNet model was trained with. */
    if (t->chat && !strstr(t->chat, "BITNET")) return MICA_OK;
    if (t->chat)
        MICA_TRY(mica__tokenizer_add_note(
            t, "the chat template in the file (\"... BITNETAssistant: \") is not the model's: 'bitnet' is used"));
    else MICA_TRY(mica__tokenizer_add_note(t, "tokenizer.chat_template is missing: 'bitnet' is used"));
    t->chat = "bitnet";
    return MICA_OK;
}

static mica_status load_gguf(mica_tokenizer *t, const mica__file *file, const char *pre)
{
    const char *model;
    size_t n;
    if (!mica__meta_string(file, "tokenizer.ggml.model", &model, &n))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: has no tokenizer", t->what);
    const bool spm = n == 5 && memcmp(model, "llama", 5) == 0;
    char quoted[MICA__QUOTE_TEXT];
    if (!spm && !(n == 4 && memcmp(model, "gpt2", 4) == 0))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: a tokenizer of kind %s; gpt2 and llama are supported", t->what,
                          mica__quote(quoted, model, n));
    t->order = spm ? MICA__BY_SCORES : MICA__BY_MERGES;
    t->characters = t->spaces = t->add_bos = spm;
    bool space = spm;
    MICA_TRY(gguf_tokens(t, file));
    if (!spm) MICA_TRY(decode_vocabulary(t));
    MICA_TRY(mica__tokenizer_index(t));
    if (!spm) MICA_TRY(gguf_merges(t, file));
    if (!spm) MICA_TRY(gguf_pre(t, file, pre));
    (void)mica__meta_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos);
    if (spm) (void)mica__meta_bool(file, "tokenizer.ggml.add_space_prefix", &space);
    if (space) t->prefix = MICA__PREFIX_ALL, t->strip_space = true;
    MICA_TRY(gguf_roles(t, file));
    return gguf_chat(t, file);
}

mica_status mica__tokenizer_from_gguf(const mica__file *file, const char *pre, mica_tokenizer **out)
{
    mica_tokenizer *t;
    mica_status status = mica__tokenizer_new(mica__file_path(file), &t);
    if (status == MICA_OK) status = load_gguf(t, file, pre);
    return mica__tokenizer_finish(t, status, out);
}
