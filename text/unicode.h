/* Unicode characters: UTF-8 and general categories. */
#ifndef MICA_TEXT_UNICODE_H
#define MICA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The two letters of Unicode's general categories. */
typedef enum mica__category {
    MICA__CN,
    MICA__LU,
    MICA__LL,
    MICA__LT,
    MICA__LM,
    MICA__LO,
    MICA__MN,
    MICA__MC,
    MICA__ME,
    MICA__ND,
    MICA__NL,
    MICA__NO,
    MICA__PC,
    MICA__PD,
    MICA__PS,
    MICA__PE,
    MICA__PI,
    MICA__PF,
    MICA__PO,
    MICA__SM,
    MICA__SC,
    MICA__SK,
    MICA__SO,
    MICA__ZS,
    MICA__ZL,
    MICA__ZP,
    MICA__CC,
    MICA__CF,
    MICA__CS,
    MICA__CO
} mica__category;

mica__category mica__unicode_category(uint32_t c);
bool mica__unicode_space(uint32_t c); /* the property White_Space */

/* Decodes the character at p and returns its length; room must be at least 1. A byte that
 * begins no valid character gives U+FFFD with length 1. */
size_t mica__utf8_get(const char *p, size_t room, uint32_t *c);
/* Encodes c and returns the number of bytes. */
size_t mica__utf8_set(uint32_t c, char out[4]);
/* The length of a character whose first byte this is; 1 if no longer character begins with it. */
size_t mica__utf8_expected(unsigned char first);

#endif
