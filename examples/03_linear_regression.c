/* Linear regression by gradient descent: recovers y = X w + b + noise from 512 samples. Shows the training loop: one
 * scope per step, parameters kept from one step to the next. Exits with an error if the fit is not good. */
#include <math.h>
#include <stdio.h>

#include "mica.h"

enum { SAMPLES = 512, FEATURES = 3, STEPS = 200 };

static mica_array *mean_squared_error(mica_scope *s, mica_array *const *params, size_t n, void *user)
{
    (void)n;
    mica_array **data = user; /* x, y */
    mica_array *predicted = mica_add(s, mica_matmul(s, data[0], params[0]), params[1]);
    return mica_mean(s, mica_square(s, mica_sub(s, predicted, data[1])), NULL, 0, false);
}

/* One step; replaces params by new ones. */
static mica_status step(mica_engine *e, mica_array **params, mica_array **data, double *loss)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *grad[2], *out[3];
    mica_status status = mica_value_and_grad(s, mean_squared_error, data, params, 2, &out[2], grad);
    for (int i = 0; i < 2 && status == MICA_OK; i++)
        out[i] = mica_sub(s, params[i], mica_mul(s, grad[i], mica_scalar(s, 0.1)));
    if (status == MICA_OK) status = mica_eval(s, out, 3);
    if (status == MICA_OK) status = mica_item(out[2], loss);
    for (int i = 0; i < 2 && status == MICA_OK; i++) {
        mica_drop(params[i]);
        params[i] = mica_keep(out[i]);
    }
    mica_scope_end(s);
    return status;
}

static mica_status train(mica_engine *e, double *loss, double *worst)
{
    static const float true_w[FEATURES] = {2.0f, -1.0f, 0.5f};
    const float true_b = 0.25f;
    mica_scope *s = mica_scope_begin(e);
    mica_array *w = mica_from_data(s, MICA_F32, 2, (int64_t[]){FEATURES, 1}, true_w);
    mica_array *x = mica_random_normal(s, MICA_F32, 2, (int64_t[]){SAMPLES, FEATURES}, 1);
    mica_array *noise = mica_random_normal(s, MICA_F32, 2, (int64_t[]){SAMPLES, 1}, 2);
    mica_array *y = mica_add(s, mica_matmul(s, x, w), mica_scalar(s, (double)true_b));
    y = mica_add(s, y, mica_mul(s, noise, mica_scalar(s, 0.01)));
    mica_array *data[2] = {x, y};
    mica_array *params[2] = {mica_zeros(s, MICA_F32, 2, (int64_t[]){FEATURES, 1}),
                             mica_zeros(s, MICA_F32, 1, (int64_t[]){1})};
    mica_array *given[4] = {x, y, params[0], params[1]};
    mica_status status = mica_eval(s, given, 4);
    for (int i = 0; i < 2; i++) mica_keep(params[i]);
    for (int i = 0; i < STEPS && status == MICA_OK; i++) {
        status = step(e, params, data, loss);
        if (status == MICA_OK && i % 50 == 0) printf("step %3d  loss %.6f\n", i, *loss);
    }
    *worst = INFINITY;
    if (status == MICA_OK) {
        const float *got = mica_data_f32(params[0]);
        *worst = fabs((double)mica_data_f32(params[1])[0] - (double)true_b);
        for (int i = 0; i < FEATURES; i++) *worst = fmax(*worst, fabs((double)(got[i] - true_w[i])));
        printf("w = %.4f %.4f %.4f  b = %.4f\n", (double)got[0], (double)got[1], (double)got[2],
               (double)mica_data_f32(params[1])[0]);
    }
    for (int i = 0; i < 2; i++) mica_drop(params[i]);
    mica_scope_end(s);
    return status;
}

int main(void)
{
    mica_engine *e;
    double loss = INFINITY, worst;
    if (mica_open(NULL, &e) != MICA_OK) {
        fprintf(stderr, "linear_regression: %s\n", mica_last_error());
        return 1;
    }
    const mica_status status = train(e, &loss, &worst);
    if (status != MICA_OK) fprintf(stderr, "linear_regression: %s\n", mica_last_error());
    mica_close(e);
    if (status != MICA_OK) return 1;
    printf("final loss %.6f, largest parameter error %.4f\n", loss, worst);
    return loss < 2e-4 && worst < 5e-3 ? 0 : 1;
}
