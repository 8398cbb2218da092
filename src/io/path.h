/* Paths of files in a folder, for models that consist of several files. */
#ifndef MICA_IO_PATH_H
#define MICA_IO_PATH_H

#include "base/status.h"

/* The folder of a path, "." if the path has none; the caller frees it with mica__free. */
mica_status mica__path_folder(const char *path, char **folder);
/* The path of the first of these names that is a file in the folder; the caller frees it. NULL if there is none. */
mica_status mica__path_find(const char *folder, const char *const *names, size_t n, char **path);

#endif
