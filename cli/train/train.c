/* mica train: the command with its subcommands. */
#include "core/cli.h"

extern const cli_command cli_train_lm_command, cli_train_ncp_command;

const cli_command cli_train_command = {
    .name = "mica train",
    .summary = "train a network",
    .usage = "lm|ncp [options]",
    .examples = "mica data irregular -o uneven.csv\n"
                "mica train ncp --data uneven.csv --target speed --time time --epochs 10 -o try\n"
                "mica predict try uneven.csv -o out.csv\n"
                "head -n 3 out.csv\n"
                "mica train ncp --data uneven.csv --target speed --time time --cell gru --epochs 10 -o try-gru",
    .subcommands = (const cli_command *const[]){&cli_train_lm_command, &cli_train_ncp_command, NULL},
};
