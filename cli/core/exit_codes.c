/* The exit codes of all commands: their descriptions, and the exit code for each status. */
#include <stdarg.h>

#include "core/cli.h"

const cli_exit_row cli_exit_rows[] = {
    {CLI_OK, "success"},
    {CLI_FAILED, "failure: a computation, a check, or writing a result failed"},
    {CLI_USAGE, "wrong usage: an unknown command or option, a value out of range, options that exclude each other"},
    {CLI_FILE, "an input file (model, text, data) cannot be read or used"},
    {CLI_MEMORY, "out of memory, or more memory needed than `--memory-limit` allows"},
    {CLI_WRONG, "a benchmark measured more than the machine can do"},
    {CLI_INTERRUPTED, "interrupted by Ctrl-C (SIGINT)"},
    {CLI_TERMINATED, "terminated by SIGTERM"},
    {CLI_OK, NULL},
};

int cli_fail(cli_exit code, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    return (int)code;
}

int cli_file_code(mica_status status)
{
    switch (status) {
    case MICA_ERR_MEMORY: return CLI_MEMORY;
    case MICA_ERR_FORMAT:
    case MICA_ERR_FILE:
    case MICA_ERR_UNSUPPORTED: return CLI_FILE;
    case MICA_ERR_ARGUMENT: return CLI_USAGE;
    default: return CLI_FAILED;
    }
}

int cli_file_failed(const char *command, mica_status status)
{
    fprintf(stderr, "%s: %s\n", command, mica_last_error());
    return cli_file_code(status);
}

int cli_engine_failed(const char *command, mica_status status)
{
    const int code = cli_file_failed(command, status);
    return status == MICA_ERR_UNSUPPORTED ? CLI_USAGE : code;
}

int cli_no_memory(const char *command) { return cli_fail(CLI_MEMORY, "%s: out of memory", command); }
