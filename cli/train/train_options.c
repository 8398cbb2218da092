/* mica train lm: its options, and the sizes behind --preset. */
#include <string.h>

#include "core/args.h"
#include "core/cli.h"
#include "train/train_lm.h"

/* The sizes behind a name of --preset. */
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

#define AT(field) offsetof(train_options, field)
static const cli_arg train_args[] = {
    {"--text", NULL, CLI_TEXT, AT(text), 0, 0, "FILE", "what to train on; needed"},
    {"--out", NULL, CLI_TEXT, AT(out), 0, 0, "DIR", "where checkpoints, log, picture and model go (mica-lm)"},
    {"--preset", NULL, CLI_CHOICE, AT(preset), 0, 0, "tiny-ternary|nano-ternary|small-ternary",
     "sizes to start from; the options below change them"},
    {"--dim", NULL, CLI_INT, AT(dim), 2, 65536, "N", "width of the network"},
    {"--layers", NULL, CLI_INT, AT(layers), 1, 1000, "N", "layers"},
    {"--heads", NULL, CLI_INT, AT(heads), 1, 1000, "N", "heads of attention"},
    {"--kv-heads", NULL, CLI_INT, AT(kv_heads), 1, 1000, "N", "heads of keys and values, shared by the others"},
    {"--ffn", NULL, CLI_INT, AT(ffn), 1, 1e6, "N", "width of the feed-forward part"},
    {"--vocab", NULL, CLI_INT, AT(vocab), 256, 1e6, "N", "tokens of the vocabulary that is made of the text"},
    {"--tokenizer", NULL, CLI_TEXT, AT(tokenizer), 0, 0, "FILE", "a vocabulary that exists, instead"},
    {"--seq", NULL, CLI_INT, AT(seq), 1, 65536, "N", "tokens of a sequence"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", "sequences of a step"},
    {"--steps", NULL, CLI_INT, AT(steps), 0, 1e9, "N", "steps; 0: only evaluate"},
    {"--lr", NULL, CLI_NUMBER, AT(lr), 0, 10, "X", "peak of the learning rate"},
    {"--lr2", NULL, CLI_NUMBER, AT(lr2), 0, 10, "X", "its peak in the second half (two thirds of the first)"},
    {"--warmup", NULL, CLI_INT, AT(warmup), 0, 1e9, "N", "steps until the peak (a fiftieth of all)"},
    {"--decay", NULL, CLI_NUMBER, AT(decay), 0, 10, "X", "weight decay; in the second half 0"},
    TRAIN_LEARNING_ARGS(AT(learning)),
    {"--dropout", NULL, CLI_NUMBER, AT(dropout), 0, 0.9, "P", "share of activations left out while training"},
    {"--f32", NULL, CLI_FLAG, AT(f32), 0, 0, NULL, "the same network without rounding, cosine schedule"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 1e15, "N", "of the first values, the batches and the dropout"},
    {"--device", NULL, CLI_TEXT, AT(device), 0, 0, "cpu|metal|ref", "the best there is if not given"},
    {"--threads", NULL, CLI_INT, AT(threads), 0, 256, "N", "threads; 0: all fast cores"},
    {"--minutes", NULL, CLI_NUMBER, AT(minutes), 0, 1e6, "M", "stop then, as Ctrl-C does, but with a model"},
    {"--valid", NULL, CLI_NUMBER, AT(valid), 0.001, 0.9, "P", "share of the text, its end, to validate with"},
    {"--eval-every", NULL, CLI_INT, AT(eval_every), 1, 1e9, "N", "steps between validations and checkpoints"},
    {"--eval-windows", NULL, CLI_INT, AT(eval_windows), 1, 1e9, "N", "sequences to validate with on the way"},
    {"--sample-every", NULL, CLI_INT, AT(sample_every), 0, 1e9, "N", "steps between texts written to samples.txt"},
    {"--sample-tokens", NULL, CLI_INT, AT(sample_tokens), 1, 100000, "N", "their length"},
    {"--prompt", "-p", CLI_TEXT, AT(prompt), 0, 0, "TEXT", "their beginning"},
    {"--resume", NULL, CLI_FLAG, AT(resume), 0, 0, NULL, "go on from DIR/last.safetensors, with the same options"},
    {"--init", NULL, CLI_TEXT, AT(init), 0, 0, "FILE", "begin with the parameters of this checkpoint"},
    {"--type", NULL, CLI_CHOICE, AT(type), 0, 0, "I2_S|TQ2_0|TQ1_0", "how the model file packs ternary weights"},
    {"--embedding", NULL, CLI_CHOICE, AT(embedding), 0, 0, "F16|Q8_0|F32", "how it stores the embedding"},
    {"--name", NULL, CLI_TEXT, AT(name), 0, 0, "TEXT", "what the model file calls itself"},
    {"--plan", NULL, CLI_FLAG, AT(plan), 0, 0, NULL, "print the plan of a step and do nothing"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "print the result as JSON"},
};

static const cli_args train_lm_args = {
    .command = "mica train lm",
    .usage = "--text FILE [--out DIR] [--preset NAME] ...",
    .text = "Trains a language model with ternary weights (BitNet b1.58) on a text. DIR gets last.safetensors\n"
            "(to go on from), best.safetensors (of the lowest validation loss), model.gguf (made of the best),\n"
            "run.json, log.csv, loss.svg and samples.txt. Ctrl-C saves and says where.\n\n"
            "  mica train lm --text shakespeare.txt --preset nano-ternary --out try\n"
            "  mica run try/model.gguf -p \"ROMEO:\"",
    .args = train_args,
    .n_args = sizeof train_args / sizeof train_args[0],
};

static void apply_preset(train_options *o)
{
    const int i = o->preset;
    o->dim = presets[i].dim, o->layers = presets[i].layers, o->heads = presets[i].heads;
    o->kv_heads = presets[i].kv_heads, o->ffn = presets[i].ffn, o->vocab = presets[i].vocab;
    o->seq = presets[i].seq, o->batch = presets[i].batch, o->steps = presets[i].steps;
}

int train_parse(int argc, char **argv, train_options *o)
{
    const char *places[CLI_MAX_PLACES];
    size_t n;
    *o = (train_options){.out = "mica-lm",
                         .prompt = "\n",
                         .seed = 1,
                         .threads = 0,
                         .lr = 0.004,
                         .lr2 = -1,
                         .warmup = -1,
                         .decay = 0.1,
                         .learning = {.optimiser = 1, .clip = 1, .accumulate = 1}, /* adamw */
                         .valid = 0.1,
                         .eval_every = 100,
                         .eval_windows = 64,
                         .sample_every = 500,
                         .sample_tokens = 120};
    train_options chosen = *o; /* parsed twice: what is given wins over the preset */
    int code = cli_parse(&train_lm_args, argc, argv, &chosen, places, &n);
    if (code != CLI_OK) return code;
    o->preset = chosen.preset;
    apply_preset(o);
    code = cli_parse(&train_lm_args, argc, argv, o, places, &n);
    if (o->lr2 < 0) o->lr2 = o->lr * 2 / 3;
    if (o->warmup < 0) o->warmup = o->steps / 50 > 10 ? o->steps / 50 : 10;
    if (!o->text) {
        fprintf(stderr, "mica train lm: --text FILE says what to train on; --help lists the rest\n");
        return CLI_USAGE;
    }
    if (strlen(o->out) > TRAIN_PATH - 64) return fprintf(stderr, "mica train lm: --out is too long\n"), CLI_USAGE;
    return code;
}
