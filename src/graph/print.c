/* A graph as text, one line a node:
 *
 *     %12 = add f32 (32, 64) %3 %7
 *     %13 = sum f32 (32) %12 axes=(1)
 *     results %13
 */
#include <inttypes.h>

#include "graph/construct.h"
#include "graph/graph.h"
#include "quant/quant.h"

static void print_list(mica__text *text, const char *name, const int64_t *values, int64_t n)
{
    char buffer[MICA__SHAPE_TEXT];
    mica__text_add(text, " %s=%s", name, mica__shape_text(buffer, (int)n, values));
}

static void print_i64(mica__text *text, const char *name, int64_t value)
{
    mica__text_add(text, " %s=%" PRId64, name, value);
}

static void print_flag(mica__text *text, const char *name, int64_t value)
{
    if (value) mica__text_add(text, " %s", name);
}

/* Enough digits to read the same value back. */
static void print_number(mica__text *text, const char *name, mica_dtype dtype, mica__number value)
{
    if (mica__is_float(dtype)) mica__text_add(text, " %s=%.*g", name, dtype == MICA_F64 ? 17 : 9, value.f);
    else if (dtype == MICA_U64) mica__text_add(text, " %s=%" PRIu64, name, (uint64_t)value.i);
    else print_i64(text, name, value.i);
}

static void print_axes(mica__text *text, const mica__attr_reduce *a)
{
    int64_t axes[MICA_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < MICA_MAX_DIMS; d++)
        if (a->axes >> d & 1) axes[n++] = d;
    print_list(text, "axes", axes, n);
    print_flag(text, "keep", a->keep);
}

static void print_random(mica__text *text, const mica__attr_random *a)
{
    static const char *const names[] = {"bits", "uniform", "normal", "truncated_normal", "gumbel", "integer"};
    mica__text_add(text, " %s", names[a->dist]);
    if (a->seed) mica__text_add(text, " seed=%" PRIu64, a->seed); /* else it is the input */
    if (a->dist == MICA__DIST_UNIFORM || a->dist == MICA__DIST_TRUNCATED_NORMAL)
        mica__text_add(text, " from=%.17g to=%.17g", a->a, a->b);
    if (a->dist == MICA__DIST_INTEGER) mica__text_add(text, " from=%" PRId64 " to=%" PRId64, a->low, a->high);
}

static void print_quant(mica__text *text, uint16_t op, const mica__attr_quant *a)
{
    static const char *const acts[] = {"none", "token", "block256"};
    mica__text_add(text, " format=%s rows=%" PRId64 " cols=%" PRId64, mica__quant_name((mica__quant_id)a->format),
                   a->rows, a->cols);
    if (op == MICA__OP_QMATMUL) mica__text_add(text, " act=%s", acts[a->act]);
    print_flag(text, "scale_divides", a->scale_divides);
    if (a->bits) mica__text_add(text, " bits=%" PRId64 " group=%" PRId64, a->bits, a->group);
}

static void print_conv(mica__text *text, const mica__attr_conv *a)
{
    print_list(text, "stride", a->stride, a->spatial);
    print_list(text, "pad_low", a->pad_low, a->spatial);
    print_list(text, "pad_high", a->pad_high, a->spatial);
    print_list(text, "dilation", a->dilation, a->spatial);
    print_list(text, "input_dilation", a->input_dilation, a->spatial);
    print_i64(text, "groups", a->groups);
}

static void print_scan(mica__text *text, const mica__attr_scan *a)
{
    mica__text_add(text, " length=%" PRId64 " carry=%" PRId64 " x=%" PRId64 " y=%" PRId64 " captured=%" PRId64,
                   a->length, a->n_carry, a->n_x, a->n_y, a->n_captured);
    print_flag(text, "reverse", a->reverse);
}

static void print_window(mica__text *text, const mica__attr_window *a)
{
    mica__text_add(text, " axis=%" PRId64 " size=%" PRId64 " stride=%" PRId64 " dilation=%" PRId64, a->axis, a->size,
                   a->stride, a->dilation);
}

