/* mica make-random: a model of random ternary weights, to run and to measure. */
#include <mica_convert.h>
#include <string.h>

#include "core/args.h"
#include "core/cli.h"
#include "core/progress.h"

typedef struct random_command_options {
    const char *arch, *shape, *out;
    int container;
    int64_t seed, vocab;
} random_command_options;

static const char containers[] = "i2_s|tq1_0|tq2_0|mica_t2|mica_t1|hf|f16";

static const cli_arg random_args[] = {
    {"--arch", NULL, CLI_TEXT, offsetof(random_command_options, arch), 0, 0, "ARCH",
     "bitnet-b1.58 (as it is) or bitnet-25"},
    {"--shape", NULL, CLI_TEXT, offsetof(random_command_options, shape), 0, 0, "SHAPE",
     "2b4t, tiny, or either with changes: tiny,layers=4,hidden=512 (hidden layers heads kv_heads ffn vocab context)"},
    {"--container", "--type", CLI_CHOICE, offsetof(random_command_options, container), 0, 0, containers,
     "how ternary weights are stored; hf: a folder of Hugging Face"},
    {"--seed", NULL, CLI_INT, offsetof(random_command_options, seed), 0, 9e15, "N",
     "one seed is one model, in every container"},
    {"--vocab", NULL, CLI_INT, offsetof(random_command_options, vocab), 259, 1 << 24, "N", "tokens; at least 259"},
    {"--out", "-o", CLI_TEXT, offsetof(random_command_options, out), 0, 0, "OUT", "the file, or the folder, to write"},
};
static const cli_args random_command = {"mica make-random",
                                        "-o OUT",
                                        "Writes a valid model with random ternary weights and a tokenizer of bytes.",
                                        random_args,
                                        sizeof random_args / sizeof random_args[0],
                                        0,
                                        0};

static bool show_random(uint64_t done, uint64_t total, const char *tensor, void *user)
{
    return cli_progress_step(user, done, total, tensor);
}

int cli_make_random(int argc, char **argv)
{
    random_command_options o = {.arch = "bitnet-b1.58", .shape = "tiny", .seed = 1};
    const char *places[CLI_MAX_PLACES];
    size_t n;
    cli_progress progress;
    const int parsed = cli_parse(&random_command, argc, argv, &o, places, &n);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    if (!o.out) return fprintf(stderr, "mica make-random: -o OUT is missing\n"), CLI_USAGE;
    static const char *const names[] = {"i2_s", "tq1_0", "tq2_0", "mica_t2", "mica_t1", "hf", "f16"};
    mica_random_options r;
    mica_random_options_init(&r);
    r.arch = o.arch;
    r.shape = o.shape;
    r.container = names[o.container];
    r.seed = (uint64_t)o.seed;
    r.vocab = o.vocab;
    r.progress = show_random;
    r.user = &progress;
    cli_progress_begin(&progress);
    const mica_status status = mica_make_random(o.out, &r);
    const bool stopped = cli_progress_end(&progress);
    if (status == MICA_OK) return CLI_OK;
    fprintf(stderr, "mica make-random: %s\n", mica_last_error());
    return stopped ? CLI_INTERRUPTED : status == MICA_ERR_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}
