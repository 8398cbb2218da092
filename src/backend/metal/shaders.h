/* The Metal shaders inside the library. #include lines are replaced by the text of the file,
 * once each, because a device compiles one text and cannot open files. */
#ifndef MICA_BACKEND_METAL_SHADERS_H
#define MICA_BACKEND_METAL_SHADERS_H

#include "base/text.h"

/* The text of a file ("softmax.metal"); MICA_ERR_INTERNAL if the file, or a file that it
 * includes, does not exist. #line directives keep line numbers and file names for the
 * compiler's messages. */
mica_status mica__shader_text(const char *file, mica__text *text);

/* For tests: the name of file i; NULL after the last. */
const char *mica__shader_name(size_t i);

#endif
