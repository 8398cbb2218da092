/* The tolerances for differences from the reference: one table for all ops and dtypes, and the
 * comparison that uses it. */
#ifndef MICA_TESTS_PARITY_COMPARE_H
#define MICA_TESTS_PARITY_COMPARE_H

#include "graph/op.h"

enum { PARITY_TEXT = 640 }; /* size of a message about a difference */

/* A result in row-major order, or an error. */
typedef struct parity_result {
    mica_status status;
    char error[256];
    bool skipped;                 /* the case has no meaning for these inputs          */
    mica_dtype dtype;
    int ndim;
    int64_t shape[MICA_MAX_DIMS];
    int64_t n;                    /* elements                                          */
    char *data;                   /* owned, malloc                                     */
} parity_result;

void parity_result_free(parity_result *r);

/* |got - want| <= ulps * ulp(want) + rounds * u, where ulp is that of the
 * result's dtype and u the unit roundoff of the arithmetic (2^-53 of f64, else
 * 2^-24: f16 and bf16 are computed in f32), times the scale if there is one. */
typedef struct parity_tolerance {
    double ulps;
    double rounds;
    bool scaled;                  /* multiplied by the result of absolute operands       */
    bool any_zero;                /* 0 equals -0                                        */
} parity_tolerance;

/* terms: the number of inputs that one element of the result combines. */
parity_tolerance parity_tolerance_of(mica__op op, mica_dtype dtype, int64_t terms);

/* Returns whether got matches want; if not, text describes the first difference. scale may be
 * NULL. An element must be NaN exactly where want is. */
bool parity_agree(const parity_result *got, const parity_result *want, const parity_result *scale,
                  const parity_tolerance *tolerance, char text[PARITY_TEXT]);
/* Within tolerance times the largest number of the result, but at least 0.1: where terms
 * cancel, the rounding errors of the operands remain. */
bool parity_near(const parity_result *got, const parity_result *want, double tolerance, char text[PARITY_TEXT]);
/* The same bits; NaN equals NaN of any kind. */
bool parity_same_bits(const parity_result *got, const parity_result *want, char text[PARITY_TEXT]);

#endif
