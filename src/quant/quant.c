/* The table of formats and the functions that all formats share: sizes, rows of a packed
 * matrix, the reference dot product, packing with its checks. */
#include "quant/quant.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "quant/quant_affine.h"
#include "quant/quant_blocks.h"
#include "quant/quant_panel.h"

static const mica__quant quant_table[MICA__QUANT_COUNT] = {
#define MICA_PLAIN(id, ...) \
    [MICA__QUANT_##id] = {.name = #id, .safetensors = #id, .scale = {-1, -1}, .rows = 1, __VA_ARGS__},
#define MICA_BLOCK(id, ...) [MICA__QUANT_##id] = {.name = #id, .dtype = -1, .rows = 1, __VA_ARGS__},
#define MICA_PANEL(id, ...) [MICA__QUANT_##id] = {.name = #id, .dtype = -1, .scale = {-1, -1}, .rows = 16, __VA_ARGS__},
#include "quant/quant.def"
#undef MICA_PLAIN
#undef MICA_BLOCK
#undef MICA_PANEL
};

const mica__quant *mica__quant_get(mica__quant_id id)
{
    return (unsigned)id < MICA__QUANT_COUNT ? &quant_table[id] : NULL;
}

const char *mica__quant_name(mica__quant_id id)
{
    if (id == MICA__QUANT_HF_TERNARY) return "HF_TERNARY";
    if (id == MICA__QUANT_AFFINE) return "AFFINE";
    return (unsigned)id < MICA__QUANT_COUNT ? quant_table[id].name : "unknown format";
}

mica__quant_id mica__quant_find(const char *name)
{
    for (int i = 0; i < MICA__QUANT_COUNT; i++)
        if (strcmp(quant_table[i].name, name) == 0) return (mica__quant_id)i;
    return MICA__QUANT_COUNT;
}

mica__quant_id mica__quant_find_safetensors(const char *name, size_t length)
{
    for (int i = 0; i < MICA__QUANT_COUNT; i++) {
        const char *row = quant_table[i].safetensors;
        if (row && strlen(row) == length && memcmp(row, name, length) == 0) return (mica__quant_id)i;
    }
    return MICA__QUANT_COUNT;
}

mica__quant_id mica__quant_find_ggml(uint32_t ggml, int n)
{
    for (int i = 0; i < MICA__QUANT_COUNT; i++)
        if (quant_table[i].gguf >= 0 && (uint32_t)quant_table[i].gguf == ggml && n-- == 0) return (mica__quant_id)i;
    /* Early files of Prism use id 42, upstream's Q2_0, for the format that now has id 142. */
    return ggml == 42 && n == 0 ? MICA__QUANT_PQ2_0 : MICA__QUANT_COUNT;
}

mica__quant_id mica__quant_of_dtype(mica_dtype dtype)
{
    for (int i = 0; i < MICA__QUANT_COUNT; i++)
        if (quant_table[i].dtype == (int)dtype) return (mica__quant_id)i;
    return MICA__QUANT_COUNT;
}

mica__quant_fit mica__quant_nbytes(mica__quant_id id, int ndim, const int64_t *shape, size_t *out)
{
    const mica__quant *q = mica__quant_get(id);
    *out = 0;
    if (!q) return MICA__FIT_SIZE;
    /* Sub-byte floats of safetensors are packed over the whole tensor, other blocks along rows. */
    const bool along_rows = !q->safetensors;
    /* The other sizes of an empty shape may overflow when multiplied: that is valid, nothing is read. */
    size_t count = 1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) return MICA__FIT_SIZE;
        if (shape[i] == 0) count = 0;
    }
    for (int i = 0; i < ndim; i++)
        if (count && !mica__mul_size(count, (size_t)shape[i], &count)) return MICA__FIT_SIZE;
    const size_t row = ndim ? (size_t)shape[ndim - 1] : 1;
    size_t blocks = count / q->block;
    if (q->rows > 1) {
        const size_t rows = count ? count / row : 0, height = (size_t)q->rows; /* rows, and rows of a panel */
        blocks = (rows / height + (rows % height != 0)) * (row / q->block + (row % q->block != 0));
        if (count == 0) blocks = 0;
    } else if ((along_rows ? row : count) % q->block) return MICA__FIT_ROW;
    if (!mica__mul_size(blocks, q->bytes, out) || !mica__add_size(*out, q->tail, out) || *out > INT64_MAX)
        return MICA__FIT_SIZE;
    return MICA__FIT_OK;
}

