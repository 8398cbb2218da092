/* Gradients of attention in f32. A task processes some blocks of queries of one key head, one
 * after the other: the scores of a block with all keys, with queries in lanes as in the forward
 * pass; the weights and their slopes; dq from the slopes; and its share of dk and dv, which each
 * task sums separately. Then the sums of the tasks of a head are added in order. The number of
 * tasks depends on the sizes only.
 *
 * There are five products, each computed once: the weights and slopes of a block are kept, as
 * (keys, queries), from one product to the next. */
#include "kernels/attention/attention_grad.h"

#include <math.h>

#include "kernels/attention/attention_job.h"

enum {
    GRAD_QUERIES = 96,          /* of a block with few keys: a multiple of every panel  */
    GRAD_KEYS = 1024,           /* few keys: weights and slopes fit a second-level cache */
    GRAD_FEW_QUERIES = 48,      /* of a block with more keys                            */
    GRAD_TASKS = 8,             /* wanted in total, if there are enough queries         */
    GRAD_BYTES = 64 << 20       /* of scratch for heads at a time, unless one has more  */
};

/* Offsets of the parts of a task's scratch, in floats; large enough for any variant. */
typedef struct grad_room {
    int64_t queries;            /* of a block                                           */
    int64_t tasks;              /* of a head                                            */
    int64_t blocks;             /* of a task                                            */
    int64_t dims, size;         /* rounded up to whole strips                           */
    int64_t weight, slope, turned_q, turned_c, strips_q, strips_c, dq, dk, dv, task; /* task: size of all */
    int64_t strips_k, copy_k, copy_v, head; /* of a head, before its tasks; head: size of all */
    int64_t heads;              /* processed at a time                                  */
} grad_room;

static bool grad_copies(const mica__tensor *t)
{
    return mica__dtype_of(t) != MICA_F32 || (t->strides[3] != 1 && t->spec.shape[3] > 1);
}

static int64_t grad_take(int64_t *at, int64_t n)
{
    const int64_t begin = *at;
    *at += (n + 15) / 16 * 16;
    return begin;
}

static grad_room grad_room_of(const mica__tensor *in)
{
    const mica__spec *q = &in[0].spec, *k = &in[1].spec, *v = &in[2].spec;
    const int64_t keys = k->shape[2], heads = mica__max_i64(1, k->shape[0] * k->shape[1]),
                  strip = MICA__ATTENTION_STRIP;
    const int64_t queries = k->shape[1] ? q->shape[1] / k->shape[1] * q->shape[2] : 0;
    grad_room room = {.dims = (q->shape[3] + strip - 1) / strip * strip,
                      .size = (v->shape[3] + strip - 1) / strip * strip};
    room.queries = keys <= GRAD_KEYS ? GRAD_QUERIES : GRAD_FEW_QUERIES;
    const int64_t blocks = mica__max_i64(1, (queries + room.queries - 1) / room.queries);
    room.tasks = mica__min_i64(blocks, (GRAD_TASKS + heads - 1) / heads);
    room.blocks = (blocks + room.tasks - 1) / room.tasks;
    int64_t at = 0;
    room.weight = grad_take(&at, keys * room.queries);
    room.slope = grad_take(&at, keys * room.queries);
    room.turned_q = grad_take(&at, q->shape[3] * room.queries);
    room.turned_c = grad_take(&at, v->shape[3] * room.queries);
    room.strips_q = grad_take(&at, room.dims * room.queries);
    room.strips_c = grad_take(&at, room.size * room.queries);
    room.dq = grad_take(&at, room.dims * room.queries);
    room.dk = grad_take(&at, room.dims * keys);
    room.dv = grad_take(&at, room.size * keys);
    room.task = at;
    at = 0;
    room.strips_k = grad_take(&at, room.dims * keys);
    room.copy_k = grad_take(&at, grad_copies(&in[1]) ? q->shape[3] * keys : 0);
    room.copy_v = grad_take(&at, grad_copies(&in[2]) ? v->shape[3] * keys : 0);
    room.head = at + room.tasks * room.task;
    room.heads = mica__max_i64(1, mica__min_i64(heads, GRAD_BYTES / 4 / mica__max_i64(1, room.head)));
    return room;
}

