/* Attention over a KV cache that is not full: k and v are cut to the length, the rest is
 * ATTENTION. Operands that can be streamed always are, so that a token has the same bits alone
 * and in a batch. */
#include "kernels/attention/attention_cached.h"

#include <inttypes.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_job.h"
#include "kernels/attention/attention_stream.h"

enum { CUT_INPUTS = 5 }; /* q, k, v, and scales of k and v */

/* The launch with k and v cut and without the length. */
static mica_status cached_cut(const mica__launch *launch, mica__tensor *in, mica__launch *cut)
{
    const mica__tensor *length = &launch->in[3];
    const int64_t n = mica__get_i64(mica__dtype_of(length), length->data, 0), room = launch->in[1].spec.shape[2];
    if (n < 0 || n > room)
        return mica__fail(MICA_ERR_INDEX, "attention_cached: length %" PRId64 " of a cache of %" PRId64 " keys", n,
                          room);
    *cut = *launch;
    cut->in = in;
    cut->n_in = launch->n_in - 1;
    memcpy(in, launch->in, 3 * sizeof *in);
    memcpy(in + 3, launch->in + 4, (cut->n_in - 3) * sizeof *in);
    for (uint32_t i = 1; i < cut->n_in; i++) in[i].spec.shape[2] = n;
    return MICA_OK;
}

mica_status mica__attention_cached_ref(const mica__launch *launch)
{
    mica__tensor in[CUT_INPUTS];
    mica__launch cut;
    MICA_TRY(cached_cut(launch, in, &cut));
    return mica__attention_ref(&cut);
}

mica_status mica__attention_cached_cpu(const mica__launch *launch)
{
    mica__tensor in[CUT_INPUTS];
    mica__launch cut;
    MICA_TRY(cached_cut(launch, in, &cut));
    if (mica__dtype_of(launch->out) == MICA_F64 || mica__spec_size(&launch->out->spec) == 0 ||
        !mica__attention_can_stream(in))
        return mica__attention_cpu(&cut);
    const mica__attention_job job = mica__attention_job_of(&cut);
    mica__attention_stream(&job);
    return MICA_OK;
}

/* Enough for any length. */
size_t mica__attention_cached_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out)
{
    (void)n_in, (void)attr;
    if (out->dtype == MICA_F64 || mica__spec_size(out) == 0) return 0;
    return (mica__attention_can_stream(in) ? mica__attention_stream_floats(in) : mica__attention_packed_most(in)) *
           sizeof(float);
}
