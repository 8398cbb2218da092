/* Every op that has a gradient, against finite differences, first and second order. An op of
 * ops.def without a case in this program fails the test. */
#include "grad/cases_loop.h"
#include "grad/cases_map.h"
#include "grad/cases_move.h"
#include "grad/cases_nn.h"

typedef struct grad_list {
    const grad_case *cases;
    size_t n;
} grad_list;

static grad_list grad_lists[] = {
    {NULL, 0}, /* grad_cases_table */
    {grad_cases_map, sizeof grad_cases_map / sizeof *grad_cases_map},
    {grad_cases_move, sizeof grad_cases_move / sizeof *grad_cases_move},
    {grad_cases_nn, sizeof grad_cases_nn / sizeof *grad_cases_nn},
    {grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop},
};
enum { GRAD_LISTS = sizeof grad_lists / sizeof *grad_lists };

__attribute__((constructor)) static void add_table(void) { grad_lists[0].cases = grad_cases_table(&grad_lists[0].n); }

static const struct {
    mica__op op;
    const char *name, *vjp;
} grad_ops[] = {
#define MICA_OP(NAME, name, kind, n_in, rule, flops, cost, attr, msl, vjp) {MICA__OP_##NAME, #name, #vjp},
#include "graph/ops.def"
};

TEST(every_op_with_a_gradient_has_a_case)
{
    for (size_t i = 0; i < sizeof grad_ops / sizeof *grad_ops; i++) {
        if (strcmp(grad_ops[i].vjp, "zero") == 0 || strcmp(grad_ops[i].vjp, "refuse") == 0) continue;
        test_case("%s", grad_ops[i].name);
        bool found = false;
        for (int l = 0; l < GRAD_LISTS; l++)
            for (size_t k = 0; k < grad_lists[l].n; k++) found |= grad_lists[l].cases[k].op == grad_ops[i].op;
        (void)EXPECT_MSG(found, "no gradient case for %s", grad_ops[i].name);
    }
}

TEST(cases_contain_the_op_they_are_for)
{
    for (int l = 0; l < GRAD_LISTS; l++) {
        for (size_t k = 0; k < grad_lists[l].n; k++) {
            const grad_case *c = &grad_lists[l].cases[k];
            if (c->op == MICA__OP_COUNT) continue; /* composed: of several ops */
            test_case("%s", c->name);
            mica_scope *s = mica_scope_begin(grad_engine());
            CHECK_MSG(s != NULL, "%s", mica_last_error());
            static grad_point p;
            mica_array *x[GRAD_MAX_IN];
            for (int i = 0; i < c->n; i++)
                x[i] = mica_from_data(s, MICA_F64, c->in[i].ndim, c->in[i].shape, p.value[i]);
            mica_array *y = grad_make(s, c, x);
            if (EXPECT_MSG(y != NULL, "%s", mica_scope_error(s))) (void)EXPECT(grad_contains(y, (uint16_t)c->op));
            mica_scope_end(s);
        }
    }
}

/* In other dtypes, the reverse pass itself checks the rules: a cotangent must have the
 * dtype of its array. */
TEST(rules_keep_the_dtype)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};
    for (int l = 0; l < GRAD_LISTS; l++) {
        for (size_t k = 0; k < grad_lists[l].n; k++) {
            const grad_case *c = &grad_lists[l].cases[k];
            test_case("%s", c->name);
            for (int t = 0; t < 3; t++) {
                mica_scope *s = mica_scope_begin(grad_engine());
                CHECK_MSG(s != NULL, "%s", mica_last_error());
                mica_array *x[GRAD_MAX_IN], *g[GRAD_MAX_IN];
                for (int i = 0; i < c->n; i++) x[i] = mica_full(s, dtypes[t], c->in[i].ndim, c->in[i].shape, 0.5);
                mica_array *loss = grad_total(s, grad_make(s, c, x));
                for (int order = 0; order < 2; order++) {
                    if (!EXPECT_MSG(mica_grad(s, loss, x, (size_t)c->n, g) == MICA_OK, "%s: %s",
                                    mica_dtype_name(dtypes[t]), mica_last_error()))
                        break;
                    for (int i = 0; i < c->n; i++) EXPECT_INT(mica_array_dtype(g[i]), dtypes[t]);
                    loss = grad_total(s, g[0]);
                }
                mica_scope_end(s);
            }
        }
    }
}

static void check_list(const grad_list *list, int order)
{
    CHECK_MSG(grad_engine() != NULL, "%s", mica_last_error());
    for (size_t k = 0; k < list->n; k++) {
        test_case("%s, order %d", list->cases[k].name, order);
        grad_check(&list->cases[k], order);
    }
}

TEST(table_first_order) { check_list(&grad_lists[0], 1); }
TEST(table_second_order) { check_list(&grad_lists[0], 2); }
TEST(map_first_order) { check_list(&grad_lists[1], 1); }
TEST(map_second_order) { check_list(&grad_lists[1], 2); }
TEST(move_first_order) { check_list(&grad_lists[2], 1); }
TEST(move_second_order) { check_list(&grad_lists[2], 2); }
TEST(nn_first_order) { check_list(&grad_lists[3], 1); }
TEST(nn_second_order) { check_list(&grad_lists[3], 2); }
TEST(loop_first_order) { check_list(&grad_lists[4], 1); }
TEST(loop_second_order) { check_list(&grad_lists[4], 2); }
