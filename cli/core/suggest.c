/* "did you mean": the name with the smallest edit distance to what was typed. */
#include <string.h>

#include "core/command.h"

enum { LONGEST = 40 };

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least_of(replaced, least_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void cli_suggest(cli_suggestion *s, const char *name)
{
    const size_t length = strlen(s->typed);
    size_t distance = edit_distance(s->typed, name);
    const size_t limit = length < 4 ? 1 : length < 8 ? 2 : length / 3;
    /* a prefix of a name counts as one wrong letter */
    if (length >= 4 && distance > 1 && strncmp(name, s->typed, length) == 0) distance = 1;
    if (distance > limit || distance >= strlen(name) || (s->best && distance >= s->distance)) return;
    s->best = name;
    s->distance = distance;
}
