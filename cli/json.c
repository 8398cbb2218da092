/* The little JSON that commands print. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

bool cli_write_whole(const char *command, const char *path, void (*print)(FILE *to, const void *user), const void *user)
{
    const size_t n = strlen(path) + sizeof ".new";
    char *beside = malloc(n);
    if (beside) snprintf(beside, n, "%s.new", path);
    FILE *to = beside ? fopen(beside, "w") : NULL;
    bool good = to != NULL;
    if (to) {
        print(to, user);
        good = !ferror(to);
        if (fclose(to) != 0) good = false;
        if (good) good = rename(beside, path) == 0;
    }
    if (!good) {
        fprintf(stderr, "%s: cannot write '%s': %s\n", command, path, strerror(errno));
        if (beside) remove(beside);
    }
    free(beside);
    return good;
}
