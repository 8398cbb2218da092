/* From a step of a plan to its dispatches, once, when the plan is made. What the GPU does
 * not do goes to the CPU backend's form of the step, and the plan's text says why. */
#ifndef MICA_BACKEND_METAL_LOWER_H
#define MICA_BACKEND_METAL_LOWER_H

#include "backend/metal/metal_work.h"
#include "codegen/emit_msl.h"

/* step->code, filled in by prepare_step. */
typedef struct mica__metal_code {
    mica__metal_dispatch *dispatch;
    uint32_t n;
    const mica__step *cpu;      /* the step with the CPU's code; NULL: dispatches        */
    bool wait;                  /* cpu: the GPU is at something that it needs            */
    bool found;                 /* reads what another step left in its scratch           */
    bool shares_rounded;              /* its scratch has afterwards what the next one may read */
} mica__metal_code;

mica_status mica__metal_lower(const mica__metal_device *device, mica__plan *plan, mica__step *step);
/* Threads and elements of a generated kernel with so many results: a pure function. */
mica__msl_shape mica__metal_shape(const mica__gpu_limits *limits, int64_t results);
/* Where barriers and waits are, from which blocks of memory the steps touch. */
mica_status mica__metal_order(mica__plan *plan, bool body);
/* Pipelines go back. */
void mica__metal_code_free(mica__plan *plan);
/* May node, or what it reads, run in the launch of family? It may not where that would be the CPU's. */
bool mica__metal_can_follow(const mica__gpu_limits *limits, const mica__graph *g, uint32_t family, uint32_t node);
/* Scratch of a family, on whichever of both it runs. */
size_t mica__metal_workspace(const mica__metal_device *device, mica__op op, const mica__operand *in, uint32_t n_in,
                             const void *attr, const mica__spec *out);

#endif
