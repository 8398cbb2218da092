/* Generated data sets: small, reproducible from a seed, and each with a pattern that a network must learn from earlier
 * rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

static const double PI = 3.14159265358979323846;

typedef struct made_source {
    uint64_t seed, drawn;
    double noise;
} made_source;

static double made_uniform(made_source *m) { return (double)(mica_seed_split(m->seed, m->drawn++) >> 11) * 0x1p-53; }

static double made_normal(made_source *m)
{
    const double u = 1 - made_uniform(m), v = made_uniform(m);
    return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

/* Six decimals are enough and easier to read. */
static double made_round(double value) { return rint(value * 1e6) / 1e6; }

static double made_noisy(made_source *m, double value) { return made_round(value + m->noise * made_normal(m)); }

/* ------------------------------------------------------------------- kinds -- */

static mica_status made_sine(mica_table *t, made_source *m, int64_t rows)
{
    const double phase = 2 * PI * made_uniform(m);
    for (int64_t i = 0; i < rows; i++) {
        const mica_status status = mica__table_grow(t);
        if (status != MICA_OK) return status;
        const double x = phase + 0.1 * (double)i;
        double *row = t->value + i * t->columns;
        row[0] = made_noisy(m, sin(x));
        row[1] = made_noisy(m, cos(x));
        row[2] = made_round(sin(2 * x));
        t->rows++;
    }
    return MICA_OK;
}

static mica_status made_spiral(mica_table *t, made_source *m, int64_t rows)
{
    enum { LENGTH = 64 };
    double angle = 0, turn = 0, radius = 0, growth = 0;
    const uint32_t names[] = {mica__table_keep(t, "left", 4), mica__table_keep(t, "right", 5)};
    if (!names[0] || !names[1]) return MICA_ERR_MEMORY;
    for (int64_t i = 0; i < rows; i++) {
        const mica_status status = mica__table_grow(t);
        if (status != MICA_OK) return status;
        if (i % LENGTH == 0) {
            angle = 2 * PI * made_uniform(m);
            turn = (made_uniform(m) < 0.5 ? -1 : 1) * (0.1 + 0.1 * made_uniform(m));
            radius = 0.2 + 0.3 * made_uniform(m);
            growth = 0.02 * made_uniform(m);
        }
        double *row = t->value + i * t->columns;
        row[0] = (double)(i / LENGTH + 1);
        row[1] = made_noisy(m, radius * cos(angle));
        row[2] = made_noisy(m, radius * sin(angle));
        row[3] = NAN;
        t->text[i * t->columns + 3] = names[turn < 0];
        angle += turn;
        radius += growth;
        t->rows++;
    }
    return MICA_OK;
}

static mica_status made_irregular(mica_table *t, made_source *m, int64_t rows)
{
    const double a = 2 * PI * made_uniform(m), b = 2 * PI * made_uniform(m);
    double time = 0;
    for (int64_t i = 0; i < rows; i++) {
        const mica_status status = mica__table_grow(t);
        if (status != MICA_OK) return status;
        double *row = t->value + i * t->columns;
        row[0] = time;
        row[1] = made_noisy(m, sin(time + a) + 0.5 * sin(2.3 * time + b));
        row[2] = made_round(cos(time + a) + 1.15 * cos(2.3 * time + b));
        time = made_round(time + 0.02 - 0.25 * log(1 - made_uniform(m)));
        t->rows++;
    }
    return MICA_OK;
}

static const struct made_kind {
    const char *path;
    const char *columns[4];
    mica_status (*fill)(mica_table *t, made_source *m, int64_t rows);
} made_kinds[] = {
    [MICA_MADE_SINE] = {"sine", {"sin", "cos", "target"}, made_sine},
    [MICA_MADE_SPIRAL] = {"spiral", {"series", "x", "y", "class"}, made_spiral},
    [MICA_MADE_IRREGULAR] = {"irregular", {"time", "x", "speed"}, made_irregular},
};

static mica_status made_columns(mica_table *t, const struct made_kind *kind)
{
    t->columns = kind->columns[3] ? 4 : 3;
    t->name = calloc((size_t)t->columns, sizeof *t->name);
    t->kind = calloc((size_t)t->columns, sizeof *t->kind);
    if (!t->name || !t->kind) return mica_fail(MICA_ERR_MEMORY, "out of memory: %lld columns", (long long)t->columns);
    for (int64_t i = 0; i < t->columns; i++)
        if (!(t->name[i] = mica__table_keep(t, kind->columns[i], strlen(kind->columns[i])))) return MICA_ERR_MEMORY;
    return MICA_OK;
}

mica_status mica_table_make(mica_made_kind kind, int64_t rows, double noise, uint64_t seed, mica_table **out)
{
    mica_table *t = NULL;
    made_source m = {.seed = seed, .noise = noise};
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "table: out is NULL");
    *out = NULL;
    if ((int)kind < 0 || (size_t)kind >= sizeof made_kinds / sizeof made_kinds[0] || rows < 1 || rows > 100000000 ||
        !(noise >= 0 && noise < 1e6))
        return mica_fail(MICA_ERR_ARGUMENT, "table: kind %d, %lld rows or noise %g is out of range", (int)kind,
                         (long long)rows, noise);
    mica_status status = mica__table_new(made_kinds[kind].path, &t);
    if (status == MICA_OK) status = made_columns(t, &made_kinds[kind]);
    if (status == MICA_OK) status = made_kinds[kind].fill(t, &m, rows);
    for (int64_t i = 0; status == MICA_OK && i < rows; i++) t->line[i] = i + 2;
    if (status == MICA_OK) status = mica__table_finish(t);
    if (status == MICA_OK) *out = t;
    else mica_table_free(t);
    return status;
}
