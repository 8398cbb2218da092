/* The tensors of a model: found by name, shapes checked, used in place in the mapped file. Only vectors that are not
 * f32 and weights that are made ternary here are copied. A tensor of the file that was not used is refused, because it
 * belongs to a computation that is not implemented. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lm.h"
#include "models/name_ends.h"

enum { NAME_MAX_LM = 192 };

typedef struct lm_loader {
    mica_lm *lm;
    const char *path;
    const char **used;          /* names of tensors that were used                             */
    size_t n_used, cap_used;
} lm_loader;

static mica_status fail_memory(const char *what, size_t nbytes)
{
    return mica_fail(MICA_ERR_MEMORY, "out of memory: %s needs %zu bytes", what, nbytes);
}

static mica_status mark_used(lm_loader *l, const mica_tensor_info *info)
{
    if (l->n_used == l->cap_used) {
        const size_t cap = l->cap_used ? 2 * l->cap_used : 512;
        const char **grown = realloc(l->used, cap * sizeof *grown);
        if (!grown) return fail_memory("a list of tensors", cap * sizeof *grown);
        l->used = grown;
        l->cap_used = cap;
    }
    l->used[l->n_used++] = info->name;
    l->lm->weight_bytes += info->nbytes;
    return MICA_OK;
}

static bool find_tensor(const lm_loader *l, const char *base, const char *end, mica_tensor_info *info)
{
    char name[NAME_MAX_LM];
    *info = (mica_tensor_info){.struct_size = sizeof *info};
    const int n = snprintf(name, sizeof name, "%s%s", base, end);
    return n > 0 && n < NAME_MAX_LM && mica_file_find(l->lm->file, name, info);
}

static mica_status wrong_shape(const lm_loader *l, const mica_tensor_info *info, int64_t rows, int64_t cols)
{
    char have[MICA_MAX_DIMS * 22] = "", want[64];
    size_t at = 0;
    for (int i = 0; i < info->ndim && at < sizeof have - 24; i++)
        at += (size_t)snprintf(have + at, sizeof have - at, "%s%" PRId64, i ? ", " : "", info->shape[i]);
    if (rows) snprintf(want, sizeof want, "%" PRId64 ", %" PRId64, rows, cols);
    else snprintf(want, sizeof want, "%" PRId64, cols);
    return mica_fail(MICA_ERR_FORMAT, "%s: tensor '%s' of %s at offset %" PRIu64 " has shape (%s), not (%s)", l->path,
                     info->name, info->format, info->offset, have, want);
}

/* Returns n elements of any shape as f32, in the scope of the model. */
static mica_status take_floats(lm_loader *l, const mica_tensor_info *info, int64_t n, mica_array **out)
{
    mica_lm *lm = l->lm;
    int64_t size = 1;
    for (int i = 0; i < info->ndim; i++) size *= info->shape[i];
    if (size != n || info->ndim > 2) return wrong_shape(l, info, 0, n);
    if (info->dtype != MICA_F32 && info->dtype != MICA_F16 && info->dtype != MICA_BF16)
        return mica_fail(MICA_ERR_UNSUPPORTED, "%s: tensor '%s' is %s, not floats", l->path, info->name, info->format);
    LM_TRY(mark_used(l, info));
    mica_array *raw = mica_file_array(lm->scope, lm->file, info->name);
    *out = mica_reshape(lm->scope, mica_cast(lm->scope, raw, MICA_F32), 1, &n);
    return mica_eval(lm->scope, out, 1);
}

/* --------------------------------------------------------------- vectors --- */

static mica_status take_vector(lm_loader *l, const char *base, const char *other, int64_t size, mica_array **out)
{
    mica_tensor_info info;
    if (!find_tensor(l, base, ".weight", &info) && !(other && find_tensor(l, other, ".weight", &info)))
        return mica_fail(MICA_ERR_FORMAT, "%s: there is no tensor '%s.weight', which %s needs", l->path, base,
                         l->lm->config.arch->name);
    l->lm->parameters += (uint64_t)size;
    l->lm->token_bytes += info.nbytes;
    return take_floats(l, &info, size, out);
}

