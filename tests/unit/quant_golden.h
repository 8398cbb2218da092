/* Reads hex bytes from the golden files of the block formats. */
#ifndef MICA_TEST_QUANT_GOLDEN_H
#define MICA_TEST_QUANT_GOLDEN_H

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* Reads hex digits at *text, up to cap bytes, and moves *text past them. */
static inline size_t golden_hex(const char **text, uint8_t *out, size_t cap)
{
    size_t n = 0;
    while (**text == ' ' || **text == ':') ++*text;
    for (unsigned v; n < cap && isxdigit((unsigned char)(*text)[0]) && sscanf(*text, "%2x", &v) == 1; *text += 2)
        out[n++] = (uint8_t)v;
    return n;
}

/* x = ((s >> 16) - 32768) / 4096, as golden_quant.py makes it. */
static inline void golden_stream(uint32_t seed, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 16) - 32768) / 4096;
    }
}

/* Calls fn for each line of a file; false if it cannot be opened. */
static inline bool golden_lines(const char *path, void (*fn)(const char *line))
{
    FILE *f = fopen(path, "r");
    if (!f) return false;
    static char line[1 << 16];
    while (fgets(line, sizeof line, f)) fn(line);
    fclose(f);
    return true;
}

#endif
