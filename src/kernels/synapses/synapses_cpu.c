/* Synapses in f32: chooses the variant, splits the work into tasks, and sums their results. */
#include <string.h>

#include "base/cpu.h"
#include "kernels/synapses/synapses.h"
#include "kernels/walk.h"

#define MICA_SYNAPSES(name, needs)                                                            \
    mica__synapses_kernel mica__synapses_forward_##name, mica__synapses_lists_forward_##name; \
    mica__synapses_grad_kernel mica__synapses_backward_##name;                                \
    mica__synapses_lists_grad_kernel mica__synapses_lists_backward_##name;
#include "kernels/synapses/synapses.def"
#undef MICA_SYNAPSES

typedef struct synapses_variant {
    unsigned needs;
    mica__synapses_kernel *forward, *lists_forward;
    mica__synapses_grad_kernel *backward;
    mica__synapses_lists_grad_kernel *lists_backward;
} synapses_variant;

static const synapses_variant synapses_table[] = {
#define MICA_SYNAPSES(name, needs)                                                                              \
    {needs, mica__synapses_forward_##name, mica__synapses_lists_forward_##name, mica__synapses_backward_##name, \
     mica__synapses_lists_backward_##name},
#include "kernels/synapses/synapses.def"
#undef MICA_SYNAPSES
};

static const synapses_variant *synapses_best(void)
{
    const unsigned have = mica__cpu_features();
    const synapses_variant *best = &synapses_table[0];
    for (size_t i = 0; i < sizeof synapses_table / sizeof *synapses_table; i++)
        if ((synapses_table[i].needs & ~have) == 0) best = &synapses_table[i];
    return best;
}

static bool last_axis_plain(const mica__tensor *t) { return mica__row_size(&t->spec) <= 1 || mica__row_stride(t) == 1; }

enum { BLOCK_INPUTS = 5, LISTS_INPUTS = 7 };

/* Can the kernels read all operands? */
static bool synapses_fit(const mica__launch *launch, bool listed)
{
    for (uint32_t i = 0; i < BLOCK_INPUTS; i++)
        if (mica__dtype_of(&launch->in[i]) != MICA_F32 || !last_axis_plain(&launch->in[i])) return false;
    for (uint32_t i = BLOCK_INPUTS; listed && i < LISTS_INPUTS; i++)
        if (!last_axis_plain(&launch->in[i])) return false;
    return true;
}

/* Valid lists are the usual case; they are checked by compares without branches. */
static mica_status check_lists(const mica__launch *launch, const mica__synapses *j)
{
    bool wrong = j->first[0] != 0 || j->first[j->cols] != j->synapses;
    for (int64_t i = 0; i < j->synapses; i++) wrong |= (uint32_t)j->source[i] >= (uint64_t)j->sources;
    for (int64_t c = 0; c < j->cols; c++) wrong |= j->first[c] > j->first[c + 1];
    return wrong ? mica__synapses_check(launch) : MICA_OK;
}

static mica__synapses synapses_job(const mica__launch *launch, bool listed)
{
    const mica__tensor *in = launch->in;
    mica__synapses j = {.x = (const float *)(const void *)in[0].data,
                        .x_row = in[0].strides[0],
                        .sources = in[0].spec.shape[1],
                        .synapses = mica__spec_size(&in[1].spec)};
    for (int i = 0; i < MICA__SYNAPSE_PARAMS; i++) {
        j.param[i] = (const float *)(const void *)in[1 + i].data;
        j.param_row[i] = listed ? 0 : in[1 + i].strides[0];
    }
    j.rows = listed ? 0 : in[1].spec.shape[0];
    j.cols = listed ? in[6].spec.shape[0] - 1 : in[1].spec.shape[1];
    if (listed) {
        j.source = (const int32_t *)(const void *)in[5].data;
        j.first = (const int32_t *)(const void *)in[6].data;
    }
    return j;
}

typedef struct synapses_run {
    mica__synapses j;
    const synapses_variant *variant;
    int64_t n, part;            /* number of x, in total and in one part                 */
    float *params;              /* parameter gradients of each part                      */
} synapses_run;

/* x of a task. Block: a group of the kernel. Lists: a whole group, which shares more loads, if that
 * gives work to all threads; otherwise half a group. */
enum { TASK_BLOCK_X = 8, TASK_LISTS_X = 16 };

static int64_t task_x(const mica__launch *launch, bool listed)
{
    const int64_t n = launch->in[0].spec.shape[0];
    if (!listed) return TASK_BLOCK_X;
    return n >= 2 * TASK_LISTS_X * mica__pool_threads(launch->pool) ? 2 * TASK_LISTS_X : TASK_LISTS_X;
}

static void forward_groups(const void *context, int64_t begin, int64_t end)
{
    const synapses_run *r = context;
    mica__synapses_kernel *forward = r->j.source ? r->variant->lists_forward : r->variant->forward;
    forward(&r->j, begin * r->part, mica__min_i64(end * r->part, r->n));
}

mica_status mica__synapses_cpu(const mica__launch *launch)
{
    const bool listed = launch->n_in == LISTS_INPUTS;
    if (!synapses_fit(launch, listed)) return mica__synapses_ref(launch);
    synapses_run r = {.j = synapses_job(launch, listed),
                      .variant = synapses_best(),
                      .n = launch->in[0].spec.shape[0],
                      .part = task_x(launch, listed)};
    r.j.y = (float *)(void *)launch->out->data;
    if (listed) MICA_TRY(check_lists(launch, &r.j));
    mica__run_rows(launch->pool, (r.n + r.part - 1) / r.part, 4 * r.part * mica__max_i64(r.j.synapses, r.j.cols),
                   forward_groups, &r);
    return MICA_OK;
}

/* -------------------------------------------------------------- gradients -- */

/* Lists: the number of parts of x that are summed separately. Each has enough work for a task. The number
 * depends on the shape only, so that the bits do not depend on the number of threads. */
static int64_t part_count(const mica__tensor *in, bool listed)
{
    enum { WORK = 8192, MOST = 16 };
    const int64_t n = in[0].spec.shape[0], each = mica__spec_size(&in[1].spec);
    if (!listed || each == 0) return 1;
    return mica__max_i64(1, mica__min_i64(mica__min_i64(MOST, n / TASK_LISTS_X), n * mica__min_i64(each, WORK) / WORK));
}

size_t mica__synapses_grad_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)attr, (void)out;
    const int64_t parts = part_count(in, n_in == LISTS_INPUTS + 1), each = mica__spec_size(&in[1].spec);
    return parts > 1 ? (size_t)(parts * MICA__SYNAPSE_PARAMS * each) * sizeof(float) : 0;
}

