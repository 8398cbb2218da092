/* What the CPU backends share: from a family step of a plan to the call of its
 * kernel. */
#ifndef MICA_BACKEND_FAMILY_LAUNCH_H
#define MICA_BACKEND_FAMILY_LAUNCH_H

#include "backend/backend.h"
#include "kernels/launch.h"

/* What of a launch is the same in every run of a plan; made once for a step. */
typedef struct mica__family_code {
    const mica__family *family;
    const void *attr;
    uint32_t n_in;
    uint32_t workspace;         /* a block, or NO_BLOCK                                  */
    const mica__tensor *tensor; /* the inputs, then the result; data is to be filled in  */
    const struct mica__family_place {
        uint32_t block;
        int64_t nbytes;         /* from the beginning of the block                       */
    } *place;                   /* of each tensor                                        */
} mica__family_code;

/* MICA_ERR_INTERNAL, with the op, if the step's family cannot run. */
mica_status mica__family_prepare(mica__plan *plan, const mica__step *step, const mica__family_code **out);
/* The launch of the step's anchor; tensors are made in exec->scratch. */
void mica__family_launch(const mica__family_code *code, const mica__exec *exec, mica__launch *launch);
/* Scratch bytes of a family: what mica__target.workspace asks. */
size_t mica__family_workspace(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr,
                              const mica__spec *out);

#endif
