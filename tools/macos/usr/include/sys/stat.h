/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_STAT_H
#define MICA_MACOS_SYS_STAT_H
#include <sys/types.h>

struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec, st_mtimespec, st_ctimespec, st_birthtimespec;
    off_t st_size;
    blkcnt_t st_blocks;
    blksize_t st_blksize;
    uint32_t st_flags, st_gen;
    int32_t st_lspare;
    int64_t st_qspare[2];
};

#define S_IFMT 0170000
#define S_ISFIFO(mode) (((mode) & S_IFMT) == 0010000)
#define S_ISCHR(mode) (((mode) & S_IFMT) == 0020000)
#define S_ISSOCK(mode) (((mode) & S_IFMT) == 0140000)
#define S_ISDIR(mode) (((mode) & S_IFMT) == 0040000)
#define S_ISREG(mode) (((mode) & S_IFMT) == 0100000)
#define S_ISLNK(mode) (((mode) & S_IFMT) == 0120000)

int lstat(const char *path, struct stat *out);
int mkfifo(const char *path, mode_t mode);
int stat(const char *path, struct stat *out);
int fstat(int fd, struct stat *out);
int mkdir(const char *path, mode_t mode);
int chmod(const char *path, mode_t mode);

#endif
