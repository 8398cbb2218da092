/* The table of all commands. */
#include "core/command.h"

extern const cli_command cli_bench_command, cli_chat_command, cli_completions_command, cli_convert_command,
    cli_data_command, cli_doctor_command, cli_eval_command, cli_help_command, cli_inspect_command,
    cli_make_random_command, cli_man_command, cli_ncp_command, cli_predict_command, cli_quantize_command,
    cli_run_command, cli_selftest_command, cli_tokenize_command, cli_tokenizer_command, cli_train_command,
    cli_tune_command, cli_version_command;

const cli_command *const cli_commands[] = {
    &cli_bench_command,       &cli_chat_command,
    &cli_completions_command, &cli_convert_command,
    &cli_data_command,        &cli_doctor_command,
    &cli_eval_command,        &cli_help_command,
    &cli_inspect_command,     &cli_make_random_command,
    &cli_man_command,         &cli_ncp_command,
    &cli_predict_command,     &cli_quantize_command,
    &cli_run_command,         &cli_selftest_command,
    &cli_tokenize_command,    &cli_tokenizer_command,
    &cli_train_command,       &cli_tune_command,
    &cli_version_command,     NULL,
};
