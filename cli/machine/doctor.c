/* mica doctor: prints the library's report about this machine and, with --peaks, the
 * measured peaks. */
#include <mica.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "machine/machine.h"
#include "machine/peaks.h"

/* The report has values that change, such as free memory, so its length may differ
 * between calls: repeat until it fits. The caller frees it. */
static char *doctor_text(void)
{
    const char *rest = cli_idle_memory_text();
    char *text = NULL;
    size_t cap = 4096;
    for (;;) {
        char *grown = realloc(text, cap);
        if (!grown) {
            free(text);
            return NULL;
        }
        text = grown;
        const size_t length = mica_doctor_text(text, cap);
        const size_t more = strlen("engine at rest: \n") + strlen(rest);
        if (length + more < cap) {
            snprintf(text + length, cap - length, "engine at rest: %s\n", rest);
            return text;
        }
        cap = length + more + 1;
    }
}

static void print_report_json(cli_json *j, const char *text)
{
    cli_json_object(j, NULL, CLI_JSON_INLINE);
    cli_json_text(j, "version", mica_version());
    cli_json_array(j, "report", CLI_JSON_LINES);
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        cli_json_bytes(j, NULL, line, n);
        line += n + (line[n] == '\n');
    }
    cli_json_end(j);
}

/* Measures with the default number of threads. j NULL: prints a table. */
static int print_peaks(cli_json *j)
{
    mica_engine *engine;
    mica_peaks peaks = {.struct_size = sizeof peaks};
    mica_status status = mica_open(NULL, &engine);
    if (status == MICA_OK) status = mica_measure_peaks(engine, &peaks);
    if (status != MICA_OK) {
        mica_close(engine);
        return cli_fail(CLI_FAILED, "mica doctor: %s", mica_last_error());
    }
    cli_peaks_save(engine, &peaks);
    if (j) cli_print_peaks_json(j, "peaks", &peaks, mica_engine_threads(engine));
    else putchar('\n'), cli_print_peaks(stdout, &peaks, mica_engine_threads(engine));
    mica_close(engine);
    return CLI_OK;
}

typedef struct doctor_options {
    bool json, peaks;
} doctor_options;

static int run_doctor(const cli_call *call)
{
    const doctor_options *o = call->options;
    cli_json j = {.to = stdout};
    char *text = doctor_text();
    if (!text) return cli_no_memory("mica doctor");
    if (o->json) print_report_json(&j, text);
    else fputs(text, stdout);
    free(text);
    const int code = o->peaks ? print_peaks(o->json ? &j : NULL) : CLI_OK;
    if (o->json) cli_json_end(&j);
    return code;
}

static const cli_option doctor_rows[] = {
    {"--peaks", NULL, CLI_FLAG, offsetof(doctor_options, peaks),
     .text = "also measure the peaks of this machine (takes seconds) and cache them for 'mica run'"},
    {"--json", NULL, CLI_FLAG, offsetof(doctor_options, json), .text = "print JSON"},
    {.name = NULL},
};

const cli_command cli_doctor_command = {
    .name = "mica doctor",
    .summary = "describe this machine, its available backends, and why others are unavailable",
    .usage = "[--peaks] [--json]",
    .groups = (const cli_group[]){{"Options", doctor_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(doctor_options),
    .run = run_doctor,
};
