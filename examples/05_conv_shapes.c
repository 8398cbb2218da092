/* A small convolutional network that classifies discs, squares and crosses. mica draws the pictures: comparisons of
 * coordinates with added noise. Gradient descent with momentum, one scope per step. Exits with an error unless more
 * than 95 % of new pictures are classified correctly. */
#include <math.h>
#include <stdio.h>

#include "mica.h"

enum { SIDE = 16, BATCH = 64, CLASSES = 3, PARAMS = 6, STEPS = 150 };

static mica_array *number(mica_scope *s, double v) { return mica_scalar(s, v); }

/* (n, 1, SIDE, SIDE) pictures and their classes. */
static void draw(mica_scope *s, int64_t n, uint64_t seed, mica_array **x, mica_array **label)
{
    const int64_t each[4] = {n, 1, 1, 1};
    *label = mica_random_randint(s, MICA_I32, 1, &n, 0, CLASSES, mica_seed_split(seed, 0));
    mica_array *kind = mica_reshape(s, *label, 4, each);
    mica_array *cx = mica_random_uniform(s, MICA_F32, 4, each, 5, SIDE - 5, mica_seed_split(seed, 1));
    mica_array *cy = mica_random_uniform(s, MICA_F32, 4, each, 5, SIDE - 5, mica_seed_split(seed, 2));
    mica_array *r = mica_random_uniform(s, MICA_F32, 4, each, 2.5, 4.5, mica_seed_split(seed, 3));
    mica_array *line = mica_arange(s, MICA_F32, 0, SIDE, 1);
    mica_array *dx = mica_abs(s, mica_sub(s, mica_reshape(s, line, 4, (int64_t[]){1, 1, 1, SIDE}), cx));
    mica_array *dy = mica_abs(s, mica_sub(s, mica_reshape(s, line, 4, (int64_t[]){1, 1, SIDE, 1}), cy));
    mica_array *near = mica_less(s, mica_maximum(s, dx, dy), r);
    mica_array *disc = mica_less(s, mica_hypot(s, dx, dy), r);
    mica_array *cross = mica_logical_and(s, near, mica_less(s, mica_minimum(s, dx, dy), number(s, 1.0)));
    mica_array *shape = mica_where(s, mica_equal(s, kind, number(s, 0)), disc,
                                   mica_where(s, mica_equal(s, kind, number(s, 1)), near, cross));
    mica_array *noise = mica_random_normal(s, MICA_F32, 4, (int64_t[]){n, 1, SIDE, SIDE}, mica_seed_split(seed, 4));
    *x = mica_add(s, mica_cast(s, shape, MICA_F32), mica_mul(s, noise, number(s, 0.15)));
}

/* conv 3x3 - relu - pool - conv 3x3 - relu - pool - linear */
static mica_array *forward(mica_scope *s, mica_array *const *p, mica_array *x)
{
    mica_conv_options conv;
    mica_pool_options pool;
    mica_conv_options_init(&conv);
    mica_pool_options_init(&pool);
    conv.padding[0] = conv.padding[1] = 1;
    pool.kernel[0] = pool.kernel[1] = 2;
    for (int layer = 0; layer < 2; layer++) {
        x = mica_add(s, mica_conv2d(s, x, p[2 * layer], &conv), p[2 * layer + 1]);
        x = mica_max_pool2d(s, mica_relu(s, x), &pool);
    }
    x = mica_reshape(s, x, 2, (int64_t[]){-1, 16 * (SIDE / 4) * (SIDE / 4)});
    return mica_add(s, mica_matmul(s, x, p[4]), p[5]);
}

static mica_array *loss_of(mica_scope *s, mica_array *const *p, size_t n, void *user)
{
    (void)n;
    mica_array **data = user;
    return mica_mean(s, mica_cross_entropy(s, forward(s, p, data[0]), data[1]), NULL, 0, false);
}

static mica_status init(mica_scope *s, mica_array **state)
{
    static const int64_t shape[PARAMS][4] = {
        {8, 1, 3, 3}, {1, 8, 1, 1}, {16, 8, 3, 3}, {1, 16, 1, 1}, {16 * (SIDE / 4) * (SIDE / 4), CLASSES},
        {1, CLASSES}};
    static const int ndim[PARAMS] = {4, 4, 4, 4, 2, 2};
    static const double scale[PARAMS] = {0.4, 0, 0.15, 0, 0.06, 0};
    for (int i = 0; i < PARAMS; i++) {
        state[i] = mica_mul(s, mica_random_normal(s, MICA_F32, ndim[i], shape[i], mica_seed_split(5, (uint64_t)i)),
                            number(s, scale[i]));
        state[PARAMS + i] = mica_zeros(s, MICA_F32, ndim[i], shape[i]);
    }
    return mica_eval(s, state, 2 * PARAMS);
}

static mica_status step(mica_engine *e, mica_array **state, uint64_t seed, double *loss)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *data[2], *grad[PARAMS], *out[2 * PARAMS + 1];
    draw(s, BATCH, seed, &data[0], &data[1]);
    mica_status status = mica_value_and_grad(s, loss_of, data, state, PARAMS, &out[2 * PARAMS], grad);
    for (int i = 0; i < PARAMS && status == MICA_OK; i++) {
        out[PARAMS + i] = mica_add(s, mica_mul(s, state[PARAMS + i], number(s, 0.9)), grad[i]);
        out[i] = mica_sub(s, state[i], mica_mul(s, out[PARAMS + i], number(s, 0.05)));
    }
    if (status == MICA_OK) status = mica_eval(s, out, 2 * PARAMS + 1);
    if (status == MICA_OK) status = mica_item(out[2 * PARAMS], loss);
    for (int i = 0; i < 2 * PARAMS && status == MICA_OK; i++) {
        mica_drop(state[i]);
        state[i] = mica_keep(out[i]);
    }
    mica_scope_end(s);
    return status;
}

static mica_status accuracy(mica_engine *e, mica_array *const *p, double *out)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x, *label;
    draw(s, 500, 1000000, &x, &label);
    mica_array *hit = mica_equal(s, mica_argmax(s, forward(s, p, x), 1, false), label);
    mica_array *share = mica_mean(s, hit, NULL, 0, false);
    mica_status status = mica_eval(s, &share, 1);
    if (status == MICA_OK) status = mica_item(share, out);
    mica_scope_end(s);
    return status;
}

int main(void)
{
    mica_engine *e;
    mica_array *state[2 * PARAMS];
    double share = 0, loss = 0;
    if (mica_open(NULL, &e) != MICA_OK) {
        fprintf(stderr, "conv_shapes: %s\n", mica_last_error());
        return 1;
    }
    mica_scope *s = mica_scope_begin(e);
    mica_status status = init(s, state);
    for (int i = 0; i < 2 * PARAMS && status == MICA_OK; i++) mica_keep(state[i]);
    for (int i = 0; i < STEPS && status == MICA_OK; i++) {
        status = step(e, state, (uint64_t)i, &loss);
        if (status == MICA_OK && i % 25 == 0) printf("step %3d  loss %.4f\n", i, loss);
    }
    if (status == MICA_OK) status = accuracy(e, state, &share);
    if (status != MICA_OK) fprintf(stderr, "conv_shapes: %s\n", mica_last_error());
    else printf("%.1f %% of 500 new pictures are right\n", 100.0 * share);
    for (int i = 0; i < 2 * PARAMS && status == MICA_OK; i++) mica_drop(state[i]);
    mica_scope_end(s);
    mica_close(e);
    return status == MICA_OK && share > 0.95 ? 0 : 1;
}
