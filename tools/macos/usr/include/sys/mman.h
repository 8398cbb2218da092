/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_MMAN_H
#define MICA_MACOS_SYS_MMAN_H
#include <sys/types.h>

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 0x0001
#define MAP_PRIVATE 0x0002
#define MAP_FIXED 0x0010
#define MAP_ANON 0x1000
#define MAP_FAILED ((void *)-1)
#define MADV_WILLNEED 3
#define MADV_DONTNEED 4

void *mmap(void *at, size_t nbytes, int protection, int flags, int fd, off_t offset);
int munmap(void *at, size_t nbytes);
int madvise(void *at, size_t nbytes, int advice);
int mprotect(void *at, size_t nbytes, int protection);

#endif
