/* mica quantize and mica convert: write a model file in other number formats or another container. */
#include <mica_convert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli.h"
#include "core/progress.h"

typedef struct quantize_options {
    const char *type, *tokenizer, *out;
    cli_texts tensors;
    int64_t threads;
    bool i2_s_arm, quiet;
} quantize_options;

/* clang-format off */
#define AT(field) offsetof(quantize_options, field)
/* Options of both commands. */
static const cli_option shared_rows[] = {
    {"--tensor", NULL, CLI_TEXTS, AT(tensors), .value = "RE=T", .aliases = "--tensor-type",
     .text = "tensors whose name matches the regular expression RE get format T; may be repeated, and the last match "
             "counts"},
    {"--tokenizer", NULL, CLI_PATH, AT(tokenizer), .value = "FILE", .unset = "the one beside the model",
     .text = "the tokenizer: tokenizer.bin of llama2.c, tokenizer.json, ..."},
    {"--out", "-o", CLI_PATH, AT(out), .value = "OUT", .text = "the same as the argument OUT"},
    {"--threads", NULL, CLI_INT, AT(threads), 1, 256, "N", .unset = "one per core", .text = "CPU threads"},
    {"--i2s-arm", NULL, CLI_FLAG, AT(i2_s_arm), .text = "read I2_S weights in the order of bitnet.cpp's ARM builds"},
    {"--quiet", "-q", CLI_FLAG, AT(quiet), .text = "do not report tensors that are stored in another format than T"},
    {.name = NULL},
};

#define TYPE_TEXT \
    "number format of matrices: f32 f16 bf16 q8_0 q6_k q5_k q4_k q4_0 q4_1 q5_0 q5_1; ternary: tq1_0 tq2_0 i2_s " \
    "q2_0; signs: q1_0; in the layout of the kernels, so that loading does not repack: mica_t2 (ternary), mica_t1 " \
    "(ternary in 1.6 bits), mica_q8 (8 bits)"
static const cli_option quantize_rows[] = {
    {"--type", "-t", CLI_TEXT, AT(type), .value = "T", .required = true, .text = TYPE_TEXT},
    {.name = NULL},
};
static const cli_option convert_rows[] = {
    {"--type", "-t", CLI_TEXT, AT(type), .value = "T", .initial = "f32", .text = TYPE_TEXT},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static const cli_argument quantize_arguments[] = {
    {"IN", "a GGUF or safetensors file, a Hugging Face folder, or a checkpoint of llama2.c"},
    {"OUT", "the file to write: *.gguf or *.safetensors"},
    {NULL, NULL},
};

static int run_quantize(const cli_call *call);

const cli_command cli_quantize_command = {
    .name = "mica quantize",
    .summary = "write a model file in another number format",
    .usage = "IN OUT --type T [options]",
    .text = "Vectors stay f32, embedding and head f16, unless --tensor chooses another format. Rows that do not fill a "
            "block are stored in the next format that fits, which is reported.",
    .arguments = quantize_arguments,
    .least_args = 1,
    .most_args = 2,
    .examples = "mica quantize model.gguf small.gguf --type q4_k --tensor 'output.*=q6_k'",
    .groups = (const cli_group[]){{"Options", quantize_rows, 0}, {"More options", shared_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(quantize_options),
    .run = run_quantize,
};

/* The same as quantize, under the usual name for a change of the container only. */
const cli_command cli_convert_command = {
    .name = "mica convert",
    .summary = "convert a model file to GGUF or safetensors",
    .usage = "IN OUT [options]",
    .text = "The same as 'mica quantize', with --type f32 as the default.",
    .arguments = quantize_arguments,
    .least_args = 1,
    .most_args = 2,
    .groups = (const cli_group[]){{"Options", convert_rows, 0}, {"More options", shared_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(quantize_options),
    .run = run_quantize,
};

typedef struct quantize_report {
    cli_progress progress;
    bool quiet;
    const char *command;
} quantize_report;

static void print_note(const char *note, void *user)
{
    const quantize_report *report = user;
    if (!report->quiet) fprintf(stderr, "%s: %s\n", report->command, note);
}

static bool show_quantize(uint64_t done, uint64_t total, const char *tensor, void *user)
{
    return cli_progress_step(&((quantize_report *)user)->progress, done, total, tensor);
}

/* Splits the "RE=T" of each --tensor. rules[] point into the returned block, which the caller frees.
 * NULL after an error message. */
static char *split_rules(const char *command, const cli_texts *tensors, mica_tensor_rule *rules, int *code)
{
    size_t room = 1;
    for (size_t i = 0; i < tensors->n; i++) room += strlen(tensors->at[i]) + 1;
    char *block = malloc(room), *at = block;
    if (!block) {
        *code = cli_no_memory(command);
        return NULL;
    }
    for (size_t i = 0; i < tensors->n; i++) {
        const size_t n = strlen(tensors->at[i]) + 1;
        memcpy(at, tensors->at[i], n);
        char *equals = strrchr(at, '=');
        if (!equals || equals == at) {
            fprintf(stderr, "%s: --tensor takes RE=TYPE, not '%s'\n", command, at);
            *code = CLI_USAGE;
            free(block);
            return NULL;
        }
        *equals = '\0';
        rules[i] = (mica_tensor_rule){at, equals + 1};
        at += n;
    }
    return block;
}

static int quantize_file(const cli_call *call, const mica_tensor_rule *rules)
{
    const quantize_options *o = call->options;
    const char *command = call->command->name, *in = call->args[0];
    quantize_report report = {.command = command, .quiet = o->quiet};
    mica_quantize_options q;
    mica_quantize_options_init(&q);
    q.type = o->type;
    q.rules = rules;
    q.n_rules = o->tensors.n;
    q.tokenizer = o->tokenizer;
    q.i2_s_arm = o->i2_s_arm;
    q.threads = (int)o->threads;
    q.note = print_note;
    q.progress = show_quantize;
    q.user = &report;
    cli_progress_begin(&report.progress);
    const mica_status status = mica_quantize(in, call->n_args > 1 ? call->args[1] : o->out, &q);
    const bool stopped = cli_progress_end(&report.progress);
    if (status == MICA_OK) return CLI_OK;
    const int code = cli_file_failed(command, status);
    if (stopped) return CLI_INTERRUPTED;
    /* if the input can be read, the file that failed is the output */
    return status == MICA_ERR_FILE && access(in, R_OK) == 0 ? CLI_FAILED : code;
}

static int run_quantize(const cli_call *call)
{
    const quantize_options *o = call->options;
    const char *command = call->command->name;
    int code = CLI_OK;
    if (call->n_args < 2 ? !o->out : o->out != NULL)
        return cli_fail(CLI_USAGE, "%s: give one output: the argument OUT, or -o OUT", command);
    mica_tensor_rule *rules = calloc(o->tensors.n + 1, sizeof *rules);
    if (!rules) return cli_no_memory(command);
    char *block = split_rules(command, &o->tensors, rules, &code);
    if (block) code = quantize_file(call, rules);
    free(block);
    free(rules);
    return code;
}
