/* Sets a locale with a decimal comma: one that is installed, or else one that localedef builds for
 * this process in milliseconds. Numbers in files must not depend on the locale. */
#ifndef MICA_TEST_COMMA_LOCALE_H
#define MICA_TEST_COMMA_LOCALE_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static bool comma_is_set(void) { return strcmp(localeconv()->decimal_point, ",") == 0; }

static bool comma_make(const char *folder)
{
    char command[1024];
    snprintf(
        command, sizeof command,
        "cd '%s' && printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \"\"\\ngrouping -1\\nEND LC_NUMERIC\\n'"
        " > source && localedef -c -i source -f ANSI_X3.4-1968 ./comma > log 2>&1; test -f comma/LC_NUMERIC",
        folder);
    return system(command) == 0;
}

/* False: no such locale. setlocale(LC_NUMERIC, "C") resets it. */
static bool comma_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i]) && comma_is_set()) return true;
    const char *tmp = getenv("TMPDIR");
    char folder[512], command[600];
    snprintf(folder, sizeof folder, "%s/mica-locale-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return false;
    const bool made =
        comma_make(folder) && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_NUMERIC, "comma") && comma_is_set();
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 && made;
}

#endif
