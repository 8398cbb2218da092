/* See tools/macos/README.md: what the compiler's own limits.h does not have. */
#ifndef MICA_MACOS_LIMITS_H
#define MICA_MACOS_LIMITS_H

#define PATH_MAX 1024
#define PTHREAD_STACK_MIN 16384

#endif
