/* Limits the size of the disk cache. Its file names are a hash of 32 digits, a dot and a
 * kind; all other files in the folder are left alone. */
#include "cache.h"

#include "text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CACHE_FILES = 8192 }; /* a module has about 20 KB */

typedef struct cached {
    int64_t time;
    char name[48];
} cached;

static int by_time(const void *a, const void *b)
{
    const cached *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

/* Deletes the older half of too many files. Other processes may use them: open files stay valid, others are rebuilt. */
void sm_cache_trim(const char *root)
{
    DIR *folder = opendir(root);
    cached *list = NULL;
    int count = 0, room = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char path[1400];
        struct stat s;
        size_t length = strlen(e->d_name);
        if (length < 34 || length >= sizeof list->name || e->d_name[32] != '.') continue; /* a hash, a dot and a kind */
        snprintf(path, sizeof path, "%s/%s", root, e->d_name);
        if (stat(path, &s) || !sm_grow((void **)&list, count, &room, sizeof *list)) continue;
        list[count].time = (int64_t)s.st_mtime;
        memcpy(list[count++].name, e->d_name, length + 1);
    }
    if (folder) closedir(folder);
    if (count > CACHE_FILES) {
        qsort(list, (size_t)count, sizeof *list, by_time);
        for (int i = 0; i < count / 2; i++) {
            char path[1200];
            snprintf(path, sizeof path, "%s/%s", root, list[i].name);
            unlink(path);
        }
    }
    free(list);
}
