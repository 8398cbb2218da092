/* See peaks.h. Every figure is the fastest of several samples, because disturbances
 * only make a sample slower. */
#include "profile/peaks.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "profile/peak_loops.h"

const mica__peaks_effort mica__peaks_full = {.sample_ns = 1000000, .samples = 5, .passes = 2};
const mica__peaks_effort mica__peaks_quick = {.dram_bytes = 1 << 20, .sample_ns = 2000, .samples = 1, .passes = 1};

static const struct {
    mica__peak_kind kind;
    unsigned needs;
    double operations; /* of one round */
    mica__peak_compute_fn compute;
    mica__peak_memory_fn memory;
} peak_loops[] = {
#define PEAK_COMPUTE(kind, fn, needs, operations) {MICA__PEAK_##kind, needs, operations, fn, NULL},
#define PEAK_MEMORY(kind, fn, needs) {MICA__PEAK_##kind, needs, 0, NULL, fn},
#include "profile/peak_loops.def"
#undef PEAK_COMPUTE
#undef PEAK_MEMORY
};
enum { N_PEAK_LOOPS = sizeof peak_loops / sizeof peak_loops[0] };

/* ---------------------------------------------------------------- samples -- */

/* One loop on one or several threads, each with a separate part of the memory. */
typedef struct peak_run {
    int loop;
    int64_t rounds;
    float *memory;
    size_t floats;     /* size of a part                                 */
    atomic_uint sink;  /* uses the results, so that the compiler keeps the work */
} peak_run;

/* The length of the arrays y, a and b of a part. It is not a power of two, because addresses
 * that are a power of two apart use the same cache sets. */
static size_t span_floats(const peak_run *run)
{
    const size_t arrays = (size_t)peak_loops[run->loop].kind - MICA__PEAK_READ + 1, room = run->floats / arrays;
    return (room - room / 16) / MICA__PEAK_BLOCK * MICA__PEAK_BLOCK;
}

static double round_bytes(const peak_run *run)
{
    const size_t arrays = (size_t)peak_loops[run->loop].kind - MICA__PEAK_READ + 1;
    return (double)(arrays * span_floats(run) * sizeof(float));
}

static void run_part(void *context, int64_t part)
{
    peak_run *run = context;
    float result;
    if (peak_loops[run->loop].compute) {
        result = peak_loops[run->loop].compute(run->rounds);
    } else {
        const size_t n = span_floats(run);
        float *a = run->memory + (size_t)part * run->floats;
        result = peak_loops[run->loop].memory(a + n, a, a + 2 * n, n, run->rounds);
    }
    uint32_t bits;
    memcpy(&bits, &result, sizeof bits);
    atomic_fetch_xor_explicit(&run->sink, bits, memory_order_relaxed);
}

static uint64_t time_parts(mica__pool *pool, peak_run *run, int parts)
{
    const uint64_t start = mica__now_ns();
    if (parts == 1) run_part(run, 0);
    else mica__pool_run(pool, parts, run_part, run);
    const uint64_t ns = mica__now_ns() - start;
    return ns ? ns : 1;
}

static void choose_rounds(mica__pool *pool, peak_run *run, int parts, uint64_t sample_ns)
{
    for (run->rounds = 1; run->rounds < INT64_C(1) << 40; run->rounds *= 2)
        if (time_parts(pool, run, parts) >= sample_ns) return;
}

/* Operations or bytes per nanosecond, all parts together. */
static double best_rate(mica__pool *pool, const mica__peaks_effort *effort, peak_run *run, int parts)
{
    uint64_t best = UINT64_MAX;
    choose_rounds(pool, run, parts, effort->sample_ns);
    for (int i = 0; i < effort->samples; i++) {
        const uint64_t ns = time_parts(pool, run, parts);
        if (ns < best) best = ns;
    }
    const double work = peak_loops[run->loop].compute ? peak_loops[run->loop].operations : round_bytes(run);
    return (double)parts * work * (double)run->rounds / (double)best;
}

/* Sets *peak to the larger value; a NaN in *peak is replaced. */
static void raise_to(double *peak, double value)
{
    if (!(*peak >= value)) *peak = value;
}

