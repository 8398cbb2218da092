/* mica version: the library that runs, the header it was compiled with, and the
 * commit, which the Makefile passes when the sources are a git clone. */
#include "cli.h"

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

int cli_version(int argc, char **argv)
{
    bool json;
    if (cli_only_json(argc, argv, &json) != CLI_OK) return CLI_USAGE;
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
