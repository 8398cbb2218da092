/* The subcommands of `mica ncp`. */
#ifndef MICA_CLI_NCP_H
#define MICA_CLI_NCP_H

#include "core/command.h"

extern const cli_command cli_ncp_advise_command;

#endif
