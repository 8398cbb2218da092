/* See node_map.h. Open addressing, linear probing. */
#include "graph/node_map.h"

#include "base/alloc.h"
#include "base/hash.h"

static uint32_t *node_map_slot(const mica__node_map *map, const mica_array *node)
{
    const uint32_t mask = map->cap_slot - 1;
    uint32_t i = (uint32_t)mica__hash_u64((uint64_t)(uintptr_t)node) & mask;
    while (map->slot[i] && map->node[map->slot[i] - 1] != node) i = (i + 1) & mask;
    return &map->slot[i];
}

static mica_status node_map_grow(mica__node_map *map)
{
    const uint32_t cap = map->cap ? map->cap * 2 : 32;
    if (cap > UINT32_MAX / 4) return mica__fail(MICA_ERR_SIZE, "a graph of more than %u nodes", UINT32_MAX / 4);
    const mica_array **node = mica__realloc(map->node, cap * sizeof *node);
    if (!node) return mica__fail_memory("the list of nodes", cap * sizeof *node);
    map->node = node;
    uint32_t *slot = mica__alloc_zero(cap * 2, sizeof *slot);
    if (!slot) return mica__fail_memory("the table of nodes", cap * 2 * sizeof *slot);
    mica__free(map->slot);
    map->slot = slot;
    map->cap = cap;
    map->cap_slot = cap * 2;
    for (uint32_t i = 0; i < map->n; i++) *node_map_slot(map, map->node[i]) = i + 1;
    return MICA_OK;
}

mica_status mica__node_map_add(mica__node_map *map, const mica_array *node, uint32_t *number)
{
    if (map->n == map->cap) MICA_TRY(node_map_grow(map));
    uint32_t *slot = node_map_slot(map, node);
    if (!*slot) {
        map->node[map->n] = node;
        *slot = ++map->n;
    }
    *number = *slot - 1;
    return MICA_OK;
}

uint32_t mica__node_map_find(const mica__node_map *map, const mica_array *node)
{
    return map->n ? *node_map_slot(map, node) - 1 : MICA__NODE_NONE; /* empty: 0 - 1 */
}

void mica__node_map_free(mica__node_map *map)
{
    mica__free(map->node);
    mica__free(map->slot);
    *map = (mica__node_map){0};
}
