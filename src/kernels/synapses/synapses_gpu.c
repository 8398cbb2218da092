/* Synapses as dispatches (synapses.metal). The gradients of x and of the parameters are two independent
 * dispatches. */
#include "kernels/common/gpu_view.h"
#include "kernels/synapses/synapses.h"

#include "kernels/synapses/synapses_params.h"

/* col < 0: there is no such axis. */
static mica_plane plane_of(const mica__tensor *t, int row, int col)
{
    return (mica_plane){-mica__gpu_low(t), t->strides[row], col < 0 ? 0 : t->strides[col]};
}

typedef struct synapses_gpu_job {
    mica_synapses_params p;
    bool listed;
    const mica__gpu_shape *shape;
} synapses_gpu_job;

typedef struct synapses_work {
    int64_t n, cols, cores;
} synapses_work;

static bool lanes_for_all(const mica__gpu_shape *s, const void *work)
{
    const synapses_work *w = work;
    return (w->n + s->m - 1) / s->m * w->cols >= 64 * w->cores;
}

static const char *synapses_begin(const mica__gpu_launch *l, bool gradient, synapses_gpu_job *job)
{
    const mica__tensor *in = l->in, *ct = &in[l->n_in - 1];
    mica_synapses_params *p = &job->p;
    if (mica__gpu_has_f64(l)) return "Metal has no f64";
    if (!mica__gpu_counts(l)) return "more than 2^31 elements";
    *job = (synapses_gpu_job){.listed = l->n_in > (gradient ? 6u : 5u)};
    *p = (mica_synapses_params){.x = plane_of(&in[0], 0, 1),
                                .n = (uint32_t)in[0].spec.shape[0],
                                .sources = (uint32_t)in[0].spec.shape[1],
                                .rows = (uint32_t)in[1].spec.shape[0],
                                .cols = (uint32_t)(job->listed ? in[6].spec.shape[0] - 1 : in[1].spec.shape[1])};
    for (int i = 0; i < MICA__SYNAPSE_PARAMS; i++) p->param[i] = plane_of(&in[1 + i], 0, job->listed ? -1 : 1);
    if (job->listed) p->source = plane_of(&in[5], 0, -1), p->first = plane_of(&in[6], 0, -1);
    if (gradient) p->ct = plane_of(ct, 0, 2), p->ct_half = ct->strides[1];
    const synapses_work work = {p->n, p->cols, mica__gpu_cores(l->gpu)};
    job->shape = mica__gpu_pick(l->gpu, MICA__KNOB_SYNAPSES, lanes_for_all, &work);
    return job->shape ? NULL : "threadgroups too small";
}

static mica__gpu_dispatch *synapses_add(const mica__gpu_launch *l, mica__gpu_list *list, const synapses_gpu_job *job,
                                        const char *kernel)
{
    mica__gpu_dispatch *d = mica__gpu_add(list, "synapses", kernel);
    mica__gpu_constant_uint(d, MICA_SYNAPSES_DTYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_bool(d, MICA_SYNAPSES_LISTED, job->listed);
    mica__gpu_constant_int(d, MICA_SYNAPSES_TOGETHER, (int32_t)job->shape->m);
    for (uint32_t i = 0; i < 7; i++) mica__gpu_operand(d, l, i < 5 || job->listed ? i : 0);
    return d;
}

static mica__gpu_dispatch *synapses_add_gradient(const mica__gpu_launch *l, mica__gpu_list *list,
                                                 const synapses_gpu_job *job, const char *kernel)
{
    mica__gpu_dispatch *d = synapses_add(l, list, job, kernel);
    mica__gpu_operand(d, l, l->n_in - 1);
    return d;
}

static void synapses_end(const mica__gpu_launch *l, mica__gpu_list *list, const synapses_gpu_job *job,
                         mica__gpu_dispatch *d, int64_t groups, int64_t groups_y, uint32_t simds)
{
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &job->p, sizeof job->p);
    mica__gpu_grid(d, (uint32_t)groups, (uint32_t)groups_y, 1, l->gpu->simd_width, simds, 1);
}

static void check_lists_gpu(const mica__gpu_launch *l, mica__gpu_list *list, const synapses_gpu_job *job)
{
    if (!job->listed) return;
    mica__gpu_dispatch *d = mica__gpu_add(list, "synapses", "synapses_check");
    mica__gpu_constant_bool(d, MICA_SYNAPSES_LISTED, true);
    mica__gpu_operand(d, l, 5);
    mica__gpu_operand(d, l, 6);
    mica__gpu_bind_fault(d);
    mica__gpu_params(list, d, &job->p, sizeof job->p);
    mica__gpu_grid(d, 1, 1, 1, mica__gpu_row_threads(l->gpu, (int64_t)job->p.rows + job->p.cols + 1), 1, 1);
}

mica_status mica__synapses_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    synapses_gpu_job job;
    const char *refused = synapses_begin(l, false, &job);
    if (refused) return mica__gpu_refuse(list, refused);
    const mica_synapses_params *p = &job.p;
    check_lists_gpu(l, list, &job);
    mica__gpu_dispatch *d = synapses_add(l, list, &job, "synapses_forward");
    synapses_end(l, list, &job, d,
                 mica__gpu_parts((int64_t)mica__gpu_parts(p->n, job.shape->m) * p->cols, l->gpu->simd_width), 1,
                 job.shape->simds);
    return MICA_OK;
}

mica_status mica__synapses_grad_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    synapses_gpu_job job;
    const char *refused = synapses_begin(l, true, &job);
    if (refused) return mica__gpu_refuse(list, refused);
    const mica_synapses_params *p = &job.p;
    const int64_t synapses = mica__spec_size(&l->in[1].spec), width = l->gpu->simd_width;
    const uint32_t simds = job.shape->simds;
    check_lists_gpu(l, list, &job);
    if (synapses > 0)
        synapses_end(l, list, &job, synapses_add_gradient(l, list, &job, "synapses_backward"),
                     mica__gpu_parts(synapses, width), 1, simds);
    if (p->n == 0 || p->sources == 0) return MICA_OK;
    if (job.listed)
        synapses_end(l, list, &job, synapses_add_gradient(l, list, &job, "synapses_lists_backward_x"),
                     mica__gpu_parts(p->n, width), mica__gpu_parts(p->sources, SYNAPSES_SOURCES),
                     simds < SYNAPSES_LISTS_SIMDS ? simds : SYNAPSES_LISTS_SIMDS);
    else
        synapses_end(l, list, &job, synapses_add_gradient(l, list, &job, "synapses_backward_x"),
                     mica__gpu_parts((int64_t)mica__gpu_parts(p->n, job.shape->m) * p->sources, simds), 1, simds);
    return MICA_OK;
}
