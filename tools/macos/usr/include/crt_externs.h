/* See tools/macos/README.md. */
#ifndef MICA_MACOS_CRT_EXTERNS_H
#define MICA_MACOS_CRT_EXTERNS_H
char ***_NSGetEnviron(void);
#endif
