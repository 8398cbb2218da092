/* Take and scatter by blocks, on many threads. */
#include "kernels/index/index.h"
#include "kernels/walk.h"

typedef struct index_job {
    const mica__launch *launch;
    mica__index_sizes s;
    int64_t piece;        /* scatter: elements after the axis that one task owns     */
    bool plain;           /* the axes after the indexed axis are contiguous          */
    bool listed;          /* take: the indices are contiguous                        */
} index_job;

static inline int64_t index_of(const char *at, int64_t n)
{
    int64_t index;
    memcpy(&index, at, sizeof index);
    return index < 0 ? index + n : index;
}

/* Copies elements or rows of `size` bytes, with stride `step` in bytes, by a list of indices.
 * The hardware cannot predict their addresses: they are prefetched. */
static inline void take_list(char *to, const char *from, int64_t step, const char *index, int64_t count, int64_t n,
                             size_t size)
{
    enum { AHEAD = 16 };
    for (int64_t j = 0; j < count; j++, index += sizeof(int64_t), to += size) {
        if (j + AHEAD < count) __builtin_prefetch(from + index_of(index + AHEAD * sizeof(int64_t), n) * step);
        memcpy(to, from + index_of(index, n) * step, size);
    }
}

static void take_listed(char *to, const char *from, int64_t step, const char *index, int64_t count, int64_t n,
                        size_t size)
{
    switch (size) { /* with a constant size memcpy is inlined */
    case 1: take_list(to, from, step, index, count, n, 1); break;
    case 2: take_list(to, from, step, index, count, n, 2); break;
    case 4: take_list(to, from, step, index, count, n, 4); break;
    case 8: take_list(to, from, step, index, count, n, 8); break;
    default: take_list(to, from, step, index, count, n, size); break;
    }
}

/* Blocks of the result: (outer, index) pairs. */
static void take_blocks(const void *context, int64_t begin, int64_t end)
{
    const index_job *job = context;
    const mica__tensor *x = &job->launch->in[0], *indices = &job->launch->in[1], *out = job->launch->out;
    const mica__index_sizes s = job->s;
    const int after = s.axis + 1, inner_dims = x->spec.ndim - after;
    const size_t size = mica_dtype_size(mica__dtype_of(x));
    const int64_t *inner_out = out->strides + out->spec.ndim - inner_dims;
    const int64_t row = s.inner * (int64_t)size, step = x->strides[s.axis] * (int64_t)size;
    for (int64_t block = begin, n; block < end; block += n) {
        const int64_t first = block % s.count;
        n = mica__min_i64(end - block, s.count - first);
        const char *from = mica__element(x, mica__offset_at(s.axis, x->spec.shape, x->strides, block / s.count));
        char *to = out->data + block * row;
        if (job->plain && job->listed) {
            take_listed(to, from, step, indices->data + first * (int64_t)sizeof(int64_t), n, s.n, (size_t)row);
            continue;
        }
        mica__walk at;
        mica__walk_begin(&at, indices->spec.ndim, indices->spec.shape, indices->strides, first);
        for (int64_t j = 0; j < n; j++, mica__walk_next(&at), to += row) {
            const char *element = from + index_of(indices->data + at.offset * (int64_t)sizeof(int64_t), s.n) * step;
            if (job->plain) memcpy(to, element, (size_t)row);
            else mica__copy_block(size, inner_dims, x->spec.shape + after, to, inner_out, element, x->strides + after);
        }
    }
}

/* Are the axes from `first` on contiguous? */
static bool follow_each_other(const mica__tensor *t, int first)
{
    mica__spec rest = {.dtype = t->spec.dtype, .ndim = t->spec.ndim - first};
    memcpy(rest.shape, t->spec.shape + first, (size_t)rest.ndim * sizeof(int64_t));
    return mica__is_row_major(&rest, t->strides + first);
}

mica_status mica__take_cpu(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *indices = &launch->in[1];
    index_job job = {.launch = launch,
                     .s = mica__index_sizes_of(x, indices, ((const mica__attr_take *)launch->attr)->axis)};
    MICA_TRY(mica__check_indices(launch->pool,
                                 mica__index_caller_name(((const mica__attr_take *)launch->attr)->caller, "take"),
                                 indices, job.s.n));
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    job.plain = follow_each_other(x, job.s.axis + 1);
    job.listed = follow_each_other(indices, 0);
    mica__run_rows(launch->pool, job.s.outer * job.s.count, job.s.inner / 2 + 4, take_blocks, &job);
    return MICA_OK;
}

