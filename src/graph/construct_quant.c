/* Products with matrices in block formats: constructors, shape rules, gradient and
 * packing. The bytes of a matrix are an ordinary operand, flat and row-major. The format
 * is an attribute, so graphs that differ only in the format never share a plan. */
#include <inttypes.h>

#include "graph/construct.h"
#include "graph/quant_matrix.h"
#include "graph/vjp_util.h"

/* ---------------------------------------------------------- shape rules ---- */

static mica_status quant_count(const mica__op_info *info, const char *what, const mica__spec *spec, int64_t want)
{
    char text[MICA__SPEC_TEXT];
    if (spec->ndim == 1 && spec->shape[0] == want) return MICA_OK;
    return mica__fail(MICA_ERR_SHAPE, "%s: %s is %s instead of %" PRId64 " elements", info->name, what,
                      mica__spec_text(text, spec), want);
}

/* in: data, scales, biases. */
static mica_status quant_operands(const mica__op_info *info, const mica__spec *const *in, size_t n_in,
                                  const mica__attr_quant *a)
{
    static const char nowhere[1];
    const int extras = mica__quant_extras((mica__quant_id)a->format);
    if (n_in != 1u + (unsigned)extras)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: %zu arrays for a matrix of format %s instead of %d", info->name, n_in,
                          mica__quant_name((mica__quant_id)a->format), 1 + extras);
    mica__quant_matrix m = mica__quant_matrix_of(a, extras ? in[1]->dtype : -1);
    m.data = m.scales = m.biases = nowhere;
    MICA_TRY(mica__quant_matrix_check(&m, info->name));
    const mica__quant *q = mica__quant_get(m.id);
    const mica_dtype dtype = (mica_dtype)in[0]->dtype;
    const bool plain = q && q->dtype == (int)dtype, words = m.id == MICA__QUANT_AFFINE && dtype == MICA_U32;
    if (!plain && !words && dtype != MICA_U8)
        return mica__fail(MICA_ERR_DTYPE, "%s: data of format %s is %s instead of bytes (u8)", info->name,
                          mica__quant_name(m.id), mica_dtype_name(dtype));
    const size_t nbytes = mica__quant_matrix_nbytes(&m), size = mica_dtype_size(dtype);
    if (nbytes % size || in[0]->ndim != 1 || (uint64_t)in[0]->shape[0] != nbytes / size) {
        char text[MICA__SPEC_TEXT];
        return mica__fail(MICA_ERR_SHAPE,
                          "%s: data is %s; a matrix of %" PRId64 " x %" PRId64 " in format %s has %zu bytes",
                          info->name, mica__spec_text(text, in[0]), m.rows, m.cols, mica__quant_name(m.id), nbytes);
    }
    const int64_t scales = m.id == MICA__QUANT_AFFINE ? m.rows * (m.cols / m.group) : 1;
    for (int i = 1; i <= extras; i++) {
        if (in[i]->dtype != in[1]->dtype)
            return mica__fail(MICA_ERR_DTYPE, "%s: scales are %s, biases are %s", info->name,
                              mica_dtype_name((mica_dtype)in[1]->dtype), mica_dtype_name((mica_dtype)in[i]->dtype));
        MICA_TRY(quant_count(info, i == 1 ? "scales" : "biases", in[i], scales));
    }
    return MICA_OK;
}

MICA__SHAPE_RULE(qmatmul)
{
    const mica__attr_quant *a = attr;
    const mica__spec *x = in[0];
    char text[MICA__SPEC_TEXT];
    if (n_in < 2) return mica__fail(MICA_ERR_ARGUMENT, "%s: no matrix", info->name);
    if (a->act < MICA_ACT_NONE || a->act > MICA_ACT_BLOCK256)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: act is %" PRId64 "; it is not a mica_act", info->name, a->act);
    MICA_TRY(quant_operands(info, in + 1, n_in - 1, a));
    if (x->dtype != MICA_F32 || x->ndim == 0)
        return mica__fail(x->ndim ? MICA_ERR_DTYPE : MICA_ERR_SHAPE, "%s: x is %s instead of f32 rows", info->name,
                          mica__spec_text(text, x));
    const mica__quant *q = mica__quant_get((mica__quant_id)a->format);
    const int64_t n = x->shape[x->ndim - 1], block = q ? q->block : 1;
    if (a->cols != n && (n > a->cols || a->cols - n >= block))
        return mica__fail(MICA_ERR_SHAPE, "%s: rows of x have %" PRId64 " elements, rows of the matrix %" PRId64,
                          info->name, n, a->cols);
    *out = *x;
    out->shape[x->ndim - 1] = a->rows;
    return MICA_OK;
}

