/* mica ncp draw: a wiring as a picture, and its figures. */
#include <mica_liquid.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "ncp.h"

typedef struct draw_options {
    const char *wiring, *out;
    int64_t units, outputs, inputs, seed;
    double sparsity;
    bool json;
} draw_options;

static const cli_arg draw_args[] = {
    {"--wiring", NULL, CLI_TEXT, offsetof(draw_options, wiring), 0, 0, "TEXT",
     "autoncp:UNITS,OUTPUTS[,SPARSITY], ncp:..., random:..., full:...; @SEED behind it"},
    {"--units", NULL, CLI_INT, offsetof(draw_options, units), 1, 16384, "N", "neurons of an auto NCP (32)"},
    {"--output-size", NULL, CLI_INT, offsetof(draw_options, outputs), 1, 16384, "N", "its motor neurons (4)"},
    {"--sparsity", NULL, CLI_NUMBER, offsetof(draw_options, sparsity), 0, 1, "P", "share of synapses left out (0.5)"},
    {"--inputs", NULL, CLI_INT, offsetof(draw_options, inputs), 1, 16384, "N", "inputs (8)"},
    {"--seed", NULL, CLI_INT, offsetof(draw_options, seed), 0, 4294967295.0, "N", "of the synapses (22222)"},
    {"--out", "-o", CLI_TEXT, offsetof(draw_options, out), 0, 0, "FILE", "the picture, as SVG"},
    {"--json", NULL, CLI_FLAG, offsetof(draw_options, json), 0, 0, NULL, "print the figures as JSON"},
};

static const cli_args draw_command = {
    .command = "mica ncp draw",
    .usage = "[--units N --output-size N --sparsity P | --wiring TEXT] [-o FILE]",
    .text = "The wiring of a liquid network: a picture with its layers in columns, excitatory synapses in blue and\n"
            "inhibitory ones in red; and its figures.",
    .args = draw_args,
    .n_args = sizeof draw_args / sizeof draw_args[0],
};

static int draw_failed(void)
{
    fprintf(stderr, "mica ncp draw: %s\n", mica_last_error());
    return CLI_USAGE;
}

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
    const bool drawn = text && mica_wiring_svg(w, text, n) > 0;
    if (!drawn) fprintf(stderr, "mica ncp draw: %s\n", text ? mica_last_error() : "out of memory");
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
    cli_json j = {stdout, false};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (json) cli_json_number(&j, figures[i].key, figures[i].value);
        else printf("%-18s %.6g\n", figures[i].key, figures[i].value);
    }
    if (json) printf("\n}\n");
}

static int draw(int argc, char **argv)
{
    draw_options o = {.units = 32, .outputs = 4, .inputs = 8, .seed = 22222, .sparsity = 0.5};
    const char *places[CLI_MAX_PLACES];
    size_t n;
    mica_wiring *w;
    mica_wiring_stats stats = {.struct_size = sizeof stats};
    int code = cli_parse(&draw_command, argc, argv, &o, places, &n);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    const bool sized = o.units != 32 || o.outputs != 4 || o.seed != 22222 || o.sparsity != 0.5;
    if (o.wiring && sized) {
        fprintf(stderr, "mica ncp draw: --wiring says all that --units, --output-size, --sparsity and --seed say\n");
        return CLI_USAGE;
    }
    if (open_drawn(&o, &w) != MICA_OK) return draw_failed();
    if (mica_wiring_measure(w, &stats) != MICA_OK) code = draw_failed(), code = CLI_FAILED;
    if (code == CLI_OK && o.out) code = write_picture(w, o.out);
    if (code == CLI_OK) print_figures(w, &stats, o.json);
    mica_wiring_free(w);
    return code;
}

int cli_ncp(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf(
            "mica ncp draw [--units N ... | --wiring TEXT] [-o FILE]  the wiring of a liquid network: picture and "
            "figures\n"
            "mica ncp advise [--units N ...] [--chip NAME]            sizes that leave vectors and tiles unfilled\n\n"
            "Each lists its options with --help. mica train ncp trains such a network.\n");
        return CLI_OK;
    }
    if (argc > 1 && strcmp(argv[1], "draw") == 0) return draw(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "advise") == 0) return ncp_advise(argc - 1, argv + 1);
    fprintf(stderr, "mica ncp: %s; there are 'mica ncp draw --help' and 'mica ncp advise --help'\n",
            argc > 1 ? "that is not known" : "what is to be done?");
    return CLI_USAGE;
}
