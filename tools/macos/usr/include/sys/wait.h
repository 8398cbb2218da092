/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_WAIT_H
#define MICA_MACOS_SYS_WAIT_H
#include <sys/types.h>

#define WNOHANG 1
#define WIFEXITED(status) (((status) & 0177) == 0)
#define WEXITSTATUS(status) (((status) >> 8) & 0xff)
#define WIFSIGNALED(status) (((status) & 0177) != 0 && ((status) & 0177) != 0177)
#define WTERMSIG(status) ((status) & 0177)

pid_t waitpid(pid_t process, int *status, int options);

#endif
