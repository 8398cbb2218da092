/* Prints a graph as text, one line per node:
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

/* 17 digits: reading the text back gives the same double. */
static void print_f64(mica__text *text, const char *name, double value)
{
    mica__text_add(text, " %s=%.17g", name, value);
}

static void print_number(mica__text *text, const char *name, mica_dtype dtype, mica__number value)
{
    if (mica__is_float(dtype)) mica__text_add(text, " %s=%.*g", name, dtype == MICA_F64 ? 17 : 9, value.f);
    else if (dtype == MICA_U64) mica__text_add(text, " %s=%" PRIu64, name, (uint64_t)value.i);
    else print_i64(text, name, value.i);
}

/* ------------------------------------------------ printers of attributes --- */

/* Each prints the attributes that the dtype and shape of the result do not show. */

MICA__ATTR_PRINTER(none) { (void)text, (void)node; }
MICA__ATTR_PRINTER(param) { (void)text, (void)node; } /* print_graph prints its leaf number */
MICA__ATTR_PRINTER(cast) { (void)text, (void)node; }
MICA__ATTR_PRINTER(shape) { (void)text, (void)node; }

MICA__ATTR_PRINTER(full)
{
    const mica__attr_full *a = node->attr;
    print_number(text, "value", (mica_dtype)node->spec.dtype, a->value);
}

MICA__ATTR_PRINTER(iota)
{
    const mica__attr_iota *a = node->attr;
    print_i64(text, "axis", a->axis);
    print_number(text, "start", (mica_dtype)node->spec.dtype, a->start);
    print_number(text, "step", (mica_dtype)node->spec.dtype, a->step);
}

MICA__ATTR_PRINTER(slope) { print_f64(text, "slope", ((const mica__attr_slope *)node->attr)->value); }
MICA__ATTR_PRINTER(alpha) { print_f64(text, "alpha", ((const mica__attr_alpha *)node->attr)->value); }
MICA__ATTR_PRINTER(index) { print_i64(text, "size", ((const mica__attr_index *)node->attr)->size); }
MICA__ATTR_PRINTER(take) { print_i64(text, "axis", ((const mica__attr_take *)node->attr)->axis); }
MICA__ATTR_PRINTER(axis) { print_i64(text, "axis", ((const mica__attr_axis *)node->attr)->axis); }
MICA__ATTR_PRINTER(part) { print_i64(text, "index", ((const mica__attr_part *)node->attr)->index); }
MICA__ATTR_PRINTER(sort) { print_flag(text, "descending", ((const mica__attr_sort *)node->attr)->descending); }

MICA__ATTR_PRINTER(permute)
{
    print_list(text, "axes", ((const mica__attr_permute *)node->attr)->axes, node->spec.ndim);
}

MICA__ATTR_PRINTER(slice)
{
    const mica__attr_slice *a = node->attr;
    print_list(text, "start", a->start, node->spec.ndim);
    print_list(text, "step", a->step, node->spec.ndim);
}

MICA__ATTR_PRINTER(window)
{
    const mica__attr_window *a = node->attr;
    print_i64(text, "axis", a->axis);
    print_i64(text, "size", a->size);
    print_i64(text, "stride", a->stride);
    print_i64(text, "dilation", a->dilation);
}

MICA__ATTR_PRINTER(pad)
{
    const mica__attr_pad *a = node->attr;
    print_list(text, "low", a->low, node->spec.ndim);
    print_list(text, "high", a->high, node->spec.ndim);
    print_list(text, "interior", a->interior, node->spec.ndim);
    print_number(text, "value", (mica_dtype)node->spec.dtype, a->value);
}

MICA__ATTR_PRINTER(reduce)
{
    const mica__attr_reduce *a = node->attr;
    int64_t axes[MICA_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < MICA_MAX_DIMS; d++)
        if (a->axes >> d & 1) axes[n++] = d;
    print_list(text, "axes", axes, n);
    print_flag(text, "keep", a->keep);
}

MICA__ATTR_PRINTER(cumulative)
{
    const mica__attr_cumulative *a = node->attr;
    print_flag(text, "reverse", a->reverse);
    print_flag(text, "exclusive", a->exclusive);
}

MICA__ATTR_PRINTER(norm)
{
    const mica__attr_norm *a = node->attr;
    print_f64(text, "eps", a->eps);
    print_flag(text, "wide", a->wide);
}

