/* A strict JSON reader that hands out one token at a time, so that a header of
 * 100 MB costs the memory of what is taken from it and no more.
 *
 * Strict: RFC 8259 to the letter, valid UTF-8, no lone surrogates, no key twice in
 * one object (reported where the object ends), bounded depth and number of keys.
 * The first failure sticks: mica__json_next keeps returning MICA__JSON_ERROR, and
 * the sentence names the byte. */
#ifndef MICA_IO_JSON_H
#define MICA_IO_JSON_H

#include "base/arena.h"
#include "base/status.h"

typedef enum mica__json_token {
    MICA__JSON_ERROR,
    MICA__JSON_END,      /* the text is over                            */
    MICA__JSON_OBJECT,   /* { */
    MICA__JSON_OBJECT_END,
    MICA__JSON_ARRAY,    /* [ */
    MICA__JSON_ARRAY_END,
    MICA__JSON_KEY,      /* string, length; its value comes next        */
    MICA__JSON_STRING,
    MICA__JSON_NUMBER,   /* string, length: as it is written            */
    MICA__JSON_TRUE,
    MICA__JSON_FALSE,
    MICA__JSON_NULL
} mica__json_token;

enum { MICA__JSON_DEPTH = 64 };

typedef struct mica__json_key {
    const char *text;
    size_t length;
} mica__json_key;

typedef struct mica__json {
    const char *string; /* of the last token, decoded; not NUL-terminated; lives as long as the reader */
    size_t length;
    int depth;          /* open objects and arrays */
    /* inside */
    const char *what;
    const char *text;
    size_t size, at, base;
    int max_depth;
    size_t max_keys;
    mica_status status;
    int state;
    bool in_object[MICA__JSON_DEPTH];
    size_t first_key[MICA__JSON_DEPTH];
    mica__json_key *keys; /* of open objects */
    size_t n_keys, cap_keys;
    mica__arena arena;    /* strings that had escapes */
} mica__json;

/* what begins each message; base is added to its byte numbers. */
void mica__json_begin(mica__json *j, const char *what, const void *text, size_t size, size_t base, int max_depth,
                      size_t max_keys);
void mica__json_end(mica__json *j);
mica__json_token mica__json_next(mica__json *j);
/* The next value, whatever it is, without looking at it. */
mica_status mica__json_skip(mica__json *j);
/* A place to read from again: taken between two tokens, in a container that is
 * still open when it is gone back to. */
typedef struct mica__json_mark {
    size_t at, n_keys;
    int depth, state;
} mica__json_mark;
mica__json_mark mica__json_here(const mica__json *j);
void mica__json_back(mica__json *j, mica__json_mark mark);
/* The next token must be this one; else a sentence that says what was wanted. */
mica_status mica__json_expect(mica__json *j, mica__json_token token, const char *wanted);
/* Fails at the byte where the reader is. */
mica_status mica__json_fail(mica__json *j, const char *sentence);
/* The failure of a reader that returned MICA__JSON_ERROR. */
mica_status mica__json_status(const mica__json *j);
bool mica__json_is(const mica__json *j, const char *text);

/* Of the last token, a number: an integer in plain digits below 2^63; any; is it
 * written as an integer, and does it fit into 64 bits? */
mica_status mica__json_i64(mica__json *j, int64_t *out);
mica_status mica__json_f64(mica__json *j, double *out);
bool mica__json_is_i64(const mica__json *j, int64_t *out);

bool mica__utf8_valid(const void *text, size_t size);

#endif
