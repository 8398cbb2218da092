/* Regular expressions as tokenizers use them: enough to run the patterns of any
 * tokenizer.json, small enough to be proved against hostile ones.
 *
 * Characters, classes with ranges, \s \S \d \D \w \W \p{..} \P{..}, \r \n \t \xHH \x{H}
 * \uHHHH, ., groups (?:..) (..) (?i:..), alternatives, ? * + {m} {m,} {m,n} greedy (a
 * lazy ? after them is refused), possessive + taken as greedy, (?=..) (?!..), ^ $.
 * Leftmost, first alternative, as Perl. A match that takes too many steps fails
 * with a status, so no pattern can hang. */
#ifndef MICA_TEXT_REGEX_H
#define MICA_TEXT_REGEX_H

#include "base/arena.h"
#include "base/status.h"

typedef struct mica__regex mica__regex;

/* In the arena. MICA_ERR_UNSUPPORTED for what is not read, with the place. */
mica_status mica__regex_new(mica__arena *arena, const char *pattern, size_t length, mica__regex **out);

/* Room for the search, to be used again; zero at first, then freed. */
typedef struct mica__regex_stack {
    uint64_t *entries;
    size_t cap;
} mica__regex_stack;
void mica__regex_stack_free(mica__regex_stack *stack);

/* The end of the match that begins exactly at `at`; *end is SIZE_MAX if none does. */
mica_status mica__regex_match(const mica__regex *re, const char *text, size_t length, size_t at,
                              mica__regex_stack *stack, size_t *end);

#endif
