/* mica data: small series to try things with, made from a seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "ncp_data.h"

typedef struct data_options {
    const char *out;
    int64_t rows, seed;
    double noise;
} data_options;

typedef struct data_maker {
    const data_options *o;
    uint64_t stream;
    FILE *to;
} data_maker;

static double uniform(data_maker *m) { return (double)ncp_random_below(&m->stream, 1u << 30) / (double)(1u << 30); }

static double noise(data_maker *m)
{
    const double radius = sqrt(-2 * log(1 - uniform(m)));
    return m->o->noise * radius * cos(2 * acos(-1.0) * uniform(m));
}

/* Two waves in; one of twice the frequency out. */
static void make_sine(data_maker *m)
{
    fprintf(m->to, "sin,cos,y\n");
    for (int64_t i = 0; i < m->o->rows; i++) {
        const double t = 0.1 * (double)i;
        fprintf(m->to, "%.6g,%.6g,%.6g\n", sin(t) + noise(m), cos(t) + noise(m), sin(2 * t));
    }
}

/* A point runs along a spiral, now one way round, now the other: which? */
static void make_spiral(data_maker *m)
{
    double angle = 0, radius = 0.2;
    int way = 1;
    int64_t left = 0;
    fprintf(m->to, "x,y,way\n");
    for (int64_t i = 0; i < m->o->rows; i++) {
        if (left-- == 0) {
            left = 20 + (int64_t)ncp_random_below(&m->stream, 60);
            way = ncp_random_below(&m->stream, 2) ? 1 : -1;
        }
        angle += 0.2 * way;
        radius = radius > 1.2 ? 0.2 : radius + 0.004;
        fprintf(m->to, "%.6g,%.6g,%s\n", radius * cos(angle) + noise(m), radius * sin(angle) + noise(m),
                way > 0 ? "left" : "right");
    }
}

/* A signal seen at times that are not evenly spaced, and its mean over the last second. */
static void make_irregular(data_maker *m)
{
    double t = 0, mean = 0;
    fprintf(m->to, "t,x,y\n");
    for (int64_t i = 0; i < m->o->rows; i++) {
        const double step = uniform(m) < 0.2 ? 0.5 + uniform(m) : 0.05 + 0.1 * uniform(m);
        t += step;
        const double x = sin(t) + 0.5 * sin(3.1 * t);
        mean += (1 - exp(-step)) * (x - mean);
        fprintf(m->to, "%.6g,%.6g,%.6g\n", t, x + noise(m), mean);
    }
}

static const struct {
    const char *name;
    void (*make)(data_maker *m);
} kinds[] = {{"sine", make_sine}, {"spiral", make_spiral}, {"irregular", make_irregular}};

static const cli_arg data_args[] = {
    {"--out", "-o", CLI_TEXT, offsetof(data_options, out), 0, 0, "FILE", "where it goes (stdout)"},
    {"--rows", "-n", CLI_INT, offsetof(data_options, rows), 1, 1e8, "N", "rows (4000)"},
    {"--seed", NULL, CLI_INT, offsetof(data_options, seed), 0, 1e15, "N", "the same seed, the same file"},
    {"--noise", NULL, CLI_NUMBER, offsetof(data_options, noise), 0, 100, "X", "deviation of what is added to inputs"},
};

static const cli_args data_command = {
    .command = "mica data",
    .usage = "sine|spiral|irregular [-o FILE]",
    .text = "A small series as CSV, to try `mica train ncp` with:\n"
            "  sine       sin, cos, y = sin of twice the time\n"
            "  spiral     x, y of a point on a spiral, and which way round it goes: classes\n"
            "  irregular  t, x, y = a running mean over uneven times; train with --time t",
    .args = data_args,
    .n_args = sizeof data_args / sizeof data_args[0],
    .least_places = 1,
    .most_places = 1,
};

typedef struct data_file {
    const data_options *o;
    size_t kind;
} data_file;

static void print_data(FILE *to, const void *file)
{
    const data_file *f = file;
    data_maker m = {f->o, (uint64_t)f->o->seed, to};
    kinds[f->kind].make(&m);
}

int cli_data(int argc, char **argv)
{
    data_options o = {.rows = 4000, .seed = 1, .noise = 0.01};
    const char *places[CLI_MAX_PLACES];
    size_t n;
    const int code = cli_parse(&data_command, argc, argv, &o, places, &n);
    if (code != CLI_OK) return code == CLI_HELP_SHOWN ? CLI_OK : code;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(places[0], kinds[i].name) != 0) continue;
        const data_file file = {&o, i};
        if (o.out) return cli_write_whole("mica data", o.out, print_data, &file) ? CLI_OK : CLI_FAILED;
        return print_data(stdout, &file), CLI_OK;
    }
    fprintf(stderr, "mica data: there is no '%s'; there are sine, spiral and irregular\n", places[0]);
    return CLI_USAGE;
}
