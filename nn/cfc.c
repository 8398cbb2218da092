/* CfC, the closed form of a liquid cell: with a backbone, or without one for each layer of a wiring.
 *
 * The first matrix of a step (the backbone's, else the heads') reads [x, h]. The product with x is computed for all
 * steps before the loop; the step multiplies h only. The heads ff1, ff2, time_a and time_b are one matrix. If the time
 * span is the same for all steps, the two time heads are merged: a t + b is computed on weights instead of results. */
#include <stdio.h>

#include "liquid.h"

/* ------------------------------------------------------------- one cell ---- */

typedef struct cfc_shape {
    const liquid_layer *l;
    const char *prefix;        /* "rnn_cell." or "rnn_cell.layer_1."                            */
    int64_t inputs, hidden;    /* sizes of this cell                                            */
    int64_t width;             /* input width of the heads: of the backbone, or inputs + hidden */
    int64_t backbone_layers;
} cfc_shape;

static cfc_shape plain_cfc(const liquid_layer *l)
{
    const mica_liquid *n = l->net;
    const bool backbone = n->backbone_layers > 0;
    return (cfc_shape){
        l, "rnn_cell.", l->inputs, n->units, backbone ? n->backbone_units : l->inputs + n->units, n->backbone_layers};
}

static bool keras(const liquid_layer *l) { return l->net->convention == MICA_LIQUID_KERAS; }

/* torch.nn.Sequential numbers every module: an activation follows each linear layer,
 * and a dropout each but the first. */
static int64_t backbone_index(const mica_liquid *net, int64_t layer)
{
    return layer == 0 ? 0 : 2 + (layer - 1) * (net->dropout > 0 ? 3 : 2);
}

static void declare_linear(liquid_builder *b, const cfc_shape *c, const char *name, int64_t out, int64_t in)
{
    char full[LIQUID_NAME];
    snprintf(full, sizeof full, "%s%s", c->prefix, name);
    mica__liquid_linear(b, full, out, in);
}

static void declare_cell(liquid_builder *b, const cfc_shape *c)
{
    char name[LIQUID_NAME];
    const mica_cfc_mode mode = b->layer->net->mode;
    for (int k = 0; mode == MICA_CFC_PURE && k < 2; k++) {
        snprintf(name, sizeof name, "%s%s", c->prefix, k ? "A" : "w_tau");
        mica__liquid_xavier(b, name, 1, c->hidden);
    }
    for (int64_t i = 0; i < c->backbone_layers; i++) {
        snprintf(name, sizeof name, "backbone.%lld", (long long)backbone_index(b->layer->net, i));
        declare_linear(b, c, name, c->width, i ? c->width : c->inputs + c->hidden);
    }
    static const char *const heads[] = {"ff1", "ff2", "time_a", "time_b"};
    for (int k = 0; k < (mode == MICA_CFC_PURE ? 1 : 4); k++) declare_linear(b, c, heads[k], c->hidden, c->width);
}

static mica_array *head_part(const cfc_shape *c, const char *name, const char *part)
{
    return mica__liquid_get(c->l, "%s%s.%s", c->prefix, name, part);
}

/* Returns how many heads the gate needs: time_a and time_b, or only a t + b. Keras negates time_a. */
static size_t time_heads(const cfc_shape *c, const char *part, mica_array *heads[2])
{
    mica_scope *s = c->l->s;
    mica_array *a = head_part(c, "time_a", part), *b = head_part(c, "time_b", part);
    if (keras(c->l)) a = mica_neg(s, a);
    heads[0] = a;
    heads[1] = b;
    if (c->l->span_steps) return 2;
    if (c->l->span) a = mica_mul(s, a, mica_cast(s, c->l->span, mica_array_dtype(a)));
    heads[0] = mica_add(s, a, b);
    return 1;
}

