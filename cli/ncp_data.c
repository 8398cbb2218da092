/* Cutting series into parts and windows. Each part is made of whole pieces, and a window
 * lies in one piece, so that nothing of a validation or test row is trained on. */
#include "ncp_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "model.h"

uint64_t ncp_random_below(uint64_t *stream, uint64_t n)
{
    *stream += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = *stream;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % n;
}

typedef struct piece {
    size_t file;
    int64_t start, rows;
    int part;
} piece;

typedef struct pieces {
    piece *list;
    size_t n;
} pieces;

static bool add_piece(pieces *p, size_t file, int64_t start, int64_t rows, int part)
{
    piece *more = rows > 0 ? realloc(p->list, (p->n + 1) * sizeof *more) : p->list;
    if (rows <= 0) return true;
    if (!more) return false;
    p->list = more;
    more[p->n++] = (piece){file, start, rows, part};
    return true;
}

/* Which part the thing number i of n belongs to, in order: training, validation, test. */
static int part_of(int64_t i, int64_t n, const ncp_split *c, double test)
{
    const double at = ((double)i + 0.5) / (double)n;
    return at < 1 - c->valid - test ? NCP_TRAIN : at < 1 - test ? NCP_VALID : NCP_TEST;
}

static bool cut_by_time(pieces *p, const series_table *t, int64_t ahead, const ncp_split *c, double test)
{
    bool good = true;
    for (size_t f = 0; f < t->files && good; f++) {
        const int64_t rows = t->file[f].rows - ahead;
        const int64_t train = (int64_t)((double)rows * (1 - c->valid - test));
        const int64_t valid = (int64_t)((double)rows * (1 - test)) - train;
        good = add_piece(p, f, 0, train, NCP_TRAIN) && add_piece(p, f, train, valid, NCP_VALID) &&
               add_piece(p, f, train + valid, test > 0 ? rows - train - valid : 0, NCP_TEST);
    }
    return good;
}

static bool cut_by_file(pieces *p, const series_table *t, int64_t ahead, const ncp_split *c, double test)
{
    bool good = true;
    for (size_t f = 0; f < t->files && good; f++)
        good = add_piece(p, f, 0, t->file[f].rows - ahead, part_of((int64_t)f, (int64_t)t->files, c, test));
    return good;
}

/* Blocks of four windows, in an order that the seed shuffles. */
static bool cut_by_seed(pieces *p, const series_table *t, int64_t ahead, const ncp_split *c, double test)
{
    uint64_t stream = (uint64_t)c->seed;
    const int64_t block = 4 * c->seq;
    for (size_t f = 0; f < t->files; f++)
        for (int64_t at = 0, rows = t->file[f].rows - ahead; at < rows; at += block)
            if (!add_piece(p, f, at, rows - at < block ? rows - at : block, 0)) return false;
    for (size_t i = p->n; i > 1; i--) {
        const size_t j = (size_t)ncp_random_below(&stream, i);
        const piece other = p->list[j];
        p->list[j] = p->list[i - 1];
        p->list[i - 1] = other;
    }
    for (size_t i = 0; i < p->n; i++) p->list[i].part = part_of((int64_t)i, (int64_t)p->n, c, test);
    return true;
}

/* Windows of a piece; those that are only looked at do not overlap. */
static bool cut_windows(ncp_windows *w, const piece *p, int64_t seq, int64_t stride)
{
    for (int64_t at = 0; at + seq <= p->rows; at += stride) {
        if (w->n == w->room) {
            const size_t room = w->room ? 2 * w->room : 256;
            ncp_window *more = realloc(w->list, room * sizeof *more);
            if (!more) return false;
            w->list = more;
            w->room = room;
        }
        w->list[w->n++] = (ncp_window){p->file, p->start + at};
    }
    return true;
}

