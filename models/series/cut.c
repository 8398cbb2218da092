/* Splits the rows of tables into series, and series into training, validation and test parts. Windows never cross the
 * end of a piece, so that no row of one part is seen in another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

static mica_status cut_add(series_pieces *p, series_piece piece)
{
    if (p->n == p->room) {
        const size_t room = p->room ? 2 * p->room : 64;
        series_piece *at = realloc(p->at, room * sizeof *at);
        if (!at) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu pieces of series", room);
        p->at = at;
        p->room = room;
    }
    if (piece.rows > 0) p->at[p->n++] = piece;
    return MICA_OK;
}

static bool cut_same_group(const mica_table *t, int64_t group, int64_t row)
{
    const char *a = mica_table_text(t, row - 1, group), *b = mica_table_text(t, row, group);
    const double x = mica_table_number(t, row - 1, group), y = mica_table_number(t, row, group);
    if (a || b) return a && b && strcmp(a, b) == 0;
    return x == y || (isnan(x) && isnan(y));
}

int64_t mica__series_run_length(const mica_table *t, int64_t group, int64_t row)
{
    const int64_t last = t->each ? (row / t->each + 1) * t->each : t->rows;
    int64_t end = group < 0 ? last : row + 1;
    while (end < last && cut_same_group(t, group, end)) end++;
    return end - row;
}

/* Makes each series one piece of its table's part. */
static mica_status cut_series(mica_table *const *tables, const mica_part *parts, size_t n, const mica_recipe *r,
                              series_pieces *out)
{
    const recipe_column *group = mica__recipe_role(r, RECIPE_GROUP);
    mica_status status = MICA_OK;
    for (size_t i = 0; i < n; i++) {
        const int64_t column = group ? mica_table_find(tables[i], group->name) : -1;
        for (int64_t row = 0, length; row < tables[i]->rows && status == MICA_OK; row += length) {
            length = mica__series_run_length(tables[i], column, row);
            status = cut_add(out, (series_piece){i, row, length, parts ? parts[i] : MICA_PART_CUT});
        }
    }
    return status;
}

/* Number of n that a part gets: at least one if its share is above 0. */
static int64_t cut_share(int64_t n, double share)
{
    const int64_t count = (int64_t)rint((double)n * share);
    return share > 0 && count < 1 ? 1 : count;
}

static mica_part cut_part_of(int64_t i, int64_t n, int64_t valid, int64_t test)
{
    return i < n - valid - test ? MICA_PART_TRAIN : i < n - test ? MICA_PART_VALID : MICA_PART_TEST;
}

static mica_status cut_by_time(const series_piece *p, const double share[2], series_pieces *out)
{
    const int64_t valid = cut_share(p->rows, share[0]), test = cut_share(p->rows, share[1]);
    const int64_t rows[] = {p->rows - valid - test, valid, test};
    series_piece piece = *p;
    mica_status status = MICA_OK;
    for (int i = 0; i < 3 && status == MICA_OK; i++) {
        piece.rows = rows[i];
        piece.part = (mica_part)i;
        status = cut_add(out, piece);
        piece.row += rows[i];
    }
    return status;
}

/* Blocks of one window; order[i] is the position of block i in the random draw. */
static mica_status cut_by_seed(const series_pieces *whole, const mica_series_options *o, const double share[2],
                               int64_t block, series_pieces *out)
{
    int64_t n = 0, at = 0;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < whole->n; i++) n += whole->at[i].part == MICA_PART_CUT ? whole->at[i].rows / block : 0;
    int64_t *order = malloc((size_t)(n + 1) * sizeof *order);
    if (!order) return mica_fail(MICA_ERR_MEMORY, "out of memory: %lld blocks", (long long)n);
    mica_series_shuffle(o->seed, 0, n, order);
    const int64_t valid = cut_share(n, share[0]), test = cut_share(n, share[1]);
    for (size_t i = 0; i < whole->n; i++) {
        series_piece piece = whole->at[i];
        const int64_t end = piece.row + piece.rows;
        if (piece.part != MICA_PART_CUT) continue;
        for (piece.rows = block; piece.row + block <= end && status == MICA_OK; piece.row += block) {
            piece.part = cut_part_of(order[at++], n, valid, test);
            status = cut_add(out, piece);
        }
    }
    free(order);
    return status;
}

static bool has_training_pieces(const series_pieces *whole)
{
    for (size_t i = 0; i < whole->n; i++)
        if (whole->at[i].part == MICA_PART_TRAIN) return true;
    return false;
}

mica_status mica__series_cut(const mica_series_options *o, mica_table *const *tables, const mica_part *parts, size_t n,
                             const mica_recipe *recipe, series_pieces *out)
{
    series_pieces whole = {0};
    double share[2] = {o->valid, o->test};
    int64_t count = 0, i_cut = 0;
    mica_status status = cut_series(tables, parts, n, recipe, &whole);
    for (size_t i = 0; i < whole.n; i++) {
        const mica_part part = whole.at[i].part;
        if (part == MICA_PART_CUT) count++;
        else if (part != MICA_PART_TRAIN)
            share[part == MICA_PART_TEST] = 0; /* this part has its own table, so it is
                                                                              * not split off */
    }
    mica_series_split split = o->split;
    const int64_t valid = cut_share(count, share[0]), test = cut_share(count, share[1]);
    const bool enough = count > valid + test; /* at least one stays for training */
    if (split == MICA_SPLIT_AUTO) split = count > 1 && enough ? MICA_SPLIT_WHOLE : MICA_SPLIT_TIME;
    if (status == MICA_OK && split == MICA_SPLIT_WHOLE && count > 0 && !enough && !has_training_pieces(&whole))
        status =
            mica_fail(MICA_ERR_ARGUMENT, "%s: of %lld whole series none is left to train on; split each series by time",
                      tables[0]->path, (long long)count);
    for (size_t i = 0; i < whole.n && status == MICA_OK; i++) {
        series_piece piece = whole.at[i];
        if (piece.part == MICA_PART_CUT && split == MICA_SPLIT_SEED) continue;
        if (piece.part == MICA_PART_CUT && split == MICA_SPLIT_TIME) {
            status = cut_by_time(&piece, share, out);
            continue;
        }
        if (piece.part == MICA_PART_CUT) piece.part = cut_part_of(i_cut++, count, valid, test);
        status = cut_add(out, piece);
    }
    if (status == MICA_OK && split == MICA_SPLIT_SEED && count > 0)
        status = cut_by_seed(&whole, o, share, recipe->seq + recipe->ahead, out);
    free(whole.at);
    return status;
}
