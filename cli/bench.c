/* mica bench: chooses what to measure, measures it with each number of threads,
 * and writes the table. */
#include "bench.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "cli.h"
#include "progress.h"

enum { MAX_SESSIONS = 8, MAX_THREADS = 256 };

typedef struct bench_options {
    const char *threads_text;
    int threads[MAX_SESSIONS]; /* one session each; none: 1, and all of the machine  */
    size_t n_threads;
    double seconds;            /* for each case                                      */
    int format;                /* a bench_format                                     */
    const char *output;        /* NULL: stdout                                       */
    const char *filter;
    bool list, with_long, no_peaks;
    const char **names;        /* cases and families that were asked for             */
    size_t n_names;
    const bench_case **cases;  /* what that comes to                                 */
    size_t n_cases;
} bench_options;

static int usage(const char *format, const char *text)
{
    fprintf(stderr, "mica bench: ");
    fprintf(stderr, format, text);
    fputc('\n', stderr);
    return CLI_USAGE;
}

/* --------------------------------------------------------------- options --- */

#define AT(field) offsetof(bench_options, field)
static const cli_arg bench_args[] = {
    {"--list", NULL, CLI_FLAG, AT(list), 0, 0, NULL, "the names, and what each is; measures nothing"},
    {"--filter", NULL, CLI_TEXT, AT(filter), 0, 0, "TEXT", "only those with it in their name"},
    {"--long", NULL, CLI_FLAG, AT(with_long), 0, 0, NULL, "those too that take long"},
    {"--threads", "-t", CLI_TEXT, AT(threads_text), 0, 0, "N,N", "each in turn (1, and all of the machine)"},
    {"--seconds", NULL, CLI_NUMBER, AT(seconds), 1e-6, 3600, "S", "for each (0.5)"},
    {"--no-peaks", NULL, CLI_FLAG, AT(no_peaks), 0, 0, NULL, "without the peaks of the machine"},
    {"-o", NULL, CLI_CHOICE, AT(format), 0, 0, "md|csv|json", "the format (md)"},
    {"--output", NULL, CLI_TEXT, AT(output), 0, 0, "FILE", "where it goes; stdout if not given"},
};
#undef AT

static const cli_args bench_table = {
    .command = "mica bench",
    .usage = "[NAME...] [--list]",
    .text = "Measures ops and kernels, by their names or those of their families, all if none is named, beside the\n"
            "peaks of this machine. Exit code 5 if one is above a peak: then the benchmark is wrong.\n"
            "'mica bench MODEL' measures a language model; 'mica bench builtin --help' has its options.",
    .args = bench_args,
    .n_args = sizeof bench_args / sizeof bench_args[0],
    .most_places = SIZE_MAX,
};

static int parse_threads(const char *text, bench_options *o)
{
    const char *at = text;
    for (o->n_threads = 0; o->n_threads < MAX_SESSIONS; at++) {
        char *end;
        const long n = strtol(at, &end, 10);
        if (end == at || n < 1 || n > MAX_THREADS || (*end && *end != ',')) break;
        o->threads[o->n_threads++] = (int)n;
        at = end;
        if (!*end) return CLI_OK;
    }
    return usage("--threads takes a number from 1 to 256, or up to eight with commas between, not '%s'", text);
}

static int parse_options(int argc, char **argv, bench_options *o)
{
    const int code = cli_parse(&bench_table, argc, argv, o, o->names, &o->n_names);
    return code == CLI_OK && o->threads_text ? parse_threads(o->threads_text, o) : code;
}

/* ---------------------------------------------------------------- choice --- */

/* 2: by its own name; 1: by that of its family, or nothing was named. */
static int asked_for(const bench_options *o, const bench_case *c)
{
    int how = o->n_names == 0;
    for (size_t i = 0; i < o->n_names; i++) {
        if (strcmp(o->names[i], c->name) == 0) return 2;
        if (strcmp(o->names[i], c->family->name) == 0) how = 1;
    }
    return how;
}

static bool name_exists(const char *name)
{
    for (size_t i = 0; i < n_bench_cases; i++)
        if (strcmp(bench_cases[i].name, name) == 0 || strcmp(bench_cases[i].family->name, name) == 0) return true;
    return false;
}

