/* mica_tune: checks the arguments and calls src/profile. */
#include "base/status.h"
#include "profile/tuner.h"

void mica_tune_options_init(mica_tune_options *options)
{
    if (options) *options = (mica_tune_options){.struct_size = sizeof *options, .seconds = 0.5, .keep = true};
}

mica_status mica_tune(const mica_tune_options *options, char *path, size_t cap)
{
    mica_tune_options o;
    if (path && cap) *path = 0;
    mica_tune_options_init(&o);
    MICA_TRY(mica_struct_read("tune: mica_tune_options", &o, sizeof o, options));
    if (!(o.seconds >= 0 && o.seconds <= 3600))
        return mica__fail(MICA_ERR_ARGUMENT, "tune: seconds is %g, not from 0 to 3600", o.seconds);
    return mica__tune(&o, path, cap);
}

mica_status mica_tune_forget(void) { return mica__tune_reset(); }
