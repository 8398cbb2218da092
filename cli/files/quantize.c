/* mica quantize: a model file with other number formats, or in another container. */
#include <mica_convert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/args.h"
#include "core/cli.h"
#include "core/progress.h"

typedef struct quantize_options {
    const char *type, *tensor, *tokenizer, *out;
    int64_t threads;
    bool i2_s_arm, quiet;
} quantize_options;

static const cli_arg quantize_args[] = {
    {"--type", "-t", CLI_TEXT, offsetof(quantize_options, type), 0, 0, "T",
     "of matrices: f32 f16 bf16 q8_0 q6_k q5_k q4_k q4_0 q4_1 q5_0 q5_1; ternary: tq1_0 tq2_0 i2_s q2_0; signs: "
     "q1_0; as kernels read them, so that nothing is packed at load: mica_t2 (ternary), mica_t1 (the same in 1.6 bits), mica_q8 (8 bits)"},
    {"--tensor", NULL, CLI_TEXT, offsetof(quantize_options, tensor), 0, 0, "RE=T",
     "tensors whose name matches become T instead (again and again; the last that matches counts)"},
    {"--tokenizer", NULL, CLI_TEXT, offsetof(quantize_options, tokenizer), 0, 0, "FILE",
     "the tokenizer, if it is not with the model (tokenizer.bin of llama2.c, tokenizer.json, ...)"},
    {"--out", "-o", CLI_TEXT, offsetof(quantize_options, out), 0, 0, "OUT", "the same as the second argument"},
    {"--threads", NULL, CLI_INT, offsetof(quantize_options, threads), 1, 256, "N", "one a core if not given"},
    {"--i2s-arm", NULL, CLI_FLAG, offsetof(quantize_options, i2_s_arm), 0, 0, NULL,
     "I2_S of the input was written by an ARM build of bitnet.cpp"},
    {"--quiet", "-q", CLI_FLAG, offsetof(quantize_options, quiet), 0, 0, NULL,
     "do not say what is stored otherwise than asked for"},
};
static const cli_args quantize_command = {"mica quantize",
                                          "IN OUT --type T",
                                          "Writes the model IN (GGUF, safetensors, a Hugging Face folder, a checkpoint "
                                          "of llama2.c) as OUT (*.gguf, *.safetensors). "
                                          "Vectors stay f32, embedding and head f16, unless --tensor says otherwise. "
                                          "Rows that fill no block are stored in the next "
                                          "format that fits, and said so.",
                                          quantize_args,
                                          sizeof quantize_args / sizeof quantize_args[0],
                                          1,
                                          2};
/* The same work under the name that people look for when they change no numbers. */
static const cli_args convert_command = {"mica convert",
                                         "IN OUT",
                                         "As mica quantize, and --type is f32 unless it is given.",
                                         quantize_args,
                                         sizeof quantize_args / sizeof quantize_args[0],
                                         1,
                                         2};

typedef struct quantize_talk {
    cli_progress progress;
    bool quiet;
    const char *command;
} quantize_talk;

static void say_note(const char *sentence, void *user)
{
    const quantize_talk *talk = user;
    if (!talk->quiet) fprintf(stderr, "%s: %s\n", talk->command, sentence);
}

static bool show_quantize(uint64_t done, uint64_t total, const char *tensor, void *user)
{
    return cli_progress_step(&((quantize_talk *)user)->progress, done, total, tensor);
}

/* Takes each "--tensor RE=T" out of the arguments, which the table knows once only. */
static int take_rules(const char *command, int *argc, char **argv, mica_tensor_rule *rules, size_t *n_rules)
{
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--tensor") != 0 || i + 1 >= *argc) {
            argv[kept++] = argv[i];
            continue;
        }
        char *equals = strrchr(argv[++i], '=');
        if (!equals || equals == argv[i])
            return fprintf(stderr, "%s: --tensor wants 'RE=TYPE', not '%s'\n", command, argv[i]), CLI_USAGE;
        *equals = '\0';
        rules[(*n_rules)++] = (mica_tensor_rule){argv[i], equals + 1};
    }
    *argc = kept;
    return CLI_OK;
}

static int run_quantize(const cli_args *command, const char *type, int argc, char **argv)
{
    quantize_options o = {.type = type};
    quantize_talk talk = {.command = command->command};
    const char *path[CLI_MAX_PLACES] = {0};
    size_t n = 0, n_rules = 0;
    mica_tensor_rule *rules = calloc((size_t)argc + 1, sizeof *rules);
    if (!rules) return fprintf(stderr, "%s: out of memory\n", command->command), CLI_FAILED;
    int code = take_rules(command->command, &argc, argv, rules, &n_rules);
    if (code == CLI_OK) code = cli_parse(command, argc, argv, &o, path, &n);
    if (code == CLI_OK && (n < 2 ? !o.out : o.out != NULL))
        code = (fprintf(stderr, "%s: one output: the second argument, or -o\n", command->command), CLI_USAGE);
    if (code == CLI_OK && !o.type) code = (fprintf(stderr, "%s: --type T is missing\n", command->command), CLI_USAGE);
    if (code != CLI_OK) return free(rules), code == CLI_HELP_SHOWN ? CLI_OK : code;

    mica_quantize_options q;
    mica_quantize_options_init(&q);
    q.type = o.type;
    q.rules = rules;
    q.n_rules = n_rules;
    q.tokenizer = o.tokenizer;
    q.i2_s_arm = o.i2_s_arm;
    q.threads = (int)o.threads;
    q.note = say_note;
    q.progress = show_quantize;
    q.user = &talk;
    talk.quiet = o.quiet;
    cli_progress_begin(&talk.progress);
    const mica_status status = mica_quantize(path[0], n > 1 ? path[1] : o.out, &q);
    const bool stopped = cli_progress_end(&talk.progress);
    free(rules);
    if (status == MICA_OK) return CLI_OK;
    fprintf(stderr, "%s: %s\n", command->command, mica_last_error());
    /* a file that cannot be used is the output if the input can be read */
    if (stopped || (status == MICA_ERR_FILE && access(path[0], R_OK) == 0))
        return stopped ? CLI_INTERRUPTED : CLI_FAILED;
    return cli_file_code(status);
}

int cli_quantize(int argc, char **argv) { return run_quantize(&quantize_command, NULL, argc, argv); }
int cli_convert(int argc, char **argv) { return run_quantize(&convert_command, "f32", argc, argv); }
