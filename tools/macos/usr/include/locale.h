/* See tools/macos/README.md. */
#ifndef MICA_MACOS_LOCALE_H
#define MICA_MACOS_LOCALE_H
#include <stddef.h>

struct lconv {
    char *decimal_point; /* the first member; the others are not used */
};

struct lconv *localeconv(void);
char *setlocale(int category, const char *name);

#endif
