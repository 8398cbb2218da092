/* Environment variables. One table (env.def) describes all variables that the library reads. mica_open checks every
 * variable that is set, so a misspelt value is an error and is never ignored. */
#ifndef MICA_BASE_ENV_H
#define MICA_BASE_ENV_H

#include "base/text.h"

typedef enum mica__env_name {
#define X(id, name, kind, words, least, most, preset, help) MICA__ENV_##id,
#include "base/env.def"
#undef X
    MICA__ENV_COUNT
} mica__env_name;

typedef enum mica__env_kind {
    MICA__ENV_KIND_FLAG,    /* 0 or 1                                               */
    MICA__ENV_KIND_INTEGER, /* a decimal number from least to most                  */
    MICA__ENV_KIND_WORD,    /* one of the words                                     */
    MICA__ENV_KIND_WORDS,   /* one or more of the words, separated by commas        */
    MICA__ENV_KIND_PATH     /* a path, or one of the words; not checked further     */
} mica__env_kind;

typedef struct mica__env_info {
    const char *name;
    mica__env_kind kind;
    const char *words;
    long least, most;
    const char *preset, *help;
} mica__env_info;

const mica__env_info *mica__env_get(mica__env_name name);
/* Appends the allowed values: "0 or 1", "a number from 1 to 256", "one of: metal, cpu, ref". */
void mica__env_allowed(mica__env_name name, mica__text *text);

/* The value, or NULL when the variable is not set or empty. */
const char *mica__env(mica__env_name name);
/* MICA_ERR_ARGUMENT if the value is not allowed; the message has the variable, its value, the allowed values and the
 * nearest allowed word. */
mica_status mica__env_check(mica__env_name name);
mica_status mica__env_check_all(void);

/* Values of checked variables. If the variable is not set, they return preset, preset and 0. */
bool mica__env_flag(mica__env_name name, bool preset);
long mica__env_integer(mica__env_name name, long preset);
/* Bit i is set if word i of the table is in the value. */
uint32_t mica__env_words(mica__env_name name);

/* Prints a line for each variable that is set, with its value or its error message, then the names of those that are
 * not set, then variables that begin with MICA_ but are not in the table. */
void mica__env_print(mica__text *text);

#endif
