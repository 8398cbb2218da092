/* mica doctor: what the library says about this machine, as it says it. */
#include "cli.h"

#include <mica.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text names things that change, like free memory, so its length may differ
 * from one call to the next: ask again until it fits. The caller frees it. */
static char *doctor_text(void)
{
    char *text = NULL;
    size_t cap = 4096;
    for (;;) {
        char *grown = realloc(text, cap);
        if (!grown) return free(text), NULL;
        text = grown;
        const size_t length = mica_doctor_text(text, cap);
        if (length < cap) return text;
        cap = length + 1;
    }
}

static void print_report_json(const char *text)
{
    printf("{\"version\": \"%s\", \"report\": [", mica_version());
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        printf("%s\n  ", line == text ? "" : ",");
        cli_print_json(line, n);
        line += n + (line[n] == '\n');
    }
    printf("\n]}\n");
}

int cli_doctor(int argc, char **argv)
{
    bool json;
    if (cli_only_json(argc, argv, &json) != CLI_OK) return CLI_USAGE;
    char *text = doctor_text();
    if (!text) {
        fprintf(stderr, "mica doctor: no memory for the report\n");
        return CLI_FAILED;
    }
    if (json) print_report_json(text);
    else fputs(text, stdout);
    free(text);
    return CLI_OK;
}
