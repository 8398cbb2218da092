/* Gradient checkpoints: the gradients are the same when activations are recomputed instead of
 * stored. */
#include "grad/grad_check.h"

enum { LAYERS = 16, BLOCK = 4, WIDTH = 64 };

/* A deep chain whose every layer keeps its input for the gradient. */
static mica_array *chain(mica_scope *s, mica_array *x, mica_array *const *w, bool checkpoints)
{
    for (int l = 0; l < LAYERS; l += BLOCK) {
        mica_array *h = x;
        for (int k = 0; k < BLOCK; k++) h = mica_tanh(s, mica_matmul(s, h, w[l + k]));
        x = checkpoints ? mica_checkpoint(s, h, &x, 1) : h; /* the weights need not be named */
    }
    return grad_total(s, mica_square(s, x));
}

static void weights(mica_scope *s, mica_array **w)
{
    for (int l = 0; l < LAYERS; l++) {
        mica_array *r = mica_random_normal(s, MICA_F64, 2, (int64_t[]){WIDTH, WIDTH}, (uint64_t)l + 1);
        w[l] = mica_mul(s, r, mica_scalar(s, 0.12));
    }
}

TEST(gradients_are_equal)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *p[LAYERS + 1], *g[2][LAYERS + 1];
    weights(s, p);
    p[LAYERS] = mica_random_normal(s, MICA_F64, 2, (int64_t[]){8, WIDTH}, 99);
    CHECK_MSG(mica_eval(s, p, LAYERS + 1) == MICA_OK, "%s", mica_last_error());
    for (int i = 0; i < 2; i++) {
        mica_array *loss = chain(s, p[LAYERS], p, i == 1);
        CHECK_MSG(mica_grad(s, loss, p, LAYERS + 1, g[i]) == MICA_OK, "%s", mica_last_error());
        CHECK_MSG(mica_eval(s, g[i], LAYERS + 1) == MICA_OK, "%s", mica_last_error());
    }
    for (int l = 0; l <= LAYERS; l++) {
        static double a[WIDTH * WIDTH], b[WIDTH * WIDTH];
        const size_t nbytes = mica_array_nbytes(g[0][l]);
        size_t at = 0;
        CHECK(nbytes <= sizeof a && mica_copy_out(g[0][l], a, nbytes) == MICA_OK &&
              mica_copy_out(g[1][l], b, nbytes) == MICA_OK);
        CHECK_MSG(test_arrays_close_f64(b, a, nbytes / sizeof *a, 1e-12, 1e-12, &at),
                  "layer %d, element %zu: %g and %g", l, at, b[at], a[at]);
    }
    mica_scope_end(s);
}

static uint64_t peak_of(bool checkpoints)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *w[LAYERS], *x = mica_random_normal(s, MICA_F64, 2, (int64_t[]){512, WIDTH}, 99), *g;
    mica_plan_info info = {.struct_size = sizeof info};
    weights(s, w);
    bool ok = mica_eval(s, w, LAYERS) == MICA_OK && mica_eval(s, &x, 1) == MICA_OK &&
              mica_grad(s, chain(s, x, w, checkpoints), &x, 1, &g) == MICA_OK &&
              mica_plan_query(s, &g, 1, &info) == MICA_OK;
    mica_scope_end(s);
    return ok ? info.peak_bytes : 0;
}

TEST(fewer_bytes_live)
{
    const uint64_t kept = peak_of(false), again = peak_of(true);
    CHECK_MSG(kept > 0 && again > 0, "%s", mica_last_error());
    /* 16 activations of 256 KiB compared with 4 + 4, and a few temporaries */
    CHECK_MSG(again * 4 < kept * 3, "peak %llu bytes with checkpoints, %llu without", (unsigned long long)again,
              (unsigned long long)kept);
}

/* An array inside the region can have a gradient too. */
TEST(gradient_by_an_array_inside_the_region)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x = mica_from_data(s, MICA_F64, 0, NULL, (double[]){0.7});
    mica_array *h = mica_exp(s, x), *y = mica_checkpoint(s, mica_sin(s, h), &x, 1), *g[2];
    double dh, dx;
    CHECK_MSG(mica_grad(s, y, (mica_array *[]){h, x}, 2, g) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_eval(s, g, 2) == MICA_OK, "%s", mica_last_error());
    CHECK(mica_item(g[0], &dh) == MICA_OK && mica_item(g[1], &dx) == MICA_OK);
    CHECK_CLOSE(dh, cos(exp(0.7)), 1e-12, 0);
    CHECK_CLOSE(dx, cos(exp(0.7)) * exp(0.7), 1e-12, 0);
    mica_scope_end(s);
}

TEST(after_an_evaluation)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x = mica_from_data(s, MICA_F64, 0, NULL, (double[]){0.7});
    mica_array *h = mica_exp(s, x), *y = mica_checkpoint(s, mica_sin(s, h), &x, 1), *g;
    double dx;
    CHECK_MSG(mica_eval(s, (mica_array *[]){y, h}, 2) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_grad(s, y, &x, 1, &g) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_eval(s, &g, 1) == MICA_OK, "%s", mica_last_error());
    CHECK(mica_item(g, &dx) == MICA_OK);
    CHECK_CLOSE(dx, cos(exp(0.7)) * exp(0.7), 1e-12, 0);
    mica_scope_end(s);
}
