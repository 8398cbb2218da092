/* See tools/macos/README.md. */
#ifndef MICA_MACOS_FCNTL_H
#define MICA_MACOS_FCNTL_H
#include <sys/types.h>

#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_NONBLOCK 0x0004
#define O_NOFOLLOW 0x0100
#define O_CREAT 0x0200
#define O_TRUNC 0x0400
#define O_EXCL 0x0800
#define O_CLOEXEC 0x01000000
#define F_GETFL 3
#define F_SETFL 4

int open(const char *path, int flags, ...);
int openat(int folder, const char *path, int flags, ...);
int fcntl(int fd, int command, ...);

#endif
