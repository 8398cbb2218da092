/* Reference of matmul: plain loops. */
#include "kernels/matmul/matmul.h"

#include "kernels/walk.h"

static void matmul_element_ref(const mica__launch *launch, const char *a, const char *b, int64_t index)
{
    const mica__tensor *x = &launch->in[0], *y = &launch->in[1];
    const int last = x->spec.ndim - 1;
    const int64_t k = x->spec.shape[last], a_step = x->strides[last], b_step = y->strides[last - 1];
    /* three dtypes: operands may be narrower than the result */
    const mica_dtype dtype = mica__dtype_of(launch->out), dtype_a = mica__dtype_of(x), dtype_b = mica__dtype_of(y);
    if (mica__is_float(dtype)) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum += mica__get_f64(dtype_a, a, i * a_step) * mica__get_f64(dtype_b, b, i * b_step);
        mica__set_f64(dtype, launch->out->data, index, sum);
        return;
    }
    uint64_t sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += (uint64_t)mica__get_i64(dtype_a, a, i * a_step) * (uint64_t)mica__get_i64(dtype_b, b, i * b_step);
    mica__set_i64(dtype, launch->out->data, index, (int64_t)sum);
}

mica_status mica__matmul_ref(const mica__launch *launch)
{
    const mica__tensor *a = &launch->in[0], *b = &launch->in[1];
    const int last = a->spec.ndim - 1, outer = a->spec.ndim - 2;
    const int64_t batches = mica__product(a->spec.shape, outer);
    const int64_t m = a->spec.shape[outer], n = b->spec.shape[last];
    for (int64_t batch = 0; batch < batches; batch++) {
        const int64_t a_at = mica__offset_at(outer, a->spec.shape, a->strides, batch);
        const int64_t b_at = mica__offset_at(outer, b->spec.shape, b->strides, batch);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                matmul_element_ref(launch, mica__element(a, a_at + i * a->strides[outer]),
                                   mica__element(b, b_at + j * b->strides[last]), (batch * m + i) * n + j);
    }
    return MICA_OK;
}
