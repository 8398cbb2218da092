/* Softmax and log-sum-exp in double. */
#include "kernels/softmax/softmax.h"

#include <math.h>

#include "kernels/walk.h"

static mica_status softmax_rows_ref(const mica__launch *launch, bool logarithm)
{
    const mica__tensor *x = &launch->in[0];
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t rows = mica__row_count(&x->spec), n = mica__row_size(&x->spec), step = mica__row_stride(x);
    mica__walk walk;
    mica__walk_rows(&walk, x, 0);
    for (int64_t row = 0; row < rows; row++, mica__walk_next(&walk)) {
        const char *from = mica__element(x, walk.offset);
        char *to = mica__element(launch->out, row * n);
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const double v = mica__get_f64(dtype, from, i * step);
            if (v > top) top = v;
        }
        for (int64_t i = 0; i < n; i++) sum += exp(mica__get_f64(dtype, from, i * step) - top);
        for (int64_t i = 0; i < n; i++) {
            const double v = mica__get_f64(dtype, from, i * step) - top;
            mica__set_f64(dtype, to, i, logarithm ? v - log(sum) : exp(v) / sum);
        }
    }
    return MICA_OK;
}

mica_status mica__softmax_ref(const mica__launch *launch) { return softmax_rows_ref(launch, false); }
mica_status mica__log_softmax_ref(const mica__launch *launch) { return softmax_rows_ref(launch, true); }

mica_status mica__logsumexp_ref(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *origin = &launch->in[1];
    const mica_dtype dtype = mica__dtype_of(x);
    const int outer = mica__outer_dims(&x->spec);
    const int64_t rows = mica__row_count(&x->spec), n = mica__row_size(&x->spec), step = mica__row_stride(x);
    for (int64_t row = 0; row < rows; row++) {
        const char *from = mica__element(x, mica__offset_at(outer, x->spec.shape, x->strides, row));
        double top = -INFINITY, sum = 0, less = 0;
        for (int64_t i = 0; i < n; i++) top = fmax(top, mica__get_f64(dtype, from, i * step));
        if (isinf(top)) top = 0; /* inf - inf is NaN; without the subtraction exp and log give the infinity */
        for (int64_t i = 0; i < n; i++) sum += exp(mica__get_f64(dtype, from, i * step) - top);
        if (launch->n_in > 1)
            less = mica__get_f64(dtype, origin->data, mica__offset_at(outer, x->spec.shape, origin->strides, row));
        mica__set_f64(dtype, launch->out->data, row, log(sum) + (top - less));
    }
    return MICA_OK;
}