static int choose_cases(bench_options *o)
{
    for (size_t i = 0; i < o->n_names; i++)
        if (!name_exists(o->names[i]))
            return usage("there is no benchmark '%s'; 'mica bench --list' lists what there is", o->names[i]);
    for (size_t i = 0; i < n_bench_cases; i++) {
        const bench_case *c = &bench_cases[i];
        const int how = asked_for(o, c);
        if (how == 0 || (how == 1 && c->is_long && !o->with_long && !o->list)) continue;
        if (o->filter && !strstr(c->name, o->filter)) continue;
        o->cases[o->n_cases++] = c;
    }
    if (o->n_cases == 0) return usage("no benchmark has '%s' in its name", o->filter);
    return CLI_OK;
}

static void print_list(const bench_options *o)
{
    for (size_t i = 0; i < o->n_cases; i++)
        printf("%-10s %-27s %s%s\n", o->cases[i]->family->name, o->cases[i]->name, o->cases[i]->what,
               o->cases[i]->is_long ? " (with --long)" : "");
}

/* -------------------------------------------------------------- sessions --- */

static void show_progress(const bench_options *o, int threads, size_t i)
{
    cli_show_line("%d thread%s, %zu of %zu: %s", threads, threads == 1 ? "" : "s", i + 1, o->n_cases,
                  o->cases[i]->name);
}

static bool compare_all(bench_session *session)
{
    bool excess = false;
    for (size_t i = 0; i < session->n; i++) {
        bench_compare(&session->results[i], &session->peaks);
        if (session->results[i].excess) excess = true;
    }
    return excess;
}

/* The fields of mica_peaks after its size: so many doubles. */
enum { N_PEAKS = (sizeof(mica_peaks) - offsetof(mica_peaks, fma_f32)) / sizeof(double) };
enum { N_RATES = (offsetof(mica_peaks, l1_bytes) - offsetof(mica_peaks, fma_f32)) / sizeof(double) };

static void get_peaks(const mica_peaks *peaks, double values[N_PEAKS])
{
    memcpy(values, (const char *)peaks + offsetof(mica_peaks, fma_f32), N_PEAKS * sizeof *values);
}

static void set_peaks(mica_peaks *peaks, const double values[N_PEAKS])
{
    memcpy((char *)peaks + offsetof(mica_peaks, fma_f32), values, N_PEAKS * sizeof *values);
}

/* Measures them again: each rate is the higher of the two. */
static mica_status raise_peaks(mica_engine *engine, mica_peaks *peaks)
{
    mica_peaks again = {.struct_size = sizeof again};
    double old[N_PEAKS], new[N_PEAKS];
    const mica_status status = mica_measure_peaks(engine, &again);
    if (status != MICA_OK) return status;
    get_peaks(peaks, old);
    get_peaks(&again, new);
    for (int i = 0; i < N_RATES; i++)
        if (old[i] > new[i]) new[i] = old[i];
    set_peaks(peaks, new);
    return MICA_OK;
}

/* Without peaks they are unavailable. With peaks taken while two threads shared a
 * core, once more: that state passes. */
static mica_status begin_peaks(mica_engine *engine, const bench_options *o, bench_session *session)
{
    mica_peaks *peaks = &session->peaks;
    double unavailable[N_PEAKS];
    for (int i = 0; i < N_PEAKS; i++) unavailable[i] = NAN;
    peaks->struct_size = sizeof *peaks;
    set_peaks(peaks, unavailable);
    if (o->no_peaks) return MICA_OK;
    session->has_peaks = true;
    mica_status status = mica_measure_peaks(engine, peaks);
    if (status == MICA_OK && peaks->two_threads < BENCH_GATE) status = raise_peaks(engine, peaks);
    return status;
}

/* Above a peak: the benchmark is wrong, or the peak was disturbed. A peak that is
 * measured again can only rise. */
static int judge(mica_engine *engine, bench_session *session)
{
    enum { SECOND_LOOKS = 2 };
    for (int i = 0; compare_all(session) && i < SECOND_LOOKS; i++) {
        if (raise_peaks(engine, &session->peaks) != MICA_OK) break;
    }
    int code = CLI_OK;
    for (size_t i = 0; i < session->n; i++) {
        const bench_result *r = &session->results[i];
        if (!r->excess) continue;
        code = CLI_WRONG;
        fprintf(stderr,
                "mica bench: %s, T = %d: %.1f %s is more than 105 %% of the measured peak %.1f, so the "
                "benchmark is wrong\n",
                r->c->name, r->threads, r->excess_rate, r->excess, r->excess_peak);
    }
    return code;
}

