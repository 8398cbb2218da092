/* Texts that commands read whole: a file, or stdin. */
#include "core/cli.h"

char *cli_read_file(const char *command, const char *path, size_t *length)
{
    char *text = NULL;
    if (mica_text_read(path, (uint64_t)CLI_TEXT_GIB << 30, &text, length) != MICA_OK)
        fprintf(stderr, "%s: %s\n", command, mica_last_error());
    return text;
}