/* -------------------------------------------------------------- matrices --- */

static float scale_at(mica__quant_id type, const void *p, size_t i)
{
    float v;
    const mica__quant *q = &quant_table[type];
    q->unpack((const char *)p + i * q->bytes, &v, 1);
    return v;
}

mica_status mica__quant_matrix_check(const mica__quant_matrix *m, const char *what)
{
    if (m->rows < 0 || m->cols < 0 || (!m->data && m->rows && m->cols))
        return mica__fail(MICA_ERR_ARGUMENT, "%s: %" PRId64 " x %" PRId64 " without data", what, m->rows, m->cols);
    if (m->id == MICA__QUANT_HF_TERNARY || m->id == MICA__QUANT_AFFINE) {
        const mica__quant_id t = m->scale_type;
        if (!m->scales || (m->id == MICA__QUANT_AFFINE && !m->biases))
            return mica__fail(MICA_ERR_ARGUMENT, "%s: %s without scales", what, mica__quant_name(m->id));
        if (t != MICA__QUANT_F32 && t != MICA__QUANT_F16 && t != MICA__QUANT_BF16)
            return mica__fail(MICA_ERR_ARGUMENT, "%s: scales are %s, not F32, F16 or BF16", what, mica__quant_name(t));
        if (m->id == MICA__QUANT_AFFINE) return mica__affine_check(m, what);
        int64_t count;
        if (m->rows > INT64_MAX - 3 || !mica__mul_i64(m->rows, m->cols, &count))
            return mica__fail(MICA_ERR_SIZE, "%s: %" PRId64 " x %" PRId64 " is too large", what, m->rows, m->cols);
        return MICA_OK;
    }
    const mica__quant *q = mica__quant_get(m->id);
    if (!q || (!q->unpack && q->rows == 1))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: values of format %s cannot be read", what,
                          mica__quant_name(m->id));
    size_t nbytes;
    switch (mica__quant_nbytes(m->id, 2, (int64_t[]){m->rows, m->cols}, &nbytes)) {
    case MICA__FIT_OK: return MICA_OK;
    case MICA__FIT_ROW:
        return mica__fail(MICA_ERR_ARGUMENT,
                          "%s: rows of %" PRId64 " are not a multiple of the %d elements of a %s block", what, m->cols,
                          (int)q->block, q->name);
    default:
        return mica__fail(MICA_ERR_SIZE, "%s: %" PRId64 " x %" PRId64 " %s is too large", what, m->rows, m->cols,
                          q->name);
    }
}

size_t mica__quant_matrix_nbytes(const mica__quant_matrix *m)
{
    size_t nbytes = 0;
    if (m->id == MICA__QUANT_HF_TERNARY) return (size_t)((m->rows + 3) / 4 * m->cols);
    if (m->id == MICA__QUANT_AFFINE) return (size_t)(m->rows * m->cols) / 8 * (size_t)m->bits;
    (void)mica__quant_nbytes(m->id, 2, (int64_t[]){m->rows, m->cols}, &nbytes);
    return nbytes;
}

/* The scale of a matrix with one scale for all elements; 1 for other formats. */
static float matrix_scale(const mica__quant_matrix *m)
{
    if (m->id == MICA__QUANT_HF_TERNARY) {
        const float s = scale_at(m->scale_type, m->scales, 0);
        return m->scale_divides ? 1 / s : s;
    }
    const mica__quant *q = &quant_table[m->id];
    if (!q->tail) return 1;
    return scale_at(MICA__QUANT_F32, (const char *)m->data + mica__quant_matrix_nbytes(m) - q->tail, 0);
}

