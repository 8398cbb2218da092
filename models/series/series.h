/* What the files of mica_series.h share: tables and recipes from inside. */
#ifndef MICA_MODELS_SERIES_H
#define MICA_MODELS_SERIES_H

#include "mica_series.h"

/* -------------------------------------------------------------- tables ---- */

struct mica_table {
    char *path;              /* for sentences                                       */
    bool lines;              /* rows have lines, else they are counted              */
    int64_t rows, columns, room;
    int64_t each;            /* rows of each series, of an array of three axes; 0: one series */
    double *value;           /* row-major; NaN: missing, or a text                  */
    uint32_t *text;          /* row-major: where in pool; 0: no text                */
    int64_t *line;           /* of each row                                         */
    char *pool;              /* texts that end; the first byte is no text           */
    size_t pool_used, pool_room;
    uint32_t *name;          /* of each column, in pool                             */
    mica_column_kind *kind;  /* of each column                                      */
};

mica_status mica__table_new(const char *path, mica_table **out);
/* A text into the pool; 0: MICA_ERR_MEMORY or MICA_ERR_SIZE has been told. */
uint32_t mica__table_keep(mica_table *t, const char *text, size_t length);
/* Room for one more row, without texts, which the caller fills and counts. */
mica_status mica__table_grow(mica_table *t);
/* Names for columns that have none, one name for each; kinds; dates as seconds. */
mica_status mica__table_finish(mica_table *t);

/* Reads a text into an empty table. */
mica_status mica__csv_read(mica_table *t, const char *text, size_t length, const mica_table_options *options);
/* Is the text a finite number, is it what stands for a missing one? */
bool mica__cell_number(const char *text, size_t length, double *value);
bool mica__cell_missing(const char *text, size_t length);
/* Seconds since 1970. */
bool mica__cell_date(const char *text, double *seconds);

enum { MICA__PLACE = 512 };
/* "room.csv, line 7, column 3 ('light')" into at[MICA__PLACE], which is returned. */
const char *mica__table_place(const mica_table *t, int64_t row, int64_t column, char *at);

/* ------------------------------------------------------------- recipes ---- */

typedef enum recipe_role {
    RECIPE_NUMBER = 0,       /* an input                                            */
    RECIPE_CATEGORY = 1,     /* an input for each of its texts                      */
    RECIPE_TARGET = 2,
    RECIPE_GROUP = 3,
    RECIPE_TIME = 4,
    RECIPE_SPAN = 5
} recipe_role;

typedef struct recipe_column {
    recipe_role role;
    char *name;
    double mean, scale;      /* value = mean + scale * what a network sees          */
    char **texts;            /* of a category, or of a target's classes             */
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
/* The index of a text; -1: there is none. */
int64_t mica__recipe_text_find(const recipe_column *c, const char *text);
/* The first column of a role; NULL: none. */
const recipe_column *mica__recipe_role(const mica_recipe *r, recipe_role role);
/* The text of a category or class: a number is written as shortly as it can be. NULL:
 * missing. */
const char *mica__cell_category(const mica_table *t, int64_t row, int64_t column, char at[MICA_NUMBER_TEXT]);

/* A run of rows of one series that belongs to one part. */
typedef struct series_piece {
    size_t table;
    int64_t row, rows;
    mica_part part;
} series_piece;

typedef struct series_pieces {
    series_piece *at;
    size_t n, room;
} series_pieces;

/* Rows of tables into series, and these into pieces. */
mica_status mica__series_cut(const mica_series_options *o, mica_table *const *tables, const mica_part *parts, size_t n,
                             const mica_recipe *recipe, series_pieces *out);
/* How many rows from this one on are of one series: with the same value in column
 * `group` (-1: whatever they have), and in the same part of an array of three axes. */
int64_t mica__series_run_length(const mica_table *t, int64_t group, int64_t row);

/* Which columns are what; and what the pieces to train on say about them. */
mica_status mica__recipe_choose(mica_recipe *r, const mica_series_options *o, mica_table *const *tables, size_t n);
mica_status mica__recipe_measure(mica_recipe *r, const mica_series_options *o, mica_table *const *tables,
                                 const series_pieces *pieces);
/* Time since the row before, 1 in the first row of a series, divided by the recipe's. */
mica_status mica__recipe_span(const mica_recipe *r, const mica_table *t, int64_t row, bool first, double *span);

#endif
