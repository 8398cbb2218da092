/* See tools/macos/README.md. */
#ifndef MICA_MACOS_STRINGS_H
#define MICA_MACOS_STRINGS_H
#include <stddef.h>

int strcasecmp(const char *a, const char *b);
int strncasecmp(const char *a, const char *b, size_t n);

#endif