/* Measures all loops of one kind; *peak becomes the fastest. memory is NULL for compute kinds. */
static void measure_kind(mica__pool *pool, const mica__peaks_effort *effort, mica__peak_kind kind, float *memory,
                         size_t floats, int parts, double *peak)
{
    const unsigned have = mica__cpu_features();
    for (int i = 0; i < N_PEAK_LOOPS; i++) {
        if (peak_loops[i].kind != kind || (peak_loops[i].needs & ~have)) continue;
        /* a part begins on a cache line */
        peak_run run = {.loop = i, .memory = memory, .floats = floats / 16 * 16};
        raise_to(peak, best_rate(pool, effort, &run, parts));
    }
}

/* ------------------------------------------------------------- two threads - */

static int fastest_fma_loop(void)
{
    int best = 0;
    for (int i = 0; i < N_PEAK_LOOPS; i++)
        if (peak_loops[i].kind == MICA__PEAK_FMA_F32 && (peak_loops[i].needs & ~mica__cpu_features()) == 0) best = i;
    return best;
}

double mica__peaks_two_threads(mica__pool *pool, const mica__peaks_effort *effort)
{
    if (mica__pool_threads(pool) < 2) return NAN;
    peak_run run = {.loop = fastest_fma_loop()};
    uint64_t one = UINT64_MAX, two = UINT64_MAX;
    choose_rounds(pool, &run, 1, effort->sample_ns);
    /* One and two threads alternate, so that a change of the clock frequency affects both. Two
     * threads run twice, because the second thread may be asleep the first time. */
    for (int i = 0; i < effort->samples; i++) {
        const uint64_t ns = time_parts(pool, &run, 1);
        if (ns < one) one = ns;
        for (int k = 0; k < 2; k++) {
            const uint64_t ns_two = time_parts(pool, &run, 2);
            if (ns_two < two) two = ns_two;
        }
    }
    return 2.0 * (double)one / (double)two;
}

/* --------------------------------------------------------------- fork-join - */

/* A job that ends only when every thread has started its task. Otherwise the caller could run
 * all tasks of an empty job alone, and no other thread would be measured. */
typedef struct meeting {
    atomic_int came;
    int wanted;
    atomic_bool missed;
} meeting;

static const uint64_t meeting_timeout_ns = 1000000;

static void come(void *context, int64_t task)
{
    (void)task;
    meeting *m = context;
    uint64_t start = 0;
    atomic_fetch_add(&m->came, 1);
    for (int spins = 1; atomic_load(&m->came) < m->wanted; spins++) {
        if (spins % 256) continue;
        const uint64_t now = mica__now_ns();
        if (start == 0) start = now;
        if (now - start < meeting_timeout_ns) continue;
        atomic_store(&m->missed, true);
        return;
    }
}

static double measure_fork_join_us(mica__pool *pool, const mica__peaks_effort *effort)
{
    enum { JOBS = 50, BATCHES = 20 };
    const int threads = mica__pool_threads(pool);
    double best = NAN;
    if (threads < 2) return best;
    for (int batch = 0; batch < BATCHES * effort->samples; batch++) {
        bool whole = true;
        const uint64_t start = mica__now_ns();
        for (int i = 0; i < JOBS && whole; i++) {
            meeting m = {.wanted = threads};
            mica__pool_run(pool, threads, come, &m);
            whole = !atomic_load(&m.missed);
        }
        const double us = (double)(mica__now_ns() - start) / (1e3 * (double)JOBS);
        if (whole && !(best <= us)) best = us;
    }
    return best;
}

/* ------------------------------------------------------------------ memory - */

/* Much larger than the last-level cache, and at most an eighth of the memory of the machine. */
static size_t dram_bytes(const mica__peaks_effort *effort)
{
    if (effort->dram_bytes) return effort->dram_bytes;
    const size_t least = (size_t)192 << 20, most = (size_t)1 << 30;
    size_t cache = 0;
    for (int level = 1; level <= 3; level++)
        if (mica__cpu_cache(level) > cache) cache = mica__cpu_cache(level);
    size_t nbytes = cache < most / 6 ? 6 * cache : most;
    if (nbytes < least) nbytes = least;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0 && nbytes > (size_t)pages / 8 * (size_t)page) nbytes = (size_t)pages / 8 * (size_t)page;
    return nbytes;
}

typedef struct peak_memory {
    float *data;
    size_t nbytes;
} peak_memory;

/* Read rate of a cache. Data fill half of a private cache (levels 1 and 2). The half of level 3 is
 * divided among the threads; each part must be at least twice level 2. */