typedef struct grad_work {
    mica__attention_job job;
    grad_room room;
    mica__tensor dq, dk, dv;    /* parts of the result                                  */
    float scale;
} grad_work;

/* One block of queries of a task. */
typedef struct grad_block {
    const grad_work *work;
    mica__attention_queries queries;
    int64_t n, panels, last;    /* last: one more than the last visible key             */
    const float *k, *v;
    int64_t k_row, v_row;
    float *head, *task;         /* scratch                                              */
} grad_block;

static float *grad_scratch(const grad_work *work, int64_t head, int64_t task)
{
    return (float *)work->job.launch->workspace + head * work->room.head +
           (task < 0 ? 0 : work->room.head - (work->room.tasks - task) * work->room.task);
}

static int64_t grad_head_offset(const grad_work *work, const mica__tensor *t, int64_t head)
{
    const int64_t at = work->job.first_head + head, groups = t->spec.shape[1];
    return at / groups * t->strides[0] + at % groups * t->strides[1];
}

/* The rows of keys or values: a pointer into the operand, or into the f32 copy. */
static const float *grad_rows_at(const grad_work *work, int which, int64_t head, int64_t *row)
{
    const mica__tensor *t = &work->job.launch->in[which];
    *row = grad_copies(t) ? t->spec.shape[3] : t->strides[2];
    if (grad_copies(t)) return grad_scratch(work, head, -1) + (which == 1 ? work->room.copy_k : work->room.copy_v);
    return (const float *)(const void *)mica__element(t, grad_head_offset(work, t, head));
}

/* Packs each key into strips; copies keys and values that are not contiguous f32. */
static void grad_pack_keys(const void *context, int64_t begin, int64_t end)
{
    const grad_work *work = context;
    const mica__attention_job *job = &work->job;
    const int64_t strip = job->variant->strip;
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / job->keys, s = i % job->keys;
        for (int which = 1; which < 3; which++) {
            const mica__tensor *t = &job->launch->in[which];
            int64_t row;
            float *rows = (float *)(uintptr_t)grad_rows_at(work, which, head, &row);
            if (grad_copies(t))
                mica__attention_widen(job->variant, t, grad_head_offset(work, t, head) + s * t->strides[2],
                                      t->strides[3], t->spec.shape[3], rows + s * row);
            if (which == 1)
                job->variant->split(job->dims, rows + s * row,
                                    grad_scratch(work, head, -1) + work->room.strips_k + s * strip, job->keys * strip);
        }
    }
}

/* Packs rows of queries as strips (strips, queries, strip) times a factor; padding rows are 0. */
static void grad_pack_strips(const grad_block *block, const mica__tensor *t, float factor, float *line, float *to)
{
    const mica__attention_variant *variant = block->work->job.variant;
    const int64_t size = t->spec.shape[3], rows = block->panels * MICA__ATTENTION_VECTORS * variant->lanes;
    const int64_t strip = variant->strip;
    for (int64_t r = 0; r < rows; r++) {
        if (r < block->n) {
            const int64_t at = mica__attention_offset(&block->queries, t, r);
            mica__attention_widen(variant, t, at, t->strides[3], size, line);
            variant->scale(size, line, factor, line);
        } else memset(line, 0, (size_t)size * sizeof *line);
        variant->split(size, line, to + r * strip, rows * strip);
    }
}

