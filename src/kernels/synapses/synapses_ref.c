/* Synapses in double, for any dtypes and strides. */
#include <inttypes.h>
#include <math.h>

#include "kernels/synapses/synapses.h"
#include "kernels/walk.h"

/* ------------------------------------------------------------------ lists -- */

mica_status mica__synapses_bad_source(int64_t source, int64_t sources)
{
    return mica__fail(MICA_ERR_INDEX, "synapses: source %" PRId64 " of %" PRId64, source, sources);
}

mica_status mica__synapses_bad_first(int64_t column, int64_t first, int64_t synapses)
{
    return mica__fail(MICA_ERR_INDEX, "synapses: first[%" PRId64 "] is %" PRId64 "; they ascend from 0 to %" PRId64,
                      column, first, synapses);
}

static int64_t int_at(const mica__tensor *t, int64_t i) { return mica__get_i64(MICA_I32, t->data, i * t->strides[0]); }

mica_status mica__synapses_check(const mica__launch *launch)
{
    const mica__tensor *source = &launch->in[5], *first = &launch->in[6];
    const int64_t sources = launch->in[0].spec.shape[1], synapses = source->spec.shape[0],
                  cols = first->spec.shape[0] - 1;
    for (int64_t i = 0; i < synapses; i++)
        if (int_at(source, i) < 0 || int_at(source, i) >= sources)
            return mica__synapses_bad_source(int_at(source, i), sources);
    for (int64_t c = 0; c <= cols; c++) {
        const int64_t at = int_at(first, c), before = c ? int_at(first, c - 1) : 0;
        if (at < before || (c == 0 && at != 0) || (c == cols && at != synapses))
            return mica__synapses_bad_first(c, at, synapses);
    }
    return MICA_OK;
}

/* ------------------------------------------------------------------- sums -- */

typedef struct synapses_ref {
    const mica__launch *launch;
    const mica__tensor *source, *first; /* NULL: a block                                 */
    int64_t n, sources, synapses, cols;
} synapses_ref;

static mica_status ref_of(const mica__launch *launch, bool listed, synapses_ref *r)
{
    const mica__tensor *in = launch->in;
    *r = (synapses_ref){launch,
                        listed ? &in[5] : NULL,
                        listed ? &in[6] : NULL,
                        in[0].spec.shape[0],
                        in[0].spec.shape[1],
                        mica__spec_size(&in[1].spec),
                        listed ? in[6].spec.shape[0] - 1 : in[1].spec.shape[1]};
    return listed ? mica__synapses_check(launch) : MICA_OK;
}

/* The column that synapse k adds to, and the source that it reads. */
typedef struct synapse_place {
    int64_t column, source;
} synapse_place;

static synapse_place place_of(const synapses_ref *r, int64_t k)
{
    if (!r->source) return (synapse_place){k % r->cols, k / r->cols};
    synapse_place p = {0, int_at(r->source, k)};
    while (int_at(r->first, p.column + 1) <= k) p.column++;
    return p;
}

static double param_at(const synapses_ref *r, int which, int64_t k)
{
    const mica__tensor *t = &r->launch->in[which];
    const int64_t at = r->source ? k * t->strides[0] : k / r->cols * t->strides[0] + k % r->cols * t->strides[1];
    return mica__get_f64(mica__dtype_of(t), t->data, at);
}

static double opening(const synapses_ref *r, int64_t n, int64_t source, int64_t k, double *far)
{
    const mica__tensor *x = &r->launch->in[0];
    *far = mica__get_f64(mica__dtype_of(x), x->data, n * x->strides[0] + source * x->strides[1]) - param_at(r, 2, k);
    return 1 / (1 + exp(-param_at(r, 1, k) * *far));
}

mica_status mica__synapses_ref(const mica__launch *launch)
{
    synapses_ref r;
    MICA_TRY(ref_of(launch, launch->n_in > 5, &r));
    const mica_dtype dtype = mica__dtype_of(launch->out);
    for (int64_t n = 0; n < r.n; n++)
        for (int64_t c = 0; c < r.cols; c++) {
            double sum[2] = {0, 0}, far;
            const int64_t begin = r.first ? int_at(r.first, c) : c, end = r.first ? int_at(r.first, c + 1) : r.synapses;
            for (int64_t k = begin; k < end; k += r.first ? 1 : r.cols) {
                const int64_t source = r.source ? int_at(r.source, k) : k / r.cols;
                const double open = opening(&r, n, source, k, &far);
                for (int i = 0; i < 2; i++) sum[i] += open * param_at(&r, 3 + i, k);
            }
            for (int i = 0; i < 2; i++) mica__set_f64(dtype, launch->out->data, (2 * n + i) * r.cols + c, sum[i]);
        }
    return MICA_OK;
}

/* -------------------------------------------------------------- gradients -- */

typedef struct synapse_slopes {
    double x, param[MICA__SYNAPSE_PARAMS];
} synapse_slopes;

static synapse_slopes slopes_of(const synapses_ref *r, int64_t n, synapse_place at, int64_t k)
{
    const mica__tensor *ct = &r->launch->in[r->launch->n_in - 1];
    double far, ct_of[2];
    for (int i = 0; i < 2; i++)
        ct_of[i] = mica__get_f64(mica__dtype_of(ct), ct->data,
                                 n * ct->strides[0] + i * ct->strides[1] + at.column * ct->strides[2]);
    const double open = opening(r, n, at.source, k, &far);
    const double slope = (ct_of[0] * param_at(r, 3, k) + ct_of[1] * param_at(r, 4, k)) * open * (1 - open);
    const double dx = slope * param_at(r, 1, k);
    return (synapse_slopes){dx, {slope * far, -dx, ct_of[0] * open, ct_of[1] * open}};
}

/* dx of one x and source; 0 if no synapse reads the source. */
static double ref_dx(const synapses_ref *r, int64_t n, int64_t which)
{
    double sum = 0;
    for (int64_t k = 0; k < r->synapses; k++) {
        const synapse_place at = place_of(r, k);
        if (at.source == which) sum += slopes_of(r, n, at, k).x;
    }
    return sum;
}

mica_status mica__synapses_grad_ref(const mica__launch *launch)
{
    synapses_ref r;
    MICA_TRY(ref_of(launch, launch->n_in > 6, &r));
    const mica_dtype dtype = mica__dtype_of(launch->out);
    const int64_t before = r.n * r.sources;
    for (int64_t i = 0; i < before; i++)
        mica__set_f64(dtype, launch->out->data, i, ref_dx(&r, i / r.sources, i % r.sources));
    for (int64_t k = 0; k < r.synapses; k++) {
        double sum[MICA__SYNAPSE_PARAMS] = {0};
        const synapse_place at = place_of(&r, k);
        for (int64_t n = 0; n < r.n; n++) {
            const synapse_slopes s = slopes_of(&r, n, at, k);
            for (int p = 0; p < MICA__SYNAPSE_PARAMS; p++) sum[p] += s.param[p];
        }
        for (int p = 0; p < MICA__SYNAPSE_PARAMS; p++)
            mica__set_f64(dtype, launch->out->data, before + p * r.synapses + k, sum[p]);
    }
    return MICA_OK;
}
