/* A kernel as a chain of ops that hand their block of values to each other in
 * registers: how the CPU runs fused element-wise code without a compiler.
 *
 * A block is a handful of vectors (8 registers; 32 floats where a vector has 4).
 * Each op is a small C function that works on the block in registers and tail-calls
 * the next, so a chain costs one indirect jump an op and no memory traffic in
 * between. f32, f16, bf16 and bool travel in registers as floats; f64 and
 * integers in small tiles that stay in the first-level cache. f16 and bf16 are
 * rounded after every op, so fused and unfused results have the same bits.
 *
 * What is prepared once is immutable: any number of threads may run it. Nothing
 * here allocates while it runs. Results do not depend on how the work was cut
 * among threads: tasks and the partial sums of long folds depend on sizes only. */
#ifndef MICA_CODEGEN_CHAIN_H
#define MICA_CODEGEN_CHAIN_H

#include "codegen/index_fault.h"
#include "codegen/kernel.h"

typedef struct mica__chain mica__chain;

/* The sum, maximum or minimum of n floats side by side, by the best loop this CPU
 * has. Sums are of doubles; an extreme is NaN if one of them is; n is 1 at least. */
double mica__chain_fold_f32(mica__op op, const char *x, int64_t n);

/* NULL in *out if the kernel is too large for a chain (more operands or values
 * alive at once than the planner allows in one kernel). */
mica_status mica__chain_build(const mica__kernel *k, mica__arena *arena, mica__chain **out);

/* The state of a fold over a part of its elements. */
typedef union mica__chain_part {
    double f;
    int64_t i;
} mica__chain_part;

enum { MICA__CHAIN_MAX_PARTS = 4096 };

typedef struct mica__chain_run {
    const mica__chain *chain;
    char *const *block;          /* where each block of the plan is                       */
    mica__index_fault *fault;
    mica__chain_part *part;      /* room for MICA__CHAIN_MAX_PARTS; NULL if parts() is 0  */
} mica__chain_run;

/* Elements [begin, end) of the outer loops in row-major order, on this thread. */
void mica__chain_range(const mica__chain_run *run, int64_t begin, int64_t end);

/* The whole kernel as independent tasks, then finish() on one thread. */
int64_t mica__chain_tasks(const mica__chain *chain);
int64_t mica__chain_parts(const mica__chain *chain);
void mica__chain_task(const mica__chain_run *run, int64_t task);
void mica__chain_finish(const mica__chain_run *run);

#endif
