/* Writes the packed model: a GGUF file of BitNet's architecture. BitLinear matrices are stored as codes and one scale,
 * exactly the values that the forward pass multiplied with. */
#include <stdlib.h>
#include <string.h>

#include "decoder_net.h"

#define ARCH "bitnet-b1.58"

void mica_decoder_export_init(mica_decoder_export *options)
{
    if (options)
        *options = (mica_decoder_export){.struct_size = sizeof *options, .ternary = "I2_S", .embedding = "F16"};
}

typedef struct model_writing {
    mica_scope *s;
    const mica_params *params;
    const mica_decoder_export *options;
    mica_writer *w;
    void **blocks; /* packed tensors, until the file is written */
} model_writing;

static const char *format_for(const model_writing *m, size_t i)
{
    const char *name = mica_params_name(m->params, i);
    if (mica_decoder_is_ternary(name)) return m->options->ternary;
    return strcmp(name, "token_embd.weight") == 0 ? m->options->embedding : "F32";
}

/* Returns the values to pack: the parameter itself, or its codes times their scale. */
static mica_status rounded_values(const model_writing *m, size_t i, mica_array **values)
{
    mica_array *x = mica_params_at(m->params, i), *scale;
    if (mica_decoder_is_ternary(mica_params_name(m->params, i))) {
        x = mica_ternary_codes(m->s, x, &scale);
        x = mica_mul(m->s, x, scale);
    }
    *values = mica_contiguous(m->s, x);
    return mica_eval(m->s, values, 1);
}

static mica_status pack_param(model_writing *m, size_t i)
{
    mica_array *values;
    mica_status status = rounded_values(m, i, &values);
    if (status != MICA_OK) return status;
    const char *name = mica_params_name(m->params, i), *format = format_for(m, i);
    const int ndim = mica_array_ndim(values);
    const int64_t *shape = mica_array_shape(values), rows = ndim > 1 ? shape[0] : 1, cols = shape[ndim - 1];
    const size_t nbytes = mica_quant_nbytes(format, rows, cols);
    if (nbytes == 0)
        return mica_fail(MICA_ERR_ARGUMENT, "decoder_write: '%s' does not fit %s: %s", name, format, mica_last_error());
    m->blocks[i] = malloc(nbytes);
    if (!m->blocks[i]) return mica_fail(MICA_ERR_MEMORY, "out of memory: '%s' as %s", name, format);
    status = mica_quant_pack(format, rows, cols, mica_data_f32(values), m->blocks[i], nbytes);
    if (status == MICA_OK) status = mica_writer_tensor(m->w, name, format, ndim, shape, m->blocks[i]);
    return status;
}

/* Writes llama.cpp's number of the type that most tensors have, if there is one. */
static void write_file_type(mica_writer *w, const char *format)
{
    mica_format_info f = {.struct_size = sizeof f};
    if (mica_format_find(format, &f) && f.gguf_file_type >= 0)
        (void)mica_writer_i64(w, "general.file_type", MICA_U32, f.gguf_file_type);
}

/* The writer keeps the first failure and returns it at the end. */
static void write_shape(mica_writer *w, const mica_decoder_shape *shape, const mica_decoder_export *options)
{
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        {ARCH ".vocab_size", shape->vocab},           {ARCH ".context_length", shape->context},
        {ARCH ".embedding_length", shape->dim},       {ARCH ".block_count", shape->layers},
        {ARCH ".feed_forward_length", shape->ffn},    {ARCH ".rope.dimension_count", shape->dim / shape->heads},
        {ARCH ".attention.head_count", shape->heads}, {ARCH ".attention.head_count_kv", shape->kv_heads}};
    (void)mica_writer_string(w, "general.architecture", ARCH, strlen(ARCH));
    if (options->name) (void)mica_writer_string(w, "general.name", options->name, strlen(options->name));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        (void)mica_writer_i64(w, sizes[i].key, MICA_U32, sizes[i].value);
    write_file_type(w, options->ternary);
    (void)mica_writer_f64(w, ARCH ".attention.layer_norm_rms_epsilon", MICA_F32, shape->norm_eps);
    (void)mica_writer_f64(w, ARCH ".rope.freq_base", MICA_F32, shape->rope_base);
}

static mica_status write_model(model_writing *m, const mica_decoder_shape *shape)
{
    mica_status status = MICA_OK;
    write_shape(m->w, shape, m->options);
    if (m->options->more) status = m->options->more(m->w, m->options->user);
    for (size_t i = 0; i < mica_params_count(m->params) && status == MICA_OK; i++) status = pack_param(m, i);
    return status;
}

mica_status mica_decoder_write(mica_scope *s, const mica_decoder_shape *shape, const mica_params *params,
                               const char *path, const mica_decoder_export *options)
{
    mica_decoder_export o;
    mica_decoder_shape full;
    mica_decoder_export_init(&o);
    model_writing m = {.s = s, .params = params, .options = &o};
    mica_status status = mica_struct_read("decoder_write: mica_decoder_export", &o, sizeof o, options);
    if (status == MICA_OK) status = mica__decoder_shape_read(shape, &full);
    if (status == MICA_OK) status = mica_writer_open(path, "gguf", &m.w);
    if (status != MICA_OK) return status;
    const size_t n = mica_params_count(params);
    m.blocks = calloc(n + 1, sizeof *m.blocks);
    status = m.blocks ? write_model(&m, &full) : mica_fail(MICA_ERR_MEMORY, "out of memory: %zu tensors", n);
    if (status == MICA_OK) status = mica_writer_finish(m.w, NULL, NULL);
    else mica_writer_abandon(m.w);
    for (size_t i = 0; i < n && m.blocks; i++) free(m.blocks[i]);
    free(m.blocks);
    return status;
}
