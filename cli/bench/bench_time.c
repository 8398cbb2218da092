/* mica bench: the timer, and the statistics of its samples.
 *
 * The inputs are evaluated before the timer starts. It stops when mica_eval has returned,
 * when the results are computed. Building the graph is included, because users pay for it
 * too; freeing the results is not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"

enum { MAX_RUNS = 100000, MIN_RUNS = 3 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* --------------------------------------------------------------- one run -- */

static mica_status trace_case(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                              void *user)
{
    const bench_case *c = ((const bench_state *)user)->c;
    mica_array *built[BENCH_MAX_OUT] = {0};
    (void)n_in;
    c->family->build(c, s, in, built);
    memcpy(out, built, n_out * sizeof *out);
    return mica_scope_status(s);
}

/* Runs the case once: builds the graph and evaluates it, or what the mode requires. */
static mica_status run_once(bench_state *b, size_t n_out, double *ns)
{
    const bench_case *c = b->c;
    mica_array *out[BENCH_MAX_OUT] = {0};
    mica_scope *s = mica_scope_begin(b->engine);
    if (!s) return MICA_ERR_MEMORY;
    mica_status status = MICA_OK;
    double start = now_ns();
    if (c->mode == BENCH_CALL) status = mica_call(s, b->function, b->in, b->n_in, out, n_out);
    else c->family->build(c, s, b->in, out);
    if (c->mode == BENCH_DROP || c->mode == BENCH_FIRST) start = now_ns();
    if (c->mode == BENCH_EVAL || c->mode == BENCH_FIRST) status = mica_eval(s, out, n_out);
    double end = now_ns();
    if (status == MICA_OK) status = mica_scope_status(s);
    if (c->mode == BENCH_DROP) start = now_ns();
    mica_scope_end(s);
    if (c->mode == BENCH_DROP) end = now_ns();
    *ns = end - start;
    return status;
}

static void end_state(bench_state *b)
{
    mica_function_free(b->function);
    mica_scope_end(b->inputs);
    b->function = NULL;
    b->inputs = NULL;
    b->n_in = 0;
}

/* Evaluates the inputs, and compiles the function for BENCH_CALL. */
static mica_status begin_state(bench_state *b)
{
    mica_status status = MICA_OK;
    b->inputs = mica_scope_begin(b->engine);
    if (!b->inputs) return MICA_ERR_MEMORY;
    b->c->family->make(b);
    if (b->n_in) status = mica_eval(b->inputs, b->in, b->n_in);
    if (status == MICA_OK && b->c->mode == BENCH_CALL) status = mica_compile(b->engine, trace_case, b, &b->function);
    if (status != MICA_OK) end_state(b);
    return status;
}

/* Runs the case on a new engine, which has no plans yet. */
static mica_status run_first(const bench_case *c, int threads, size_t n_out, double *ns)
{
    bench_state b = {.c = c};
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.threads = threads;
    mica_status status = mica_open(&options, &b.engine);
    if (status != MICA_OK) return status;
    status = begin_state(&b);
    if (status == MICA_OK) status = run_once(&b, n_out, ns);
    if (b.inputs) end_state(&b);
    mica_close(b.engine);
    return status;
}

/* -------------------------------------------------------- counted and checked */

/* Counts the outputs and the work of a run from the arrays, without evaluating them. */
static mica_status count_work(bench_state *b, size_t *n_out, bench_work *work)
{
    mica_array *out[BENCH_MAX_OUT] = {0};
    mica_scope *s = mica_scope_begin(b->engine);
    if (!s) return MICA_ERR_MEMORY;
    *n_out = b->c->family->build(b->c, s, b->in, out);
    const mica_status status = mica_scope_status(s);
    *work = (bench_work){.writes = true, .item = "element"};
    if (status == MICA_OK) {
        work->items = (double)mica_array_size(out[0]);
        for (size_t i = 0; i < b->n_in; i++) work->bytes += (double)mica_array_nbytes(b->in[i]);
        for (size_t i = 0; i < *n_out; i++) work->bytes += (double)mica_array_nbytes(out[i]);
        work->touched = work->bytes;
        b->c->family->count(b->c, work);
    }
    mica_scope_end(s);
    return status;
}

