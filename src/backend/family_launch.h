/* Launches of kernel families, shared by the backends: the operands of a family step
 * of a plan as tensors. */
#ifndef MICA_BACKEND_FAMILY_LAUNCH_H
#define MICA_BACKEND_FAMILY_LAUNCH_H

#include "backend/backend.h"
#include "kernels/launch.h"

/* The part of a launch that is the same in every run; made once when the step is prepared. */
typedef struct mica__family_code {
    const mica__family *family;
    const void *attr;
    uint32_t n_in;
    uint32_t workspace;         /* a block, or MICA__NO_BLOCK                            */
    const mica__tensor *tensor; /* the inputs, then the result; data is set per run      */
    const struct mica__family_place {
        uint32_t block;
        int64_t nbytes;         /* offset in the block, in bytes                         */
    } *place;                   /* where each tensor is stored                           */
} mica__family_code;

/* MICA_ERR_INTERNAL, which names the op, if the family of the step cannot run. */
mica_status mica__family_prepare(mica__plan *plan, const mica__step *step, const mica__family_code **out);
/* Fills in the launch of the step's first node; its tensors are in exec->scratch. */
void mica__family_launch(const mica__family_code *code, const mica__exec *exec, mica__launch *launch);
/* Bytes of scratch that a family needs: mica__target.workspace of the CPU backends. */
size_t mica__family_workspace(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr,
                              const mica__spec *out);

#endif
