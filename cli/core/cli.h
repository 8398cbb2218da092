/* What the files of the command share: the commands, and how they end. */
#ifndef MICA_CLI_H
#define MICA_CLI_H

#include <mica.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit codes. A script can tell "it failed" from "you called it wrongly", "this is
 * no model we can use", "it does not fit in the memory you allow" and "a benchmark
 * measured more than the machine can do". */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_MODEL = 3, CLI_BUDGET = 4, CLI_WRONG = 5, CLI_INTERRUPTED = 130 };

/* Each command gets its arguments with its own name first, as main() does, and
 * returns an exit code. Results go to stdout, everything else to stderr. */
int cli_bench(int argc, char **argv);
int cli_chat(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_data(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_eval(int argc, char **argv);
int cli_help(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_make_random(int argc, char **argv);
int cli_ncp(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_quantize(int argc, char **argv);
int cli_tokenize(int argc, char **argv);
int cli_tokenizer(int argc, char **argv);
int cli_train(int argc, char **argv);
int cli_train_lm(int argc, char **argv);
int cli_train_ncp(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_selftest(int argc, char **argv);
int cli_tune(int argc, char **argv);
int cli_version(int argc, char **argv);

/* The exit code of a failure with a model file. */
int cli_file_code(mica_status status);

/* mica bench with a model among its arguments is another command. */
bool cli_bench_names_model(int argc, char **argv);
int cli_bench_model(int argc, char **argv);

/* Prints text[n] as a JSON string, quotes included. */
void cli_print_json(FILE *to, const char *text, size_t n);
/* A number; null for what JSON has none for. */
void cli_print_json_number(FILE *to, double value);

/* An object, key by key: begin with {file, false} and print "}" at the end. */
typedef struct cli_json {
    FILE *to;
    bool started;
} cli_json;
void cli_json_key(cli_json *j, const char *key);
void cli_json_text(cli_json *j, const char *key, const char *text); /* NULL: null */
void cli_json_number(cli_json *j, const char *key, double value);

/* A file that appears whole or not at all; false after a sentence. path NULL: stdout. */
typedef struct cli_output {
    FILE *to;
    char *beside; /* where it is written to; NULL: directly */
} cli_output;
bool cli_output_open(const char *command, const char *path, cli_output *out);
/* keep false: the file is not to appear. */
bool cli_output_close(const char *command, const char *path, cli_output *out, bool keep);
/* All of it at once. */
bool cli_write_whole(const char *command, const char *path, void (*print)(FILE *to, const void *user),
                     const void *user);

/* What mica_measure_peaks found with an engine of so many threads: as a table,
 * and as a JSON object. */
void cli_print_peaks(FILE *to, const mica_peaks *peaks, int threads);
void cli_print_peaks_json(FILE *to, const mica_peaks *peaks, int threads);

/* How much memory an engine holds at rest: measured at the first call, or
 * "unavailable". */
const char *cli_rest_text(void);

/* The commit this was built from. */
const char *cli_commit(void);

#endif
