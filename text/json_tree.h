/* A JSON text as a tree, for files whose parts come in any order and are looked at
 * more than once. Memory is bounded by the text: a node of it takes at least two
 * bytes, and there are never more than a limit. */
#ifndef MICA_TEXT_JSON_TREE_H
#define MICA_TEXT_JSON_TREE_H

#include "io/json.h"

typedef struct mica__json_node {
    mica__json_token kind;         /* OBJECT, ARRAY, STRING, NUMBER, TRUE, FALSE, NULL   */
    const char *key;               /* in an object                                       */
    size_t key_length;
    const char *text;              /* of strings, decoded, and numbers, as written       */
    size_t length;                 /* of the text, or how many children                  */
    struct mica__json_node *first, *next;
} mica__json_node;

typedef struct mica__json_tree {
    mica__json reader;             /* owns the strings */
    mica__arena arena;             /* owns the nodes   */
    mica__json_node *root;
} mica__json_tree;

/* what begins each message. Free it in any case. */
mica_status mica__json_tree_read(mica__json_tree *tree, const char *what, const void *text, size_t size);
void mica__json_tree_free(mica__json_tree *tree);

/* The member of an object, NULL if node is NULL, no object, or has none, or it is null. */
const mica__json_node *mica__json_get(const mica__json_node *node, const char *key);
/* The text of a string is this; false for everything else. */
bool mica__json_text_is(const mica__json_node *node, const char *text);
/* true or false; otherwise what is given. */
bool mica__json_bool(const mica__json_node *node, bool otherwise);
/* A number without a fraction that fits; -1 for everything else. */
int64_t mica__json_whole(const mica__json_node *node);

#endif
