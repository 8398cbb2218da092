/* Reads the stages of tokenizer.json. Each stage has a type and arguments, or is a Sequence
 * of stages. A table maps each supported type to the function that applies it. */
#include "text/tokenizer_stages.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define SPM_SPACE "\xe2\x96\x81"

typedef mica_status stage_fn(mica_tokenizer *t, const mica__json_node *node);
typedef struct stage_type {
    const char *name;
    stage_fn *apply; /* NULL: nothing to do */
} stage_type;

static mica_status fail_stage(const mica_tokenizer *t, const char *stage, const mica__json_node *type, const char *with)
{
    char quoted[MICA__QUOTE_TEXT];
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: the %s %s%s is not supported", t->what, stage,
                      type && type->kind == MICA__JSON_STRING ? mica__quote(quoted, type->text, type->length) : "?",
                      with);
}

/* Applies node, or the members of a Sequence in order; list is the key of those members. */
static mica_status run_stage(mica_tokenizer *t, const mica__json_node *node, const char *stage, const char *list,
                             const stage_type *types, size_t n, int depth)
{
    if (!node) return MICA_OK;
    const mica__json_node *type = mica__json_get(node, "type");
    if (mica__json_text_is(type, "Sequence") && depth < 4) {
        const mica__json_node *members = mica__json_get(node, list);
        for (const mica__json_node *m = members ? members->first : NULL; m; m = m->next)
            MICA_TRY(run_stage(t, m, stage, list, types, n, depth + 1));
        return MICA_OK;
    }
    for (size_t i = 0; i < n; i++)
        if (mica__json_text_is(type, types[i].name)) return types[i].apply ? types[i].apply(t, node) : MICA_OK;
    return fail_stage(t, stage, type, "");
}

/* ------------------------------------------------------------ normaliser --- */

static mica_status normal_nfc(mica_tokenizer *t, const mica__json_node *node)
{
    (void)node;
    t->nfc = true;
    return MICA_OK;
}

static mica_status normal_prepend(mica_tokenizer *t, const mica__json_node *node)
{
    if (!mica__json_text_is(mica__json_get(node, "prepend"), SPM_SPACE))
        return fail_stage(t, "normalizer", mica__json_get(node, "type"), " of something else than U+2581");
    t->prefix = MICA__PREFIX_ALL;
    return MICA_OK;
}

static mica_status normal_replace(mica_tokenizer *t, const mica__json_node *node)
{
    const mica__json_node *pattern = mica__json_get(node, "pattern");
    if (!mica__json_text_is(mica__json_get(pattern, "String"), " ") ||
        !mica__json_text_is(mica__json_get(node, "content"), SPM_SPACE))
        return fail_stage(t, "normalizer", mica__json_get(node, "type"), " of something else than spaces");
    t->spaces = true;
    return MICA_OK;
}

/* --------------------------------------------------------- pre-tokenizer --- */

static mica_status pre_add(mica_tokenizer *t, const char *pattern, size_t length, mica__pre_pattern how)
{
    how.mapped = !t->characters; /* after a ByteLevel */
    return mica__tokenizer_add_pattern(t, pattern, length, how);
}

/* Adds a pattern that matches this string. */
static mica_status pre_add_string(mica_tokenizer *t, const mica__json_node *text, mica__pre_pattern how)
{
    char pattern[512];
    size_t n = 0;
    for (size_t i = 0; i < text->length; i++) {
        if (n + 2 > sizeof pattern) return fail_stage(t, "pre_tokenizer", text, " of this length");
        if (strchr("\\^$.|?*+()[]{}", text->text[i])) pattern[n++] = '\\';
        pattern[n++] = text->text[i];
    }
    return pre_add(t, pattern, n, how);
}

