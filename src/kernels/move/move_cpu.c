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
    /* Elements first ... stop-1 of a row of x are copied to the row of out. */
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

/* Blocks are numbered by input, then by the index of the axes before the concatenated one. */
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
        const int64_t to =
            mica__offset_at(axis, x->spec.shape, out->strides, block % outer) + first * out->strides[axis];
        mica__copy_block(mica_dtype_size(mica__dtype_of(out)), ndim - axis, x->spec.shape + axis,
                         mica__element(out, to), out->strides + axis, mica__element(x, from), x->strides + axis);
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

enum { UNWINDOW_CHUNK = 256 };

/* The windowed axis is not the last axis of the result: adds whole lines. */
static void unwindow_add_lines(const mica__launch *launch, int64_t offset, int64_t at, int64_t first, int64_t n,
                               double *sums)
{
    const mica__tensor *x = &launch->in[0];
    const mica__attr_window *w = launch->attr;
    const int last = x->spec.ndim - 1;
    const int64_t step = x->strides[last - 1];
    double line[UNWINDOW_CHUNK];
    for (int64_t t = 0; t < w->size; t++) {
        const int64_t start = at - t * w->dilation, p = start / w->stride;
        if (start < 0 || start % w->stride || p >= x->spec.shape[w->axis]) continue;
        const int64_t from = offset + p * x->strides[w->axis] + t * x->strides[last] + first * step;
        mica__load_f64(mica__dtype_of(x), n, line, mica__element(x, from), step);
        for (int64_t i = 0; i < n; i++) sums[i] += line[i];
    }
}

/* The windowed axis is the last: for each position in the window, adds all windows that overlap
 * first ... first+n-1. */
static void unwindow_add_places(const mica__launch *launch, int64_t offset, int64_t first, int64_t n, double *sums)
{
    const mica__tensor *x = &launch->in[0];
    const mica__attr_window *w = launch->attr;
    const mica_dtype dtype = mica__dtype_of(x);
    const int last = x->spec.ndim - 1;
    for (int64_t t = 0; t < w->size; t++) {
        const int64_t reach = first - t * w->dilation;
        int64_t p = reach > 0 ? (reach + w->stride - 1) / w->stride : 0;
        int64_t at = p * w->stride - reach, from = offset + p * x->strides[w->axis] + t * x->strides[last];
        for (; p < x->spec.shape[w->axis] && at < n; p++, at += w->stride, from += x->strides[w->axis])
            sums[at] += dtype == MICA_F32 ? (double)((const float *)(const void *)x->data)[from]
                                          : mica__get_f64(dtype, x->data, from);
    }
}

static void unwindow_rows(const void *context, int64_t begin, int64_t end)
{
    const mica__launch *launch = context;
    const mica__tensor *x = &launch->in[0], *out = launch->out;
    const mica__attr_window *w = launch->attr;
    const int last = out->spec.ndim - 1;
    const int64_t n = out->spec.shape[last];
    int64_t strides[MICA_MAX_DIMS];
    for (int d = 0; d < last; d++) strides[d] = d == w->axis ? 0 : x->strides[d];
    mica__walk walk;
    mica__walk_begin(&walk, last, out->spec.shape, strides, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk))
        for (int64_t first = 0; first < n; first += UNWINDOW_CHUNK) {
            double sums[UNWINDOW_CHUNK] = {0};
            const int64_t part = mica__min_i64(UNWINDOW_CHUNK, n - first);
            if (w->axis == last) unwindow_add_places(launch, walk.offset, first, part, sums);
            else unwindow_add_lines(launch, walk.offset, walk.index[w->axis], first, part, sums);
            mica__store_f64(mica__dtype_of(out), part, mica__element(out, row * n + first), 1, sums);
        }
}

mica_status mica__unwindow_cpu(const mica__launch *launch)
{
    const mica__spec *spec = &launch->out->spec;
    const int64_t work = 4 + 2 * ((const mica__attr_window *)launch->attr)->size;
    if (mica__spec_size(spec) == 0) return MICA_OK;
    if (mica__is_float(mica__dtype_of(launch->out)))
        mica__run_rows(launch->pool, mica__row_count(spec), work * mica__row_size(spec), unwindow_rows, launch);
    else mica__run_rows(launch->pool, mica__spec_size(spec), 4 * work, mica__unwindow_elements, launch);
    return MICA_OK;
}
