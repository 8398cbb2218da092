/* mica ncp advise: sizes of a liquid network that are no powers of two, and what is usual
 * on a chip. */
#include <mica_liquid.h>
#include <strings.h>

#include "core/args.h"
#include "core/cli.h"
#include "series/ncp.h"

typedef struct advise_options {
    const char *chip;
    int64_t units, backbone_units, batch;
    bool json;
} advise_options;

static const cli_arg advise_args[] = {
    {"--units", NULL, CLI_INT, offsetof(advise_options, units), 1, 16384, "N", "of the network (32)"},
    {"--backbone-units", NULL, CLI_INT, offsetof(advise_options, backbone_units), 1, 65536, "N", "of a CfC (128)"},
    {"--batch", NULL, CLI_INT, offsetof(advise_options, batch), 1, 65536, "N", "sequences at a time (32)"},
    {"--chip", NULL, CLI_TEXT, offsetof(advise_options, chip), 0, 0, "NAME", "M1, M1 Pro, M1 Max, M1 Ultra (M1)"},
    {"--json", NULL, CLI_FLAG, offsetof(advise_options, json), 0, 0, NULL, "print it as JSON"},
};

static const cli_args advise_command = {
    .command = "mica ncp advise",
    .usage = "[--units N --backbone-units N --batch N] [--chip NAME]",
    .text =
        "Sizes that leave vectors and tiles unfilled, and the sizes that are usual on a chip: those of the ncps for\n"
        "MLX, with the least speed that its authors expect; not measured here.",
    .args = advise_args,
    .n_args = sizeof advise_args / sizeof advise_args[0],
};

static void print_preset(const mica_liquid_preset *p, const char *advice, bool json)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"batch_from", (double)p->batch[0]},       {"batch_to", (double)p->batch[1]},
                   {"units_from", (double)p->units[0]},       {"units_to", (double)p->units[1]},
                   {"backbone_from", (double)p->backbone[0]}, {"backbone_to", (double)p->backbone[1]},
                   {"memory_mb", (double)p->memory_mb},       {"least_tflops", p->tflops},
                   {"least_gb_per_second", p->gb_per_second}};
    cli_json j = {stdout, false};
    if (json) cli_json_text(&j, "advice", advice), cli_json_text(&j, "chip", p->device);
    else printf("%s%-20s %s\n", advice, "chip", p->device);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (json) cli_json_number(&j, numbers[i].key, numbers[i].value);
        else printf("%-20s %g\n", numbers[i].key, numbers[i].value);
    }
    if (json) printf("\n}\n");
}

/* "Apple M1 Pro", "m1 pro". */
static bool is_chip(const char *name, const char *device)
{
    static const char maker[] = "Apple ";
    if (strncasecmp(name, maker, sizeof maker - 1) == 0) name += sizeof maker - 1;
    return strcasecmp(name, device) == 0;
}

int ncp_advise(int argc, char **argv)
{
    advise_options o = {.units = 32, .backbone_units = 128, .batch = 32};
    const char *places[CLI_MAX_PLACES];
    char advice[512];
    size_t n;
    mica_liquid net;
    const int code = cli_parse(&advise_command, argc, argv, &o, places, &n);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    mica_liquid_init(&net, MICA_LIQUID_CFC);
    net.units = o.units, net.backbone_units = o.backbone_units;
    (void)mica_liquid_advice(&net, o.batch, advice, sizeof advice);
    const mica_liquid_preset *preset = mica_liquid_preset_for(o.chip);
    if (o.chip && !is_chip(o.chip, preset->device))
        fprintf(stderr, "mica ncp advise: there are no figures for '%s'; these are the %s's\n", o.chip, preset->device);
    print_preset(preset, advice, o.json);
    return CLI_OK;
}