static mica_status pre_split(mica_tokenizer *t, const mica__json_node *node)
{
    const mica__json_node *pattern = mica__json_get(node, "pattern"), *behavior = mica__json_get(node, "behavior");
    const mica__json_node *regex = mica__json_get(pattern, "Regex"), *text = mica__json_get(pattern, "String");
    const bool invert = mica__json_bool(mica__json_get(node, "invert"), false);
    mica__pre_pattern how = {0};
    if (mica__json_text_is(behavior, "Removed")) how.drop_gaps = invert, how.drop_matches = !invert;
    else if (!mica__json_text_is(behavior, "Isolated")) return fail_stage(t, "behavior", behavior, " of Split");
    if (regex && regex->kind == MICA__JSON_STRING) return pre_add(t, regex->text, regex->length, how);
    if (text && text->kind == MICA__JSON_STRING && text->length) return pre_add_string(t, text, how);
    return mica__fail(MICA_ERR_FORMAT, "%s: a Split without a pattern", t->what);
}

static mica_status pre_byte_level(mica_tokenizer *t, const mica__json_node *node)
{
    if (!t->characters) return fail_stage(t, "pre_tokenizer", mica__json_get(node, "type"), " a second time");
    if (mica__json_bool(mica__json_get(node, "add_prefix_space"), true))
        return fail_stage(t, "pre_tokenizer", mica__json_get(node, "type"), " with add_prefix_space");
    if (mica__json_bool(mica__json_get(node, "use_regex"), true)) {
        const char *gpt2 = mica__pre_pattern_text("gpt-2");
        MICA_TRY(pre_add(t, gpt2, strlen(gpt2), (mica__pre_pattern){0}));
    }
    t->characters = false;
    return MICA_OK;
}

static mica_status pre_digits(mica_tokenizer *t, const mica__json_node *node)
{
    const bool each = mica__json_bool(mica__json_get(node, "individual_digits"), false);
    return pre_add(t, "\\p{N}+", each ? 5 : 6, (mica__pre_pattern){0});
}

static mica_status pre_punctuation(mica_tokenizer *t, const mica__json_node *node)
{
    static const char pattern[] = "[\\p{P}\\$\\+<=>\\^~\\|`]+";
    const mica__json_node *behavior = mica__json_get(node, "behavior");
    if (mica__json_text_is(behavior, "Contiguous")) return pre_add(t, pattern, strlen(pattern), (mica__pre_pattern){0});
    if (behavior && !mica__json_text_is(behavior, "Isolated"))
        return fail_stage(t, "behavior", behavior, " of Punctuation");
    return pre_add(t, pattern, strlen(pattern) - 1, (mica__pre_pattern){0});
}

static mica_status pre_metaspace(mica_tokenizer *t, const mica__json_node *node)
{
    const mica__json_node *type = mica__json_get(node, "type"), *scheme = mica__json_get(node, "prepend_scheme");
    if (!mica__json_text_is(mica__json_get(node, "replacement"), SPM_SPACE))
        return fail_stage(t, "pre_tokenizer", type, " with something else than U+2581");
    t->spaces = t->prefix_once = true;
    if (scheme) {
        t->prefix = mica__json_text_is(scheme, "always")  ? MICA__PREFIX_ALL
                    : mica__json_text_is(scheme, "first") ? MICA__PREFIX_FIRST
                                                          : MICA__PREFIX_NONE;
    } else {
        t->prefix =
            mica__json_bool(mica__json_get(node, "add_prefix_space"), true) ? MICA__PREFIX_ALL : MICA__PREFIX_NONE;
    }
    static const char words[] = "\\x{2581}[^\\x{2581}]*";
    if (!mica__json_bool(mica__json_get(node, "split"), true)) return MICA_OK;
    return pre_add(t, words, strlen(words), (mica__pre_pattern){0});
}

