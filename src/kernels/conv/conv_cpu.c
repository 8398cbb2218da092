/* Convolution in f32 as a matrix product: weights (outs, channels * kernel) times
 * patches (channels * kernel, positions). Patches are not stored: in the planes
 * (conv_planes.h) each row of the patches is a contiguous run, at a fixed offset.
 * Positions are numbered along the lines of a plane, so that a strip of them may
 * continue in the next line. Positions between two lines of the result are computed
 * and discarded.
 *
 * If the kernel has more elements than the result has positions, as in gradients of
 * weights, each result is instead a dot product of lines of the kernel and of the planes.
 *
 * As many images are processed at a time as fit into CONV_BYTES of planes, a part of the
 * third-level cache. */
#include "kernels/conv/conv_planes.h"
#include "kernels/matmul/gemm.h"

enum {
    CONV_BYTES = 8 << 20,       /* of planes at a time, unless one image has more           */
    CONV_OUTS = 96,             /* of a task                                                */
    CONV_STRIPS = 8,            /* of a task                                                */
    CONV_LINES = 8,             /* of a task with fewer outs than CONV_LINE_OUTS            */
    CONV_LINE_OUTS = 4,
    CONV_TAPS = 1024,           /* at a time: their weights stay in the second-level cache  */
    CONV_COLUMNS = 48,          /* of a task along the kernel: positions of images          */
    CONV_RUN = 512              /* elements of the kernel at a time, approximately          */
};

/* Where the parts of the scratch begin, in floats. */
typedef struct conv_room {
    bool swapped;               /* dot products along the kernel                            */
    mica__conv_planes planes;
    bool copies;                /* weights are copied, with row stride `row`                */
    int64_t row, line;          /* line: floats of a padded line of the kernel, if swapped  */
    int64_t image;              /* floats of the planes of one image, 0 if in place         */
    int64_t images;             /* processed at a time                                      */
    int64_t offsets, weights, all;
} conv_room;

typedef struct conv_job {
    const mica__launch *launch;
    mica__conv_sizes s;
    conv_room room;
    const mica__conv_variant *variant;
    mica_dtype dtype;
    int64_t taps;               /* of one out                                               */
    int64_t count;              /* positions, including those between lines                 */
    int64_t parts, outs_parts;  /* tasks of one image and group                             */
    int64_t first, images;      /* the images that are in the planes                        */
} conv_job;

static int64_t conv_taps_of(const mica__conv_sizes *s) { return s->channels * s->kernel[0] * s->kernel[1]; }

static bool conv_flat(const mica__conv_sizes *s)
{
    int64_t step = 1;
    const int64_t sizes[3] = {s->kernel[1], s->kernel[0], s->channels};
    const int64_t steps[3] = {s->w_step[1], s->w_step[0], s->w_channel};
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > 1 && steps[i] != step) return false;
        step *= sizes[i];
    }
    return true;
}

static int64_t conv_round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static conv_room conv_room_of(const mica__conv_sizes *s, mica_dtype dtype)
{
    conv_room room = {.swapped = s->kernel[0] * s->kernel[1] > s->out[0] * s->out[1]};
    room.planes = mica__conv_planes_of(s, dtype, room.swapped, MICA__CONV_STRIP);
    room.copies = room.swapped || dtype != MICA_F32 || !conv_flat(s);
    room.line = conv_round_up(s->kernel[1], MICA__CONV_LANES);
    room.row = room.swapped ? s->channels * s->kernel[0] * room.line : room.copies ? conv_taps_of(s) : s->w_out;
    const int64_t all = s->groups * s->outs;
    room.image = room.planes.in_place ? 0 : s->groups * s->channels * room.planes.channel;
    room.images = mica__max_i64(1, mica__min_i64(s->batch, CONV_BYTES / 4 / mica__max_i64(1, room.image)));
    /* the last strip and line are read as whole vectors too */
    const int64_t planes = conv_round_up(room.image * room.images + MICA__CONV_STRIP, MICA__CONV_LANES);
    room.weights = planes;
    room.offsets = planes + (room.copies ? conv_round_up(all * room.row, MICA__CONV_LANES) : 0);
    room.all = room.offsets + 2 * conv_taps_of(s); /* offsets have 64 bits: two floats each */
    return room;
}