static void scatter_copy_rows(const void *context, int64_t begin, int64_t end)
{
    const mica__launch *launch = context;
    const mica__tensor *x = &launch->in[0];
    const int64_t n = mica__row_size(&x->spec);
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk))
        mica__copy_row(mica_dtype_size(mica__dtype_of(x)), n, mica__element(launch->out, row * n), 1,
                       mica__element(x, walk.offset), mica__row_stride(x));
}

/* A single f32 addition has the same bits as a double addition rounded to f32. */
static void scatter_add_row(mica_dtype dtype, int64_t n, char *to, const char *from)
{
    if (dtype == MICA_F32) {
        float *a = (float *)(void *)to;
        const float *b = (const float *)(const void *)from;
        for (int64_t i = 0; i < n; i++) a[i] += b[i];
    } else if (mica__is_float(dtype)) {
        for (int64_t i = 0; i < n; i++)
            mica__set_f64(dtype, to, i, mica__get_f64(dtype, to, i) + mica__get_f64(dtype, from, i));
    } else {
        for (int64_t i = 0; i < n; i++)
            mica__set_i64(dtype, to, i,
                          (int64_t)((uint64_t)mica__get_i64(dtype, to, i) + (uint64_t)mica__get_i64(dtype, from, i)));
    }
}

/* One task owns a piece of the elements after the axis. It applies all updates of the piece, in
 * their order. */
static void scatter_pieces(const void *context, int64_t begin, int64_t end)
{
    const index_job *job = context;
    const mica__tensor *indices = &job->launch->in[1], *updates = &job->launch->in[2], *out = job->launch->out;
    const mica__index_sizes s = job->s;
    const bool add = ((const mica__attr_scatter *)job->launch->attr)->add != 0;
    const mica_dtype dtype = mica__dtype_of(out);
    const size_t size = mica_dtype_size(dtype);
    const int index_dims = indices->spec.ndim, after = s.axis + index_dims, inner_dims = updates->spec.ndim - after;
    const int64_t pieces = (s.inner + job->piece - 1) / job->piece;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t outer = piece / pieces, first = piece % pieces * job->piece;
        const int64_t n = mica__min_i64(job->piece, s.inner - first);
        const int64_t outer_at = mica__offset_at(s.axis, updates->spec.shape, updates->strides, outer);
        mica__walk at, update;
        mica__walk_begin(&at, index_dims, indices->spec.shape, indices->strides, 0);
        mica__walk_begin(&update, index_dims, indices->spec.shape, updates->strides + s.axis, 0);
        for (int64_t j = 0; j < s.count; j++, mica__walk_next(&at), mica__walk_next(&update)) {
            const int64_t index = index_of(indices->data + at.offset * (int64_t)sizeof(int64_t), s.n);
            char *to = mica__element(out, (outer * s.n + index) * s.inner + first);
            mica__walk inner;
            mica__walk_begin(&inner, inner_dims, updates->spec.shape + after, updates->strides + after, first);
            const int64_t step = job->plain ? n : 1;
            for (int64_t i = 0; i < n; i += step, mica__walk_next(&inner)) {
                const char *from = mica__element(updates, outer_at + update.offset + inner.offset);
                if (add) scatter_add_row(dtype, step, to + i * (int64_t)size, from);
                else memcpy(to + i * (int64_t)size, from, (size_t)step * size);
            }
        }
    }
}

mica_status mica__scatter_cpu(const mica__launch *launch)
{
    const mica__tensor *x = &launch->in[0], *updates = &launch->in[2];
    index_job job = {.launch = launch,
                     .s = mica__index_sizes_of(x, &launch->in[1], ((const mica__attr_scatter *)launch->attr)->axis),
                     .piece = 256};
    MICA_TRY(mica__check_indices(launch->pool,
                                 mica__index_caller_name(((const mica__attr_scatter *)launch->attr)->caller, "scatter"),
                                 &launch->in[1], job.s.n));
    if (mica__spec_size(&x->spec) == 0) return MICA_OK;
    if (launch->out->data != x->data)
        mica__run_rows(launch->pool, mica__row_count(&x->spec), mica__row_size(&x->spec), scatter_copy_rows, launch);
    job.plain = follow_each_other(updates, updates->spec.ndim - (x->spec.ndim - job.s.axis - 1));
    const int64_t pieces = (job.s.inner + job.piece - 1) / job.piece;
    const int64_t work = job.s.count * mica__min_i64(job.s.inner, job.piece);
    mica__run_rows(launch->pool, job.s.outer * pieces, work, scatter_pieces, &job);
    return MICA_OK;
}
