/* Synapses in double, for any dtypes and strides. */
#include <math.h>

#include "kernels/synapses/synapses.h"
#include "kernels/walk.h"

typedef struct synapses_ref {
    const mica__launch *launch;
    const mica__tensor *source; /* NULL: none                                            */
    int64_t n, sources, rows, cols;
} synapses_ref;

static synapses_ref ref_of(const mica__launch *launch, bool has_source)
{
    const mica__tensor *in = launch->in;
    return (synapses_ref){launch,
                          has_source ? &in[5] : NULL,
                          in[0].spec.shape[0],
                          in[0].spec.shape[1],
                          in[1].spec.shape[0],
                          in[1].spec.shape[1]};
}

static double at2(const mica__tensor *t, int64_t i, int64_t k)
{
    return mica__get_f64(mica__dtype_of(t), t->data, i * t->strides[0] + k * t->strides[1]);
}

static mica_status source_of(const synapses_ref *r, int64_t k, int64_t c, int64_t *source)
{
    *source = k;
    if (!r->source) return MICA_OK;
    *source = mica__get_i64(MICA_I32, r->source->data, k * r->source->strides[0] + c * r->source->strides[1]);
    if (*source >= 0 && *source < r->sources) return MICA_OK;
    return mica__fail(MICA_ERR_INDEX, "synapses: source %lld of %lld", (long long)*source, (long long)r->sources);
}

static double opening(const synapses_ref *r, int64_t n, int64_t source, int64_t k, int64_t c, double *far)
{
    const mica__tensor *in = r->launch->in;
    *far = at2(&in[0], n, source) - at2(&in[2], k, c);
    return 1 / (1 + exp(-at2(&in[1], k, c) * *far));
}

mica_status mica__synapses_ref(const mica__launch *launch)
{
    const synapses_ref r = ref_of(launch, launch->n_in > 5);
    const mica_dtype dtype = mica__dtype_of(launch->out);
    for (int64_t n = 0; n < r.n; n++)
        for (int64_t c = 0; c < r.cols; c++) {
            double sum[2] = {0, 0}, far;
            for (int64_t k = 0; k < r.rows; k++) {
                int64_t source;
                MICA_TRY(source_of(&r, k, c, &source));
                const double open = opening(&r, n, source, k, c, &far);
                for (int i = 0; i < 2; i++) sum[i] += open * at2(&launch->in[3 + i], k, c);
            }
            for (int i = 0; i < 2; i++) mica__set_f64(dtype, launch->out->data, (2 * n + i) * r.cols + c, sum[i]);
        }
    return MICA_OK;
}

typedef struct synapse_slopes {
    double x, param[MICA__SYNAPSE_PARAMS];
} synapse_slopes;

static synapse_slopes slopes_of(const synapses_ref *r, int64_t n, int64_t source, int64_t k, int64_t c)
{
    const mica__tensor *in = r->launch->in, *ct = &in[r->launch->n_in - 1];
    double far, ct_of[2];
    for (int i = 0; i < 2; i++)
        ct_of[i] =
            mica__get_f64(mica__dtype_of(ct), ct->data, n * ct->strides[0] + i * ct->strides[1] + c * ct->strides[2]);
    const double open = opening(r, n, source, k, c, &far);
    const double slope = (ct_of[0] * at2(&in[3], k, c) + ct_of[1] * at2(&in[4], k, c)) * open * (1 - open);
    const double dx = slope * at2(&in[1], k, c);
    return (synapse_slopes){dx, {slope * far, -dx, ct_of[0] * open, ct_of[1] * open}};
}

/* dx of one x and source; 0 where nobody listens. */
static mica_status ref_dx(const synapses_ref *r, int64_t n, int64_t which, double *sum)
{
    *sum = 0;
    for (int64_t k = 0; k < r->rows; k++)
        for (int64_t c = 0; c < r->cols; c++) {
            int64_t source;
            MICA_TRY(source_of(r, k, c, &source));
            if (source == which) *sum += slopes_of(r, n, source, k, c).x;
        }
    return MICA_OK;
}

mica_status mica__synapses_grad_ref(const mica__launch *launch)
{
    const synapses_ref r = ref_of(launch, launch->n_in > 6);
    const mica_dtype dtype = mica__dtype_of(launch->out);
    const int64_t each = r.rows * r.cols, before = r.n * r.sources;
    for (int64_t i = 0; i < before; i++) {
        double sum;
        MICA_TRY(ref_dx(&r, i / r.sources, i % r.sources, &sum));
        mica__set_f64(dtype, launch->out->data, i, sum);
    }
    for (int64_t i = 0; i < each; i++) {
        double sum[MICA__SYNAPSE_PARAMS] = {0};
        int64_t source;
        MICA_TRY(source_of(&r, i / r.cols, i % r.cols, &source));
        for (int64_t n = 0; n < r.n; n++) {
            const synapse_slopes s = slopes_of(&r, n, source, i / r.cols, i % r.cols);
            for (int p = 0; p < MICA__SYNAPSE_PARAMS; p++) sum[p] += s.param[p];
        }
        for (int p = 0; p < MICA__SYNAPSE_PARAMS; p++)
            mica__set_f64(dtype, launch->out->data, before + p * each + i, sum[p]);
    }
    return MICA_OK;
}
