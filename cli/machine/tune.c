/* mica tune: measures which kernel shapes run fastest on the GPU of this machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/json.h"
#include "core/signals.h"
#include "machine/machine.h"

typedef struct tune_options {
    double seconds;
    bool dry, forget, software, json;
} tune_options;

/* clang-format off */
#define AT(field) offsetof(tune_options, field)
static const cli_option tune_rows[] = {
    {"--seconds", NULL, CLI_NUMBER, AT(seconds), 0, 3600, "S", .initial = "0.5",
     .text = "seconds to measure each choice"},
    {"--dry", NULL, CLI_FLAG, AT(dry), .aliases = "--dry-run", .text = "measure, but do not save the choices"},
    {"--forget", NULL, CLI_FLAG, AT(forget),
     .text = "delete the saved choices and use the rules again; measures nothing"},
    {"--software", NULL, CLI_FLAG, AT(software),
     .text = "also tune the software Metal device; its times are not those of a GPU"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print the table as JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_tune(const cli_call *call);

const cli_command cli_tune_command = {
    .name = "mica tune",
    .summary = "measure which kernel shapes run fastest on the GPU, and save them",
    .usage = "[--seconds S] [--dry | --forget] [--software] [--json]",
    .text = "GPU kernels have choices, such as tile sizes and threads. Rules make these choices from what a device "
            "reports about itself. This command measures them on the GPU of this machine and saves those that are at "
            "least 3 % faster in the folder of compiled kernels (MICA_CACHE), where every program that uses mica finds "
            "them. 'mica doctor' shows them.\n\n"
            "On a machine without a GPU there is nothing to tune: the command prints this and succeeds. Exit code 1 if "
            "a candidate computes a wrong result.",
    .groups = (const cli_group[]){{"Options", tune_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(tune_options),
    .run = run_tune,
};

typedef struct tune_report {
    cli_json json;
    bool as_json, any;
    int wrong;
} tune_report;

static void print_us(double ns)
{
    if (isfinite(ns)) printf("%10.1f us", ns / 1e3);
    else printf("  unavailable");
}

static void print_json_row(cli_json *j, const mica_tuned *t)
{
    cli_json_object(j, NULL, CLI_JSON_INLINE);
    cli_json_text(j, "choice", t->choice);
    cli_json_text(j, "work", t->work);
    cli_json_text(j, "usual", t->usual);
    cli_json_text(j, "best", t->best);
    cli_json_number(j, "usual_ns", t->usual_ns);
    cli_json_number(j, "best_ns", t->best_ns);
    cli_json_number(j, "tried", t->tried);
    cli_json_number(j, "wrong", t->wrong);
    cli_json_end(j);
}

static mica_status open_metal(mica_engine **engine)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = "metal";
    return mica_open(&options, engine);
}

/* Prints the device that was measured. */
static void print_device(tune_report *report)
{
    mica_engine *engine;
    if (open_metal(&engine) != MICA_OK) return;
    const char *device = mica_engine_device(engine);
    const bool software = cli_is_software(engine);
    if (report->as_json) {
        cli_json_object(&report->json, NULL, CLI_JSON_INLINE);
        cli_json_text(&report->json, "device", device);
        cli_json_bool(&report->json, "software", software);
        cli_json_array(&report->json, "choices", CLI_JSON_LINES);
    } else {
        printf("device: %s\n", device);
        if (software) printf("The times are those of this CPU, with little work, and say nothing about a GPU.\n");
        printf("\n%-15s %-24s %-27s%13s  %-27s%13s\n", "choice", "work", "the rule", "time", "best", "time");
    }
    mica_close(engine);
}

static bool print_tuned(const mica_tuned *t, void *user)
{
    tune_report *report = user;
    report->wrong += t->wrong;
    if (!report->any) print_device(report);
    report->any = true;
    if (report->as_json) {
        print_json_row(&report->json, t);
    } else {
        printf("%-15s %-24s %-27s", t->choice, t->work, t->usual);
        print_us(t->usual_ns);
        printf("  %-27s", t->best == t->usual ? "the same" : t->best);
        print_us(t->best_ns);
        printf("%s\n", t->wrong ? "  a candidate is wrong" : "");
        fflush(stdout);
    }
    return !cli_interrupted();
}

static int tune_failed(mica_status status)
{
    if (cli_interrupted()) return cli_fail(CLI_INTERRUPTED, "mica tune: interrupted; nothing was kept");
    fprintf(stderr, "mica tune: %s\n", mica_last_error());
    return status == MICA_ERR_UNSUPPORTED ? CLI_USAGE : CLI_FAILED;
}

/* True if there is no GPU, and neither --software nor MICA_METAL_LIB is given; prints that there is nothing to tune. */
static bool has_no_gpu(const tune_options *o)
{
    mica_engine *engine = NULL;
    if (getenv("MICA_METAL_LIB") || o->software) return false;
    const bool opened = open_metal(&engine) == MICA_OK, software = opened && cli_is_software(engine);
    mica_close(engine);
    if (opened && !software) return false;
    if (o->json) {
        cli_json j = {.to = stdout};
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_null(&j, "device");
        cli_json_bool(&j, "software", software);
        cli_json_array(&j, "choices", CLI_JSON_INLINE);
        cli_json_end(&j);
        cli_json_end(&j);
    } else
        printf("There is no GPU on this machine, so there is nothing to tune.%s\n",
               software ? " 'mica tune --software --dry' measures the software Metal device." : "");
    return true;
}

static int run_tune(const cli_call *call)
{
    const tune_options *o = call->options;
    if (o->dry && o->forget)
        return cli_fail(CLI_USAGE, "mica tune: --dry measures and --forget does not: give one of them");
    if (o->forget) {
        const mica_status status = mica_tune_forget();
        return status == MICA_OK ? CLI_OK : tune_failed(status);
    }
    if (has_no_gpu(o)) return CLI_OK;
    tune_report report = {.as_json = o->json, .json = {.to = stdout}};
    char path[1024];
    mica_tune_options options;
    mica_tune_options_init(&options);
    options.seconds = o->seconds;
    options.keep = !o->dry;
    options.progress = print_tuned;
    options.user = &report;
    cli_signals_watch();
    const mica_status status = mica_tune(&options, path, sizeof path);
    cli_signals_release();
    if (status != MICA_OK) return tune_failed(status);
    if (o->json) {
        cli_json_end(&report.json);
        cli_json_text(&report.json, "file", path);
        cli_json_end(&report.json);
    } else if (!o->dry) printf("\nkept in %s\n", path);
    return report.wrong ? CLI_FAILED : CLI_OK;
}
