/* What the engine itself costs: building nodes, planning, replaying a plan, and
 * two workloads. A timer starts after the inputs exist and stops after the
 * results do; each line gives the fastest and the median of many runs. Prints
 * CSV, with the machine in comment lines. */
#include <mica.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

enum { N_NODES = 1000, N_TINY = 16, N_CHAIN = 65536, N_MATMUL = 256, N_RUNS = 200, N_FIRST_RUNS = 20 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* A bench has nothing to tell after a failure. */
static void must(mica_status status)
{
    if (status == MICA_OK) return;
    fprintf(stderr, "bench_engine: %s\n", mica_last_error());
    exit(1);
}

static mica_engine *open_engine(void)
{
    mica_engine *engine;
    must(mica_open(NULL, &engine));
    return engine;
}

/* ------------------------------------------------------------- samples ---- */

typedef struct samples {
    double ns[N_RUNS];
    int n;
} samples;

static void add_sample(samples *s, double ns) { s->ns[s->n++] = ns; }

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* work: units done in one sample, so that a line reads "ns per node"; with
 * per_second the line is a rate instead, in billions of units. */
static void report(samples *s, const char *name, const char *unit, double work, int per_second)
{
    qsort(s->ns, (size_t)s->n, sizeof s->ns[0], by_value);
    const double fastest = s->ns[0], median = s->ns[s->n / 2];
    printf("%s,%d,%.6g,%.6g,%s\n", name, s->n, per_second ? work / fastest : fastest / work,
           per_second ? work / median : median / work, unit);
}

/* ------------------------------------------------------------ workloads --- */

typedef mica_array *(*build_fn)(mica_scope *s, mica_array *const *in);

/* N_NODES ops on N_TINY floats; no two are equal, none can be simplified. */
static mica_array *build_tiny(mica_scope *s, mica_array *const *in)
{
    mica_array *y = in[0];
    for (int i = 0; i < N_NODES / 2; i++) y = mica_mul(s, mica_add(s, y, in[1]), in[2]);
    return y;
}

/* Eight ops that fusion can make one pass over memory. */
static mica_array *build_chain(mica_scope *s, mica_array *const *in)
{
    mica_array *y = mica_add(s, mica_mul(s, in[0], in[1]), in[2]);
    y = mica_sub(s, mica_maximum(s, y, in[0]), mica_minimum(s, y, in[1]));
    return mica_sqrt(s, mica_abs(s, mica_mul(s, y, in[2])));
}

static mica_array *build_matmul(mica_scope *s, mica_array *const *in) { return mica_matmul(s, in[0], in[1]); }

/* Three evaluated inputs of the scope. */
static void make_inputs(mica_scope *s, int ndim, const int64_t *shape, mica_array *in[3])
{
    for (uint64_t i = 0; i < 3; i++) in[i] = mica_random_uniform(s, MICA_F32, ndim, shape, 0.5, 1.5, i);
    must(mica_eval(s, in, 3));
}

static void bench_build(mica_engine *engine)
{
    samples build = {.n = 0}, drop = {.n = 0};
    mica_scope *inputs = mica_scope_begin(engine);
    mica_array *in[3];
    make_inputs(inputs, 1, (int64_t[]){N_TINY}, in);
    for (int run = 0; run < N_RUNS; run++) {
        mica_scope *s = mica_scope_begin(engine);
        const double start = now_ns();
        build_tiny(s, in);
        const double built = now_ns();
        must(mica_scope_status(s));
        const double before_drop = now_ns();
        mica_scope_end(s);
        add_sample(&drop, now_ns() - before_drop);
        add_sample(&build, built - start);
    }
    mica_scope_end(inputs);
    report(&build, "build", "ns/node", N_NODES, 0);
    report(&drop, "drop", "ns/node", N_NODES, 0);
}

/* The first evaluation of a graph plans it; a new engine has planned nothing. */
static void bench_first(void)
{
    samples first = {.n = 0};
    for (int run = 0; run < N_FIRST_RUNS; run++) {
        mica_engine *engine = open_engine();
        mica_scope *s = mica_scope_begin(engine);
        mica_array *in[3];
        make_inputs(s, 1, (int64_t[]){N_TINY}, in);
        mica_array *y = build_tiny(s, in);
        const double start = now_ns();
        must(mica_eval(s, &y, 1));
        add_sample(&first, now_ns() - start);
        mica_scope_end(s);
        mica_close(engine);
    }
    report(&first, "first_eval_1000_tiny_ops", "us", 1e3, 0);
}

/* Evaluations of an equal graph, built anew outside the timer. Every one of them
 * must have found its plan in the cache, or the figure is not what it says. */
static samples bench_replay(mica_engine *engine, build_fn build, mica_array *const *in, mica_plan_info *plan)
{
    samples replay = {.n = 0};
    mica_stats before = {.struct_size = sizeof before}, after = before;
    for (int run = -1; run < N_RUNS; run++) {
        if (run == 0) mica_engine_stats(engine, &before);
        mica_scope *s = mica_scope_begin(engine);
        mica_array *y = build(s, in);
        if (run < 0) must(mica_plan_query(s, &y, 1, plan));
        const double start = now_ns();
        must(mica_eval(s, &y, 1));
        const double ns = now_ns() - start;
        if (run >= 0) add_sample(&replay, ns);
        mica_scope_end(s);
    }
    mica_engine_stats(engine, &after);
    if (after.plan_misses != before.plan_misses) {
        fprintf(stderr, "bench_engine: a replay planned again\n");
        exit(1);
    }
    return replay;
}

static void bench_workloads(mica_engine *engine)
{
    mica_scope *s = mica_scope_begin(engine);
    mica_array *in[3];
    mica_plan_info plan = {.struct_size = sizeof plan};

    make_inputs(s, 1, (int64_t[]){N_TINY}, in);
    samples tiny = bench_replay(engine, build_tiny, in, &plan);
    report(&tiny, "replay_1000_tiny_ops", "us", 1e3, 0);
    printf("# that plan: %llu nodes in %llu kernels\n", (unsigned long long)plan.nodes,
           (unsigned long long)plan.kernels);

    make_inputs(s, 1, (int64_t[]){N_CHAIN}, in);
    samples chain = bench_replay(engine, build_chain, in, &plan);
    const double bytes = (double)(plan.bytes_read + plan.bytes_written);
    report(&chain, "chain_64k_floats", "us", 1e3, 0);
    report(&chain, "chain_64k_floats_moved", "GB/s", bytes, 1);
    printf("# that plan: %llu nodes in %llu kernels, %.0f bytes read and written\n", (unsigned long long)plan.nodes,
           (unsigned long long)plan.kernels, bytes);

    make_inputs(s, 2, (int64_t[]){N_MATMUL, N_MATMUL}, in);
    samples matmul = bench_replay(engine, build_matmul, in, &plan);
    report(&matmul, "matmul_256", "us", 1e3, 0);
    report(&matmul, "matmul_256_rate", "GFLOP/s", 2.0 * N_MATMUL * N_MATMUL * N_MATMUL, 1);
    mica_scope_end(s);
}

int main(void)
{
    mica_engine *engine = open_engine();
    struct utsname host;
    const int known = uname(&host) == 0;
    printf("# mica %s, backend %s, %d threads, %s %s\n", mica_version(), mica_engine_backend(engine),
           mica_engine_threads(engine), known ? host.sysname : "system unavailable", known ? host.machine : "");
    printf("measure,runs,fastest,median,unit\n");
    bench_build(engine);
    bench_first();
    bench_workloads(engine);
    mica_close(engine);
    return 0;
}
