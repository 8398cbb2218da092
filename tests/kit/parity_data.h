/* Inputs for parity tests: values of any dtype from a domain, in caller memory of any layout. The
 * memory is a heap block of exactly the size of the layout, so ASan reports a read before or past
 * it. The gaps between elements hold NaN or all ones, so a read of a gap also changes the result
 * without ASan. */
#ifndef MICA_TESTS_PARITY_DATA_H
#define MICA_TESTS_PARITY_DATA_H

#include "mica.h"

/* Special values among the numbers of a domain. */
typedef enum parity_special {
    PARITY_SPECIAL,               /* one in 4: NaN, infinities, both zeros, subnormal, extreme and
                                     halfway numbers; the ends of the range of integers           */
    PARITY_PLAIN,                 /* no special values                                            */
    PARITY_NOT_FINITE,            /* one in 32: NaN, infinities, both zeros                       */
    PARITY_MINUS_INF              /* one in 4: -infinity                                          */
} parity_special;

/* The range of the elements. */
typedef struct parity_domain {
    double low, high;             /* floats                                      */
    int64_t int_low, int_high;    /* integers; both 0: any bits                  */
    parity_special special;
} parity_domain;

typedef enum parity_layout {
    PARITY_CONTIGUOUS,
    PARITY_TRANSPOSED,            /* axes in reverse order in memory             */
    PARITY_BROADCAST_FIRST,       /* stride 0 of the first axis                  */
    PARITY_BROADCAST_LAST,
    PARITY_BROADCAST_ALL,
    PARITY_STEPPED,               /* every second element, every third row       */
    PARITY_NEGATIVE,              /* every stride negative                       */
    PARITY_MIXED,                 /* reverse order, gaps, some negative strides  */
    PARITY_LAYOUTS
} parity_layout;

extern const char *const parity_layout_names[PARITY_LAYOUTS];

typedef struct parity_input {
    mica_dtype dtype;
    int ndim;
    int64_t shape[MICA_MAX_DIMS], strides[MICA_MAX_DIMS];
    char *memory;                 /* malloc, exactly nbytes                      */
    size_t nbytes;
    int64_t offset;               /* of the first element, in elements           */
} parity_input;

/* splitmix64: the same numbers on every machine. */
uint64_t parity_random(uint64_t *state);
/* In [low, high). */
double parity_uniform(uint64_t *state, double low, double high);
int64_t parity_between(uint64_t *state, int64_t low, int64_t high); /* both included */

/* Allocates memory in a layout and fills it from the domain; ends the program if out of memory. */
void parity_input_make(parity_input *in, mica_dtype dtype, int ndim, const int64_t *shape, parity_layout layout,
                       const parity_domain *domain, uint64_t seed);
void parity_input_free(parity_input *in);
/* Every element replaced by its absolute value. */
void parity_input_abs(parity_input *in);
/* The array over this memory, without a copy. */
mica_array *parity_input_wrap(mica_scope *s, const parity_input *in);

/* malloc that does not fail; n may be 0. */
void *parity_alloc(size_t n);

/* Binary digits of a float dtype (11 for f16 ...), its largest number, its smallest
 * normal and subnormal numbers. */
typedef struct parity_float {
    int digits;
    double most, least_normal, least;
} parity_float;
const parity_float *parity_float_of(mica_dtype dtype);

#endif
