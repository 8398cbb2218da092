/* Synapses as dispatches (synapses.metal). Gradients of x and of the parameters are two, side by side. */
#include "kernels/common/gpu_view.h"
#include "kernels/index/index_gpu.h"
#include "kernels/synapses/synapses.h"

#include "kernels/synapses/synapses_params.h"

static mica_plane plane_of(const mica__tensor *t, int row, int col)
{
    return (mica_plane){-mica__gpu_low(t), t->strides[row], t->strides[col]};
}

/* Of one launch. */
typedef struct synapses_gpu_job {
    mica_synapses_params p;
    bool has_source;
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
    *job = (synapses_gpu_job){.has_source = l->n_in > (gradient ? 6u : 5u)};
    *p = (mica_synapses_params){.x = plane_of(&in[0], 0, 1),
                                .n = (uint32_t)in[0].spec.shape[0],
                                .sources = (uint32_t)in[0].spec.shape[1],
                                .rows = (uint32_t)in[1].spec.shape[0],
                                .cols = (uint32_t)in[1].spec.shape[1]};
    for (int i = 0; i < MICA__SYNAPSE_PARAMS; i++) p->param[i] = plane_of(&in[1 + i], 0, 1);
    if (job->has_source) p->source = plane_of(&in[5], 0, 1);
    if (gradient) p->ct = plane_of(ct, 0, 2), p->ct_half = ct->strides[1];
    const synapses_work work = {p->n, p->cols, mica__gpu_cores(l->gpu)};
    job->shape = mica__gpu_pick(l->gpu, MICA__KNOB_SYNAPSES, lanes_for_all, &work);
    return job->shape ? NULL : "threadgroups too small";
}

static mica__gpu_dispatch *synapses_add(const mica__gpu_launch *l, mica__gpu_list *list, const synapses_gpu_job *job,
                                        const char *kernel)
{
    mica__gpu_dispatch *d = mica__gpu_add(list, "synapses", kernel);
    mica__gpu_constant_uint(d, 0, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_bool(d, 1, job->has_source);
    mica__gpu_constant_int(d, 2, (int32_t)job->shape->m);
    for (uint32_t i = 0; i < 5; i++) mica__gpu_operand(d, l, i);
    mica__gpu_operand(d, l, job->has_source ? 5 : 0);
    return d;
}

static void synapses_end(const mica__gpu_launch *l, mica__gpu_list *list, const synapses_gpu_job *job,
                         mica__gpu_dispatch *d, int64_t groups)
{
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &job->p, sizeof job->p);
    mica__gpu_grid(d, (uint32_t)groups, 1, 1, l->gpu->simd_width, job->shape->simds, 1);
}

mica_status mica__synapses_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    synapses_gpu_job job;
    const char *refused = synapses_begin(l, false, &job);
    if (refused) return mica__gpu_refuse(list, refused);
    const mica_synapses_params *p = &job.p;
    if (job.has_source) mica__gpu_check_indices(l, list, 5, p->sources, false);
    mica__gpu_dispatch *d = synapses_add(l, list, &job, "synapses_forward");
    synapses_end(l, list, &job, d,
                 mica__gpu_parts((int64_t)mica__gpu_parts(p->n, job.shape->m) * p->cols, l->gpu->simd_width));
    return MICA_OK;
}

mica_status mica__synapses_grad_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    synapses_gpu_job job;
    const char *refused = synapses_begin(l, true, &job);
    if (refused) return mica__gpu_refuse(list, refused);
    const mica_synapses_params *p = &job.p;
    const int64_t listened = (int64_t)mica__gpu_parts(p->n, job.shape->m) * p->sources,
                  synapses = (int64_t)p->rows * p->cols;
    if (job.has_source) mica__gpu_check_indices(l, list, 5, p->sources, false);
    if (synapses > 0) {
        mica__gpu_dispatch *d = synapses_add(l, list, &job, "synapses_backward");
        mica__gpu_operand(d, l, l->n_in - 1);
        synapses_end(l, list, &job, d, mica__gpu_parts(synapses, l->gpu->simd_width));
    }
    if (listened > 0) {
        mica__gpu_dispatch *d = synapses_add(l, list, &job, "synapses_heard");
        mica__gpu_operand(d, l, l->n_in - 1);
        synapses_end(l, list, &job, d, mica__gpu_parts(listened, job.shape->simds));
    }
    return MICA_OK;
}
