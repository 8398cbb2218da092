/* Reads the files in the folder of a tokenizer.json: they name the begin and end
 * tokens and the chat template. Missing files are ignored; a malformed one is an error. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "text/tokenizer_stages.h"

/* The path of a file in the folder; NULL if it does not exist or memory runs out (see *status). */
static char *beside(const char *folder, const char *name, mica_status *status)
{
    struct stat s;
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *path = mica__alloc(n);
    *status = path ? MICA_OK : mica__fail_memory("a path", n);
    if (!path) return NULL;
    snprintf(path, n, "%s/%s", folder, name);
    if (stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0) return path;
    mica__free(path);
    return NULL;
}

typedef mica_status folder_fn(mica_tokenizer *t, const char *path, const mica__json_node *root);

static mica_status read_folder_file(mica_tokenizer *t, const char *folder, const char *name, folder_fn *read)
{
    mica_status status;
    mica__map map;
    mica__json_tree tree;
    char *path = beside(folder, name, &status);
    if (!path) return status;
    status = mica__map_read(path, &map);
    if (status == MICA_OK) {
        status = mica__json_tree_read(&tree, path, map.span.data, map.span.size);
        if (status == MICA_OK) status = read(t, path, tree.root);
        mica__json_tree_free(&tree);
        mica__map_close(&map);
    }
    mica__free(path);
    return status;
}

/* Finds a token; node is its text, or an object with "content". */
static int32_t named_token(const mica_tokenizer *t, const mica__json_node *node)
{
    const mica__json_node *content = mica__json_get(node, "content");
    if (content) node = content;
    return node && node->kind == MICA__JSON_STRING ? mica__tokenizer_find(t, node->text, node->length) : -1;
}

static mica_status read_template(mica_tokenizer *t, const mica__json_node *node)
{
    if (node && node->kind == MICA__JSON_ARRAY) { /* several, each with a name */
        const mica__json_node *list = node;
        node = NULL;
        for (const mica__json_node *m = list->first; m; m = m->next)
            if (!node || mica__json_text_is(mica__json_get(m, "name"), "default")) node = mica__json_get(m, "template");
    }
    if (!node || node->kind != MICA__JSON_STRING || node->length == 0) return MICA_OK;
    return mica__tokenizer_copy(t, node->text, node->length, &t->chat);
}

static mica_status read_config(mica_tokenizer *t, const char *path, const mica__json_node *root)
{
    static const struct {
        const char *key;
        mica_token_role role;
    } roles[] = {{"bos_token", MICA_TOKEN_BOS},
                 {"eos_token", MICA_TOKEN_EOS},
                 {"unk_token", MICA_TOKEN_UNKNOWN},
                 {"pad_token", MICA_TOKEN_PADDING}};
    (void)path;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const int32_t id = named_token(t, mica__json_get(root, roles[i].key));
        if (id >= 0) t->role[roles[i].role] = id;
    }
    t->add_bos = mica__json_bool(mica__json_get(root, "add_bos_token"), t->add_bos);
    return read_template(t, mica__json_get(root, "chat_template"));
}

/* Reads eos_token_id: a number or a list of numbers. */
static mica_status read_generation(mica_tokenizer *t, const char *path, const mica__json_node *root)
{
    const mica__json_node *ids = mica__json_get(root, "eos_token_id");
    const mica__json_node *id = ids && ids->kind == MICA__JSON_ARRAY ? ids->first : ids;
    for (bool first = true; id; id = ids->kind == MICA__JSON_ARRAY ? id->next : NULL, first = false) {
        const int64_t value = mica__json_integer(id);
        if (value < 0 || value >= t->n_tokens)
            return mica__fail(MICA_ERR_FORMAT, "%s: eos_token_id %.*s is out of range for %ld tokens", path,
                              id->length < 40 ? (int)id->length : 0, id->text ? id->text : "", (long)t->n_tokens);
        mica__tokenizer_add_end(t, (int32_t)value);
        if (first && t->role[MICA_TOKEN_EOS] < 0) t->role[MICA_TOKEN_EOS] = (int32_t)value;
    }
    return MICA_OK;
}

static mica_status read_jinja(mica_tokenizer *t, const char *folder)
{
    mica_status status;
    mica__map map;
    char *path = beside(folder, "chat_template.jinja", &status);
    if (!path) return status;
    status = mica__map_read(path, &map);
    if (status == MICA_OK) {
        status = mica__tokenizer_copy(t, (const char *)map.span.data, map.span.size, &t->chat);
        mica__map_close(&map);
    }
    mica__free(path);
    return status;
}

mica_status mica__stages_folder(mica_tokenizer *t, const char *folder)
{
    MICA_TRY(read_folder_file(t, folder, "special_tokens_map.json", read_config));
    MICA_TRY(read_folder_file(t, folder, "tokenizer_config.json", read_config));
    MICA_TRY(read_folder_file(t, folder, "generation_config.json", read_generation));
    return read_jinja(t, folder);
}
