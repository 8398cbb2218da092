/* Lowers a step of a plan to its dispatches, once, when the plan is made. A step that the GPU
 * cannot run is prepared by the CPU backend, and the text of the plan states the reason. */
#ifndef MICA_BACKEND_METAL_LOWER_H
#define MICA_BACKEND_METAL_LOWER_H

#include "backend/metal/metal_work.h"
#include "codegen/emit_msl.h"

/* step->code, filled in by prepare_step. */
typedef struct mica__metal_code {
    mica__metal_dispatch *dispatch;
    uint32_t n;
    const mica__step *cpu;      /* a copy with the code of the CPU backend; NULL: dispatches */
    bool wait;                  /* cpu: it must wait for the GPU first                   */
    bool found;                 /* reads rounded rows that another step left in the shared scratch */
    bool shares_rounded;        /* leaves rounded rows in its scratch for later steps    */
} mica__metal_code;

/* Sets step->code. */
mica_status mica__metal_lower(const mica__metal_device *device, mica__plan *plan, mica__step *step);
/* The threads and elements per thread of a generated kernel with this many results. */
mica__msl_shape mica__metal_shape(const mica__gpu_limits *limits, int64_t results);
/* Sets the barriers and waits of a plan from the memory blocks that its steps use. */
mica_status mica__metal_order(mica__plan *plan, bool body);
/* Drops the pipelines of a plan. */
void mica__metal_code_free(mica__plan *plan);
/* May node, or an op that it reads, be part of the epilogue of family? Not if the GPU runs the family but
 * cannot run the node. */
bool mica__metal_can_follow(const mica__gpu_limits *limits, const mica__graph *g, uint32_t family, uint32_t node);
/* Bytes of scratch of a family, on the device that will run it (GPU or CPU). */
size_t mica__metal_workspace(const mica__metal_device *device, mica__op op, const mica__operand *in, uint32_t n_in,
                             const void *attr, const mica__spec *out);

#endif
