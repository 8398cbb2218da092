/* mica train ncp: its options, and what they say about data and network. */
#include <string.h>

#include "core/args.h"
#include "core/cli.h"
#include "train/train_ncp.h"

#define CELLS "cfc|ltc|gru|lstm|ctrnn|node|eltc|ctgru"
static const struct {
    const char *name;
    mica_series_cell cell;
} cells[] = {{"cfc", MICA_CELL_CFC},   {"ltc", MICA_CELL_LTC},     {"gru", MICA_CELL_GRU},
             {"lstm", MICA_CELL_LSTM}, {"ctrnn", MICA_CELL_CTRNN}, {"node", MICA_CELL_NODE},
             {"eltc", MICA_CELL_ELTC}, {"ctgru", MICA_CELL_CTGRU}};

#define AT(field) offsetof(ncp_options, field)
static const cli_arg ncp_args[] = {
    {"--data", NULL, CLI_TEXT, AT(data), 0, 0, "FILES", "CSV, TSV or npy files, commas between, or a folder; needed"},
    {"--target", NULL, CLI_TEXT, AT(target), 0, 0, "COLS",
     "what to predict: names or numbers of columns (-1: the last), or all; needed"},
    {"--inputs", NULL, CLI_TEXT, AT(inputs), 0, 0, "COLS", "what the network sees (all other columns but dates)"},
    {"--drop", NULL, CLI_TEXT, AT(drop), 0, 0, "COLS", "columns that it does not see"},
    {"--group", NULL, CLI_TEXT, AT(group), 0, 0, "COL", "rows with the same value here are a series of their own"},
    {"--time", NULL, CLI_TEXT, AT(time), 0, 0, "COL", "when a row was measured: numbers or dates"},
    {"--timespan", NULL, CLI_TEXT, AT(span), 0, 0, "COL", "or: the time since the row before"},
    {"--ahead", NULL, CLI_INT, AT(ahead), 0, 1e6, "N",
     "predict the target of N rows later (0; 1 if nothing else is seen)"},
    {"--task", NULL, CLI_CHOICE, AT(task), 0, 0, "auto|regression|classification",
     "auto: classes if the target is text or up to 20 whole numbers"},
    {"--missing", NULL, CLI_CHOICE, AT(missing), 0, 0, "last|mean|refuse", "what an input that is missing becomes"},
    {"--header", NULL, CLI_CHOICE, AT(header), 0, 0, "auto|no|yes", "does the first line have names?"},
    {"--raw", NULL, CLI_FLAG, AT(raw), 0, 0, NULL, "no z-score: numbers stay what they are"},
    {"--valid-data", NULL, CLI_TEXT, AT(valid_data), 0, 0, "FILES", "validate with these, not with a part of --data"},
    {"--test-data", NULL, CLI_TEXT, AT(test_data), 0, 0, "FILES", "test with these"},
    {"--split", NULL, CLI_CHOICE, AT(split), 0, 0, "auto|time|seed|whole",
     "parts: the end of each series, blocks drawn, or whole series (auto: of several, whole ones)"},
    {"--valid", NULL, CLI_NUMBER, AT(valid), 0, 0.9, "P", "share to validate with (0.15)"},
    {"--test", NULL, CLI_NUMBER, AT(test), 0, 0.9, "P", "share to test with (0.15)"},
    {"--cell", NULL, CLI_CHOICE, AT(cell), 0, 0, CELLS, "what the network is made of"},
    {"--units", NULL, CLI_INT, AT(units), 1, 16384, "N", "its width, if no wiring says (32)"},
    {"--wiring", NULL, CLI_TEXT, AT(wiring), 0, 0, "TEXT",
     "cfc, ltc, eltc: autoncp:UNITS,OUTPUTS, full:UNITS, random:UNITS,OUTPUTS,SPARSITY, ncp:...; @SEED"},
    {"--layers", NULL, CLI_INT, AT(layers), 1, 64, "N", "one on top of the other (1)"},
    {"--bidirectional", NULL, CLI_FLAG, AT(bidirectional), 0, 0, NULL, "a second network from the end"},
    {"--mixed-memory", NULL, CLI_FLAG, AT(mixed_memory), 0, 0, NULL, "cfc, ltc: an LSTM beside the cell"},
    {"--mode", NULL, CLI_CHOICE, AT(mode), 0, 0, "default|pure|no_gate", "cfc: which of its forms"},
    {"--convention", NULL, CLI_CHOICE, AT(convention), 0, 0, "torch|keras", "cfc: whose"},
    {"--backbone-units", NULL, CLI_INT, AT(backbone_units), 1, 65536, "N", "cfc without a wiring (128)"},
    {"--backbone-layers", NULL, CLI_INT, AT(backbone_layers), 0, 8, "N", "cfc without a wiring (1)"},
    {"--activation", NULL, CLI_TEXT, AT(activation), 0, 0, "NAME",
     "cfc, eltc: tanh, relu, gelu, silu, ... (the cell's)"},
    {"--dropout", NULL, CLI_NUMBER, AT(dropout), 0, 0.9, "P", "cfc: of the backbone"},
    {"--unfolds", NULL, CLI_INT, AT(unfolds), 1, 1000, "N", "steps of the solver in a row (the cell's)"},
    {"--solver", NULL, CLI_CHOICE, AT(solver), 0, 0, "own|euler|heun|rk4", "ctrnn, node, eltc"},
    {"--seq", NULL, CLI_INT, AT(seq), 1, 1e6, "N", "rows of a sequence (32)"},
    {"--stride", NULL, CLI_INT, AT(stride), 0, 1e6, "N",
     "rows from one sequence to train on to the next (a quarter of --seq)"},
    {"--epochs", NULL, CLI_INT, AT(epochs), 1, 1e6, "N", "times over the data (50)"},
    {"--patience", NULL, CLI_INT, AT(patience), 0, 1e6, "N", "stop after so many without a better one (15); 0: never"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", "sequences of a step (32)"},
    {"--lr", NULL, CLI_NUMBER, AT(lr), 0, 10, "X", "peak of the learning rate (0.005)"},
    {"--schedule", NULL, CLI_CHOICE, AT(schedule), 0, 0, "cosine|constant|linear", "of the learning rate"},
    {"--warmup", NULL, CLI_INT, AT(warmup), 0, 1e9, "N", "steps until its peak (0)"},
    {"--decay", NULL, CLI_NUMBER, AT(decay), 0, 10, "X", "weight decay (0)"},
    TRAIN_LEARNING_ARGS(AT(learning)),
    {"--seed", NULL, CLI_INT, AT(seed), 0, 1e15, "N", "of first values, batches and --split seed (1)"},
    {"--device", NULL, CLI_TEXT, AT(device), 0, 0, "cpu|metal|ref", "the best there is if not given"},
    {"--threads", NULL, CLI_INT, AT(threads), 0, 256, "N", "threads; 0: all fast cores"},
    {"--minutes", NULL, CLI_NUMBER, AT(minutes), 0, 1e6, "M", "stop then, with a model"},
    {"--out", NULL, CLI_TEXT, AT(out), 0, 0, "DIR", "where model, checkpoints and report go (mica-ncp)"},
    {"--resume", NULL, CLI_FLAG, AT(resume), 0, 0, NULL, "go on from DIR/last.safetensors, with the same options"},
    {"--plan", NULL, CLI_FLAG, AT(plan), 0, 0, NULL, "print the plan of a step and do nothing"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "print the result as JSON"},
};

static const cli_args train_ncp_args = {
    .command = "mica train ncp",
    .usage = "--data FILES --target COLS [--cell NAME] [--wiring TEXT] ...",
    .text =
        "Trains a liquid network (or a GRU or LSTM) on measured sequences. Numbers are scaled by mean and deviation\n"
        "of the part to train on; texts become one input for each; dates are left out. DIR gets best.safetensors\n"
        "(the model, of the lowest validation loss), last.safetensors (to go on from), run.json, log.csv, loss.svg\n"
        "and wiring.svg. Ctrl-C saves and says where.\n\n"
        "  mica data irregular -o uneven.csv\n"
        "  mica train ncp --data uneven.csv --target speed --time time --epochs 20 --out try\n"
        "  mica predict try uneven.csv -o out.csv",
    .args = ncp_args,
    .n_args = sizeof ncp_args / sizeof ncp_args[0],
};

static int refuse_options(const char *sentence)
{
    fprintf(stderr, "mica train ncp: %s\n", sentence);
    return CLI_USAGE;
}

/* Options that only some cells have; with another one they would change nothing. (Sizes of a
 * backbone may stand in a command that tries one cell after the other.) */
static int check_cell(const ncp_options *o)
{
    const mica_series_cell cell = cells[o->cell].cell;
    const bool cfc = cell == MICA_CELL_CFC, ltc = cell == MICA_CELL_LTC, eltc = cell == MICA_CELL_ELTC;
    const bool solved = cell == MICA_CELL_CTRNN || cell == MICA_CELL_NODE || eltc, backbone = cfc && !o->wiring;
    const struct {
        bool given, fits;
        const char *sentence;
    } rules[] = {
        {o->mixed_memory, cfc || ltc, "--mixed-memory goes with --cell cfc or ltc"},
        {o->mode != 0, cfc, "--mode goes with --cell cfc"},
        {o->convention != 0, cfc || ltc, "--convention goes with --cell cfc or ltc"},
        {o->activation != NULL, backbone || eltc, "--activation goes with --cell cfc without a wiring, or eltc"},
        {o->dropout > 0, backbone, "--dropout goes with --cell cfc without a wiring"},
        {o->unfolds > 0, solved || ltc, "--unfolds goes with --cell ltc, ctrnn, node or eltc"},
        {o->solver != 0, solved, "--solver goes with --cell ctrnn, node or eltc"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].given && !rules[i].fits) return refuse_options(rules[i].sentence);
    return CLI_OK;
}

int ncp_parse(int argc, char **argv, ncp_options *o)
{
    const char *places[CLI_MAX_PLACES];
    size_t n;
    mica_activation activation;
    *o = (ncp_options){.out = "mica-ncp",
                       .ahead = -1,
                       .valid = 0.15,
                       .test = 0.15,
                       .units = 32,
                       .layers = 1,
                       .backbone_units = 128,
                       .backbone_layers = 1,
                       .seq = 32,
                       .epochs = 50,
                       .patience = 15,
                       .batch = 32,
                       .lr = 0.005,
                       .learning = {.clip = 1, .accumulate = 1},
                       .seed = 1};
    const int code = cli_parse(&train_ncp_args, argc, argv, o, places, &n);
    if (code != CLI_OK) return code;
    if (!o->data) return refuse_options("--data FILES says what to train on; --help lists the rest");
    if (!o->target) return refuse_options("--target COLS says what to predict; --help lists the rest");
    if (o->activation && !mica_activation_named(o->activation, &activation))
        return refuse_options("--activation takes relu, gelu, silu, tanh, lecun_tanh, sigmoid or another of mica_nn.h");
    return check_cell(o);
}

const char *ncp_cell_name(const ncp_options *o) { return cells[o->cell].name; }

void ncp_net_of(const ncp_options *o, mica_series_net *net)
{
    mica_activation activation;
    mica_series_net_init(net, cells[o->cell].cell);
    net->units = o->units, net->layers = o->layers, net->wiring = o->wiring;
    net->bidirectional = o->bidirectional, net->mixed_memory = o->mixed_memory;
    net->convention = (mica_liquid_convention)o->convention, net->mode = (mica_cfc_mode)o->mode;
    net->backbone_units = o->backbone_units, net->backbone_layers = o->backbone_layers, net->dropout = o->dropout;
    net->unfolds = o->unfolds, net->solver = o->solver - 1;
    if (o->activation && mica_activation_named(o->activation, &activation)) net->activation = (int)activation;
}

void ncp_series_of(const ncp_options *o, mica_series_options *series)
{
    mica_series_options_init(series);
    series->targets = o->target, series->inputs = o->inputs, series->drop = o->drop, series->group = o->group;
    series->time = o->time, series->span = o->span;
    series->ahead = o->ahead, series->seq = o->seq, series->stride = o->stride;
    series->task = (mica_series_task)o->task, series->missing = (mica_series_missing)o->missing;
    series->split = (mica_series_split)o->split;
    series->valid = o->valid, series->test = o->test, series->seed = (uint64_t)o->seed, series->raw = o->raw;
}
