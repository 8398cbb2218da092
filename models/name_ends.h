/* Tests the end of a name: ".tsv" of a file, ".weight" of a tensor. */
#ifndef MICA_MODELS_NAME_ENDS_H
#define MICA_MODELS_NAME_ENDS_H

#include <stdbool.h>
#include <string.h>

static inline bool mica__name_ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

#endif
