/* The little JSON that commands print, and the option that asks for it. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int cli_only_json(int argc, char **argv, bool *json)
{
    *json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "mica %s: '%s' is not understood; the only option is --json\n", argv[0], argv[i]);
            return CLI_USAGE;
        }
        *json = true;
    }
    return CLI_OK;
}

void cli_print_json(FILE *to, const char *text, size_t n)
{
    fputc('"', to);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
        else if (c < 0x20) fprintf(to, "\\u%04x", c);
        else fputc(c, to);
    }
    fputc('"', to);
}

void cli_print_json_number(FILE *to, double value)
{
    if (isfinite(value)) fprintf(to, "%.9g", value);
    else fprintf(to, "null");
}
