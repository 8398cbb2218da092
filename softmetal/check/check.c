#include "check.h"

#include "../runtime/engine.h"

#include <stdlib.h>

sm_checker *sm_check_open(struct sm_engine *engine, const sm_dispatch *dispatch) { (void)engine; (void)dispatch; return NULL; }
void sm_check_close(sm_checker *checker) { (void)checker; }
void sm_check_group(sm_checker *checker) { (void)checker; }
void sm_check_barrier(sm_checker *checker, unsigned flags) { (void)checker; (void)flags; }
void sm_check_simd_barrier(sm_checker *checker, unsigned simdgroup, unsigned flags) { (void)checker; (void)flags; (void)simdgroup; }
void sm_check_access(const void *address, unsigned long size, int kind, const void *pc) { (void)address; (void)size; (void)kind; (void)pc; }
void sm_check_arithmetic(const char *what, const char *file, unsigned line, unsigned column) { (void)what; (void)file; (void)line; (void)column; }
struct sm_scope { int unused; };
sm_scope *sm_scope_open(void) { return calloc(1, sizeof(sm_scope)); }
void sm_scope_barrier(sm_scope *scope, const void *address, size_t length) { (void)scope; (void)address; (void)length; }
void sm_scope_close(sm_scope *scope) { free(scope); }
