/* Packs the weights when a model is opened. Otherwise the first token would do it, and the model would look slow.
 *
 * mica_prepare of one product packs its matrix into memory of the engine, with all threads. Formats that kernels read
 * in place are skipped; a GPU reads all formats in place. */
#include <string.h>

#include "lm.h"

typedef struct lm_packing {
    mica_lm *lm;
    const mica_lm_options *options;
    uint64_t done, total;
    bool counting;              /* first pass: sum up the bytes; second pass: pack     */
} lm_packing;

/* Plain numbers and panels are stored in the layout that kernels read; MLX's groups (the format without a block size)
 * are unpacked row by row. */
static bool packs(const char *format)
{
    mica_format_info f = {.struct_size = sizeof f};
    return mica_format_find(format, &f) && f.kind != MICA_FORMAT_PLAIN && f.kind != MICA_FORMAT_PANELS &&
           f.block_elements > 0;
}

static mica_status pack_matrix(lm_packing *p, const lm_linear *w)
{
    const uint64_t size = mica_array_nbytes(w->w.data);
    if (!packs(w->w.format)) return MICA_OK;
    if (p->counting) {
        p->total += size;
        return MICA_OK;
    }
    mica_scope *s = mica_scope_begin(p->lm->engine);
    if (!s) return mica_fail(MICA_ERR_MEMORY, "model: out of memory: a scope");
    mica_array *x = mica_zeros(s, MICA_F32, 2, (int64_t[]){1, w->w.cols});
    mica_array *y = mica_quant_matmul(s, x, &w->w, w->act);
    const mica_status status = mica_prepare(s, &y, 1);
    mica_scope_end(s);
    p->done += size;
    if (status == MICA_OK && p->options->progress && !p->options->progress(p->done, p->total, p->options->user))
        return mica_fail(MICA_ERR_STATE, "model: stopped");
    return status;
}

static mica_status pack_all(lm_packing *p)
{
    const mica_lm *lm = p->lm;
    for (int64_t i = 0; i < lm->config.layers; i++)
        for (decoder_tensor t = 0; t < DECODER_TENSORS; t++)
            if (decoder_is_matrix(t)) LM_TRY(pack_matrix(p, &lm->layers[i].matrix[t]));
    return pack_matrix(p, &lm->head);
}

bool mica__lm_on_gpu(const mica_lm *lm)
{
    mica_engine_info info = {.struct_size = sizeof info};
    return mica_engine_describe(lm->engine, &info) == MICA_OK && info.is_gpu;
}

mica_status mica__lm_pack(mica_lm *lm, const mica_lm_options *options)
{
    lm_packing p = {.lm = lm, .options = options, .counting = true};
    if (mica__lm_on_gpu(lm)) return MICA_OK;
    LM_TRY(pack_all(&p));
    p.counting = false;
    return pack_all(&p);
}
