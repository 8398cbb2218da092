/* A JSON text as a tree, for files whose parts have any order and are read more than
 * once. The number of nodes is limited, and each needs at least two bytes of text. */
#ifndef MICA_TEXT_JSON_TREE_H
#define MICA_TEXT_JSON_TREE_H

#include "io/json.h"

typedef struct mica__json_node {
    mica__json_token kind;         /* OBJECT, ARRAY, STRING, NUMBER, TRUE, FALSE, NULL   */
    const char *key;               /* in an object                                       */
    size_t key_length;
    const char *text;              /* strings: decoded; numbers: as written              */
    size_t length;                 /* of the text, or the number of children             */
    struct mica__json_node *first, *next;
} mica__json_node;

typedef struct mica__json_tree {
    mica__json reader;             /* owns the strings */
    mica__arena arena;             /* owns the nodes   */
    mica__json_node *root;
} mica__json_tree;

/* Error messages begin with `what`. Free the tree even if the call fails. */
mica_status mica__json_tree_read(mica__json_tree *tree, const char *what, const void *text, size_t size);
void mica__json_tree_free(mica__json_tree *tree);

/* The member of an object; NULL if node is NULL or not an object, or the member is missing or null. */
const mica__json_node *mica__json_get(const mica__json_node *node, const char *key);
/* True if node is a string with this text. */
bool mica__json_text_is(const mica__json_node *node, const char *text);
/* The value of a boolean node; `otherwise` for any other node. */
bool mica__json_bool(const mica__json_node *node, bool otherwise);
/* A non-negative integer that fits; -1 for any other node. */
int64_t mica__json_integer(const mica__json_node *node);

#endif
