/* Which way an f32 product takes, and how it is cut for threads. The cut may
 * depend on their number, because no bit depends on the cut (gemm.h). */
#include "kernels/matmul/gemv.h"
#include "kernels/matmul/matmul.h"

enum {
    F32_WORK = 1 << 17,         /* multiply-adds of a part: a few times what handing one out costs */
    F32_READ = 1 << 15          /* the same for work that only reads: floats                       */
};

typedef struct f32_job {
    const mica__launch *launch;
    const mica__gemm_variant *variant;
    int64_t m, n, k, batches;
    int64_t parts;              /* of one product */
} f32_job;

static float *f32_out(const f32_job *job, int64_t batch)
{
    return (float *)(void *)mica__element(job->launch->out, batch * job->m * job->n);
}

/* Parts of one product so that no thread is left without one, of `most` pieces. */
static int64_t f32_parts(const f32_job *job, int64_t work, int64_t least, int64_t most)
{
    const int64_t threads = mica__min_i64(mica__pool_threads(job->launch->pool), job->batches * work / least);
    if (threads < 2 || job->batches >= 4 * threads) return 1;
    return mica__min_i64(most, (threads + job->batches - 1) / job->batches);
}

static void f32_run(const f32_job *job, int64_t work, int64_t least, mica__task_fn task)
{
    const int64_t tasks = job->batches * job->parts;
    mica__pool *pool = job->batches * work >= 2 * least ? job->launch->pool : NULL;
    mica__pool_run(pool, tasks, task, (void *)(uintptr_t)job);
}

/* -------------------------------------------------------------------- thin -- */

static mica__gemv f32_thin(const f32_job *job, int64_t batch)
{
    const mica__gemm_view a = mica__matmul_view(job->launch, 0, batch), b = mica__matmul_view(job->launch, 1, batch);
    mica__gemv gemv = {.variant = job->variant, .k = job->k, .out = (char *)f32_out(job, batch)};
    gemv.n_few = mica__min_i64(job->m, job->n);
    if (job->m <= job->n) {
        gemv.few = a;
        gemv.many = b;
        gemv.few_step = job->n;
        gemv.many_step = 1;
    } else {
        gemv.few = b;
        gemv.many = a;
        gemv.few_step = 1;
        gemv.many_step = job->n;
    }
    return gemv;
}

static void f32_thin_task(void *context, int64_t task)
{
    const f32_job *job = context;
    const int64_t batch = task / job->parts, part = task % job->parts;
    const mica__gemv gemv = f32_thin(job, batch);
    const int64_t many = mica__max_i64(job->m, job->n), begin = many * part / job->parts,
                  end = many * (part + 1) / job->parts;
    const int64_t most = mica__gemv_streams(&gemv) ? MICA__GEMV_STREAM : MICA__GEMV_MANY;
    const int64_t first = batch * job->m * job->n;
    for (int64_t i = begin; i < end; i += most) {
        const int64_t n = mica__min_i64(most, end - i);
        mica__gemv_part(&gemv, i, n);
        if (job->m <= job->n) mica__gemm_epilogue(job->launch->epilogue, first, job->n, 0, job->m, i, n);
        else mica__gemm_epilogue(job->launch->epilogue, first, job->n, i, n, 0, job->n);
    }
}

/* At most three of the few in any layout; more where rows of both are multiplied,
 * or where the other side streams from far. */
static bool f32_is_thin(const f32_job *job, bool direct)
{
    const int64_t few = mica__min_i64(job->m, job->n);
    if (few <= MICA__GEMV_FEW) return true;
    if (few > MICA__GEMM_FEW) return false;
    const mica__gemv gemv = f32_thin(job, 0);
    return mica__gemv_by_dots(&gemv) || (mica__gemv_streams(&gemv) && !direct);
}

/* ------------------------------------------------------------------ direct -- */

