/* Appending text to a buffer of fixed size. */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void mica__text_init(mica__text *text, char *buffer, size_t cap)
{
    *text = (mica__text){buffer, buffer ? cap : 0, 0};
    if (text->cap) buffer[0] = '\0';
}

void mica__text_add(mica__text *text, const char *fmt, ...)
{
    const bool room = text->length < text->cap;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(room ? text->buffer + text->length : NULL, room ? text->cap - text->length : 0, fmt, args);
    va_end(args);
    if (n > 0) text->length += (size_t)n;
}

const char *mica__shape_text(char buffer[MICA__SHAPE_TEXT], int ndim, const int64_t *shape)
{
    mica__text text;
    mica__text_init(&text, buffer, MICA__SHAPE_TEXT);
    mica__text_add(&text, "(");
    /* ndim may be out of range: error messages print refused shapes too. */
    for (int i = 0; i < ndim && i < MICA_MAX_DIMS; i++) mica__text_add(&text, i ? ", %" PRId64 : "%" PRId64, shape[i]);
    mica__text_add(&text, ndim > MICA_MAX_DIMS ? ", ...)" : ")");
    return buffer;
}
