/* See op_facts.h. */
#include "op_facts.h"

#include <math.h>

#include "graph/scalar.h"

/* ------------------------------------------------------------- constructors - */

#define CALL_PLAIN(name) mica_##name
#define CALL_WHOLE(name) mica_##name
#define CALL_VALUE(name) make_##name

#define MAKE_PLAIN(name)
#define MAKE_WHOLE(name)
#define MAKE_VALUE(name) \
    static mica_array *make_##name(mica_scope *s, mica_array *x) { return mica_##name(s, x, OP_VALUE); }
#define MICA_MAP1(NAME, name, ctor, ...) MAKE_##ctor(name)
#include "graph/ops.def"

/* ----------------------------------------------------------------- oracles -- */

static const long double ORACLE_SQRT_2_PI = 0.797884560802865355879892L;
static const long double ORACLE_VALUE = OP_VALUE;

static long double oracle_sigmoid(long double x) { return 1 / (1 + expl(-x)); }

/* Two steps of Newton's method from the definition, which has 15 digits already. */
static long double oracle_erfinv(long double x)
{
    long double y = mica__erfinv((double)x);
    for (int i = 0; i < 2; i++) y -= (erfl(y) - x) * expl(y * y) * 0.886226925452758013649L;
    return y;
}

#define ORACLE(name, oracle)                                          \
    static long double oracle_of_##name(long double x, long double y) \
    {                                                                 \
        (void)x, (void)y;                                             \
        return oracle;                                                \
    }
#define MICA_MAP1(NAME, name, ctor, rule, flops, attr, msl, vjp, scalar, integer, place, vector, oracle, ...) \
    ORACLE(name, oracle)
#define MICA_MAP2(NAME, name, rule, flops, msl, vjp, scalar, integer, place, vector, oracle, ...) ORACLE(name, oracle)
#include "graph/ops.def"
#define MICA_COMPOSED(name, graph, oracle, ...) ORACLE(name, oracle)
#include "graph/composed.def"

/* ------------------------------------------------------------------- table -- */

/* The tables leave out fields that are 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const op_facts facts[] = {
#define MICA_MAP1(NAME, name, ctor, rule, flops, attr, msl, vjp, scalar, integer, place, vector, oracle, ...) \
    {MICA__OP_##NAME, #name, #rule, 1, CALL_##ctor(name), NULL, oracle_of_##name, {__VA_ARGS__}},
#include "graph/ops.def"
#define MICA_COMPOSED(name, graph, oracle, ...) \
    {MICA__OP_COUNT, #name, "floating", 1, mica_##name, NULL, oracle_of_##name, {__VA_ARGS__}},
#include "graph/composed.def"
#define MICA_MAP2(NAME, name, rule, flops, msl, vjp, scalar, integer, place, vector, oracle, ...) \
    {MICA__OP_##NAME, #name, #rule, 2, NULL, mica_##name, oracle_of_##name, {__VA_ARGS__}},
#include "graph/ops.def"
};
enum { N_FACTS = sizeof facts / sizeof facts[0] };
_Static_assert((int)N_FACTS <= (int)OP_FACTS_MAX, "tests have arrays of OP_FACTS_MAX");

static const struct {
    double vector, backend;
} tolerances[] = {
    [OP_EXACT] = {0, 0},
    [OP_FUNCTION] = {2, 4},
    [OP_TWO_ROUNDINGS] = {1, 4},
    [OP_SCALED] = {1, 0},
};

const op_facts *op_facts_all(size_t *n)
{
    *n = N_FACTS;
    return facts;
}

const op_facts *op_facts_of(mica__op op)
{
    for (size_t i = 0; i < N_FACTS; i++)
        if (facts[i].op == op && op != MICA__OP_COUNT) return &facts[i];
    return NULL;
}

const op_facts *op_facts_named(const char *name)
{
    for (size_t i = 0; i < N_FACTS; i++)
        if (strcmp(facts[i].name, name) == 0) return &facts[i];
    return NULL;
}

double op_vector_ulps(const op_facts *f) { return tolerances[f->test.tolerance].vector; }
double op_backend_ulps(const op_facts *f) { return tolerances[f->test.tolerance].backend; }