static int check_parts(const ncp_data *d, const char *command, const char *path, const ncp_split *c)
{
    static const char *const names[] = {"training", "validation", "test"};
    for (int k = 0; k < NCP_PARTS; k++) {
        if (d->part[k].n > 0) continue;
        fprintf(stderr, "%s: '%s' has %lld rows: no sequence of --seq %lld rows fits into the %s part\n", command, path,
                (long long)d->rows, (long long)c->seq, names[k]);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int read_numbers(ncp_data *d, const series_table *t, size_t first)
{
    for (size_t f = 0; f < t->files; f++) {
        const int code = series_numbers(&d->recipe, t, f, true, &d->file[first + f]);
        if (code != CLI_OK) return code;
        d->rows += d->file[first + f].rows;
        d->filled += d->file[first + f].filled;
    }
    return CLI_OK;
}

/* Which rows the training part has, for means and deviations. */
static bool *training_rows(const series_table *t, const pieces *p)
{
    int64_t rows = 0;
    for (size_t f = 0; f < t->files; f++) rows += t->file[f].rows;
    bool *is = calloc((size_t)rows, sizeof *is);
    for (size_t i = 0; is && i < p->n; i++) {
        int64_t before = 0;
        for (size_t f = 0; f < p->list[i].file; f++) before += t->file[f].rows;
        if (p->list[i].part == NCP_TRAIN)
            memset(is + before + p->list[i].start, 1, (size_t)p->list[i].rows * sizeof *is);
    }
    return is;
}

static int cut_and_measure(ncp_data *d, const char *command, const char *path, const ncp_split *c)
{
    static bool (*const cut[])(pieces *, const series_table *, int64_t, const ncp_split *,
                               double) = {cut_by_time, cut_by_seed, cut_by_file};
    pieces p = {0};
    const int64_t ahead = d->recipe.ahead;
    bool good = cut[c->how](&p, &d->table, ahead, c, d->test_table.files ? 0 : c->test);
    bool *training = good ? training_rows(&d->table, &p) : NULL;
    int code = training ? series_measure(&d->recipe, &d->table, training) : CLI_FAILED;
    d->files = d->table.files + d->test_table.files;
    if (code == CLI_OK && !(d->file = calloc(d->files, sizeof *d->file))) good = false, code = CLI_FAILED;
    if (code == CLI_OK) code = read_numbers(d, &d->table, 0);
    if (code == CLI_OK) code = read_numbers(d, &d->test_table, d->table.files);
    for (size_t f = 0; f < d->test_table.files && good; f++)
        good = add_piece(&p, d->table.files + f, 0, d->test_table.file[f].rows - ahead, NCP_TEST);
    for (size_t i = 0; i < p.n && good && code == CLI_OK; i++)
        good =
            cut_windows(&d->part[p.list[i].part], &p.list[i], c->seq, p.list[i].part == NCP_TRAIN ? c->stride : c->seq);
    free(training);
    free(p.list);
    if (!good || (code == CLI_FAILED && !training)) return fprintf(stderr, "%s: no memory\n", command), CLI_FAILED;
    return code == CLI_OK ? check_parts(d, command, path, c) : code;
}

int ncp_data_open(ncp_data *d, const char *command, const char *path, const char *test, const series_wish *wish,
                  const ncp_split *split)
{
    *d = (ncp_data){0};
    int code = series_open(&d->table, command, path);
    if (code == CLI_OK && test) code = series_open(&d->test_table, command, test);
    if (code == CLI_OK) code = series_plan(&d->recipe, &d->table, wish, d->left_out, sizeof d->left_out);
    return code == CLI_OK ? cut_and_measure(d, command, path, split) : code;
}

void ncp_data_close(ncp_data *d)
{
    for (size_t i = 0; d->file && i < d->files; i++) series_data_free(&d->file[i]);
    for (int k = 0; k < NCP_PARTS; k++) free(d->part[k].list);
    free(d->file);
    series_recipe_free(&d->recipe);
    series_close(&d->table);
    series_close(&d->test_table);
    *d = (ncp_data){0};
}

uint64_t ncp_data_hash(const ncp_data *d)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < d->files; i++) {
        const series_data *f = &d->file[i];
        const size_t rows = (size_t)f->rows;
        hash = 31 * hash + cli_hash(f->x, rows * d->recipe.inputs * sizeof *f->x);
        if (f->y) hash = 31 * hash + cli_hash(f->y, rows * d->recipe.targets * sizeof *f->y);
        if (f->label) hash = 31 * hash + cli_hash(f->label, rows * sizeof *f->label);
        if (f->span) hash = 31 * hash + cli_hash(f->span, rows * sizeof *f->span);
    }
    return hash;
}

void ncp_window_copy(const ncp_data *d, const ncp_window *w, int64_t seq, size_t at, float *x, float *y, int32_t *label,
                     float *span)
{
    const series_data *f = &d->file[w->file];
    const size_t n = (size_t)seq, in = d->recipe.inputs, out = d->recipe.targets, from = (size_t)w->start;
    memcpy(x + at * n * in, f->x + from * in, n * in * sizeof *x);
    if (f->y) memcpy(y + at * n * out, f->y + from * out, n * out * sizeof *y);
    if (f->label) memcpy(label + at * n, f->label + from, n * sizeof *label);
    if (f->span) memcpy(span + at * n, f->span + from, n * sizeof *span);
}