/* Computes the weights and slopes of panel p, and dq from the slopes. */
static void grad_panel(const grad_block *block, int64_t p)
{
    const grad_work *work = block->work;
    const mica__attention_job *job = &work->job;
    const mica__attention_variant *variant = job->variant;
    const int width = MICA__ATTENTION_VECTORS * variant->lanes;
    const int64_t first = p * width, n = mica__min_i64(width, block->n - first), strip = variant->strip;
    float *weight = block->task + work->room.weight + first * job->keys;
    float *slope = block->task + work->room.slope + first * job->keys;
    float *q = block->task + work->room.turned_q, *c = block->task + work->room.turned_c;
    float *dq = block->task + work->room.dq, top[MICA__ATTENTION_PANEL], sum[MICA__ATTENTION_PANEL] = {0};
    for (int i = 0; i < width; i++) top[i] = -INFINITY;
    mica__attention_turn(&block->queries, &job->launch->in[0], first, n, width, 0, job->dims, job->factor, q);
    mica__attention_turn(&block->queries, &job->launch->in[job->launch->n_in - 1], first, n, width, 0, job->size, 1, c);
    const int64_t last = mica__attention_last(&block->queries, first, n);
    const int64_t open = mica__attention_open(&block->queries, first, n, 0, last);
    variant->scores(MICA__ATTENTION_VECTORS, open, job->dims, block->k, block->k_row, q, weight, false, top);
    if (open < last) {
        float *rest = weight + open * width;
        variant->scores(MICA__ATTENTION_VECTORS, last - open, job->dims, block->k + open * block->k_row, block->k_row,
                        q, rest, false, NULL);
        mica__attention_hide(&block->queries, first, n, MICA__ATTENTION_VECTORS, open, last - open, rest, top);
    }
    variant->weights(MICA__ATTENTION_VECTORS, last, weight, top, sum);
    variant->scores(MICA__ATTENTION_VECTORS, last, job->size, block->v, block->v_row, c, slope, false, NULL);
    variant->slopes(last, weight, slope, sum);
    /* keys that are visible to other panels of the block only */
    const size_t hidden = (size_t)((block->last - last) * width) * sizeof(float);
    memset(weight + last * width, 0, hidden);
    memset(slope + last * width, 0, hidden);
    variant->values(MICA__ATTENTION_VECTORS, last, slope, job->strips, block->head + work->room.strips_k,
                    job->keys * strip, dq, job->strips * strip, false);
    for (int64_t r = 0; r < n; r++) {
        const int64_t at = mica__attention_offset(&block->queries, &work->dq, first + r);
        float *line = dq + r * job->strips * strip;
        variant->scale(job->dims, line, work->scale, line);
        mica__store_f32(mica__dtype_of(&work->dq), job->dims, mica__element(&work->dq, at), 1, line);
    }
}

static void grad_block_run(const grad_block *block)
{
    const grad_work *work = block->work;
    const mica__attention_job *job = &work->job;
    const mica__launch *l = job->launch;
    const int64_t width = MICA__ATTENTION_VECTORS * job->variant->lanes, strip = job->variant->strip;
    const grad_room *room = &work->room;
    for (int64_t p = 0; p < block->panels; p++) grad_panel(block, p);
    /* the transposed rows are no longer used: their memory is the line buffer */
    grad_pack_strips(block, &l->in[0], work->scale, block->task + room->turned_q, block->task + room->strips_q);
    grad_pack_strips(block, &l->in[l->n_in - 1], 1, block->task + room->turned_c, block->task + room->strips_c);
    const int64_t size_strips = (job->size + strip - 1) / strip;
    job->variant->fold(block->last, block->panels, block->task + room->slope, job->keys * width, job->strips,
                       block->task + room->strips_q, block->task + room->dk, room->dims, true);
    job->variant->fold(block->last, block->panels, block->task + room->weight, job->keys * width, size_strips,
                       block->task + room->strips_c, block->task + room->dv, room->size, true);
}

static void grad_tasks(const void *context, int64_t begin, int64_t end)
{
    const grad_work *work = context;
    const mica__attention_job *job = &work->job;
    const grad_room *room = &work->room;
    const int64_t groups = job->launch->in[1].spec.shape[1], queries = job->share * job->times;
    const int64_t width = MICA__ATTENTION_VECTORS * job->variant->lanes;
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / room->tasks, task = i % room->tasks, at = job->first_head + head;
        grad_block block = {.work = work,
                            .queries = {job, at / groups, at % groups, 0},
                            .head = grad_scratch(work, head, -1),
                            .task = grad_scratch(work, head, task)};
        block.k = grad_rows_at(work, 1, head, &block.k_row);
        block.v = grad_rows_at(work, 2, head, &block.v_row);
        memset(block.task + room->dk, 0, (size_t)(room->dims * job->keys) * sizeof(float));
        memset(block.task + room->dv, 0, (size_t)(room->size * job->keys) * sizeof(float));
        const int64_t first = task * room->blocks * room->queries;
        const int64_t last = mica__min_i64(queries, first + room->blocks * room->queries);
        for (int64_t row = first; row < last; row += room->queries) {
            block.queries.row = row;
            block.n = mica__min_i64(room->queries, last - row);
            block.panels = (block.n + width - 1) / width;
            block.last = mica__attention_last(&block.queries, 0, block.n);
            grad_block_run(&block);
        }
    }
}

