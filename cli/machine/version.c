/* mica version: prints the versions of the library and of the header, and the commit.
 * The Makefile passes the commit if the sources are a git clone. */
#include <mica.h>
#include <stdio.h>

#include "core/cli.h"
#include "core/json.h"
#include "machine/machine.h"

#ifndef MICA_COMMIT
#define MICA_COMMIT "unknown"
#endif

const char *cli_commit(void) { return MICA_COMMIT; }

typedef struct version_options {
    bool json;
} version_options;

static int run_version(const cli_call *call)
{
    const version_options *o = call->options;
    if (!o->json) {
        printf("mica %s (header %s, commit %s)\n", mica_version(), MICA_VERSION_STRING, cli_commit());
        return CLI_OK;
    }
    cli_json j = {.to = stdout};
    cli_json_object(&j, NULL, CLI_JSON_INLINE);
    cli_json_text(&j, "version", mica_version());
    cli_json_text(&j, "header", MICA_VERSION_STRING);
    cli_json_text(&j, "commit", cli_commit());
    cli_json_end(&j);
    return CLI_OK;
}

static const cli_option version_rows[] = {
    {"--json", NULL, CLI_FLAG, offsetof(version_options, json), .text = "print JSON"},
    {.name = NULL},
};

const cli_command cli_version_command = {
    .name = "mica version",
    .summary = "print the versions of the library and of its header, and the commit",
    .usage = "[--json]",
    .groups = (const cli_group[]){{"Options", version_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(version_options),
    .run = run_version,
};
