/* Selects the vector width of the chain interpreter for this CPU. */
#include "base/cpu.h"
#include "codegen/chain_ctx.h"

#define MICA_CHAIN(name, needs)                              \
    extern const chain_table mica__chain_##name;             \
    extern const chain_int_table mica__chain_int_##name;     \
    extern const chain_wide_table mica__chain_wide_##name;   \
    extern const chain_plain_table mica__chain_plain_##name; \
    extern const chain_move_table mica__chain_move_##name;
#include "codegen/chain_variants.def"
#undef MICA_CHAIN

static const chain_variant chain_variants[] = {
#define MICA_CHAIN(name, needs) \
    {needs,                     \
     &mica__chain_##name,       \
     &mica__chain_int_##name,   \
     &mica__chain_wide_##name,  \
     &mica__chain_move_##name,  \
     &mica__chain_plain_##name, \
     0},
#include "codegen/chain_variants.def"
#undef MICA_CHAIN
};

const chain_variant *mica__chain_variants(size_t *n)
{
    const unsigned have = mica__cpu_features();
    *n = 0;
    for (size_t i = 0; i < sizeof chain_variants / sizeof *chain_variants; i++)
        if ((chain_variants[i].needs & ~have) == 0) *n = i + 1;
    return chain_variants;
}

const chain_variant *mica__chain_best_variant(void)
{
    size_t n;
    const chain_variant *table = mica__chain_variants(&n);
    return &table[n - 1];
}

double mica__chain_fold_f32(mica__op op, const char *x, int64_t n)
{
    return mica__chain_best_variant()->plain->rows[op]((const chain_f32 *)x, n);
}
