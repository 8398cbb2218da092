/* Batches cut from a text given as a list of tokens. */
#include <stdlib.h>

#include "mica_nn.h"

int64_t mica_batch_count(int64_t n, int64_t time) { return n > 1 && time > 0 ? (n - 1) / time : 0; }

static mica_status check_batch(const int32_t *tokens, int64_t n, int64_t batch, int64_t time)
{
    const int64_t limit = (int64_t)1 << 31;
    if (!tokens || batch < 1 || time < 1 || batch > limit / time)
        return mica_fail(MICA_ERR_ARGUMENT, "batch: no tokens, or %lld windows of %lld tokens are out of range",
                         (long long)batch, (long long)time);
    if (n <= time)
        return mica_fail(MICA_ERR_ARGUMENT,
                         "batch: a text of %lld tokens is too short for a window of %lld tokens plus one", (long long)n,
                         (long long)time);
    return MICA_OK;
}

/* Window b begins at start[b]. */
static mica_status cut_windows(mica_scope *s, const int32_t *tokens, int64_t batch, int64_t time, const int64_t *start,
                               mica_array *out[2])
{
    const int64_t shape[] = {batch, time};
    int32_t *ids = malloc((size_t)(batch * time) * sizeof *ids);
    if (!ids) return mica_fail(MICA_ERR_MEMORY, "out of memory: %lld tokens", (long long)(batch * time));
    for (int next = 0; next < 2; next++) {
        for (int64_t b = 0; b < batch; b++)
            for (int64_t i = 0; i < time; i++) ids[b * time + i] = tokens[start[b] + i + next];
        out[next] = mica_from_data(s, MICA_I32, 2, shape, ids);
    }
    free(ids);
    return out[0] && out[1] ? MICA_OK : mica_scope_status(s);
}

mica_status mica_batch_random(mica_scope *s, const int32_t *tokens, int64_t n, int64_t batch, int64_t time,
                              uint64_t seed, int64_t step, mica_array *out[2])
{
    mica_status status = check_batch(tokens, n, batch, time);
    int64_t *start = status == MICA_OK ? malloc((size_t)batch * sizeof *start) : NULL;
    if (status == MICA_OK && !start)
        status = mica_fail(MICA_ERR_MEMORY, "out of memory: %lld windows", (long long)batch);
    for (int64_t b = 0; status == MICA_OK && b < batch; b++)
        start[b] = (int64_t)(mica_seed_split(seed, (uint64_t)(step * batch + b)) % (uint64_t)(n - time));
    if (status == MICA_OK) status = cut_windows(s, tokens, batch, time, start, out);
    free(start);
    return status;
}

mica_status mica_batch_windows(mica_scope *s, const int32_t *tokens, int64_t n, int64_t batch, int64_t time,
                               int64_t first, mica_array *out[2])
{
    mica_status status = check_batch(tokens, n, batch, time);
    if (status == MICA_OK && (first < 0 || first + batch > mica_batch_count(n, time)))
        status = mica_fail(MICA_ERR_INDEX, "batch: windows %lld to %lld are out of range; there are %lld",
                           (long long)first, (long long)(first + batch), (long long)mica_batch_count(n, time));
    int64_t *start = status == MICA_OK ? malloc((size_t)batch * sizeof *start) : NULL;
    if (status == MICA_OK && !start)
        status = mica_fail(MICA_ERR_MEMORY, "out of memory: %lld windows", (long long)batch);
    for (int64_t b = 0; status == MICA_OK && b < batch; b++) start[b] = (first + b) * time;
    if (status == MICA_OK) status = cut_windows(s, tokens, batch, time, start, out);
    free(start);
    return status;
}
