/* Rotary positions, one pair at a time. */
#include "kernels/rope/rope.h"

#include <math.h>

#include "kernels/walk.h"

mica_status mica__rope_table_ref(const mica__launch *launch)
{
    const mica__tensor *positions = &launch->in[0], *factors = launch->n_in > 1 ? &launch->in[1] : NULL;
    const mica__attr_rope_table *attr = launch->attr;
    const int64_t pairs = attr->dims / 2, n = mica__spec_size(&positions->spec);
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < pairs; i++) {
            const int64_t at = mica__offset_at(positions->spec.ndim, positions->spec.shape, positions->strides, p);
            const double position = mica__get_f64(mica__dtype_of(positions), positions->data, at);
            double angle = position * attr->scale * pow(attr->base, -2.0 * (double)i / (double)attr->dims);
            if (factors) angle /= mica__get_f64(mica__dtype_of(factors), factors->data, i * factors->strides[0]);
            mica__set_f64(MICA_F64, launch->out->data, p * attr->dims + i, cos(angle) * attr->magnitude);
            mica__set_f64(MICA_F64, launch->out->data, p * attr->dims + pairs + i, sin(angle) * attr->magnitude);
        }
    return MICA_OK;
}

mica_status mica__rope_ref(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *table = &launch->in[1];
    const mica__attr_rope *attr = launch->attr;
    const mica_dtype dtype = mica__dtype_of(x);
    const int outer = x->spec.ndim - 1;
    if (mica__spec_size(&x->spec) == 0) return MICA_OK;
    int64_t strides[MICA_MAX_DIMS];
    for (int d = 0; d < outer; d++) strides[d] = mica__rope_stride(table, d);
    const int64_t rows = mica__row_count(&x->spec), n = mica__row_size(&x->spec), step = mica__row_stride(x);
    const int64_t pairs = attr->dims / 2;
    for (int64_t row = 0; row < rows; row++) {
        const char *from = mica__element(x, mica__offset_at(outer, x->spec.shape, x->strides, row));
        char *to = mica__element(launch->out, row * n);
        const int64_t turn = mica__offset_at(outer, x->spec.shape, strides, row);
        for (int64_t i = 0; i < pairs; i++) {
            const int64_t first = attr->interleaved ? 2 * i : i, second = attr->interleaved ? 2 * i + 1 : i + pairs;
            const double c = mica__get_f64(MICA_F64, table->data, turn + i * table->strides[outer]);
            const double sine = mica__get_f64(MICA_F64, table->data, turn + (pairs + i) * table->strides[outer]);
            const double s = attr->inverse ? -sine : sine;
            const double a = mica__get_f64(dtype, from, first * step), b = mica__get_f64(dtype, from, second * step);
            mica__set_f64(dtype, to, first, a * c - b * s);
            mica__set_f64(dtype, to, second, b * c + a * s);
        }
        const char *rest = from + attr->dims * step * (int64_t)mica_dtype_size(dtype);
        mica__copy_row(mica_dtype_size(dtype), n - attr->dims, mica__element(launch->out, row * n + attr->dims), 1,
                       rest, step);
    }
    return MICA_OK;
}
