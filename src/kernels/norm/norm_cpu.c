/* Norms of f32, f16 and bf16 by the row kernels. */
#include "kernels/norm/norm.h"
#include "kernels/rows/rows.h"

static double norm_eps(const mica__launch *launch) { return ((const mica__attr_norm *)launch->attr)->eps; }

mica_status mica__layer_norm_cpu(const mica__launch *launch)
{
    if (mica__dtype_of(launch->out) == MICA_F64) return mica__layer_norm_ref(launch);
    return mica__rows_run(launch, MICA__ROW_LAYER_NORM, norm_eps(launch));
}

mica_status mica__rms_norm_cpu(const mica__launch *launch)
{
    if (mica__dtype_of(launch->out) == MICA_F64) return mica__rms_norm_ref(launch);
    return mica__rows_run(launch, MICA__ROW_RMS_NORM, norm_eps(launch));
}