MICA__SHAPE_RULE(qrows)
{
    const mica__attr_quant *a = attr;
    const mica__spec *ids = in[0];
    if (n_in < 2) return mica__fail(MICA_ERR_ARGUMENT, "%s: no matrix", info->name);
    MICA_TRY(quant_operands(info, in + 1, n_in - 1, a));
    if (ids->dtype != MICA_I64)
        return mica__fail(MICA_ERR_DTYPE, "%s: ids are %s instead of i64", info->name,
                          mica_dtype_name((mica_dtype)ids->dtype));
    if (ids->ndim == MICA_MAX_DIMS)
        return mica__fail(MICA_ERR_SHAPE, "%s: ids have %d axes, and the result needs one more", info->name,
                          (int)ids->ndim);
    *out = *ids;
    out->dtype = MICA_F32;
    out->shape[out->ndim++] = a->cols;
    if (!mica__spec_count(out, NULL, NULL))
        return mica__fail(MICA_ERR_SIZE, "%s: the requested rows have too many elements", info->name);
    return MICA_OK;
}

/* The gradient of x is that of an f32 product. Rounding x to 8 bits counts as the
 * identity (straight-through), as in training. The matrix has no gradient. */
MICA__VJP_RULE(qmatmul)
{
    const mica__attr_quant *a = y->attr;
    mica_array *in[4] = {mica_arange(s, MICA_I64, 0, (double)a->rows, 1)};
    for (uint32_t i = 1; i < y->n_in; i++) in[i] = y->in[i];
    mica__attr_quant attr = *a;
    attr.act = 0;
    mica_array *w = mica__build(s, MICA__OP_QROWS, in, y->n_in, &attr, sizeof attr);
    const int64_t n = y->in[0]->spec.shape[y->in[0]->spec.ndim - 1];
    if (n != a->cols) w = mica_slice_axis(s, w, 1, 0, n, 1);
    grads[0] = mica_matmul(s, ct, w);
    return MICA_OK;
}

/* --------------------------------------------------------- constructors ---- */

static mica__quant_id quant_format(const char *name)
{
    if (!name) return MICA__QUANT_COUNT;
    for (int id = MICA__QUANT_HF_TERNARY; id <= MICA__QUANT_AFFINE; id++)
        if (strcmp(name, mica__quant_name((mica__quant_id)id)) == 0) return (mica__quant_id)id;
    const mica__quant_id id = mica__quant_find(name);
    return id == MICA__QUANT_COUNT ? MICA__QUANT_AFFINE + 1 : id;
}

/* Makes x flat and row-major, so that a kernel reads consecutive bytes. A weight that
 * is already contiguous is not copied. */
static mica_array *quant_flat(mica_scope *s, mica_array *x)
{
    if (x->spec.ndim != 1) x = mica_flatten(s, x);
    return mica_contiguous(s, x);
}

/* Fills in[1 ...] and attr from the caller's matrix. The caller sets in[0]; *n_in counts it. */
static bool quant_read_matrix(mica_scope *s, const char *op, const mica_quant *given, mica_array **in, size_t *n_in,
                              mica__attr_quant *attr)
{
    mica_quant w = {.struct_size = sizeof w};
    if (!given) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: the matrix is NULL", op);
        return false;
    }
    if (!mica__read_options(s, op, given, &w, sizeof w)) return false;
    const mica__quant_id id = quant_format(w.format);
    if (!w.format || id > MICA__QUANT_AFFINE) {
        mica__scope_fail(s, MICA_ERR_ARGUMENT, "%s: there is no format %s", op, w.format ? w.format : "NULL");
        return false;
    }
    *attr = (mica__attr_quant){.format = id, .rows = w.rows, .cols = w.cols};
    if (id == MICA__QUANT_HF_TERNARY) attr->scale_divides = w.scale_divides;
    if (id == MICA__QUANT_AFFINE) attr->bits = w.bits, attr->group = w.group;
    mica_array *const parts[] = {w.data, w.scales, w.biases};
    *n_in = 2u + (unsigned)mica__quant_extras(id);
    if (!mica__usable(s, op, parts, *n_in - 1)) return false;
    for (size_t i = 1; i < *n_in; i++)
        if (!(in[i] = quant_flat(s, parts[i - 1]))) return false;
    return true;
}

