/* mica_measure_*: check the arguments, call down. */
#include <string.h>

#include "profile/peaks.h"
#include "runtime/engine.h"

mica_status mica_measure_peaks(mica_engine *engine, mica_peaks *peaks)
{
    if (!engine || !peaks)
        return mica__fail(MICA_ERR_ARGUMENT, "measure_peaks: %s is NULL", engine ? "peaks" : "engine");
    const size_t size = peaks->struct_size;
    if (size < sizeof(size_t) || size > sizeof *peaks)
        return mica__fail(MICA_ERR_ARGUMENT, "measure_peaks: peaks.struct_size is %zu; set it to sizeof(mica_peaks)",
                          size);
    mica_peaks all = {.struct_size = size};
    MICA_TRY(mica__peaks_measure(engine->pool, &mica__peaks_full, &all));
    memcpy(peaks, &all, size);
    return MICA_OK;
}

mica_status mica_measure_two_threads(mica_engine *engine, double *ratio)
{
    if (!engine || !ratio)
        return mica__fail(MICA_ERR_ARGUMENT, "measure_two_threads: %s is NULL", engine ? "ratio" : "engine");
    *ratio = mica__peaks_two_threads(engine->pool, &mica__peaks_full);
    return MICA_OK;
}
