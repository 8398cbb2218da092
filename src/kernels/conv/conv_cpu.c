/* Convolution as a matrix product: w (outs, channels * kernel) times patches
 * (channels * kernel, positions), which exist only strip by strip, as they are
 * packed. Groups with fewer outs than a strip has rows, depthwise ones above
 * all, add whole lines instead. */
#include "kernels/conv/conv.h"
#include "kernels/matmul/gemm.h"
#include "kernels/vec4.h"

enum { CONV_LINE = 256 };

typedef struct conv_job {
    const mica__launch *launch;
    mica__conv_sizes s;
    int64_t parts_m, parts_n;
    bool flat;              /* w's channels and kernel are one axis ... */
    int64_t flat_step;      /* ... with this step                       */
} conv_job;

/* x or w of one image and group. */
typedef struct conv_operand {
    const mica__conv_sizes *s;
    const char *data;
    mica_dtype dtype;
} conv_operand;

/* Where a row of the matrices is in (channels, kernel). */
typedef struct conv_tap {
    int64_t c, t0, t1;
} conv_tap;

static conv_tap conv_tap_at(const mica__conv_sizes *s, int64_t k)
{
    return (conv_tap){k / s->kernel[1] / s->kernel[0], k / s->kernel[1] % s->kernel[0], k % s->kernel[1]};
}

static void conv_tap_next(const mica__conv_sizes *s, conv_tap *tap)
{
    if (++tap->t1 < s->kernel[1]) return;
    tap->t1 = 0;
    if (++tap->t0 < s->kernel[0]) return;
    tap->t0 = 0;
    tap->c++;
}