/* All heads stacked, (heads hidden, width), or their biases. mask: factor of ff1 and ff2; NULL: no mask. */
static mica_array *all_heads(const cfc_shape *c, const char *part, mica_array *mask)
{
    mica_scope *s = c->l->s;
    mica_array *heads[4];
    size_t n = 0;
    heads[n++] = head_part(c, "ff1", part);
    if (c->l->net->mode != MICA_CFC_PURE) heads[n++] = head_part(c, "ff2", part);
    for (size_t k = 0; mask && k < n; k++) heads[k] = mica_mul(s, heads[k], mask);
    if (c->l->net->mode != MICA_CFC_PURE) n += time_heads(c, part, heads + n);
    return n == 1 ? heads[0] : mica_concat(s, heads, n, 0);
}

/* Returns the new state from the sums of the heads z (batch, heads hidden). */
static mica_array *cfc_mix(const cfc_shape *c, mica_array *z, mica_array *span)
{
    mica_scope *s = c->l->s;
    const int64_t h = c->hidden;
    const mica_cfc_mode mode = c->l->net->mode;
    mica_array *one = mica_scalar(s, 1), *f1 = mica__liquid_columns(s, z, 0, h);
    if (mode == MICA_CFC_PURE) {
        mica_array *a = mica__liquid_get(c->l, "%sA", c->prefix);
        mica_array *rate = mica_add(s, mica_abs(s, mica__liquid_get(c->l, "%sw_tau", c->prefix)), mica_abs(s, f1));
        if (span) rate = mica_mul(s, rate, mica_cast(s, span, mica_array_dtype(z)));
        mica_array *decayed = mica_mul(s, mica_exp(s, mica_neg(s, rate)), f1);
        return mica_mul(s, a, mica_sub(s, one, decayed));
    }
    mica_array *f2 = mica__liquid_columns(s, z, h, h), *gate = mica__liquid_columns(s, z, 2 * h, h);
    if (c->l->span_steps) {
        gate = mica_mul(s, gate, mica_cast(s, span, mica_array_dtype(z)));
        gate = mica_add(s, gate, mica__liquid_columns(s, z, 3 * h, h));
    }
    gate = mica_sigmoid(s, gate);
    if (!keras(c->l)) f1 = mica_tanh(s, f1), f2 = mica_tanh(s, f2);
    if (mode == MICA_CFC_NO_GATE) return mica_add(s, f1, mica_mul(s, gate, f2));
    return mica_add(s, mica_mul(s, f1, mica_sub(s, one, gate)), mica_mul(s, gate, f2));
}

/* ---------------------------------------------------- CfC with a backbone ---- */

enum { CFC_STATE, CFC_INPUT, CFC_BIAS, CFC_HEADS, CFC_HEADS_BIAS, CFC_MORE };

static int64_t cfc_state_size(const mica_liquid *net) { return net->units; }

static void cfc_declare(liquid_builder *b)
{
    const cfc_shape c = plain_cfc(b->layer);
    declare_cell(b, &c);
}

/* Splits the matrix that reads [x, h] into its parts for x and for h. With a backbone, its other layers and the heads
 * follow. */
static void cfc_weights(liquid_layer *l)
{
    const cfc_shape c = plain_cfc(l);
    mica_scope *s = l->s;
    const bool backbone = c.backbone_layers > 0;
    mica_array *both = backbone ? head_part(&c, "backbone.0", "weight") : all_heads(&c, "weight", NULL);
    l->kept[CFC_BIAS] = backbone ? head_part(&c, "backbone.0", "bias") : all_heads(&c, "bias", NULL);
    l->kept[CFC_INPUT] = mica_transpose(s, mica__liquid_columns(s, both, 0, c.inputs));
    l->kept[CFC_STATE] = mica__liquid_step_weight(l, mica__liquid_columns(s, both, c.inputs, c.hidden));
    if (!backbone) return;
    l->kept[CFC_HEADS] = mica__liquid_step_weight(l, all_heads(&c, "weight", NULL));
    l->kept[CFC_HEADS_BIAS] = all_heads(&c, "bias", NULL);
    for (int64_t i = 1; i < c.backbone_layers; i++) {
        const long long index = backbone_index(l->net, i);
        l->kept[CFC_MORE + 2 * (i - 1)] =
            mica__liquid_step_weight(l, mica__liquid_get(l, "%sbackbone.%lld.weight", c.prefix, index));
        l->kept[CFC_MORE + 2 * (i - 1) + 1] = mica__liquid_get(l, "%sbackbone.%lld.bias", c.prefix, index);
    }
}

