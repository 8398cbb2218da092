/* Every op's gradient in f32, on the cpu backend or the device of MICA_DEVICE, against the gradient
 * of the reference backend in double. test_grad_ops.c checks the latter by finite differences.
 *
 * runs: metal */
#include "grad/cases_loop.h"
#include "grad/cases_map.h"
#include "grad/cases_move.h"
#include "grad/cases_nn.h"
#include "on_device.h"

/* The gradients of <y, R> in this dtype, as doubles. */
static bool gradients(mica_engine *e, const grad_case *c, const grad_point *p, mica_dtype dtype, grad_point *out)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x[GRAD_MAX_IN], *g[GRAD_MAX_IN];
    for (int i = 0; i < c->n; i++) x[i] = grad_array(s, dtype, c->in[i].ndim, c->in[i].shape, p->value[i]);
    mica_array *loss = grad_dot(s, grad_make(s, c, x), 1);
    bool ok = EXPECT_MSG(mica_grad(s, loss, x, (size_t)c->n, g) == MICA_OK, "%s", mica_last_error()) &&
              EXPECT_MSG(mica_eval(s, g, (size_t)c->n) == MICA_OK, "%s", mica_last_error());
    for (int i = 0; ok && i < c->n; i++) {
        float single[GRAD_MAX_ELEMENTS];
        const bool wide = dtype == MICA_F64;
        ok = EXPECT_MSG(mica_copy_out(g[i], wide ? (void *)out->value[i] : (void *)single,
                                      (size_t)p->count[i] * mica_dtype_size(dtype)) == MICA_OK,
                        "%s", mica_last_error());
        for (int64_t k = 0; ok && !wide && k < p->count[i]; k++) out->value[i][k] = (double)single[k];
    }
    mica_scope_end(s);
    return ok;
}

static void compare(mica_engine *device, const grad_case *c)
{
    static grad_point p, want, got;
    grad_rng rng = {(uint64_t)c->op * 1000 + 17};
    for (int i = 0; i < c->n; i++) {
        p.count[i] = grad_count(c->in[i].ndim, c->in[i].shape);
        CHECK(p.count[i] <= GRAD_MAX_ELEMENTS);
        grad_fill(&rng, c->in[i].low, c->in[i].high, p.count[i], p.value[i]);
        for (int64_t k = 0; k < p.count[i]; k++) p.value[i][k] = (double)(float)p.value[i][k];
    }
    if (!gradients(grad_engine(), c, &p, MICA_F64, &want) || !gradients(device, c, &p, MICA_F32, &got)) return;
    for (int i = 0; i < c->n; i++) {
        double scale = 0;
        for (int64_t k = 0; k < p.count[i]; k++) scale = fmax(scale, fabs(want.value[i][k]));
        for (int64_t k = 0; k < p.count[i]; k++)
            if (!EXPECT_MSG(test_close(got.value[i][k], want.value[i][k], 2e-4, 2e-5 * scale),
                            "input %d, element %d: %.9g, in double %.9g", i, (int)k, got.value[i][k], want.value[i][k]))
                return;
    }
}

static void compare_all(const grad_case *cases, size_t n)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = device_for("cpu");
    options.threads = 2;
    mica_engine *device = NULL;
    CHECK_MSG(grad_engine() && mica_open(&options, &device) == MICA_OK, "%s", mica_last_error());
    for (size_t i = 0; i < n; i++) {
        test_case("%s", cases[i].name);
        compare(device, &cases[i]);
    }
    mica_close(device);
}

#define COMPARE(name, cases) \
    TEST(name) { compare_all(cases, sizeof cases / sizeof *cases); }
TEST(table)
{
    size_t n;
    const grad_case *cases = grad_cases_table(&n);
    compare_all(cases, n);
}
COMPARE(maps, grad_cases_map)
COMPARE(moves, grad_cases_move)
COMPARE(networks, grad_cases_nn)
COMPARE(loops, grad_cases_loop)
