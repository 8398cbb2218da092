/* The kernel IR: one fused element-wise loop nest, with an optional fold, as a
 * short list of instructions in single-assignment form. Its consumers are the
 * reference interpreter (backend/ref), the op chains (codegen/chain), the printer
 * of Metal text (codegen/emit_msl) and the dump.
 *
 * Loops are merged as far as all accesses allow, outermost first. Loops that are
 * folded (reduced) are last. */
#ifndef MICA_CODEGEN_KERNEL_H
#define MICA_CODEGEN_KERNEL_H

#include "plan/plan.h"

typedef enum mica__kcode {
    MICA__K_CONST,              /* value                                                 */
    MICA__K_IOTA,               /* start + step * (access offset + strides . loop index) */
    MICA__K_LOAD,
    MICA__K_MAP,                /* op of arg[0..2]                                       */
    MICA__K_FOLD,               /* fold arg[0] over the folded loops                     */
    MICA__K_STORE               /* arg[0]                                                */
} mica__kcode;

typedef struct mica__kinst {
    mica__kcode code;
    mica__op op;                /* MAP, FOLD                                             */
    mica_dtype dtype;           /* of the result (STORE: of the memory)                  */
    mica_dtype in_dtype;        /* MAP: of its operands (WHERE: of arg[1] and arg[2])    */
    uint32_t arg[3];            /* numbers of instructions                               */
    uint32_t n_arg;
    uint32_t access;            /* LOAD, STORE, IOTA                                     */
    mica__number value, step;   /* CONST: value; IOTA: start, step                       */
    const void *attr;           /* MAP                                                   */
} mica__kinst;

/* One operand, described by its strides per loop. */
typedef struct mica__access {
    uint32_t block;             /* of the plan; NO_BLOCK for IOTA                        */
    uint32_t operand;           /* index in step->in, or n_in + index in step->out       */
    mica_dtype dtype;
    int64_t offset;             /* elements                                              */
    int64_t strides[MICA_MAX_DIMS]; /* per loop; 0 in folded loops for operands after the fold */
} mica__access;

typedef struct mica__kernel {
    int ndim, n_fold;           /* loops; the last n_fold are folded                     */
    int64_t size[MICA_MAX_DIMS];
    mica__kinst *inst;
    uint32_t n_inst;
    uint32_t fold;              /* number of the FOLD instruction; n_inst if there is none.
                                 * Instructions before it run for each element of all loops,
                                 * those after it once for each element of the outer loops */
    mica__access *access;
    uint32_t n_access;
} mica__kernel;

/* Builds the element-wise part of a step: all of MAP and REDUCE, the epilogue of
 * FAMILY (the anchor's result is a LOAD from anchor_block). *out is NULL if there
 * is no such part. */
mica_status mica__kernel_build(const mica__plan *plan, const mica__step *step, mica__arena *arena, mica__kernel **out);

/* Number of elements of the outer (not folded) and of the folded loops. */
int64_t mica__kernel_outer(const mica__kernel *k);
int64_t mica__kernel_folded(const mica__kernel *k);

void mica__kernel_print(const mica__kernel *k, const char *name, mica__text *text);

#endif
