/* mica bench MODEL: measures prefill and decode, with the names and columns of llama-bench
 * (pp512, tg128, t/s). Decode is compared with the memory bandwidth of this machine, prefill
 * with its multiply peak. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "bench/bench.h"
#include "core/json.h"
#include "core/progress.h"
#include "lm/model.h"
#include "machine/machine.h"
#include "machine/peaks.h"

enum { MAX_RUNS = 1000 };

typedef struct model_bench_options {
    cli_model_args model;
    const char *model_path;
    cli_ints threads, prompt, made;
    int64_t runs;
    int format; /* a bench_format */
    bool json, no_peaks;
} model_bench_options;

/* clang-format off */
#define AT(field) offsetof(model_bench_options, field)
static const cli_option model_bench_rows[] = {
    {"--model", "-m", CLI_PATH, AT(model_path), .value = "MODEL", .text = "the model; the same as the argument MODEL"},
    {"--prompt", "-p", CLI_INTS, AT(prompt), 0, 1000000, "N,N", .initial = "512", .aliases = "--n-prompt",
     .text = "prompt lengths in tokens, one table row each; 0: no such row"},
    {"--tokens", "-n", CLI_INTS, AT(made), 0, 1000000, "N,N", .initial = "128", .aliases = "--n-gen",
     .text = "numbers of tokens to generate, one table row each; 0: no such row"},
    {"--runs", "-r", CLI_INT, AT(runs), 1, MAX_RUNS, "N", .initial = "5", .aliases = "--repetitions",
     .text = "measured runs per row, after one warm-up run"},
    {"--threads", "-t", CLI_INTS, AT(threads), 1, 256, "N,N", .unset = "the fast cores",
     .text = "CPU threads; each number is measured in turn"},
    {"--format", "-o", CLI_CHOICE, AT(format), .value = "md|csv|json", .aliases = "--output",
     .text = "format of the table"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "the same as --format json"},
    {"--no-peaks", NULL, CLI_FLAG, AT(no_peaks), .text = "do not measure the peaks of the machine; no percentages"},
    {"--act-quant", NULL, CLI_CHOICE, AT(model.act), .value = "trained|none|token|block256",
     .text = "quantization of the activations that a layer's matrices multiply"},
    {"--device", NULL, CLI_TEXT, AT(model.device), .value = "cpu|metal|ref", .unset = "the fastest one available",
     .text = "the device that computes"},
    {"--kv", NULL, CLI_CHOICE, AT(model.kv), .value = "f16|f32|q8", .text = "number format of the key-value cache"},
    {"--memory-limit", NULL, CLI_BYTES, AT(model.memory_limit), .value = "BYTES", .unset = "no limit",
     .text = "maximum memory for weights and caches"},
    {"--i2s-arm", NULL, CLI_FLAG, AT(model.i2_s_arm),
     .text = "read I2_S weights in the order of bitnet.cpp's ARM builds"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_bench_model(const cli_call *call);

const cli_command cli_bench_model_command = {
    .name = "mica bench MODEL",
    .summary = "measure the tokens per second of a language model, as llama-bench does",
    .usage = "[options]",
    .arguments = (const cli_argument[]){{"MODEL", "a GGUF file, a folder, or builtin"}, {NULL, NULL}},
    .most_args = 1,
    .groups = (const cli_group[]){{"Options", model_bench_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(model_bench_options),
    .run = run_bench_model,
};

/* One row of the table. */
typedef struct model_result {
    char title[128];            /* of the model: "llama 15M F32"                          */
    uint64_t weight_bytes, parameters;
    char time[32];              /* start of the measurement                               */
    char test[24];
    char device[64];
    const char *backend;        /* for a column: "CPU", "Metal", "soft", "ref"            */
    int threads;
    int64_t n_prompt, n_made;
    double samples_ns[MAX_RUNS];
    int64_t runs;
    double avg_ns, sd_ns, avg_ts, sd_ts;
    double gbs, dram_percent, gops, mul_percent; /* NaN: not counted, or unavailable      */
    bool in_cache;              /* the bytes of a token stay in a cache                   */
} model_result;

typedef struct model_session {
    const model_bench_options *o;
    cli_model m;
    mica_lm_session *session;
    mica_peaks peaks;
    bool has_peaks;
    int32_t *ids;
} model_session;

/* ------------------------------------------------------------------ time --- */

static mica_status run_prefill(model_session *b, int64_t n)
{
    const float *logits;
    return mica_lm_feed(b->session, b->ids, n, &logits);
}

static mica_status run_decode(model_session *b, int64_t n)
{
    const float *logits;
    mica_status status = MICA_OK;
    for (int64_t i = 0; i < n && status == MICA_OK; i++) status = mica_lm_feed(b->session, b->ids + i, 1, &logits);
    return status;
}

static mica_status time_runs(model_session *b, mica_status (*run)(model_session *, int64_t), int64_t n, model_result *r)
{
    for (int64_t i = -1; i < b->o->runs; i++) { /* the first run plans and packs weights; it is not counted */
        mica_status status = mica_lm_session_rewind(b->session, 0);
        const double start = cli_seconds();
        if (status == MICA_OK) status = run(b, n);
        const double end = cli_seconds();
        if (status != MICA_OK) return status;
        if (i >= 0) r->samples_ns[i] = 1e9 * (end - start);
        cli_show_line("%s, run %" PRId64 " of %" PRId64, r->test, i + 1, b->o->runs);
        if (cli_interrupted()) return MICA_ERR_STATE;
    }
    r->runs = b->o->runs;
    return MICA_OK;
}

static void mean_and_spread(const double *x, int64_t n, double *mean, double *spread)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *spread = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

/* Sets the rates and their percentages of the peaks. */
static void count_rates(const model_session *b, model_result *r)
{
    double rates[MAX_RUNS];
    const double tokens = (double)(r->n_prompt + r->n_made);
    for (int64_t i = 0; i < r->runs; i++) rates[i] = 1e9 * tokens / r->samples_ns[i];
    mean_and_spread(r->samples_ns, r->runs, &r->avg_ns, &r->sd_ns);
    mean_and_spread(rates, r->runs, &r->avg_ts, &r->sd_ts);
    r->gbs = r->dram_percent = r->gops = r->mul_percent = NAN;
    const mica_peaks *p = &b->peaks;
    if (r->n_made) {
        const double bytes = cli_token_bytes(&b->m, &b->o->model, 0.5 * (double)r->n_made);
        r->gbs = 1e-9 * bytes * r->avg_ts;
        if (b->has_peaks) r->dram_percent = cli_dram_percent(bytes, r->gbs, p, &r->in_cache);
    } else {
        r->gops = 2e-9 * (double)b->m.info.layer_parameters * r->avg_ts;
        const double peak = b->m.info.act == MICA_ACT_NONE ? p->fma_f32_all : p->dot_i8_all;
        if (b->has_peaks) r->mul_percent = 100 * r->gops / peak;
    }
}

/* A software GPU has a separate name: its rates are those of this CPU. */
static const char *backend_title(const mica_engine *engine)
{
    mica_engine_info info = {.struct_size = sizeof info};
    if (mica_engine_describe(engine, &info) != MICA_OK) return "unknown";
    if (info.is_reference) return "ref";
    if (!info.is_gpu) return "CPU";
    return info.is_software ? "soft" : "Metal";
}

/* Sets the text columns of a row. */
static void name_result(const model_session *b, model_result *r)
{
    const mica_lm_info *info = &b->m.info;
    const double n = (double)info->parameters;
    const time_t now = time(NULL);
    struct tm utc;
    snprintf(r->title, sizeof r->title, "%s %.*f%s %s", info->arch, n < 1e7 || (n >= 1e9 && n < 1e10) ? 1 : 0,
             n < 1e9 ? n * 1e-6 : n * 1e-9, n < 1e9 ? "M" : "B", info->format);
    r->weight_bytes = info->weight_bytes;
    r->parameters = info->parameters;
    if (gmtime_r(&now, &utc)) strftime(r->time, sizeof r->time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(r->test, sizeof r->test, "%s%" PRId64, r->n_made ? "tg" : "pp", r->n_prompt + r->n_made);
    snprintf(r->device, sizeof r->device, "%s", mica_engine_device(b->m.engine));
    r->backend = backend_title(b->m.engine);
    r->threads = mica_engine_threads(b->m.engine);
}

static int measure_tests(model_session *b, model_result *results, int *n)
{
    const model_bench_options *o = b->o;
    for (size_t test = 0; test < o->prompt.n + o->made.n; test++) {
        const bool decode = test >= o->prompt.n;
        const int64_t tokens = decode ? o->made.at[test - o->prompt.n] : o->prompt.at[test];
        if (!tokens) continue;
        model_result *r = &results[*n];
        *r = (model_result){.n_prompt = decode ? 0 : tokens, .n_made = decode ? tokens : 0};
        name_result(b, r);
        const mica_status status = time_runs(b, decode ? run_decode : run_prefill, tokens, r);
        cli_clear_line();
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (status != MICA_OK) return cli_file_failed("mica bench", status);
        count_rates(b, r);
        ++*n;
    }
    return CLI_OK;
}

/* ----------------------------------------------------------------- print --- */

static void print_model_cell(double value, const char *format)
{
    if (isnan(value)) printf(" %10s |", "");
    else printf(format, value);
}

static void print_model_md(const model_result *results, int n)
{
    printf("| %-30s | %10s | %10s | %-7s | %7s | %8s | %16s | %10s | %10s | %10s | %10s |\n", "model", "size", "params",
           "backend", "threads", "test", "t/s", "GB/s", "of DRAM", "Gop/s", "of mul");
    printf(
        "| ------------------------------ | ---------: | ---------: | ------- | ------: | -------: | ---------------: "
        "| ---------: | ---------: | ---------: | ---------: |\n");
    for (int i = 0; i < n; i++) {
        const model_result *r = &results[i];
        const double mib = (double)r->weight_bytes / 1048576;
        char size[24], params[24], rate[32];
        snprintf(size, sizeof size, mib < 1024 ? "%.2f MiB" : "%.2f GiB", mib < 1024 ? mib : mib / 1024);
        snprintf(params, sizeof params, r->parameters < 1000000000 ? "%.2f M" : "%.2f B",
                 (double)r->parameters * (r->parameters < 1000000000 ? 1e-6 : 1e-9));
        snprintf(rate, sizeof rate, "%.2f ± %.2f", r->avg_ts, r->sd_ts);
        printf("| %-30s | %10s | %10s | %-7s | %7d | %8s | %17s |", r->title, size, params, r->backend, r->threads,
               r->test, rate);
        print_model_cell(r->gbs, " %10.2f |");
        if (r->in_cache) printf(" %10s |", "in cache");
        else print_model_cell(r->dram_percent, " %8.1f %% |");
        print_model_cell(r->gops, " %10.1f |");
        print_model_cell(r->mul_percent, " %8.1f %% |");
        printf("\n");
    }
}

typedef struct bench_field {
    const char *name;
    const char *text;           /* of any length; NULL: a number, in value                */
    char value[32];
} bench_field;

/* The fields of llama-bench that apply here, then the additional fields of mica. */
static int list_fields(const model_bench_options *o, const model_result *r, bench_field *f)
{
    static const char *const kinds[] = {"f16", "f32", "q8"};
    int n = 0;
#define FIELD(key, ...)                                       \
    do {                                                      \
        f[n] = (bench_field){.name = key};                    \
        snprintf(f[n].value, sizeof f[n].value, __VA_ARGS__); \
        n++;                                                  \
    } while (0)
#define TEXT(key, words) \
    f[n++] = (bench_field) { .name = key, .text = words }
#define NUMBER(key, x)                      \
    do {                                    \
        if (isnan(x)) FIELD(key, "%s", ""); \
        else FIELD(key, "%.6g", x);         \
    } while (0)
    TEXT("build_commit", cli_commit());
    TEXT("backends", r->backend);
    TEXT("device", r->device);
    TEXT("model_filename", o->model_path ? o->model_path : "builtin");
    TEXT("model_type", r->title);
    FIELD("model_size", "%" PRIu64, r->weight_bytes);
    FIELD("model_n_params", "%" PRIu64, r->parameters);
    FIELD("n_threads", "%d", r->threads);
    TEXT("type_k", kinds[o->model.kv]);
    TEXT("type_v", kinds[o->model.kv]);
    FIELD("n_prompt", "%" PRId64, r->n_prompt);
    FIELD("n_gen", "%" PRId64, r->n_made);
    TEXT("test_time", r->time);
    FIELD("avg_ns", "%.0f", r->avg_ns);
    FIELD("stddev_ns", "%.0f", r->sd_ns);
    FIELD("avg_ts", "%.6f", r->avg_ts);
    FIELD("stddev_ts", "%.6f", r->sd_ts);
    NUMBER("gbs", r->gbs);
    NUMBER("dram_percent", r->dram_percent);
    NUMBER("gops", r->gops);
    NUMBER("mul_percent", r->mul_percent);
#undef NUMBER
#undef TEXT
#undef FIELD
    return n;
}

enum { MAX_FIELDS = 24 };

/* CSV fields are always quoted, as in llama-bench. */
static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) printf("%s%c", *text == '"' ? "\"" : "", *text);
    putchar('"');
}

static void print_model_csv(const model_bench_options *o, const model_result *results, int n)
{
    bench_field f[MAX_FIELDS];
    for (int i = 0; i < n; i++) {
        const int fields = list_fields(o, &results[i], f);
        for (int k = 0; i == 0 && k < fields; k++) printf("%s%s", k ? "," : "", f[k].name);
        if (i == 0) printf("\n");
        for (int k = 0; k < fields; k++) {
            if (k) putchar(',');
            if (f[k].text) print_quoted(f[k].text);
            else printf("%s", f[k].value);
        }
        printf("\n");
    }
}

static void print_model_json(const model_bench_options *o, const model_result *results, int n)
{
    bench_field f[MAX_FIELDS];
    cli_json j = {.to = stdout};
    cli_json_array(&j, NULL, CLI_JSON_LINES);
    for (int i = 0; i < n; i++) {
        const model_result *r = &results[i];
        const int fields = list_fields(o, r, f);
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        for (int k = 0; k < fields; k++) {
            if (f[k].text) cli_json_text(&j, f[k].name, f[k].text);
            else cli_json_raw(&j, f[k].name, f[k].value[0] ? f[k].value : "null");
        }
        cli_json_array(&j, "samples_ns", CLI_JSON_INLINE);
        for (int64_t k = 0; k < r->runs; k++) cli_json_int(&j, NULL, (int64_t)r->samples_ns[k]);
        cli_json_end(&j);
        cli_json_end(&j);
    }
    cli_json_end(&j);
}

/* --------------------------------------------------------------- command --- */

/* Measures all rows with one number of threads. */
static int bench_threads(const model_bench_options *o, model_session *b, model_result *results, int *n)
{
    int64_t room = 1;
    for (size_t i = 0; i < o->prompt.n; i++) room = o->prompt.at[i] > room ? o->prompt.at[i] : room;
    for (size_t i = 0; i < o->made.n; i++) room = o->made.at[i] > room ? o->made.at[i] : room;
    b->peaks = (mica_peaks){.struct_size = sizeof b->peaks};
    int code = cli_model_open("mica bench", o->model_path, &o->model, &b->m);
    if (code != CLI_OK) return code;
    if (room > b->m.info.context)
        return cli_fail(CLI_USAGE, "mica bench: %" PRId64 " tokens exceed the context of the model, %" PRId64, room,
                        b->m.info.context);
    code = cli_model_session(&b->m, &o->model, room, 1, &b->session);
    if (code != CLI_OK) return code;
    b->ids = malloc((size_t)room * sizeof *b->ids);
    if (!b->ids) return cli_no_memory("mica bench");
    for (int64_t i = 0; i < room; i++)
        b->ids[i] = (int32_t)(mica_seed_split(1, (uint64_t)i) % (uint64_t)b->m.info.vocab);
    mica_engine_info info = {.struct_size = sizeof info};
    b->has_peaks = !o->no_peaks && mica_engine_describe(b->m.engine, &info) == MICA_OK && !info.is_gpu &&
                   mica_measure_peaks(b->m.engine, &b->peaks) == MICA_OK; /* peaks of the CPU */
    return measure_tests(b, results, n);
}

static int check_excess(const model_result *results, int n)
{
    int code = CLI_OK;
    for (int i = 0; i < n; i++) {
        const model_result *r = &results[i];
        if (!(r->dram_percent > 100 * BENCH_EXCESS) && !(r->mul_percent > 100 * BENCH_EXCESS)) continue;
        code = CLI_WRONG;
        fprintf(stderr, "mica bench: %s, T = %d: more than 105 %% of the measured peak, so a figure is wrong\n",
                r->test, r->threads);
    }
    return code;
}

static void print_results(const model_bench_options *o, bench_format format, const model_result *results, int n)
{
    if (n == 0) return;
    if (format == BENCH_MD) print_model_md(results, n);
    fprintf(stderr, "Device: %s\n", results[0].device);
    if (strcmp(results[0].backend, "soft") == 0)
        fprintf(stderr, "These are rates of software on this CPU: they say nothing about a GPU.\n");
    if (format == BENCH_CSV) print_model_csv(o, results, n);
    if (format == BENCH_JSON) print_model_json(o, results, n);
}

static int run_bench_model(const cli_call *call)
{
    model_bench_options *o = call->options;
    bench_format format;
    if (bench_choose_format(o->format, o->json, &format) != CLI_OK) return CLI_USAGE;
    if (call->n_args) o->model_path = call->args[0];
    if (o->threads.n == 0) o->threads = (cli_ints){{0}, 1};
    int n = 0, code = CLI_OK;
    model_result *results = calloc(o->threads.n * (o->prompt.n + o->made.n), sizeof *results);
    if (!results) return cli_no_memory("mica bench");
    cli_signals_watch();
    for (size_t i = 0; i < o->threads.n && code == CLI_OK; i++) {
        model_session b = {.o = o};
        o->model.threads = o->threads.at[i];
        code = bench_threads(o, &b, results, &n);
        mica_lm_session_close(b.session);
        cli_model_close(&b.m);
        free(b.ids);
    }
    cli_signals_release();
    print_results(o, format, results, n);
    if (code == CLI_OK) code = check_excess(results, n);
    free(results);
    return code;
}

/* True if an argument names a model: a path, or a file that exists. */
static bool has_model_argument(int argc, char **argv)
{
    struct stat info;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "--model") == 0 || strcmp(argv[i], "builtin") == 0)
            return true;
        if (argv[i][0] == '-') {
            i += strcmp(argv[i], "--output") == 0; /* a file that is written, not read */
            continue;
        }
        if (strchr(argv[i], '/') || strstr(argv[i], ".gguf") || stat(argv[i], &info) == 0) return true;
    }
    return false;
}

const cli_command *cli_bench_form(int argc, char **argv)
{
    return has_model_argument(argc, argv) ? &cli_bench_model_command : &cli_bench_command;
}
