/* See settings.h. */
#include "settings/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

typedef struct setting_row {
    const char *name;
    sm_setting_kind kind;
    const char *words;
    double least, most;
} setting_row;

static const setting_row rows[] = {
#define X(id, name, kind, words, least, most) {name, SM_SETTING_##kind, words, least, most},
#include "settings/settings.def"
#undef X
};

/* ---- values ---- */

static bool parse_integer(const setting_row *r, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 0);
    if (!isdigit((unsigned char)*text) || *end || errno || (double)n < r->least || (double)n > r->most) return false;
    *out = n;
    return true;
}

static bool parse_seconds(const setting_row *r, const char *text, double *out)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x >= r->least && x <= r->most)) return false;
    *out = x;
    return true;
}

static bool parse_word(const setting_row *r, const char *text, int *out)
{
    const size_t length = strlen(text);
    int i = 0;
    for (const char *at = r->words;; i++) {
        const size_t n = strcspn(at, ",");
        if (n == length && memcmp(at, text, n) == 0) {
            *out = i;
            return true;
        }
        if (!at[n]) return false;
        at += n + 1;
    }
}

static bool parse_flag(const char *text, bool *out)
{
    *out = strcmp(text, "1") == 0;
    return *out || strcmp(text, "0") == 0;
}

const char *sm_setting_text(sm_setting s)
{
    const char *text = getenv(rows[s].name);
    return text && *text ? text : NULL;
}

bool sm_setting_flag(sm_setting s)
{
    const char *text = sm_setting_text(s);
    bool on = false;
    return text && parse_flag(text, &on) && on;
}

uint64_t sm_setting_integer(sm_setting s, uint64_t preset)
{
    const char *text = sm_setting_text(s);
    uint64_t n;
    return text && parse_integer(&rows[s], text, &n) ? n : preset;
}

double sm_setting_seconds(sm_setting s, double preset)
{
    const char *text = sm_setting_text(s);
    double x;
    return text && parse_seconds(&rows[s], text, &x) ? x : preset;
}

int sm_setting_word(sm_setting s)
{
    const char *text = sm_setting_text(s);
    int i = 0;
    return text && parse_word(&rows[s], text, &i) ? i : 0;
}

/* ---- checks ---- */

/* Levenshtein distance of two names; SIZE_MAX for long ones. */
static size_t distance(const char *a, size_t n, const char *b)
{
    enum { MOST = 16 };
    size_t row[MOST + 1];
    const size_t m = strlen(b);
    if (n > MOST || m > MOST) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t above = row[j], change = diagonal + (a[i - 1] != b[j - 1]);
            const size_t edit = (above < row[j - 1] ? above : row[j - 1]) + 1;
            row[j] = change < edit ? change : edit;
            diagonal = above;
        }
    }
    return row[m];
}

static bool check_value(const setting_row *r, const char *text, char *message, size_t size)
{
    uint64_t n;
    double x;
    int i;
    bool on;
    switch (r->kind) {
    case SM_SETTING_FLAG:
        if (parse_flag(text, &on)) return true;
        snprintf(message, size, "%s=%.80s: it is 0 or 1", r->name, text);
        return false;
    case SM_SETTING_INTEGER:
        if (parse_integer(r, text, &n)) return true;
        snprintf(message, size, "%s=%.80s: it is an integer from %.0f to %.0f", r->name, text, r->least, r->most);
        return false;
    case SM_SETTING_SECONDS:
        if (parse_seconds(r, text, &x)) return true;
        snprintf(message, size, "%s=%.80s: it is a number of seconds from %g to %g", r->name, text, r->least, r->most);
        return false;
    case SM_SETTING_WORD:
        if (parse_word(r, text, &i)) return true;
        snprintf(message, size, "%s=%.80s: it is one of %s", r->name, text, r->words);
        return false;
    case SM_SETTING_TEXT: break;
    }
    return true;
}

/* Checks the variable NAME=VALUE of the environment. */
static bool check_variable(const char *variable, char *message, size_t size)
{
    const size_t n = strcspn(variable, "=");
    const setting_row *nearest = NULL;
    size_t least = 3; /* two typing errors */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t d = distance(variable, n, rows[i].name);
        if (d == 0) return !variable[n + 1] || check_value(&rows[i], variable + n + 1, message, size);
        if (d < least) {
            least = d;
            nearest = &rows[i];
        }
    }
    if (!nearest) return true;
    snprintf(message, size, "%.*s is not a variable of softmetal; did you mean %s?", (int)n, variable, nearest->name);
    return false;
}

bool sm_settings_problem(char *message, size_t size)
{
    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, "SM_", 3) == 0 && strchr(*at, '=') && !check_variable(*at, message, size)) return true;
    return false;
}
