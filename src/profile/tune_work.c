/* See tune_work.h. */
#include "profile/tune_work.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"

typedef enum tune_kind {
    PRODUCT,                    /* size: m, n, k; b row-major                            */
    PRODUCT_TRANSPOSED,             /* b (n, k), transposed                                  */
    QUANT_PRODUCT,              /* m, n, k; packed matrix (n, k)                         */
    IMAGES,                     /* channels in and out, width; a kernel of 3 x 3         */
    ATTENTION_STEP,             /* heads, keys, head size; one query                     */
    ATTENTION_PROMPT,           /* the same; as many queries as keys                     */
    ATTENTION_BACK,             /* gradients of ATTENTION_PROMPT                         */
    LIQUID_STEP,                /* batch, units                                          */
    ROWS_SOFTMAX,               /* rows, columns                                         */
    ROWS_NORM,
    ROWS_ARGMAX,
    CHAIN,                      /* a few element-wise ops on rows, columns               */
    ROWS_SUM,                   /* of squares                                            */
    ALL_SUM,
    ROWS_CUMSUM,
    ROWS_SORT
} tune_kind;

static const struct {
    tune_kind kind;
    mica_dtype dtype;
    int64_t size[3], small[3];
    const char *format;         /* QUANT_PRODUCT                                         */
} tune_works[MICA__GPU_KNOBS] = {
    /* clang-format off */
    [MICA__KNOB_MATMUL_F32]         = {PRODUCT,            MICA_F32, {2048, 2048, 1024}, {256, 256, 32}, NULL},
    [MICA__KNOB_MATMUL_F16]         = {PRODUCT,            MICA_F16, {2048, 2048, 2048}, {256, 256, 32}, NULL},
    [MICA__KNOB_MATVEC]             = {PRODUCT_TRANSPOSED, MICA_F16, {1, 8192, 4096},    {1, 64, 256},   NULL},
    [MICA__KNOB_MATVEC_BESIDE]      = {PRODUCT,            MICA_F16, {1, 8192, 4096},    {1, 256, 64},   NULL},
    [MICA__KNOB_QMATVEC]            = {QUANT_PRODUCT,      MICA_F32, {1, 8192, 4096},    {1, 64, 256},   "Q8_0"},
    [MICA__KNOB_QMATMUL]            = {QUANT_PRODUCT,      MICA_F32, {512, 6912, 2560},  {72, 640, 128}, "MICA_T2"},
    [MICA__KNOB_QMATVEC_PANEL]      = {QUANT_PRODUCT,      MICA_F32, {1, 6912, 2560},    {1, 64, 256},   "MICA_T2"},
    [MICA__KNOB_CONV]               = {IMAGES,             MICA_F32, {128, 128, 64},     {8, 80, 24},    NULL},
    [MICA__KNOB_ATTENTION_TILE_64]  = {ATTENTION_PROMPT,   MICA_F16, {16, 2048, 64},     {16, 33, 8},    NULL},
    [MICA__KNOB_ATTENTION_TILE_128] = {ATTENTION_PROMPT,   MICA_F16, {16, 2048, 128},    {16, 33, 72},   NULL},
    [MICA__KNOB_ATTENTION_TILE_256] = {ATTENTION_PROMPT,   MICA_F16, {16, 1024, 256},    {16, 33, 136},  NULL},
    [MICA__KNOB_ATTENTION_ROWS]     = {ATTENTION_STEP,     MICA_F16, {32, 4096, 128},    {2, 640, 32},   NULL},
    [MICA__KNOB_ATTENTION_GRAD]     = {ATTENTION_BACK,     MICA_F32, {8, 512, 64},       {1, 20, 8},     NULL},
    [MICA__KNOB_QUANT_ROUND]        = {QUANT_PRODUCT,      MICA_F32, {2048, 16, 4096},   {10, 16, 512},  "MICA_T2"},
    [MICA__KNOB_CUMULATIVE]         = {ROWS_CUMSUM,        MICA_F32, {1024, 4096, 0},    {2, 600, 0},    NULL},
    [MICA__KNOB_SORT]               = {ROWS_SORT,          MICA_F32, {256, 16384, 0},    {1, 2100, 0},   NULL},
    [MICA__KNOB_SYNAPSES]           = {LIQUID_STEP,        MICA_F32, {1024, 128, 0},     {16, 128, 0},   NULL},
    [MICA__KNOB_SOFTMAX]            = {ROWS_SOFTMAX,       MICA_F32, {2048, 4096, 0},    {4, 512, 0},    NULL},
    [MICA__KNOB_NORM]               = {ROWS_NORM,          MICA_F32, {2048, 2560, 0},    {4, 512, 0},    NULL},
    [MICA__KNOB_ELEMENTS]           = {CHAIN,              MICA_F16, {4096, 4096, 0},    {80, 256, 0},   NULL},
    [MICA__KNOB_FOLD]               = {ROWS_SUM,           MICA_F32, {2048, 4096, 0},    {4, 600, 0},    NULL},
    [MICA__KNOB_LONG_FOLD]          = {ALL_SUM,            MICA_F32, {4096, 4096, 0},    {1, 40000, 0},  NULL},
    [MICA__KNOB_ARGREDUCE]          = {ROWS_ARGMAX,        MICA_F32, {64, 128256, 0},    {4, 512, 0},    NULL},
    /* clang-format on */
};

