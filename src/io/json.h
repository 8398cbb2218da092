/* A strict JSON reader that returns one token at a time, so that a header of 100 MB
 * needs memory only for the values that the caller stores.
 *
 * Strict means: exactly RFC 8259, valid UTF-8, no lone surrogates, no duplicate key in
 * an object (reported where the object ends), bounded depth and number of keys.
 * The first failure sticks: mica__json_next keeps returning MICA__JSON_ERROR. The
 * error message has the byte offset. */
#ifndef MICA_IO_JSON_H
#define MICA_IO_JSON_H

#include "base/arena.h"
#include "base/status.h"

typedef enum mica__json_token {
    MICA__JSON_ERROR,
    MICA__JSON_END,      /* end of the text                             */
    MICA__JSON_OBJECT,   /* { */
    MICA__JSON_OBJECT_END,
    MICA__JSON_ARRAY,    /* [ */
    MICA__JSON_ARRAY_END,
    MICA__JSON_KEY,      /* string, length; its value is the next token */
    MICA__JSON_STRING,
    MICA__JSON_NUMBER,   /* string, length: the text of the number      */
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
    const char *string; /* of the last token, decoded; not NUL-terminated; valid as long as the reader */
    size_t length;
    int depth;          /* open objects and arrays */
    /* private */
    const char *what;
    const char *text;
    size_t size, at, base;
    int max_depth;
    size_t max_keys;
    mica_status status;
    int state;
    bool in_object[MICA__JSON_DEPTH];
    size_t first_key[MICA__JSON_DEPTH];
    mica__json_key *keys; /* keys of open objects, to detect duplicates */
    size_t n_keys, cap_keys;
    mica__arena arena;    /* strings that had escapes */
} mica__json;

/* what is the prefix of error messages; base is added to their byte offsets. */
void mica__json_begin(mica__json *j, const char *what, const void *text, size_t size, size_t base, int max_depth,
                      size_t max_keys);
void mica__json_end(mica__json *j);
mica__json_token mica__json_next(mica__json *j);
/* Skips the next value of any type. */
mica_status mica__json_skip(mica__json *j);
/* A position to return to, between two tokens. Its container must still be open when
 * mica__json_restore is called. */
typedef struct mica__json_mark {
    size_t at, n_keys;
    int depth, state;
} mica__json_mark;
mica__json_mark mica__json_save(const mica__json *j);
void mica__json_restore(mica__json *j, mica__json_mark mark);
/* The next token must be this one; otherwise the error message names `wanted`. */
mica_status mica__json_expect(mica__json *j, mica__json_token token, const char *wanted);
/* Fails with this error message and the reader's byte offset. */
mica_status mica__json_fail(mica__json *j, const char *sentence);
/* The failure of a reader that returned MICA__JSON_ERROR. */
mica_status mica__json_status(const mica__json *j);
bool mica__json_is(const mica__json *j, const char *text);

/* The value of the last token, a number. i64 accepts integers in plain digits below
 * 2^63, f64 any number. is_i64: is it written as an integer that fits into i64? */
mica_status mica__json_i64(mica__json *j, int64_t *out);
mica_status mica__json_f64(mica__json *j, double *out);
bool mica__json_is_i64(const mica__json *j, int64_t *out);

bool mica__utf8_valid(const void *text, size_t size);

#endif
