/* See tools/macos/README.md. */
#ifndef MICA_MACOS_ERRNO_H
#define MICA_MACOS_ERRNO_H
extern int *__error(void);
#define errno (*__error())

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENOMEM 12
#define EACCES 13
#define EEXIST 17
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENOSPC 28
#define EPIPE 32
#define ERANGE 34
#define EAGAIN 35

#endif
