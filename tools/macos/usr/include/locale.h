/* See tools/macos/README.md. */
#ifndef MICA_MACOS_LOCALE_H
#define MICA_MACOS_LOCALE_H

#define LC_ALL 0
#define LC_NUMERIC 4

struct lconv {
    char *decimal_point; /* the first member; what follows is not used */
};

struct lconv *localeconv(void);
char *setlocale(int category, const char *name);

#endif
