/* Links nodes in the order of the reader's tokens. Nesting uses a bounded array,
 * not the C stack. */
#include "text/json_tree.h"

#include <string.h>

enum { JSON_TREE_NODES = 20000000 };

static mica_status tree_node(mica__json_tree *tree, mica__json_token kind, size_t *count, mica__json_node **out)
{
    if (++*count > JSON_TREE_NODES) return mica__json_fail(&tree->reader, "more than 20,000,000 values");
    mica__json_node *node = *out = mica__arena_alloc(&tree->arena, sizeof *node);
    if (!node) return mica__fail_memory("reading JSON", sizeof *node);
    node->kind = kind;
    if (kind == MICA__JSON_STRING || kind == MICA__JSON_NUMBER) {
        node->text = tree->reader.string;
        node->length = tree->reader.length;
    }
    return MICA_OK;
}

mica_status mica__json_tree_read(mica__json_tree *tree, const char *what, const void *text, size_t size)
{
    mica__json *j = &tree->reader;
    mica__json_node *open[MICA__JSON_DEPTH + 1] = {NULL}, *last[MICA__JSON_DEPTH + 1] = {NULL};
    mica__json_node *node = NULL;
    const char *key = NULL;
    size_t key_length = 0, count = 0;
    tree->root = NULL;
    mica__arena_init(&tree->arena);
    mica__json_begin(j, what, text, size, 0, MICA__JSON_DEPTH, JSON_TREE_NODES);
    for (;;) {
        const mica__json_token token = mica__json_next(j);
        if (token == MICA__JSON_END) return MICA_OK;
        if (token == MICA__JSON_ERROR) return mica__json_status(j);
        if (token == MICA__JSON_OBJECT_END || token == MICA__JSON_ARRAY_END) continue;
        if (token == MICA__JSON_KEY) {
            key = j->string, key_length = j->length;
            continue;
        }
        const bool opens = token == MICA__JSON_OBJECT || token == MICA__JSON_ARRAY;
        const int depth = j->depth - opens; /* of the container this is in */
        MICA_TRY(tree_node(tree, token, &count, &node));
        node->key = key, node->key_length = key_length;
        key = NULL, key_length = 0;
        if (depth == 0) tree->root = node;
        else {
            mica__json_node *parent = open[depth - 1];
            if (parent->length++ == 0) parent->first = node;
            else last[depth - 1]->next = node;
            last[depth - 1] = node;
        }
        if (opens) open[depth] = node;
    }
}

void mica__json_tree_free(mica__json_tree *tree)
{
    mica__json_end(&tree->reader);
    mica__arena_free(&tree->arena);
    tree->root = NULL;
}

const mica__json_node *mica__json_get(const mica__json_node *node, const char *key)
{
    const size_t n = strlen(key);
    if (!node || node->kind != MICA__JSON_OBJECT) return NULL;
    for (const mica__json_node *c = node->first; c; c = c->next)
        if (c->key_length == n && memcmp(c->key, key, n) == 0) return c->kind == MICA__JSON_NULL ? NULL : c;
    return NULL;
}

bool mica__json_text_is(const mica__json_node *node, const char *text)
{
    return node && node->kind == MICA__JSON_STRING && node->length == strlen(text) &&
           memcmp(node->text, text, node->length) == 0;
}

bool mica__json_bool(const mica__json_node *node, bool otherwise)
{
    return node && node->kind == MICA__JSON_TRUE ? true : node && node->kind == MICA__JSON_FALSE ? false : otherwise;
}

int64_t mica__json_integer(const mica__json_node *node)
{
    int64_t value = 0;
    if (!node || node->kind != MICA__JSON_NUMBER) return -1;
    for (size_t i = 0; i < node->length; i++) {
        const char c = node->text[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(c - '0'), &value))
            return -1;
    }
    return value;
}
