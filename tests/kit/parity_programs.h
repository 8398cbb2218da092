/* Programs of several ops. They test interactions between ops: fusion, passes, memory reuse,
 * threads. */
#ifndef MICA_TESTS_PARITY_PROGRAMS_H
#define MICA_TESTS_PARITY_PROGRAMS_H

#include "parity_cases.h"

typedef struct parity_program {
    parity_case c;
    /* Element-wise ops and movement only: the same bits, fused or not, with any passes.
     * Otherwise a result may differ by tolerance * the largest |want|. */
    bool same_bits;
    double tolerance;             /* for f32; times 2^-29 for f64, 2^9 for f16, 2^12 for bf16:
                                     there rounding each op outweighs long sums       */
    int kernels;                  /* of a plan with all passes; 0: not checked         */
} parity_program;

/* The last has c.name NULL. */
extern const parity_program parity_programs_map[];
extern const parity_program parity_programs_nn[];

/* The same programs on arrays large enough to be split into tasks. */
extern const parity_program parity_programs_large[];

/* The tolerance for a dtype. */
double parity_program_tolerance(const parity_program *p, mica_dtype dtype);

#endif
