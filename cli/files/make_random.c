/* mica make-random: writes a model with random ternary weights, for tests and measurements. */
#include <mica_convert.h>

#include "core/cli.h"
#include "core/progress.h"

typedef struct random_command_options {
    const char *arch, *shape, *out, *container;
    int64_t seed, vocab;
} random_command_options;

/* clang-format off */
#define AT(field) offsetof(random_command_options, field)
#define CONTAINERS "i2_s|tq1_0|tq2_0|q2_0|mica_t2|mica_t1|hf|f16"
static const cli_option random_rows[] = {
    {"--out", "-o", CLI_PATH, AT(out), .value = "OUT", .required = true, .text = "the file, or the folder, to write"},
    {"--arch", NULL, CLI_TEXT, AT(arch), .value = "ARCH", .initial = "bitnet-b1.58",
     .text = "bitnet-b1.58 or bitnet-25"},
    {"--shape", NULL, CLI_TEXT, AT(shape), .value = "SHAPE", .initial = "tiny",
     .text = "2b4t or tiny, optionally with changes such as tiny,layers=4,hidden=512 (hidden layers heads kv_heads ffn "
             "vocab context)"},
    {"--container", NULL, CLI_TEXT, AT(container), .value = CONTAINERS, .initial = "i2_s", .aliases = "--type",
     .text = "format of the ternary weights; hf: a Hugging Face folder"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 9e15, "N", .initial = "1",
     .text = "seed: the same seed gives the same model in every container"},
    {"--vocab", NULL, CLI_INT, AT(vocab), 259, 1 << 24, "N", .unset = "the shape's", .text = "size of the vocabulary"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_make_random(const cli_call *call);

const cli_command cli_make_random_command = {
    .name = "mica make-random",
    .summary = "write a model with random ternary weights, for tests and measurements",
    .usage = "-o OUT [options]",
    .text = "The model is valid and has a byte tokenizer.",
    .groups = (const cli_group[]){{"Options", random_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(random_command_options),
    .run = run_make_random,
};

static bool show_random(uint64_t done, uint64_t total, const char *tensor, void *user)
{
    return cli_progress_step(user, done, total, tensor);
}

static int run_make_random(const cli_call *call)
{
    const random_command_options *o = call->options;
    cli_progress progress;
    mica_random_options r;
    if (!cli_word_in(CONTAINERS, o->container, NULL))
        return cli_fail(CLI_USAGE, "mica make-random: --container takes %s, not '%s'", CONTAINERS, o->container);
    mica_random_options_init(&r);
    r.arch = o->arch;
    r.shape = o->shape;
    r.container = o->container;
    r.seed = (uint64_t)o->seed;
    r.vocab = o->vocab;
    r.progress = show_random;
    r.user = &progress;
    cli_progress_begin(&progress);
    const mica_status status = mica_make_random(o->out, &r);
    const bool stopped = cli_progress_end(&progress);
    if (status == MICA_OK) return CLI_OK;
    const int code = cli_file_failed("mica make-random", status);
    return stopped ? CLI_INTERRUPTED : code == CLI_FILE ? CLI_FAILED : code;
}
