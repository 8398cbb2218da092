/* mica_series: networks for time series, on mica_nn.h and mica_liquid.h.
 *
 * Terms. A *table* is the content of a CSV, TSV or npy file: named columns of numbers,
 * texts or dates. A *recipe* describes how rows become numbers for a network: the input
 * columns, the target columns, and their scales. It is derived from the training data
 * and stored with the network, so that other files are read the same way. A *series* is
 * tables with a recipe applied: windows of rows in three parts, for training, validation
 * and test. A *series model* is a recurrent network with its recipe, in one file.
 *
 *     mica_table *t;
 *     mica_table_open("room.csv", NULL, &t);
 *     mica_series_options o;
 *     mica_series_options_init(&o);
 *     o.targets = "occupied";
 *     mica_series *d;
 *     mica_series_open(&o, &t, NULL, 1, &d);
 *     mica_series_net net;
 *     mica_series_net_init(&net, MICA_CELL_CFC);
 *     mica_series_model *m;
 *     mica_series_model_new(s, &net, mica_series_recipe(d), seed, &m);
 *     // a mica_trainer with loss mica_series_loss and user m, batches by mica_series_batch
 *
 * Error messages about data name the file, the line and the column. */
#ifndef MICA_SERIES_H
#define MICA_SERIES_H

#include <stdio.h>

#include "mica_liquid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- tables ---- */

typedef struct mica_table mica_table;

typedef struct mica_table_options {
    size_t struct_size;
    char delimiter;                 /* 0: tab in *.tsv, else the most frequent in line 1 of: , ; tab     */
    int header;                     /* 1: the first line has column names; 0: it has not; -1: it has if
                                     * none of its cells is a number or a date          */
} mica_table_options;

MICA_API void mica_table_options_init(mica_table_options *options);

/* Reads text as above (UTF-8), or *.npy: numbers (rows), (rows, columns), or (series, rows,
 * columns), where a window never spans two series. The name of a column without a name is its
 * number, from 1; if there is one name fewer than cells, the first column has no name. Cells
 * that are empty or ?, -, NA, N/A, na, nan, NaN, NAN, null or NULL are missing. */
MICA_API MICA_CHECK_RESULT mica_status mica_table_open(const char *path, const mica_table_options *options,
                                                       mica_table **out);
/* The same for text in memory; name is for error messages. */
MICA_API MICA_CHECK_RESULT mica_status mica_table_parse(const char *name, const char *text, size_t length,
                                                        const mica_table_options *options, mica_table **out);
MICA_API void mica_table_free(mica_table *table);

typedef enum mica_column_kind {
    MICA_COLUMN_NUMBERS = 0,
    MICA_COLUMN_TEXTS = 1,          /* some cell is neither a number nor missing       */
    MICA_COLUMN_DATES = 2           /* 2015-02-04 17:51:00, 2015/2/4, 2/4/2015; as numbers: seconds since 1970 */
} mica_column_kind;

MICA_API const char *mica_table_path(const mica_table *table);
MICA_API int64_t mica_table_rows(const mica_table *table);
MICA_API int64_t mica_table_columns(const mica_table *table);
/* They return NULL, MICA_COLUMN_NUMBERS, NaN or -1 for a row or column that does not exist. */
MICA_API const char *mica_table_name(const mica_table *table, int64_t column);
MICA_API mica_column_kind mica_table_kind(const mica_table *table, int64_t column);
MICA_API double mica_table_number(const mica_table *table, int64_t row, int64_t column);
/* The text of a cell that is not a number; NULL: it is a number, or missing. */
MICA_API const char *mica_table_text(const mica_table *table, int64_t row, int64_t column);
/* By name, else by number: 1 is the first column, -1 the last. */
MICA_API int64_t mica_table_find(const mica_table *table, const char *name);
/* The line of the file where a row begins. */
MICA_API int64_t mica_table_line(const mica_table *table, int64_t row);

