/* The network that is trained: BitNet b1.58 2B4T's, at any size. Pre-norms, norms
 * before the output projections of attention and feed-forward, relu squared, grouped
 * keys, NEOX rope, one matrix for embedding and output. Rows of all sequences are
 * joined in one matrix (batch time, dim), so that each projection is one product. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decoder_net.h"

enum { NAME_ROOM = 64 };

/* The parameters of one layer: what follows "blk.N.", and their sizes. */
typedef enum layer_size { SIZE_DIM, SIZE_Q, SIZE_KV, SIZE_FFN, SIZE_NONE } layer_size;

static const struct {
    const char *name;
    layer_size rows, cols; /* cols SIZE_NONE: a norm's weight */
} layer_params[] = {
    {"attn_norm", SIZE_DIM, SIZE_NONE},    {"attn_q", SIZE_Q, SIZE_DIM},         {"attn_k", SIZE_KV, SIZE_DIM},
    {"attn_v", SIZE_KV, SIZE_DIM},         {"attn_sub_norm", SIZE_Q, SIZE_NONE}, {"attn_output", SIZE_DIM, SIZE_Q},
    {"ffn_norm", SIZE_DIM, SIZE_NONE},     {"ffn_gate", SIZE_FFN, SIZE_DIM},     {"ffn_up", SIZE_FFN, SIZE_DIM},
    {"ffn_sub_norm", SIZE_FFN, SIZE_NONE}, {"ffn_down", SIZE_DIM, SIZE_FFN},
};
enum { N_LAYER_PARAMS = sizeof layer_params / sizeof layer_params[0] };

void mica_decoder_shape_init(mica_decoder_shape *shape)
{
    if (!shape) return;
    *shape = (mica_decoder_shape){.struct_size = sizeof *shape,
                                  .vocab = 256,
                                  .dim = 256,
                                  .layers = 4,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .ffn = 768,
                                  .context = 256,
                                  .rope_base = 10000,
                                  .norm_eps = 1e-5,
                                  .ternary = true};
}

static mica_status check_shape(const mica_decoder_shape *shape)
{
    const int64_t limit = (int64_t)1 << 24;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"vocab", shape->vocab},    {"dim", shape->dim},           {"layers", shape->layers},
                 {"heads", shape->heads},    {"kv_heads", shape->kv_heads}, {"ffn", shape->ffn},
                 {"context", shape->context}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < 1 || sizes[i].value > limit)
            return mica_fail(MICA_ERR_ARGUMENT, "decoder: %s is %lld, not 1 to %lld", sizes[i].name,
                             (long long)sizes[i].value, (long long)limit);
    if (shape->dim % shape->heads != 0 || shape->dim / shape->heads % 2 != 0)
        return mica_fail(MICA_ERR_ARGUMENT, "decoder: dim %lld is not cut into %lld heads of an even size",
                         (long long)shape->dim, (long long)shape->heads);
    if (shape->heads % shape->kv_heads != 0)
        return mica_fail(MICA_ERR_ARGUMENT, "decoder: %lld heads do not share %lld kv_heads evenly",
                         (long long)shape->heads, (long long)shape->kv_heads);
    if (!(shape->dropout >= 0 && shape->dropout < 1))
        return mica_fail(MICA_ERR_ARGUMENT, "decoder: dropout is %g, not 0 to below 1", shape->dropout);
    return MICA_OK;
}

mica_status mica__decoder_shape_read(const mica_decoder_shape *given, mica_decoder_shape *shape)
{
    if (!given) return mica_fail(MICA_ERR_ARGUMENT, "decoder: no shape");
    mica_decoder_shape_init(shape);
    const mica_status status = mica_struct_read("decoder: mica_decoder_shape", shape, sizeof *shape, given);
    return status == MICA_OK ? check_shape(shape) : status;
}

mica_status mica_decoder_shape_check(const mica_decoder_shape *shape)
{
    mica_decoder_shape full;
    return mica__decoder_shape_read(shape, &full);
}

/* ------------------------------------------------------------- parameters -- */

static int64_t size_of_part(const mica_decoder_shape *shape, layer_size which)
{
    const int64_t head = shape->dim / shape->heads;
    const int64_t sizes[] = {shape->dim, shape->heads * head, shape->kv_heads * head, shape->ffn, 0};
    return sizes[which];
}

typedef struct params_making {
    mica_scope *s;
    const mica_decoder_shape *shape;
    mica_params *params;
    uint64_t seed;
} params_making;

/* A matrix: normal, deviation 0.02; a norm's weight (cols 0): ones. Evaluated one by
 * one, so that no more memory is needed than the parameters themselves. */
static mica_status make_param(params_making *m, const char *name, int64_t rows, int64_t cols)
{
    const int64_t shape[] = {rows, cols};
    return mica_params_make(m->s, m->params, cols ? MICA_INIT_NORMAL : MICA_INIT_ONES, 0.02, cols ? 2 : 1, shape,
                            m->seed, "%s", name);
}

static mica_status make_layer(params_making *m, int64_t layer)
{
    mica_status status = MICA_OK;
    for (int i = 0; i < N_LAYER_PARAMS && status == MICA_OK; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, layer_params[i].name);
        status = make_param(m, name, size_of_part(m->shape, layer_params[i].rows),
                            size_of_part(m->shape, layer_params[i].cols));
    }
    return status;
}

