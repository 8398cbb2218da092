/* mica version: the library that runs, the header it was compiled with, and the
 * commit, which the Makefile passes when the sources are a git clone. */
#include "core/args.h"
#include "core/cli.h"

#include <mica.h>
#include <stdio.h>
#include <string.h>

#ifndef MICA_COMMIT
#define MICA_COMMIT "unknown"
#endif

const char *cli_commit(void) { return MICA_COMMIT; }

static void print_field(const char *name, const char *value, const char *end)
{
    printf("\"%s\": ", name);
    cli_print_json(stdout, value, strlen(value));
    fputs(end, stdout);
}

static const cli_arg version_args[] = {{"--json", NULL, CLI_FLAG, 0, 0, 0, NULL, "the same as JSON"}};
static const cli_args version_table = {
    .command = "mica version",
    .usage = "[--json]",
    .text = "The version of the library, that of the header it was compiled with, and the commit.",
    .args = version_args,
    .n_args = 1,
};

int cli_version(int argc, char **argv)
{
    bool json = false;
    size_t n;
    const int parsed = cli_parse(&version_table, argc, argv, &json, NULL, &n);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (!json) {
        printf("mica %s (header %s, commit %s)\n", mica_version(), MICA_VERSION_STRING, cli_commit());
        return CLI_OK;
    }
    putchar('{');
    print_field("version", mica_version(), ", ");
    print_field("header", MICA_VERSION_STRING, ", ");
    print_field("commit", cli_commit(), "}\n");
    return CLI_OK;
}
