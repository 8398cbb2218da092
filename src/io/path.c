/* See path.h. */
#include "io/path.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

mica_status mica__path_folder(const char *path, char **folder)
{
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 1;
    *folder = mica__alloc(length + 1);
    if (!*folder) return mica__fail_memory("a path", length + 1);
    memcpy(*folder, slash ? path : ".", length);
    (*folder)[length] = '\0';
    return MICA_OK;
}

mica_status mica__path_find(const char *folder, const char *const *names, size_t n, char **path)
{
    size_t room = 0;
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) > room) room = strlen(names[i]);
    room += strlen(folder) + sizeof "/";
    *path = mica__alloc(room);
    if (!*path) return mica__fail_memory("a path", room);
    for (size_t i = 0; i < n; i++) {
        struct stat s;
        snprintf(*path, room, "%s/%s", folder, names[i]);
        if (stat(*path, &s) == 0 && S_ISREG(s.st_mode)) return MICA_OK;
    }
    mica__free(*path);
    *path = NULL;
    return MICA_OK;
}
