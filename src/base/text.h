/* Appends text to a caller's buffer: writes what fits and counts the full length,
 * like snprintf. */
#ifndef MICA_BASE_TEXT_H
#define MICA_BASE_TEXT_H

#include "base/status.h"

typedef struct mica__text {
    char *buffer;   /* may be NULL with cap 0: only counts */
    size_t cap;
    size_t length;  /* of the whole text, without the NUL  */
} mica__text;

void mica__text_init(mica__text *text, char *buffer, size_t cap);
void mica__text_add(mica__text *text, const char *fmt, ...) MICA_PRINTF(2, 3);

/* Writes "(2, 3)" into the caller's buffer and returns it. The buffer has room for
 * 8 sizes of 20 digits. */
enum { MICA__SHAPE_TEXT = 200 };
const char *mica__shape_text(char buffer[MICA__SHAPE_TEXT], int ndim, const int64_t *shape);

#endif
