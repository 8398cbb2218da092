/* Argmax and argmin by order keys. */
#include "kernels/argreduce/argreduce.h"

#include "kernels/order.h"
#include "kernels/walk.h"

static mica_status argreduce_rows_ref(const mica__launch *launch, bool largest)
{
    const mica__tensor *x = &launch->in[0];
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t rows = mica__row_count(&x->spec), n = mica__row_size(&x->spec), step = mica__row_stride(x);
    mica__walk walk;
    mica__walk_rows(&walk, x, 0);
    for (int64_t row = 0; row < rows; row++, mica__walk_next(&walk)) {
        const char *from = mica__element(x, walk.offset);
        uint64_t best = 0;
        int64_t where = 0;
        for (int64_t i = 0; i < n; i++) {
            uint64_t key = mica__order_key(dtype, from, i * step);
            if (!largest) key = mica__is_float(dtype) && key == MICA__KEY_NAN ? UINT64_MAX : ~key;
            if (i == 0 || key > best) {
                best = key;
                where = i;
            }
        }
        mica__set_i64(mica__dtype_of(launch->out), launch->out->data, row, where);
    }
    return MICA_OK;
}

mica_status mica__argmax_ref(const mica__launch *launch) { return argreduce_rows_ref(launch, true); }
mica_status mica__argmin_ref(const mica__launch *launch) { return argreduce_rows_ref(launch, false); }
