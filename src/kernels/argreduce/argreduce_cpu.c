/* Argmax and argmin on many threads. f32 needs no order keys. Contiguous f32 rows are processed in
 * chunks: first the extreme of each chunk is computed; the index is searched only in the chunk that
 * has the extreme of the row. */
#include <math.h>

#include "codegen/chain.h"
#include "kernels/argreduce/argreduce.h"
#include "kernels/order.h"
#include "kernels/walk.h"

typedef struct argreduce_job {
    const mica__launch *launch;
    bool largest;
} argreduce_job;

static int64_t argreduce_row_f32(const float *x, int64_t n, int64_t step, bool largest)
{
    int64_t where = 0;
    float best = x[0];
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i * step];
        if (v != v) return i; /* argmax and argmin both return the first NaN */
        if (largest ? v > best : v < best) {
            best = v;
            where = i;
        }
    }
    return where;
}

static int64_t argreduce_chunks_f32(const char *x, int64_t n, bool largest)
{
    enum { CHUNK = 2048 };
    int64_t chunk = 0;
    double best = largest ? -INFINITY : INFINITY;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const double value = mica__chain_fold_f32(largest ? MICA__OP_MAX : MICA__OP_MIN, x + i * (int64_t)sizeof(float),
                                                  mica__min_i64(CHUNK, n - i));
        if (value == value && !(largest ? value > best : value < best)) continue;
        best = value;
        chunk = i;
        if (value != value) break; /* argmax and argmin both return the first NaN */
    }
    const float *at = (const float *)(const void *)x;
    while (best == best ? (double)at[chunk] != best : at[chunk] == at[chunk]) chunk++; /* always found */
    return chunk;
}

static int64_t argreduce_row(mica_dtype dtype, const char *x, int64_t n, int64_t step, bool largest)
{
    int64_t where = 0;
    uint64_t best = mica__order_key(dtype, x, 0);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = mica__order_key(dtype, x, i * step);
        if (key == MICA__KEY_NAN && mica__is_float(dtype)) return i;
        if (largest ? key > best : key < best) {
            best = key;
            where = i;
        }
    }
    return where;
}

static void argreduce_rows(const void *context, int64_t begin, int64_t end)
{
    const argreduce_job *job = context;
    const mica__tensor *x = &job->launch->in[0];
    const mica_dtype dtype = mica__dtype_of(x);
    const int64_t n = mica__row_size(&x->spec), step = mica__row_stride(x);
    int64_t *out = (int64_t *)(void *)job->launch->out->data;
    mica__walk walk;
    mica__walk_rows(&walk, x, begin);
    for (int64_t row = begin; row < end; row++, mica__walk_next(&walk)) {
        const char *from = mica__element(x, walk.offset);
        if (n == 0) out[row] = 0;
        else if (dtype == MICA_F32 && step == 1) out[row] = argreduce_chunks_f32(from, n, job->largest);
        else if (dtype == MICA_F32)
            out[row] = argreduce_row_f32((const float *)(const void *)from, n, step, job->largest);
        else out[row] = argreduce_row(dtype, from, n, step, job->largest);
    }
}

static mica_status argreduce_run(const mica__launch *launch, bool largest)
{
    const argreduce_job job = {launch, largest};
    const mica__spec *spec = &launch->in[0].spec;
    mica__run_rows(launch->pool, mica__row_count(spec), 2 * mica__row_size(spec), argreduce_rows, &job);
    return MICA_OK;
}

mica_status mica__argmax_cpu(const mica__launch *launch) { return argreduce_run(launch, true); }
mica_status mica__argmin_cpu(const mica__launch *launch) { return argreduce_run(launch, false); }
