/* Time series from files, and what a network is given of them.
 *
 * A *table* is what files say: columns by name, rows of one or several series, each
 * series one file. A *recipe* is how columns become numbers for a network: which are
 * inputs and targets, how categories are spread, what is subtracted and divided. It is
 * made of the training part and kept with the model, so that `mica predict` does the
 * same with other files. */
#ifndef MICA_CLI_SERIES_H
#define MICA_CLI_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ----------------------------------------------------------------- table --- */

typedef struct series_file {
    char *path;
    char *text;            /* what cells point into; NULL: npy                       */
    char **cell;           /* rows * columns; NULL: npy                              */
    double *value;         /* npy: rows * columns                                    */
    int64_t *line;         /* of each row, for sentences; NULL: npy                  */
    int64_t rows;
} series_file;

typedef struct series_table {
    const char *command;
    char **name;
    int64_t columns;
    series_file *file;
    size_t files;
} series_table;

/* Reads a CSV, TSV or npy file, or all of a folder in the order of their names. CLI_OK,
 * or an exit code after a sentence. Sets of columns must agree. */
int series_open(series_table *t, const char *command, const char *path);
void series_close(series_table *t);
/* By name, or by number; negative ones count from the end. -1: there is none. */
int64_t series_column(const series_table *t, const char *name);
bool series_missing(const char *cell);
bool series_number(const char *cell, double *value);
/* Seconds since 1970 of "2015-02-04 17:51:00" and the like. */
bool series_date(const char *cell, double *seconds);
/* The cell as text (npy: none), and as a number; NaN: missing. false after a sentence
 * that names file, line and column. */
const char *series_text(const series_table *t, size_t file, int64_t row, int64_t column);
bool series_value(const series_table *t, size_t file, int64_t row, int64_t column, double *value);

/* ---------------------------------------------------------------- recipe --- */

enum { SERIES_CATEGORIES = 32 };

typedef struct series_part {
    char *name;            /* of the column                                          */
    char *category;        /* 1 where the cell is this text; NULL: a number          */
    double mean, deviation;
} series_part;

typedef struct series_recipe {
    series_part *input, *target;
    size_t inputs, targets; /* targets: values, or one if classes                    */
    char **label;           /* of the classes, in order; NULL: regression            */
    size_t classes;
    char *time;             /* column of times; NULL: rows are evenly spaced         */
    double time_unit;       /* what a time span of 1 is                              */
    int64_t ahead;          /* the target is so many rows later                      */
} series_recipe;

typedef struct series_wish {
    const char *target, *inputs, *time; /* names with commas; inputs NULL: all others */
    int task;                           /* 0: as the target looks, 1: regression, 2: classes */
    int64_t ahead;
} series_wish;

/* The numbers of one file: x (rows, inputs), y (rows, targets) or label (rows), and
 * spans (rows); NaN and -1 where there is no target. */
typedef struct series_data {
    int64_t rows;
    float *x, *y, *span;
    int32_t *label;
    int64_t filled;         /* cells that were missing                               */
} series_data;

/* Decides on columns. left gets the names of those that are left out, with commas. */
int series_plan(series_recipe *r, const series_table *t, const series_wish *wish, char *left, size_t room);
/* Means and deviations over rows that are[] true (in the order of files and rows). */
int series_measure(series_recipe *r, const series_table *t, const bool *training);
/* wants_target: a file without targets is refused, else y and label stay NULL. */
int series_numbers(const series_recipe *r, const series_table *t, size_t file, bool wants_target, series_data *out);
void series_data_free(series_data *d);
void series_recipe_free(series_recipe *r);

/* As lines of text for a model file, to be freed; and back. */
char *series_recipe_text(const series_recipe *r);
bool series_recipe_parse(series_recipe *r, const char *text);

#endif
