/* The shim in the disk cache. */
#ifndef SOFTMETAL_SHIM_WRITE_H
#define SOFTMETAL_SHIM_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a folder and those above it; true if it exists then. Changes path while it works. */
bool sm_make_folders(char *path);

/* Writes the shim's files into a folder in root that is named by their hash; its path is stored in folder. */
bool sm_shim_write(const char *root, char *folder, size_t room);

#endif
