/* The number of operations of one evaluation of an op, from columns flops and cost of ops.def. */
#include "graph/attrs.h"
#include "graph/op.h"

static uint64_t elements(const mica__spec *spec) { return (uint64_t)mica__spec_size(spec); }

MICA__COST_RULE(none)
{
    (void)info, (void)in, (void)n_in, (void)attr, (void)out;
    return 0;
}

MICA__COST_RULE(out)
{
    (void)in, (void)n_in, (void)attr;
    return info->flops * elements(out);
}

MICA__COST_RULE(in)
{
    (void)n_in, (void)attr, (void)out;
    return info->flops * elements(in[0]);
}

/* One multiply and one add per inner element. */
MICA__COST_RULE(matmul)
{
    (void)n_in, (void)attr;
    return info->flops * elements(out) * (uint64_t)in[0]->shape[in[0]->ndim - 1];
}

MICA__COST_RULE(conv)
{
    (void)n_in, (void)attr;
    const uint64_t outs = (uint64_t)in[1]->shape[0];
    return outs == 0 ? 0 : info->flops * elements(out) * (elements(in[1]) / outs);
}

/* Scores (q . k) and the weighted sum of v. Masked positions are counted too,
 * as is usual. */
MICA__COST_RULE(attention)
{
    (void)n_in, (void)attr, (void)out;
    const mica__spec *q = in[0], *k = in[1], *v = in[2];
    const uint64_t queries = (uint64_t)q->shape[0] * (uint64_t)q->shape[1] * (uint64_t)q->shape[2];
    const uint64_t dims = (uint64_t)q->shape[3] + (uint64_t)v->shape[3];
    return info->flops * queries * (uint64_t)k->shape[2] * dims / 2;
}

/* Comparisons: n log2 n per row. */
MICA__COST_RULE(sort)
{
    (void)info, (void)n_in, (void)attr, (void)out;
    const int64_t n = in[0]->shape[in[0]->ndim - 1];
    uint64_t levels = 0;
    while (levels < 62 && (int64_t)1 << levels < n) levels++;
    return elements(in[0]) * levels;
}

/* The planner multiplies the cost of the body's plan by the number of steps. */
MICA__COST_RULE(scan)
{
    (void)info, (void)in, (void)n_in, (void)attr, (void)out;
    return 0;
}
