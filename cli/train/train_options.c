/* mica train lm: its options, and the sizes of each --preset. */
#include <string.h>

#include "train/train_lm.h"

/* The sizes of each --preset, in the order of their names. */
static const struct {
    int64_t dim, layers, heads, kv_heads, ffn, vocab, seq, batch, steps;
} presets[] = {
    {256, 3, 4, 2, 512, 1024, 256, 4, 1500}, /* tiny-ternary: the built-in model   */
    {128, 2, 4, 2, 256, 320, 64, 8, 200},    /* nano-ternary: seconds, for trying  */
    {512, 6, 8, 4, 1536, 4096, 256, 16, 10000}, /* small-ternary: hours            */
};

const char *train_ternary_type(const train_options *o)
{
    static const char *const types[] = {"I2_S", "TQ2_0", "TQ1_0"};
    return types[o->type];
}

const char *train_embedding_type(const train_options *o)
{
    static const char *const types[] = {"F16", "Q8_0", "F32"};
    return types[o->embedding];
}

/* clang-format off */
#define AT(field) offsetof(train_options, field)
static const cli_option data_rows[] = {
    {"--text", NULL, CLI_PATH, AT(text), .value = "FILE", .required = true, .aliases = "--data",
     .text = "the text to train on"},
    {"--out", "-o", CLI_PATH, AT(out), .value = "DIR", .initial = "mica-lm", .aliases = "--output",
     .text = "the folder for checkpoints, log, chart and model"},
    {"--tokenizer", NULL, CLI_PATH, AT(tokenizer), .value = "FILE", .unset = "trained on the text",
     .text = "use an existing tokenizer"},
    {"--valid", NULL, CLI_NUMBER, AT(valid), 0.001, 0.9, "P", .initial = "0.1",
     .text = "fraction of the text, at its end, for validation"},
    {"--resume", NULL, CLI_FLAG, AT(resume), .text = "continue from DIR/last.safetensors, with the same options"},
    {"--init", NULL, CLI_PATH, AT(init), .value = "FILE", .unset = "random values",
     .text = "start with the parameters of this checkpoint"},
    {"--plan", NULL, CLI_FLAG, AT(plan), .text = "print the plan of a training step and exit"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print the result as JSON"},
    {.name = NULL},
};
static const cli_option size_rows[] = {
    {"--preset", NULL, CLI_CHOICE, AT(preset), .value = "tiny-ternary|nano-ternary|small-ternary",
     .text = "the model sizes; the options of this group change single sizes"},
    {"--dim", NULL, CLI_INT, AT(dim), 2, 65536, "N", .unset = "the preset's", .text = "width of the network"},
    {"--layers", NULL, CLI_INT, AT(layers), 1, 1000, "N", .unset = "the preset's", .text = "number of layers"},
    {"--heads", NULL, CLI_INT, AT(heads), 1, 1000, "N", .unset = "the preset's", .text = "attention heads"},
    {"--kv-heads", NULL, CLI_INT, AT(kv_heads), 1, 1000, "N", .unset = "the preset's",
     .text = "heads of keys and values, each shared by several attention heads"},
    {"--ffn", NULL, CLI_INT, AT(ffn), 1, 1e6, "N", .unset = "the preset's", .text = "width of the feed-forward layers"},
    {"--vocab", NULL, CLI_INT, AT(vocab), 256, 1e6, "N", .unset = "the preset's",
     .text = "size of the vocabulary that is trained on the text"},
    {"--seq", NULL, CLI_INT, AT(seq), 1, 65536, "N", .unset = "the preset's", .aliases = "--max-seq-length",
     .text = "tokens per sequence"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", .unset = "the preset's", .aliases = "--batch-size",
     .text = "batch size in sequences"},
    {"--steps", NULL, CLI_INT, AT(steps), 0, 1e9, "N", .unset = "the preset's", .aliases = "--iters",
     .text = "training steps; 0 only evaluates"},
    {"--f32", NULL, CLI_FLAG, AT(f32),
     .text = "train the same network without ternary rounding, with a cosine schedule"},
    {.name = NULL},
};
static const cli_option training_rows[] = {
    {"--lr", NULL, CLI_NUMBER, AT(lr), 0, 10, "X", .initial = "0.004", .aliases = "--learning-rate",
     .text = "peak learning rate"},
    {"--lr2", NULL, CLI_NUMBER, AT(lr2), 0, 10, "X", .unset = "two thirds of --lr",
     .text = "peak learning rate in the second half"},
    {"--warmup", NULL, CLI_INT, AT(warmup), 0, 1e9, "N", .unset = "a fiftieth of all steps, at least 10",
     .text = "warm-up steps of the learning rate"},
    {"--decay", NULL, CLI_NUMBER, AT(decay), 0, 10, "X", .initial = "0.1", .aliases = "--weight-decay",
     .text = "weight decay of the first half; it is 0 in the second half"},
    {"--dropout", NULL, CLI_NUMBER, AT(dropout), 0, 0.9, "P", .initial = "0",
     .text = "dropout: fraction of activations that training sets to zero"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 1e15, "N", .initial = "1",
     .text = "seed of initial values, batches and dropout"},
    {"--minutes", NULL, CLI_NUMBER, AT(minutes), 0, 1e6, "M", .initial = "0",
     .text = "stop after M minutes and write the model; 0: no limit"},
    {"--device", NULL, CLI_TEXT, AT(device), .value = "cpu|metal|ref", .unset = "the fastest one available",
     .text = "the device that computes"},
    {"--threads", "-t", CLI_INT, AT(threads), 0, 256, "N", .initial = "0", .text = "CPU threads; 0: all fast cores"},
    {.name = NULL},
};
static const cli_option report_rows[] = {
    {"--eval-every", NULL, CLI_INT, AT(eval_every), 1, 1e9, "N", .initial = "100", .aliases = "--steps-per-eval",
     .text = "steps between validations; each also writes a checkpoint"},
    {"--eval-windows", NULL, CLI_INT, AT(eval_windows), 1, 1e9, "N", .initial = "64", .aliases = "--val-batches",
     .text = "sequences per validation during training"},
    {"--sample-every", NULL, CLI_INT, AT(sample_every), 0, 1e9, "N", .initial = "500",
     .text = "steps between samples, which samples.txt collects; 0: none"},
    {"--sample-tokens", NULL, CLI_INT, AT(sample_tokens), 1, 100000, "N", .initial = "120",
     .text = "tokens per sample"},
    {"--prompt", "-p", CLI_TEXT, AT(prompt), .value = "TEXT", .unset = "a line break", .text = "prompt of the samples"},
    {"--type", NULL, CLI_CHOICE, AT(type), .value = "I2_S|TQ2_0|TQ1_0",
     .text = "format of ternary weights in the model file"},
    {"--embedding", NULL, CLI_CHOICE, AT(embedding), .value = "F16|Q8_0|F32",
     .text = "format of the embedding in the model file"},
    {"--name", NULL, CLI_TEXT, AT(name), .value = "TEXT", .unset = "none",
     .text = "name of the model in the model file"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

enum { UNSET = -1 };

const cli_command cli_train_lm_command = {
    .name = "mica train lm",
    .summary = "train a language model with ternary weights on a text",
    .usage = "--text FILE [-o DIR] [--preset NAME] [options]",
    .text = "Trains a language model with ternary weights (BitNet b1.58) on a text. DIR gets last.safetensors (to "
            "continue from), best.safetensors (the lowest validation loss), model.gguf (made from the best), run.json, "
            "log.csv, loss.svg and samples.txt. Ctrl-C writes a checkpoint and prints its path.",
    .examples = "mica train lm --text shakespeare.txt --preset nano-ternary -o try\n"
                "mica run try/model.gguf -p \"ROMEO:\"",
    .groups = (const cli_group[]){{"Data and results", data_rows, 0},
                                  {"Sizes", size_rows, 0},
                                  {"Training", training_rows, 0},
                                  {"Optimizer", train_learning_rows, offsetof(train_options, learning)},
                                  {"Validation, samples and the model file", report_rows, 0},
                                  {NULL, NULL, 0}},
    .options_size = sizeof(train_options),
    .defaults = &(const train_options){.prompt = "\n",
                                       .dim = UNSET,
                                       .layers = UNSET,
                                       .heads = UNSET,
                                       .kv_heads = UNSET,
                                       .ffn = UNSET,
                                       .vocab = UNSET,
                                       .seq = UNSET,
                                       .batch = UNSET,
                                       .steps = UNSET,
                                       .lr2 = UNSET,
                                       .warmup = UNSET,
                                       .learning = {.optimiser = 1}}, /* adamw */
    .run = train_lm_run,
};

/* Sets the sizes that were not given from the preset. */
static void apply_preset(train_options *o)
{
    const int i = o->preset;
    const struct {
        int64_t *at, value;
    } sizes[] = {{&o->dim, presets[i].dim},           {&o->layers, presets[i].layers}, {&o->heads, presets[i].heads},
                 {&o->kv_heads, presets[i].kv_heads}, {&o->ffn, presets[i].ffn},       {&o->vocab, presets[i].vocab},
                 {&o->seq, presets[i].seq},           {&o->batch, presets[i].batch},   {&o->steps, presets[i].steps}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        if (*sizes[k].at == UNSET) *sizes[k].at = sizes[k].value;
}

int train_complete(train_options *o)
{
    apply_preset(o);
    if (o->lr2 < 0) o->lr2 = o->lr * 2 / 3;
    if (o->warmup < 0) o->warmup = o->steps / 50 > 10 ? o->steps / 50 : 10;
    if (strlen(o->out) > TRAIN_PATH - 64) return cli_fail(CLI_USAGE, "mica train lm: --out is too long");
    return CLI_OK;
}
