/* Gradients against finite differences, in double on the reference backend.
 *
 * A case builds y from inputs. The scalar that is differentiated is <y, R> with random R; at second
 * order it is <gradient of that, V> with random V. Differences use the five-point rule, whose error
 * (h^4) is far below the tolerance. */
#ifndef MICA_GRAD_CHECK_H
#define MICA_GRAD_CHECK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "op_facts.h"
#include "test.h"

/* Formulas are checked on the reference backend. To test another backend:
 * make CFLAGS='-DGRAD_BACKEND=\"cpu\"'. */
#ifndef GRAD_BACKEND
#define GRAD_BACKEND "ref"
#endif

enum { GRAD_MAX_IN = 5, GRAD_MAX_ELEMENTS = 256 };

typedef mica_array *(*grad_build)(mica_scope *s, mica_array **x);

typedef struct grad_input {
    int ndim;
    int64_t shape[5];
    double low, high; /* elements are spread over this range, no two nearly equal */
} grad_input;

typedef struct grad_case {
    mica__op op; /* must occur in the graph that build makes; MICA__OP_COUNT: no such op */
    const char *name;
    grad_build build; /* NULL: the constructor of op_facts_named(name) */
    int n;
    grad_input in[GRAD_MAX_IN];
    double step; /* step of the differences; 0: 2e-4 */
    double tol;  /* relative tolerance; 0: 1e-6 */
} grad_case;

__attribute__((unused)) static mica_array *grad_make(mica_scope *s, const grad_case *c, mica_array **x)
{
    if (c->build) return c->build(s, x);
    const op_facts *f = op_facts_named(c->name);
    return f->n_in == 1 ? f->make1(s, x[0]) : f->make2(s, x[0], x[1]);
}

/* ------------------------------------------------------------- engine ------ */

static mica_engine *grad_engine_of;

__attribute__((unused)) static mica_engine *grad_engine(void)
{
    if (grad_engine_of) return grad_engine_of;
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = GRAD_BACKEND;
    options.threads = 1;
    if (mica_open(&options, &grad_engine_of) != MICA_OK) grad_engine_of = NULL;
    return grad_engine_of;
}

__attribute__((destructor)) static void grad_engine_close(void)
{
    mica_close(grad_engine_of);
    grad_engine_of = NULL;
}

/* ------------------------------------------------------------- numbers ----- */

typedef struct grad_rng {
    uint64_t state;
} grad_rng;

__attribute__((unused)) static double grad_uniform(grad_rng *rng)
{
    rng->state = rng->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(rng->state >> 11) / 9007199254740992.0;
}

/* One element from each of n equal parts of the range, in random order: no two
 * are close, so maxima and orders do not change within a difference. */
__attribute__((unused)) static void grad_fill(grad_rng *rng, double low, double high, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = low + (high - low) * ((double)i + 0.3 + 0.4 * grad_uniform(rng)) / (double)n;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(grad_uniform(rng) * (double)(i + 1));
        const double t = out[i];
        out[i] = out[j];
        out[j] = t;
    }
}

__attribute__((unused)) static int64_t grad_count(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

/* Numbers as an array of f32, or f64. */
__attribute__((unused)) static mica_array *grad_array(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape,
                                                      const double *values)
{
    if (dtype != MICA_F32) return mica_from_data(s, MICA_F64, ndim, shape, values);
    const int64_t n = grad_count(ndim, shape);
    float *single = calloc((size_t)n + 1, sizeof *single);
    for (int64_t i = 0; i < n; i++) single[i] = (float)values[i];
    mica_array *x = mica_from_data(s, MICA_F32, ndim, shape, single);
    free(single);
    return x;
}

/* Random numbers in the shape of x, as an evaluated array. */
__attribute__((unused)) static mica_array *grad_weights(mica_scope *s, mica_array *x, uint64_t seed)
{
    if (!x) return NULL;
    const int64_t n = mica_array_size(x);
    double *data = calloc((size_t)n + 1, sizeof *data);
    grad_rng rng = {seed * 77 + 5};
    for (int64_t i = 0; i < n; i++) data[i] = 0.5 + grad_uniform(&rng);
    mica_array *w = grad_array(s, mica_array_dtype(x), mica_array_ndim(x), mica_array_shape(x), data);
    free(data);
    return w;
}

__attribute__((unused)) static mica_array *grad_total(mica_scope *s, mica_array *x)
{
    return mica_sum(s, x, NULL, 0, false);
}

__attribute__((unused)) static mica_array *grad_dot(mica_scope *s, mica_array *x, uint64_t seed)
{
    return grad_total(s, mica_mul(s, x, grad_weights(s, x, seed)));
}

/* --------------------------------------------------------------- check ----- */

typedef struct grad_point {
    int64_t count[GRAD_MAX_IN];
    double value[GRAD_MAX_IN][GRAD_MAX_ELEMENTS];
} grad_point;

/* The scalar at a point. x gets the inputs. */
__attribute__((unused)) static mica_array *grad_scalar(mica_scope *s, const grad_case *c, const grad_point *p,
                                                       int order, mica_array **x)
{
    for (int i = 0; i < c->n; i++) x[i] = mica_from_data(s, MICA_F64, c->in[i].ndim, c->in[i].shape, p->value[i]);
    mica_array *loss = grad_dot(s, grad_make(s, c, x), 1);
    for (int k = 1; k < order; k++) {
        mica_array *g[GRAD_MAX_IN], *sum = NULL;
        if (mica_grad(s, loss, x, (size_t)c->n, g) != MICA_OK) return NULL;
        for (int i = 0; i < c->n; i++) {
            mica_array *part = grad_dot(s, g[i], (uint64_t)(10 * k + i));
            sum = sum ? mica_add(s, sum, part) : part;
        }
        loss = sum;
    }
    return loss;
}

__attribute__((unused)) static bool grad_value_at(const grad_case *c, const grad_point *p, int order, double *out)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[GRAD_MAX_IN], *loss = grad_scalar(s, c, p, order, x);
    bool ok = mica_eval(s, &loss, 1) == MICA_OK && mica_item(loss, out) == MICA_OK;
    mica_scope_end(s);
    return ok;
}

