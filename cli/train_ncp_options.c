/* mica train ncp: its options. */
#include <string.h>

#include "args.h"
#include "cli.h"
#include "train_ncp.h"

#define AT(field) offsetof(ncp_options, field)
static const cli_arg ncp_args[] = {
    {"--data", NULL, CLI_TEXT, AT(data), 0, 0, "FILE",
     "CSV, TSV or npy; a folder: each of its files is a series; needed"},
    {"--target", NULL, CLI_TEXT, AT(target), 0, 0, "COL",
     "column to learn, by name or number; several with commas; all"},
    {"--inputs", NULL, CLI_TEXT, AT(inputs), 0, 0, "COLS", "columns to learn from (all others)"},
    {"--time", NULL, CLI_TEXT, AT(time), 0, 0, "COL", "column of times: rows need not be evenly spaced"},
    {"--ahead", NULL, CLI_INT, AT(ahead), 0, 1e6, "N", "learn the target of N rows later; it is an input then"},
    {"--task", NULL, CLI_CHOICE, AT(task), 0, 0, "auto|regression|classification", "auto: what the target looks like"},
    {"--test-data", NULL, CLI_TEXT, AT(test_data), 0, 0, "FILE", "test with this file or folder, not with a share"},
    {"--split", NULL, CLI_CHOICE, AT(split), 0, 0, "time|seed|files", "what comes last, drawn pieces, or whole files"},
    {"--valid", NULL, CLI_NUMBER, AT(valid), 0.01, 0.8, "P", "share to validate with (0.15)"},
    {"--test", NULL, CLI_NUMBER, AT(test), 0.01, 0.8, "P", "share to test with (0.15)"},
    {"--cell", NULL, CLI_CHOICE, AT(cell), 0, 0, NCP_CELLS, "what the network is made of"},
    {"--wiring", NULL, CLI_TEXT, AT(wiring), 0, 0, "TEXT",
     "autoncp:UNITS,OUTPUTS[,SPARSITY], ncp:..., random:..., full:..., none; @SEED behind it (cfc, ltc: autoncp)"},
    {"--units", NULL, CLI_INT, AT(units), 1, 16384, "N", "neurons, where no wiring says (32)"},
    {"--layers", NULL, CLI_INT, AT(layers), 1, 64, "N", "networks one on top of the other (1)"},
    {"--bidirectional", NULL, CLI_FLAG, AT(bidirectional), 0, 0, NULL, "a second network from the end"},
    {"--mixed-memory", NULL, CLI_FLAG, AT(mixed_memory), 0, 0, NULL, "an LSTM beside the cell (cfc, ltc)"},
    {"--unfolds", NULL, CLI_INT, AT(unfolds), 1, 1000, "N", "steps of the solver in a step (ltc, ctrnn, node, eltc)"},
    {"--mode", NULL, CLI_CHOICE, AT(mode), 0, 0, "default|pure|no_gate", "of a cfc"},
    {"--convention", NULL, CLI_CHOICE, AT(convention), 0, 0, "torch|keras", "whose cfc"},
    {"--backbone-units", NULL, CLI_INT, AT(backbone_units), 1, 65536, "N", "of a cfc without a wiring (128)"},
    {"--backbone-layers", NULL, CLI_INT, AT(backbone_layers), 0, 8, "N", "of a cfc without a wiring (1)"},
    {"--dropout", NULL, CLI_NUMBER, AT(dropout), 0, 0.9, "P", "of that backbone"},
    {"--seq", NULL, CLI_INT, AT(seq), 1, 1e6, "N", "rows of a sequence (32)"},
    {"--stride", NULL, CLI_INT, AT(stride), 1, 1e6, "N",
     "rows from one training sequence to the next (a quarter of --seq)"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", "sequences of a step (32)"},
    {"--epochs", NULL, CLI_INT, AT(epochs), 1, 1e6, "N", "times over the training part (20)"},
    {"--patience", NULL, CLI_INT, AT(patience), 0, 1e6, "N", "stop after N epochs that validate no better; 0: never"},
    {"--optimiser", NULL, CLI_CHOICE, AT(optimiser), 0, 0, "adam|adamw|lion|sgd", "how parameters are moved"},
    {"--lr", NULL, CLI_NUMBER, AT(lr), 0, 10, "X", "learning rate (0.005)"},
    {"--schedule", NULL, CLI_CHOICE, AT(schedule), 0, 0, "constant|cosine|linear", "of the learning rate"},
    {"--warmup", NULL, CLI_INT, AT(warmup), 0, 1e9, "N", "steps until it is reached"},
    {"--decay", NULL, CLI_NUMBER, AT(decay), 0, 10, "X", "weight decay"},
    {"--clip", NULL, CLI_NUMBER, AT(clip), 0, 1e9, "X", "most norm of the gradients (1); 0: any"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 1e15, "N", "of first values, batches and --split seed"},
    {"--threads", NULL, CLI_INT, AT(threads), 0, 256, "N", "threads; 0: all fast cores"},
    {"--minutes", NULL, CLI_NUMBER, AT(minutes), 0, 1e6, "M", "stop then, with a model"},
    {"--out", NULL, CLI_TEXT, AT(out), 0, 0, "DIR", "where everything goes (mica-ncp)"},
    {"--resume", NULL, CLI_FLAG, AT(resume), 0, 0, NULL, "go on from DIR/last.safetensors, with the same options"},
    {"--plan", NULL, CLI_FLAG, AT(plan), 0, 0, NULL, "print the plan of a step and do nothing"},
    {"--json", NULL, CLI_FLAG, AT(json), 0, 0, NULL, "print the result as JSON"},
};

static const cli_args train_ncp_args = {
    .command = "mica train ncp",
    .usage = "--data FILE --target COL [--cell NAME] [--wiring TEXT] ...",
    .text =
        "Trains a liquid network, or a GRU or LSTM, on time series. Columns of numbers are scaled by mean and\n"
        "deviation of the training part; text with up to 32 values becomes that many inputs; dates and other texts\n"
        "are left out; missing values take the one of the row before. DIR gets best.safetensors (for mica predict,\n"
        "and under the names of ncps), last.safetensors (to go on from), run.json, log.csv, loss.svg, wiring.svg.\n\n"
        "  mica data irregular -o series.csv\n"
        "  mica train ncp --data series.csv --target y --time t --cell cfc --wiring autoncp:16,1 --epochs 10 --out "
        "try\n"
        "  mica predict try series.csv -o out.csv\n"
        "  mica train ncp --data series.csv --target y --time t --cell gru --units 16 --epochs 10 --out try-gru\n"
        "  mica ncp draw --wiring autoncp:16,1 --inputs 1 -o wiring.svg",
    .args = ncp_args,
    .n_args = sizeof ncp_args / sizeof ncp_args[0],
};

static int refuse_options(const char *sentence)
{
    fprintf(stderr, "mica train ncp: %s\n", sentence);
    return CLI_USAGE;
}

int ncp_parse(int argc, char **argv, ncp_options *o)
{
    const char *places[CLI_MAX_PLACES];
    size_t n;
    *o = (ncp_options){.out = "mica-ncp",
                       .units = 32,
                       .layers = 1,
                       .backbone_units = 128,
                       .backbone_layers = 1,
                       .seq = 32,
                       .batch = 32,
                       .epochs = 20,
                       .lr = 0.005,
                       .clip = 1,
                       .valid = 0.15,
                       .test = 0.15,
                       .seed = 1};
    const int code = cli_parse(&train_ncp_args, argc, argv, o, places, &n);
    if (code != CLI_OK) return code;
    if (!o->data) return refuse_options("--data FILE says what to train on; --help lists the rest");
    if (!o->target) return refuse_options("--target COL says what to learn; --help lists the rest");
    if (o->wiring && strlen(o->wiring) >= NCP_WIRING) return refuse_options("--wiring is too long");
    if (strlen(o->out) > TRAIN_PATH - 64) return refuse_options("--out is too long");
    if (!o->test_data && o->valid + o->test > 0.9)
        return refuse_options("--valid and --test leave too little to train on");
    if (o->stride == 0) o->stride = o->seq / 4 > 1 ? o->seq / 4 : 1;
    return CLI_OK;
}
