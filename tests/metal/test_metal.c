/* The Metal backend as a whole: a graph gives what ref gives, parts that a GPU cannot do run
 * in between on the CPU and are counted, a replay allocates nothing, nothing is kept. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "metal_kit.h"

enum { N = 300 };

static mica_array *numbers(mica_scope *s, int64_t rows, int64_t cols, double from)
{
    mica_array *x = mica_arange(s, MICA_F32, 0, (double)(rows * cols), 1);
    x = mica_sin(s, mica_add(s, x, mica_scalar(s, from)));
    return mica_reshape(s, x, 2, (int64_t[]){rows, cols});
}

typedef size_t (*graph_fn)(mica_scope *s, mica_array **out);

static size_t fused(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, 20, 15, 1), *y = numbers(s, 20, 15, 2);
    out[0] = mica_mul(s, mica_add(s, x, y), mica_scalar(s, 0.5));
    out[1] = mica_gelu(s, mica_fma(s, x, y, x));
    out[2] = mica_cast(s, mica_mul(s, x, mica_scalar(s, 100)), MICA_I8);
    out[3] = mica_exp(s, mica_cast(s, y, MICA_F16));
    out[4] = mica_add(s, x, mica_transpose(s, numbers(s, 15, 20, 3)));
    return 5;
}

static size_t reduced(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, 7, 200, 1);
    out[0] = mica_sum(s, x, (int[]){1}, 1, false);
    out[1] = mica_max(s, x, (int[]){0}, 1, false);
    out[2] = mica_mean(s, mica_square(s, x), NULL, 0, false);
    out[3] = mica_sum(s, mica_cast(s, mica_mul(s, x, mica_scalar(s, 1000)), MICA_I32), (int[]){1}, 1, true);
    out[4] = mica_any(s, mica_greater(s, x, mica_scalar(s, 0.9999)), (int[]){1}, 1, false);
    return 5;
}

/* f64 and families between dispatches: each way there is a wait. */
static size_t mixed(mica_scope *s, mica_array **out)
{
    mica_array *x = numbers(s, 16, 16, 1), *w = mica_exp(s, numbers(s, 16, 16, 5));
    mica_array *y = mica_relu(s, mica_matmul(s, mica_add(s, x, w), mica_tanh(s, w)));
    mica_array *d = mica_sqrt(s, mica_add(s, mica_cast(s, mica_square(s, y), MICA_F64), mica_scalar(s, 1)));
    out[0] = mica_softmax(s, y, 1);
    out[1] = mica_mul(s, mica_cast(s, d, MICA_F32), x);
    out[2] = mica_take(s, y, mica_cast(s, mica_argmax(s, y, 1, false), MICA_I32), 0);
    out[3] = mica_cumsum(s, mica_neg(s, x), 1);
    return 4;
}

static mica_status turn(mica_scope *s, mica_array *const *in, mica_array **out, void *user)
{
    (void)user;
    mica_array *h = mica_tanh(s, mica_add(s, mica_mul(s, in[0], mica_scalar(s, 0.7)), in[1]));
    out[0] = h;
    out[1] = mica_mul(s, mica_cast(s, mica_softmax(s, h, 0), MICA_F32), mica_scalar(s, 2));
    return mica_scope_status(s);
}

static const struct {
    const char *name;
    graph_fn build;
} graphs[] = {{"fused", fused}, {"reduced", reduced}, {"mixed", mixed}};

static void expect_same(mica_array *got, mica_array *want)
{
    const int64_t n = mica_array_size(want);
    CHECK_INT(mica_array_size(got), n);
    CHECK_INT(mica_array_dtype(got), mica_array_dtype(want));
    mica_scope *s = NULL;
    (void)s;
    double *a = malloc((size_t)n * 8), *b = malloc((size_t)n * 8);
    CHECK(a && b);
    CHECK_MSG(mica_copy_out_as(got, MICA_F64, a, (size_t)n * 8) == MICA_OK, "%s", mica_last_error());
    CHECK_MSG(mica_copy_out_as(want, MICA_F64, b, (size_t)n * 8) == MICA_OK, "%s", mica_last_error());
    const double rtol = mica_array_dtype(want) == MICA_F16 ? 1e-3 : 3e-6;
    for (int64_t i = 0; i < n; i++)
        CHECK_MSG(test_close(a[i], b[i], rtol, 1e-5), "element %d is %.9g, not %.9g", (int)i, a[i], b[i]);
    free(a);
    free(b);
}
