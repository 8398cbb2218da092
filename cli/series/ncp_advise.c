/* mica ncp advise: reports sizes of a liquid network that are not powers of two, and the
 * usual sizes on a chip. */
#include <mica_liquid.h>
#include <strings.h>

#include "core/cli.h"
#include "core/json.h"
#include "series/ncp.h"

typedef struct advise_options {
    const char *chip;
    int64_t units, backbone_units, batch;
    bool json;
} advise_options;

/* clang-format off */
#define AT(field) offsetof(advise_options, field)
static const cli_option advise_rows[] = {
    {"--units", NULL, CLI_INT, AT(units), 1, 16384, "N", .initial = "32", .text = "width of the network"},
    {"--backbone-units", NULL, CLI_INT, AT(backbone_units), 1, 65536, "N", .initial = "128",
     .text = "width of the backbone of a CfC"},
    {"--batch", NULL, CLI_INT, AT(batch), 1, 65536, "N", .initial = "32", .aliases = "--batch-size",
     .text = "batch size: sequences at once"},
    {"--chip", NULL, CLI_TEXT, AT(chip), .value = "NAME", .unset = "M1", .text = "M1, M1 Pro, M1 Max or M1 Ultra"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_advise(const cli_call *call);

const cli_command cli_ncp_advise_command = {
    .name = "mica ncp advise",
    .summary = "report sizes that leave vectors and tiles partly empty, and the usual sizes on a chip",
    .usage = "[--units N --backbone-units N --batch N] [--chip NAME]",
    .text = "The usual sizes are those of ncps for MLX, with the minimum speed that its authors expect; they were not "
            "measured here.",
    .groups = (const cli_group[]){{"Options", advise_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(advise_options),
    .run = run_advise,
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
    cli_json j = {.to = stdout};
    if (json) {
        cli_json_object(&j, NULL, CLI_JSON_LINES);
        cli_json_text(&j, "advice", advice);
        cli_json_text(&j, "chip", p->device);
    } else printf("%s%-20s %s\n", advice, "chip", p->device);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (json) cli_json_number(&j, numbers[i].key, numbers[i].value);
        else printf("%-20s %g\n", numbers[i].key, numbers[i].value);
    }
    if (json) cli_json_end(&j);
}

/* Accepts "Apple M1 Pro" and "m1 pro" for the device "Apple M1 Pro". */
static bool is_chip(const char *name, const char *device)
{
    static const char maker[] = "Apple ";
    if (strncasecmp(name, maker, sizeof maker - 1) == 0) name += sizeof maker - 1;
    return strcasecmp(name, device) == 0;
}

static int run_advise(const cli_call *call)
{
    const advise_options *o = call->options;
    char advice[512];
    mica_liquid net;
    mica_liquid_init(&net, MICA_LIQUID_CFC);
    net.units = o->units, net.backbone_units = o->backbone_units;
    (void)mica_liquid_advice(&net, o->batch, advice, sizeof advice);
    const mica_liquid_preset *preset = mica_liquid_preset_for(o->chip);
    if (o->chip && !is_chip(o->chip, preset->device))
        fprintf(stderr, "mica ncp advise: there are no figures for '%s'; printing those of the %s\n", o->chip,
                preset->device);
    print_preset(preset, advice, o->json);
    return CLI_OK;
}
