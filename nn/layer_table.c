/* Layers as data. One table row per layer kind states which parameters the kind has and how it computes its output. A
 * sequence is a list of layers. */
#include <math.h>
#include <stdio.h>

#include "forward.h"

/* ---------------------------------------------------------- default settings */

static mica_layer plain_layer(mica_layer_kind kind, int64_t in, int64_t out)
{
    mica_layer l = {.struct_size = sizeof l, .kind = kind, .in = in, .out = out, .layers = 1};
    l.init = MICA_INIT_KAIMING_UNIFORM;
    l.gain = 1 / sqrt(3.0); /* bound: 1 / sqrt(in) */
    l.eps = 1e-5;
    l.momentum = 0.1;
    mica_conv_options_init(&l.conv);
    mica_pool_options_init(&l.pool);
    mica_heads_options_init(&l.heads);
    return l;
}

mica_layer mica_linear_layer(int64_t in, int64_t out) { return plain_layer(MICA_LAYER_LINEAR, in, out); }

mica_layer mica_bit_linear_layer(int64_t in, int64_t out) { return plain_layer(MICA_LAYER_BIT_LINEAR, in, out); }

mica_layer mica_embedding_layer(int64_t rows, int64_t cols)
{
    mica_layer l = plain_layer(MICA_LAYER_EMBEDDING, rows, cols);
    l.init = MICA_INIT_NORMAL;
    l.gain = 1;
    return l;
}

static mica_layer conv_layer(mica_layer_kind kind, int64_t in, int64_t out, int64_t kernel)
{
    mica_layer l = plain_layer(kind, in, out);
    l.kernel[0] = l.kernel[1] = kernel;
    return l;
}

mica_layer mica_conv1d_layer(int64_t in, int64_t out, int64_t kernel)
{
    return conv_layer(MICA_LAYER_CONV1D, in, out, kernel);
}

mica_layer mica_conv2d_layer(int64_t in, int64_t out, int64_t kernel)
{
    return conv_layer(MICA_LAYER_CONV2D, in, out, kernel);
}

mica_layer mica_norm_layer(mica_layer_kind kind, int64_t size) { return plain_layer(kind, size, size); }

mica_layer mica_dropout_layer(double p)
{
    mica_layer l = plain_layer(MICA_LAYER_DROPOUT, 0, 0);
    l.p = p;
    return l;
}

mica_layer mica_attention_layer(int64_t size, int64_t heads, bool causal)
{
    mica_layer l = plain_layer(MICA_LAYER_ATTENTION, size, size);
    l.init = MICA_INIT_XAVIER_UNIFORM;
    l.gain = 1;
    l.heads.heads = heads;
    l.heads.causal = causal;
    return l;
}

/* Initial values are uniform within 1 / sqrt(units), independent of the number of inputs. */
mica_layer mica_recurrent_layer(mica_layer_kind kind, int64_t in, int64_t units)
{
    mica_layer l = plain_layer(kind, in, units);
    l.init = MICA_INIT_UNIFORM;
    l.gain = units > 0 ? 1 / sqrt((double)units) : 1;
    return l;
}

mica_layer mica_activation_layer(mica_activation activation)
{
    mica_layer l = plain_layer(MICA_LAYER_ACTIVATION, 0, 0);
    l.activation = activation;
    return l;
}

mica_layer mica_flatten_layer(void) { return plain_layer(MICA_LAYER_FLATTEN, 0, 0); }

mica_layer mica_pool_layer(mica_layer_kind kind, int64_t kernel)
{
    mica_layer l = plain_layer(kind, 0, 0);
    l.pool.kernel[0] = l.pool.kernel[1] = kernel;
    return l;
}

/* --------------------------------------------------------------- parameters */

typedef struct layer_making {
    mica_scope *s;
    mica_params *params;
    const mica_layer *layer;
    uint64_t seed;
    const char *name;
    mica_status status; /* the first failure; later calls do nothing */
} layer_making;

