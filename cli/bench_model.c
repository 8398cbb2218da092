/* mica bench MODEL: prefill and decoding, in the words and columns of llama-bench
 * (pp512, tg128, t/s), beside the peaks of this machine: what a token reads against
 * the memory, what prefill multiplies against the multipliers. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "bench.h"
#include "model.h"
#include "progress.h"

enum { MAX_LIST = 8, MAX_RUNS = 1000 };

/* "128,512" */
typedef struct bench_list {
    int64_t value[MAX_LIST];
    int n;
} bench_list;

typedef struct model_bench_options {
    cli_model_args model;
    const char *model_path, *threads_text, *prompt_text, *made_text;
    bench_list threads, prompt, made;
    int64_t runs;
    int format;
    bool no_peaks;
} model_bench_options;

static const cli_arg model_bench_args[] = {
    {"--model", "-m", CLI_TEXT, offsetof(model_bench_options, model_path), 0, 0, "MODEL", "as the first argument"},
    {"--prompt", "-p", CLI_TEXT, offsetof(model_bench_options, prompt_text), 0, 0, "N,N",
     "tokens of prefill, one table row each; 512, 0: none"},
    {"--tokens", "-n", CLI_TEXT, offsetof(model_bench_options, made_text), 0, 0, "N,N",
     "tokens of decoding, one table row each; 128, 0: none"},
    {"--runs", "-r", CLI_INT, offsetof(model_bench_options, runs), 1, MAX_RUNS, "N",
     "of each; 5, after one to warm up"},
    {"--threads", "-t", CLI_TEXT, offsetof(model_bench_options, threads_text), 0, 0, "N,N", "all of it for each"},
    {"--act-quant", NULL, CLI_CHOICE, offsetof(model_bench_options, model.act), 0, 0, "trained|none|token|block256",
     "activations before matrices of layers"},
    {"--device", NULL, CLI_TEXT, offsetof(model_bench_options, model.device), 0, 0, "cpu|metal|ref",
     "the best there is if not given"},
    {"--kv", NULL, CLI_CHOICE, offsetof(model_bench_options, model.kv), 0, 0, "f16|f32|q8", "the cache"},
    {"--memory-limit", NULL, CLI_BYTES, offsetof(model_bench_options, model.memory_limit), 0, 0, "BYTES",
     "weights and caches together"},
    {"--i2s-arm", NULL, CLI_FLAG, offsetof(model_bench_options, model.i2_s_arm), 0, 0, NULL, "as for mica run"},
    {"--output", "-o", CLI_CHOICE, offsetof(model_bench_options, format), 0, 0, "md|csv|json", "how to print it"},
    {"--no-peaks", NULL, CLI_FLAG, offsetof(model_bench_options, no_peaks), 0, 0, NULL, "without the percentages"},
};

static const cli_args model_bench_table = {"mica bench",
                                           "MODEL [options]",
                                           "Tokens per second of a model, as llama-bench tells them.",
                                           model_bench_args,
                                           sizeof model_bench_args / sizeof model_bench_args[0],
                                           0,
                                           1};

/* One row. */
typedef struct model_result {
    char title[128];            /* of the model: "llama 15M F32"                          */
    uint64_t weight_bytes, parameters;
    char time[32];              /* when it began                                          */
    char test[24];
    char device[64];
    const char *backend;        /* for a column: "CPU", "Metal", "soft", "ref"            */
    int threads;
    int64_t n_prompt, n_made;
    double samples_ns[MAX_RUNS];
    int64_t runs;
    double avg_ns, sd_ns, avg_ts, sd_ts;
    double gbs, dram_percent, gops, mul_percent; /* NaN: not counted, or unavailable      */
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
    for (int64_t i = -1; i < b->o->runs; i++) { /* the first warms up: plans, packed weights */
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

/* Rates, and what part of the peaks they are. */
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
        /* what stays in the last cache is not read from memory */
        if (b->has_peaks && bytes > 4 * p->l3_bytes) r->dram_percent = 100 * r->gbs / p->dram_read_all;
    } else {
        r->gops = 2e-9 * (double)b->m.info.layer_parameters * r->avg_ts;
        const double peak = b->m.info.act == MICA_ACT_NONE ? p->fma_f32_all : p->dot_i8_all;
        if (b->has_peaks) r->mul_percent = 100 * r->gops / peak;
    }
}

/* Software that stands for a GPU is no GPU: its rates are those of this CPU. */
static const char *backend_title(const mica_engine *engine)
{
    mica_engine_info info = {.struct_size = sizeof info};
    if (mica_engine_describe(engine, &info) != MICA_OK) return "unknown";
    if (info.is_reference) return "ref";
    if (!info.is_gpu) return "CPU";
    return info.is_software ? "soft" : "Metal";
}

/* What a row says beside its figures. */
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
    for (int test = 0; test < o->prompt.n + o->made.n; test++) {
        const bool decode = test >= o->prompt.n;
        const int64_t tokens = decode ? o->made.value[test - o->prompt.n] : o->prompt.value[test];
        if (!tokens) continue;
        model_result *r = &results[*n];
        *r = (model_result){.n_prompt = decode ? 0 : tokens, .n_made = decode ? tokens : 0};
        name_result(b, r);
        const mica_status status = time_runs(b, decode ? run_decode : run_prefill, tokens, r);
        cli_clear_line();
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (status != MICA_OK) return cli_model_failed("mica bench", status);
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
        print_model_cell(r->dram_percent, " %8.1f %% |");
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

/* The fields of llama-bench that exist here, and ours behind them. */
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

/* Always in quotes, as llama-bench has it. */
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
    printf("[");
    for (int i = 0; i < n; i++) {
        const model_result *r = &results[i];
        const int fields = list_fields(o, r, f);
        printf("%s\n  {", i ? "," : "");
        for (int k = 0; k < fields; k++) {
            printf("%s\"%s\": ", k ? ", " : "", f[k].name);
            if (f[k].text) cli_print_json(stdout, f[k].text, strlen(f[k].text));
            else printf("%s", f[k].value[0] ? f[k].value : "null");
        }
        printf(", \"samples_ns\": [");
        for (int64_t k = 0; k < r->runs; k++) printf("%s%.0f", k ? ", " : "", r->samples_ns[k]);
        printf("]}");
    }
    printf("\n]\n");
}

