/* The Metal text inside the library, whole: includes are put in where they stand, once
 * each, because a device compiles one text and has no folder to look in. */
#ifndef MICA_BACKEND_METAL_SHADERS_H
#define MICA_BACKEND_METAL_SHADERS_H

#include "base/text.h"

/* The text of a file by its name ("softmax.metal"); MICA_ERR_INTERNAL if there is none,
 * or if it includes what there is not. Lines keep their numbers and files their names
 * (#line), so that a compiler's message can be read. */
mica_status mica__shader_text(const char *file, mica__text *text);

/* The files, for tests: the name of number i; NULL past the last. */
const char *mica__shader_name(size_t i);

#endif