static void make_part(layer_making *m, mica_init how, double scale, const char *part, int ndim, const int64_t *shape)
{
    if (m->status == MICA_OK)
        m->status = mica_params_make(m->s, m->params, how, scale, ndim, shape, m->seed, "%s.%s", m->name, part);
}

static void make_matrix(layer_making *m, const char *part, int64_t rows, int64_t cols)
{
    make_part(m, m->layer->init, m->layer->gain, part, 2, (const int64_t[]){rows, cols});
}

static void make_vector(layer_making *m, mica_init how, double scale, const char *part, int64_t size)
{
    make_part(m, how, scale, part, 1, &size);
}

static void linear_params(layer_making *m)
{
    const mica_layer *l = m->layer;
    make_matrix(m, "weight", l->out, l->in);
    if (!l->no_bias && l->kind == MICA_LAYER_LINEAR)
        make_vector(m, MICA_INIT_UNIFORM, 1 / sqrt((double)l->in), "bias", l->out);
}

static void embedding_params(layer_making *m) { make_matrix(m, "weight", m->layer->in, m->layer->out); }

static void conv_params(layer_making *m)
{
    const mica_layer *l = m->layer;
    const int64_t groups = l->conv.groups > 0 ? l->conv.groups : 1;
    const int64_t shape[] = {l->out, l->in / groups, l->kernel[0], l->kernel[1]};
    const int ndim = l->kind == MICA_LAYER_CONV1D ? 3 : 4;
    if (l->in % groups != 0 || l->out % groups != 0 || l->kernel[0] < 1 || l->kernel[1] < 1) {
        m->status = mica_fail(
            MICA_ERR_ARGUMENT,
            "layer '%s': %lld and %lld channels do not divide into %lld groups, or kernel %lld x %lld is empty",
            m->name, (long long)l->in, (long long)l->out, (long long)groups, (long long)l->kernel[0],
            (long long)l->kernel[1]);
        return;
    }
    double in = 1;
    for (int d = 1; d < ndim; d++) in *= (double)shape[d];
    make_part(m, l->init, l->gain, "weight", ndim, shape);
    if (!l->no_bias) make_vector(m, MICA_INIT_UNIFORM, 1 / sqrt(in), "bias", l->out);
}

static void norm_params(layer_making *m)
{
    const mica_layer *l = m->layer;
    make_vector(m, MICA_INIT_ONES, 1, "weight", l->out);
    if (!l->no_bias && l->kind != MICA_LAYER_RMS_NORM) make_vector(m, MICA_INIT_ZEROS, 1, "bias", l->out);
    static const char *const statistics[] = {"running_mean", "running_var"};
    for (int i = 0; i < 2 && l->kind == MICA_LAYER_BATCH_NORM && m->status == MICA_OK; i++)
        m->status =
            mica_params_make_buffer(m->s, m->params, i, 1, (const int64_t[]){l->out}, "%s.%s", m->name, statistics[i]);
}

static const char *const projections[] = {"q_proj", "k_proj", "v_proj", "out_proj"};

static void attention_params(layer_making *m)
{
    const mica_layer *l = m->layer;
    const int64_t heads = l->heads.heads, shared = l->heads.kv_heads ? l->heads.kv_heads : heads;
    if (heads < 1 || shared < 1 || heads % shared != 0 || l->in % heads != 0) {
        m->status = mica_fail(MICA_ERR_ARGUMENT,
                              "layer '%s': size %lld does not divide into %lld heads, or these into %lld kv_heads",
                              m->name, (long long)l->in, (long long)heads, (long long)shared);
        return;
    }
    for (int i = 0; i < 4; i++) {
        const int64_t rows = i == 1 || i == 2 ? l->in / heads * shared : l->in;
        char part[32];
        snprintf(part, sizeof part, "%s.weight", projections[i]);
        make_matrix(m, part, rows, l->in);
        snprintf(part, sizeof part, "%s.bias", projections[i]);
        if (!l->no_bias) make_vector(m, MICA_INIT_ZEROS, 1, part, rows);
    }
}