/* Writes CSV, or tabs if the path ends in .tsv; the file appears whole or not at all. */
MICA_API MICA_CHECK_RESULT mica_status mica_table_write(const mica_table *table, const char *path);
/* To write such a file cell by cell: the delimiter, a tab if the path ends in .tsv, else a comma
 * (also for NULL); and a text, in quotes if it would be read differently without them. */
MICA_API char mica_table_delimiter(const char *path);
MICA_API void mica_table_put_text(FILE *to, const char *text);

typedef enum mica_made_kind {
    MICA_MADE_SINE = 0,             /* sin, cos; target: the sine of twice the frequency */
    MICA_MADE_SPIRAL = 1,           /* series, x, y; class: left or right, its direction      */
    MICA_MADE_IRREGULAR = 2         /* time, x at uneven times; speed: its derivative  */
} mica_made_kind;

/* A synthetic data set: the same for the same seed. noise: standard deviation of the noise
 * that is added to the inputs. */
MICA_API MICA_CHECK_RESULT mica_status mica_table_make(mica_made_kind kind, int64_t rows, double noise, uint64_t seed,
                                                       mica_table **out);

/* -------------------------------------------------------------- series ---- */

typedef enum mica_part {
    MICA_PART_TRAIN = 0,
    MICA_PART_VALID = 1,
    MICA_PART_TEST = 2,
    MICA_PART_CUT = 3               /* of a table: it is split into the three          */
} mica_part;

typedef enum mica_series_split {
    MICA_SPLIT_AUTO = 0,            /* one series, or too few for the shares: TIME; else WHOLE         */
    MICA_SPLIT_TIME = 1,            /* each series: its start for training, then validation, then test */
    MICA_SPLIT_SEED = 2,            /* blocks of one window, assigned at random        */
    MICA_SPLIT_WHOLE = 3            /* whole series, in their order                    */
} mica_series_split;

typedef enum mica_series_task {
    MICA_TASK_AUTO = 0,             /* classes if the target is text or has at most 20 integer values      */
    MICA_TASK_REGRESSION = 1,
    MICA_TASK_CLASSES = 2
} mica_series_task;

typedef enum mica_series_missing {
    MICA_MISSING_LAST = 0,          /* the previous value in the series; the mean if there is none     */
    MICA_MISSING_MEAN = 1,
    MICA_MISSING_REFUSE = 2
} mica_series_missing;

typedef struct mica_series_options {
    size_t struct_size;
    const char *targets;            /* columns to predict, comma-separated; "all": all numbers */
    const char *inputs;             /* input columns, comma-separated; NULL: all usable columns, without
                                     * the targets if ahead is 0                     */
    const char *drop;               /* columns excluded from the inputs                */
    const char *group;              /* consecutive rows with the same value in this column are a series  */
    const char *time, *span;        /* column of the time of a row, or of the time since the previous row */
    int64_t ahead;                  /* predict the targets this many rows later; -1: 0, or 1 if
                                     * there is no other input column                  */
    int64_t seq, stride;            /* rows of a window; rows between the starts of training windows
                                     * (0: seq / 4, rounded up)                        */
    mica_series_task task;
    mica_series_missing missing;
    mica_series_split split;
    double valid, test;             /* share of the rows in each part                  */
    uint64_t seed;                  /* of MICA_SPLIT_SEED                              */
    bool raw;                       /* do not scale numbers: no z-score                */
    int64_t max_categories;         /* most distinct texts of an input column          */
} mica_series_options;

/* seq 32; shares 0.15 each; 64 categories. */
MICA_API void mica_series_options_init(mica_series_options *options);

typedef struct mica_recipe mica_recipe;
typedef struct mica_series mica_series;

/* Derives the recipe and applies it. The tables have the same columns and are borrowed.
 * parts[i] is the part of table i; NULL: all are MICA_PART_CUT. */
MICA_API MICA_CHECK_RESULT mica_status mica_series_open(const mica_series_options *options, mica_table *const *tables,
                                                        const mica_part *parts, size_t n, mica_series **out);
