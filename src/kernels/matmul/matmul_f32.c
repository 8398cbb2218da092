/* Selects the algorithm for an f32 product and splits it for threads. The split may
 * depend on their number, because no bit depends on the split (gemm.h). */
#include "kernels/matmul/gemm_accelerate.h"
#include "kernels/matmul/gemv.h"
#include "kernels/matmul/matmul.h"

enum {
    F32_WORK = 1 << 17,         /* multiply-adds of a part: a few times the cost of dispatching it */
    F32_READ = 1 << 15          /* floats of a part, for products limited by memory bandwidth      */
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

/* The number of parts of one product that gives work to all threads; at most `most`. */
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

/* Up to GEMV_FEW rows or columns are thin in any layout. Up to GEMM_FEW are thin if both operands are contiguous
 * along k, or if the large operand can be streamed and the product is not direct. */
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
    /* split in pairs of rows: a block of one row is slow */
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
                                        .packed = job->launch->packed,
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

/* The sizes of a product. Batches that share b and whose rows of a have one common stride are
 * merged into one product with more rows. */
static f32_job f32_job_of(const mica__tensor *in, const mica__spec *out)
{
    const int outer = out->ndim - 2;
    f32_job job = {.variant = mica__gemm_best(), .parts = 1, .batches = 1};
    job.m = out->shape[outer];
    job.n = out->shape[outer + 1];
    job.k = in[0].spec.shape[outer + 1];
    int d = outer - 1;
    for (; d >= 0; d--) {
        const int64_t size = out->shape[d];
        if (size == 1) continue;
        if (in[1].strides[d] != 0 || in[0].strides[d] != job.m * in[0].strides[outer]) break;
        job.m *= size;
    }
    if (d >= 0) { /* not all axes can be merged: merges none */
        job.m = out->shape[outer];
        job.batches = mica__product(out->shape, outer);
    }
    return job;
}

typedef enum f32_way { F32_THIN, F32_DIRECT, F32_BLOCKED } f32_way;

static f32_way f32_way_of(const f32_job *job)
{
    const mica__gemm_view a = mica__matmul_view(job->launch, 0, 0), b = mica__matmul_view(job->launch, 1, 0);
    const bool direct = mica__gemm_is_direct(&a, &b, job->n, job->k);
    return f32_is_thin(job, direct) ? F32_THIN : direct ? F32_DIRECT : F32_BLOCKED;
}

size_t mica__matmul_f32_workspace(const mica__tensor *in, const mica__spec *out)
{
    const mica__launch launch = {.in = in};
    f32_job job = f32_job_of(in, out);
    job.launch = &launch;
    const mica__gemm_view a = mica__matmul_view(&launch, 0, 0), b = mica__matmul_view(&launch, 1, 0);
    if (mica__min_i64(job.m, job.n) <= MICA__GEMV_FEW || job.k == 0 || mica__gemm_is_direct(&a, &b, job.n, job.k))
        return 0;
    return mica__gemm_scratch(&a, job.m, job.n, job.k);
}

static void f32_fill(const void *context, void *to)
{
    const mica__launch *launch = context;
    const mica__spec *w = &launch->in[1].spec;
    const mica__gemm_view b = mica__matmul_view(launch, 1, 0);
    mica__gemm_pack_all(launch->pool, mica__gemm_best(), &b, w->shape[w->ndim - 1], w->shape[w->ndim - 2], to);
}

/* With many rows, packing costs little compared with the product, and a stored copy costs memory. */
enum { PREPACK_LEAST = 1 << 16, PREPACK_ROWS = 1024 };

bool mica__matmul_f32_prepack(const mica__launch *launch, mica__prepack *wish)
{
    const mica__spec *w = &launch->in[1].spec;
    const int64_t k = w->shape[w->ndim - 2], n = w->shape[w->ndim - 1];
    if (n * k < PREPACK_LEAST || mica__accelerate_sgemm()) return false;
    f32_job job = f32_job_of(launch->in, &launch->out->spec);
    job.launch = launch;
    if (job.batches != 1 || job.m > PREPACK_ROWS || f32_way_of(&job) != F32_BLOCKED) return false;
    const int64_t *strides = launch->in[1].strides;
    *wish = (mica__prepack){.format = job.variant,
                            .size = {n, k},
                            .step = {strides[w->ndim - 1], strides[w->ndim - 2]},
                            .nbytes = mica__gemm_packed_floats(job.variant, n, k) * sizeof(float),
                            .fill = f32_fill};
    return true;
}

/* Accelerate uses its own threads. */
static bool f32_accelerated(const f32_job *job)
{
    const mica__sgemm_fn sgemm = mica__accelerate_sgemm();
    if (!sgemm || mica__min_i64(job->m, job->n) <= MICA__GEMM_FEW) return false;
    for (int64_t batch = 0; batch < job->batches; batch++) {
        const mica__gemm_view a = mica__matmul_view(job->launch, 0, batch),
                              b = mica__matmul_view(job->launch, 1, batch);
        /* all batches have the same layout: the first one decides */
        if (!mica__gemm_by_sgemm(sgemm, &a, &b, job->m, job->n, job->k, f32_out(job, batch))) return false;
        mica__gemm_epilogue(job->launch->epilogue, batch * job->m * job->n, job->n, 0, job->m, 0, job->n);
    }
    return true;
}

void mica__matmul_f32(const mica__launch *launch)
{
    f32_job job = f32_job_of(launch->in, &launch->out->spec);
    job.launch = launch;
    if (job.k == 0) { /* empty sums */
        const int64_t count = job.batches * job.m * job.n;
        memset(launch->out->data, 0, (size_t)count * sizeof(float));
        if (launch->epilogue) launch->epilogue->run(launch->epilogue, 0, count);
        return;
    }
    if (f32_accelerated(&job)) return;
    const int64_t work = job.m * job.n * job.k, many = mica__max_i64(job.m, job.n);
    switch (f32_way_of(&job)) {
    case F32_THIN:
        job.parts = f32_parts(&job, many * (job.k + 8), F32_READ, many);
        f32_run(&job, many * (job.k + 8), F32_READ, f32_thin_task);
        break;
    case F32_DIRECT:
        job.parts = f32_parts(&job, work, F32_WORK, (job.m + 3) / 4);
        f32_run(&job, work, F32_WORK, f32_direct_task);
        break;
    case F32_BLOCKED:
        if (!launch->workspace && job.batches >= 2 * mica__pool_threads(launch->pool))
            f32_run(&job, work, F32_WORK, f32_blocked_task);
        else
            for (int64_t batch = 0; batch < job.batches; batch++) f32_blocked(&job, launch->pool, batch);
    }
}