static const char *direction_of(int64_t direction) { return direction ? "_reverse" : ""; }

static void recurrent_params(layer_making *m)
{
    const mica_layer *l = m->layer;
    const int64_t rows = (l->kind == MICA_LAYER_LSTM ? 4 : 3) * l->out, ways = l->bidirectional ? 2 : 1;
    for (int64_t i = 0; i < l->layers * ways; i++) {
        const int64_t in = i < ways ? l->in : ways * l->out;
        char part[64];
        for (int k = 0; k < (l->no_bias ? 2 : 4); k++) {
            static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
            snprintf(part, sizeof part, "%s_l%lld%s", names[k], (long long)(i / ways), direction_of(i % ways));
            if (k < 2) make_matrix(m, part, rows, k ? l->out : in);
            else make_vector(m, l->init, l->gain, part, rows);
        }
    }
}

/* --------------------------------------------------------------- forward pass */

typedef struct layer_use {
    mica_forward *f;
    mica_scope *s;
    const mica_layer *layer;
    const char *name;
} layer_use;

static mica_array *part_of(const layer_use *u, const char *part) { return mica_param(u->f, "%s.%s", u->name, part); }

static mica_array *bias_of(const layer_use *u) { return u->layer->no_bias ? NULL : part_of(u, "bias"); }

static mica_array *use_linear(const layer_use *u, mica_array *x)
{
    mica_array *w = part_of(u, "weight");
    return mica_linear(u->s, x, w, bias_of(u));
}

static mica_array *use_bit_linear(const layer_use *u, mica_array *x)
{
    return mica_bit_linear(u->s, x, part_of(u, "weight"));
}

static mica_array *use_embedding(const layer_use *u, mica_array *x)
{
    return mica_embedding(u->s, part_of(u, "weight"), x);
}

static mica_array *use_conv(const layer_use *u, mica_array *x)
{
    const bool line = u->layer->kind == MICA_LAYER_CONV1D;
    mica_array *w = part_of(u, "weight"), *bias = bias_of(u);
    x = mica__as_weight(u->s, x, w);
    mica_array *y = line ? mica_conv1d(u->s, x, w, &u->layer->conv) : mica_conv2d(u->s, x, w, &u->layer->conv);
    if (!bias) return y;
    bias = mica_reshape(u->s, mica__as_weight(u->s, bias, w), line ? 3 : 4, (const int64_t[]){1, -1, 1, 1});
    return mica_add(u->s, y, bias);
}

static mica_array *use_layer_norm(const layer_use *u, mica_array *x)
{
    mica_array *w = part_of(u, "weight");
    return mica_layer_norm(u->s, x, w, bias_of(u), u->layer->eps);
}

static mica_array *use_rms_norm(const layer_use *u, mica_array *x)
{
    return mica_rms_norm(u->s, x, part_of(u, "weight"), u->layer->eps);
}

/* Training writes new running statistics to the parameter set of the pass. */
static mica_array *use_batch_norm(const layer_use *u, mica_array *x)
{
    mica_batch_norm_options o;
    mica_batch_norm_options_init(&o);
    o.eps = u->layer->eps, o.momentum = u->layer->momentum, o.training = u->f->training;
    mica_array *mean = part_of(u, "running_mean"), *var = part_of(u, "running_var");
    mica_array *y = mica_batch_norm(u->s, x, part_of(u, "weight"), bias_of(u), &mean, &var, &o);
    mica_array *const now[] = {mean, var};
    for (int i = 0; i < 2 && y && o.training; i++) {
        char name[NN_NAME];
        snprintf(name, sizeof name, "%s.%s", u->name, i ? "running_var" : "running_mean");
        const mica_status status = mica_params_set(u->f->params, (size_t)mica_params_index(u->f->params, name), now[i]);
        if (status != MICA_OK) return mica_scope_fail(u->s, status, "%s", mica_last_error());
    }
    return y;
}