static void cfc_project(liquid_layer *l, mica_array *x)
{
    l->x[0] = mica_add(l->s, mica__liquid_product(l->s, x, l->kept[CFC_INPUT]), l->kept[CFC_BIAS]);
    l->n_x = 1;
}

static mica_array *cfc_dropout(const liquid_layer *l, mica_array *x, int64_t layer)
{
    if (!l->seed || l->net->dropout == 0 || (layer == 0 && !keras(l))) return x;
    return mica_dropout(l->s, x, l->net->dropout, l->seed, (uint32_t)layer);
}

static mica_array *cfc_step(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span)
{
    const cfc_shape c = plain_cfc(l);
    mica_scope *s = l->s;
    mica_array *z = mica_add(s, mica__liquid_step_product(l, state, l->kept[CFC_STATE]), x[0]);
    for (int64_t i = 0; i < c.backbone_layers; i++) {
        if (i > 0) {
            z = mica__liquid_step_product(l, z, l->kept[CFC_MORE + 2 * (i - 1)]);
            z = mica_add(s, z, l->kept[CFC_MORE + 2 * (i - 1) + 1]);
        }
        z = cfc_dropout(l, mica__liquid_activate(s, l->net->activation, z), i);
    }
    if (c.backbone_layers > 0)
        z = mica_add(s, mica__liquid_step_product(l, z, l->kept[CFC_HEADS]), l->kept[CFC_HEADS_BIAS]);
    return cfc_mix(&c, z, span);
}

static mica_array *cfc_output(const liquid_layer *l, mica_array *states)
{
    (void)l;
    return states;
}

const liquid_cell mica__cfc_cell = {.name = "cfc",
                                    .state_size = cfc_state_size,
                                    .outputs = cfc_state_size,
                                    .declare = cfc_declare,
                                    .weights = cfc_weights,
                                    .project = cfc_project,
                                    .step = cfc_step,
                                    .output = cfc_output};

/* ----------------------------------------------------- CfC with a wiring ---- */

/* One cell per layer of the wiring; the state is the concatenation of the layers' states. Neurons within a layer are
 * fully connected; synapses of the wiring within a layer are ignored. */

enum { WIRED_STATE, WIRED_INPUT, WIRED_BIAS, WIRED_KEPT, WIRED_MOST = 3 };

static cfc_shape wired_layer(const liquid_layer *l, int64_t layer, char prefix[40])
{
    int64_t first = 0, hidden = 0, before_first, before = l->inputs;
    (void)mica_wiring_layer(l->wiring, layer, &first, &hidden);
    if (layer > 0) (void)mica_wiring_layer(l->wiring, layer - 1, &before_first, &before);
    snprintf(prefix, 40, "rnn_cell.layer_%d.", (int)layer);
    return (cfc_shape){l, prefix, before, hidden, before + hidden, 0};
}

static int64_t wired_layers(const mica_wiring *w)
{
    int64_t n = 0, first, count;
    while (mica_wiring_layer(w, n, &first, &count)) n++;
    return n;
}

static int64_t wired_state_size(const mica_liquid *net) { return mica_wiring_get(net->wiring)->units; }

static int64_t wired_outputs(const mica_liquid *net)
{
    int64_t first, count = 0;
    (void)mica_wiring_layer(net->wiring, wired_layers(net->wiring) - 1, &first, &count);
    return count;
}

/* Mask of the layer's ff1 and ff2: (hidden, before + hidden). */
static mica_array *wired_mask(const liquid_layer *l, int64_t layer)
{
    int64_t first = 0, hidden = 0, before_first = 0, before = l->inputs;
    (void)mica_wiring_layer(l->wiring, layer, &first, &hidden);
    if (layer > 0) (void)mica_wiring_layer(l->wiring, layer - 1, &before_first, &before);
    mica_array *part =
        mica_slice_axis(l->s, mica__liquid_wires(l, layer == 0), 0, before_first, before_first + before, 1);
    part = mica__liquid_columns(l->s, part, first, hidden);
    if (!keras(l)) part = mica_abs(l->s, part);
    mica_array *ones = mica_ones(l->s, MICA_I8, 2, (const int64_t[]){hidden, hidden});
    mica_array *mask = mica_concat(l->s, (mica_array *const[]){part, ones}, 2, 0);
    return mica_cast(l->s, mica_transpose(l->s, mask), MICA_F32);
}

