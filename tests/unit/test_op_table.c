/* The op table: the guarantees of its columns to the verifier, the printer and the tests.
 *
 * runs: check */
#include <string.h>

#include "base/text.h"
#include "graph/attrs.h"
#include "graph/graph.h"
#include "op_facts.h"
#include "test.h"

/* Ops whose attributes are visible in the dtype, the shape or the leaf number of the node. */
static bool shown_by_the_node(int op)
{
    return op == MICA__OP_PARAM || op == MICA__OP_CAST || op == MICA__OP_RESHAPE || op == MICA__OP_BROADCAST;
}

/* Every attribute set to 1, which is legal for each: numbers, flags, axes, formats. */
TEST(dumps_show_every_attribute)
{
    int64_t ones[64];
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) ones[i] = 1;
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        const mica__op_info *info = mica__op_get((uint16_t)op);
        test_case("%s", info->name);
        if (!EXPECT(info->attr_size <= sizeof ones)) continue;
        const mica__gnode node = {.op = (uint16_t)op,
                                  .attr = ones,
                                  .attr_size = (uint32_t)info->attr_size,
                                  .spec = {.dtype = MICA_F32, .ndim = 2, .shape = {3, 4}},
                                  .leaf = -1};
        char buffer[512];
        mica__text text;
        mica__text_init(&text, buffer, sizeof buffer);
        info->print(&text, &node);
        EXPECT_INT(buffer[0] != 0, info->attr_size > 0 && !shown_by_the_node(op));
    }
}

TEST(every_element_wise_op_has_facts)
{
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        const mica__op_info *info = mica__op_get((uint16_t)op);
        const op_facts *facts = op_facts_of((mica__op)op);
        test_case("%s", info->name);
        EXPECT_INT(facts != NULL, info->ctor != MICA__CTOR_OTHER);
        if (!facts) continue;
        EXPECT(info->kind == MICA__MAP && facts->n_in == info->n_in && op_facts_named(info->name) == facts);
        EXPECT((facts->make1 != NULL) == (info->n_in == 1) && (facts->make2 != NULL) == (info->n_in == 2));
        EXPECT_INT(info->attr_size > 0, info->ctor == MICA__CTOR_VALUE);
    }
}
