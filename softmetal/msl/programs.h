/* Running clang and lld. */
#ifndef SOFTMETAL_PROGRAMS_H
#define SOFTMETAL_PROGRAMS_H

/* Runs words[0], a path, with its messages in the file `errors`; the exit code, or -1. folder: where the file that is
 * preloaded into programs that stay (tools/stay.c) may lie. */
int sm_run_program(const char *const *words, const char *errors, const char *folder);

#endif
