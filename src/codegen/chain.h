/* A kernel as a chain of ops that pass a block of values to each other in
 * registers. The CPU backend runs fused element-wise code this way, without a compiler.
 *
 * A block is a handful of vectors (8 registers; 32 floats where a vector has 4).
 * Each op is a small C function that works on the block in registers and tail-calls
 * the next, so a chain costs one indirect jump per op and no memory traffic between
 * ops. f32, f16, bf16 and bool are floats in registers; f64 and 64-bit integers are in
 * small tiles that stay in the first-level cache. f16 and bf16 are rounded after
 * every op, so fused and unfused results have the same bits.
 *
 * A prepared chain is immutable: any number of threads may run it. Nothing here
 * allocates while it runs. Results do not depend on the number of threads: tasks and
 * the partial sums of long reductions depend on sizes only. */
#ifndef MICA_CODEGEN_CHAIN_H
#define MICA_CODEGEN_CHAIN_H

#include "codegen/index_fault.h"
#include "codegen/kernel.h"

typedef struct mica__chain mica__chain;

/* The sum, maximum or minimum of n >= 1 contiguous floats, by the fastest loop for this
 * CPU. Sums accumulate in double; a maximum or minimum is NaN if an element is NaN. */
double mica__chain_fold_f32(mica__op op, const char *x, int64_t n);

/* *out is NULL if the kernel is too large for a chain (more operands or live values
 * than the planner allows in one kernel). */
mica_status mica__chain_build(const mica__kernel *k, mica__arena *arena, mica__chain **out);

/* The state of a reduction over a part of its elements. */
typedef union mica__chain_part {
    double f;
    int64_t i;
} mica__chain_part;

enum { MICA__CHAIN_MAX_PARTS = 4096 };

typedef struct mica__chain_run {
    const mica__chain *chain;
    char *const *block;          /* address of each block of the plan                     */
    mica__index_fault *fault;
    mica__chain_part *part;      /* room for MICA__CHAIN_MAX_PARTS; NULL if parts() is 0  */
} mica__chain_run;

/* Runs elements [begin, end) of the outer loops, in row-major order, on this thread. */
void mica__chain_range(const mica__chain_run *run, int64_t begin, int64_t end);

/* Runs the whole kernel as independent tasks, then finish() on one thread. */
int64_t mica__chain_tasks(const mica__chain *chain);
int64_t mica__chain_parts(const mica__chain *chain);
void mica__chain_task(const mica__chain_run *run, int64_t task);
void mica__chain_finish(const mica__chain_run *run);

#endif
