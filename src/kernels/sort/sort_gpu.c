/* Sorting as dispatches (sort.metal). A row that fits into a block is one dispatch. If at most half
 * a block of results is wanted, the first elements of each block are sorted again until one block is
 * left; otherwise sorted blocks are merged in pairs. */
#include "kernels/sort/sort.h"

#include "kernels/common/gpu_view.h"

#include "kernels/sort/sort_params.h"

enum { SORT_BLOCK_LEAST = 64 };

typedef struct sort_gpu {
    const mica__gpu_launch *l;
    mica__gpu_list *list;
    const mica__gpu_shape *shape; /* m: the largest block                                */
    mica_sort_params p;
    int64_t rows;
    bool indices;
    int64_t keys[2], places[2]; /* two buffers in the workspace, used alternately        */
    int side;                   /* the buffer that has the current pairs; -1: none, read x */
} sort_gpu;

static void sort_dispatch(sort_gpu *job, const char *kernel, bool last)
{
    const mica__gpu_launch *l = job->l;
    const int from = job->side < 0 ? 1 : job->side, to = 1 - from;
    mica__gpu_dispatch *d = mica__gpu_add(job->list, "sort", kernel);
    mica__gpu_constant_uint(d, MICA_SORT_DTYPE, (uint32_t)l->in[0].spec.dtype);
    mica__gpu_constant_uint(d, MICA_SORT_ELEMENT_BYTES, (uint32_t)mica_dtype_size(mica__dtype_of(&l->in[0])));
    mica__gpu_constant_bool(d, MICA_SORT_DESCENDING, ((const mica__attr_sort *)l->attr)->descending != 0);
    mica__gpu_constant_bool(d, MICA_SORT_INDICES, job->indices);
    mica__gpu_constant_bool(d, MICA_SORT_FROM_X, job->side < 0);
    mica__gpu_constant_bool(d, MICA_SORT_TO_OUT, last);
    mica__gpu_operand(d, l, 0);
    mica__gpu_bind_workspace(d, job->keys[from]);
    mica__gpu_bind_workspace(d, job->places[from]);
    mica__gpu_bind_workspace(d, job->keys[to]);
    mica__gpu_bind_workspace(d, job->places[to]);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(job->list, d, &job->p, sizeof job->p);
    d->barrier = job->side >= 0;
    job->side = to;
    const uint32_t most = job->shape->simds * l->gpu->simd_width;
    if (job->p.width == 0) {
        const uint32_t half = job->p.block / 2, threads = half < most ? half : most;
        mica__gpu_grid(d, mica__gpu_parts(job->p.n, job->p.block), (uint32_t)job->rows, 1, threads, 1, 1);
    } else {
        mica__gpu_grid(d, mica__gpu_parts(job->p.n, most), (uint32_t)job->rows, 1, most, 1, 1);
    }
}

static uint32_t sort_block_for(const mica__gpu_shape *shape, uint32_t n)
{
    uint32_t block = SORT_BLOCK_LEAST;
    while (block < n && block < shape->m) block *= 2;
    return block;
}

static mica_status sort_lower(const mica__gpu_launch *l, mica__gpu_list *list, bool indices)
{
    const mica__tensor *x = &l->in[0];
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const mica__gpu_shape *shape = mica__gpu_pick(l->gpu, MICA__KNOB_SORT, NULL, NULL);
    if (!shape) return mica__gpu_refuse(list, "threadgroups too small");
    sort_gpu job = {
        .l = l, .list = list, .shape = shape, .rows = mica__row_count(&x->spec), .indices = indices, .side = -1};
    mica_sort_params *p = &job.p;
    *p = (mica_sort_params){.x = mica__gpu_rows(x),
                            .step = mica__row_stride(x),
                            .n = (uint32_t)mica__row_size(&x->spec),
                            .k = (uint32_t)mica__row_size(&l->out->spec)};
    const bool few = p->k <= shape->m / 2;
    const bool blocks = p->n > shape->m;
    for (int i = 0; i < 2 && blocks; i++) {
        const size_t count = (size_t)job.rows * p->n;
        job.keys[i] = mica__gpu_workspace(list, count * sizeof(uint64_t));
        job.places[i] = mica__gpu_workspace(list, count * sizeof(uint32_t));
    }
    for (;;) {
        p->block = sort_block_for(shape, p->n);
        const uint32_t parts = mica__gpu_parts(p->n, p->block), rest = p->n - (parts - 1) * p->block;
        p->keep = few && parts > 1 ? p->k : p->block;
        p->next = (parts - 1) * p->keep + (rest < p->keep ? rest : p->keep);
        sort_dispatch(&job, shape->m == 2048 ? "sort_block_2048" : "sort_block_1024", parts == 1);
        if (parts == 1) return MICA_OK;
        if (!few) break;
        p->n = p->next;
    }
    for (p->width = p->block; p->width < p->n; p->width *= 2)
        sort_dispatch(&job, "sort_merge", p->width >= p->n - p->width);
    return MICA_OK;
}

mica_status mica__sort_gpu(const mica__gpu_launch *l, mica__gpu_list *list) { return sort_lower(l, list, false); }
mica_status mica__argsort_gpu(const mica__gpu_launch *l, mica__gpu_list *list) { return sort_lower(l, list, true); }
