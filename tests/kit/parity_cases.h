/* The parity cases of single ops. Every op of ops.def has at least one. A MAP op has a row of
 * domains; every other op has a case with a builder function. */
#ifndef MICA_TESTS_PARITY_CASES_H
#define MICA_TESTS_PARITY_CASES_H

#include "parity_run.h"

/* The case of a MAP op; false if it has none. */
bool parity_map_case(mica__op op, parity_case *out);

/* Cases of all other ops. The last has name NULL. */
extern const parity_case parity_cases_view[];   /* sources, makers, views, aliases */
extern const parity_case parity_cases_reduce[]; /* reductions and ops over rows    */
extern const parity_case parity_cases_nn[];     /* matmul, conv, attention, rope   */
extern const parity_case parity_cases_index[];  /* movement, indexing, sorting     */
extern const parity_case parity_cases_loop[];   /* scan, random numbers            */

/* Dtypes that the shape rule of an op allows, as bits. */
uint32_t parity_rule_dtypes(mica__op op);

enum {
    PARITY_FLOATS = 1 << MICA_F16 | 1 << MICA_BF16 | 1 << MICA_F32 | 1 << MICA_F64,
    PARITY_INTS = (1 << (MICA_I64 + 1)) - (1 << MICA_U8),
    PARITY_BOOL = 1 << MICA_BOOL,
    PARITY_NUMBERS = PARITY_INTS | PARITY_FLOATS,
    PARITY_ALL = PARITY_NUMBERS | PARITY_BOOL
};

#endif
