/* Softmax in double. */
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
