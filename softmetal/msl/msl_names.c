/* Names that a text may not use: those of a newer version of the language than the library is
 * compiled for, and those of headers that may be included but whose content is not supported.
 * The shim declares every name in each version, so the compiler would accept them. */
#include "msl.h"

#include <string.h>

/* since: the first version, 0x30001 = 3.1; why: the reason if no version has it. */
static const struct {
    const char *name;
    int since;
    const char *why;
} restricted[] = {
#define VECTORS(type, since) \
    {type "2", since, NULL}, {type "3", since, NULL}, { type "4", since, NULL }
    {"bfloat", 0x30001, NULL},
    VECTORS("bfloat", 0x30001),
    VECTORS("packed_bfloat", 0x30001),
    {"simdgroup_bfloat8x8", 0x30001, NULL},
    {"atomic_float", 0x30000, NULL},
#undef VECTORS
    /* What their macros stand for (shim/macros.h). */
    {"sm_performance_primitives", 0,
     "mpp (Metal Performance Primitives) is not supported: there are no tensor operations"},
    {"sm_tensor", 0, "tensors (metal_tensor) are not supported"},
};

static int find(const msl_tokens *tokens, int i)
{
    const msl_token *t = &tokens->list[i];
    if (t->kind != MSL_NAME) return -1;
    if (i > 0 && (msl_is(tokens, i - 1, ".") || msl_is(tokens, i - 1, "->"))) return -1; /* a member of the user */
    for (size_t k = 0; k < sizeof restricted / sizeof *restricted; k++)
        if (strlen(restricted[k].name) == t->length && msl_is(tokens, i, restricted[k].name)) return (int)k;
    return -1;
}

bool msl_check_names(const msl_unit *unit, int version, char **message)
{
    for (int i = 0; i < unit->tokens.count; i++) {
        const int k = find(&unit->tokens, i);
        if (k < 0) continue;
        if (restricted[k].why) return msl_error(unit, i, message, "%s", restricted[k].why);
        if (version < restricted[k].since)
            return msl_error(unit, i, message, "%s needs Metal %d.%d; the library is compiled for %d.%d",
                             restricted[k].name, restricted[k].since >> 16, restricted[k].since & 0xffff, version >> 16,
                             version & 0xffff);
    }
    return true;
}
