/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_FILE_H
#define MICA_MACOS_SYS_FILE_H

#define LOCK_EX 2
#define LOCK_NB 4

int flock(int fd, int operation);

#endif
