/* Softmax of f32, f16 and bf16 by the row kernels. */
#include "kernels/rows/rows.h"
#include "kernels/softmax/softmax.h"

mica_status mica__softmax_cpu(const mica__launch *launch)
{
    if (mica__dtype_of(launch->out) == MICA_F64) return mica__softmax_ref(launch);
    return mica__rows_run(launch, MICA__ROW_SOFTMAX, 0);
}

mica_status mica__log_softmax_cpu(const mica__launch *launch)
{
    if (mica__dtype_of(launch->out) == MICA_F64) return mica__log_softmax_ref(launch);
    return mica__rows_run(launch, MICA__ROW_LOG_SOFTMAX, 0);
}

mica_status mica__logsumexp_cpu(const mica__launch *launch)
{
    if (mica__dtype_of(launch->out) == MICA_F64) return mica__logsumexp_ref(launch);
    return mica__rows_run(launch, MICA__ROW_LOGSUMEXP, 0);
}
