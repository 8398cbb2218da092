/* Numbers as text, with a point whatever the locale of the program is: a German one has
 * strtod stop at a point and printf write a comma, and files would mean other numbers. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

bool mica__number_parse(const char *text, size_t length, double *value)
{
    enum { MOST = 64, POINT = 8 };
    const char *point = localeconv()->decimal_point;
    char copy[MOST + POINT], *end;
    if (length == 0 || length >= MOST) return false;
    const char *dot = memchr(text, '.', length);
    const size_t before = dot ? (size_t)(dot - text) : length, width = dot ? strnlen(point, POINT) : 0;
    memcpy(copy, text, before);
    memcpy(copy + before, point, width);
    if (dot) memcpy(copy + before + width, dot + 1, length - before - 1);
    copy[length + width - (dot != NULL)] = '\0';
    *value = strtod(copy, &end);
    return *end == '\0';
}

const char *mica__number_print(double value, char at[MICA__NUMBER])
{
    const char *point = localeconv()->decimal_point;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(at, MICA__NUMBER, "%.*g", digits, value);
        if (strtod(at, NULL) == value) break;
    }
    char *found = strcmp(point, ".") == 0 ? NULL : strstr(at, point);
    if (found) {
        const size_t width = strlen(point);
        *found = '.';
        memmove(found + 1, found + width, strlen(found + width) + 1);
    }
    return at;
}