static mica_array *use_dropout(const layer_use *u, mica_array *x) { return mica_drop_some(u->f, x, u->layer->p); }

static mica_array *projected(const layer_use *u, mica_array *x, int i)
{
    mica_array *w = mica_param(u->f, "%s.%s.weight", u->name, projections[i]);
    return mica_linear(u->s, x, w, u->layer->no_bias ? NULL : mica_param(u->f, "%s.%s.bias", u->name, projections[i]));
}

static mica_array *use_attention(const layer_use *u, mica_array *x)
{
    mica_array *q = projected(u, x, 0), *k = projected(u, x, 1), *v = projected(u, x, 2);
    return projected(u, mica_multi_head(u->s, q, k, v, NULL, &u->layer->heads), 3);
}

static mica_array *recurrent_part(const layer_use *u, const char *part, int64_t i, int64_t way)
{
    return mica_param(u->f, "%s.%s_l%lld%s", u->name, part, (long long)i, direction_of(way));
}

/* One direction of layer i; x and the result are (time, batch, ...). */
static mica_array *one_direction(const layer_use *u, mica_array *x, int64_t i, int64_t way, mica_array **last)
{
    mica_recurrent_weights w = {.struct_size = sizeof w,
                                .w_in = recurrent_part(u, "weight_ih", i, way),
                                .w_state = recurrent_part(u, "weight_hh", i, way)};
    if (!u->layer->no_bias) {
        w.b_in = recurrent_part(u, "bias_ih", i, way);
        w.b_state = recurrent_part(u, "bias_hh", i, way);
    }
    mica_array *y = NULL, *c = NULL;
    *last = NULL;
    const mica_status status = u->layer->kind == MICA_LAYER_LSTM ? mica_lstm(u->s, x, &w, way, last, &c, &y)
                                                                 : mica_gru(u->s, x, &w, way, last, &y);
    return status == MICA_OK ? y : NULL;
}

static mica_array *use_recurrent(const layer_use *u, mica_array *x)
{
    static const int swapped[] = {1, 0, 2};
    if (x && mica_array_ndim(x) != 3)
        return mica_scope_fail(u->s, MICA_ERR_SHAPE, "layer '%s': x has %d axes, not (batch, time, in)", u->name,
                               mica_array_ndim(x));
    mica_array *last[2] = {NULL, NULL};
    x = mica_permute(u->s, x, swapped);
    for (int64_t i = 0; i < u->layer->layers; i++) {
        mica_array *y[2] = {one_direction(u, x, i, 0, &last[0]), NULL};
        if (u->layer->bidirectional) y[1] = one_direction(u, x, i, 1, &last[1]);
        x = u->layer->bidirectional ? mica_concat(u->s, y, 2, -1) : y[0];
    }
    if (!u->layer->last_step) return mica_permute(u->s, x, swapped);
    return u->layer->bidirectional ? mica_concat(u->s, last, 2, -1) : last[0];
}

static mica_array *use_activation(const layer_use *u, mica_array *x)
{
    return mica_activate(u->s, u->layer->activation, x);
}

static mica_array *use_flatten(const layer_use *u, mica_array *x)
{
    const int64_t rows = x && mica_array_ndim(x) > 0 ? mica_array_shape(x)[0] : 1;
    return mica_reshape(u->s, x, 2, (const int64_t[]){rows, -1});
}

static mica_array *use_max1(const layer_use *u, mica_array *x) { return mica_max_pool1d(u->s, x, &u->layer->pool); }
static mica_array *use_max2(const layer_use *u, mica_array *x) { return mica_max_pool2d(u->s, x, &u->layer->pool); }
static mica_array *use_avg1(const layer_use *u, mica_array *x) { return mica_avg_pool1d(u->s, x, &u->layer->pool); }
static mica_array *use_avg2(const layer_use *u, mica_array *x) { return mica_avg_pool2d(u->s, x, &u->layer->pool); }

/* --------------------------------------------------------------------- table */

