/* The checker. Kernels built with SM_CHECK call it for each access (through the compiler's
 * thread sanitizer) and each barrier. */
#ifndef SOFTMETAL_CHECK_H
#define SOFTMETAL_CHECK_H

#include "../core.h"
#include "../shim/abi.h"

typedef struct sm_checker sm_checker;
struct sm_engine;

/* For one dispatch. NULL: out of memory. */
sm_checker *sm_check_open(struct sm_engine *engine, const sm_dispatch *dispatch);
void sm_check_close(sm_checker *checker);

void sm_check_group(sm_checker *checker); /* call when a threadgroup begins */
void sm_check_barrier(sm_checker *checker, unsigned flags);
void sm_check_simd_barrier(sm_checker *checker, unsigned simdgroup, unsigned flags);

/* Called by kernels. */
void sm_check_access(const void *address, unsigned long size, int kind, const void *pc);
void sm_check_arithmetic(const char *what, const char *file, unsigned line, unsigned column);

#endif
