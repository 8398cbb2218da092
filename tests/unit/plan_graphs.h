/* Graphs for plan tests: random graphs for properties that must hold for all plans, and functions
 * that return the plan that an engine makes for given arrays. */
#ifndef MICA_TEST_PLAN_GRAPHS_H
#define MICA_TEST_PLAN_GRAPHS_H

#include "api.h"
#include "runtime/run.h"

/* The plan of arrays, held until mica__cached_drop. */
static UNUSED const mica__plan *plan_of(mica_scope *s, mica_array *const *arrays, size_t n, mica__cached **entry)
{
    mica__runner *r = NULL;
    *entry = NULL;
    mica_status status = mica__runner_acquire(s->engine, &r);
    if (status == MICA_OK) status = mica__capture_run(&r->capture, arrays, n, NULL, 0);
    if (status == MICA_OK) status = mica__run_plan(s->engine, r, arrays, n, entry);
    EXPECT_MSG(status == MICA_OK, "%s", mica_last_error());
    if (r) mica__runner_release(s->engine, r);
    return *entry ? (*entry)->plan : NULL;
}

static UNUSED mica_plan_info info_of(mica_scope *s, mica_array *const *arrays, size_t n)
{
    mica_plan_info info = {.struct_size = sizeof info};
    EXPECT_OK(mica_plan_query(s, arrays, n, &info));
    return info;
}

/* --------------------------------------------------------- random graphs ---- */

typedef struct dice {
    uint64_t state;
} dice;

static UNUSED uint32_t roll(dice *d, uint32_t sides)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % sides;
}

enum { MAX_POOL = 256, MAX_RESULTS = 5 };

typedef struct graph_pool {
    dice d;
    mica_scope *s;
    mica_array *array[MAX_POOL]; /* all f32 with two axes */
    int n;
} graph_pool;

static int64_t rows_of(const mica_array *a) { return mica_array_shape(a)[0]; }
static int64_t cols_of(const mica_array *a) { return mica_array_shape(a)[1]; }

static mica_array *any_of(graph_pool *p)
{
    /* often a recent one, so that graphs have long chains and are also wide */
    const int back =
        roll(&p->d, 3) == 0 ? (int)roll(&p->d, (uint32_t)p->n) : (int)roll(&p->d, p->n < 4 ? (uint32_t)p->n : 4);
    return p->array[p->n - 1 - back];
}

/* Another array that broadcasts with x, or x itself. */
static mica_array *partner_of(graph_pool *p, mica_array *x)
{
    for (int i = 0; i < 8; i++) {
        mica_array *y = any_of(p);
        const bool rows = rows_of(x) == rows_of(y) || rows_of(x) == 1 || rows_of(y) == 1;
        const bool cols = cols_of(x) == cols_of(y) || cols_of(x) == 1 || cols_of(y) == 1;
        if (rows && cols) return y;
    }
    return x;
}

static mica_status graph_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    mica_array *w = user; /* (1, n), captured */
    co[0] = mica_tanh(s, mica_add(s, c[0], mica_mul(s, x[0], mica_reshape(s, w, SHAPE(cols_of(w))))));
    y[0] = mica_sub(s, co[0], mica_sigmoid(s, x[0]));
    return MICA_OK;
}

static mica_array *graph_scan(graph_pool *p, mica_array *x)
{
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    o.reverse = roll(&p->d, 2);
    mica_array *first = mica_sum(p->s, x, (int[]){0}, 1, false), *last, *ys;
    mica_array *w = mica_max(p->s, x, (int[]){0}, 1, true);
    if (mica_scan(p->s, graph_step, w, &o, &first, &x, &last, &ys) != MICA_OK) return NULL;
    return roll(&p->d, 2) ? ys : mica_reshape(p->s, last, SHAPE(1, cols_of(x)));
}

/* Numbers stay within about 1, and no op amplifies small differences, so that the
 * results of different plans can be compared. */
static mica_array *half(mica_scope *s, mica_array *x) { return mica_mul(s, x, mica_scalar(s, 0.5)); }

