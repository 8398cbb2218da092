/* Is an epilogue no more than a weight and a bias for each column? Then a family that
 * has its results in registers applies them there: a chain would read the row again. */
#ifndef MICA_BACKEND_CPU_AFFINE_H
#define MICA_BACKEND_CPU_AFFINE_H

#include "codegen/kernel.h"
#include "kernels/launch.h"

/* Which operands of a kernel they are. */
typedef struct mica__affine_plan {
    const mica__access *scale, *shift, *out; /* shift NULL: none                         */
} mica__affine_plan;

/* value * scale (+ shift), then maybe a cast to f16 or bf16, stored; value the f32
 * result of a family with rows of n elements, scale and shift one row of floats each. */
bool mica__affine_match(const mica__kernel *k, int64_t n, mica__affine_plan *plan);

/* Bound to the memory of one run. */
mica__affine mica__affine_bind(const mica__affine_plan *plan, char *const *block);

#endif
