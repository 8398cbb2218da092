/* The JSON writer of all commands. It writes commas, line breaks and indentation.
 * Bytes that are not UTF-8 become U+FFFD; NaN and infinity become null. */
#ifndef MICA_CLI_JSON_H
#define MICA_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_JSON_DEPTH = 8 };

/* How the items of an object or an array are separated. */
typedef enum cli_json_layout { CLI_JSON_INLINE, CLI_JSON_LINES } cli_json_layout;

typedef struct cli_json {
    FILE *to;
    int depth;
    struct {
        char end; /* '}' or ']' */
        cli_json_layout layout;
        bool started;
    } level[CLI_JSON_DEPTH];
} cli_json;

/* Begins an object or an array; key NULL: an item of an array, or the outermost value. */
void cli_json_object(cli_json *j, const char *key, cli_json_layout layout);
void cli_json_array(cli_json *j, const char *key, cli_json_layout layout);
/* Ends the innermost object or array; a line break follows the outermost one. */
void cli_json_end(cli_json *j);

/* Values. key NULL: an item of an array. */
void cli_json_text(cli_json *j, const char *key, const char *text); /* text NULL: null */
void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t n);
void cli_json_number(cli_json *j, const char *key, double value);
void cli_json_int(cli_json *j, const char *key, int64_t value);
void cli_json_uint(cli_json *j, const char *key, uint64_t value);
void cli_json_bool(cli_json *j, const char *key, bool value);
void cli_json_null(cli_json *j, const char *key);
/* Writes text that is already JSON. */
void cli_json_raw(cli_json *j, const char *key, const char *json);
/* A value below 0 is null: "unknown". */
void cli_json_size(cli_json *j, const char *key, int64_t value);

/* The length in bytes of the UTF-8 character at text[0], at most n; 0: not UTF-8. */
size_t cli_utf8_length(const char *text, size_t n);

#endif