/* -------------------------------------------------------------- matrices --- */

/* Four rows per byte, as Hugging Face packs them: row r of quarter i is in bits 2i. */
static void pack_ternary(const float *x, int64_t rows, int64_t cols, float scale, uint8_t *out)
{
    const int64_t quarter = (rows + 3) / 4;
    memset(out, 0, (size_t)(quarter * cols));
    for (int64_t r = 0; r < rows; r++) {
        uint8_t *line = out + r % quarter * cols;
        const int shift = (int)(2 * (r / quarter));
        for (int64_t c = 0; c < cols; c++) {
            const float code = fminf(fmaxf(rintf(x[r * cols + c] / scale), -1), 1);
            line[c] = (uint8_t)(line[c] | ((int)code + 1) << shift);
        }
    }
}

/* Makes training weights ternary as training does: scale = mean magnitude. */
static mica_status ternarise(lm_loader *l, const mica_tensor_info *info, lm_linear *out)
{
    mica_lm *lm = l->lm;
    mica_quant *w = &out->w;
    const int64_t n = w->rows * w->cols, packed = (w->rows + 3) / 4 * w->cols;
    mica_scope *s = mica_scope_begin(lm->engine);
    uint8_t *codes = malloc((size_t)packed);
    mica_status status = s && codes ? MICA_OK : fail_memory("a ternary matrix", (size_t)packed);
    mica_array *x = s ? mica_cast(s, mica_file_array(s, lm->file, info->name), MICA_F32) : NULL;
    if (status == MICA_OK) status = mica_eval(s, &x, 1);
    const float *values = status == MICA_OK ? mica_data_f32(x) : NULL;
    if (values) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += fabs((double)values[i]);
        const float scale = fmaxf((float)(sum / (double)n), 1e-5f);
        if (isfinite(scale)) {
            pack_ternary(values, w->rows, w->cols, scale, codes);
            w->format = "HF_TERNARY";
            w->data = mica_from_data(lm->scope, MICA_U8, 1, &packed, codes);
            w->scales = mica_from_data(lm->scope, MICA_F32, 1, &(int64_t){1}, &scale);
            status = mica_scope_status(lm->scope);
        } else {
            status = mica_fail(MICA_ERR_FORMAT, "%s: tensor '%s' has NaN values", l->path, info->name);
        }
    } else if (status == MICA_OK) status = MICA_ERR_INTERNAL;
    free(codes);
    mica_scope_end(s);
    return status;
}

/* MLX: codes of a few bits in 32-bit words, with scales and biases. A module may override the settings. */
static mica_status take_affine(lm_loader *l, const char *base, const mica_tensor_info *info, lm_linear *out)
{
    const lm_config *c = &l->lm->config;
    mica_quant *w = &out->w;
    mica_tensor_info scales, biases;
    char key[NAME_MAX_LM + 64];
    int64_t bits = c->affine_bits, group = c->affine_group;
    snprintf(key, sizeof key, "config.quantization.%s.bits", base);
    mica_file_i64(l->lm->file, key, &bits);
    snprintf(key, sizeof key, "config.quantization.%s.group_size", base);
    mica_file_i64(l->lm->file, key, &group);
    if (bits < 1 || bits > 8 || group < 1 || group > 4096 || info->ndim != 2 || info->shape[0] != w->rows ||
        info->shape[1] * 32 != w->cols * bits || w->cols % group)
        return wrong_shape(l, info, w->rows, w->cols * bits / 32);
    if (!find_tensor(l, base, ".scales", &scales) || !find_tensor(l, base, ".biases", &biases))
        return mica_fail(MICA_ERR_FORMAT, "%s: the .scales and .biases of tensor '%s' are missing", l->path,
                         info->name);
    const int64_t groups = w->cols / group;
    if (scales.ndim != 2 || scales.shape[0] != w->rows || scales.shape[1] != groups)
        return wrong_shape(l, &scales, w->rows, groups);
    if (biases.ndim != 2 || biases.shape[0] != w->rows || biases.shape[1] != groups)
        return wrong_shape(l, &biases, w->rows, groups);
    w->format = "AFFINE";
    w->bits = (int)bits;
    w->group = (int)group;
    w->data = mica_file_array(l->lm->scope, l->lm->file, info->name);
    w->scales = mica_file_array(l->lm->scope, l->lm->file, scales.name);
    w->biases = mica_file_array(l->lm->scope, l->lm->file, biases.name);
    LM_TRY(mark_used(l, info));
    LM_TRY(mark_used(l, &scales));
    return mark_used(l, &biases);
}

