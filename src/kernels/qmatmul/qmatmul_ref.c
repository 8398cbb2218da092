/* Reference of products with block formats, as defined in qmatmul.h. */
#include <math.h>

#include "kernels/index/index.h"
#include "kernels/qmatmul/qmatmul.h"
#include "kernels/walk.h"

/* The smallest pieces are 32 columns with one scale each. */
typedef struct qref_row {
    float *w, *scales;
    int8_t *codes;
} qref_row;

/* Rounds x to 8 bits with one scale (token) or one per 256 columns. Returns a. */
static float qref_round(int64_t act, int64_t n, const float *x, int8_t *q, float *d)
{
    const int64_t step = act == MICA_ACT_TOKEN ? n : MICA__ACT_BLOCK;
    float a = 1;
    for (int64_t from = 0, b = 0; from < n; from += step, b++) {
        const int64_t to = mica__min_i64(from + step, n);
        float top = 0;
        bool finite = true;
        for (int64_t i = from; i < to; i++) {
            finite = finite && isfinite(x[i]);
            if (fabsf(x[i]) > fabsf(top)) top = x[i];
        }
        float times, scale;
        if (act == MICA_ACT_TOKEN) {
            const float most = fmaxf(fabsf(top), 1e-5f);
            times = 127.0f / most;
            scale = most / 127.0f;
        } else {
            times = fabsf(top) < 1e-30f ? 0 : -127.0f / top;
            scale = times == 0 ? 0 : 1.0f / times;
        }
        for (int64_t i = from; i < to; i++)
            q[i] = (int8_t)(finite ? fmaxf(fminf(nearbyintf(x[i] * times), 127), -128) : 0);
        if (!finite) scale = NAN;
        d[b] = act == MICA_ACT_TOKEN ? 1 : scale;
        if (act == MICA_ACT_TOKEN) a = scale;
    }
    return a;
}

/* Integer sums over pieces with one scale, then double. */
static float qref_codes(int64_t n, const qref_row *row, int64_t step, const int8_t *q, const float *d, int64_t x_step,
                        float a)
{
    double sum = 0;
    const int64_t piece = mica__min_i64(step, x_step);
    for (int64_t from = 0; from < n; from += piece) {
        int64_t part = 0;
        for (int64_t i = from; i < mica__min_i64(from + piece, n); i++) part += row->codes[i] * q[i];
        sum += (double)part * (double)row->scales[from / step] * (double)d[from / x_step];
    }
    return (float)(sum * (double)a);
}

mica_status mica__qmatmul_ref(const mica__launch *launch)
{
    const mica__attr_quant *attr = launch->attr;
    const mica__quant_matrix m = mica__quant_operand(attr, launch->in + 1, launch->n_in - 1);
    const mica__tensor *x = &launch->in[0];
    const int64_t n = mica__row_size(&x->spec), count = mica__row_count(&x->spec);
    const size_t cols = mica__round_up((size_t)m.cols, MICA__ACT_BLOCK);
    float *xs = launch->workspace, *out = (float *)(void *)launch->out->data;
    qref_row row = {.w = xs + cols, .scales = xs + 2 * cols};
    float *d = row.scales + cols / 32 + 1;
    row.codes = (int8_t *)(d + cols / 32 + 1);
    int8_t *q = row.codes + cols;
    mica__walk walk;
    mica__walk_rows(&walk, x, 0);
    for (int64_t t = 0; t < count; t++, mica__walk_next(&walk)) {
        bool finite = true;
        for (int64_t c = 0; c < m.cols; c++) {
            xs[c] = c < n ? (float)mica__get_f64(MICA_F32, x->data, walk.offset + c * mica__row_stride(x)) : 0;
            finite = finite && isfinite(xs[c]);
        }
        const bool rounded = attr->act != MICA_ACT_NONE;
        const int64_t x_step = attr->act == MICA_ACT_BLOCK256 ? MICA__ACT_BLOCK : mica__max_i64(m.cols, 1);
        const float a = rounded ? qref_round(attr->act, m.cols, xs, q, d) : 1;
        for (int64_t r = 0; r < m.rows; r++) {
            int64_t step;
            if (rounded && mica__quant_codes_row(&m, r, row.codes, row.scales, &step)) {
                out[t * m.rows + r] = qref_codes(m.cols, &row, step, q, d, x_step, a);
                continue;
            }
            double sum = 0;
            mica__quant_unpack_row(&m, r, row.w);
            for (int64_t c = 0; c < m.cols; c++)
                sum += (double)row.w[c] * (rounded ? (double)q[c] * (double)d[c / x_step] * (double)a : (double)xs[c]);
            out[t * m.rows + r] = finite ? (float)sum : NAN;
        }
    }
    return MICA_OK;
}

mica_status mica__qrows_ref(const mica__launch *launch)
{
    const mica__quant_matrix m = mica__quant_operand(launch->attr, launch->in + 1, launch->n_in - 1);
    const int64_t count = mica__spec_size(&launch->in[0].spec);
    MICA_TRY(mica__check_indices(NULL, "quant_rows", &launch->in[0], m.rows));
    for (int64_t i = 0; i < count && m.cols; i++)
        mica__quant_unpack_row(&m, mica__index_at(&launch->in[0], i, m.rows),
                               (float *)(void *)launch->out->data + i * m.cols);
    return MICA_OK;
}
