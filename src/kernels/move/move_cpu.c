/* Moves by rows and blocks, on many threads. */
#include "kernels/move/move.h"
#include "kernels/walk.h"

static void pad_rows(const void *context, int64_t begin, int64_t end)
{
    const mica__launch *launch = context;
    const mica__tensor *x = &launch->in[0], *out = launch->out;
    const mica__attr_pad *attr = launch->attr;
    const size_t size = mica_dtype_size(mica__dtype_of(x));
    const int last = x->spec.ndim - 1;
    const int64_t n = out->spec.shape[last], low = attr->low[last], every = attr->interior[last] + 1;
    /* Elements first ... stop-1 of a row of x have a place in the row of out. */
    const int64_t first = low < 0 ? (-low + every - 1) / every : 0;
    const int64_t stop = n > low ? mica__min_i64(x->spec.shape[last], (n - low - 1) / every + 1) : 0;
    const int64_t unit[MICA_MAX_DIMS] = {0};
    char value[8];
    mica__pad_value(launch, value);
    mica__walk walk;
    mica__walk_begin(&walk, last, out->spec.shape, unit, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk)) {
        int64_t offset = 0;
        bool inside = first < stop;
        for (int d = 0; d < last && inside; d++) {
            const int64_t at = walk.index[d] - attr->low[d], step = attr->interior[d] + 1;
            inside = at >= 0 && at % step == 0 && at / step < x->spec.shape[d];
            offset += at / step * x->strides[d];
        }
        char *to = mica__element(out, row * n);
        if (!inside) {
            mica__fill_row(size, n, to, value);
            continue;
        }
        const int64_t left = low + first * every, right = low + (stop - 1) * every + 1;
        const int64_t width = (int64_t)size;
        if (every > 1) mica__fill_row(size, right - left, to + left * width, value);
        mica__fill_row(size, left, to, value);
        mica__fill_row(size, n - right, to + right * width, value);
        mica__copy_row(size, stop - first, to + left * width, every,
                       mica__element(x, offset + first * x->strides[last]), x->strides[last]);
    }
}

mica_status mica__pad_cpu(const mica__launch *launch)
{
    const mica__spec *spec = &launch->out->spec;
    if (spec->ndim == 0) return mica__pad_ref(launch);
    if (mica__spec_size(spec) == 0) return MICA_OK;
    mica__run_rows(launch->pool, mica__row_count(spec), mica__row_size(spec), pad_rows, launch);
    return MICA_OK;
}

/* Numbered by input, then by what is before the axis. */
static void concat_blocks(const void *context, int64_t begin, int64_t end)
{
    const mica__launch *launch = context;
    const mica__tensor *out = launch->out;
    const int axis = (int)((const mica__attr_axis *)launch->attr)->axis, ndim = out->spec.ndim;
    const int64_t outer = mica__product(out->spec.shape, axis);
    int64_t i = 0, first = 0;
    for (int64_t block = begin; block < end; block++) {
        for (; i < block / outer; i++) first += launch->in[i].spec.shape[axis];
        const mica__tensor *x = &launch->in[i];
        const int64_t from = mica__offset_at(axis, x->spec.shape, x->strides, block % outer);
        const int64_t to = mica__offset_at(axis, x->spec.shape, out->strides, block % outer) + first * out->strides[axis];
        mica__copy_block(mica_dtype_size(mica__dtype_of(out)), ndim - axis, x->spec.shape + axis, mica__element(out, to),
                         out->strides + axis, mica__element(x, from), x->strides + axis);
    }
}

mica_status mica__concat_cpu(const mica__launch *launch)
{
    const mica__spec *spec = &launch->out->spec;
    if (mica__spec_size(spec) == 0) return MICA_OK;
    const int64_t outer = mica__product(spec->shape, (int)((const mica__attr_axis *)launch->attr)->axis);
    const int64_t blocks = outer * launch->n_in;
    mica__run_rows(launch->pool, blocks, mica__spec_size(spec) / blocks + 16, concat_blocks, launch);
    return MICA_OK;
}

mica_status mica__unwindow_cpu(const mica__launch *launch)
{
    const int64_t work = 8 + 4 * ((const mica__attr_window *)launch->attr)->size;
    mica__run_rows(launch->pool, mica__spec_size(&launch->out->spec), work, mica__unwindow_elements, launch);
    return MICA_OK;
}