mica_status mica__stages_before(mica_tokenizer *t, const mica__json_node *root)
{
    static const stage_type normal[] = {{"NFC", normal_nfc}, {"Prepend", normal_prepend}, {"Replace", normal_replace}};
    static const stage_type pre[] = {{"Split", pre_split},
                                     {"ByteLevel", pre_byte_level},
                                     {"Digits", pre_digits},
                                     {"Punctuation", pre_punctuation},
                                     {"Metaspace", pre_metaspace}};
    t->characters = true; /* a ByteLevel sets it to false */
    MICA_TRY(run_stage(t, mica__json_get(root, "normalizer"), "normalizer", "normalizers", normal, 3, 0));
    MICA_TRY(run_stage(t, mica__json_get(root, "pre_tokenizer"), "pre_tokenizer", "pretokenizers", pre, 5, 0));
    if (t->spaces && !t->characters)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: spaces as U+2581 together with ByteLevel", t->what);
    return MICA_OK;
}

/* ------------------------------------------------- post-processor, decoder -- */

static mica_status post_template(mica_tokenizer *t, const mica__json_node *node)
{
    const mica__json_node *single = mica__json_get(node, "single");
    const mica__json_node *first = single && single->kind == MICA__JSON_ARRAY ? single->first : NULL;
    const mica__json_node *name = mica__json_get(mica__json_get(first, "SpecialToken"), "id");
    if (name && name->kind == MICA__JSON_STRING) {
        const int32_t id = mica__tokenizer_find(t, name->text, name->length);
        char quoted[MICA__QUOTE_TEXT];
        if (id < 0)
            return mica__fail(MICA_ERR_FORMAT, "%s: the token %s of the post_processor is not in the vocabulary",
                              t->what, mica__quote(quoted, name->text, name->length));
        t->role[MICA_TOKEN_BOS] = id;
        t->add_bos = true;
    }
    for (; first && first->next; first = first->next) {
    }
    if (mica__json_get(first, "SpecialToken") && single->length > 1)
        return mica__tokenizer_add_note(t, "the post_processor adds a token after the text; mica does not add it");
    return MICA_OK;
}

static mica_status decode_replace(mica_tokenizer *t, const mica__json_node *node)
{
    const mica__json_node *pattern = mica__json_get(node, "pattern");
    if (!mica__json_text_is(mica__json_get(pattern, "String"), SPM_SPACE) ||
        !mica__json_text_is(mica__json_get(node, "content"), " ") || !t->spaces)
        return fail_stage(t, "decoder", mica__json_get(node, "type"), " of something else than U+2581");
    return MICA_OK;
}

static mica_status decode_strip(mica_tokenizer *t, const mica__json_node *node)
{
    const int64_t start = mica__json_integer(mica__json_get(node, "start"));
    const int64_t stop = mica__json_integer(mica__json_get(node, "stop"));
    if (!mica__json_text_is(mica__json_get(node, "content"), " ") || start > 1 || stop > 0)
        return fail_stage(t, "decoder", mica__json_get(node, "type"), " of more than one space");
    t->strip_space = start == 1;
    return MICA_OK;
}

static mica_status decode_metaspace(mica_tokenizer *t, const mica__json_node *node)
{
    if (!t->spaces) return fail_stage(t, "decoder", mica__json_get(node, "type"), " without its pre_tokenizer");
    t->strip_space = t->prefix != MICA__PREFIX_NONE;
    return MICA_OK;
}

static mica_status decode_byte_level(mica_tokenizer *t, const mica__json_node *node)
{
    return t->characters ? fail_stage(t, "decoder", mica__json_get(node, "type"), " without its pre_tokenizer")
                         : MICA_OK;
}

mica_status mica__stages_after(mica_tokenizer *t, const mica__json_node *root)
{
    static const stage_type post[] = {{"ByteLevel", NULL}, {"TemplateProcessing", post_template}};
    static const stage_type decoder[] = {{"ByteLevel", decode_byte_level}, {"Replace", decode_replace},
                                         {"ByteFallback", NULL},           {"Fuse", NULL},
                                         {"Strip", decode_strip},          {"Metaspace", decode_metaspace}};
    MICA_TRY(run_stage(t, mica__json_get(root, "post_processor"), "post_processor", "processors", post, 2, 0));
    return run_stage(t, mica__json_get(root, "decoder"), "decoder", "decoders", decoder, 6, 0);
}

#undef SPM_SPACE