/* Applies a recipe to other tables: all rows are MICA_PART_TEST, in windows of seq rows
 * (0: a series is one window); the last window of a series may be shorter. Windows overlap
 * by `context` rows. Target columns may be absent or have missing values. */
MICA_API MICA_CHECK_RESULT mica_status mica_series_apply(const mica_recipe *recipe, mica_table *const *tables, size_t n,
                                                         int64_t seq, int64_t context, mica_series **out);
MICA_API void mica_series_free(mica_series *series);

/* Valid as long as the series. */
MICA_API const mica_recipe *mica_series_recipe(const mica_series *series);
MICA_API int64_t mica_series_windows(const mica_series *series, mica_part part);
/* Rows in no window, because the rest of a series is shorter than a window. */
MICA_API int64_t mica_series_left_over(const mica_series *series);
/* Missing inputs that were replaced by a value. */
MICA_API int64_t mica_series_filled(const mica_series *series);

typedef struct mica_window {
    size_t struct_size;             /* sizeof(mica_window)                             */
    size_t table;
    int64_t row, rows;              /* its first row, and number of rows               */
    int64_t fresh;                  /* the first row that the previous window does not have */
    int64_t end;                    /* one past the last row of its series             */
} mica_window;

MICA_API bool mica_series_window(const mica_series *series, mica_part part, int64_t i, mica_window *window);

/* n windows of the same length, by number. out[0]: x (n, rows, inputs). out[1]: the
 * targets, (n, rows, targets) as f32 in the scale of the recipe, NaN if missing, or (n,
 * rows) classes, -1 if missing. out[2], if the recipe has times: the time since the
 * previous row (n, rows), 1 in the first row of a series. */
MICA_API MICA_CHECK_RESULT mica_status mica_series_batch(mica_scope *s, const mica_series *series, mica_part part,
                                                         const int64_t *windows, int64_t n, mica_array *out[3],
                                                         size_t *n_out);
/* The numbers 0 ... n - 1 in a random order that depends on seed and epoch. */
MICA_API void mica_series_shuffle(uint64_t seed, int64_t epoch, int64_t n, int64_t *order);

/* ------------------------------------------------------------- recipes ---- */

MICA_API int64_t mica_recipe_inputs(const mica_recipe *recipe);   /* input numbers per row                */
MICA_API int64_t mica_recipe_targets(const mica_recipe *recipe);  /* columns to predict                   */
MICA_API int64_t mica_recipe_classes(const mica_recipe *recipe);  /* 0: regression                        */
MICA_API int64_t mica_recipe_ahead(const mica_recipe *recipe);
MICA_API int64_t mica_recipe_seq(const mica_recipe *recipe);      /* rows of the windows to train on      */
MICA_API bool mica_recipe_knows_time(const mica_recipe *recipe);
MICA_API const char *mica_recipe_target(const mica_recipe *recipe, int64_t i);
MICA_API const char *mica_recipe_class(const mica_recipe *recipe, int64_t i);
/* In units of the file a target is prediction * scale + shift. */
MICA_API void mica_recipe_scale(const mica_recipe *recipe, int64_t target, double *scale, double *shift);
/* To CSV text, and back. Written as mica_doctor_text does. */
MICA_API size_t mica_recipe_text(const mica_recipe *recipe, char *buffer, size_t cap);
MICA_API MICA_CHECK_RESULT mica_status mica_recipe_parse(const char *text, size_t length, mica_recipe **out);
MICA_API MICA_CHECK_RESULT mica_status mica_recipe_copy(const mica_recipe *recipe, mica_recipe **out);
MICA_API void mica_recipe_free(mica_recipe *recipe);

/* -------------------------------------------------------------- models ---- */

/* The cells of mica_liquid.h, and GRU and LSTM, which do not use time spans: if the recipe
 * has times, they get them as one more input. */
typedef enum mica_series_cell {
    MICA_CELL_LTC = 0,
    MICA_CELL_CFC = 1,
    MICA_CELL_CTRNN = 2,
    MICA_CELL_NODE = 3,
    MICA_CELL_ELTC = 4,
    MICA_CELL_CTGRU = 5,
    MICA_CELL_GRU = 6,
    MICA_CELL_LSTM = 7
} mica_series_cell;

