/* Regular expressions for tokenizers: the features that patterns of tokenizer.json use.
 * Hostile patterns are safe.
 *
 * Characters, classes with ranges, \s \S \d \D \w \p{..} \P{..}, \r \n \t \xHH \x{H}
 * \uHHHH, ., groups (?:..) (..) (?i:..), alternatives, ? * + {m} {m,} {m,n} greedy or,
 * with a + after them, possessive (a lazy ? is refused), (?=..) (?!..), ^ $.
 * The first alternative that matches wins, as in Perl. A match that needs too many
 * steps returns an error, so no pattern can hang. */
#ifndef MICA_TEXT_REGEX_H
#define MICA_TEXT_REGEX_H

#include "base/arena.h"
#include "base/status.h"

typedef struct mica__regex mica__regex;

/* *out is in the arena. MICA_ERR_UNSUPPORTED, with the position, for any other syntax. */
mica_status mica__regex_new(mica__arena *arena, const char *pattern, size_t length, mica__regex **out);

/* The backtracking stack, reused between matches. Start with {0}; free it with mica__regex_stack_free. */
typedef struct mica__regex_stack {
    uint64_t *entries;
    size_t cap;
} mica__regex_stack;
void mica__regex_stack_free(mica__regex_stack *stack);

/* *end is the end of the match that begins exactly at `at`, SIZE_MAX if there is none. */
mica_status mica__regex_match(const mica__regex *re, const char *text, size_t length, size_t at,
                              mica__regex_stack *stack, size_t *end);

#endif