static const struct {
    void (*params)(layer_making *m); /* NULL: the kind has no parameters */
    mica_array *(*use)(const layer_use *u, mica_array *x);
} layer_kinds[] = {
    [MICA_LAYER_LINEAR] = {linear_params, use_linear},
    [MICA_LAYER_BIT_LINEAR] = {linear_params, use_bit_linear},
    [MICA_LAYER_EMBEDDING] = {embedding_params, use_embedding},
    [MICA_LAYER_CONV1D] = {conv_params, use_conv},
    [MICA_LAYER_CONV2D] = {conv_params, use_conv},
    [MICA_LAYER_LAYER_NORM] = {norm_params, use_layer_norm},
    [MICA_LAYER_RMS_NORM] = {norm_params, use_rms_norm},
    [MICA_LAYER_BATCH_NORM] = {norm_params, use_batch_norm},
    [MICA_LAYER_DROPOUT] = {NULL, use_dropout},
    [MICA_LAYER_ATTENTION] = {attention_params, use_attention},
    [MICA_LAYER_LSTM] = {recurrent_params, use_recurrent},
    [MICA_LAYER_GRU] = {recurrent_params, use_recurrent},
    [MICA_LAYER_ACTIVATION] = {NULL, use_activation},
    [MICA_LAYER_FLATTEN] = {NULL, use_flatten},
    [MICA_LAYER_MAX_POOL1D] = {NULL, use_max1},
    [MICA_LAYER_MAX_POOL2D] = {NULL, use_max2},
    [MICA_LAYER_AVG_POOL1D] = {NULL, use_avg1},
    [MICA_LAYER_AVG_POOL2D] = {NULL, use_avg2},
};
enum { N_LAYER_KINDS = sizeof layer_kinds / sizeof layer_kinds[0] };

/* Reads the caller's layer by the rule of mica.h ("structs") and validates it. */
static mica_status read_layer(const mica_layer *given, const char *name, mica_layer *l)
{
    *l = plain_layer(MICA_LAYER_LINEAR, 0, 0);
    l->kind = (mica_layer_kind)-1;
    const mica_status status = mica_struct_read("layer: mica_layer", l, sizeof *l, given);
    if (status != MICA_OK) return status;
    if (!given || (unsigned)l->kind >= N_LAYER_KINDS)
        return mica_fail(MICA_ERR_ARGUMENT, "layer '%s': layer is NULL, or its kind %d is not a mica_layer_kind", name,
                         given ? (int)l->kind : -1);
    if (layer_kinds[l->kind].params && (l->in < 1 || l->out < 1 || l->layers < 1))
        return mica_fail(MICA_ERR_ARGUMENT, "layer '%s': %lld in, %lld out, %lld layers: each must be above 0", name,
                         (long long)l->in, (long long)l->out, (long long)l->layers);
    return MICA_OK;
}

static mica_status params_of_layer(mica_scope *s, mica_params *params, const mica_layer *layer, uint64_t seed,
                                   const char *name)
{
    mica_layer full;
    layer_making m = {.s = s, .params = params, .layer = &full, .seed = seed, .name = name};
    m.status = read_layer(layer, name, &full);
    if (m.status == MICA_OK && layer_kinds[full.kind].params) layer_kinds[full.kind].params(&m);
    return m.status;
}

static mica_array *apply_layer(mica_forward *f, const mica_layer *layer, mica_array *x, const char *name)
{
    if (!f) return mica_scope_fail(NULL, MICA_ERR_ARGUMENT, "layer '%s': no forward pass", name);
    mica_layer full;
    const mica_status status = read_layer(layer, name, &full);
    if (status != MICA_OK) return mica_scope_fail(f->s, status, "%s", mica_last_error());
    const layer_use u = {f, f->s, &full, name};
    return x ? mica_watch(f, layer_kinds[full.kind].use(&u, x), "%s", name) : NULL;
}

