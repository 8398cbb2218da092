/* The environment variables of softmetal (settings.def), read in one place. They are read at each call,
 * so that a test can change them. A variable that is not set, or empty, has its default.
 *
 * A wrong value must not be ignored: a check that is not on finds nothing. So opening a device, building a
 * kernel and running one begin with sm_settings_problem. The readers below return the default for a wrong value. */
#ifndef SOFTMETAL_SETTINGS_H
#define SOFTMETAL_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sm_setting_kind {
    SM_SETTING_FLAG,    /* 0 or 1 */
    SM_SETTING_INTEGER, /* in a range; decimal, 0x... or 0... */
    SM_SETTING_SECONDS, /* a decimal number in a range */
    SM_SETTING_WORD,    /* one of a list */
    SM_SETTING_TEXT     /* anything: a path, a list; its reader checks it */
} sm_setting_kind;

typedef enum sm_setting {
#define X(id, name, kind, words, least, most) SM_SET_##id,
#include "settings/settings.def"
#undef X
    SM_SETTINGS
} sm_setting;

/* The words of SM_CHECK, in their order. */
enum { SM_CHECK_OFF, SM_CHECK_ALL, SM_CHECK_SIMDGROUP };

bool sm_setting_flag(sm_setting s);
uint64_t sm_setting_integer(sm_setting s, uint64_t preset);
double sm_setting_seconds(sm_setting s, double preset);
/* The index of the word in the list; 0 is the default. */
int sm_setting_word(sm_setting s);
/* NULL: not set, or empty. */
const char *sm_setting_text(sm_setting s);

/* Writes an error message about the first variable with a wrong value, or with a name that is probably a
 * misspelled one of ours. Other names with SM_ belong to other programs. Returns false if there is none. */
bool sm_settings_problem(char *message, size_t size);

#endif