static mica_status take_hf_ternary(lm_loader *l, const char *base, const mica_tensor_info *info, lm_linear *out)
{
    mica_quant *w = &out->w;
    mica_tensor_info scale;
    if (info->ndim != 2 || info->shape[0] != (w->rows + 3) / 4 || info->shape[1] != w->cols)
        return wrong_shape(l, info, (w->rows + 3) / 4, w->cols);
    if (!find_tensor(l, base, ".weight_scale", &scale))
        return mica_fail(MICA_ERR_FORMAT, "%s: the .weight_scale of tensor '%s' is missing", l->path, info->name);
    w->format = "HF_TERNARY";
    w->scale_divides = l->lm->config.scale_divides;
    LM_TRY(take_floats(l, &scale, 1, &w->scales));
    LM_TRY(mark_used(l, info));
    w->data = mica_file_array(l->lm->scope, l->lm->file, info->name);
    return MICA_OK;
}

static bool is_float(const mica_tensor_info *info)
{
    return info->dtype == MICA_F32 || info->dtype == MICA_F16 || info->dtype == MICA_BF16;
}

/* Reads the scale that the product is multiplied with or divided by. */
static mica_status take_scale(lm_loader *l, const char *base, lm_linear *out)
{
    const lm_config *c = &l->lm->config;
    mica_tensor_info info;
    mica_array *scale;
    if (!find_tensor(l, base, ".scale", &info) && !find_tensor(l, base, ".weight_scale", &info)) return MICA_OK;
    LM_TRY(take_floats(l, &info, 1, &scale));
    if (c->arch->names == LM_HF && c->scale_divides) scale = mica_reciprocal(l->lm->scope, scale);
    out->scale = scale;
    return mica_eval(l->lm->scope, &out->scale, 1);
}

/* Activation rounding before this matrix: from the options, or as the model was trained. */
static mica_act rounding_before(const mica_lm *lm, const char *format)
{
    if (lm->act != MICA_LM_ACT_TRAINED) return (mica_act)lm->act;
    /* Ternary with one scale per matrix: only BitNet's training produces such weights. */
    mica_format_info f = {.struct_size = sizeof f};
    const bool trained = mica_format_find(format, &f) && f.ternary && f.one_scale;
    return lm->config.arch->ternary || trained ? MICA_ACT_TOKEN : MICA_ACT_NONE;
}

/* Builds a product that is never run, so that an unsupported format is refused now and by name. */
static mica_status check_matrix_format(lm_loader *l, const char *base, const lm_linear *w)
{
    mica_scope *s = mica_scope_begin(l->lm->engine);
    if (!s) return fail_memory("a scope", 0);
    mica_array *x = mica_zeros(s, MICA_F32, 2, (int64_t[]){1, w->w.cols});
    mica_array *y = mica_quant_matmul(s, x, &w->w, w->act);
    mica_status status = MICA_OK;
    if (!y) status = mica_fail(mica_scope_status(s), "%s: tensor '%s.weight': %s", l->path, base, mica_scope_error(s));
    mica_scope_end(s);
    return status;
}

