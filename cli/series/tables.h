/* Tables by the paths that commands are given. */
#ifndef MICA_CLI_TABLES_H
#define MICA_CLI_TABLES_H

#include <mica_series.h>

typedef struct cli_tables {
    mica_table **at;
    mica_part *parts;
    size_t n, room;
} cli_tables;

/* Adds the tables of files with commas between; a folder stands for the files in it
 * that end in .csv, .tsv, .txt, .data or .npy, in the order of their names. header:
 * as in mica_table_options. CLI_OK, or an exit code after an error message. */
int cli_tables_add(const char *command, const char *paths, int header, mica_part part, cli_tables *t);
void cli_tables_close(cli_tables *t);

#endif
