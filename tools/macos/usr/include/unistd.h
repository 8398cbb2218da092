/* See tools/macos/README.md. */
#ifndef MICA_MACOS_UNISTD_H
#define MICA_MACOS_UNISTD_H
#include <sys/types.h>

#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_ONLN 58
#define _SC_PHYS_PAGES 200
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define R_OK 4
#define W_OK 2
#define X_OK 1
#define F_OK 0

int access(const char *path, int mode);
int close(int fd);
int dup(int fd);
int dup2(int fd, int to);
void _exit(int code) __attribute__((noreturn));
pid_t fork(void);
int ftruncate(int fd, off_t nbytes);
int fsync(int fd);
pid_t getpid(void);
int isatty(int fd);
ssize_t pwrite(int fd, const void *from, size_t nbytes, off_t at);
ssize_t read(int fd, void *to, size_t nbytes);
ssize_t readlink(const char *path, char *to, size_t cap);
int rmdir(const char *path);
int symlink(const char *to, const char *path);
long sysconf(int name);
int unlink(const char *path);
int unlinkat(int folder, const char *path, int flags);
unsigned int usleep(unsigned int microseconds);
ssize_t write(int fd, const void *from, size_t nbytes);

#endif
