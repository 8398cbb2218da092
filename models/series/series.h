/* Shared by the files that implement mica_series.h: the structures of tables and recipes. */
#ifndef MICA_MODELS_SERIES_H
#define MICA_MODELS_SERIES_H

#include "mica_series.h"

/* -------------------------------------------------------------- tables ---- */

struct mica_table {
    char *path;              /* for error messages                                       */
    bool lines;              /* rows have line numbers; else messages give the row index */
    int64_t rows, columns, room;
    int64_t each;            /* rows per series, of an array of three axes; 0: one series */
    double *value;           /* row-major; NaN: missing, or a text                  */
    uint32_t *text;          /* row-major: offset in pool; 0: not a text            */
    int64_t *line;           /* line number by row                                  */
    char *pool;              /* NUL-terminated texts; byte 0 is unused, so offset 0 means no text */
    size_t pool_used, pool_room;
    uint32_t *name;          /* by column: offset in pool                           */
    mica_column_kind *kind;  /* by column                                           */
};

mica_status mica__table_new(const char *path, mica_table **out);
/* Copies a text to the pool. 0: failed; MICA_ERR_MEMORY or MICA_ERR_SIZE is set. */
uint32_t mica__table_keep(mica_table *t, const char *text, size_t length);
/* Makes room for one more row without texts; the caller fills it and counts it. */
mica_status mica__table_grow(mica_table *t);
/* Names unnamed columns, makes names unique, finds kinds, converts dates to seconds. */
mica_status mica__table_finish(mica_table *t);

/* Reads a text into an empty table. */
mica_status mica__csv_read(mica_table *t, const char *text, size_t length, const mica_table_options *options);
/* Is the text a finite number? Does it stand for a missing value? */
bool mica__cell_number(const char *text, size_t length, double *value);
bool mica__cell_missing(const char *text, size_t length);
/* Converts a date to seconds since 1970. */
bool mica__cell_date(const char *text, double *seconds);

enum { MICA__PLACE = 512 };
/* Writes "room.csv, line 7, column 3 ('light')" to at[MICA__PLACE] and returns at. */
const char *mica__table_place(const mica_table *t, int64_t row, int64_t column, char *at);

/* ------------------------------------------------------------- recipes ---- */

typedef enum recipe_role {
    RECIPE_NUMBER = 0,       /* one input                                           */
    RECIPE_CATEGORY = 1,     /* one input per text                                  */
    RECIPE_TARGET = 2,
    RECIPE_GROUP = 3,
    RECIPE_TIME = 4,
    RECIPE_SPAN = 5
} recipe_role;

typedef struct recipe_column {
    recipe_role role;
    char *name;
    double mean, scale;      /* value = mean + scale * network value                */
    char **texts;            /* of a category, or the classes of a target           */
    int64_t n_texts;
} recipe_column;

struct mica_recipe {
    int64_t seq, ahead, targets;
    mica_series_task task;   /* not MICA_TASK_AUTO                                  */
    mica_series_missing missing;
    recipe_column *columns;
    int64_t n, room;
};

mica_status mica__recipe_add(mica_recipe *r, recipe_role role, const char *name, recipe_column **out);
mica_status mica__recipe_text_add(recipe_column *c, const char *text);
/* Returns the index of a text; -1: not found. */
int64_t mica__recipe_text_find(const recipe_column *c, const char *text);
/* Returns the first column of a role; NULL: there is no such column. */
const recipe_column *mica__recipe_role(const mica_recipe *r, recipe_role role);
/* Returns the text of a category or class; a number is written in its shortest form. NULL: missing. */
const char *mica__cell_category(const mica_table *t, int64_t row, int64_t column, char at[MICA_NUMBER_TEXT]);

/* A range of rows of one series that belongs to one part. */
typedef struct series_piece {
    size_t table;
    int64_t row, rows;
    mica_part part;
} series_piece;

typedef struct series_pieces {
    series_piece *at;
    size_t n, room;
} series_pieces;

/* Splits the rows of tables into series, and these into pieces. */
mica_status mica__series_cut(const mica_series_options *o, mica_table *const *tables, const mica_part *parts, size_t n,
                             const mica_recipe *recipe, series_pieces *out);
/* Counts the rows from `row` on that belong to one series: equal values in column `group` (-1: no such column), and
 * the same series of an array of three axes. */
int64_t mica__series_run_length(const mica_table *t, int64_t group, int64_t row);

/* Chooses the role of each column; then measures the columns on the training pieces. */
mica_status mica__recipe_choose(mica_recipe *r, const mica_series_options *o, mica_table *const *tables, size_t n);
mica_status mica__recipe_measure(mica_recipe *r, const mica_series_options *o, mica_table *const *tables,
                                 const series_pieces *pieces);
/* Time since the previous row (1 in the first row of a series), divided by the recipe's unit. */
mica_status mica__recipe_span(const mica_recipe *r, const mica_table *t, int64_t row, bool first, double *span);

#endif