static void measure_cache(mica__pool *pool, const mica__peaks_effort *effort, const peak_memory *memory, int level,
                          int parts, double *peak)
{
    size_t nbytes = mica__cpu_cache(level) / 2;
    if (level == 3) {
        nbytes /= (size_t)(parts > 2 ? parts : 2);
        if (nbytes < 2 * mica__cpu_cache(2)) return;
    }
    if (nbytes == 0 || nbytes * (size_t)parts > memory->nbytes) return;
    measure_kind(pool, effort, MICA__PEAK_READ, memory->data, nbytes / sizeof(float), parts, peak);
}

static void measure_memory(mica__pool *pool, const mica__peaks_effort *effort, const peak_memory *memory, int parts,
                           double *const caches[3], double *const streams[3])
{
    for (int level = 1; level <= 3; level++) measure_cache(pool, effort, memory, level, parts, caches[level - 1]);
    const size_t floats = memory->nbytes / sizeof(float) / (size_t)parts;
    for (int kind = MICA__PEAK_READ; kind < MICA__PEAK_COUNT; kind++)
        measure_kind(pool, effort, (mica__peak_kind)kind, memory->data, floats, parts, streams[kind - MICA__PEAK_READ]);
}

/* ------------------------------------------------------------------- peaks - */

static void set_unavailable(mica_peaks *p)
{
    const double unavailable = NAN;
    for (size_t at = offsetof(mica_peaks, fma_f32); at < sizeof *p; at += sizeof unavailable)
        memcpy((char *)p + at, &unavailable, sizeof unavailable);
    double *const bytes[] = {&p->l1_bytes, &p->l2_bytes, &p->l3_bytes};
    for (int level = 1; level <= 3; level++)
        if (mica__cpu_cache(level)) *bytes[level - 1] = (double)mica__cpu_cache(level);
}

static void measure_all(mica__pool *pool, const mica__peaks_effort *effort, const peak_memory *memory, mica_peaks *p)
{
    const int threads = mica__pool_threads(pool);
    double *const compute[][2] = {
        {&p->fma_f32, &p->fma_f32_all}, {&p->dot_i8, &p->dot_i8_all}, {&p->dot_bf16, &p->dot_bf16_all}};
    double *const caches[2][3] = {{&p->l1_read, &p->l2_read, &p->l3_read},
                                  {&p->l1_read_all, &p->l2_read_all, &p->l3_read_all}};
    double *const streams[2][3] = {{&p->dram_read, &p->dram_copy, &p->dram_triad},
                                   {&p->dram_read_all, &p->dram_copy_all, &p->dram_triad_all}};
    for (int all = 0; all < (threads > 1 ? 2 : 1); all++) {
        const int parts = all ? threads : 1;
        for (int kind = 0; kind < MICA__PEAK_N_COMPUTE; kind++)
            measure_kind(pool, effort, (mica__peak_kind)kind, NULL, 0, parts, compute[kind][all]);
        measure_memory(pool, effort, memory, parts, caches[all], streams[all]);
    }
    raise_to(&p->two_threads, mica__peaks_two_threads(pool, effort));
    const double us = measure_fork_join_us(pool, effort);
    if (!(p->fork_join_us <= us)) p->fork_join_us = us;
}

/* With one thread the figures of all threads are those of one. */
static void copy_to_all(mica_peaks *p)
{
    p->fma_f32_all = p->fma_f32, p->dot_i8_all = p->dot_i8, p->dot_bf16_all = p->dot_bf16;
    p->l1_read_all = p->l1_read, p->l2_read_all = p->l2_read, p->l3_read_all = p->l3_read;
    p->dram_read_all = p->dram_read, p->dram_copy_all = p->dram_copy, p->dram_triad_all = p->dram_triad;
}

mica_status mica__peaks_measure(mica__pool *pool, const mica__peaks_effort *effort, mica_peaks *peaks)
{
    peak_memory memory = {.nbytes = dram_bytes(effort)};
    memory.data = mica__alloc_pages(memory.nbytes);
    if (!memory.data) return mica__fail_memory("measuring the peaks", memory.nbytes);
    /* Writing allocates the pages: pages that were never written all map to one page of zeros. */
    for (size_t i = 0; i < memory.nbytes / sizeof(float); i++) memory.data[i] = 1.0f;
    set_unavailable(peaks);
    for (int pass = 0; pass < effort->passes; pass++) measure_all(pool, effort, &memory, peaks);
    if (mica__pool_threads(pool) < 2) copy_to_all(peaks);
    mica__free_pages(memory.data, memory.nbytes);
    return MICA_OK;
}
