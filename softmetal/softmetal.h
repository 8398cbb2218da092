/* What libsoftmetal has beyond Metal: for tests that want to know. A program needs
 * none of this to run; it is found with dlsym like the rest. */
#ifndef SOFTMETAL_H
#define SOFTMETAL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SM_EXTENSION __attribute__((visibility("default")))

/* How many times a message was not understood, a call broke a rule of the API or a
 * command buffer failed since the last call of this; text (may be NULL) gets the last one. */
SM_EXTENSION long sm_failures(char *text, size_t size);

/* Instances alive of the class so named ("MTLBuffer"); NULL: of all classes. */
SM_EXTENSION int sm_objects_alive(const char *class_name);

/* Faults to inject from now on, as SM_FAULT (README.md); NULL: none. Counting begins
 * again. 0, or -1 when the text is not understood. */
SM_EXTENSION int sm_inject(const char *faults);

/* What Apple's compiler would refuse in a text: NULL, or the complaints, one a line,
 * "file:line: error: ...", to be released with free(). file: its name in them, or NULL. */
SM_EXTENSION char *sm_lint(const char *source, size_t length, const char *file);
/* The same for a file; "-Ifolder" for its #include "...", NULL at the end. One that cannot
 * be read is a complaint. */
SM_EXTENSION char *sm_lint_file(const char *path, const char *const *folders);

#ifdef __cplusplus
}
#endif

#endif
