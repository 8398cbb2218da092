/* Nodes by address: a hash table from a node to a number, for passes that walk
 * what a caller built. Numbers are given in the order of insertion, so the
 * caller keeps its facts in plain arrays beside the map. */
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

/* Start from a zeroed struct. Adding a node that is there already returns its
 * number. */
mica_status mica__node_map_add(mica__node_map *map, const mica_array *node, uint32_t *number);
/* MICA__NODE_NONE if it is not there. */
uint32_t mica__node_map_find(const mica__node_map *map, const mica_array *node);
void mica__node_map_free(mica__node_map *map);

#endif
