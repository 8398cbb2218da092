/* The command `mica`: finds the command that was asked for, and makes sure that
 * what it printed has arrived. Holds nothing that a C program would want too. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *options;
    const char *text;
} commands[] = {
    {"bench", cli_bench, "[NAME...] [--list]", "measure ops and kernels against the peaks of this machine"},
    {"bench", cli_bench, "MODEL [-p N -n N]", "tokens per second of a model, as llama-bench tells them"},
    {"chat", cli_chat, "[MODEL]", "talk with a language model, line by line"},
    {"convert", cli_convert, "IN OUT", "a model file into GGUF or safetensors"},
    {"data", cli_data, "sine -o FILE", "a small time series to try training with"},
    {"doctor", cli_doctor, "[--json] [--peaks]",
     "what this machine is, which backends run on it, and why not the others"},
    {"eval", cli_eval, "ppl MODEL FILE", "perplexity of a language model on a text"},
    {"inspect", cli_inspect, "FILE [--tensors]", "what a model file is, and what is known to go wrong with it"},
    {"make-random", cli_make_random, "-o OUT", "a model with random ternary weights, to run and to measure"},
    {"ncp", cli_ncp, "draw -o FILE", "the wiring of a liquid network: a picture and figures"},
    {"predict", cli_predict, "MODEL DATA", "what a network that was trained on time series says of a file"},
    {"quantize", cli_quantize, "IN OUT --type T", "a model file with other number formats"},
    {"run", cli_run, "[MODEL] [-p TEXT]", "what a language model writes after a prompt"},
    {"selftest", cli_selftest, "[--device NAME]", "does a device compute what the reference does? --dump, --compare"},
    {"tokenize", cli_tokenize, "MODEL [-p TEXT]", "the tokens of a text, the text of tokens, the chat template"},
    {"tokenizer", cli_tokenizer, "train --text FILE", "learn a vocabulary from a text"},
    {"train", cli_train, "lm --text FILE ...", "train a ternary language model on a text"},
    {"train", cli_train, "ncp --data FILE ...", "train a liquid network on time series"},
    {"tune", cli_tune, "[--seconds S]",
     "measure which shapes of kernels this machine's GPU runs fastest, and keep them"},
    {"version", cli_version, "[--json]", "versions of the library and of its header, and the commit"},
    {"help", cli_help, "[COMMAND]", "this text, or the lines of one command"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static int find_command(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return i;
    fprintf(stderr, "mica: there is no %s '%s'; 'mica help' lists what there is\n",
            name[0] == '-' ? "option" : "command", name);
    return -1;
}

static void print_command(FILE *to, int i)
{
    fprintf(to, "  mica %-11s %-18s %s\n", commands[i].name, commands[i].options, commands[i].text);
}

static void print_help(FILE *to)
{
    fprintf(to, "mica: lazy arrays, gradients and plans for neural networks\n\n");
    for (int i = 0; i < N_COMMANDS; i++) print_command(to, i);
    fprintf(to, "\nExit codes: 0 done, 1 failed, 2 called wrongly, 3 no usable model file, 4 over the memory budget,\n"
                "5 a benchmark is wrong, 130 interrupted.\n");
}

int cli_help(int argc, char **argv)
{
    if (argc <= 1 || strcmp(argv[1], "--help") == 0) return print_help(stdout), CLI_OK;
    if (argc > 2) return fprintf(stderr, "mica help: one command at a time, not also '%s'\n", argv[2]), CLI_USAGE;
    const int first = find_command(argv[1]);
    if (first < 0) return CLI_USAGE;
    for (int i = first; i < N_COMMANDS; i++)
        if (commands[i].run == commands[first].run) print_command(stdout, i);
    return CLI_OK;
}

int cli_file_code(mica_status status)
{
    switch (status) {
    case MICA_ERR_MEMORY: return CLI_BUDGET;
    case MICA_ERR_FORMAT:
    case MICA_ERR_FILE:
    case MICA_ERR_UNSUPPORTED: return CLI_MODEL;
    case MICA_ERR_ARGUMENT: return CLI_USAGE;
    default: return CLI_FAILED;
    }
}

/* A signal that ends the command: no temporary file stays. Commands that stop by themselves at Ctrl-C replace it. */
static void end_at_signal(int number)
{
    static const char why[] = "mica: a mapped file became shorter while it was read (SIGBUS); --no-mmap or MICA_MMAP=0 "
                              "reads files instead\n";
    if (number == SIGBUS) (void)!write(STDERR_FILENO, why, sizeof why - 1);
    mica_remove_temporaries();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void remove_temporaries_at_end(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGBUS};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before, action = {.sa_handler = end_at_signal};
        (void)sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup ignores some */
            (void)sigaction(numbers[i], &action, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) return print_help(stderr), CLI_USAGE;
    const int command = find_command(argv[1]);
    if (command < 0) return CLI_USAGE;
    remove_temporaries_at_end();
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error of its write */

    const int code = commands[command].run(argc - 1, argv + 1);

    /* Output is buffered: a full disk shows only here. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK) {
        fprintf(stderr, "mica: cannot write the output: %s\n", strerror(errno));
        return CLI_FAILED;
    }
    return code;
}
