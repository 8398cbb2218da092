/* Reads and writes public structs that begin with struct_size (mica.h, "structs"). */
#include <string.h>

#include "base/status.h"

/* No newer header adds more bytes than this; a larger struct_size means that the field was not set. */
enum { STRUCT_MORE = 1024 };

static mica_status check_size(const char *name, const void *given, size_t size, size_t *given_size)
{
    memcpy(given_size, given, sizeof *given_size);
    if (*given_size >= sizeof *given_size && *given_size <= size + STRUCT_MORE) return MICA_OK;
    return mica__fail(MICA_ERR_ARGUMENT,
                      "%s: struct_size is %zu, and the struct has %zu bytes; call its _init function, or set "
                      ".struct_size to its sizeof",
                      name, *given_size, size);
}

mica_status mica_struct_read(const char *name, void *full, size_t size, const void *given)
{
    size_t given_size;
    if (!given) return MICA_OK;
    MICA_TRY(check_size(name, given, size, &given_size));
    const char *bytes = given;
    for (size_t i = size; i < given_size; i++)
        if (bytes[i] != 0)
            return mica__fail(MICA_ERR_ARGUMENT,
                              "%s: struct_size is %zu, the struct of this library has %zu bytes, and byte %zu is not "
                              "0: the program uses a field of a newer mica",
                              name, given_size, size, i);
    memcpy(full, given, given_size < size ? given_size : size);
    memcpy(full, &size, sizeof size);
    return MICA_OK;
}

mica_status mica_struct_write(const char *name, void *given, const void *full, size_t size)
{
    size_t given_size;
    if (!given) return mica__fail(MICA_ERR_ARGUMENT, "%s: the struct is NULL", name);
    MICA_TRY(check_size(name, given, size, &given_size));
    const size_t head = sizeof given_size, known = given_size < size ? given_size : size;
    memcpy((char *)given + head, (const char *)full + head, known - head);
    if (given_size > known) memset((char *)given + known, 0, given_size - known);
    return MICA_OK;
}