static const char *matrix_row(const mica__quant_matrix *m, int64_t r)
{
    const mica__quant *q = &quant_table[m->id];
    return (const char *)m->data + (size_t)r * ((size_t)m->cols / q->block) * q->bytes;
}

static void hf_row(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, int8_t *codes)
{
    const int64_t quarter = (m->rows + 3) / 4;
    const uint8_t *b = (const uint8_t *)m->data + r % quarter * m->cols + from;
    const int shift = (int)(2 * (r / quarter));
    mica__two_bits(b, n, shift, codes);
}

/* Unpacks elements [from, from + n) of a row; n is at most MICA__QUANT_BLOCK_MAX, from a multiple of it. */
static void unpack_piece(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, float scale, float *out)
{
    if (m->id == MICA__QUANT_AFFINE) {
        mica__affine_unpack(m, r, from, n, out);
        return;
    }
    if (m->id == MICA__QUANT_HF_TERNARY) {
        int8_t codes[MICA__QUANT_BLOCK_MAX];
        hf_row(m, r, from, n, codes);
        for (int64_t c = 0; c < n; c++) out[c] = (float)codes[c] * scale;
        return;
    }
    const mica__quant *q = &quant_table[m->id];
    if (q->rows > 1) {
        mica__panel_unpack(m, r, from, n, scale, out);
        return;
    }
    q->unpack(matrix_row(m, r) + (size_t)from / q->block * q->bytes, out, (size_t)n / q->block);
    if (q->tail)
        for (int64_t c = 0; c < n; c++) out[c] *= scale;
}

void mica__quant_unpack_row(const mica__quant_matrix *m, int64_t r, float *out)
{
    const float scale = m->id == MICA__QUANT_AFFINE ? 1 : matrix_scale(m);
    for (int64_t c = 0; c < m->cols; c += MICA__QUANT_BLOCK_MAX)
        unpack_piece(m, r, c, mica__min_i64(MICA__QUANT_BLOCK_MAX, m->cols - c), scale, out + c);
}

double mica__quant_dot(const mica__quant_matrix *m, int64_t r, const float *x)
{
    const float scale = m->id == MICA__QUANT_AFFINE ? 1 : matrix_scale(m);
    double sum = 0;
    for (int64_t c = 0; c < m->cols; c += MICA__QUANT_BLOCK_MAX) {
        float w[MICA__QUANT_BLOCK_MAX];
        const int64_t n = mica__min_i64(MICA__QUANT_BLOCK_MAX, m->cols - c);
        unpack_piece(m, r, c, n, scale, w);
        for (int64_t i = 0; i < n; i++) sum += (double)w[i] * (double)x[c + i];
    }
    return sum;
}

bool mica__quant_has_codes(mica__quant_id id)
{
    const mica__quant *q = mica__quant_get(id);
    return q ? q->codes != NULL || MICA__QUANT_IS_PANEL(id) : id == MICA__QUANT_HF_TERNARY;
}

bool mica__quant_one_scale(const mica__quant_matrix *m, float *scale)
{
    const mica__quant *q = mica__quant_get(m->id);
    if (q ? !q->tail : m->id != MICA__QUANT_HF_TERNARY) return false;
    *scale = matrix_scale(m);
    return true;
}

bool mica__quant_codes_row(const mica__quant_matrix *m, int64_t r, int8_t *codes, float *scales, int64_t *step)
{
    *step = m->cols ? m->cols : 1;
    if (m->id == MICA__QUANT_HF_TERNARY) {
        hf_row(m, r, 0, m->cols, codes);
        scales[0] = matrix_scale(m);
        return true;
    }
    if (MICA__QUANT_IS_PANEL(m->id)) {
        mica__panel_codes(m, r, 0, m->cols, codes);
        scales[0] = matrix_scale(m);
        return true;
    }
    const mica__quant *q = mica__quant_get(m->id);
    if (!q || !q->codes) return false;
    q->codes(matrix_row(m, r), codes, scales, (size_t)m->cols / q->block);
    if (q->tail) scales[0] = matrix_scale(m);
    else *step = q->block;
    return true;
}

/* --------------------------------------------------------------- packing --- */