__attribute__((unused)) static bool grad_difference(const grad_case *c, grad_point *p, int order, int i, int64_t e,
                                                    double *out)
{
    const double h = c->step > 0 ? c->step : 2e-4, at = p->value[i][e];
    double f[4];
    for (int k = 0; k < 4; k++) {
        const double steps[4] = {-2, -1, 1, 2};
        p->value[i][e] = at + steps[k] * h;
        if (!grad_value_at(c, p, order, &f[k])) return test_fail(__FILE__, __LINE__, "%s", mica_last_error());
    }
    p->value[i][e] = at;
    *out = (f[0] - f[3] + 8 * (f[2] - f[1])) / (12 * h);
    return true;
}

/* The gradient of the scalar, evaluated: out has the layout of the point. */
__attribute__((unused)) static bool grad_at(const grad_case *c, const grad_point *p, int order, grad_point *out)
{
    mica_scope *s = mica_scope_begin(grad_engine());
    mica_array *x[GRAD_MAX_IN], *g[GRAD_MAX_IN], *loss = grad_scalar(s, c, p, order, x);
    bool ok = EXPECT_MSG(mica_grad(s, loss, x, (size_t)c->n, g) == MICA_OK, "order %d: %s", order, mica_last_error()) &&
              EXPECT_MSG(mica_eval(s, g, (size_t)c->n) == MICA_OK, "order %d: %s", order, mica_last_error());
    for (int i = 0; ok && i < c->n; i++)
        ok = EXPECT_MSG(mica_copy_out(g[i], out->value[i], (size_t)p->count[i] * sizeof(double)) == MICA_OK, "%s",
                        mica_last_error());
    mica_scope_end(s);
    return ok;
}

__attribute__((unused)) static bool grad_check(const grad_case *c, int order)
{
    static grad_point p, got;
    grad_rng rng = {(uint64_t)c->op * 1000 + 17};
    for (int i = 0; i < c->n; i++) {
        p.count[i] = grad_count(c->in[i].ndim, c->in[i].shape);
        if (!EXPECT(p.count[i] <= GRAD_MAX_ELEMENTS)) return false;
        grad_fill(&rng, c->in[i].low, c->in[i].high, p.count[i], p.value[i]);
    }
    if (!grad_at(c, &p, order, &got)) return false;
    /* The tolerance is relative to the largest element, because some elements cancel to 0. */
    double scale = 0;
    for (int i = 0; i < c->n; i++)
        for (int64_t e = 0; e < p.count[i]; e++) scale = fmax(scale, fabs(got.value[i][e]));
    const double tol = c->tol > 0 ? c->tol : 1e-6;
    for (int i = 0; i < c->n; i++) {
        for (int64_t e = 0; e < p.count[i]; e++) {
            double want = 0;
            if (!grad_difference(c, &p, order, i, e, &want)) return false;
            if (!EXPECT_MSG(test_close(got.value[i][e], want, tol, tol * fmax(1, scale)),
                            "order %d, input %d, element %d: gradient %.12g, differences %.12g", order, i, (int)e,
                            got.value[i][e], want))
                return false;
        }
    }
    return true;
}

/* Returns whether the built graph contains the op. */
__attribute__((unused)) static bool grad_contains(const mica_array *y, uint16_t op)
{
    enum { ROOM = 4096 };
    static const mica_array *list[ROOM];
    int n = 0;
    if (y) list[n++] = y;
    for (int i = 0; i < n; i++) {
        if (list[i]->op == op) return true;
        for (uint32_t k = 0; k < list[i]->n_in; k++) {
            int j = 0;
            while (j < n && list[j] != list[i]->in[k]) j++;
            if (j == n && n < ROOM) list[n++] = list[i]->in[k];
        }
    }
    return false;
}

#endif