static void backward_parts(const void *context, int64_t begin, int64_t end)
{
    const synapses_run *r = context;
    const int64_t each = MICA__SYNAPSE_PARAMS * r->j.synapses;
    for (int64_t p = begin; p < end; p++)
        r->variant->lists_backward(&r->j, mica__min_i64(p * r->part, r->n), mica__min_i64((p + 1) * r->part, r->n),
                                   r->params + p * each);
}

static void backward_rows(const void *context, int64_t begin, int64_t end)
{
    const synapses_run *r = context;
    r->variant->backward(&r->j, r->n, begin, end, r->params);
}

mica_status mica__synapses_grad_cpu(const mica__launch *launch)
{
    const bool listed = launch->n_in == LISTS_INPUTS + 1;
    const mica__tensor *ct = &launch->in[launch->n_in - 1];
    if (!synapses_fit(launch, listed) || mica__dtype_of(ct) != MICA_F32 || !last_axis_plain(ct))
        return mica__synapses_grad_ref(launch);
    synapses_run r = {.j = synapses_job(launch, listed), .variant = synapses_best(), .n = ct->spec.shape[0]};
    r.j.ct = (const float *)(const void *)ct->data;
    r.j.ct_row = ct->strides[0];
    r.j.ct_half = ct->strides[1];
    r.j.dx = (float *)(void *)launch->out->data;
    if (listed) MICA_TRY(check_lists(launch, &r.j));
    const int64_t each = MICA__SYNAPSE_PARAMS * r.j.synapses, size = mica__spec_size(&launch->out->spec);
    float *params = r.j.dx + r.n * r.j.sources;
    if (size == 0) return MICA_OK;
    if (r.n == 0 || r.j.synapses == 0) { /* no input reaches a unit: all gradients are 0 */
        memset(launch->out->data, 0, (size_t)size * sizeof *params);
        return MICA_OK;
    }
    int64_t parts = part_count(launch->in, listed);
    r.part = (r.n + parts * TASK_LISTS_X - 1) / (parts * TASK_LISTS_X) * TASK_LISTS_X;
    parts = (r.n + r.part - 1) / r.part; /* no part is empty */
    r.params = parts > 1 ? launch->workspace : params;
    if (!listed) mica__run_rows(launch->pool, r.j.rows, 8 * r.n * r.j.cols, backward_rows, &r);
    else mica__run_rows(launch->pool, parts, 8 * r.part * each, backward_parts, &r);
    if (parts == 1) return MICA_OK;
    memcpy(params, r.params, (size_t)each * sizeof *params);
    for (int64_t p = 1; p < parts; p++)
        for (int64_t i = 0; i < each; i++) params[i] += r.params[p * each + i];
    return MICA_OK;
}
