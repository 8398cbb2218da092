/* mica_measure_*: checks the arguments and calls src/profile. */
#include "profile/peaks.h"
#include "runtime/engine.h"

mica_status mica_measure_peaks(mica_engine *engine, mica_peaks *peaks)
{
    static const char name[] = "measure_peaks: mica_peaks";
    mica_peaks all = {.struct_size = sizeof all};
    MICA_TRY(mica__engine_check(engine, "measure_peaks"));
    MICA_TRY(mica_struct_write(name, peaks, &all, sizeof all)); /* checks struct_size before the measurement */
    MICA_TRY(mica__peaks_measure(engine->pool, &mica__peaks_full, &all));
    return mica_struct_write(name, peaks, &all, sizeof all);
}

mica_status mica_measure_two_threads(mica_engine *engine, double *ratio)
{
    MICA_TRY(mica__engine_check(engine, "measure_two_threads"));
    if (!ratio) return mica__fail(MICA_ERR_ARGUMENT, "measure_two_threads: ratio is NULL");
    *ratio = mica__peaks_two_threads(engine->pool, &mica__peaks_full);
    return MICA_OK;
}
