/* Shared by all commands: exit codes, error messages, input texts, output files. */
#ifndef MICA_CLI_H
#define MICA_CLI_H

#include <mica.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/command.h"

/* Exit codes, the same for every command. exit_codes.c describes each. */
typedef enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_FILE = 3,
    CLI_MEMORY = 4,
    CLI_WRONG = 5,
    CLI_INTERRUPTED = 130, /* main() replaces it by CLI_TERMINATED after SIGTERM */
    CLI_TERMINATED = 143
} cli_exit;

/* The table of exit codes, for help and documents; ends with text NULL. */
typedef struct cli_exit_row {
    cli_exit code;
    const char *text;
} cli_exit_row;
extern const cli_exit_row cli_exit_rows[];

/* Prints one line to stderr, without '\n' in the format; returns the code. */
int cli_fail(cli_exit code, const char *format, ...) MICA_PRINTF(2, 3);
/* The exit code for a status that was returned when an input (a model, a text, data) was used. */
int cli_file_code(mica_status status);
/* Prints mica_last_error() with the name of the command; returns cli_file_code(status). */
int cli_file_failed(const char *command, mica_status status);
/* The same for the opening of an engine: a device that is not available is wrong usage. */
int cli_engine_failed(const char *command, mica_status status);
/* Prints an out-of-memory message; returns CLI_MEMORY. */
int cli_no_memory(const char *command);

/* Reads a whole text file ("-": stdin). Free it with mica_text_free. NULL after an error message, also for a
 * text that is too long (mica_text_read). */
enum { CLI_TEXT_GIB = 16 };
char *cli_read_file(const char *command, const char *path, size_t *length);

/* A file that appears complete or not at all; false after an error message. path NULL: stdout. */
typedef struct cli_output {
    FILE *to;
    char *beside; /* the temporary file; NULL: written directly */
} cli_output;
bool cli_output_open(const char *command, const char *path, cli_output *out);
/* keep false: the temporary file is deleted. */
bool cli_output_close(const char *command, const char *path, cli_output *out, bool keep);
/* Writes a whole file with one function. */
bool cli_write_whole(const char *command, const char *path, void (*print)(FILE *to, const void *user),
                     const void *user);

#endif
