/* The cases of `mica selftest`. They are built on any engine from inputs that are the
 * same on all machines. */
#ifndef MICA_CLI_SELFTEST_H
#define MICA_CLI_SELFTEST_H

#include <mica.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SELFTEST_INPUTS = 6 };

/* One case while it is built. The values of an input are generated from the name of
 * the case and the index of the input. */
typedef struct selftest_run {
    mica_scope *s;
    const char *name;
    mica_array *input[SELFTEST_INPUTS]; /* NULL: not used                                */
} selftest_run;

typedef struct selftest_case {
    const char *name;
    double tolerance;
    mica_array *(*build)(selftest_run *t);
} selftest_case;

extern const selftest_case selftest_cases[];
extern const size_t selftest_n_cases;

#endif
