/* The element-wise ops with a public constructor, from src/graph/ops.def and composed.def, for
 * tests that loop over all ops. A new entry in these tables is tested without further code. */
#ifndef MICA_TESTS_OP_FACTS_H
#define MICA_TESTS_OP_FACTS_H

#include <string.h>

#include "graph/op.h"

/* The allowed distance of f32 results from the definition in ulp: for vector forms of the CPU, and
 * for any backend. Definitions round once. */
typedef enum op_tolerance {
    OP_EXACT,                 /* 0, 0: IEEE rounds it correctly, or nothing is rounded              */
    OP_FUNCTION,              /* 2, 4: an elementary function, or one made of two                   */
    OP_TWO_ROUNDINGS,         /* 1, 4                                                               */
    OP_SCALED                 /* 1, 0: exact where products and sums are one instruction            */
} op_tolerance;

typedef struct op_range {
    double low, high;
} op_range;

/* The last columns of the tables; one element of an array for each operand. Fields left out are 0. */
typedef struct op_test {
    op_range range[2];        /* where results are compared with the oracle; 0: no oracle           */
    op_range in[2];           /* floats for comparing backends with each other; 0: -100 ... 100   */
    op_range ints[2];         /* the same for integers; 0: any bits                              */
    op_range grad[2];         /* where gradients are compared with differences: no kinks, no poles  */
    op_tolerance tolerance;
    bool any_zero;            /* IEEE does not define the sign of a zero result                  */
    bool tail;                /* the relative error of the definition in f64 grows as x^2           */
    uint32_t step;            /* of the sweep over all f32 bit patterns, a prime; 0: 2503           */
    const char *sleef;        /* the same function in SLEEF, or NULL                                */
} op_test;

typedef struct op_facts {
    mica__op op;              /* MICA__OP_COUNT: composed                                           */
    const char *name, *rule;  /* rule: column of ops.def; composed functions: "floating"            */
    int n_in;
    /* The public constructor; an op with an attribute gets OP_VALUE. */
    mica_array *(*make1)(mica_scope *s, mica_array *x);
    mica_array *(*make2)(mica_scope *s, mica_array *a, mica_array *b);
    long double (*oracle)(long double x, long double y);
    op_test test;
} op_facts;

#define OP_VALUE 0.3

/* Maximum number of entries. */
enum { OP_FACTS_MAX = 160 };

/* All entries: ops of one input first, then ops of two. */
const op_facts *op_facts_all(size_t *n);
/* NULL: an op without a constructor of this kind. */
const op_facts *op_facts_of(mica__op op);
const op_facts *op_facts_named(const char *name);

static inline bool op_has_oracle(const op_facts *f) { return f->test.range[0].low != f->test.range[0].high; }
static inline bool op_has_grad(const op_facts *f) { return f->test.grad[0].low != f->test.grad[0].high; }
static inline bool op_takes_integers_only(const op_facts *f) { return strcmp(f->rule, "integer") == 0; }

/* Allowed distance on f32 in ulp: for vector forms of the CPU; for any backend. */
double op_vector_ulps(const op_facts *f);
double op_backend_ulps(const op_facts *f);

#endif