MICA__ATTR_PRINTER(quant)
{
    static const char *const acts[] = {"none", "token", "block256"};
    const mica__attr_quant *a = node->attr;
    mica__text_add(text, " format=%s", mica__quant_name((mica__quant_id)a->format));
    print_i64(text, "rows", a->rows);
    print_i64(text, "cols", a->cols);
    if (node->op == MICA__OP_QMATMUL) mica__text_add(text, " act=%s", acts[a->act]);
    print_flag(text, "scale_divides", a->scale_divides);
    if (!a->bits) return;
    print_i64(text, "bits", a->bits);
    print_i64(text, "group", a->group);
}

MICA__ATTR_PRINTER(conv)
{
    const mica__attr_conv *a = node->attr;
    print_list(text, "stride", a->stride, a->spatial);
    print_list(text, "pad_low", a->pad_low, a->spatial);
    print_list(text, "pad_high", a->pad_high, a->spatial);
    print_list(text, "dilation", a->dilation, a->spatial);
    print_list(text, "input_dilation", a->input_dilation, a->spatial);
    print_i64(text, "groups", a->groups);
}

MICA__ATTR_PRINTER(attention)
{
    const mica__attr_attention *a = node->attr;
    print_f64(text, "scale", a->scale);
    print_flag(text, "causal", a->causal);
    print_flag(text, "mask", a->has_mask);
}

MICA__ATTR_PRINTER(rope_table)
{
    const mica__attr_rope_table *a = node->attr;
    print_f64(text, "base", a->base);
    print_f64(text, "scale", a->scale);
    print_f64(text, "magnitude", a->magnitude);
}

MICA__ATTR_PRINTER(rope)
{
    const mica__attr_rope *a = node->attr;
    print_i64(text, "dims", a->dims);
    print_flag(text, "interleaved", a->interleaved);
    print_flag(text, "inverse", a->inverse);
}

MICA__ATTR_PRINTER(scatter)
{
    const mica__attr_scatter *a = node->attr;
    print_i64(text, "axis", a->axis);
    print_flag(text, "add", a->add);
}

MICA__ATTR_PRINTER(random)
{
    static const char *const names[] = {"bits", "uniform", "normal", "truncated_normal", "gumbel", "integer"};
    const mica__attr_random *a = node->attr;
    mica__text_add(text, " %s", names[a->dist]);
    if (a->seed) mica__text_add(text, " seed=%" PRIu64, a->seed); /* 0: the seed is the input */
    if (a->dist == MICA__DIST_UNIFORM || a->dist == MICA__DIST_TRUNCATED_NORMAL) {
        print_f64(text, "from", a->a);
        print_f64(text, "to", a->b);
    }
    if (a->dist == MICA__DIST_INTEGER) {
        print_i64(text, "from", a->low);
        print_i64(text, "to", a->high);
    }
}

MICA__ATTR_PRINTER(scan)
{
    const mica__attr_scan *a = node->attr;
    print_i64(text, "length", a->length);
    print_i64(text, "carry", a->n_carry);
    print_i64(text, "x", a->n_x);
    print_i64(text, "y", a->n_y);
    print_i64(text, "captured", a->n_captured);
    print_flag(text, "reverse", a->reverse);
}

/* ----------------------------------------------------------------- graph --- */

static void print_graph(const mica__graph *g, mica__text *text, int indent)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const mica__gnode *node = &g->node[i];
        char spec[MICA__SPEC_TEXT];
        mica__text_add(text, "%*s%%%u = %s %s", indent, "", i, mica__op_get(node->op)->name,
                       mica__spec_text(spec, &node->spec));
        for (uint32_t k = 0; k < node->n_in; k++) mica__text_add(text, " %%%u", node->in[k]);
        if (node->leaf >= 0) mica__text_add(text, " #%d", node->leaf);
        mica__op_get(node->op)->print(text, node);
        mica__text_add(text, "\n");
        if (node->body) print_graph(node->body, text, indent + 4);
    }
    mica__text_add(text, "%*sresults", indent, "");
    for (uint32_t i = 0; i < g->n_out; i++) mica__text_add(text, " %%%u", g->out[i]);
    mica__text_add(text, "\n");
}

void mica__graph_print(const mica__graph *g, mica__text *text) { print_graph(g, text, 0); }