mica_array *mica_quant_matmul(mica_scope *s, mica_array *x, const mica_quant *w, mica_act act)
{
    mica__attr_quant attr;
    mica_array *in[4];
    size_t n_in;
    if (!mica__usable1(s, "quant_matmul", x) || !quant_read_matrix(s, "quant_matmul", w, in, &n_in, &attr)) return NULL;
    attr.act = act;
    in[0] = mica_cast(s, x, MICA_F32);
    return mica__build(s, MICA__OP_QMATMUL, in, n_in, &attr, sizeof attr);
}

mica_array *mica_quant_rows(mica_scope *s, const mica_quant *w, mica_array *ids)
{
    mica__attr_quant attr;
    mica_array *in[4];
    size_t n_in;
    if (!mica__usable1(s, "quant_rows", ids) || !quant_read_matrix(s, "quant_rows", w, in, &n_in, &attr)) return NULL;
    in[0] = mica__indices_of(s, MICA__CALLER_QUANT_ROWS, ids, attr.rows);
    return mica__build(s, MICA__OP_QROWS, in, n_in, &attr, sizeof attr);
}

/* -------------------------------------------------------------- packing ---- */

/* Checks a format without separate scales and biases, and gives the size of the matrix in bytes. */
static mica_status quant_check_format(const char *op, const char *format, int64_t rows, int64_t cols,
                                      mica__quant_matrix *m, size_t *nbytes)
{
    static const char nowhere[1];
    const mica__quant_id id = quant_format(format);
    if (!format || id > MICA__QUANT_AFFINE)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: there is no format %s", op, format ? format : "NULL");
    if (mica__quant_extras(id))
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: format %s has separate scales", op, format);
    *m = (mica__quant_matrix){.id = id, .rows = rows, .cols = cols, .data = nowhere};
    MICA_TRY(mica__quant_matrix_check(m, op));
    *nbytes = mica__quant_matrix_nbytes(m);
    return MICA_OK;
}

size_t mica_quant_nbytes(const char *format, int64_t rows, int64_t cols)
{
    mica__quant_matrix m;
    size_t nbytes;
    return quant_check_format("quant_nbytes", format, rows, cols, &m, &nbytes) == MICA_OK ? nbytes : 0;
}

static mica_status quant_sized(const char *op, mica__quant_matrix *m, const char *format, int64_t rows, int64_t cols,
                               const float *x, const void *blocks, size_t nbytes)
{
    size_t want;
    MICA_TRY(quant_check_format(op, format, rows, cols, m, &want));
    if (nbytes != want)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: %zu bytes; %" PRId64 " x %" PRId64 " in format %s needs %zu", op,
                          nbytes, rows, cols, format, want);
    if ((nbytes && !blocks) || (rows && cols && !x)) return mica__fail(MICA_ERR_ARGUMENT, "%s: a pointer is NULL", op);
    return MICA_OK;
}

mica_status mica_quant_pack(const char *format, int64_t rows, int64_t cols, const float *x, void *out, size_t nbytes)
{
    mica__quant_matrix m;
    MICA_TRY(quant_sized("quant_pack", &m, format, rows, cols, x, out, nbytes));
    return nbytes ? mica__quant_pack(m.id, x, rows, cols, out) : MICA_OK;
}

mica_status mica_quant_unpack(const char *format, int64_t rows, int64_t cols, const void *blocks, size_t nbytes,
                              float *out)
{
    mica__quant_matrix m;
    MICA_TRY(quant_sized("quant_unpack", &m, format, rows, cols, out, blocks, nbytes));
    m.data = blocks;
    for (int64_t r = 0; r < rows && cols; r++) mica__quant_unpack_row(&m, r, out + r * cols);
    return MICA_OK;
}