/* A recurrent network and a linear layer ("fc") from its outputs to the targets. */
typedef struct mica_series_net {
    size_t struct_size;
    mica_series_cell cell;
    int64_t units, layers;          /* units: used without a wiring                    */
    const char *wiring;             /* text for mica_wiring_parse; NULL: no wiring     */
    bool bidirectional, mixed_memory;
    mica_liquid_convention convention;
    mica_cfc_mode mode;
    int activation;                 /* a mica_activation; -1: the cell's default       */
    int64_t backbone_units, backbone_layers; /* CfC without a wiring                   */
    double dropout;                 /* of the backbone                                 */
    int64_t unfolds;                /* 0: the cell's default                           */
    int solver;                     /* a mica_liquid_solver; -1: the cell's default    */
} mica_series_net;

/* 32 units, one layer. */
MICA_API void mica_series_net_init(mica_series_net *net, mica_series_cell cell);

typedef struct mica_series_model mica_series_model;

/* Initial parameters depend on the seed. The recipe is copied. */
MICA_API MICA_CHECK_RESULT mica_status mica_series_model_new(mica_scope *s, const mica_series_net *net,
                                                             const mica_recipe *recipe, uint64_t seed,
                                                             mica_series_model **out);
/* Read and write a safetensors file with the whole model: the recipe and the description as
 * metadata, the parameters of a liquid network as in the reference's state_dict.
 * settings are more metadata. */
MICA_API MICA_CHECK_RESULT mica_status mica_series_model_open(mica_scope *s, const char *path, mica_series_model **out);
MICA_API MICA_CHECK_RESULT mica_status mica_series_model_save(mica_scope *s, const mica_series_model *model,
                                                              const char *path, const mica_setting *settings, size_t n);
MICA_API void mica_series_model_free(mica_series_model *model);

MICA_API mica_params *mica_series_model_params(mica_series_model *model);
MICA_API const mica_series_net *mica_series_model_net(const mica_series_model *model);
MICA_API const mica_recipe *mica_series_model_recipe(const mica_series_model *model);

/* (n, rows, targets or classes) from a batch: scaled numbers, or logits. */
MICA_API mica_array *mica_series_outputs(mica_forward *f, const mica_series_model *model, mica_array *const *data,
                                         size_t n);
/* A mica_train_loss_fn; user is the model: the mean squared difference, or the mean
 * cross-entropy, over all rows. */
MICA_API mica_array *mica_series_loss(mica_forward *f, mica_array *const *data, size_t n, void *user);

/* The quality on a part, in the units of the file, over rows that have a target. */
typedef struct mica_series_score {
    size_t struct_size;
    int64_t rows, scored;           /* rows of all windows; those with a target        */
    double loss;                    /* as mica_series_loss: in the scale of the recipe */
    double mse, mae, r2;            /* regression: mean over targets; r2 of all targets, 1: perfect */
    double accuracy, majority;      /* classes: share that is right; share of the most frequent class */
} mica_series_score;

/* The prediction for a row. */
typedef struct mica_series_row {
    size_t table;
    int64_t row;                    /* the row that is predicted: `ahead` after the input */
    bool inside;                    /* false: it is past the end of its series         */
    const float *values;            /* (targets), or the probabilities (classes)       */
    int64_t n;
    int64_t best;                   /* the most probable class; -1: regression         */
} mica_series_row;
typedef mica_status (*mica_series_row_fn)(void *user, const mica_series_row *row);

/* Runs all windows of a part, `batch` at a time; row_fn gets each row that the previous
 * window does not have. Both score and row_fn may be NULL. */
MICA_API MICA_CHECK_RESULT mica_status mica_series_run(mica_engine *engine, mica_series_model *model,
                                                       const mica_series *series, mica_part part, int64_t batch,
                                                       mica_series_score *score, mica_series_row_fn row_fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
