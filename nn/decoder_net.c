/* The decoder that is trained: the architecture of BitNet b1.58 2B4T at any size. It has
 * pre-norms, sub-norms, squared ReLU, grouped keys, NEOX rope, and one matrix for
 * embedding and output. decoder.h has the graph of its layers. The rows of all sequences
 * are joined in one matrix (batch * time, dim), so that each projection is one product. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decoder.h"
#include "decoder_net.h"

enum { NAME_ROOM = 64 };

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
        return mica_fail(MICA_ERR_ARGUMENT, "decoder: dim %lld does not divide into %lld heads of even size",
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

static bool has_tensor(decoder_tensor t)
{
    const unsigned part = mica__decoder_tensors[t].part;
    return part == 0 || part == DECODER_SUB_NORMS;
}

static decoder_sizes sizes_of(const mica_decoder_shape *shape)
{
    return (decoder_sizes){.dim = shape->dim,
                           .heads = shape->heads,
                           .kv_heads = shape->kv_heads,
                           .head_dim = shape->dim / shape->heads,
                           .ffn = shape->ffn};
}

typedef struct params_making {
    mica_scope *s;
    const mica_decoder_shape *shape;
    mica_params *params;
    uint64_t seed;
} params_making;

/* Adds a matrix with normal values of deviation 0.02, or a norm weight of ones (cols 0). Each is evaluated alone, so
 * that peak memory is that of the parameters. */
static mica_status make_param(params_making *m, const char *name, int64_t rows, int64_t cols)
{
    const int64_t shape[] = {rows, cols};
    return mica_params_make(m->s, m->params, cols ? MICA_INIT_NORMAL : MICA_INIT_ONES, 0.02, cols ? 2 : 1, shape,
                            m->seed, "%s", name);
}

static mica_status make_layer(params_making *m, int64_t layer)
{
    const decoder_sizes sizes = sizes_of(m->shape);
    mica_status status = MICA_OK;
    for (decoder_tensor t = 0; t < DECODER_TENSORS && status == MICA_OK; t++) {
        const decoder_tensor_info *info = &mica__decoder_tensors[t];
        char name[NAME_ROOM];
        if (!has_tensor(t)) continue;
        snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, info->gguf);
        status = make_param(m, name, mica__decoder_size(&sizes, info->rows), mica__decoder_size(&sizes, info->cols));
    }
    return status;
}

mica_status mica_decoder_params(mica_scope *s, const mica_decoder_shape *given, uint64_t seed, mica_params **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "decoder_params: out is NULL");
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
    for (decoder_tensor t = 0; part && t < DECODER_TENSORS; t++) {
        const char *matrix = mica__decoder_tensors[t].gguf;
        const size_t n = strlen(matrix);
        if (decoder_is_matrix(t) && strncmp(part + 1, matrix, n) == 0 && strcmp(part + 1 + n, ".weight") == 0)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- forward -- */

typedef struct decoder_pass {
    mica_forward *f;
    const mica_decoder_shape *shape;
    mica_heads_options heads;
    int64_t batch;
} decoder_pass;

static mica_array *weight_of(const decoder_pass *d, int64_t layer, decoder_tensor t)
{
    return mica_param(d->f, "blk.%lld.%s.weight", (long long)layer, mica__decoder_tensors[t].gguf);
}

static mica_array *train_norm_weight(void *user, int64_t layer, decoder_tensor t)
{
    return has_tensor(t) ? weight_of(user, layer, t) : NULL;
}

static mica_array *train_linear(void *user, int64_t layer, decoder_tensor t, mica_array *x)
{
    const decoder_pass *d = user;
    mica_array *w = weight_of(d, layer, t);
    return d->shape->ternary ? mica_bit_linear(d->f->s, x, w) : mica_linear(d->f->s, x, w, NULL);
}

static mica_array *train_watch(void *user, int64_t layer, decoder_tensor t, mica_array *x)
{
    return mica_watch(((decoder_pass *)user)->f, x, "blk.%lld.%s", (long long)layer, mica__decoder_tensors[t].gguf);
}

static mica_array *train_residual(void *user, mica_array *x)
{
    const decoder_pass *d = user;
    return mica_drop_some(d->f, x, d->shape->dropout);
}

/* The rows of all sequences as (batch, time, width). */
static mica_array *by_sequence(const decoder_pass *d, mica_array *rows)
{
    const int64_t width = rows ? mica_array_shape(rows)[1] : 1;
    return mica_reshape(d->f->s, rows, 3, (const int64_t[]){d->batch, -1, width});
}

static mica_array *train_attend(void *user, int64_t layer, mica_array *q, mica_array *k, mica_array *v)
{
    const decoder_pass *d = user;
    (void)layer;
    mica_array *a = mica_multi_head(d->f->s, by_sequence(d, q), by_sequence(d, k), by_sequence(d, v), NULL, &d->heads);
    return mica_reshape(d->f->s, a, 2, (const int64_t[]){-1, d->shape->dim});
}

/* The residual stream after the last layer. */
static mica_array *run_layers(decoder_pass *d, mica_array *h)
{
    const decoder_graph graph = {.s = d->f->s,
                                 .user = d,
                                 .layers = d->shape->layers,
                                 .activation = DECODER_RELU2,
                                 .norm_eps = d->shape->norm_eps,
                                 .norm_weight = train_norm_weight,
                                 .linear = train_linear,
                                 .attend = train_attend,
                                 .residual = train_residual,
                                 .watch = train_watch};
    return mica__decoder_layers(&graph, h);
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
    h = run_layers(&d, h);
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
