/* The environment variables of env.h. */
#include "base/env.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *help;
} env_table[] = {
#define X(id, name, text) {name, text},
    MICA__ENV_LIST(X)
#undef X
};

const char *mica__env(mica__env_name name)
{
    const char *value = (unsigned)name < MICA__ENV_COUNT ? getenv(env_table[name].name) : NULL;
    return value && *value ? value : NULL;
}

const char *mica__env_title(mica__env_name name)
{
    return (unsigned)name < MICA__ENV_COUNT ? env_table[name].name : "";
}

const char *mica__env_help(mica__env_name name) { return (unsigned)name < MICA__ENV_COUNT ? env_table[name].help : ""; }

int mica__env_has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        if (n == length && memcmp(list, word, n) == 0) return 1;
        list += n + (list[n] == ',');
    }
    return 0;
}
