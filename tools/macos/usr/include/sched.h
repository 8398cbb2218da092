/* See tools/macos/README.md. */
#ifndef MICA_MACOS_SCHED_H
#define MICA_MACOS_SCHED_H
int sched_yield(void);

#endif
