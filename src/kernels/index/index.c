/* The common part of take and scatter: the check of the indices. */
#include "kernels/index/index.h"

#include <stdatomic.h>

#include "kernels/walk.h"

typedef struct index_check {
    const mica__tensor *indices;
    int64_t n;
    _Atomic int64_t *first_bad; /* the smallest position seen so far */
} index_check;

static int64_t index_load(const mica__tensor *indices, int64_t offset)
{
    int64_t value;
    memcpy(&value, indices->data + offset * (int64_t)sizeof value, sizeof value);
    return value;
}

static void index_check_range(const void *context, int64_t begin, int64_t end)
{
    const index_check *check = context;
    const mica__spec *spec = &check->indices->spec;
    if (mica__is_row_major(spec, check->indices->strides)) { /* no branches: bad indices are rare */
        uint64_t bad = 0;
        for (int64_t i = begin; i < end; i++)
            bad |= (uint64_t)index_load(check->indices, i) + (uint64_t)check->n >= 2 * (uint64_t)check->n;
        if (!bad) return;
    }
    mica__walk walk;
    mica__walk_begin(&walk, spec->ndim, spec->shape, check->indices->strides, begin);
    for (int64_t i = begin; i < end; i++, mica__walk_next(&walk)) {
        const int64_t value = index_load(check->indices, walk.offset);
        if (value >= -check->n && value < check->n) continue;
        int64_t first = atomic_load(check->first_bad);
        while (i < first && !atomic_compare_exchange_weak(check->first_bad, &first, i)) {
        }
        return;
    }
}

mica_status mica__check_indices(mica__pool *pool, const char *op, const mica__tensor *indices, int64_t n)
{
    const int64_t count = mica__spec_size(&indices->spec);
    _Atomic int64_t first_bad;
    atomic_init(&first_bad, count);
    const index_check check = {indices, n, &first_bad};
    mica__run_rows(pool, count, 2, index_check_range, &check);
    const int64_t bad = atomic_load(&first_bad);
    if (bad == count) return MICA_OK;
    const int64_t offset = mica__offset_at(indices->spec.ndim, indices->spec.shape, indices->strides, bad);
    return mica__fail(MICA_ERR_INDEX, "%s: index %lld at position %lld is outside -%lld ... %lld", op,
                      (long long)index_load(indices, offset), (long long)bad, (long long)n, (long long)(n - 1));
}

mica__index_sizes mica__index_sizes_of(const mica__tensor *x, const mica__tensor *indices, int64_t axis)
{
    const int64_t *shape = x->spec.shape;
    return (mica__index_sizes){.axis = (int)axis,
                               .outer = mica__product(shape, (int)axis),
                               .n = shape[axis],
                               .inner = mica__product(shape + axis + 1, x->spec.ndim - (int)axis - 1),
                               .count = mica__spec_size(&indices->spec)};
}

int64_t mica__index_at(const mica__tensor *indices, int64_t which, int64_t n)
{
    const int64_t value =
        index_load(indices, mica__offset_at(indices->spec.ndim, indices->spec.shape, indices->strides, which));
    return value < 0 ? value + n : value;
}