/* Fills the matrix with the codes -1, 0, 1 in a fixed pattern; the values do not affect the time. */
static mica_status pack_matrix(mica_scope *s, const char *format, int64_t rows, int64_t cols, mica_quant *matrix)
{
    const size_t nbytes = mica_quant_nbytes(format, rows, cols), n = (size_t)(rows * cols);
    float *x = mica__alloc(n * sizeof *x);
    void *bytes = mica__alloc(nbytes);
    mica_status status = x && bytes ? MICA_OK : mica__fail(MICA_ERR_MEMORY, "tune: no memory for a matrix");
    for (size_t i = 0; status == MICA_OK && i < n; i++) x[i] = (float)((int)(i * 7 % 23 % 3) - 1);
    if (status == MICA_OK) status = mica_quant_pack(format, rows, cols, x, bytes, nbytes);
    *matrix = (mica_quant){.struct_size = sizeof *matrix, .format = format, .rows = rows, .cols = cols};
    if (status == MICA_OK) {
        matrix->data = mica_from_data(s, MICA_U8, 1, (int64_t[]){(int64_t)nbytes}, bytes);
        if (!matrix->data) status = mica_scope_status(s);
    }
    mica__free(bytes);
    mica__free(x);
    return status;
}

mica_status mica__tune_inputs_make(mica_scope *s, mica__gpu_knob knob, bool small, mica__tune_inputs *inputs)
{
    const mica_dtype dtype = tune_works[knob].dtype;
    const int64_t *size = small ? tune_works[knob].small : tune_works[knob].size;
    int n = 1;
    *inputs = (mica__tune_inputs){.knob = knob, .size = {size[0], size[1], size[2]}};
    switch (tune_works[knob].kind) {
    case PRODUCT:
    case PRODUCT_TRANSPOSED: {
        const bool turned = tune_works[knob].kind == PRODUCT_TRANSPOSED;
        inputs->in[0] = mica_random_normal(s, dtype, 2, (int64_t[]){size[0], size[2]}, 1);
        inputs->in[1] = mica_random_normal(s, dtype, 2, (int64_t[]){size[turned ? 1 : 2], size[turned ? 2 : 1]}, 2);
        n = 2;
        break;
    }
    case QUANT_PRODUCT:
        inputs->in[0] = mica_random_normal(s, dtype, 2, (int64_t[]){size[0], size[2]}, 1);
        MICA_TRY(pack_matrix(s, tune_works[knob].format, size[1], size[2], &inputs->matrix));
        break;
    case IMAGES:
        inputs->in[0] = mica_random_normal(s, dtype, 4, (int64_t[]){1, size[0], size[2], size[2]}, 1);
        inputs->in[1] = mica_random_normal(s, dtype, 4, (int64_t[]){size[1], size[0], 3, 3}, 2);
        n = 2;
        break;
    case ATTENTION_STEP:
    case ATTENTION_PROMPT:
    case ATTENTION_BACK: {
        const int64_t queries = tune_works[knob].kind == ATTENTION_STEP ? 1 : size[1];
        inputs->in[0] = mica_random_normal(s, dtype, 4, (int64_t[]){1, size[0], queries, size[2]}, 1);
        inputs->in[1] = mica_random_normal(s, dtype, 4, (int64_t[]){1, size[0], size[1], size[2]}, 2);
        inputs->in[2] = mica_random_normal(s, dtype, 4, (int64_t[]){1, size[0], size[1], size[2]}, 3);
        n = 3;
        break;
    }
    case LIQUID_STEP:
        inputs->in[0] = mica_random_normal(s, dtype, 2, size, 1);
        inputs->in[1] = mica_random_normal(s, dtype, 2, (int64_t[]){size[1], size[1]}, 2);
        n = 2;
        break;
    case CHAIN:
    case ROWS_NORM:
        inputs->in[1] = mica_random_normal(s, dtype, 1, (int64_t[]){size[1]}, 2);
        inputs->in[0] = mica_random_normal(s, dtype, 2, size, 1);
        n = 2;
        break;
    case ROWS_SOFTMAX:
    case ROWS_SUM:
    case ALL_SUM:
    case ROWS_CUMSUM:
    case ROWS_SORT:
    case ROWS_ARGMAX: inputs->in[0] = mica_random_normal(s, dtype, 2, size, 1); break;
    }
    return mica_eval(s, inputs->in, (size_t)n);
}

