/* Folders and what is in them: where the parts of a model lie that is in several files. */
#ifndef MICA_IO_PATH_H
#define MICA_IO_PATH_H

#include "base/status.h"

/* The folder that a path is in, "." if it names none; to be freed with mica__free. */
mica_status mica__path_folder(const char *path, char **folder);
/* The path of the first of these names that is a file in the folder, to be freed; NULL: none is. */
mica_status mica__path_find(const char *folder, const char *const *names, size_t n, char **path);

#endif