mica_status mica_layer_params(mica_scope *s, mica_params *params, const mica_layer *layer, uint64_t seed,
                              const char *format, ...)
{
    char name[NN_NAME];
    va_list args;
    va_start(args, format);
    const bool fits = mica__nn_name(name, format, args);
    va_end(args);
    if (!fits) return mica_fail(MICA_ERR_ARGUMENT, "layer_params: no name, or it is too long: '%s'", name);
    return params_of_layer(s, params, layer, seed, name);
}

mica_array *mica_layer_apply(mica_forward *f, const mica_layer *layer, mica_array *x, const char *format, ...)
{
    char name[NN_NAME];
    va_list args;
    va_start(args, format);
    const bool fits = mica__nn_name(name, format, args);
    va_end(args);
    if (!fits)
        return mica_scope_fail(f ? f->s : NULL, MICA_ERR_ARGUMENT, "layer_apply: no name, or it is too long: '%s'",
                               name);
    return apply_layer(f, layer, x, name);
}

/* ------------------------------------------------------------------ sequences */

/* Returns layer i of a list whose elements have the caller's struct_size. If struct_size was not set, the list is read
 * with our element size, and read_layer reports the error. */
static const mica_layer *layer_at(const mica_layer *layers, size_t i)
{
    return (const mica_layer *)(const void *)((const char *)layers +
                                              i * (layers->struct_size ? layers->struct_size : sizeof *layers));
}

/* Writes the name of layer i: prefix, a dot, then its name or number. */
static mica_status name_in_sequence(const mica_layer *layer, size_t i, const char *prefix, char name[NN_NAME])
{
    const bool alone = !prefix || !*prefix;
    const int n = layer->name ? snprintf(name, NN_NAME, "%s%s%s", alone ? "" : prefix, alone ? "" : ".", layer->name)
                              : snprintf(name, NN_NAME, "%s%s%zu", alone ? "" : prefix, alone ? "" : ".", i);
    return n < NN_NAME ? MICA_OK : mica_fail(MICA_ERR_ARGUMENT, "sequential: the name '%s...' is too long", name);
}

mica_status mica_sequential_params(mica_scope *s, mica_params *params, const mica_layer *layers, size_t n,
                                   uint64_t seed, const char *prefix)
{
    char name[NN_NAME];
    mica_status status = params && (layers || n == 0)
                             ? MICA_OK
                             : mica_fail(MICA_ERR_ARGUMENT, "sequential: no set of parameters, or no layers");
    for (size_t i = 0; i < n && status == MICA_OK; i++) {
        status = name_in_sequence(layer_at(layers, i), i, prefix, name);
        if (status == MICA_OK) status = params_of_layer(s, params, layer_at(layers, i), seed, name);
    }
    return status;
}

mica_array *mica_sequential(mica_forward *f, const mica_layer *layers, size_t n, mica_array *x, const char *prefix)
{
    char name[NN_NAME];
    if (!f || (!layers && n > 0))
        return mica_scope_fail(f ? f->s : NULL, MICA_ERR_ARGUMENT, "sequential: no forward pass, or no layers");
    for (size_t i = 0; i < n && x; i++) {
        const mica_status status = name_in_sequence(layer_at(layers, i), i, prefix, name);
        if (status != MICA_OK) return mica_scope_fail(f->s, status, "%s", mica_last_error());
        x = apply_layer(f, layer_at(layers, i), x, name);
    }
    return x;
}

size_t mica_mlp(const int64_t *sizes, size_t n_sizes, mica_activation activation, double p, mica_layer *out,
                size_t room)
{
    size_t n = 0;
    for (size_t i = 0; sizes && i + 1 < n_sizes; i++) {
        const bool between = i + 2 < n_sizes;
        const mica_layer three[] = {mica_linear_layer(sizes[i], sizes[i + 1]), mica_activation_layer(activation),
                                    mica_dropout_layer(p)};
        for (size_t k = 0; k < (between ? p > 0 ? 3u : 2u : 1u); k++, n++)
            if (n < room && out) out[n] = three[k];
    }
    return n;
}