static const float *conv_image(const conv_job *job, int64_t image, int64_t group)
{
    const mica__conv_sizes *s = &job->s;
    if (job->room.planes.in_place)
        return (const float *)(const void *)mica__element(&job->launch->in[0], (job->first + image) * s->x_batch +
                                                                                   group * s->channels * s->x_channel);
    return (const float *)job->launch->workspace + image * job->room.image +
           group * s->channels * job->room.planes.channel;
}

static void conv_fill_channels(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const int64_t channels = job->s.groups * job->s.channels;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = (job->first + i / channels) * job->s.x_batch + i % channels * job->s.x_channel;
        mica__conv_fill(&job->room.planes, &job->s, job->dtype, mica__element(&job->launch->in[0], from),
                        (float *)job->launch->workspace + i * job->room.planes.channel);
    }
}

/* Copies the weights of outs begin ... end-1: rows of taps or, if swapped, of padded lines. */
static void conv_copy_weights(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const mica__conv_sizes *s = &job->s;
    const int64_t line = job->room.swapped ? job->room.line : s->kernel[1];
    for (int64_t o = begin; o < end; o++) {
        float *to = (float *)job->launch->workspace + job->room.weights + o * job->room.row;
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t t0 = 0; t0 < s->kernel[0]; t0++, to += line) {
                const int64_t at = o * s->w_out + c * s->w_channel + t0 * s->w_step[0];
                mica__load_f32(job->dtype, s->kernel[1], to, mica__element(&job->launch->in[1], at), s->w_step[1]);
                memset(to + s->kernel[1], 0, (size_t)(line - s->kernel[1]) * sizeof *to);
            }
    }
}

static const float *conv_weights(const conv_job *job, int64_t o)
{
    if (job->room.copies) return (const float *)job->launch->workspace + job->room.weights + o * job->room.row;
    return (const float *)(const void *)mica__element(&job->launch->in[1], o * job->s.w_out);
}

/* ------------------------------------------------------------- by position -- */

/* The index in the result of position p, or of the next position that is part of the result. */
static int64_t conv_place(const conv_job *job, int64_t p)
{
    const int64_t line = job->room.planes.size[1];
    return p / line * job->s.out[1] + mica__min_i64(p % line, job->s.out[1]);
}

/* Stores positions p ... end-1 of outs o ... o+m-1 of image b. c (m, strip) begins with position `start`. */
static void conv_store(const conv_job *job, int64_t b, int64_t o, int64_t m, const float *c, int64_t start, int64_t p,
                       int64_t end)
{
    const mica__conv_sizes *s = &job->s;
    const int64_t line = job->room.planes.size[1], outs = s->groups * s->outs, size = s->out[0] * s->out[1];
    for (int64_t next; p < end; p = next) {
        next = mica__min_i64(end, (p / line + 1) * line);
        const int64_t n = mica__min_i64(next - p, s->out[1] - p % line);
        for (int64_t i = 0; i < m && n > 0; i++)
            mica__store_f32(job->dtype, n,
                            mica__element(job->launch->out, (b * outs + o + i) * size + conv_place(job, p)), 1,
                            c + i * job->variant->strip + p - start);
    }
}

static void conv_positions(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const mica__conv_sizes *s = &job->s;
    const int64_t strip = job->variant->strip, most = strip * CONV_STRIPS;
    const int64_t *offset = (const int64_t *)(const void *)((const float *)job->launch->workspace + job->room.offsets);
    float *c = mica__scratch_alloc(CONV_OUTS * MICA__CONV_STRIP * sizeof *c);
    for (int64_t part = begin; part < end; part++) {
        const int64_t p0 = part % job->parts * most, p1 = mica__min_i64(job->count, p0 + most);
        const int64_t i = part / job->parts % job->outs_parts * CONV_OUTS, m = mica__min_i64(CONV_OUTS, s->outs - i);
        const int64_t group = part / job->parts / job->outs_parts % s->groups;
        const int64_t image = part / job->parts / job->outs_parts / s->groups, o = group * s->outs + i;
        const float *x = conv_image(job, image, group), *w = conv_weights(job, o);
        for (int64_t p = p0; p < p1; p += strip) {
            /* in place, memory after the last position must not be read: the last strip begins earlier */
            const int64_t start = job->room.planes.in_place ? mica__min_i64(p, job->count - strip) : p;
            for (int64_t k = 0; k == 0 || k < job->taps; k += CONV_TAPS)
                job->variant->taps(m, mica__min_i64(CONV_TAPS, job->taps - k), w + k, job->room.row, x + start,
                                   offset + k, c, strip, k > 0);
            conv_store(job, job->first + image, o, m, c, start, p, mica__min_i64(p1, p + strip));
        }
        const int64_t size = s->out[0] * s->out[1], from = conv_place(job, p0);
        mica__gemm_epilogue(job->launch->epilogue, (job->first + image) * s->groups * s->outs * size, size, o, m, from,
                            conv_place(job, p1) - from);
    }
    mica__scratch_release(c);
}

