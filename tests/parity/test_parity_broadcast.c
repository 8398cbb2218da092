/* NumPy's broadcasting rule on ten thousand pairs of shapes: add succeeds exactly when the rule
 * allows the pair, with the shape and the values that the rule defines.
 *
 * runs: arm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "parity_data.h"
#include "test.h"

enum { N_PAIR = 10000, MOST_AXES = 5 };

typedef struct operand {
    int ndim;
    int64_t shape[MOST_AXES];
    int64_t n;
    float *data;
} operand;

/* The rule, from its text: aligned on the right, sizes are equal or one is 1. */
static bool rule(const operand *a, const operand *b, operand *out)
{
    *out = (operand){.ndim = a->ndim > b->ndim ? a->ndim : b->ndim, .n = 1};
    for (int k = 1; k <= out->ndim; k++) {
        const int64_t na = k <= a->ndim ? a->shape[a->ndim - k] : 1, nb = k <= b->ndim ? b->shape[b->ndim - k] : 1;
        if (na != nb && na != 1 && nb != 1) return false;
        out->shape[out->ndim - k] = na == 1 ? nb : na;
        out->n *= na == 1 ? nb : na;
    }
    return true;
}

/* The element of x at flat index i of out. */
static float element(const operand *x, const operand *out, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int k = 1; k <= out->ndim; k++) {
        const int64_t n = out->shape[out->ndim - k], index = i % n;
        i /= n;
        if (k > x->ndim) continue;
        const int64_t size = x->shape[x->ndim - k];
        if (size != 1) at += index * step;
        step *= size;
    }
    return x->data[at];
}

static void fill(operand *x, uint64_t *state)
{
    x->n = 1;
    for (int d = 0; d < x->ndim; d++) x->n *= x->shape[d];
    x->data = parity_alloc((size_t)x->n * sizeof *x->data);
    for (int64_t i = 0; i < x->n; i++) x->data[i] = (float)parity_between(state, -1000, 1000);
}

/* A third of the pairs are derived from one shape, so that many are compatible. */
static void random_pair(operand *a, operand *b, uint64_t *state)
{
    static const int64_t sizes[] = {1, 1, 2, 3, 4, 5, 7, 0};
    *a = (operand){.ndim = (int)parity_between(state, 0, MOST_AXES)};
    *b = (operand){.ndim = (int)parity_between(state, 0, MOST_AXES)};
    for (int d = 0; d < MOST_AXES; d++) a->shape[d] = sizes[parity_random(state) % 8];
    for (int d = 0; d < MOST_AXES; d++) b->shape[d] = sizes[parity_random(state) % 8];
    const bool related = parity_random(state) % 3 == 0;
    for (int k = 1; related && k <= a->ndim && k <= b->ndim; k++) {
        const int64_t n = a->shape[a->ndim - k];
        b->shape[b->ndim - k] = parity_random(state) % 4 == 0 ? 1 : n;
        if (parity_random(state) % 4 == 0) a->shape[a->ndim - k] = 1;
    }
    fill(a, state);
    fill(b, state);
}

static bool right_values(mica_array *y, const operand *a, const operand *b, const operand *out)
{
    if (mica_array_ndim(y) != out->ndim) return false;
    for (int d = 0; d < out->ndim; d++)
        if (mica_array_shape(y)[d] != out->shape[d]) return false;
    float *got = parity_alloc((size_t)out->n * sizeof *got);
    bool good = mica_copy_out(y, got, (size_t)out->n * sizeof *got) == MICA_OK;
    for (int64_t i = 0; i < out->n && good; i++) good = got[i] == element(a, out, i) + element(b, out, i);
    free(got);
    return good;
}

/* NULL, or a description of the error. */
static const char *check_pair(mica_engine *e, const operand *a, const operand *b)
{
    operand out;
    const bool fits = rule(a, b, &out);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_from_data(s, MICA_F32, a->ndim, a->shape, a->data);
    mica_array *y = mica_add(s, x, mica_from_data(s, MICA_F32, b->ndim, b->shape, b->data));
    const mica_status status = mica_eval(s, &y, 1);
    const char *wrong = NULL;
    if (!fits && status != MICA_ERR_SHAPE) wrong = "no shape error";
    else if (fits && status != MICA_OK) wrong = "an error";
    else if (fits && !right_values(y, a, b, &out)) wrong = "wrong shape or values";
    mica_scope_end(s);
    return wrong;
}

static void run_pairs(const char *backend)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = backend;
    options.threads = 1;
    mica_engine *e;
    CHECK_MSG(mica_open(&options, &e) == MICA_OK, "%s", mica_last_error());
    uint64_t state = 11;
    int n_fit = 0, n_wrong = 0;
    for (int i = 0; i < N_PAIR && n_wrong < 10; i++) {
        operand a, b, out;
        random_pair(&a, &b, &state);
        n_fit += rule(&a, &b, &out);
        const char *wrong = check_pair(e, &a, &b);
        if (wrong) {
            char left[MICA__SHAPE_TEXT], right[MICA__SHAPE_TEXT];
            test_fail(__FILE__, __LINE__, "%s + %s: %s", mica__shape_text(left, a.ndim, a.shape),
                      mica__shape_text(right, b.ndim, b.shape), wrong);
            n_wrong++;
        }
        free(a.data);
        free(b.data);
    }
    /* both results of the rule must have occurred often */
    (void)EXPECT(n_wrong > 0 || (n_fit > N_PAIR / 4 && n_fit < 3 * N_PAIR / 4));
    mica_close(e);
}

TEST(random_shapes_ref) { run_pairs("ref"); }
TEST(random_shapes_cpu) { run_pairs("cpu"); }