static void wired_declare(liquid_builder *b)
{
    char prefix[40], name[LIQUID_NAME];
    for (int64_t i = 0; i < wired_layers(b->layer->wiring); i++) {
        const cfc_shape c = wired_layer(b->layer, i, prefix);
        if (b->values) {
            snprintf(name, sizeof name, "%ssparsity_mask", prefix);
            mica_array *mask = mica_contiguous(b->layer->s, wired_mask(b->layer, i));
            if (b->status == MICA_OK) b->status = mica_eval(b->layer->s, &mask, 1);
            mica__liquid_matrix(b, name, c.hidden, c.width, b->status == MICA_OK ? mica_data_f32(mask) : NULL, true);
        }
        declare_cell(b, &c);
    }
}

static void wired_weights(liquid_layer *l)
{
    char prefix[40];
    mica_scope *s = l->s;
    for (int64_t i = 0; i < wired_layers(l->wiring); i++) {
        const cfc_shape c = wired_layer(l, i, prefix);
        mica_array **kept = l->kept + WIRED_KEPT * i;
        mica_array *mask = mica_cast(s, wired_mask(l, i), mica_array_dtype(head_part(&c, "ff1", "weight")));
        mica_array *both = all_heads(&c, "weight", mask);
        kept[WIRED_INPUT] = mica__liquid_step_weight(l, mica__liquid_columns(s, both, 0, c.inputs));
        kept[WIRED_STATE] = mica__liquid_step_weight(l, mica__liquid_columns(s, both, c.inputs, c.hidden));
        kept[WIRED_BIAS] = all_heads(&c, "bias", NULL);
    }
}

/* Only the first layer reads x. */
static void wired_project(liquid_layer *l, mica_array *x)
{
    l->x[0] = mica_add(l->s, mica__liquid_step_product(l, x, l->kept[WIRED_INPUT]), l->kept[WIRED_BIAS]);
    l->n_x = 1;
}

static mica_array *wired_step(const liquid_layer *l, mica_array *state, mica_array *const *x, mica_array *span)
{
    char prefix[40];
    mica_scope *s = l->s;
    mica_array *next[WIRED_MOST], *in = x[0];
    const int64_t layers = wired_layers(l->wiring);
    for (int64_t i = 0, at = 0; i < layers; i++) {
        const cfc_shape c = wired_layer(l, i, prefix);
        mica_array *const *kept = l->kept + WIRED_KEPT * i;
        mica_array *z = mica__liquid_step_product(l, mica__liquid_columns(s, state, at, c.hidden), kept[WIRED_STATE]);
        z = mica_add(s, z, in);
        next[i] = cfc_mix(&c, z, span);
        at += c.hidden;
        if (i + 1 == layers) break;
        mica_array *const *above = l->kept + WIRED_KEPT * (i + 1);
        in = mica_add(s, mica__liquid_step_product(l, next[i], above[WIRED_INPUT]), above[WIRED_BIAS]);
    }
    return layers == 1 ? next[0] : mica_concat(s, next, (size_t)layers, -1);
}

static mica_array *wired_output(const liquid_layer *l, mica_array *states)
{
    const int64_t n = wired_outputs(l->net), all = wired_state_size(l->net);
    return mica__liquid_columns(l->s, states, all - n, n);
}

const liquid_cell mica__wired_cfc_cell = {.name = "cfc",
                                          .state_size = wired_state_size,
                                          .outputs = wired_outputs,
                                          .declare = wired_declare,
                                          .weights = wired_weights,
                                          .project = wired_project,
                                          .step = wired_step,
                                          .output = wired_output};
