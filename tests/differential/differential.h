/* The driver of the differential fuzzers: the same input goes to a parser of mica and to the library that does the
 * same job, and both must give the same result.
 *
 *     build/tests/differential/diff_NAME [--runs N] [--seed S] [--jobs J] [--case C | FILE...]
 *
 * A program states how to generate an input and how to compare. The driver mutates inputs, adds the corpus of the
 * fuzzer, runs J processes, counts, and writes each input with an unlisted difference to BUILD/differential/. */
#ifndef MICA_DIFFERENTIAL_H
#define MICA_DIFFERENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "parity_data.h" /* parity_random */

/* Bytes that grow. Out of memory ends the program. */
typedef struct differ_bytes {
    uint8_t *data;
    size_t n, cap;
} differ_bytes;

void differ_put(differ_bytes *b, const void *data, size_t n);
static inline void differ_text(differ_bytes *b, const char *text) { differ_put(b, text, strlen(text)); }
static inline void differ_byte(differ_bytes *b, unsigned c) { differ_put(b, &(uint8_t){(uint8_t)c}, 1); }
void differ_format(differ_bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The code point in UTF-8; surrogates too, which gives invalid UTF-8. */
void differ_utf8(differ_bytes *b, uint32_t c);

/* In [0, n). */
static inline unsigned differ_below(uint64_t *random, unsigned n)
{
    return (unsigned)((parity_random(random) >> 32) * n >> 32);
}
/* True in one of n cases. */
static inline bool differ_one_in(uint64_t *random, unsigned n) { return differ_below(random, n) == 0; }
#define DIFFER_PICK(random, array) ((array)[differ_below(random, (unsigned)(sizeof(array) / sizeof(array)[0]))])

/* A difference that is intended. Every input that shows it is counted under its name. */
typedef struct differ_reason {
    const char *name, *why;
} differ_reason;

enum { DIFFER_REASONS = 40 };

/* The state of a run, given to `compare`. */
typedef struct differ differ;

typedef struct differ_program {
    const char *name, *peer; /* "json", "jansson 2.14"                                          */
    const char *corpus;      /* a folder of tests/fuzz/corpus, whose files are also mutated; NULL: none */
    const differ_reason *reasons;
    int n_reasons;
    void (*begin)(void);     /* (optional) called in each process before the first input        */
    void (*generate)(uint64_t *random, differ_bytes *out);
    /* Calls one of the three functions below for each comparison that the bytes contain: several texts for one
     * pattern, several contexts for one template. Each counts as an input. */
    void (*compare)(differ *d, const uint8_t *data, size_t size);
} differ_program;

/* Both accepted the input and gave the same value, or both refused it. */
void differ_agree(differ *d, bool accepted);
/* A listed difference: an index of differ_program.reasons. */
void differ_listed(differ *d, int reason);
/* Any other difference: the run fails. */
void differ_fail(differ *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A position in `text` for error messages: the first byte at which a and b differ. */
size_t differ_first(const void *a, size_t n, const void *b, size_t m);

/* The main function of a program. */
int differ_main(const differ_program *program, int argc, char **argv);

#endif
