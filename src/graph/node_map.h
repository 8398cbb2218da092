/* A hash table from the address of a node to a number, for passes that walk the
 * caller's graph. Numbers are assigned in the order of insertion, so the caller
 * keeps data about nodes in plain arrays indexed by number. */
#ifndef MICA_GRAPH_NODE_MAP_H
#define MICA_GRAPH_NODE_MAP_H

#include "array/array.h"

#define MICA__NODE_NONE UINT32_MAX

typedef struct mica__node_map {
    const mica_array **node;   /* by number                                */
    uint32_t n, cap;
    uint32_t *slot;            /* number + 1, 0: empty; at most half full  */
    uint32_t cap_slot;
} mica__node_map;

/* Start from a zeroed struct. Adding a node that is already in the map returns its
 * number. */
mica_status mica__node_map_add(mica__node_map *map, const mica_array *node, uint32_t *number);
/* MICA__NODE_NONE if the node is not in the map. */
uint32_t mica__node_map_find(const mica__node_map *map, const mica_array *node);
void mica__node_map_free(mica__node_map *map);

#endif