/* Adds the sums of all tasks for keys begin ... end-1 of the heads. */
static void grad_join(const void *context, int64_t begin, int64_t end)
{
    const grad_work *work = context;
    const mica__attention_job *job = &work->job;
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / job->keys, s = i % job->keys;
        for (int values = 0; values < 2; values++) {
            const mica__tensor *to = values ? &work->dv : &work->dk;
            const int64_t row = values ? work->room.size : work->room.dims, n = to->spec.shape[3];
            const int64_t from = (values ? work->room.dv : work->room.dk) + s * row;
            float *sum = grad_scratch(work, head, 0) + from;
            for (int64_t task = 1; task < work->room.tasks; task++) {
                const float *more = grad_scratch(work, head, task) + from;
                for (int64_t e = 0; e < n; e++) sum[e] += more[e];
            }
            const int64_t at = grad_head_offset(work, to, head) + s * to->strides[2];
            mica__store_f32(mica__dtype_of(to), n, mica__element(to, at), 1, sum);
        }
    }
}

/* The part of the result that begins at element `at` and has the dtype and shape of t. */
static mica__tensor grad_part(const mica__launch *launch, const mica__tensor *t, int64_t at)
{
    mica__tensor part = {.data = mica__element(launch->out, at), .spec = t->spec};
    mica__row_major(&part.spec, part.strides);
    return part;
}

size_t mica__attention_grad_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)attr;
    const size_t exact = mica__attention_grad_double_bytes(in);
    if (out->dtype == MICA_F64 || mica__spec_size(out) == 0) return exact;
    const grad_room room = grad_room_of(in);
    const size_t bytes = (size_t)(room.heads * room.head) * sizeof(float);
    return bytes > exact ? bytes : exact;
}

mica_status mica__attention_grad_cpu(const mica__launch *launch)
{
    const mica__tensor *in = launch->in;
    if (mica__spec_size(&launch->out->spec) == 0) return MICA_OK;
    if (mica__dtype_of(launch->out) == MICA_F64 || in[0].spec.shape[1] == 0) {
        mica__attention_grad_double(launch, launch->pool);
        return MICA_OK;
    }
    const int64_t dk = mica__spec_size(&in[0].spec), dv = dk + mica__spec_size(&in[1].spec);
    grad_work work = {.job = mica__attention_job_of(launch),
                      .room = grad_room_of(in),
                      .dq = grad_part(launch, &in[0], 0),
                      .dk = grad_part(launch, &in[1], dk),
                      .dv = grad_part(launch, &in[2], dv),
                      .scale = (float)((const mica__attr_attention *)launch->attr)->scale};
    mica__attention_job *job = &work.job;
    job->strips = (job->dims + job->variant->strip - 1) / job->variant->strip; /* of keys; elsewhere of values */
    const int64_t heads = in[1].spec.shape[0] * in[1].spec.shape[1], sizes = job->dims + job->size;
    for (job->first_head = 0; job->first_head < heads; job->first_head += job->heads) {
        job->heads = mica__min_i64(work.room.heads, heads - job->first_head);
        mica__run_rows(launch->pool, job->heads * job->keys, sizes, grad_pack_keys, &work);
        mica__run_rows(launch->pool, job->heads * work.room.tasks,
                       work.room.blocks * work.room.queries * (job->keys + 8) * sizes, grad_tasks, &work);
        mica__run_rows(launch->pool, job->heads * job->keys, sizes * work.room.tasks, grad_join, &work);
    }
    return MICA_OK;
}
