/* The little JSON that commands print. */
#include "core/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

void cli_json_key(cli_json *j, const char *key)
{
    fprintf(j->to, "%s\n  \"%s\": ", j->started ? "," : "{", key);
    j->started = true;
}

void cli_json_text(cli_json *j, const char *key, const char *text)
{
    cli_json_key(j, key);
    if (text) cli_print_json(j->to, text, strlen(text));
    else fprintf(j->to, "null");
}

void cli_json_number(cli_json *j, const char *key, double value)
{
    cli_json_key(j, key);
    cli_print_json_number(j->to, value);
}
