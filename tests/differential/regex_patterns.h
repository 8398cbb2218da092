/* Generates patterns of the syntax that text/regex.h describes, and texts that they match often. */
#ifndef MICA_DIFFERENTIAL_REGEX_PATTERNS_H
#define MICA_DIFFERENTIAL_REGEX_PATTERNS_H

#include "differential.h"

/* A pattern, a zero byte, and texts with a zero byte between them. */
void regex_generate(uint64_t *random, differ_bytes *out);
/* Is this the last generated pattern, and was it made of mica's own syntax only? Then mica must not refuse it. */
bool regex_is_promised(const uint8_t *pattern, size_t n);

#endif