static int64_t conv_ceil_div(int64_t a, int64_t b)
{
    if (b == 1) return a; /* saves a division where it counts */
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

/* n results from y1 on meet tap t1 at elements of x that begin at *source and
 * lie stride apart: *first ... the returned end; the others meet padding.
 * input_dilation[1] is 1. */
static int64_t conv_line(const mica__conv_sizes *s, int64_t y1, int64_t n, int64_t t1, int64_t *first, int64_t *source)
{
    const int64_t at = y1 * s->stride[1] + t1 * s->dilation[1] - s->pad[1];
    *first = mica__max_i64(0, conv_ceil_div(-at, s->stride[1]));
    *source = at + *first * s->stride[1];
    return mica__min_i64(n, conv_ceil_div(s->size[1] - at, s->stride[1]));
}

/* Columns of a strip that lie in one line of the result. */
typedef struct conv_piece {
    int64_t first, count, y0, y1;
} conv_piece;

static void conv_pack_piece(const conv_operand *x, const conv_piece *piece, conv_tap tap, float *to)
{
    const mica__conv_sizes *s = x->s;
    const int64_t size = (int64_t)mica_dtype_size(x->dtype), step = s->stride[1] * s->x_step[1];
    const int64_t x0 = mica__conv_source(s, 0, piece->y0, tap.t0);
    if (x0 < 0) return;
    const char *line = x->data + (tap.c * s->x_channel + x0 * s->x_step[0]) * size;
    if (s->input_dilation[1] != 1) {
        for (int64_t j = 0; j < piece->count; j++) {
            const int64_t x1 = mica__conv_source(s, 1, piece->y1 + j, tap.t1);
            if (x1 >= 0) mica__load_f32(x->dtype, 1, to + j, line + x1 * s->x_step[1] * size, 1);
        }
        return;
    }
    int64_t first, source;
    const int64_t end = conv_line(s, piece->y1, piece->count, tap.t1, &first, &source);
    if (first >= end) return;
    const char *from = line + source * s->x_step[1] * size;
    if (x->dtype == MICA_F32) {
        const float *single = (const float *)(const void *)from;
        for (int64_t j = first; j < end; j++) to[j] = single[(j - first) * step];
    } else mica__load_f32(x->dtype, end - first, to + first, from, step);
}

/* Columns i ... i+n-1 (positions of the result) of the patches. */
static void conv_pack_patches(const void *operand, int64_t k, int64_t depth, int64_t i, int64_t n, int width, float *to)
{
    const conv_operand *x = operand;
    const mica__conv_sizes *s = x->s;
    conv_piece pieces[MICA__GEMM_MAX_NR];
    int count = 0;
    for (int64_t ii = 0; ii < n; ii += pieces[count++].count) {
        const int64_t y0 = (i + ii) / s->out[1], y1 = (i + ii) % s->out[1];
        pieces[count] = (conv_piece){ii, mica__min_i64(n - ii, s->out[1] - y1), y0, y1};
    }
    conv_tap tap = conv_tap_at(s, k);
    memset(to, 0, (size_t)depth * (size_t)width * sizeof *to);
    for (int64_t kk = 0; kk < depth; kk++, conv_tap_next(s, &tap), to += width)
        for (int p = 0; p < count; p++) conv_pack_piece(x, &pieces[p], tap, to + pieces[p].first);
}

/* w with axes that do not merge into one. */
static void conv_pack_weights(const void *operand, int64_t k, int64_t depth, int64_t i, int64_t n, int width, float *to)
{
    const conv_operand *w = operand;
    const mica__conv_sizes *s = w->s;
    conv_tap tap = conv_tap_at(s, k);
    memset(to, 0, (size_t)depth * (size_t)width * sizeof *to);
    for (int64_t kk = 0; kk < depth; kk++, conv_tap_next(s, &tap)) {
        const int64_t at = tap.c * s->w_channel + tap.t0 * s->w_step[0] + tap.t1 * s->w_step[1] + i * s->w_out;
        mica__load_f32(w->dtype, n, to + kk * width, w->data + at * (int64_t)mica_dtype_size(w->dtype), s->w_out);
    }
}

static void conv_tiles(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const mica__conv_sizes *s = &job->s;
    const mica__tensor *x = &job->launch->in[0], *w = &job->launch->in[1];
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t n = s->out[0] * s->out[1], outs = s->groups * s->outs;
    for (int64_t part = begin; part < end; part++) {
        const int64_t i = part % job->parts_m * MICA__GEMM_ROWS,
                      j = part / job->parts_m % job->parts_n * MICA__GEMM_COLS;
        const int64_t which = part / job->parts_m / job->parts_n, group = which % s->groups, batch = which / s->groups;
        const int64_t first = (batch * outs + group * s->outs) * n;
        const conv_operand patches = {s, mica__element(x, batch * s->x_batch + group * s->channels * s->x_channel),
                                      dtype};
        const conv_operand weights = {s, mica__element(w, group * s->outs * s->w_out), dtype};
        const mica__gemm_view view = {
            .data = weights.data, .dtype = dtype, .k_step = job->flat_step, .i_step = s->w_out};
        const mica__gemm gemm = {.variant = mica__gemm_best(),
                                 .m = s->outs,
                                 .n = n,
                                 .k = s->channels * s->kernel[0] * s->kernel[1],
                                 .pack_a = job->flat ? mica__gemm_pack_view : conv_pack_weights,
                                 .pack_b = conv_pack_patches,
                                 .a = job->flat ? (const void *)&view : (const void *)&weights,
                                 .b = &patches,
                                 .out = mica__element(job->launch->out, first),
                                 .row = n,
                                 .dtype = dtype};
        mica__gemm_tile(&gemm, i, j);
        mica__gemm_epilogue(job->launch->epilogue, first, n, i, mica__min_i64(MICA__GEMM_ROWS, s->outs - i), j,
                            mica__min_i64(MICA__GEMM_COLS, n - j));
    }
}

static void conv_add_line(int64_t n, float a, const float *x, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) mica__v4_store(y + i, mica__v4_load(y + i) + mica__v4_load(x + i) * a);
    for (; i < n; i++) y[i] += x[i] * a;
}