/* The gradient with respect to q; the same launch computes those of k and v. */
static mica_array *attention_back(mica_scope *s, mica_array *const *in, mica_array *y)
{
    mica_array *slope;
    return y && mica_vjp(s, &y, &in[0], 1, &in[0], 1, &slope) == MICA_OK ? slope : NULL;
}

mica_array *mica__tune_build(mica_scope *s, const mica__tune_inputs *inputs)
{
    mica_array *const *in = inputs->in;
    switch (tune_works[inputs->knob].kind) {
    case PRODUCT: return mica_matmul(s, in[0], in[1]);
    case PRODUCT_TRANSPOSED: return mica_matmul(s, in[0], mica_transpose(s, in[1]));
    case QUANT_PRODUCT: return mica_quant_matmul(s, in[0], &inputs->matrix, MICA_ACT_TOKEN);
    case IMAGES: return mica_conv2d(s, in[0], in[1], NULL);
    case ATTENTION_STEP:
    case ATTENTION_PROMPT:
    case ATTENTION_BACK: {
        mica_attention_options options;
        mica_attention_options_init(&options);
        options.causal = true;
        mica_array *y = mica_attention(s, in[0], in[1], in[2], NULL, &options);
        return tune_works[inputs->knob].kind == ATTENTION_BACK ? attention_back(s, in, y) : y;
    }
    case LIQUID_STEP: return mica_synapses(s, in[0], NULL, NULL, in[1], in[1], in[1], in[1]);
    case ROWS_SOFTMAX: return mica_softmax(s, in[0], -1);
    case ROWS_NORM: return mica_rms_norm(s, in[0], in[1], 1e-5);
    case ROWS_ARGMAX: return mica_argmax(s, in[0], -1, false);
    case CHAIN: return mica_add(s, mica_mul(s, in[0], in[1]), mica_tanh(s, in[0]));
    case ROWS_SUM: return mica_sum(s, mica_square(s, in[0]), (int[]){1}, 1, false);
    case ROWS_CUMSUM: return mica_cumsum(s, in[0], -1);
    case ROWS_SORT: return mica_sort(s, in[0], -1, false);
    case ALL_SUM: return mica_sum(s, mica_square(s, in[0]), NULL, 0, false);
    }
    return NULL;
}

void mica__tune_text(const mica__tune_inputs *inputs, char text[MICA__TUNE_TEXT])
{
    const char *format = tune_works[inputs->knob].format;
    int n = snprintf(text, MICA__TUNE_TEXT, "%s", format ? format : mica_dtype_name(tune_works[inputs->knob].dtype));
    for (int i = 0; i < 3 && inputs->size[i] && n > 0 && n < MICA__TUNE_TEXT; i++)
        n += snprintf(text + n, MICA__TUNE_TEXT - (size_t)n, "%s%" PRId64, i ? " x " : " ", inputs->size[i]);
}
