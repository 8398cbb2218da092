/* Recognises an epilogue that only multiplies by a weight and adds a bias for each column. A
 * family applies such an epilogue in registers; an op chain would read the row again. */
#ifndef MICA_BACKEND_CPU_AFFINE_H
#define MICA_BACKEND_CPU_AFFINE_H

#include "codegen/kernel.h"
#include "kernels/launch.h"

/* The operands of such a kernel. */
typedef struct mica__affine_plan {
    const mica__access *scale, *shift, *out; /* shift NULL: no bias                      */
} mica__affine_plan;

/* True if k stores value * scale (+ shift), with an optional cast to f16 or bf16. value is the
 * f32 result of a family with rows of n elements; scale and shift are one row of floats each. */
bool mica__affine_match(const mica__kernel *k, int64_t n, mica__affine_plan *plan);

/* Sets the addresses of one run. */
mica__affine mica__affine_bind(const mica__affine_plan *plan, char *const *block);

#endif
