/* Series as windows: what is trained on, validated with and tested with. */
#ifndef MICA_CLI_NCP_DATA_H
#define MICA_CLI_NCP_DATA_H

#include "series.h"

enum { NCP_TRAIN, NCP_VALID, NCP_TEST, NCP_PARTS };

typedef struct ncp_window {
    size_t file;
    int64_t start;
} ncp_window;

typedef struct ncp_windows {
    ncp_window *list;
    size_t n, room;
} ncp_windows;

typedef struct ncp_split {
    int how;                /* 0: by time, 1: by seed, 2: whole files                */
    double valid, test;     /* shares                                                */
    int64_t seq, stride, seed;
} ncp_split;

typedef struct ncp_data {
    series_table table, test_table; /* test_table: of a file of its own, or empty    */
    series_recipe recipe;
    series_data *file;      /* those of table, then those of test_table              */
    size_t files;
    ncp_windows part[NCP_PARTS];
    int64_t rows, filled;
    char left_out[512];
} ncp_data;

/* Reads, decides, cuts and measures. test NULL: a share of the data. CLI_OK or an exit
 * code after a sentence. */
int ncp_data_open(ncp_data *d, const char *command, const char *path, const char *test, const series_wish *wish,
                  const ncp_split *split);
void ncp_data_close(ncp_data *d);
/* Of everything that the network sees of it. */
uint64_t ncp_data_hash(const ncp_data *d);

/* Copies a window into row `at` of a batch. */
void ncp_window_copy(const ncp_data *d, const ncp_window *w, int64_t seq, size_t at, float *x, float *y, int32_t *label,
                     float *span);

/* A number below n from a stream that seed begins; the same on every machine. */
uint64_t ncp_random_below(uint64_t *stream, uint64_t n);

#endif