/* With few outs, as in a depthwise convolution, a strip has too little work to pay for its copy.
 * Then lines are computed directly in the result. */
static bool conv_has_lines(const conv_job *job)
{
    return job->dtype == MICA_F32 && job->s.outs < CONV_LINE_OUTS && job->s.out[1] >= job->variant->lanes;
}

static void conv_lines(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const mica__conv_sizes *s = &job->s;
    const int64_t size = s->out[0] * s->out[1];
    const int64_t *offset = (const int64_t *)(const void *)((const float *)job->launch->workspace + job->room.offsets);
    for (int64_t part = begin; part < end; part++) {
        const int64_t y0 = part % job->parts * CONV_LINES, last = mica__min_i64(s->out[0], y0 + CONV_LINES);
        const int64_t group = part / job->parts % s->groups, image = part / job->parts / s->groups;
        const int64_t o = group * s->outs, first = (job->first + image) * s->groups * s->outs * size;
        const float *x = conv_image(job, image, group), *w = conv_weights(job, o);
        float *out = (float *)(void *)mica__element(job->launch->out, first + o * size);
        for (int64_t r = 0; r < s->outs; r++)
            for (int64_t y = y0; y < last; y++)
                job->variant->line(s->out[1], job->taps, w + r * job->room.row, x + y * job->room.planes.size[1],
                                   offset, out + r * size + y * s->out[1]);
        mica__gemm_epilogue(job->launch->epilogue, first, size, o, s->outs, y0 * s->out[1], (last - y0) * s->out[1]);
    }
}

/* ---------------------------------------------------------- along the kernel -- */

/* Columns are the positions of all images, one image after the other. */
static void conv_columns(const conv_job *job, int64_t group, int64_t o, int64_t m, int64_t first, int64_t n,
                         float *sums)
{
    const mica__conv_sizes *s = &job->s;
    const mica__conv_planes *planes = &job->room.planes;
    const int64_t positions = s->out[0] * s->out[1], lines = mica__max_i64(1, CONV_RUN / job->room.line);
    memset(sums, 0, (size_t)(m * CONV_COLUMNS) * sizeof *sums);
    for (int64_t ch = 0; ch < s->channels; ch++)
        for (int64_t t0 = 0; t0 < s->kernel[0]; t0 += lines) {
            const float *b[CONV_COLUMNS];
            for (int64_t j = 0; j < n; j++) {
                const int64_t y = (first + j) % positions;
                b[j] = conv_image(job, (first + j) / positions, group) + ch * planes->channel + t0 * planes->size[1] +
                       mica__conv_offset(planes, y / s->out[1], y % s->out[1]);
            }
            job->variant->dots(m, n, mica__min_i64(lines, s->kernel[0] - t0), s->kernel[1],
                               conv_weights(job, o) + (ch * s->kernel[0] + t0) * job->room.line, job->room.row,
                               job->room.line, b, planes->size[1], sums, CONV_COLUMNS);
        }
}

enum { CONV_FEW = 8 }; /* outs of a task along the kernel */

static void conv_along_kernel(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const mica__conv_sizes *s = &job->s;
    const int64_t positions = s->out[0] * s->out[1], all = job->images * positions, outs = s->groups * s->outs;
    float sums[CONV_FEW * CONV_COLUMNS];
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part % job->parts * CONV_COLUMNS, n = mica__min_i64(CONV_COLUMNS, all - first);
        const int64_t i = part / job->parts % job->outs_parts * CONV_FEW, m = mica__min_i64(CONV_FEW, s->outs - i);
        const int64_t group = part / job->parts / job->outs_parts, o = group * s->outs + i;
        conv_columns(job, group, o, m, first, n, sums);
        for (int64_t j = 0, count; j < n; j += count) { /* columns of one image at a time */
            const int64_t b = job->first + (first + j) / positions, y = (first + j) % positions;
            count = mica__min_i64(n - j, positions - y);
            for (int64_t r = 0; r < m; r++)
                mica__store_f32(job->dtype, count, mica__element(job->launch->out, (b * outs + o + r) * positions + y),
                                1, sums + r * CONV_COLUMNS + j);
            mica__gemm_epilogue(job->launch->epilogue, b * outs * positions, positions, o, m, y, count);
        }
    }
}

