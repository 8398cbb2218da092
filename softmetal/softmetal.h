/* The functions of libsoftmetal that Metal does not have, for tests. A program does
 * not need them to run; they are found with dlsym like the rest. */
#ifndef SOFTMETAL_H
#define SOFTMETAL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SM_EXTENSION __attribute__((visibility("default")))

/* Returns the number of failures since the last call: unknown messages, calls that broke
 * a rule of the API, failed command buffers. text (may be NULL) receives the last one. */
SM_EXTENSION long sm_failures(char *text, size_t size);

/* The number of live instances of the class with this name ("MTLBuffer"); NULL: of all classes. */
SM_EXTENSION int sm_objects_alive(const char *class_name);

/* Sets the faults to inject from now on, in the syntax of SM_FAULT (README.md); NULL: none.
 * Resets the counters. Returns 0, or -1 if the text is invalid. */
SM_EXTENSION int sm_inject(const char *faults);

/* Returns the errors that Apple's compiler would report for a text: NULL, or one error per
 * line, "file:line: error: ...", to be released with free(). file: the name to print, or NULL. */
SM_EXTENSION char *sm_lint(const char *source, size_t length, const char *file);
/* The same for a file; folders: "-Ifolder" for its #include "...", NULL at the end. A file
 * that cannot be read is reported as an error. */
SM_EXTENSION char *sm_lint_file(const char *path, const char *const *folders);

/* Counts what kernels cost, as SM_COUNT=file: those that are built from now on, one line of JSON for each dispatch
 * (README.md). file "": no file, for sm_kernel_counts of core.h; NULL: as SM_COUNT says. groups: count at most so many
 * threadgroups of a dispatch; 0: the default. Returns 0, or -1: out of memory. */
SM_EXTENSION int sm_count(const char *file, unsigned long groups);

#ifdef __cplusplus
}
#endif

#endif