/* Refuses infinite and NaN results: a run with such values may have done less work. */
static mica_status check_finite(bench_state *b, size_t n_out, const char **why)
{
    mica_array *out[BENCH_MAX_OUT] = {0}, *sum;
    mica_scope *s = mica_scope_begin(b->engine);
    if (!s) return MICA_ERR_MEMORY;
    double value = 0;
    b->c->family->build(b->c, s, b->in, out);
    mica_status status = mica_eval(s, out, n_out);
    for (size_t i = 0; i < n_out && status == MICA_OK && isfinite(value); i++) {
        sum = mica_cast(s, mica_mean(s, mica_cast(s, out[i], MICA_F32), NULL, 0, false), MICA_F64);
        status = mica_eval(s, &sum, 1);
        if (status == MICA_OK) status = mica_item(sum, &value);
    }
    mica_scope_end(s);
    if (status != MICA_OK || isfinite(value)) return status;
    *why = "its result is not finite";
    return MICA_ERR_INTERNAL;
}

static uint64_t plans_made(const mica_engine *engine)
{
    mica_stats stats = {.struct_size = sizeof stats};
    mica_engine_stats(engine, &stats);
    return stats.plan_misses + stats.compiles;
}

/* --------------------------------------------------------------- samples --- */

typedef struct samples {
    double *ns;
    size_t n;
} samples;