/* The largest magnitude. Bits are compared as integers, which have the order of the magnitudes; infinity and NaN are
 * above all others. False: there is one of these. */
static bool largest_magnitude(const float *x, size_t n, float *out)
{
    typedef int32_t four __attribute__((vector_size(16), aligned(4), may_alias));
    four most = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const four size = *(const four *)(const void *)(x + i) & 0x7fffffff, larger = size > most;
        most = (size & larger) | (most & ~larger);
    }
    int32_t top = 0, size;
    for (int l = 0; l < 4; l++) top = most[l] > top ? most[l] : top;
    for (; i < n; i++) {
        memcpy(&size, x + i, sizeof size);
        size &= 0x7fffffff;
        top = size > top ? size : top;
    }
    memcpy(out, &top, sizeof top);
    return top < 0x7f800000;
}

/* Packs blocks in units of the scale of the tensor. */
static void pack_scaled(const mica__quant *q, const float *x, size_t n_blocks, float scale, char *out)
{
    const float inverse = mica__inverse(scale);
    for (size_t k = 0; k < n_blocks; k++) {
        float unit[MICA__QUANT_BLOCK_MAX];
        for (int i = 0; i < q->block; i++) unit[i] = mica__in_units(x[k * q->block + (size_t)i], scale, inverse);
        q->pack(unit, out + k * q->bytes, 1);
    }
}

mica_status mica__quant_pack(mica__quant_id id, const float *x, int64_t rows, int64_t cols, void *out)
{
    const mica__quant_matrix m = {.id = id, .rows = rows, .cols = cols, .data = out};
    MICA_TRY(mica__quant_matrix_check(&m, "quantize"));
    const mica__quant *q = mica__quant_get(id);
    if (!q) return mica__fail(MICA_ERR_UNSUPPORTED, "quantize: %s has separate scales", mica__quant_name(id));
    const size_t n = (size_t)rows * (size_t)cols, n_blocks = n / q->block;
    float top = 0;
    if (q->dtype < 0 && !largest_magnitude(x, n, &top)) {
        size_t i = 0;
        while (isfinite(x[i])) i++;
        return mica__fail(MICA_ERR_ARGUMENT, "quantize: element %zu is %g, which %s cannot hold", i, (double)x[i],
                          q->name);
    }
    if (q->rows > 1) {
        mica__panel_pack(id, x, rows, cols, top, out);
        return MICA_OK;
    }
    if (!q->tail) {
        q->pack(x, out, n_blocks);
        const size_t bad = mica__quant_first_bad_block(id, out, n_blocks);
        if (bad < n_blocks)
            return mica__fail(MICA_ERR_ARGUMENT, "quantize: the scale of elements %zu to %zu overflows f16 in %s",
                              bad * q->block, (bad + 1) * q->block - 1, q->name);
        return MICA_OK;
    }
    pack_scaled(q, x, n_blocks, top, out);
    char *tail = (char *)out + n_blocks * q->bytes;
    memset(tail, 0, q->tail);
    memcpy(tail, &top, sizeof top);
    return MICA_OK;
}

static bool f16_finite_at(const char *block, int offset) { return offset < 0 || (block[offset + 1] & 0x7c) != 0x7c; }

size_t mica__quant_first_bad_block(mica__quant_id id, const void *blocks, size_t n_blocks)
{
    const mica__quant *q = mica__quant_get(id);
    if (!q) return 0;
    const bool trinary = id == MICA__QUANT_I2_S || id == MICA__QUANT_I2_S_ARM || id == MICA__QUANT_TQ2_0;
    const char *b = blocks;
    if (q->rows > 1) return mica__panel_first_bad(id, blocks, n_blocks);
    for (size_t k = 0; k < n_blocks; k++, b += q->bytes) {
        if (!f16_finite_at(b, q->scale[0]) || !f16_finite_at(b, q->scale[1])) return k;
        /* both bits set is not a ternary code */
        for (int i = 0; trinary && i < q->block / 4; i++)
            if (b[i] & b[i] >> 1 & 0x55) return k;
    }
    return n_blocks;
}
