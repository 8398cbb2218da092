/* Constructors of the functions in composed.def. */
#include "graph/construct.h"

#define MICA_COMPOSED(name, graph, ...)                   \
    mica_array *mica_##name(mica_scope *s, mica_array *x) \
    {                                                     \
        if (!mica__usable1(s, #name, x)) return NULL;     \
        x = mica__to_float(s, x);                         \
        return (graph);                                   \
    }
#include "graph/composed.def"