/* in_layer: the matrix is a BitLinear if the architecture has them. */
static mica_status take_matrix(lm_loader *l, const char *base, int64_t rows, int64_t cols, bool in_layer,
                               lm_linear *out)
{
    mica_lm *lm = l->lm;
    const lm_config *c = &lm->config;
    mica_tensor_info info, bias;
    *out = (lm_linear){.w = {.struct_size = sizeof out->w, .rows = rows, .cols = cols}};
    if (!find_tensor(l, base, ".weight", &info))
        return mica_fail(MICA_ERR_FORMAT, "%s: there is no tensor '%s.weight', which %s needs", l->path, base,
                         c->arch->name);
    const uint64_t before = lm->weight_bytes;
    const bool hf = c->arch->names == LM_HF;
    if (hf && info.dtype == MICA_U8) LM_TRY(take_hf_ternary(l, base, &info, out));
    else if (hf && info.dtype == MICA_U32 && c->affine_bits) LM_TRY(take_affine(l, base, &info, out));
    else {
        if (info.ndim != 2 || info.shape[0] != rows || info.shape[1] != cols) return wrong_shape(l, &info, rows, cols);
        LM_TRY(mark_used(l, &info));
        if (c->online && in_layer && is_float(&info)) {
            LM_TRY(ternarise(l, &info, out));
        } else {
            out->w.format = info.format;
            out->w.data = mica_file_array(lm->scope, lm->file, info.name);
            if (in_layer) LM_TRY(take_scale(l, base, out));
        }
    }
    if (find_tensor(l, base, ".bias", &bias)) LM_TRY(take_floats(l, &bias, rows, &out->bias));
    out->act = in_layer ? rounding_before(lm, out->w.format) : MICA_ACT_NONE;
    lm->parameters += (uint64_t)rows * (uint64_t)cols + (out->bias ? (uint64_t)rows : 0);
    if (in_layer) lm->layer_parameters += (uint64_t)rows * (uint64_t)cols;
    if (in_layer) lm->token_bytes += lm->weight_bytes - before;
    if (mica_scope_status(lm->scope) != MICA_OK)
        return mica_fail(mica_scope_status(lm->scope), "%s: tensor '%s': %s", l->path, info.name,
                         mica_scope_error(lm->scope));
    return check_matrix_format(l, base, out);
}

/* ---------------------------------------------------------------- layers --- */

static void layer_name(const lm_loader *l, int64_t layer, const char *name, char out[NAME_MAX_LM])
{
    if (l->lm->config.arch->names == LM_GGUF) snprintf(out, NAME_MAX_LM, "blk.%" PRId64 ".%s", layer, name);
    else snprintf(out, NAME_MAX_LM, "model.layers.%" PRId64 ".%s", layer, name);
}

static mica_status take_layer_vector(lm_loader *l, int64_t layer, const decoder_tensor_info *info, int64_t size,
                                     mica_array **out)
{
    char base[NAME_MAX_LM], other[NAME_MAX_LM];
    const bool is_hf = l->lm->config.arch->names == LM_HF;
    layer_name(l, layer, is_hf ? info->hf : info->gguf, base);
    if (is_hf && info->hf_other) layer_name(l, layer, info->hf_other, other);
    return take_vector(l, base, is_hf && info->hf_other ? other : NULL, size, out);
}

static mica_status take_layer_tensor(lm_loader *l, int64_t layer, decoder_tensor t)
{
    const lm_config *c = &l->lm->config;
    const decoder_tensor_info *info = &mica__decoder_tensors[t];
    const decoder_sizes sizes = {c->hidden, c->heads, c->kv_heads, c->head_dim, c->ffn};
    const int64_t rows = mica__decoder_size(&sizes, info->rows), cols = mica__decoder_size(&sizes, info->cols);
    char base[NAME_MAX_LM];
    if (info->part && !(c->arch->parts & info->part)) return MICA_OK;
    if (!decoder_is_matrix(t)) return take_layer_vector(l, layer, info, rows, &l->lm->layers[layer].vector[t]);
    layer_name(l, layer, c->arch->names == LM_HF ? info->hf : info->gguf, base);
    return take_matrix(l, base, rows, cols, true, &l->lm->layers[layer].matrix[t]);
}

static mica_status take_layer(lm_loader *l, int64_t layer)
{
    for (decoder_tensor t = 0; t < DECODER_TENSORS; t++) LM_TRY(take_layer_tensor(l, layer, t));
    return MICA_OK;
}