/* Results y1 ... y1+n-1 of one line, n <= CONV_LINE. */
static void conv_line_sum(const conv_operand *x, const conv_operand *w, int64_t y0, int64_t y1, int64_t n, float *sums)
{
    const mica__conv_sizes *s = x->s;
    const int64_t size = (int64_t)mica_dtype_size(x->dtype), step = s->stride[1] * s->x_step[1];
    const int64_t taps = s->channels * s->kernel[0] * s->kernel[1];
    float buffer[CONV_LINE], weight;
    conv_tap tap = {0};
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t k = 0; k < taps; k++, conv_tap_next(s, &tap)) {
        int64_t first, source;
        const int64_t x0 = mica__conv_source(s, 0, y0, tap.t0);
        const int64_t end = conv_line(s, y1, n, tap.t1, &first, &source);
        if (x0 < 0 || first >= end) continue;
        const int64_t w_at = tap.c * s->w_channel + tap.t0 * s->w_step[0] + tap.t1 * s->w_step[1];
        mica__load_f32(w->dtype, 1, &weight, w->data + w_at * size, 1);
        const char *from = x->data + (tap.c * s->x_channel + x0 * s->x_step[0] + source * s->x_step[1]) * size;
        const float *line = buffer;
        if (x->dtype == MICA_F32 && step == 1) line = (const float *)(const void *)from;
        else mica__load_f32(x->dtype, end - first, buffer, from, step);
        conv_add_line(end - first, weight, line, sums + first);
    }
}

static void conv_lines(const void *context, int64_t begin, int64_t end)
{
    const conv_job *job = context;
    const mica__conv_sizes *s = &job->s;
    const mica__tensor *x = &job->launch->in[0], *w = &job->launch->in[1];
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t outs = s->groups * s->outs;
    float sums[CONV_LINE];
    for (int64_t row = begin; row < end; row++) {
        const int64_t y0 = row % s->out[0], o = row / s->out[0] % outs, batch = row / s->out[0] / outs;
        const conv_operand from = {s, mica__element(x, batch * s->x_batch + o / s->outs * s->channels * s->x_channel),
                                   dtype};
        const conv_operand weight = {s, mica__element(w, o * s->w_out), dtype};
        for (int64_t y1 = 0; y1 < s->out[1]; y1 += CONV_LINE) {
            const int64_t n = mica__min_i64(CONV_LINE, s->out[1] - y1);
            conv_line_sum(&from, &weight, y0, y1, n, sums);
            mica__store_f32(dtype, n, mica__element(job->launch->out, row * s->out[1] + y1), 1, sums);
        }
        mica__gemm_epilogue(job->launch->epilogue, 0, s->out[1], row, 1, 0, s->out[1]);
    }
}

/* Can w's axes (channels, kernel...) be walked with one step? */
static bool conv_flat_weights(const mica__conv_sizes *s, int64_t *step)
{
    const int64_t sizes[3] = {s->kernel[1], s->kernel[0], s->channels};
    const int64_t steps[3] = {s->w_step[1], s->w_step[0], s->w_channel};
    int64_t count = 1;
    *step = 1;
    for (int i = 0; i < 3; i++) {
        if (sizes[i] == 1) continue;
        if (count == 1) *step = steps[i];
        else if (steps[i] != *step * count) return false;
        count *= sizes[i];
    }
    return true;
}

mica_status mica__conv_cpu(const mica__launch *launch)
{
    const mica__spec *out = &launch->out->spec;
    const bool epilogue = mica__dtype_of(launch->out) != MICA_F64;
    if (launch->epilogue && launch->epilogue_taken) *launch->epilogue_taken = epilogue;
    if (mica__spec_size(out) == 0) return MICA_OK;
    conv_job job = {.launch = launch, .s = mica__conv_sizes_of(launch)};
    const mica__conv_sizes *s = &job.s;
    const int64_t taps = s->channels * s->kernel[0] * s->kernel[1], rows = mica__row_count(out);
    job.flat = conv_flat_weights(s, &job.flat_step);
    if (!epilogue) {
        mica__run_rows(launch->pool, rows, 8 * taps * s->out[1], mica__conv_rows, launch);
    } else if (s->outs < 4 && s->input_dilation[1] == 1) {
        mica__run_rows(launch->pool, rows, taps * s->out[1], conv_lines, &job);
    } else {
        const int64_t n = s->out[0] * s->out[1];
        job.parts_m = (s->outs + MICA__GEMM_ROWS - 1) / MICA__GEMM_ROWS;
        job.parts_n = (n + MICA__GEMM_COLS - 1) / MICA__GEMM_COLS;
        const int64_t tile = mica__min_i64(MICA__GEMM_ROWS, s->outs) * mica__min_i64(MICA__GEMM_COLS, n);
        mica__run_rows(launch->pool, s->batch * s->groups * job.parts_m * job.parts_n, tile * (taps + 8) / 4,
                       conv_tiles, &job);
    }
    return MICA_OK;
}
