/* See temporary.h. */
#include "io/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/map.h"

/* Static memory: a signal handler may read it at any time. Files that do not fit into the table (too many, or the name
 * is too long) are not removed by the handler; the next writer of the same path removes them. */
enum { N_SLOTS = 32, SLOT_PATH = 1024, SLOT_FREE = 0, SLOT_BUSY, SLOT_USED };
static struct {
    atomic_int state;
    char path[SLOT_PATH];
} slots[N_SLOTS];

static void claim_slot(const char *name)
{
    if (strlen(name) >= SLOT_PATH) return;
    for (int i = 0; i < N_SLOTS; i++) {
        int state = SLOT_FREE;
        if (!atomic_compare_exchange_strong(&slots[i].state, &state, SLOT_BUSY)) continue;
        memcpy(slots[i].path, name, strlen(name) + 1);
        atomic_store(&slots[i].state, SLOT_USED);
        return;
    }
}

void mica__temporary_done(const char *name)
{
    for (int i = 0; i < N_SLOTS; i++)
        if (atomic_load(&slots[i].state) == SLOT_USED && strcmp(slots[i].path, name) == 0)
            atomic_store(&slots[i].state, SLOT_FREE);
}

void mica__temporaries_remove(void)
{
    for (int i = 0; i < N_SLOTS; i++)
        if (atomic_load(&slots[i].state) == SLOT_USED) (void)unlink(slots[i].path);
}

/* ------------------------------------------------------------ left files --- */

/* The PID of a name "BASE.PID-NUMBER.tmp", or "BASE.PID-NUMBER.tmp.gguf" (the tokenizer of a model that is converted);
 * 0: another name. */
static long temporary_pid(const char *entry, const char *base)
{
    const size_t length = strlen(base);
    char *end;
    if (strncmp(entry, base, length) != 0 || entry[length] != '.') return 0;
    const char *pid = entry + length + 1;
    if (*pid < '1' || *pid > '9') return 0;
    const long value = strtol(pid, &end, 10);
    if (*end != '-' || end[1] < '0' || end[1] > '9') return 0;
    end += 1 + strspn(end + 1, "0123456789");
    return strcmp(end, ".tmp") == 0 || strcmp(end, ".tmp.gguf") == 0 ? value : 0;
}

/* Removes the file if no process holds its lock. */
static void remove_unlocked(int folder, const char *entry)
{
    struct stat s;
    const int fd = openat(folder, entry, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(folder, entry, 0);
    (void)close(fd);
}

/* Removes the temporary files of path whose process has ended. name is scratch memory. */
static void remove_stale(const char *path, char *name)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    memcpy(name, path, length);
    memcpy(name + length, length ? "" : ".", length ? 1 : 2);
    DIR *folder = opendir(name);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const long pid = temporary_pid(entry->d_name, base);
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) remove_unlocked(dirfd(folder), entry->d_name);
    }
    (void)closedir(folder);
}

mica_status mica__temporary_create(const char *path, char *name, size_t cap, int *fd)
{
    static _Atomic unsigned serial;
    *fd = -1;
    if (strlen(path) + MICA__TEMPORARY_SUFFIX > cap)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: its temporary name does not fit into %zu bytes", path, cap);
    remove_stale(path, name);
    for (int tries = 0; *fd < 0 && tries < 100; tries++) {
        snprintf(name, cap, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    if (*fd < 0) {
        char text[MICA__ERRNO_TEXT];
        const int why = errno;
        const mica_status status =
            mica__fail(MICA_ERR_FILE, "%s: cannot create it: %s", path, mica__errno_text(why, text));
        errno = why;
        return status;
    }
    (void)flock(*fd, LOCK_EX | LOCK_NB); /* not every file system has locks */
    claim_slot(name);
    return MICA_OK;
}
