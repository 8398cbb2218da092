/* See tools/macos/README.md. */
#ifndef MICA_MACOS_DIRENT_H
#define MICA_MACOS_DIRENT_H
#include <sys/types.h>

typedef struct __dirstream DIR;
struct dirent {
    uint64_t d_ino, d_seekoff;
    uint16_t d_reclen, d_namlen;
    uint8_t d_type;
    char d_name[1024];
};

int closedir(DIR *folder);
int dirfd(DIR *folder);
DIR *opendir(const char *path);
struct dirent *readdir(DIR *folder);

#endif