mica_status mica_decoder_params(mica_scope *s, const mica_decoder_shape *given, uint64_t seed, mica_params **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "decoder_params: no place for the set (out is NULL)");
    *out = NULL;
    mica_decoder_shape all, *shape = &all;
    mica_status status = mica__decoder_shape_read(given, shape);
    params_making m = {s, shape, NULL, seed};
    if (status == MICA_OK) status = mica_params_new(&m.params);
    if (status == MICA_OK) status = make_param(&m, "token_embd.weight", shape->vocab, shape->dim);
    for (int64_t i = 0; status == MICA_OK && i < shape->layers; i++) status = make_layer(&m, i);
    if (status == MICA_OK) status = make_param(&m, "output_norm.weight", shape->dim, 0);
    if (status == MICA_OK) *out = m.params;
    else mica_params_free(m.params);
    return status;
}

bool mica_decoder_is_ternary(const char *name)
{
    if (!name || strncmp(name, "blk.", 4) != 0) return false;
    const char *part = strchr(name + 4, '.');
    for (int i = 0; part && i < N_LAYER_PARAMS; i++) {
        const size_t n = strlen(layer_params[i].name);
        if (layer_params[i].cols != SIZE_NONE && strncmp(part + 1, layer_params[i].name, n) == 0 &&
            strcmp(part + 1 + n, ".weight") == 0)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- forward -- */

typedef struct decoder_pass {
    mica_forward *f;
    const mica_decoder_shape *shape;
    mica_heads_options heads;
    int64_t batch, layer;
} decoder_pass;

static mica_array *weight_of(const decoder_pass *d, const char *name)
{
    return mica_param(d->f, "blk.%lld.%s.weight", (long long)d->layer, name);
}

static mica_array *seen_as(const decoder_pass *d, mica_array *y, const char *name)
{
    return mica_watch(d->f, y, "blk.%lld.%s", (long long)d->layer, name);
}

static mica_array *project(const decoder_pass *d, mica_array *x, const char *name)
{
    mica_array *w = weight_of(d, name);
    return seen_as(d, d->shape->ternary ? mica_bit_linear(d->f->s, x, w) : mica_linear(d->f->s, x, w, NULL), name);
}

static mica_array *norm_of(const decoder_pass *d, mica_array *x, const char *name)
{
    return seen_as(d, mica_rms_norm(d->f->s, x, weight_of(d, name), d->shape->norm_eps), name);
}

/* Rows of all sequences as (batch, time, ...). */
static mica_array *by_sequence(const decoder_pass *d, mica_array *rows)
{
    const int64_t width = rows ? mica_array_shape(rows)[1] : 1;
    return mica_reshape(d->f->s, rows, 3, (const int64_t[]){d->batch, -1, width});
}

static mica_array *attend(decoder_pass *d, mica_array *h)
{
    mica_scope *s = d->f->s;
    mica_array *x = norm_of(d, h, "attn_norm");
    mica_array *q = by_sequence(d, project(d, x, "attn_q")), *k = by_sequence(d, project(d, x, "attn_k"));
    mica_array *a = mica_multi_head(s, q, k, by_sequence(d, project(d, x, "attn_v")), NULL, &d->heads);
    a = mica_reshape(s, a, 2, (const int64_t[]){-1, d->shape->dim});
    a = project(d, norm_of(d, a, "attn_sub_norm"), "attn_output");
    return mica_add(s, h, mica_drop_some(d->f, a, d->shape->dropout));
}

static mica_array *feed_forward(decoder_pass *d, mica_array *h)
{
    mica_scope *s = d->f->s;
    mica_array *x = norm_of(d, h, "ffn_norm");
    mica_array *gate = project(d, x, "ffn_gate"), *up = project(d, x, "ffn_up");
    mica_array *m = norm_of(d, mica_mul(s, mica_relu2(s, gate), up), "ffn_sub_norm");
    return mica_add(s, h, mica_drop_some(d->f, project(d, m, "ffn_down"), d->shape->dropout));
}

mica_array *mica_decoder_logits(mica_forward *f, const mica_decoder_shape *given, mica_array *ids)
{
    if (!f) return mica_scope_fail(NULL, MICA_ERR_ARGUMENT, "decoder: no forward pass");
    mica_scope *s = f->s;
    if (!ids) return NULL;
    mica_decoder_shape all, *shape = &all;
    if (mica__decoder_shape_read(given, shape) != MICA_OK)
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "%s", mica_last_error());
    if (mica_array_ndim(ids) != 2)
        return mica_scope_fail(s, MICA_ERR_SHAPE, "decoder: ids have %d axes instead of batch and time",
                               mica_array_ndim(ids));
    decoder_pass d = {.f = f, .shape = shape, .batch = mica_array_shape(ids)[0]};
    mica_heads_options_init(&d.heads);
    d.heads.heads = shape->heads, d.heads.kv_heads = shape->kv_heads;
    d.heads.causal = true, d.heads.rope_base = shape->rope_base;
    mica_array *table = mica_param(f, "token_embd.weight");
    mica_array *rows = mica_embedding(s, table, mica_reshape(s, ids, 1, (const int64_t[]){-1}));
    mica_array *h = mica_drop_some(f, mica_watch(f, rows, "token_embd"), shape->dropout);
    for (; d.layer < shape->layers; d.layer++) h = feed_forward(&d, attend(&d, h));
    h = mica_watch(f, mica_rms_norm(s, h, mica_param(f, "output_norm.weight"), shape->norm_eps), "output_norm");
    return mica_linear(s, h, table, NULL);
}

mica_array *mica_decoder_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    if (!f || n < 2 || !data || !data[0] || !data[1])
        return mica_scope_fail(f ? f->s : NULL, MICA_ERR_ARGUMENT, "decoder_loss: %zu data instead of ids and labels",
                               n);
    mica_array *logits = mica_decoder_logits(f, user, data[0]);
    mica_array *labels = mica_reshape(f->s, data[1], 1, (const int64_t[]){-1});
    return mica_mean(f->s, mica_cross_entropy(f->s, logits, labels), NULL, 0, false);
}