/* ----------------------------------------------------------------- whole --- */

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static mica_status refuse_unused_tensors(lm_loader *l)
{
    const bool tied = l->lm->config.tied;
    if (l->n_used) qsort(l->used, l->n_used, sizeof *l->used, by_text);
    for (size_t i = 0;; i++) {
        mica_tensor_info info = {.struct_size = sizeof info};
        if (!mica_file_tensor(l->lm->file, i, &info)) return MICA_OK;
        if (bsearch(&info.name, l->used, l->n_used, sizeof *l->used, by_text)) continue;
        if (mica__name_ends(info.name, "rotary_emb.inv_freq")) continue;      /* can be computed from the sizes  */
        if (tied && strncmp(info.name, "lm_head.", 8) == 0) continue;   /* a second copy of the embeddings */
        return mica_fail(MICA_ERR_UNSUPPORTED,
                         "%s: tensor '%s' at offset %" PRIu64 " is not used by architecture %s in this version",
                         l->path, info.name, info.offset, l->lm->config.arch->name);
    }
}

static mica_status take_rope(lm_loader *l)
{
    mica_lm *lm = l->lm;
    const int64_t pairs = lm->config.rope_dims / 2;
    mica_tensor_info info;
    float *factors = malloc((size_t)pairs * sizeof *factors);
    if (!factors) return fail_memory("rope factors", (size_t)pairs * sizeof *factors);
    if (mica__lm_rope_factors(&lm->config, factors, &lm->rope_magnitude))
        lm->rope_factors = mica_from_data(lm->scope, MICA_F32, 1, &pairs, factors);
    free(factors);
    if (mica_scope_status(lm->scope) != MICA_OK) return mica_eval(lm->scope, NULL, 0);
    if (lm->config.arch->names != LM_GGUF || !find_tensor(l, "rope_freqs", ".weight", &info)) return MICA_OK;
    return take_floats(l, &info, pairs, &lm->rope_factors);
}

static mica_status take_all(lm_loader *l)
{
    mica_lm *lm = l->lm;
    const lm_config *c = &lm->config;
    const bool hf = c->arch->names == LM_HF;
    LM_TRY(take_matrix(l, hf ? "model.embed_tokens" : "token_embd", c->vocab, c->hidden, false, &lm->embed));
    const uint64_t embed_bytes = lm->weight_bytes;
    for (int64_t i = 0; i < c->layers; i++) LM_TRY(take_layer(l, i));
    LM_TRY(take_vector(l, hf ? "model.norm" : "output_norm", NULL, c->hidden, &lm->norm));
    LM_TRY(take_rope(l));
    const uint64_t before = lm->weight_bytes;
    lm->head = lm->embed;
    if (!c->tied) LM_TRY(take_matrix(l, hf ? "lm_head" : "output", c->vocab, c->hidden, false, &lm->head));
    lm->token_bytes += c->tied ? embed_bytes : lm->weight_bytes - before;
    return refuse_unused_tensors(l);
}

/* Names the format of most bytes in the layers, with the activation rounding before it. */
static void name_format(mica_lm *lm)
{
    const lm_linear *down = &lm->layers[lm->config.layers / 2].matrix[DECODER_DOWN];
    lm->format = down->w.format;
    lm->layer_act = down->act;
}

static mica_status check_budget(const mica_lm *lm, const char *path)
{
    uint64_t bytes = 0;
    mica_tensor_info info = {.struct_size = sizeof info};
    for (size_t i = 0; mica_file_tensor(lm->file, i, &info); i++) bytes += info.nbytes;
    if (!lm->memory_limit || bytes <= lm->memory_limit) return MICA_OK;
    return mica_fail(MICA_ERR_MEMORY, "%s: the weights are %" PRIu64 " bytes, the limit is %" PRIu64, path, bytes,
                     lm->memory_limit);
}

mica_status mica__lm_load(mica_lm *lm, const char *path)
{
    lm_loader l = {.lm = lm, .path = path};
    LM_TRY(mica__lm_read_config(lm->file, path, &lm->config));
    LM_TRY(check_budget(lm, path));
    lm->layers = calloc((size_t)lm->config.layers, sizeof *lm->layers);
    if (!lm->layers) return fail_memory("layers", (size_t)lm->config.layers * sizeof *lm->layers);
    const mica_status status = take_all(&l);
    if (status == MICA_OK) name_format(lm);
    free(l.used);
    return status;
}
