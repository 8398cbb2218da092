/* Compiles and runs kernels from a text in a few lines, for these tests and for other
 * shaders:
 *
 *     runner r = {0};
 *     if (!runner_open(&r, text, "add", NULL, 0)) return;      // fails the test with the message
 *     runner_buffer(&r, 0, x, sizeof x);                        // copied in, and back after the run
 *     runner_run(&r, (uint32_t[3]){n, 1, 1}, (uint32_t[3]){64, 1, 1});
 *     runner_close(&r);
 *
 * Each buffer ends at an inaccessible page. */
#ifndef SOFTMETAL_RUNNER_H
#define SOFTMETAL_RUNNER_H

#include "core.h"
#include "test.h"

typedef struct runner {
    sm_library *library;
    sm_kernel *kernel;
    sm_dispatch dispatch;
    void *given[SM_BUFFERS]; /* the caller's bytes: copied in before a run and back after it */
    char *message;           /* error message of the last failure */
} runner;

/* Skips the test if there is no compiler: if (!runner_usable()) return; */
bool runner_usable(void);

bool runner_open(runner *r, const char *source, const char *kernel, const sm_constant *constants, int count);
/* Builds another kernel of the same text; buffers stay bound. */
bool runner_build(runner *r, const char *kernel, const sm_constant *constants, int count);
void runner_buffer(runner *r, int index, void *bytes, size_t length);
sm_status runner_try(runner *r, const uint32_t threads[3], const uint32_t group[3]);
bool runner_run(runner *r, const uint32_t threads[3], const uint32_t group[3]); /* fails the test if it fails */
void runner_unbind(runner *r);                                                  /* all buffers */
void runner_close(runner *r);

/* The next pseudo-random number in -1 .. 1; the sequence is reproducible. */
float runner_number(uint32_t *state);

#endif