/* One case; what fails is told and left out, the rest goes on. */
static int run_case(mica_engine *engine, const bench_case *c, double seconds, bench_session *session)
{
    const char *why;
    bench_result *r = &session->results[session->n];
    const mica_status status = bench_time(engine, c, seconds, r, &why);
    if (status == MICA_OK) {
        session->n++;
        return CLI_OK;
    }
    cli_clear_line();
    fprintf(stderr, "mica bench: %s: %s\n", c->name, why ? why : mica_last_error());
    return why ? CLI_WRONG : CLI_FAILED;
}

static int run_session(const bench_options *o, int threads, bench_session *session)
{
    mica_engine *engine;
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.threads = threads;
    mica_status status = mica_open(&options, &engine);
    session->threads = threads;
    if (status == MICA_OK) status = begin_peaks(engine, o, session);
    if (status != MICA_OK) {
        fprintf(stderr, "mica bench: %s\n", mica_last_error());
        mica_close(engine);
        return status == MICA_ERR_ARGUMENT || status == MICA_ERR_UNSUPPORTED ? CLI_USAGE : CLI_FAILED;
    }
    int code = CLI_OK;
    for (size_t i = 0; i < o->n_cases; i++) {
        show_progress(o, threads, i);
        const int result = run_case(engine, o->cases[i], o->seconds, session);
        if (result != CLI_OK) code = result;
    }
    cli_clear_line();
    const int judged = judge(engine, session);
    mica_close(engine);
    return judged != CLI_OK ? judged : code;
}

static int run_sessions(const bench_options *o, FILE *to)
{
    bench_session sessions[MAX_SESSIONS] = {0};
    int code = CLI_OK;
    for (size_t i = 0; i < o->n_threads && code != CLI_USAGE; i++) {
        sessions[i].results = calloc(o->n_cases, sizeof(bench_result));
        if (!sessions[i].results) fprintf(stderr, "mica bench: out of memory\n");
        const int result = sessions[i].results ? run_session(o, o->threads[i], &sessions[i]) : CLI_FAILED;
        if (result != CLI_OK) code = result;
    }
    if (code != CLI_USAGE) bench_print(to, (bench_format)o->format, sessions, o->n_threads);
    for (size_t i = 0; i < o->n_threads; i++) free(sessions[i].results);
    return code;
}

/* One thread, and all that an engine would take by itself. */
static int default_threads(bench_options *o)
{
    mica_engine *engine;
    const mica_status status = mica_open(NULL, &engine);
    if (status != MICA_OK) return usage("%s", mica_last_error());
    const int all = mica_engine_threads(engine);
    mica_close(engine);
    o->threads[o->n_threads++] = 1;
    if (all > 1) o->threads[o->n_threads++] = all;
    return CLI_OK;
}

static int run_bench(bench_options *o)
{
    cli_output out;
    (void)cli_rest_text(); /* measured before anything else is in memory */
    if (o->n_threads == 0 && default_threads(o) != CLI_OK) return CLI_USAGE;
    if (!cli_output_open("mica bench", o->output, &out)) return CLI_USAGE;
    const int code = run_sessions(o, out.to);
    const bool written = cli_output_close("mica bench", o->output, &out, code != CLI_USAGE);
    return code == CLI_OK && !written ? CLI_FAILED : code;
}

int cli_bench(int argc, char **argv)
{
    if (cli_bench_names_model(argc, argv)) return cli_bench_model(argc, argv);
    bench_options o = {.seconds = 0.5};
    o.names = calloc((size_t)argc, sizeof *o.names);
    o.cases = calloc(n_bench_cases, sizeof *o.cases);
    const bool allocated = o.names && o.cases;
    if (!allocated) fprintf(stderr, "mica bench: out of memory\n");
    int code = allocated ? parse_options(argc, argv, &o) : CLI_FAILED;
    if (code == CLI_OK) code = choose_cases(&o);
    if (code == CLI_OK && o.list) print_list(&o);
    else if (code == CLI_OK) code = run_bench(&o);
    free(o.names);
    free(o.cases);
    return code == CLI_HELP_SHOWN ? CLI_OK : code;
}
