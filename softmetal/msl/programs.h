/* Runs clang and lld. */
#ifndef SOFTMETAL_PROGRAMS_H
#define SOFTMETAL_PROGRAMS_H

/* Runs words[0], a path, with its messages in the file `errors`; returns the exit code, or -1. folder: where to
 * store the file that is preloaded into programs (tools/stay.c). */
int sm_run_program(const char *const *words, const char *errors, const char *folder);

#endif
