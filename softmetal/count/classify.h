/* What each instruction of a kernel means on an Apple GPU: its operations by cost class (classes.def), by the rules of
 * rules.def. */
#ifndef SOFTMETAL_COUNT_CLASSIFY_H
#define SOFTMETAL_COUNT_CLASSIFY_H

#include "counts.h"
#include "ir.h"

typedef enum sm_space {
    SM_SPACE_UNKNOWN,
    SM_SPACE_DEVICE,
    SM_SPACE_CONSTANT,
    SM_SPACE_LOCAL,
    SM_SPACE_THREAD,
    SM_SPACE_RUNTIME /* the table of functions that the shim calls */
} sm_space;

/* An address: base + index * scale + offset. Accesses that differ in the offset only may be neighbours. */
typedef struct sm_address {
    int base, index; /* instructions; index -1: none */
    int64_t scale, offset;
} sm_address;

enum { SM_OPERATIONS = 4, SM_NO_SITE = -1 };

typedef struct sm_meaning {
    struct {
        sm_cost class;
        int number;
    } operations[SM_OPERATIONS];
    int count;
    bool uniform; /* the same in all threads of a dispatch, and computed before it */
    bool folded;  /* part of another instruction */
    sm_space space; /* pointers: the memory; accesses: of the address */
    sm_address address;
    bool compared_only; /* all users are selects and branches */
    int kept_bits;      /* the widest truncation by a user; 64: a user takes all bits */
    bool follower;      /* an access that another one of its block includes */
    int64_t low;        /* the first access of neighbours: where they begin, from its own address */
    int bytes;          /* ... and their length */
} sm_meaning;

typedef struct sm_classified {
    ir_function function;
    sm_meaning *meanings;
    int *users, *users_at; /* users[users_at[v]] ... users[users_at[v + 1] - 1]: the instructions that use v */
    bool precise; /* without fast math */
    unsigned applied[SM_RULES];
} sm_classified;

bool sm_classify(sm_classified *c, const char *text, bool precise, char **message);
void sm_classified_free(sm_classified *c);

/* "sm_simd_reduce" of "_ZN5metal14sm_simd_reduceI...". is_precise, is_fast: of a namespace (may be NULL). */
ir_slice sm_plain_name(ir_slice symbol, bool *is_precise, bool *is_fast);
/* Whether the count gives the callee a price or makes it free: it is then not a function of the kernel's author. */
bool sm_is_operation(ir_slice symbol);

/* The 16-bit registers live at the widest point. -1: out of memory. */
int sm_registers(const sm_classified *c);

/* steps of sm_classify; addresses.c */
void sm_find_addresses(sm_classified *c);
void sm_find_neighbours(sm_classified *c);
int sm_bytes_of(ir_type type);
void sm_apply(sm_classified *c, sm_rule rule);

#endif
