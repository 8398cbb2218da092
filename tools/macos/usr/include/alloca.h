/* See tools/macos/README.md. */
#ifndef MICA_MACOS_ALLOCA_H
#define MICA_MACOS_ALLOCA_H

#define alloca(nbytes) __builtin_alloca(nbytes)

#endif
