/* softmetal-lint [-Ifolder]... FILE...: the rules of softmetal/lint over Metal files.
 * Complaints go to stdout as "file:line: error: ...". Exit code 0: none; 1: some; 2:
 * a file cannot be read, or usage. */
#include "softmetal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    *length = 0;
    while (file != NULL) {
        if (*length == room) {
            char *more = realloc(text, room = room * 2 + 65536);
            if (more == NULL) break;
            text = more;
        }
        const size_t got = fread(text + *length, 1, room - *length, file);
        if (got == 0) break;
        *length += got;
    }
    if (file == NULL || ferror(file) || fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int main(int argc, char **argv)
{
    enum { FOLDERS = 30 };
    const char *folders[FOLDERS + 1] = {NULL};
    int folders_count = 0, files = 0, status = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("usage: softmetal-lint [-Ifolder]... FILE...\n"
                   "What Apple's Metal compiler would refuse in these files. Exit code 0: nothing, 1: something, 2: "
                   "cannot read.\n");
            return 0;
        }
        if (strncmp(argv[i], "-I", 2) == 0 && folders_count < FOLDERS) folders[folders_count++] = argv[i];
        else if (argv[i][0] == '-') {
            fprintf(stderr, "softmetal-lint: '%s' is no option; see --help\n", argv[i]);
            return 2;
        } else files++;
    }
    if (files == 0) {
        fprintf(stderr, "softmetal-lint: no file; see --help\n");
        return 2;
    }
    for (int i = 1; i < argc && status != 2; i++) {
        if (argv[i][0] == '-') continue;
        size_t length = 0;
        char *text = read_file(argv[i], &length);
        if (text == NULL) {
            fprintf(stderr, "softmetal-lint: cannot read '%s'\n", argv[i]);
            return 2;
        }
        char *complaints = sm_lint_in(text, length, argv[i], folders);
        if (complaints != NULL) {
            fputs(complaints, stdout);
            status = 1;
        }
        free(complaints);
        free(text);
    }
    return status;
}
