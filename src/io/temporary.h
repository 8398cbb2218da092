/* Temporary files beside the files they become: PATH.PID-NUMBER.tmp.
 *
 * Each is locked (flock) while it is written. Creating one removes those of the same PATH that a killed process left:
 * its PID does not exist and no process holds the lock (the lock protects files of processes in other PID namespaces,
 * such as containers that share a folder). The names of open temporary files are in a table that a signal handler may
 * read: mica__temporaries_remove. */
#ifndef MICA_IO_TEMPORARY_H
#define MICA_IO_TEMPORARY_H

#include "base/status.h"

/* Bytes for ".PID-NUMBER.tmp" and its NUL. */
enum { MICA__TEMPORARY_SUFFIX = MICA_TEMPORARY_SUFFIX };

/* name has cap bytes; strlen(path) + MICA__TEMPORARY_SUFFIX are enough. *fd is open for writing. */
mica_status mica__temporary_create(const char *path, char *name, size_t cap, int *fd);
/* Called after the caller renamed or removed the file. */
void mica__temporary_done(const char *name);
/* Removes the temporary files that this process has open. Async-signal-safe. */
void mica__temporaries_remove(void);

#endif
