/* mica train ncp: its options, and the data and network they describe. */
#include <string.h>

#include "train/train_ncp.h"

#define CELLS "cfc|ltc|gru|lstm|ctrnn|node|eltc|ctgru"
static const struct {
    const char *name;
    mica_series_cell cell;
} cells[] = {{"cfc", MICA_CELL_CFC},   {"ltc", MICA_CELL_LTC},     {"gru", MICA_CELL_GRU},
             {"lstm", MICA_CELL_LSTM}, {"ctrnn", MICA_CELL_CTRNN}, {"node", MICA_CELL_NODE},
             {"eltc", MICA_CELL_ELTC}, {"ctgru", MICA_CELL_CTGRU}};

/* clang-format off */
#define AT(field) offsetof(ncp_options, field)
static const cli_option data_rows[] = {
    {"--data", NULL, CLI_PATH, AT(data), .value = "FILES", .required = true,
     .text = "what to train on: CSV, TSV or npy files, separated by commas, or a folder of such files"},
    {"--target", NULL, CLI_TEXT, AT(target), .value = "COLS", .required = true,
     .text = "what to predict: names or numbers of columns (-1 is the last), or all"},
    {"--inputs", NULL, CLI_TEXT, AT(inputs), .value = "COLS", .unset = "all other columns except dates",
     .text = "the input columns of the network"},
    {"--drop", NULL, CLI_TEXT, AT(drop), .value = "COLS", .unset = "none", .text = "columns to leave out"},
    {"--group", NULL, CLI_TEXT, AT(group), .value = "COL", .unset = "a file is one series",
     .text = "rows with the same value in this column are one series"},
    {"--time", NULL, CLI_TEXT, AT(time), .value = "COL", .unset = "rows are one unit of time apart",
     .text = "the column with the time of a row, as numbers or dates"},
    {"--timespan", NULL, CLI_TEXT, AT(span), .value = "COL",
     .text = "instead of --time: the column with the time since the previous row"},
    {"--ahead", NULL, CLI_INT, AT(ahead), 0, 1e6, "N", .unset = "0, or 1 if the network sees nothing but the target",
     .text = "predict the target N rows later"},
    {"--task", NULL, CLI_CHOICE, AT(task), .value = "auto|regression|classification",
     .text = "auto: classification if the target is text or has at most 20 different whole numbers"},
    {"--missing", NULL, CLI_CHOICE, AT(missing), .value = "last|mean|refuse",
     .text = "how to fill a missing input: the last value, the mean, or refuse it with an error"},
    {"--header", NULL, CLI_CHOICE, AT(header), .value = "auto|no|yes",
     .text = "whether the first line has column names"},
    {"--raw", NULL, CLI_FLAG, AT(raw), .text = "do not normalise numbers by mean and standard deviation"},
    {"--valid-data", NULL, CLI_PATH, AT(valid_data), .value = "FILES", .unset = "a part of --data",
     .text = "validation data"},
    {"--test-data", NULL, CLI_PATH, AT(test_data), .value = "FILES", .unset = "a part of --data",
     .text = "test data"},
    {"--split", NULL, CLI_CHOICE, AT(split), .value = "auto|time|seed|whole",
     .text = "how --data is split: the end of each series, random blocks, or whole series (auto: whole series if there "
             "are several)"},
    {"--valid", NULL, CLI_NUMBER, AT(valid), 0, 0.9, "P", .initial = "0.15",
     .text = "fraction of --data for validation"},
    {"--test", NULL, CLI_NUMBER, AT(test), 0, 0.9, "P", .initial = "0.15", .text = "fraction of --data for the test"},
    {.name = NULL},
};
static const cli_option network_rows[] = {
    {"--cell", NULL, CLI_CHOICE, AT(cell), .value = CELLS, .text = "the recurrent cell"},
    {"--units", NULL, CLI_INT, AT(units), 1, 16384, "N", .initial = "32",
     .text = "width of the network, without --wiring"},
    {"--wiring", NULL, CLI_TEXT, AT(wiring), .value = "TEXT", .unset = "fully connected",
     .text = "cfc, ltc, eltc: autoncp:UNITS,OUTPUTS, full:UNITS, random:UNITS,OUTPUTS,SPARSITY or ncp:..., optionally "
             "followed by @SEED"},
    {"--layers", NULL, CLI_INT, AT(layers), 1, 64, "N", .initial = "1", .text = "number of layers"},
    {"--bidirectional", NULL, CLI_FLAG, AT(bidirectional), .text = "add a second network that reads from the end"},
    {"--mixed-memory", NULL, CLI_FLAG, AT(mixed_memory), .text = "cfc, ltc: add an LSTM beside the cell"},
    {"--mode", NULL, CLI_CHOICE, AT(mode), .value = "default|pure|no_gate", .text = "cfc: the form of the cell"},
    {"--convention", NULL, CLI_CHOICE, AT(convention), .value = "torch|keras",
     .text = "cfc, ltc: follow the torch or the keras implementation"},
    {"--backbone-units", NULL, CLI_INT, AT(backbone_units), 1, 65536, "N", .initial = "128",
     .text = "cfc without a wiring: width of the backbone"},
    {"--backbone-layers", NULL, CLI_INT, AT(backbone_layers), 0, 8, "N", .initial = "1",
     .text = "cfc without a wiring: layers of the backbone"},
    {"--activation", NULL, CLI_TEXT, AT(activation), .value = "NAME", .unset = "the cell's",
     .text = "cfc, eltc: tanh, relu, gelu, silu, ..."},
    {"--dropout", NULL, CLI_NUMBER, AT(dropout), 0, 0.9, "P", .initial = "0", .text = "cfc: dropout of the backbone"},
    {"--unfolds", NULL, CLI_INT, AT(unfolds), 1, 1000, "N", .unset = "the cell's",
     .text = "steps of the solver for each row"},
    {"--solver", NULL, CLI_CHOICE, AT(solver), .value = "own|euler|heun|rk4", .text = "ctrnn, node, eltc: the solver"},
    {.name = NULL},
};
static const cli_option training_rows[] = {
    {"--seq", NULL, CLI_INT, AT(seq), 1, 1e6, "N", .initial = "32", .text = "rows per sequence"},
    {"--stride", NULL, CLI_INT, AT(stride), 0, 1e6, "N", .unset = "a quarter of --seq",
     .text = "rows from the start of one training sequence to the next"},
    {"--epochs", NULL, CLI_INT, AT(epochs), 1, 1e6, "N", .initial = "50", .text = "passes over the data"},
    {"--patience", NULL, CLI_INT, AT(patience), 0, 1e6, "N", .initial = "15",
     .text = "early stopping: stop after N epochs without a better validation loss; 0: never"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", .initial = "32", .aliases = "--batch-size",
     .text = "batch size in sequences"},
    {"--lr", NULL, CLI_NUMBER, AT(lr), 0, 10, "X", .initial = "0.005", .aliases = "--learning-rate",
     .text = "peak learning rate"},
    {"--schedule", NULL, CLI_CHOICE, AT(schedule), .value = "cosine|constant|linear", .text = "learning rate schedule"},
    {"--warmup", NULL, CLI_INT, AT(warmup), 0, 1e9, "N", .initial = "0", .text = "warm-up steps of the learning rate"},
    {"--decay", NULL, CLI_NUMBER, AT(decay), 0, 10, "X", .initial = "0", .aliases = "--weight-decay",
     .text = "weight decay"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 1e15, "N", .initial = "1",
     .text = "seed of initial values, batches and --split seed"},
    {"--minutes", NULL, CLI_NUMBER, AT(minutes), 0, 1e6, "M", .initial = "0",
     .text = "stop after M minutes and write the model; 0: no limit"},
    {"--device", NULL, CLI_TEXT, AT(device), .value = "cpu|metal|ref", .unset = "the fastest one available",
     .text = "the device that computes"},
    {"--threads", "-t", CLI_INT, AT(threads), 0, 256, "N", .initial = "0", .text = "CPU threads; 0: all fast cores"},
    {.name = NULL},
};
static const cli_option result_rows[] = {
    {"--out", "-o", CLI_PATH, AT(out), .value = "DIR", .initial = "mica-ncp", .aliases = "--output",
     .text = "the folder for model, checkpoints and report"},
    {"--resume", NULL, CLI_FLAG, AT(resume), .text = "continue from DIR/last.safetensors, with the same options"},
    {"--plan", NULL, CLI_FLAG, AT(plan), .text = "print the plan of a training step and exit"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print the result as JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

const cli_command cli_train_ncp_command = {
    .name = "mica train ncp",
    .summary = "train a liquid network, a GRU or an LSTM on time series",
    .usage = "--data FILES --target COLS [--cell NAME] [--wiring TEXT] [options]",
    .text = "Trains a liquid network (or a GRU or LSTM) on measured sequences. Numbers are normalised by the mean and "
            "standard deviation of the training part; text columns are one-hot encoded; dates are left out. DIR gets "
            "best.safetensors (the model with the lowest validation loss), last.safetensors (to continue from), "
            "run.json, log.csv, loss.svg and wiring.svg. Ctrl-C writes a checkpoint and prints its path.",
    .examples = "mica data irregular -o uneven.csv\n"
                "mica train ncp --data uneven.csv --target speed --time time --epochs 20 -o try\n"
                "mica predict try uneven.csv -o out.csv",
    .groups = (const cli_group[]){{"Data", data_rows, 0},
                                  {"Network", network_rows, 0},
                                  {"Training", training_rows, 0},
                                  {"Optimizer", train_learning_rows, offsetof(ncp_options, learning)},
                                  {"Results", result_rows, 0},
                                  {NULL, NULL, 0}},
    .options_size = sizeof(ncp_options),
    .defaults = &(const ncp_options){.ahead = -1},
    .run = train_ncp_run,
};

static int refuse_options(const char *message) { return cli_fail(CLI_USAGE, "mica train ncp: %s", message); }

/* Refuses options that have no effect with the chosen cell. The sizes of a backbone are
 * accepted with every cell, for scripts that try several cells. */
static int check_cell(const ncp_options *o)
{
    const mica_series_cell cell = cells[o->cell].cell;
    const bool cfc = cell == MICA_CELL_CFC, ltc = cell == MICA_CELL_LTC, eltc = cell == MICA_CELL_ELTC;
    const bool solved = cell == MICA_CELL_CTRNN || cell == MICA_CELL_NODE || eltc, backbone = cfc && !o->wiring;
    const struct {
        bool given, fits;
        const char *message;
    } rules[] = {
        {o->mixed_memory, cfc || ltc, "--mixed-memory needs --cell cfc or ltc"},
        {o->mode != 0, cfc, "--mode needs --cell cfc"},
        {o->convention != 0, cfc || ltc, "--convention needs --cell cfc or ltc"},
        {o->activation != NULL, backbone || eltc, "--activation needs --cell cfc without a wiring, or eltc"},
        {o->dropout > 0, backbone, "--dropout needs --cell cfc without a wiring"},
        {o->unfolds > 0, solved || ltc, "--unfolds needs --cell ltc, ctrnn, node or eltc"},
        {o->solver != 0, solved, "--solver needs --cell ctrnn, node or eltc"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].given && !rules[i].fits) return refuse_options(rules[i].message);
    return CLI_OK;
}

int ncp_check(const ncp_options *o)
{
    mica_activation activation;
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
