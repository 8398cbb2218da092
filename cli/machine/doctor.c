/* mica doctor: what the library says about this machine, as it says it, and on
 * request what it measures. */
#include "core/args.h"
#include "core/cli.h"

#include <mica.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text names things that change, like free memory, so its length may differ
 * from one call to the next: ask again until it fits. The caller frees it. */
static char *doctor_text(void)
{
    const char *rest = cli_rest_text();
    char *text = NULL;
    size_t cap = 4096;
    for (;;) {
        char *grown = realloc(text, cap);
        if (!grown) return free(text), NULL;
        text = grown;
        const size_t length = mica_doctor_text(text, cap);
        const size_t more = strlen("engine at rest: \n") + strlen(rest);
        if (length + more < cap) return snprintf(text + length, cap - length, "engine at rest: %s\n", rest), text;
        cap = length + more + 1;
    }
}

static void print_report_json(const char *text)
{
    printf("{\"version\": \"%s\", \"report\": [", mica_version());
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        printf("%s\n  ", line == text ? "" : ",");
        cli_print_json(stdout, line, n);
        line += n + (line[n] == '\n');
    }
    printf("\n]");
}

/* Measures with as many threads as an engine has that was not told a number. */
static int print_peaks(bool json)
{
    mica_engine *engine;
    mica_peaks peaks = {.struct_size = sizeof peaks};
    mica_status status = mica_open(NULL, &engine);
    if (status == MICA_OK) status = mica_measure_peaks(engine, &peaks);
    if (status != MICA_OK) {
        mica_close(engine);
        return fprintf(stderr, "mica doctor: %s\n", mica_last_error()), CLI_FAILED;
    }
    if (json) {
        printf(", \"peaks\": ");
        cli_print_peaks_json(stdout, &peaks, mica_engine_threads(engine));
    } else {
        putchar('\n');
        cli_print_peaks(stdout, &peaks, mica_engine_threads(engine));
    }
    mica_close(engine);
    return CLI_OK;
}

typedef struct doctor_options {
    bool json, peaks;
} doctor_options;

static const cli_arg doctor_args[] = {
    {"--peaks", NULL, CLI_FLAG, offsetof(doctor_options, peaks), 0, 0, NULL,
     "measure this machine's peaks too (seconds)"},
    {"--json", NULL, CLI_FLAG, offsetof(doctor_options, json), 0, 0, NULL, "the same as JSON"},
};

static const cli_args doctor_table = {
    .command = "mica doctor",
    .usage = "[--peaks] [--json]",
    .text = "What this machine is, which backends run on it, and why not the others.",
    .args = doctor_args,
    .n_args = sizeof doctor_args / sizeof doctor_args[0],
};

int cli_doctor(int argc, char **argv)
{
    doctor_options o = {0};
    size_t n;
    const int parsed = cli_parse(&doctor_table, argc, argv, &o, NULL, &n);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    char *text = doctor_text();
    if (!text) {
        fprintf(stderr, "mica doctor: no memory for the report\n");
        return CLI_FAILED;
    }
    if (o.json) print_report_json(text);
    else fputs(text, stdout);
    free(text);
    const int code = o.peaks ? print_peaks(o.json) : CLI_OK;
    if (o.json) printf("}\n");
    return code;
}
