/* See scan_terms.h. term_collect decides if a sum can be computed after the scan and collects its terms;
 * mica__scan_terms_sum builds the sum from the stacked terms. */
#include "graph/scan_terms.h"

#include "graph/vjp_util.h"

enum {
    TERM_VISITS = 64,           /* limit of nodes visited for one sum; larger sums stay in the scan */
    TERM_INPUTS = 16            /* limit of inputs of one of these nodes                            */
};

/* Ops that only move or add elements: their sum over the steps is the op applied to the sums of its inputs. */
static bool term_is_linear(const mica_array *node)
{
    switch (node->op) {
    case MICA__OP_RESHAPE:
    case MICA__OP_PERMUTE:
    case MICA__OP_SLICE:
    case MICA__OP_CONCAT:
    case MICA__OP_ADD: return true;
    case MICA__OP_PAD: {
        const mica__attr_pad *pad = node->attr;
        return pad->value.f == 0 && pad->value.i == 0;
    }
    default: return false;
    }
}

static bool term_is_product(const mica_array *node)
{
    return node->op == MICA__OP_MATMUL && node->attr_size == 0 && node->in[0]->spec.ndim == 2 &&
           node->in[1]->spec.ndim == 2;
}

/* Of a transposed factor the scan returns the array before the transpose: the product after the scan
 * can read it either way. */
static bool term_is_transposed(const mica_array *factor)
{
    return factor->op == MICA__OP_PERMUTE && factor->spec.ndim == 2;
}
static mica_array *term_of(mica_array *factor) { return term_is_transposed(factor) ? factor->in[0] : factor; }

static size_t term_find(const mica__scan_terms *t, const mica_array *node)
{
    size_t i = 0;
    while (i < t->n && t->node[i] != node) i++;
    return i;
}

/* Bytes per step that returning this value adds. Parameters of the step and values already in t cost nothing. */
static uint64_t term_cost(const mica__scan_terms *t, const mica_array *node)
{
    return node->op == MICA__OP_PARAM || term_find(t, node) < t->n ? 0 : mica_array_nbytes(node);
}

static bool term_add(mica__scan_terms *t, mica_array *node)
{
    if (term_find(t, node) < t->n) return true;
    if (t->n == t->room || node->serial <= t->floor || node->spec.ndim == MICA_MAX_DIMS) return false;
    t->bytes += term_cost(t, node);
    t->node[t->n++] = node;
    return t->bytes <= t->most;
}

/* Carrying the sum would read and write it in each step: twice its size. */
static bool term_collect_product(mica__scan_terms *t, const mica_array *product)
{
    mica_array *a = term_of(product->in[0]), *b = term_of(product->in[1]);
    if (term_cost(t, a) + term_cost(t, b) > 2 * mica_array_nbytes(product)) return false;
    return term_add(t, a) && term_add(t, b);
}

static bool term_collect(mica__scan_terms *t, const mica_array *node, int *visits)
{
    if (term_is_product(node)) return term_collect_product(t, node);
    if (node->op == MICA__OP_SUM) return term_cost(t, node->in[0]) == 0 && term_add(t, node->in[0]);
    if (!term_is_linear(node) || node->n_in == 0 || node->n_in > TERM_INPUTS || ++*visits > TERM_VISITS) return false;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!term_collect(t, node->in[i], visits)) return false;
    return true;
}

bool mica__scan_terms_collect(mica__scan_terms *t, const mica_array *summand)
{
    const mica__scan_terms before = *t;
    int visits = 0;
    if (term_collect(t, summand, &visits)) return true;
    *t = before;
    return false;
}

/* All steps of a factor as one matrix. The steps are joined along the axis over which the product sums:
 * axis `fold` (0 or 1) of the factor. */
static mica_array *term_matrix(mica_scope *s, const mica__scan_terms *t, mica_array *factor, int fold)
{
    const bool turned = term_is_transposed(factor);
    mica_array *all = t->stacked[term_find(t, term_of(factor))];
    const int64_t other = factor->spec.shape[!fold], folded = factor->spec.shape[fold];
    const bool first = turned ? fold == 1 : fold == 0; /* the folded axis directly follows the axis of the steps */
    if (!all) return NULL;
    const int64_t length = all->spec.shape[0] * folded;
    if (!first) all = mica_permute(s, all, fold == 0 ? (const int[]){0, 2, 1} : (const int[]){1, 0, 2});
    if (!first && fold == 1) return mica_reshape(s, all, 2, (const int64_t[]){other, length});
    all = mica_reshape(s, all, 2, (const int64_t[]){length, other});
    return fold == 1 ? mica_transpose(s, all) : all;
}

static mica_array *term_sum_axes(mica_scope *s, const mica__scan_terms *t, const mica_array *sum)
{
    const mica__attr_reduce *attr = sum->attr;
    mica_array *all = t->stacked[term_find(t, sum->in[0])];
    return vjp_reshape_like(s, mica__reduce(s, MICA__OP_SUM, all, attr->axes << 1 | 1, false), sum);
}

mica_array *mica__scan_terms_sum(mica_scope *s, const mica__scan_terms *t, mica_array *summand)
{
    if (term_is_product(summand))
        return mica_matmul(s, term_matrix(s, t, summand->in[0], 1), term_matrix(s, t, summand->in[1], 0));
    if (summand->op == MICA__OP_SUM) return term_sum_axes(s, t, summand);
    mica_array *in[TERM_INPUTS];
    for (uint32_t i = 0; i < summand->n_in; i++) in[i] = mica__scan_terms_sum(s, t, summand->in[i]);
    return mica__build(s, (mica__op)summand->op, in, summand->n_in, summand->attr, summand->attr_size);
}