/* -------------------------------------------------------------------- whole -- */

static void conv_set_offsets(const conv_job *job)
{
    const mica__conv_sizes *s = &job->s;
    int64_t *to = (int64_t *)(void *)((float *)job->launch->workspace + job->room.offsets);
    for (int64_t ch = 0; ch < s->channels; ch++)
        for (int64_t t0 = 0; t0 < s->kernel[0]; t0++)
            for (int64_t t1 = 0; t1 < s->kernel[1]; t1++)
                *to++ = ch * job->room.planes.channel + mica__conv_offset(&job->room.planes, t0, t1);
}

static void conv_run(conv_job *job)
{
    const mica__conv_sizes *s = &job->s;
    mica__pool *pool = job->launch->pool;
    const mica__conv_planes *planes = &job->room.planes;
    const int64_t positions = s->out[0] * s->out[1];
    if (job->room.copies) mica__run_rows(pool, s->groups * s->outs, job->taps, conv_copy_weights, job);
    if (!job->room.swapped) conv_set_offsets(job);
    for (job->first = 0; job->first < s->batch; job->first += job->images) {
        job->images = mica__min_i64(job->room.images, s->batch - job->first);
        if (job->room.image)
            mica__run_rows(pool, job->images * s->groups * s->channels, planes->channel, conv_fill_channels, job);
        if (job->room.swapped) {
            job->parts = (job->images * positions + CONV_COLUMNS - 1) / CONV_COLUMNS;
            job->outs_parts = (s->outs + CONV_FEW - 1) / CONV_FEW;
            mica__run_rows(pool, s->groups * job->parts * job->outs_parts,
                           CONV_COLUMNS * mica__min_i64(CONV_FEW, s->outs) * (job->taps + 8) / 4, conv_along_kernel,
                           job);
        } else if (conv_has_lines(job)) {
            job->parts = (s->out[0] + CONV_LINES - 1) / CONV_LINES;
            mica__run_rows(pool, job->images * s->groups * job->parts, CONV_LINES * s->out[1] * job->taps / 2,
                           conv_lines, job);
        } else {
            const int64_t most = job->variant->strip * CONV_STRIPS;
            job->parts = (job->count + most - 1) / most;
            job->outs_parts = (s->outs + CONV_OUTS - 1) / CONV_OUTS;
            mica__run_rows(pool, job->images * s->groups * job->parts * job->outs_parts,
                           mica__min_i64(most, job->count) * mica__min_i64(CONV_OUTS, s->outs) * (job->taps + 8) / 4,
                           conv_positions, job);
        }
    }
}

size_t mica__conv_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in;
    if (out->dtype == MICA_F64 || mica__spec_size(out) == 0) return 0;
    const mica__conv_sizes s = mica__conv_sizes_of(&in[0], &in[1], attr, out);
    return (size_t)conv_room_of(&s, (mica_dtype)out->dtype).all * sizeof(float);
}

mica_status mica__conv_cpu(const mica__launch *launch)
{
    const mica__spec *out = &launch->out->spec;
    conv_job job = {.launch = launch,
                    .s = mica__conv_sizes_of(&launch->in[0], &launch->in[1], launch->attr, out),
                    .dtype = mica__dtype_of(launch->out)};
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = job.dtype != MICA_F64;
    if (mica__spec_size(out) == 0) return MICA_OK;
    job.taps = conv_taps_of(&job.s);
    if (job.dtype == MICA_F64) {
        mica__run_rows(launch->pool, mica__row_count(out), 8 * job.taps * job.s.out[1], mica__conv_rows, launch);
        return MICA_OK;
    }
    job.room = conv_room_of(&job.s, job.dtype);
    job.variant = mica__conv_best();
    job.count = (job.s.out[0] - 1) * job.room.planes.size[1] + job.s.out[1];
    conv_run(&job);
    return MICA_OK;
}
