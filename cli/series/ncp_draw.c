/* mica ncp draw: draws a wiring as SVG and prints its figures. */
#include <mica_liquid.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli.h"
#include "core/json.h"
#include "series/ncp.h"

typedef struct draw_options {
    const char *wiring, *out;
    int64_t units, outputs, inputs, seed;
    double sparsity;
    bool json;
} draw_options;

/* clang-format off */
#define AT(field) offsetof(draw_options, field)
static const cli_option draw_rows[] = {
    {"--wiring", NULL, CLI_TEXT, AT(wiring), .value = "TEXT", .unset = "an auto NCP by the options below",
     .text = "autoncp:UNITS,OUTPUTS[,SPARSITY], ncp:..., random:... or full:..., optionally followed by @SEED"},
    {"--units", NULL, CLI_INT, AT(units), 1, 16384, "N", .unset = "32", .text = "neurons of an auto NCP"},
    {"--output-size", NULL, CLI_INT, AT(outputs), 1, 16384, "N", .unset = "4",
     .text = "motor neurons (outputs) of an auto NCP"},
    {"--sparsity", NULL, CLI_NUMBER, AT(sparsity), 0, 1, "P", .unset = "0.5",
     .text = "fraction of possible synapses that are left out"},
    {"--inputs", NULL, CLI_INT, AT(inputs), 1, 16384, "N", .initial = "8", .text = "number of inputs"},
    {"--seed", NULL, CLI_INT, AT(seed), 0, 4294967295.0, "N", .unset = "22222", .text = "seed of the synapses"},
    {"--out", "-o", CLI_PATH, AT(out), .value = "FILE", .unset = "no drawing", .text = "write a drawing as SVG"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print the figures as JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_draw(const cli_call *call);

static const cli_command draw_command = {
    .name = "mica ncp draw",
    .summary = "draw the wiring of a liquid network and print its figures",
    .usage = "[--units N --output-size N --sparsity P | --wiring TEXT] [-o FILE]",
    .text = "The drawing has a column for each layer, excitatory synapses in blue and inhibitory synapses in red.",
    .groups = (const cli_group[]){{"Options", draw_rows, 0}, {NULL, NULL, 0}},
    .options_size = sizeof(draw_options),
    .defaults = &(const draw_options){.units = -1, .outputs = -1, .seed = -1, .sparsity = -1},
    .run = run_draw,
};

const cli_command cli_ncp_command = {
    .name = "mica ncp",
    .summary = "describe liquid networks: wirings and sizes",
    .usage = "draw|advise [options]",
    .text = "'mica train ncp' trains a liquid network.",
    .subcommands = (const cli_command *const[]){&draw_command, &cli_ncp_advise_command, NULL},
};

static int draw_failed(void) { return cli_fail(CLI_USAGE, "mica ncp draw: %s", mica_last_error()); }

static mica_status open_drawn(const draw_options *o, mica_wiring **w)
{
    mica_wiring_options options;
    if (o->wiring) return mica_wiring_parse(o->wiring, o->inputs, w);
    mica_wiring_options_init(&options, MICA_WIRING_AUTO_NCP);
    options.units = o->units, options.outputs = o->outputs, options.inputs = o->inputs;
    options.sparsity = o->sparsity, options.seed = (uint64_t)o->seed;
    return mica_wiring_new(&options, w);
}

static void print_svg_text(FILE *to, const void *text) { fputs(text, to); }

static int write_picture(const mica_wiring *w, const char *path)
{
    const size_t n = mica_wiring_svg(w, NULL, 0) + 1;
    char *text = malloc(n);
    if (!text) return cli_no_memory("mica ncp draw");
    const bool drawn = mica_wiring_svg(w, text, n) > 0;
    if (!drawn) fprintf(stderr, "mica ncp draw: %s\n", mica_last_error());
    const bool good = drawn && cli_write_whole("mica ncp draw", path, print_svg_text, text);
    free(text);
    return good ? CLI_OK : CLI_FAILED;
}

static void print_figures(const mica_wiring *w, const mica_wiring_stats *t, bool json)
{
    const mica_wiring_options *o = mica_wiring_get(w);
    const struct {
        const char *key;
        double value;
    } figures[] = {{"units", (double)o->units},
                   {"inputs", (double)o->inputs},
                   {"outputs", (double)o->outputs},
                   {"synapses", (double)t->synapses},
                   {"sensory_synapses", (double)t->sensory},
                   {"excitatory", (double)t->excitatory},
                   {"inhibitory", (double)t->inhibitory},
                   {"sparsity", t->sparsity},
                   {"sensory_sparsity", t->sensory_sparsity},
                   {"mean_degree", t->mean_degree},
                   {"max_in_degree", (double)t->max_in},
                   {"max_out_degree", (double)t->max_out},
                   {"components", (double)t->components},
                   {"largest_component", (double)t->largest},
                   {"mean_path", t->mean_path}};
    cli_json j = {.to = stdout};
    if (json) cli_json_object(&j, NULL, CLI_JSON_LINES);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (json) cli_json_number(&j, figures[i].key, figures[i].value);
        else printf("%-18s %.6g\n", figures[i].key, figures[i].value);
    }
    if (json) cli_json_end(&j);
}

static int run_draw(const cli_call *call)
{
    draw_options *o = call->options;
    mica_wiring *w;
    mica_wiring_stats stats = {.struct_size = sizeof stats};
    if (o->wiring && (o->units >= 0 || o->outputs >= 0 || o->seed >= 0 || o->sparsity >= 0))
        return cli_fail(CLI_USAGE, "mica ncp draw: --wiring replaces --units, --output-size, --sparsity and --seed");
    if (o->units < 0) o->units = 32;
    if (o->outputs < 0) o->outputs = 4;
    if (o->seed < 0) o->seed = 22222;
    if (o->sparsity < 0) o->sparsity = 0.5;
    if (open_drawn(o, &w) != MICA_OK) return draw_failed();
    int code = CLI_OK;
    if (mica_wiring_measure(w, &stats) != MICA_OK) code = draw_failed(), code = CLI_FAILED;
    if (code == CLI_OK && o->out) code = write_picture(w, o->out);
    if (code == CLI_OK) print_figures(w, &stats, o->json);
    mica_wiring_free(w);
    return code;
}
