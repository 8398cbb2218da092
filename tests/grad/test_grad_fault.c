/* The n-th allocation fails, for every n until no allocation fails: taking a gradient returns the
 * error, leaves no gradient and leaks no memory. */
#include "base/alloc.h"
#include "grad/cases_loop.h"
#include "grad/cases_map.h"
#include "grad/cases_move.h"
#include "grad/cases_nn.h"

/* Returns true if the injected failure was not reached. */
static bool attempt(const grad_case *c, uint64_t n)
{
    mica_engine_trim(grad_engine()); /* no spare blocks: every node is allocated from the heap */
    mica_scope *s = mica_scope_begin(grad_engine());
    if (!EXPECT(s != NULL)) return true;
    mica_array *x[GRAD_MAX_IN], *g[GRAD_MAX_IN];
    for (int i = 0; i < c->n; i++) x[i] = mica_ones(s, MICA_F64, c->in[i].ndim, c->in[i].shape);
    mica_array *loss = grad_total(s, grad_make(s, c, x));
    mica__alloc_fail_at(n);
    const mica_status status = mica_grad(s, loss, x, (size_t)c->n, g);
    mica__alloc_fail_at(0);
    bool done = status == MICA_OK;
    if (!done) {
        done = !EXPECT_MSG(status == MICA_ERR_MEMORY, "allocation %d: %s", (int)n, mica_last_error()) ||
               !EXPECT_INT(mica_scope_status(s), status);
        for (int i = 0; i < c->n; i++) done |= !EXPECT(g[i] == NULL);
    }
    mica_scope_end(s);
    return done;
}

/* Debug builds keep the record of an ended scope, to recognise its use. */
static int64_t kept_by_a_scope(void)
{
    mica_scope_end(mica_scope_begin(grad_engine()));
    const int64_t live = mica__alloc_live();
    mica_scope_end(mica_scope_begin(grad_engine()));
    return mica__alloc_live() - live;
}

static void sweep(const grad_case *cases, size_t n_cases, const char *name)
{
    for (size_t k = 0; k < n_cases; k++) {
        if (strcmp(cases[k].name, name) != 0) continue;
        test_case("%s", name);
        attempt(&cases[k], 0); /* first use: caches are filled before counting */
        mica_engine_trim(grad_engine());
        const int64_t per_scope = kept_by_a_scope(), live = mica__alloc_live();
        uint64_t n = 1;
        while (n < 20000 && !attempt(&cases[k], n)) n++;
        (void)EXPECT_MSG(n > 10, "only %d allocations", (int)n);
        mica_engine_trim(grad_engine());
        (void)EXPECT_INT(mica__alloc_live(), live + (int64_t)n * per_scope);
        return;
    }
    (void)EXPECT_MSG(false, "no case %s", name);
}

TEST(every_allocation_may_fail)
{
    CHECK_MSG(grad_engine() != NULL, "%s", mica_last_error());
    sweep(grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop, "scan, many");
    sweep(grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop, "scan, nested");
    sweep(grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop, "scan, kept");
    sweep(grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop, "checkpoint, nested");
    sweep(grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop, "custom_grad");
    sweep(grad_cases_move, sizeof grad_cases_move / sizeof *grad_cases_move, "cumprod");
    sweep(grad_cases_map, sizeof grad_cases_map / sizeof *grad_cases_map, "broadcasts");
    sweep(grad_cases_nn, sizeof grad_cases_nn / sizeof *grad_cases_nn, "attention, causal");
    sweep(grad_cases_nn, sizeof grad_cases_nn / sizeof *grad_cases_nn, "conv2d, groups");
}
