/* What the CPU backends share: from a family step of a plan to the call of its
 * kernel. */
#ifndef MICA_BACKEND_FAMILY_LAUNCH_H
#define MICA_BACKEND_FAMILY_LAUNCH_H

#include "backend/backend.h"
#include "kernels/launch.h"

/* Can the step's family run? MICA_ERR_INTERNAL, with the op, if not. */
mica_status mica__family_check(const mica__plan *plan, const mica__step *step);
/* The launch of the step's anchor; tensors are made in exec->scratch. */
void mica__family_launch(const mica__plan *plan, const mica__step *step, const mica__exec *exec, mica__launch *launch);
/* Scratch bytes of a family: what mica__target.workspace asks. */
size_t mica__family_workspace(mica__op op, const mica__operand *in, uint32_t n_in, const void *attr,
                              const mica__spec *out);

#endif