static void f32_direct_task(void *context, int64_t task)
{
    const f32_job *job = context;
    const int64_t batch = task / job->parts, part = task % job->parts, first = batch * job->m * job->n;
    const mica__gemm_view a = mica__matmul_view(job->launch, 0, batch), b = mica__matmul_view(job->launch, 1, batch);
    /* in pairs of rows: an odd one makes a slow block */
    const int64_t pairs = (job->m + 1) / 2, i = pairs * part / job->parts * 2,
                  end = mica__min_i64(job->m, pairs * (part + 1) / job->parts * 2);
    mica__gemm_direct(job->variant, &a, &b, i, end - i, job->n, job->k, f32_out(job, batch));
    mica__gemm_epilogue(job->launch->epilogue, first, job->n, i, end - i, 0, job->n);
}

/* ----------------------------------------------------------------- blocked -- */

static void f32_blocked(const f32_job *job, mica__pool *pool, int64_t batch)
{
    const mica__gemm_blocked product = {.variant = job->variant,
                                        .a = mica__matmul_view(job->launch, 0, batch),
                                        .b = mica__matmul_view(job->launch, 1, batch),
                                        .m = job->m,
                                        .n = job->n,
                                        .k = job->k,
                                        .out = f32_out(job, batch),
                                        .scratch = job->launch->workspace,
                                        .epilogue = job->launch->epilogue,
                                        .first = batch * job->m * job->n};
    mica__gemm_blocked_run(pool, &product);
}

static void f32_blocked_task(void *context, int64_t task) { f32_blocked(context, NULL, task); }

size_t mica__matmul_f32_workspace(const mica__tensor *in, const mica__spec *out)
{
    const mica__launch launch = {.in = in};
    const int64_t m = out->shape[out->ndim - 2], n = out->shape[out->ndim - 1], k = in[0].spec.shape[out->ndim - 1];
    const mica__gemm_view a = mica__matmul_view(&launch, 0, 0), b = mica__matmul_view(&launch, 1, 0);
    if (mica__min_i64(m, n) <= MICA__GEMV_FEW || k == 0 || mica__gemm_is_direct(&a, &b, n, k)) return 0;
    return mica__gemm_scratch(&a, m, n, k);
}

void mica__matmul_f32(const mica__launch *launch)
{
    const mica__spec *a = &launch->in[0].spec, *out = &launch->out->spec;
    f32_job job = {.launch = launch, .variant = mica__gemm_best(), .parts = 1};
    job.m = out->shape[out->ndim - 2];
    job.n = out->shape[out->ndim - 1];
    job.k = a->shape[out->ndim - 1];
    job.batches = mica__product(out->shape, out->ndim - 2);
    if (job.k == 0) { /* empty sums */
        const int64_t count = job.batches * job.m * job.n;
        memset(launch->out->data, 0, (size_t)count * sizeof(float));
        if (launch->epilogue) launch->epilogue->run(launch->epilogue, 0, count);
        return;
    }
    const int64_t work = job.m * job.n * job.k;
    const mica__gemm_view view_a = mica__matmul_view(launch, 0, 0), view_b = mica__matmul_view(launch, 1, 0);
    const bool direct = mica__gemm_is_direct(&view_a, &view_b, job.n, job.k);
    if (f32_is_thin(&job, direct)) {
        const int64_t many = mica__max_i64(job.m, job.n);
        job.parts = f32_parts(&job, many * (job.k + 8), F32_READ, many);
        f32_run(&job, many * (job.k + 8), F32_READ, f32_thin_task);
    } else if (direct) {
        job.parts = f32_parts(&job, work, F32_WORK, (job.m + 3) / 4);
        f32_run(&job, work, F32_WORK, f32_direct_task);
    } else if (!launch->workspace && job.batches >= 2 * mica__pool_threads(launch->pool)) {
        f32_run(&job, work, F32_WORK, f32_blocked_task);
    } else {
        for (int64_t batch = 0; batch < job.batches; batch++) f32_blocked(&job, launch->pool, batch);
    }
}
