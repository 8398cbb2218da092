/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SYS_SYSCTL_H
#define MICA_MACOS_SYS_SYSCTL_H
#include <sys/types.h>

int sysctlbyname(const char *name, void *out, size_t *nbytes, void *in, size_t in_bytes);

#endif
