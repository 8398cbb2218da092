/* See env.h. */
#include "base/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__APPLE__)
#include <crt_externs.h> /* a dylib has no environ */
#define environ (*_NSGetEnviron())
#else
extern char **environ;
#endif

enum { WORD_MAX = 40, SHOWN = 80 }; /* longest word compared for "did you mean"; bytes of a value in a message */

static const mica__env_info env_table[] = {
#define X(id, name, kind, words, least, most, preset, help) \
    {name, MICA__ENV_KIND_##kind, words, least, most, preset, help},
#include "base/env.def"
#undef X
};

const mica__env_info *mica__env_get(mica__env_name name)
{
    return (unsigned)name < MICA__ENV_COUNT ? &env_table[name] : NULL;
}

const char *mica__env(mica__env_name name)
{
    const char *value = (unsigned)name < MICA__ENV_COUNT ? getenv(env_table[name].name) : NULL;
    return value && *value ? value : NULL;
}

/* ----------------------------------------------------------------- words --- */

/* Returns the first word of a list and moves *list to the next one. NULL at the end. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list;
    if (!word) return NULL;
    *length = strcspn(word, ",");
    *list = word[*length] ? word + *length + 1 : NULL;
    return word;
}

/* The position of a word in a list, or -1. An empty list has no words. */
static int word_index(const char *list, const char *word, size_t length)
{
    size_t n;
    const char *rest = list, *at;
    for (int i = 0; *list && (at = next_word(&rest, &n)) != NULL; i++)
        if (n == length && memcmp(at, word, n) == 0) return i;
    return -1;
}

/* Levenshtein distance: the insertions, deletions and replacements that turn b into a. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[WORD_MAX + 1];
    if (a_length > WORD_MAX || b_length > WORD_MAX) return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++) row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t above = row[j], replaced = diagonal + (a[i - 1] != b[j - 1]);
            const size_t moved = 1 + (above < row[j - 1] ? above : row[j - 1]);
            row[j] = replaced < moved ? replaced : moved;
            diagonal = above;
        }
    }
    return row[b_length];
}

/* The word of the list that is nearest to a misspelt one; NULL if all differ in more than a third of its letters. */
static const char *nearest_word(const char *list, const char *word, size_t length, size_t *nearest_length)
{
    const char *nearest = NULL, *rest = list, *at;
    size_t n, best = 1 + length / 3;
    while (*list && (at = next_word(&rest, &n)) != NULL) {
        const size_t distance = edit_distance(word, length, at, n);
        if (distance > best || (nearest && distance == best)) continue;
        best = distance;
        nearest = at;
        *nearest_length = n;
    }
    return nearest;
}

/* -------------------------------------------------------------- checking --- */

static void add_words(mica__text *text, const char *list)
{
    size_t n;
    const char *rest = list, *at;
    for (int i = 0; *list && (at = next_word(&rest, &n)) != NULL; i++)
        mica__text_add(text, "%s%.*s", i ? ", " : "", (int)n, at);
}

void mica__env_allowed(mica__env_name name, mica__text *text)
{
    const mica__env_info *v = mica__env_get(name);
    if (!v) return;
    switch (v->kind) {
    case MICA__ENV_KIND_FLAG: mica__text_add(text, "0 or 1"); return;
    case MICA__ENV_KIND_INTEGER: mica__text_add(text, "a number from %ld to %ld", v->least, v->most); return;
    case MICA__ENV_KIND_WORD: mica__text_add(text, "one of: "); break;
    case MICA__ENV_KIND_WORDS: mica__text_add(text, "one or more, separated by commas, of: "); break;
    case MICA__ENV_KIND_PATH: mica__text_add(text, v->words[0] ? "a path, or " : "a path"); break;
    }
    add_words(text, v->words);
}

/* The first part of the value that is not allowed, and its length; NULL if the value is allowed. */
static const char *wrong_part(const mica__env_info *v, const char *value, size_t *length)
{
    char *end;
    const char *rest = value, *word;
    *length = strlen(value);
    switch (v->kind) {
    case MICA__ENV_KIND_FLAG: return strcmp(value, "0") == 0 || strcmp(value, "1") == 0 ? NULL : value;
    case MICA__ENV_KIND_INTEGER: {
        errno = 0;
        const long n = strtol(value, &end, 10);
        const bool digits = strspn(value, "0123456789") == *length;
        return digits && !errno && n >= v->least && n <= v->most ? NULL : value;
    }
    case MICA__ENV_KIND_WORD: return word_index(v->words, value, *length) >= 0 ? NULL : value;
    case MICA__ENV_KIND_WORDS:
        while ((word = next_word(&rest, length)) != NULL)
            if (word_index(v->words, word, *length) < 0) return word;
        return NULL;
    case MICA__ENV_KIND_PATH: break;
    }
    return NULL;
}

mica_status mica__env_check(mica__env_name name)
{
    const mica__env_info *v = mica__env_get(name);
    const char *value = mica__env(name);
    size_t length, near_length = 0;
    const char *wrong = value ? wrong_part(v, value, &length) : NULL;
    if (!wrong) return MICA_OK;
    char buffer[MICA__ERROR_TEXT];
    mica__text text;
    mica__text_init(&text, buffer, sizeof buffer);
    mica__text_add(&text, "environment: %s is \"%.*s\", not ", v->name, SHOWN, value);
    mica__env_allowed(name, &text);
    const int shown = length < SHOWN ? (int)length : SHOWN;
    if (v->kind == MICA__ENV_KIND_WORDS) mica__text_add(&text, "; there is no \"%.*s\"", shown, wrong);
    const char *near = nearest_word(v->words, wrong, length, &near_length);
    if (near) mica__text_add(&text, "; did you mean \"%.*s\"?", (int)near_length, near);
    return mica__fail(MICA_ERR_ARGUMENT, "%s", buffer);
}

mica_status mica__env_check_all(void)
{
    for (int i = 0; i < MICA__ENV_COUNT; i++) MICA_TRY(mica__env_check((mica__env_name)i));
    return MICA_OK;
}

/* ---------------------------------------------------------------- values --- */

bool mica__env_flag(mica__env_name name, bool preset)
{
    const char *value = mica__env(name);
    return value ? value[0] != '0' : preset;
}

long mica__env_integer(mica__env_name name, long preset)
{
    const char *value = mica__env(name);
    return value ? strtol(value, NULL, 10) : preset;
}

uint32_t mica__env_words(mica__env_name name)
{
    const mica__env_info *v = mica__env_get(name);
    const char *rest = mica__env(name), *word;
    uint32_t mask = 0;
    size_t n;
    while ((word = next_word(&rest, &n)) != NULL) {
        const int i = word_index(v->words, word, n);
        if (i >= 0) mask |= (uint32_t)1 << i;
    }
    return mask;
}

/* -------------------------------------------------------------- printing --- */

/* Variables of tests and scripts have the same prefix but are not read by the library. */
static bool is_foreign(const char *entry)
{
    static const char *const prefixes[] = {"MICA_TEST_", "MICA_UPDATE_GOLDEN="};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return strncmp(entry, "MICA_", 5) != 0;
}

static void print_unknown(mica__text *text, const char *entry)
{
    const size_t length = strcspn(entry, "=");
    const char *nearest = NULL;
    size_t best = 1 + length / 3;
    for (int i = 0; i < MICA__ENV_COUNT; i++) {
        const size_t distance = edit_distance(entry, length, env_table[i].name, strlen(env_table[i].name));
        if (distance == 0) return;
        if (distance < best) best = distance, nearest = env_table[i].name;
    }
    const int shown = length < SHOWN ? (int)length : SHOWN;
    mica__text_add(text, "%.*s: set, but not a variable of mica", shown, entry);
    if (nearest) mica__text_add(text, "; did you mean %s?", nearest);
    mica__text_add(text, "\n");
}

void mica__env_print(mica__text *text)
{
    int n_set = 0;
    for (int i = 0; i < MICA__ENV_COUNT; i++) {
        const char *value = mica__env((mica__env_name)i);
        if (!value) continue;
        n_set++;
        if (mica__env_check((mica__env_name)i) != MICA_OK) mica__text_add(text, "%s\n", mica_last_error());
        else mica__text_add(text, "%s: \"%s\" (%s)\n", env_table[i].name, value, env_table[i].help);
    }
    mica__text_add(text, "environment: %d of %d variables set; not set:", n_set, (int)MICA__ENV_COUNT);
    for (int i = 0; i < MICA__ENV_COUNT; i++)
        if (!mica__env((mica__env_name)i)) mica__text_add(text, " %s", env_table[i].name);
    mica__text_add(text, "\n");
    for (char **entry = environ; entry && *entry; entry++)
        if (!is_foreign(*entry)) print_unknown(text, *entry);
}
