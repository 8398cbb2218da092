/* mica bench: chooses the cases, measures them with each number of threads, and
 * writes the table. */
#include "bench/bench.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/json.h"
#include "core/progress.h"
#include "core/signals.h"
#include "machine/machine.h"

typedef struct bench_options {
    cli_ints threads; /* one session each                                            */
    double seconds;   /* for each case                                               */
    int format;       /* a bench_format                                              */
    bool json;        /* the same as BENCH_JSON                                      */
    const char *output; /* NULL: stdout                                              */
    const char *filter;
    bool list, with_long, no_peaks;
} bench_options;

/* A call of the command: the cases that its arguments choose. */
typedef struct bench_choice {
    const bench_options *o;
    bench_format format;
    cli_ints threads;
    const char **names; /* of cases and families                                     */
    size_t n_names;
    const bench_case **cases;
    size_t n_cases;
} bench_choice;

/* --------------------------------------------------------------- options --- */

/* clang-format off */
#define AT(field) offsetof(bench_options, field)
static const cli_option bench_rows[] = {
    {"--list", NULL, CLI_FLAG, AT(list), .text = "list the benchmarks and measure nothing"},
    {"--filter", NULL, CLI_TEXT, AT(filter), .value = "TEXT", .unset = "all",
     .text = "measure only benchmarks whose name contains TEXT"},
    {"--long", NULL, CLI_FLAG, AT(with_long), .text = "also measure the benchmarks that take long"},
    {"--threads", "-t", CLI_INTS, AT(threads), 1, 256, "N,N", .unset = "1, and all of the machine",
     .text = "CPU threads; each number is measured in turn"},
    {"--seconds", NULL, CLI_NUMBER, AT(seconds), 1e-6, 3600, "S", .initial = "0.5",
     .text = "seconds to measure each benchmark"},
    {"--no-peaks", NULL, CLI_FLAG, AT(no_peaks), .text = "do not measure the peaks of the machine"},
    {"--format", "-o", CLI_CHOICE, AT(format), .value = "md|csv|json", .text = "format of the table"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "the same as --format json; with --list, print the list as JSON"},
    {"--output", NULL, CLI_PATH, AT(output), .value = "FILE", .unset = "stdout", .text = "the file to write"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_bench(const cli_call *call);

const cli_command cli_bench_command = {
    .name = "mica bench",
    .summary = "measure ops and kernels against the peaks of this machine",
    .usage = "[NAME...] [--list] [options]",
    .text =
        "Measures ops and kernels and compares them with the peaks of this machine. Exit code 5 if a result is above "
        "a peak: then the benchmark is wrong. With a model among the arguments, measures the model (see below).",
    .arguments =
        (const cli_argument[]){{"NAME", "a benchmark or a family of benchmarks; without it, all"}, {NULL, NULL}},
    .most_args = SIZE_MAX,
    .groups = (const cli_group[]){{"Options", bench_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(bench_options),
    .run = run_bench,
    .subcommands = (const cli_command *const[]){&cli_bench_model_command, NULL},
    .choose = cli_bench_form,
};

/* ---------------------------------------------------------------- choice --- */

/* 2: the case is named; 1: its family is named, or there are no names; 0: neither. */
static int match_names(const bench_choice *o, const bench_case *c)
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

static int refuse_name(const char *name)
{
    cli_suggestion s = {.typed = name};
    for (size_t i = 0; i < n_bench_cases; i++) {
        cli_suggest(&s, bench_cases[i].name);
        cli_suggest(&s, bench_cases[i].family->name);
    }
    if (s.best) fprintf(stderr, "mica bench: there is no benchmark '%s'; did you mean '%s'?\n", name, s.best);
    else fprintf(stderr, "mica bench: there is no benchmark '%s'; 'mica bench --list' lists them\n", name);
    return CLI_USAGE;
}

static int choose_cases(bench_choice *b)
{
    const bench_options *o = b->o;
    for (size_t i = 0; i < b->n_names; i++)
        if (!name_exists(b->names[i])) return refuse_name(b->names[i]);
    for (size_t i = 0; i < n_bench_cases; i++) {
        const bench_case *c = &bench_cases[i];
        const int how = match_names(b, c);
        if (how == 0 || (how == 1 && c->is_long && !o->with_long && !o->list)) continue;
        if (o->filter && !strstr(c->name, o->filter)) continue;
        b->cases[b->n_cases++] = c;
    }
    if (b->n_cases > 0) return CLI_OK;
    return cli_fail(CLI_USAGE, "mica bench: no benchmark has '%s' in its name", o->filter);
}

static void print_list_json(const bench_choice *b)
{
    cli_json j = {.to = stdout};
    cli_json_array(&j, NULL, CLI_JSON_LINES);
    for (size_t i = 0; i < b->n_cases; i++) {
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_text(&j, "family", b->cases[i]->family->name);
        cli_json_text(&j, "name", b->cases[i]->name);
        cli_json_text(&j, "what", b->cases[i]->what);
        cli_json_bool(&j, "long", b->cases[i]->is_long);
        cli_json_end(&j);
    }
    cli_json_end(&j);
}

static void print_list(const bench_choice *b)
{
    if (b->format == BENCH_JSON) {
        print_list_json(b);
        return;
    }
    for (size_t i = 0; i < b->n_cases; i++)
        printf("%-10s %-27s %s%s\n", b->cases[i]->family->name, b->cases[i]->name, b->cases[i]->what,
               b->cases[i]->is_long ? " (with --long)" : "");
}

/* -------------------------------------------------------------- sessions --- */

static void show_progress(const bench_choice *o, int threads, size_t i)
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

/* mica_peaks as an array: N_PEAKS doubles follow struct_size, the first N_RATES are rates. */
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

/* Measures the peaks again; each rate becomes the higher of both measurements. */
static mica_status remeasure_peaks(mica_engine *engine, mica_peaks *peaks)
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

/* Measures the peaks, or sets them to NaN for --no-peaks. Measures them again if two
 * threads shared a core, because that state is temporary. */
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
    if (status == MICA_OK && peaks->two_threads < BENCH_GATE) status = remeasure_peaks(engine, peaks);
    return status;
}

/* Reports results above a peak: the benchmark is wrong, or the measurement of the peak was
 * disturbed. So the peaks are measured again first, which can only raise them. */
static int judge(mica_engine *engine, bench_session *session)
{
    enum { SECOND_LOOKS = 2 };
    for (int i = 0; compare_all(session) && i < SECOND_LOOKS; i++) {
        if (remeasure_peaks(engine, &session->peaks) != MICA_OK) break;
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

/* Measures one case. A failure is reported, and the other cases are still measured. */
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

static int run_session(const bench_choice *b, int threads, bench_session *session)
{
    mica_engine *engine;
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.threads = threads;
    mica_status status = mica_open(&options, &engine);
    session->threads = threads;
    if (status == MICA_OK) status = begin_peaks(engine, b->o, session);
    if (status != MICA_OK) {
        const int failed = cli_engine_failed("mica bench", status);
        mica_close(engine);
        return failed;
    }
    int code = CLI_OK;
    for (size_t i = 0; i < b->n_cases && !cli_interrupted(); i++) {
        show_progress(b, threads, i);
        const int result = run_case(engine, b->cases[i], b->o->seconds, session);
        if (result != CLI_OK) code = result;
    }
    cli_clear_line();
    const int judged = cli_interrupted() ? CLI_INTERRUPTED : judge(engine, session);
    mica_close(engine);
    return judged != CLI_OK ? judged : code;
}

static int run_sessions(const bench_choice *b, FILE *to)
{
    bench_session sessions[CLI_MAX_INTS] = {0};
    int code = CLI_OK;
    for (size_t i = 0; i < b->threads.n && code != CLI_USAGE && code != CLI_INTERRUPTED; i++) {
        sessions[i].results = calloc(b->n_cases, sizeof(bench_result));
        const int result =
            sessions[i].results ? run_session(b, (int)b->threads.at[i], &sessions[i]) : cli_no_memory("mica bench");
        if (result != CLI_OK) code = result;
    }
    if (code != CLI_USAGE) bench_print(to, b->format, sessions, b->threads.n);
    for (size_t i = 0; i < b->threads.n; i++) free(sessions[i].results);
    return code;
}

/* One thread, and the default of an engine. */
static int default_threads(cli_ints *threads)
{
    mica_engine *engine;
    const mica_status status = mica_open(NULL, &engine);
    if (status != MICA_OK) return cli_engine_failed("mica bench", status);
    const int all = mica_engine_threads(engine);
    mica_close(engine);
    threads->at[threads->n++] = 1;
    if (all > 1) threads->at[threads->n++] = all;
    return CLI_OK;
}

static int measure_cases(bench_choice *b)
{
    cli_output out;
    (void)cli_idle_memory_text(); /* measured before anything else is in memory */
    b->threads = b->o->threads;
    int code = b->threads.n == 0 ? default_threads(&b->threads) : CLI_OK;
    if (code != CLI_OK) return code;
    if (!cli_output_open("mica bench", b->o->output, &out)) return CLI_FAILED;
    cli_signals_watch();
    code = run_sessions(b, out.to);
    cli_signals_release();
    const bool written = cli_output_close("mica bench", b->o->output, &out, code != CLI_USAGE);
    return code == CLI_OK && !written ? CLI_FAILED : code;
}

static int run_bench(const cli_call *call)
{
    bench_choice b = {.o = call->options, .names = call->args, .n_names = call->n_args};
    if (bench_choose_format(b.o->format, b.o->json, &b.format) != CLI_OK) return CLI_USAGE;
    b.cases = calloc(n_bench_cases, sizeof *b.cases);
    int code = b.cases ? choose_cases(&b) : cli_no_memory("mica bench");
    if (code == CLI_OK && b.o->list) print_list(&b);
    else if (code == CLI_OK) code = measure_cases(&b);
    free(b.cases);
    return code;
}
