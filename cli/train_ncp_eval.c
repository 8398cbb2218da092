/* mica train ncp: batches, and what a network is worth on a part of the data. Scores are
 * summed here, in double, from the outputs: a last batch that is not full is filled up
 * with windows that do not count. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "train_ncp.h"

size_t ncp_batch_arrays(ncp_run *r, mica_scope *s, bool targets, mica_array *data[3])
{
    const series_recipe *c = &r->data.recipe;
    const int64_t b = r->batch, t = r->o.seq;
    size_t n = 0;
    data[n++] = mica_from_data(s, MICA_F32, 3, (const int64_t[]){b, t, (int64_t)c->inputs}, r->x);
    if (targets && c->classes) data[n++] = mica_from_data(s, MICA_I32, 2, (const int64_t[]){b, t}, r->label);
    else if (targets) data[n++] = mica_from_data(s, MICA_F32, 3, (const int64_t[]){b, t, (int64_t)c->targets}, r->y);
    if (c->time) data[n++] = mica_from_data(s, MICA_F32, 2, (const int64_t[]){b, t}, r->span);
    return n;
}

typedef struct score_sums {
    double loss, square, size, right, of, of_square;
    int64_t rows, values;
} score_sums;

/* -log of the share that softmax gives the label. */
static double nats_of(const float *logits, size_t n, int32_t label, bool *right)
{
    double most = -INFINITY, sum = 0;
    size_t best = 0;
    for (size_t k = 0; k < n; k++)
        if ((double)logits[k] > most) most = (double)logits[k], best = k;
    for (size_t k = 0; k < n; k++) sum += exp((double)logits[k] - most);
    *right = best == (size_t)label;
    return log(sum) + most - (double)logits[label];
}

static void score_row(const ncp_run *r, size_t row, const float *out, score_sums *t)
{
    const series_recipe *c = &r->data.recipe;
    t->rows++;
    if (c->classes) {
        bool right;
        t->loss += nats_of(out, c->classes, r->label[row], &right);
        t->right += right;
        return;
    }
    for (size_t k = 0; k < c->targets; k++) {
        const double want = (double)r->y[row * c->targets + k], error = (double)out[k] - want;
        const double unit = c->target[k].deviation, value = want * unit + c->target[k].mean;
        t->loss += error * error;
        t->square += error * unit * error * unit;
        t->size += fabs(error * unit);
        t->of += value;
        t->of_square += value * value;
        t->values++;
    }
}

static mica_status score_batch(ncp_run *r, size_t windows, score_sums *t)
{
    mica_scope *s = mica_scope_begin(r->engine);
    mica_array *data[3], *y = NULL;
    const size_t n = ncp_batch_arrays(r, s, false, data);
    mica_status status = mica_network_run(r->network, s, data, n, &y, 1);
    if (status == MICA_OK) y = mica_contiguous(s, y), status = mica_eval(s, &y, 1);
    const float *out = status == MICA_OK ? mica_data_f32(y) : NULL;
    const size_t width = (size_t)r->net.shape.outputs, rows = windows * (size_t)r->o.seq;
    for (size_t row = 0; out && row < rows; row++) score_row(r, row, out + row * width, t);
    mica_scope_end(s);
    return status;
}

mica_status ncp_evaluate(ncp_run *r, int part, ncp_score *score)
{
    const ncp_windows *w = &r->data.part[part];
    score_sums t = {0};
    mica_status status = MICA_OK;
    for (size_t done = 0; done < w->n && status == MICA_OK;) {
        const size_t n = w->n - done < (size_t)r->batch ? w->n - done : (size_t)r->batch;
        for (size_t i = 0; i < (size_t)r->batch; i++)
            ncp_window_copy(&r->data, &w->list[done + (i < n ? i : 0)], r->o.seq, i, r->x, r->y, r->label, r->span);
        status = score_batch(r, n, &t);
        done += n;
    }
    const double values = (double)(t.values ? t.values : 1), rows = (double)(t.rows ? t.rows : 1);
    const double spread = t.of_square - t.of * t.of / values;
    *score = (ncp_score){.loss = t.loss / (r->data.recipe.classes ? rows : values),
                         .mse = t.square / values,
                         .mae = t.size / values,
                         .r2 = spread > 0 ? 1 - t.square / spread : NAN,
                         .accuracy = t.right / rows,
                         .rows = t.rows};
    return status;
}
