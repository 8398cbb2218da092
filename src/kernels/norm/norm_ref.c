/* Norms in double. */
#include "kernels/norm/norm.h"

#include <math.h>

#include "kernels/walk.h"

static mica_status norm_rows_ref(const mica__launch *launch, bool centred)
{
    const mica__tensor *x = &launch->in[0];
    const mica__attr_norm *attr = launch->attr;
    const mica_dtype dtype = mica__dtype_of(x), result = mica__dtype_of(launch->out);
    const int64_t rows = mica__row_count(&x->spec), n = mica__row_size(&x->spec), step = mica__row_stride(x);
    mica__walk walk;
    mica__walk_rows(&walk, x, 0);
    for (int64_t row = 0; row < rows; row++, mica__walk_next(&walk)) {
        const char *from = mica__element(x, walk.offset);
        char *to = mica__element(launch->out, row * n);
        double mean = 0, squares = 0;
        if (centred) {
            for (int64_t i = 0; i < n; i++) mean += mica__get_f64(dtype, from, i * step);
            mean /= (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            const double v = mica__get_f64(dtype, from, i * step) - mean;
            squares += v * v;
        }
        const double root = sqrt(squares / (double)n + attr->eps);
        for (int64_t i = 0; i < n; i++)
            mica__set_f64(result, to, i, (mica__get_f64(dtype, from, i * step) - mean) / root);
    }
    return MICA_OK;
}

mica_status mica__layer_norm_ref(const mica__launch *launch) { return norm_rows_ref(launch, true); }
mica_status mica__rms_norm_ref(const mica__launch *launch) { return norm_rows_ref(launch, false); }