static mica_status take_samples(bench_state *b, size_t n_out, double seconds, samples *s)
{
    const bool first = b->c->mode == BENCH_FIRST;
    const double end = now_ns() + 1e9 * seconds;
    for (s->n = 0; s->n < MAX_RUNS && (s->n < MIN_RUNS || now_ns() < end); s->n++) {
        const mica_status status = first ? run_first(b->c, mica_engine_threads(b->engine), n_out, &s->ns[s->n])
                                         : run_once(b, n_out, &s->ns[s->n]);
        if (status != MICA_OK) return status;
    }
    return MICA_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(samples *s, bench_result *r)
{
    qsort(s->ns, s->n, sizeof *s->ns, by_value);
    r->runs = s->n;
    r->fastest_ns = s->ns[0];
    r->median_ns = s->ns[s->n / 2];
    r->p10_ns = s->ns[s->n / 10];
    r->p90_ns = s->ns[s->n - 1 - s->n / 10];
}

/* Warms up for a fifth of the time, then measures. The measured runs must not plan again. */
static mica_status measure(bench_state *b, double seconds, samples *s, bench_result *r, const char **why)
{
    size_t n_out;
    mica_status status = count_work(b, &n_out, &r->work);
    if (status == MICA_OK) status = check_finite(b, n_out, why);
    if (status == MICA_OK) status = take_samples(b, n_out, seconds / 5, s);
    if (status == MICA_OK) status = mica_measure_two_threads(b->engine, &r->gate_before);
    const uint64_t plans = plans_made(b->engine);
    if (status == MICA_OK) status = take_samples(b, n_out, seconds, s);
    if (status == MICA_OK && plans_made(b->engine) != plans) {
        *why = "the graph was planned again while it was timed";
        status = MICA_ERR_INTERNAL;
    }
    if (status == MICA_OK) status = mica_measure_two_threads(b->engine, &r->gate_after);
    if (status == MICA_OK) summarise(s, r);
    return status;
}

mica_status bench_time(mica_engine *engine, const bench_case *c, double seconds, bench_result *r, const char **why)
{
    bench_state b = {.c = c, .engine = engine};
    samples s = {.ns = malloc(MAX_RUNS * sizeof(double))};
    *r = (bench_result){.c = c, .threads = mica_engine_threads(engine)};
    *why = NULL;
    if (!s.ns) {
        *why = "out of memory for the samples";
        return MICA_ERR_MEMORY;
    }
    mica_status status = begin_state(&b);
    if (status == MICA_OK) {
        status = measure(&b, seconds, &s, r, why);
        end_state(&b);
    }
    free(s.ns);
    mica_engine_trim(engine);
    return status;
}

/* ----------------------------------------------------------------- roofs --- */

bool bench_gated(const bench_result *r)
{
    return r->threads > 1 && !(r->gate_before >= BENCH_GATE && r->gate_after >= BENCH_GATE);
}

/* peak: the measured peak, for percentages. possible: no correct result is above this rate. */
typedef struct roof {
    const char *name;
    double peak, possible;
} roof;

/* The threads may have shared a core while the peak for several threads was measured, so
 * the possible rate is at least threads * the rate of one. */
static roof make_roof(const bench_result *r, const char *name, double one, double all)
{
    if (r->threads == 1) return (roof){name, one, one};
    return (roof){name, all, fmax(all, one * r->threads)};
}

static roof compute_roof(const bench_result *r, const mica_peaks *p)
{
    if (r->c->roof == BENCH_BF16 && !isnan(p->dot_bf16)) return make_roof(r, "bf16", p->dot_bf16, p->dot_bf16_all);
    if (r->c->roof == BENCH_I8 && !isnan(p->dot_i8)) return make_roof(r, "i8", p->dot_i8, p->dot_i8_all);
    return make_roof(r, "f32", p->fma_f32, p->fma_f32_all);
}

static roof dram_roof(const bench_result *r, const mica_peaks *p)
{
    const roof read = make_roof(r, "DRAM read", p->dram_read, p->dram_read_all);
    const roof copy = make_roof(r, "DRAM copy", p->dram_copy, p->dram_copy_all);
    roof triad = make_roof(r, "DRAM triad", p->dram_triad, p->dram_triad_all);
    triad.possible = fmax(triad.possible, fmax(copy.possible, read.possible));
    return r->work.writes ? triad : (roof){read.name, read.peak, triad.possible};
}

/* The roof of the smallest memory that holds `bytes`. In a cache, reads and writes may
 * overlap: that doubles the possible rate but not the peak. */
static roof memory_roof(const bench_result *r, const mica_peaks *p, double bytes)
{
    const struct {
        double bytes;
        roof roof;
    } caches[] = {{p->l1_bytes * r->threads, make_roof(r, "L1 read", p->l1_read, p->l1_read_all)},
                  {p->l2_bytes * r->threads, make_roof(r, "L2 read", p->l2_read, p->l2_read_all)},
                  {p->l3_bytes, make_roof(r, "L3 read", p->l3_read, p->l3_read_all)}};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        roof found = caches[i].roof;
        if (!(bytes <= caches[i].bytes) || isnan(found.peak)) continue;
        if (r->work.writes) found.possible *= 2;
        return found;
    }
    return dram_roof(r, p);
}

static void set_excess(bench_result *r, const char *what, double rate, double peak)
{
    if (!(rate > BENCH_EXCESS * peak)) return;
    r->excess = what;
    r->excess_rate = rate;
    r->excess_peak = peak;
}

void bench_compare(bench_result *r, const mica_peaks *peaks)
{
    r->compute_percent = r->memory_percent = NAN;
    r->memory_roof = r->excess = NULL;
    if (r->work.flops > 0) {
        const roof compute = compute_roof(r, peaks);
        const double rate = r->work.flops / r->fastest_ns;
        r->compute_percent = 100 * rate / compute.peak;
        set_excess(r, "GFLOP/s", rate, compute.possible);
    }
    if (r->work.bytes > 0) {
        /* data up to 4 times as large as a cache may still be mostly in it: it sets the possible rate */
        const roof memory = memory_roof(r, peaks, r->work.touched), near = memory_roof(r, peaks, r->work.touched / 4);
        const double rate = r->work.bytes / r->fastest_ns;
        r->memory_percent = 100 * rate / memory.peak;
        if (!isnan(memory.peak)) r->memory_roof = memory.name;
        set_excess(r, "GB/s", rate, near.possible);
    }
}