static mica_array *graph_op(graph_pool *p)
{
    mica_scope *s = p->s;
    mica_array *x = any_of(p), *y = partner_of(p, x);
    const int64_t rows = rows_of(x), cols = cols_of(x);
    const int axis = (int)roll(&p->d, 2);
    if (rows * cols > 20000) return mica_mean(s, x, &axis, 1, true);
    switch (roll(&p->d, 25)) {
    case 0: return mica_tanh(s, x);
    case 1: return mica_exp(s, mica_neg(s, mica_abs(s, x)));
    case 2:
    case 3: return half(s, mica_add(s, x, y));
    case 4:
    case 5: return mica_mul(s, x, y);
    case 6: return mica_sub(s, half(s, x), mica_scalar(s, 0.25));
    case 7: return half(s, mica_gelu(s, mica_add(s, mica_mul(s, x, y), x)));
    case 8: return mica_tanh(s, mica_matmul(s, x, mica_transpose(s, x)));
    case 9: return mica_sigmoid(s, mica_add(s, mica_matmul(s, mica_transpose(s, x), x), mica_scalar(s, 1)));
    case 10: return mica_softmax(s, x, axis);
    case 11: return mica_tanh(s, mica_sum(s, x, &axis, 1, true));
    case 12: return mica_max(s, mica_square(s, x), &axis, 1, true);
    case 13: return mica_slice_axis(s, x, 0, 0, (rows + 1) / 2, 1);
    case 14: return mica_transpose(s, x);
    case 15: return mica_flip(s, x, axis);
    case 16: return mica_reshape(s, x, SHAPE(cols, rows));
    case 17: return mica_concat(s, ARRAYS(x, mica_relu(s, x)), axis);
    case 18: return mica_tanh(s, mica_cumsum(s, x, axis));
    case 19: return mica_tanh(s, mica_layer_norm(s, x, NULL, NULL, 1));
    case 20: return mica_broadcast_to(s, mica_mean(s, x, (int[]){0}, 1, true), SHAPE(rows, cols));
    case 21: return mica_tanh(s, mica_random_normal(s, MICA_F32, SHAPE(8, 17), 1 + roll(&p->d, 3)));
    case 22: return mica_where(s, mica_less(s, x, mica_scalar(s, 0.3)), x, half(s, y));
    case 23: return mica_checkpoint(s, mica_sigmoid(s, mica_tanh(s, mica_mul(s, x, y))), ARRAYS(x, y));
    default: return graph_scan(p, x);
    }
}

/* Builds n_ops random ops over a few leaves and returns *n results. For every third seed the
 * last two are gradients of the mean of the results with respect to leaves. */
static UNUSED mica_status random_graph(mica_scope *s, uint64_t seed, int n_ops, mica_array **results, size_t *n)
{
    graph_pool p = {.d = {seed * 77777 + 1}, .s = s};
    static float data[8 * 17];
    for (int i = 0; i < 8 * 17; i++) data[i] = (float)(i * 37 % 136) / 136 - 0.3f;
    p.array[p.n++] = mica_from_data(s, MICA_F32, SHAPE(8, 17), data);
    p.array[p.n++] = mica_transpose(s, mica_wrap(s, MICA_F32, SHAPE(8, 17), NULL, data, NULL, NULL));
    p.array[p.n++] = mica_slice_axis(s, p.array[0], 0, 3, 4, 1);
    p.array[p.n++] = mica_ones(s, MICA_F32, SHAPE(8, 1));
    for (int i = 0; i < n_ops && p.n < MAX_POOL; i++) {
        p.array[p.n] = graph_op(&p);
        if (!p.array[p.n]) return mica_scope_status(s);
        p.n++;
    }
    *n = 1 + roll(&p.d, MAX_RESULTS);
    results[0] = p.array[p.n - 1];
    for (size_t i = 1; i < *n; i++) results[i] = p.array[roll(&p.d, (uint32_t)p.n)];
    if (seed % 3 != 0) return MICA_OK;
    mica_array *loss = mica_mean(s, results[0], NULL, 0, false), *grads[2];
    for (size_t i = 1; i < *n; i++) loss = mica_add(s, loss, mica_mean(s, results[i], NULL, 0, false));
    const mica_status status = mica_grad(s, loss, p.array, 2, grads);
    if (status != MICA_OK) return status;
    if (*n > 3) *n = 3;
    results[*n - 1] = grads[0];
    results[*n] = grads[1];
    *n += 1;
    return MICA_OK;
}

#endif