/* --------------------------------------------------------------- command --- */

/* Everything with one number of threads. */
static int bench_threads(const model_bench_options *o, model_session *b, model_result *results, int *n)
{
    int64_t room = 1;
    for (int i = 0; i < o->prompt.n; i++) room = o->prompt.value[i] > room ? o->prompt.value[i] : room;
    for (int i = 0; i < o->made.n; i++) room = o->made.value[i] > room ? o->made.value[i] : room;
    b->peaks = (mica_peaks){.struct_size = sizeof b->peaks};
    int code = cli_model_open("mica bench", o->model_path, &o->model, &b->m);
    if (code != CLI_OK) return code;
    if (room > b->m.info.context)
        return fprintf(stderr, "mica bench: %" PRId64 " tokens are more than the context of %" PRId64 "\n", room,
                       b->m.info.context),
               CLI_USAGE;
    code = cli_model_session(&b->m, &o->model, room, 1, &b->session);
    if (code != CLI_OK) return code;
    b->ids = malloc((size_t)room * sizeof *b->ids);
    if (!b->ids) return fprintf(stderr, "mica bench: no memory\n"), CLI_FAILED;
    for (int64_t i = 0; i < room; i++)
        b->ids[i] = (int32_t)(mica_seed_split(1, (uint64_t)i) % (uint64_t)b->m.info.vocab);
    mica_engine_info info = {.struct_size = sizeof info};
    b->has_peaks = !o->no_peaks && mica_engine_describe(b->m.engine, &info) == MICA_OK && !info.is_gpu &&
                   mica_measure_peaks(b->m.engine, &b->peaks) == MICA_OK; /* peaks of the CPU */
    return measure_tests(b, results, n);
}

static int judge_results(const model_result *results, int n)
{
    int code = CLI_OK;
    for (int i = 0; i < n; i++) {
        const model_result *r = &results[i];
        if (!(r->dram_percent > 100 * BENCH_TOO_MUCH) && !(r->mul_percent > 100 * BENCH_TOO_MUCH)) continue;
        code = CLI_WRONG;
        fprintf(stderr, "mica bench: %s, T = %d: more than 105 %% of the measured peak, so a figure is wrong\n",
                r->test, r->threads);
    }
    return code;
}

/* false, and a sentence: text is no list of numbers from low to high. NULL leaves what list has. */
static bool parse_list(const char *option, const char *text, int64_t low, int64_t high, bench_list *list)
{
    bench_list read = {.n = 0};
    const char *at = text;
    for (; at && read.n < MAX_LIST; read.n++) {
        char *end;
        const long long value = strtoll(at, &end, 10);
        if (end == at || value < low || value > high || (*end && *end != ',')) break;
        read.value[read.n] = value;
        at = *end ? end + 1 : NULL;
    }
    if (text && !at) *list = read;
    if (!at) return true;
    fprintf(stderr,
            "mica bench: %s takes up to %d numbers from %" PRId64 " to %" PRId64 " with commas between, not '%s'\n",
            option, MAX_LIST, low, high, text);
    return false;
}

int cli_bench_model(int argc, char **argv)
{
    model_bench_options o = {.threads = {{0}, 1}, .prompt = {{512}, 1}, .made = {{128}, 1}, .runs = 5};
    const char *places[CLI_MAX_PLACES];
    size_t n_places;
    const int parsed = cli_parse(&model_bench_table, argc, argv, &o, places, &n_places);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (n_places) o.model_path = places[0];
    int n = 0, code = CLI_OK;
    if (!parse_list("-t", o.threads_text, 1, 256, &o.threads) ||
        !parse_list("-p", o.prompt_text, 0, 1000000, &o.prompt) || !parse_list("-n", o.made_text, 0, 1000000, &o.made))
        return CLI_USAGE;
    model_result *results = calloc((size_t)(o.threads.n * (o.prompt.n + o.made.n)), sizeof *results);
    if (!results) return fprintf(stderr, "mica bench: no memory\n"), CLI_FAILED;
    (void)cli_interrupted();
    for (int i = 0; i < o.threads.n && code == CLI_OK; i++) {
        model_session b = {.o = &o};
        o.model.threads = o.threads.value[i];
        code = bench_threads(&o, &b, results, &n);
        mica_lm_session_close(b.session);
        cli_model_close(&b.m);
        free(b.ids);
    }
    if (n && o.format == BENCH_MD) print_model_md(results, n);
    if (n) fprintf(stderr, "Device: %s\n", results[0].device);
    if (n && strcmp(results[0].backend, "soft") == 0)
        fprintf(stderr, "These are rates of software on this CPU: they say nothing about a GPU.\n");
    if (n && o.format == BENCH_CSV) print_model_csv(&o, results, n);
    if (n && o.format == BENCH_JSON) print_model_json(&o, results, n);
    if (code == CLI_OK) code = judge_results(results, n);
    free(results);
    return code;
}

/* Is there an argument that names a model: a path, or something that exists? */
bool cli_bench_names_model(int argc, char **argv)
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
