/* mica bench: graphs of many ops: a training step, and graphs that measure the overhead
 * of the engine. */
#include "bench/bench.h"

/* ------------------------- a training step: p = inputs, hidden, classes, batch */

/* in: x, labels, w1, b1, w2, b2 */
static void make_mlp(bench_state *b)
{
    const int64_t *p = b->c->p, shapes[][2] = {{p[3], p[0]}, {p[0], p[1]}, {p[1], 0}, {p[1], p[2]}, {p[2], 0}};
    for (uint64_t i = 0; i < 5; i++) {
        mica_array *x = mica_random_normal(b->inputs, MICA_F32, shapes[i][1] ? 2 : 1, shapes[i], 50 + i);
        b->in[b->n_in++] = i == 0 ? x : mica_mul(b->inputs, x, mica_scalar(b->inputs, 0.05));
        if (i == 0) b->in[b->n_in++] = mica_random_randint(b->inputs, MICA_I32, 1, p + 3, 0, p[2], 60);
    }
}

/* Forward, backward and SGD. out: the loss and the four updated parameters. */
static size_t build_mlp(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    mica_array *grads[4] = {0};
    mica_array *hidden = mica_relu(s, mica_add(s, mica_matmul(s, in[0], in[2]), in[3]));
    mica_array *logits = mica_add(s, mica_matmul(s, hidden, in[4]), in[5]);
    out[0] = mica_mean(s, mica_cross_entropy(s, logits, in[1]), NULL, 0, false);
    /* the scope keeps a failure, and the evaluation returns it */
    const mica_status status = mica_grad(s, out[0], in + 2, 4, grads);
    for (int i = 0; i < 4; i++)
        out[i + 1] = status ? NULL : mica_sub(s, in[i + 2], mica_mul(s, grads[i], mica_scalar(s, 0.01)));
    return 5;
}

/* The first layer needs no gradient of its input. */
static void count_mlp(const bench_case *c, bench_work *work)
{
    const double inputs = (double)c->p[0], hidden = (double)c->p[1], classes = (double)c->p[2];
    work->items = (double)c->p[3];
    work->item = "sample";
    work->flops = 2 * work->items * (2 * inputs * hidden + 3 * hidden * classes);
}

const bench_family bench_mlp = {"train", make_mlp, build_mlp, count_mlp};

/* -------------------------------------- many tiny ops: p = elements, nodes */

static void make_tiny(bench_state *b)
{
    for (uint64_t i = 0; i < 3; i++)
        b->in[b->n_in++] = mica_random_uniform(b->inputs, MICA_F32, 1, b->c->p, 0.5, 1.5, i);
}

/* All ops differ and none can be simplified; the values stay bounded. */
static size_t build_tiny(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_array *y = in[0];
    for (int64_t i = 0; i < c->p[1]; i += 2) y = mica_minimum(s, mica_add(s, y, in[1]), in[2]);
    out[0] = y;
    return 1;
}

static void count_tiny(const bench_case *c, bench_work *work)
{
    work->items = (double)c->p[1];
    work->item = "node";
    work->flops = work->bytes = 0;
}

const bench_family bench_tiny = {"graph", make_tiny, build_tiny, count_tiny};

/* -------------- kernels that cannot share one: p = elements, kernels */

/* Cumulative sums, with a norm at every eighth op: measures the overhead of a kernel launch. */
static size_t build_kernels(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_array *y = in[0];
    for (int64_t i = 0; i < c->p[1]; i++) y = i % 8 ? mica_cumsum(s, y, 0) : mica_rms_norm(s, y, NULL, 1e-5);
    out[0] = y;
    return 1;
}

static void count_kernels(const bench_case *c, bench_work *work)
{
    count_tiny(c, work);
    work->item = "kernel";
}

const bench_family bench_kernels = {"graph", make_tiny, build_kernels, count_kernels};

/* ------------------- a deep network's training step: p = size, layers */

static void make_deep(bench_state *b)
{
    const int64_t shape[] = {b->c->p[0], b->c->p[0]};
    for (uint64_t i = 0; i < 2; i++) b->in[b->n_in++] = mica_random_normal(b->inputs, MICA_F32, 2, shape, i);
}

/* Layers of a product, a norm built from basic ops, and an activation. The weights of all
 * layers are computed from one matrix. Then the gradient and one training step. */
static size_t build_deep(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_array *x = in[0], *grad = NULL;
    for (int64_t i = 0; i < c->p[1]; i++) {
        mica_array *z = mica_matmul(s, x, mica_mul(s, in[1], mica_scalar(s, 1 + 0.01 * (double)i)));
        z = mica_sub(s, z, mica_mean(s, z, (int[]){1}, 1, true));
        mica_array *scale = mica_mean(s, mica_square(s, z), (int[]){1}, 1, true);
        z = mica_mul(s, z, mica_rsqrt(s, mica_add(s, scale, mica_scalar(s, 1e-5))));
        x = mica_add(s, x, mica_gelu(s, z));
    }
    out[0] = mica_mean(s, mica_square(s, x), NULL, 0, false);
    const mica_status status = mica_grad(s, out[0], in + 1, 1, &grad);
    out[1] = status ? NULL : mica_sub(s, in[1], mica_mul(s, grad, mica_scalar(s, 0.01)));
    return 2;
}

static void count_deep(const bench_case *c, bench_work *work)
{
    count_tiny(c, work);
    work->item = "layer";
}

const bench_family bench_deep = {"graph", make_deep, build_deep, count_deep};
