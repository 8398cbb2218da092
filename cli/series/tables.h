/* Opens the tables that a command gets as paths. */
#ifndef MICA_CLI_TABLES_H
#define MICA_CLI_TABLES_H

#include <mica_series.h>

typedef struct cli_tables {
    mica_table **at;
    mica_part *parts;
    size_t n, room;
} cli_tables;

/* Adds the tables of files whose paths are separated by commas. A folder stands for its
 * files that end in .csv, .tsv, .txt, .data or .npy, sorted by name. header is as in
 * mica_table_options. Returns CLI_OK, or an exit code after an error message. */
int cli_tables_add(const char *command, const char *paths, int header, mica_part part, cli_tables *t);
void cli_tables_close(cli_tables *t);

#endif
