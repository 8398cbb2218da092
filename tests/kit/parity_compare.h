/* The tolerances for differences from the reference: one table for all ops and dtypes, and the
 * comparison that uses it. */
#ifndef MICA_TESTS_PARITY_COMPARE_H
#define MICA_TESTS_PARITY_COMPARE_H

#include "graph/op.h"

enum { PARITY_TEXT = 640 }; /* room for what did not agree */

/* A result, row-major, or the failure that came instead. */
typedef struct parity_result {
    mica_status status;
    char error[256];
    bool skipped;                 /* the case has no meaning for these inputs          */
    mica_dtype dtype;
    int ndim;
    int64_t shape[MICA_MAX_DIMS];
    int64_t n;                    /* elements                                          */
    char *data;                   /* malloc                                            */
} parity_result;

void parity_result_free(parity_result *r);

/* |got - want| <= ulps * ulp(want) + rounds * u, where ulp is that of the
 * result's dtype and u the unit roundoff of the arithmetic (2^-53 of f64, else
 * 2^-24: f16 and bf16 are computed in f32), times the scale if there is one. */
typedef struct parity_tolerance {
    double ulps;
    double rounds;
    bool scaled;                  /* times the result for the operands' absolute values */
    bool any_zero;                /* 0 and -0 are the same                              */
} parity_tolerance;

/* terms: how many numbers one element of the result is folded from. */
parity_tolerance parity_tolerance_of(mica__op op, mica_dtype dtype, int64_t terms);

/* True if got is what want says; if not, text says where and how. scale may be
 * NULL. An element that should be NaN must be NaN, and no other may be. */
bool parity_agree(const parity_result *got, const parity_result *want, const parity_result *scale,
                  const parity_tolerance *tolerance, char text[PARITY_TEXT]);
/* Within tolerance times the largest number of the result; times 0.1 where that
 * is smaller, because what cancels leaves noise of the operands. */
bool parity_near(const parity_result *got, const parity_result *want, double tolerance, char text[PARITY_TEXT]);
/* The same bits; NaN equals NaN of any kind. */
bool parity_same_bits(const parity_result *got, const parity_result *want, char text[PARITY_TEXT]);

#endif
