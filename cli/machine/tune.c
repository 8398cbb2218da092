/* mica tune: which shapes of its kernels the GPU of this machine runs fastest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/args.h"
#include "core/cli.h"
#include "lm/model.h"

typedef struct tune_options {
    double seconds;
    bool dry, forget, json;
} tune_options;

static const cli_arg tune_args[] = {
    {"--seconds", NULL, CLI_NUMBER, offsetof(tune_options, seconds), 0, 3600, "S", "for each choice (0.5)"},
    {"--dry", NULL, CLI_FLAG, offsetof(tune_options, dry), 0, 0, NULL, "measure, and keep nothing"},
    {"--forget", NULL, CLI_FLAG, offsetof(tune_options, forget), 0, 0, NULL,
     "measure nothing, and go back to the rules"},
    {"--json", NULL, CLI_FLAG, offsetof(tune_options, json), 0, 0, NULL, "print the table as JSON"},
};

static const cli_args tune_table = {
    .command = "mica tune",
    .usage = "[--seconds S] [--dry | --forget] [--json]",
    .text = "GPU kernels have choices: tiles, threads. Rules make them from what a device says of itself; this\n"
            "measures them on the device that is here, and keeps what is at least 3 % faster in the folder of\n"
            "compiled kernels (MICA_CACHE), where every program with mica finds it. 'mica doctor' shows it.\n"
            "Exit code 1 if a candidate computed something else.",
    .args = tune_args,
    .n_args = sizeof tune_args / sizeof tune_args[0],
};

typedef struct tune_report {
    bool json, any;
    int wrong;
} tune_report;

static void print_us(double ns)
{
    if (isfinite(ns)) printf("%10.1f us", ns / 1e3);
    else printf("  unavailable");
}

static void print_json_row(const mica_tuned *t, bool first)
{
    cli_json j = {stdout, false};
    printf(first ? "\n" : ",\n");
    cli_json_text(&j, "choice", t->choice);
    cli_json_text(&j, "work", t->work);
    cli_json_text(&j, "usual", t->usual);
    cli_json_text(&j, "best", t->best);
    cli_json_number(&j, "usual_ns", t->usual_ns);
    cli_json_number(&j, "best_ns", t->best_ns);
    cli_json_number(&j, "tried", t->tried);
    cli_json_number(&j, "wrong", t->wrong);
    printf("}");
}

/* What the times are of. */
static void print_device(bool json)
{
    mica_engine *engine;
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = "metal";
    if (mica_open(&options, &engine) != MICA_OK) return;
    const char *device = mica_engine_device(engine);
    const bool software = cli_is_software(engine);
    if (json) {
        printf("{\"device\": ");
        cli_print_json(stdout, device, strlen(device));
        printf(", \"software\": %s, \"choices\": [", software ? "true" : "false");
    } else {
        printf("device: %s\n", device);
        if (software) printf("Times are this CPU's, with little work, and say nothing about a GPU.\n");
        printf("\n%-15s %-24s %-27s%13s  %-27s%13s\n", "choice", "work", "the rule", "time", "best", "time");
    }
    mica_close(engine);
}

static bool print_tuned(const mica_tuned *t, void *user)
{
    tune_report *report = user;
    report->wrong += t->wrong;
    if (!report->any) print_device(report->json);
    if (report->json) {
        print_json_row(t, !report->any);
    } else {
        printf("%-15s %-24s %-27s", t->choice, t->work, t->usual);
        print_us(t->usual_ns);
        printf("  %-27s", t->best == t->usual ? "the same" : t->best);
        print_us(t->best_ns);
        printf("%s\n", t->wrong ? "  a candidate is wrong" : "");
        fflush(stdout);
    }
    report->any = true;
    return !cli_interrupted();
}

static int tune_failed(mica_status status)
{
    if (cli_interrupted()) return fprintf(stderr, "mica tune: interrupted; nothing was kept\n"), CLI_INTERRUPTED;
    fprintf(stderr, "mica tune: %s\n", mica_last_error());
    return status == MICA_ERR_UNSUPPORTED ? CLI_USAGE : CLI_FAILED;
}

int cli_tune(int argc, char **argv)
{
    tune_options o = {.seconds = 0.5};
    size_t n;
    const int parsed = cli_parse(&tune_table, argc, argv, &o, NULL, &n);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (o.dry && o.forget)
        return fprintf(stderr, "mica tune: --dry measures and --forget does not: one of them\n"), CLI_USAGE;
    if (o.forget) {
        const mica_status status = mica_tune_forget();
        return status == MICA_OK ? CLI_OK : tune_failed(status);
    }
    tune_report report = {.json = o.json};
    char path[1024];
    mica_tune_options options;
    mica_tune_options_init(&options);
    options.seconds = o.seconds;
    options.keep = !o.dry;
    options.progress = print_tuned;
    options.user = &report;
    (void)cli_interrupted(); /* from here on */
    const mica_status status = mica_tune(&options, path, sizeof path);
    if (status != MICA_OK) return tune_failed(status);
    if (o.json) {
        printf("\n], \"file\": ");
        cli_print_json(stdout, path, strlen(path));
        printf("}\n");
    } else if (!o.dry) printf("\nkept in %s\n", path);
    return report.wrong ? CLI_FAILED : CLI_OK;
}
