/* A parity case is an op (or a program of several ops), the inputs it needs, and a builder. This
 * file also runs a case on an engine. */
#ifndef MICA_TESTS_PARITY_RUN_H
#define MICA_TESTS_PARITY_RUN_H

#include "graph/build.h"
#include "parity_compare.h"
#include "parity_data.h"

enum { PARITY_MAX_IN = 5, PARITY_CASE_DTYPE = 0 };

#define PARITY_COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

typedef struct parity_case parity_case;

/* Arguments of a builder besides its inputs. */
typedef struct parity_call {
    const parity_case *c;
    mica_dtype dtype;             /* dtype of this round                               */
    int variant;                  /* 0 ... c->n_variant - 1                            */
} parity_call;

/* NULL without an error of the scope: the variant does not apply to these inputs. */
typedef mica_array *(*parity_build)(mica_scope *s, mica_array *const *x, const parity_call *call);

typedef struct parity_shape {
    int ndim;
    int64_t size[5];
} parity_shape;

typedef struct parity_operand {
    parity_domain domain;
    int dtype;                    /* fixed dtype + 1; PARITY_CASE_DTYPE: the round's     */
} parity_operand;

struct parity_case {
    mica__op op;                  /* defines the tolerance and the shape rule          */
    const char *name;
    parity_build build;
    int n_variant;
    int n_in;
    parity_operand in[PARITY_MAX_IN];
    /* Shapes to run: n_shape rows of n_in each. */
    const parity_shape *shapes;
    int n_shape;
    int64_t terms;                /* see parity_tolerance_of; 0: inputs to one output  */
    uint32_t dtypes;              /* bit d: dtype d; 0: what the shape rule allows     */
};

/* For initialisers. An operand of the round's dtype, and one of a fixed dtype;
 * a case, its operands last. rows: an array of shapes, or of rows of n_in each. */
/* clang-format off */
#define PARITY_OPERAND(low, high, int_low, int_high, special) \
    {{low, high, int_low, int_high, special}, PARITY_CASE_DTYPE}
#define PARITY_OPERAND_OF(dtype, low, high, int_low, int_high) \
    {{low, high, int_low, int_high, PARITY_PLAIN}, (dtype) + 1}
#define PARITY_CASE(OP, name, build, variants, n_in, rows, terms, dtypes, ...)  \
    {MICA__OP_##OP, name, build, variants, n_in, {__VA_ARGS__},                 \
     (const parity_shape *)(rows), PARITY_COUNT(rows), terms, dtypes}
/* clang-format on */

/* An engine with these passes and threads; ends the program if it fails. */
mica_engine *parity_engine(const char *backend, uint32_t passes, int threads);

void parity_run(mica_engine *e, const parity_call *call, const parity_input *in, parity_result *out);

/* The inputs of a case for one row of shapes. Input k gets layout + 3 k. */
void parity_inputs_make(const parity_call *call, const parity_shape *row, parity_layout layout, uint64_t seed,
                        parity_input *in);
void parity_inputs_free(const parity_case *c, parity_input *in);

/* The number of input elements that one element of the result depends on. */
int64_t parity_terms(const parity_case *c, const parity_input *in, const parity_result *out);

/* "(3, 5) transposed, ()" */
void parity_inputs_text(const parity_case *c, const parity_shape *row, parity_layout layout, char text[256]);

#endif
