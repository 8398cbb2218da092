/* The command line of softmetal-count. */
#ifndef SOFTMETAL_COUNT_ARGUMENTS_H
#define SOFTMETAL_COUNT_ARGUMENTS_H

#include "core.h"

enum { MOST_CONSTANTS = 64, MOST_DEFINES = 64 };

typedef struct count_arguments {
    const char *file, *kernel;
    sm_options options;
    sm_define defines[MOST_DEFINES];
    sm_constant constants[MOST_CONSTANTS];
    unsigned char values[MOST_CONSTANTS][32];
    int constants_count;
    sm_dispatch dispatch;
    unsigned long groups;
    bool json, help;
    char problem[400]; /* why the command line is wrong */
} count_arguments;

/* false: problem. The buffers of the dispatch are allocated by sm_memory_open. */
bool count_arguments_read(count_arguments *a, int argc, char **argv);
void count_arguments_free(count_arguments *a);

/* The whole file with a NUL at its end, to be freed; NULL: it cannot be read. */
char *count_read_file(const char *path, size_t *length);

#endif
