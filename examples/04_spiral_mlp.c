/* A multi-layer perceptron that classifies points of two spirals, trained with Adam on generated points. The whole step
 * (forward, backward, update) is one compiled function: traced once, then replayed without building a graph. Exits with
 * an error unless more than 98 % of held-out points are classified correctly. */
#include <math.h>
#include <stdio.h>

#include "mica.h"

enum { POINTS = 512, WIDTH = 32, PARAMS = 6, STEPS = 600 };

/* Two arms of one and a half turns; arm 1 is arm 0 turned by half a turn. */
static void spiral(mica_scope *s, int64_t n, uint64_t seed, mica_array **x, mica_array **label)
{
    mica_array *arm = mica_random_bernoulli(s, 1, &n, 0.5, mica_seed_split(seed, 0));
    mica_array *t = mica_random_uniform(s, MICA_F32, 1, &n, 0.25, 3.0, mica_seed_split(seed, 1));
    mica_array *angle =
        mica_add(s, mica_mul(s, t, mica_scalar(s, 3.14159265)), mica_mul(s, arm, mica_scalar(s, 3.14159265)));
    mica_array *xy[2] = {mica_mul(s, t, mica_cos(s, angle)), mica_mul(s, t, mica_sin(s, angle))};
    mica_array *noise = mica_random_normal(s, MICA_F32, 2, (int64_t[]){n, 2}, mica_seed_split(seed, 2));
    *x = mica_add(s, mica_stack(s, xy, 2, 1), mica_mul(s, noise, mica_scalar(s, 0.03)));
    *label = mica_cast(s, arm, MICA_I32);
}

static mica_array *forward(mica_scope *s, mica_array *const *p, mica_array *x)
{
    for (int layer = 0; layer < 3; layer++) {
        x = mica_add(s, mica_matmul(s, x, p[2 * layer]), p[2 * layer + 1]);
        if (layer < 2) x = mica_tanh(s, x);
    }
    return x;
}

static mica_array *loss_of(mica_scope *s, mica_array *const *p, size_t n, void *user)
{
    (void)n;
    mica_array **data = user;
    return mica_mean(s, mica_cross_entropy(s, forward(s, p, data[0]), data[1]), NULL, 0, false);
}

/* in: x, label, step size, parameters, first and second moments.
 * out: loss, the new parameters and moments. */
static mica_status adam_step(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                             void *user)
{
    (void)n_in, (void)n_out, (void)user;
    mica_array *data[2] = {in[0], in[1]}, *grad[PARAMS];
    mica_array *const *p = in + 3, *const *m = p + PARAMS, *const *v = m + PARAMS;
    const mica_status status = mica_value_and_grad(s, loss_of, data, p, PARAMS, &out[0], grad);
    if (status != MICA_OK) return status;
    for (int i = 0; i < PARAMS; i++) {
        mica_array *m1 = mica_add(s, mica_mul(s, m[i], mica_scalar(s, 0.9)), mica_mul(s, grad[i], mica_scalar(s, 0.1)));
        mica_array *v1 = mica_add(s, mica_mul(s, v[i], mica_scalar(s, 0.99)),
                                  mica_mul(s, mica_square(s, grad[i]), mica_scalar(s, 0.01)));
        mica_array *move = mica_div(s, m1, mica_add(s, mica_sqrt(s, v1), mica_scalar(s, 1e-8)));
        out[1 + i] = mica_sub(s, p[i], mica_mul(s, move, in[2]));
        out[1 + PARAMS + i] = m1;
        out[1 + 2 * PARAMS + i] = v1;
    }
    return MICA_OK;
}

static mica_status init(mica_scope *s, mica_array **state)
{
    static const int64_t shape[PARAMS][2] = {{2, WIDTH}, {1, WIDTH}, {WIDTH, WIDTH}, {1, WIDTH}, {WIDTH, 2}, {1, 2}};
    for (int i = 0; i < PARAMS; i++) {
        const double scale = i % 2 ? 0.0 : 1.0 / sqrt((double)shape[i][0]);
        state[i] = mica_mul(s, mica_random_normal(s, MICA_F32, 2, shape[i], mica_seed_split(7, (uint64_t)i)),
                            mica_scalar(s, scale));
        state[PARAMS + i] = mica_zeros(s, MICA_F32, 2, shape[i]);
        state[2 * PARAMS + i] = mica_zeros(s, MICA_F32, 2, shape[i]);
    }
    return mica_eval(s, state, 3 * PARAMS);
}

static mica_status accuracy(mica_engine *e, mica_array *const *p, double *out)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x, *label;
    spiral(s, 2000, 99, &x, &label);
    mica_array *hit = mica_equal(s, mica_argmax(s, forward(s, p, x), 1, false), label);
    mica_array *share = mica_mean(s, hit, NULL, 0, false);
    mica_status status = mica_eval(s, &share, 1);
    if (status == MICA_OK) status = mica_item(share, out);
    mica_scope_end(s);
    return status;
}

static mica_status train(mica_engine *e, mica_function *step, mica_scope *s, double *share)
{
    mica_array *in[3 + 3 * PARAMS], *out[1 + 3 * PARAMS];
    spiral(s, POINTS, 1, &in[0], &in[1]);
    mica_status status = mica_eval(s, in, 2);
    if (status == MICA_OK) status = init(s, in + 3);
    for (int i = 0; i < 3 * PARAMS && status == MICA_OK; i++) mica_keep(in[3 + i]);
    if (status != MICA_OK) return status;
    for (int i = 0; i < STEPS && status == MICA_OK; i++) {
        const float rate = 0.01f;
        mica_scope *t = mica_scope_begin(e);
        in[2] = mica_from_data(t, MICA_F32, 0, NULL, &rate);
        status = mica_call(t, step, in, 3 + 3 * PARAMS, out, 1 + 3 * PARAMS);
        if (status == MICA_OK && i % 100 == 0) printf("step %3d  loss %.4f\n", i, (double)mica_data_f32(out[0])[0]);
        for (int k = 0; k < 3 * PARAMS && status == MICA_OK; k++) {
            mica_drop(in[3 + k]);
            in[3 + k] = mica_keep(out[1 + k]);
        }
        mica_scope_end(t);
    }
    if (status == MICA_OK) status = accuracy(e, in + 3, share);
    for (int i = 0; i < 3 * PARAMS; i++) mica_drop(in[3 + i]);
    return status;
}

int main(void)
{
    mica_engine *e;
    mica_function *step;
    double share = 0;
    if (mica_open(NULL, &e) != MICA_OK) {
        fprintf(stderr, "spiral_mlp: %s\n", mica_last_error());
        return 1;
    }
    mica_status status = mica_compile(e, adam_step, NULL, &step);
    mica_scope *s = mica_scope_begin(e);
    if (status == MICA_OK) status = train(e, step, s, &share);
    if (status != MICA_OK) fprintf(stderr, "spiral_mlp: %s\n", mica_last_error());
    else printf("%.2f %% of 2000 held-out points are right\n", 100.0 * share);
    mica_scope_end(s);
    mica_function_free(step);
    mica_close(e);
    return status == MICA_OK && share > 0.98 ? 0 : 1;
}
