/* See update.h. */
#include "kernels/state/update.h"

#include <inttypes.h>

#include "kernels/attention/attention_kernels.h"

/* The part of the state that is written; it has the shape of the values. */
static mica_status update_part(const mica__launch *launch, mica__tensor *part)
{
    const int64_t axis = ((const mica__attr_axis *)launch->attr)->axis;
    const mica__tensor *values = &launch->in[1], *start = &launch->in[2], *out = launch->out;
    const int64_t n = values->spec.shape[axis], size = out->spec.shape[axis];
    const int64_t at = mica__get_i64(mica__dtype_of(start), start->data, 0);
    if (at < 0 || at > size - n)
        return mica__fail(MICA_ERR_INDEX,
                          "update: positions %" PRId64 " to %" PRId64 " of an axis of %" PRId64 " of the state", at,
                          (int64_t)((uint64_t)at + (uint64_t)n - 1), size);
    *part = *out;
    part->spec.shape[axis] = n;
    part->data = mica__element(out, at * out->strides[axis]);
    return MICA_OK;
}

static void update_row_any(const mica__tensor *to, int64_t to_at, const mica__tensor *from, int64_t from_at)
{
    const int64_t n = mica__row_size(&from->spec), to_step = mica__row_stride(to), step = mica__row_stride(from);
    for (int64_t i = 0; i < n; i++)
        mica__convert_element(mica__dtype_of(to), to->data, to_at + i * to_step, mica__dtype_of(from), from->data,
                              from_at + i * step);
}

mica_status mica__update_ref(const mica__launch *launch)
{
    const mica__tensor *values = &launch->in[1];
    mica__tensor part;
    MICA_TRY(update_part(launch, &part));
    if (mica__spec_size(&values->spec) == 0) return MICA_OK;
    const int outer = mica__outer_dims(&values->spec);
    for (int64_t row = 0; row < mica__row_count(&values->spec); row++)
        update_row_any(&part, mica__offset_at(outer, part.spec.shape, part.strides, row), values,
                       mica__offset_at(outer, values->spec.shape, values->strides, row));
    return MICA_OK;
}

typedef struct update_job {
    const mica__tensor *values;
    mica__tensor part;
} update_job;

static void update_rows(const void *context, int64_t begin, int64_t end)
{
    const update_job *job = context;
    const mica__tensor *from = job->values, *to = &job->part;
    const mica_dtype have = mica__dtype_of(from), want = mica__dtype_of(to);
    const int64_t n = mica__row_size(&from->spec);
    const mica__attention_variant *variant = mica__attention_best();
    mica__walk read, write;
    mica__walk_rows(&read, from, begin);
    mica__walk_rows(&write, to, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&read), mica__walk_next(&write)) {
        char *here = mica__element(to, write.offset);
        const char *there = mica__element(from, read.offset);
        if (have == want)
            mica__copy_row(mica_dtype_size(want), n, here, mica__row_stride(to), there, mica__row_stride(from));
        else if (have == MICA_F32 && (want == MICA_F16 || want == MICA_BF16) && mica__row_stride(from) == 1)
            variant->narrow(want, n, (const float *)(const void *)there, here);
        else update_row_any(to, write.offset, from, read.offset);
    }
}

mica_status mica__update_cpu(const mica__launch *launch)
{
    update_job job = {.values = &launch->in[1]};
    MICA_TRY(update_part(launch, &job.part));
    if (mica__spec_size(&job.values->spec) == 0) return MICA_OK;
    mica__run_rows(launch->pool, mica__row_count(&job.values->spec), 2 * mica__row_size(&job.values->spec), update_rows,
                   &job);
    return MICA_OK;
}
