/* Growable text, and messages. A text that ran out of memory stays valid and sets
 * `failed`, so that callers check once, at the end. */
#ifndef SOFTMETAL_TEXT_H
#define SOFTMETAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sm_text {
    char *bytes; /* NUL-terminated unless NULL */
    size_t length, room;
    bool failed;
} sm_text;

#define SM_PRINTF(format_index) __attribute__((format(printf, format_index, (format_index) + 1)))

void sm_text_add(sm_text *text, const char *bytes, size_t length);
void sm_text_print(sm_text *text, const char *format, ...) SM_PRINTF(2);
void sm_text_free(sm_text *text);

/* Stores the text in *message. An existing message is kept: the first cause is the one to report. */
void sm_set_message(char **message, const char *format, ...) SM_PRINTF(2);

/* Makes room for count + 1 elements of a list; false: out of memory. */
bool sm_grow(void **list, int count, int *room, size_t size);

/* Reads a whole file as text. */
bool sm_text_read(sm_text *text, const char *path);
/* Writes a temporary file, then renames it: other processes see all of it or nothing. */
bool sm_file_write(const char *path, const void *bytes, size_t length);

/* 128 bits; names the cache files. */
typedef struct sm_hash {
    uint64_t a, b;
} sm_hash;
void sm_hash_start(sm_hash *hash);
void sm_hash_add(sm_hash *hash, const void *bytes, size_t length);
void sm_hash_text(sm_hash *hash, const char *text); /* includes the NUL, so that "a","b" differs from "ab" */
void sm_hash_name(const sm_hash *hash, char name[33]);

#endif
