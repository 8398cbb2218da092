/* See json.h. */
#include "core/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

size_t cli_utf8_length(const char *text, size_t n)
{
    const unsigned char *u = (const unsigned char *)text;
    const size_t length = n == 0                         ? 0
                          : u[0] < 0x80                  ? 1
                          : u[0] >= 0xc2 && u[0] <= 0xdf ? 2
                          : (u[0] & 0xf0) == 0xe0        ? 3
                          : u[0] >= 0xf0 && u[0] <= 0xf4 ? 4
                                                         : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    const bool wrong = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
                       (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f);
    return wrong ? 0 : length;
}

static void put_string(FILE *to, const char *text, size_t n)
{
    fputc('"', to);
    for (size_t i = 0, size; i < n; i += size ? size : 1) {
        const unsigned char c = (unsigned char)text[i];
        size = cli_utf8_length(text + i, n - i);
        if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
        else if (size == 0) fputs("\\ufffd", to);
        else if (c < 0x20) fprintf(to, "\\u%04x", c);
        else fwrite(text + i, 1, size, to);
    }
    fputc('"', to);
}

static void put_break(const cli_json *j)
{
    int indent = 0;
    for (int i = 0; i < j->depth; i++) indent += j->level[i].layout == CLI_JSON_LINES ? 2 : 0;
    fprintf(j->to, "\n%*s", indent, "");
}

/* Writes what precedes each value: a comma, a line break, the key. */
static void begin_value(cli_json *j, const char *key)
{
    if (j->depth > 0) {
        const bool lines = j->level[j->depth - 1].layout == CLI_JSON_LINES;
        if (j->level[j->depth - 1].started) fputs(lines ? "," : ", ", j->to);
        if (lines) put_break(j);
        j->level[j->depth - 1].started = true;
    }
    if (!key) return;
    put_string(j->to, key, strlen(key));
    fputs(": ", j->to);
}

static void open_level(cli_json *j, const char *key, const char *ends, cli_json_layout layout)
{
    begin_value(j, key);
    fputc(ends[0], j->to);
    if (j->depth == CLI_JSON_DEPTH) return; /* no command nests so deeply */
    j->level[j->depth].end = ends[1];
    j->level[j->depth].layout = layout;
    j->level[j->depth].started = false;
    j->depth++;
}

void cli_json_object(cli_json *j, const char *key, cli_json_layout layout) { open_level(j, key, "{}", layout); }
void cli_json_array(cli_json *j, const char *key, cli_json_layout layout) { open_level(j, key, "[]", layout); }

void cli_json_end(cli_json *j)
{
    if (j->depth == 0) return;
    j->depth--;
    if (j->level[j->depth].layout == CLI_JSON_LINES && j->level[j->depth].started) put_break(j);
    fputc(j->level[j->depth].end, j->to);
    if (j->depth == 0) fputc('\n', j->to);
}

void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t n)
{
    begin_value(j, key);
    put_string(j->to, text, n);
}

void cli_json_text(cli_json *j, const char *key, const char *text)
{
    if (text) cli_json_bytes(j, key, text, strlen(text));
    else cli_json_null(j, key);
}

void cli_json_number(cli_json *j, const char *key, double value)
{
    begin_value(j, key);
    if (isfinite(value)) fprintf(j->to, "%.9g", value);
    else fputs("null", j->to);
}

void cli_json_int(cli_json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    fprintf(j->to, "%" PRId64, value);
}

void cli_json_uint(cli_json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    fprintf(j->to, "%" PRIu64, value);
}

void cli_json_bool(cli_json *j, const char *key, bool value) { cli_json_raw(j, key, value ? "true" : "false"); }

void cli_json_raw(cli_json *j, const char *key, const char *json)
{
    begin_value(j, key);
    fputs(json, j->to);
}

void cli_json_null(cli_json *j, const char *key) { cli_json_raw(j, key, "null"); }

void cli_json_size(cli_json *j, const char *key, int64_t value)
{
    if (value >= 0) cli_json_int(j, key, value);
    else cli_json_null(j, key);
}
