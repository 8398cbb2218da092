/* See tools/macos/README.md: the definitions that the compiler's limits.h lacks. */
#ifndef MICA_MACOS_LIMITS_H
#define MICA_MACOS_LIMITS_H

#define PATH_MAX 1024
#define PTHREAD_STACK_MIN 16384

#endif