/* What the shape of the result does not say already. */
static void print_node_attr(mica__text *text, const mica__gnode *node)
{
    const mica_dtype dtype = (mica_dtype)node->spec.dtype;
    const int ndim = node->spec.ndim;
    const void *attr = node->attr;
    if (node->leaf >= 0) mica__text_add(text, " #%d", node->leaf);
    switch ((int)node->op) {
    case MICA__OP_FULL: print_number(text, "value", dtype, ((const mica__attr_full *)attr)->value); break;
    case MICA__OP_IOTA:
        print_i64(text, "axis", ((const mica__attr_iota *)attr)->axis);
        print_number(text, "start", dtype, ((const mica__attr_iota *)attr)->start);
        print_number(text, "step", dtype, ((const mica__attr_iota *)attr)->step);
        break;
    case MICA__OP_LEAKY_RELU: mica__text_add(text, " slope=%.17g", ((const mica__attr_value *)attr)->value); break;
    case MICA__OP_ELU: mica__text_add(text, " alpha=%.17g", ((const mica__attr_value *)attr)->value); break;
    case MICA__OP_CHECK_INDEX: print_i64(text, "size", ((const mica__attr_index *)attr)->size); break;
    case MICA__OP_PERMUTE: print_list(text, "axes", ((const mica__attr_permute *)attr)->axes, ndim); break;
    case MICA__OP_SLICE:
        print_list(text, "start", ((const mica__attr_slice *)attr)->start, ndim);
        print_list(text, "step", ((const mica__attr_slice *)attr)->step, ndim);
        break;
    case MICA__OP_WINDOW:
    case MICA__OP_UNWINDOW: print_window(text, attr); break;
    case MICA__OP_SUM:
    case MICA__OP_PROD:
    case MICA__OP_MAX:
    case MICA__OP_MIN:
    case MICA__OP_ANY:
    case MICA__OP_ALL: print_axes(text, attr); break;
    case MICA__OP_CUMSUM:
    case MICA__OP_CUMPROD:
    case MICA__OP_CUMMAX:
        print_flag(text, "reverse", ((const mica__attr_cumulative *)attr)->reverse);
        print_flag(text, "exclusive", ((const mica__attr_cumulative *)attr)->exclusive);
        break;
    case MICA__OP_LAYER_NORM:
    case MICA__OP_RMS_NORM:
        mica__text_add(text, " eps=%.17g", ((const mica__attr_norm *)attr)->eps);
        print_flag(text, "wide", ((const mica__attr_norm *)attr)->wide);
        break;
    case MICA__OP_QMATMUL:
    case MICA__OP_QROWS: print_quant(text, node->op, attr); break;
    case MICA__OP_CONV: print_conv(text, attr); break;
    case MICA__OP_ATTENTION:
    case MICA__OP_ATTENTION_GRAD:
        mica__text_add(text, " scale=%.17g", ((const mica__attr_attention *)attr)->scale);
        print_flag(text, "causal", ((const mica__attr_attention *)attr)->causal);
        print_flag(text, "mask", ((const mica__attr_attention *)attr)->has_mask);
        break;
    case MICA__OP_ROPE_TABLE: {
        const mica__attr_rope_table *rope = attr;
        mica__text_add(text, " base=%.17g scale=%.17g magnitude=%.17g", rope->base, rope->scale, rope->magnitude);
        break;
    }
    case MICA__OP_ROPE:
        print_i64(text, "dims", ((const mica__attr_rope *)attr)->dims);
        print_flag(text, "interleaved", ((const mica__attr_rope *)attr)->interleaved);
        print_flag(text, "inverse", ((const mica__attr_rope *)attr)->inverse);
        break;
    case MICA__OP_PAD:
        print_list(text, "low", ((const mica__attr_pad *)attr)->low, ndim);
        print_list(text, "high", ((const mica__attr_pad *)attr)->high, ndim);
        print_list(text, "interior", ((const mica__attr_pad *)attr)->interior, ndim);
        print_number(text, "value", dtype, ((const mica__attr_pad *)attr)->value);
        break;
    case MICA__OP_CONCAT:
    case MICA__OP_TAKE: print_i64(text, "axis", ((const mica__attr_take *)attr)->axis); break;
    case MICA__OP_SCATTER:
        print_i64(text, "axis", ((const mica__attr_scatter *)attr)->axis);
        print_flag(text, "add", ((const mica__attr_scatter *)attr)->add);
        break;
    case MICA__OP_SORT:
    case MICA__OP_ARGSORT: print_flag(text, "descending", ((const mica__attr_sort *)attr)->descending); break;
    case MICA__OP_RANDOM: print_random(text, attr); break;
    case MICA__OP_SCAN: print_scan(text, attr); break;
    case MICA__OP_PART: print_i64(text, "index", ((const mica__attr_part *)attr)->index); break;
    default: break;
    }
}

static void print_graph(const mica__graph *g, mica__text *text, int indent)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const mica__gnode *node = &g->node[i];
        char spec[MICA__SPEC_TEXT];
        mica__text_add(text, "%*s%%%u = %s %s", indent, "", i, mica__op_get(node->op)->name,
                       mica__spec_text(spec, &node->spec));
        for (uint32_t k = 0; k < node->n_in; k++) mica__text_add(text, " %%%u", node->in[k]);
        print_node_attr(text, node);
        mica__text_add(text, "\n");
        if (node->body) print_graph(node->body, text, indent + 4);
    }
    mica__text_add(text, "%*sresults", indent, "");
    for (uint32_t i = 0; i < g->n_out; i++) mica__text_add(text, " %%%u", g->out[i]);
    mica__text_add(text, "\n");
}

void mica__graph_print(const mica__graph *g, mica__text *text) { print_graph(g, text, 0); }
