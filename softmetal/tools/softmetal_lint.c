/* softmetal-lint: applies the rules of softmetal/lint to Metal files. */
#include "softmetal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] = "usage: softmetal-lint [-Ifolder]... FILE...\n"
                           "  prints the errors that Apple's compiler would report, as \"file:line: error: ...\"\n"
                           "  -I  folder of #include \"...\"\n"
                           "Exit code: 0 no error, 1 errors were found, 2 usage or a file that cannot be read.\n";

enum { FOLDERS = 30 };

int main(int argc, char **argv)
{
    const char *folders[FOLDERS + 1] = {NULL};
    int folders_count = 0, files = 0, status = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) return fputs(help, stdout) < 0;
        if (argv[i][0] != '-') files++;
        else if (strncmp(argv[i], "-I", 2) == 0 && folders_count < FOLDERS) folders[folders_count++] = argv[i];
        else {
            fprintf(stderr, "softmetal-lint: unknown option '%s', or too many options; see --help\n", argv[i]);
            return 2;
        }
    }
    if (files == 0) {
        fputs("softmetal-lint: no file; see --help\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue;
        if (access(argv[i], R_OK) != 0) {
            fprintf(stderr, "softmetal-lint: cannot read '%s'\n", argv[i]);
            return 2;
        }
        char *complaints = sm_lint_file(argv[i], folders);
        if (complaints != NULL) fputs(complaints, stdout), status = 1;
        free(complaints);
    }
    return status;
}
