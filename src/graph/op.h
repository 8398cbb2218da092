/* The op table from ops.def: all facts about each op. */
#ifndef MICA_GRAPH_OP_H
#define MICA_GRAPH_OP_H

#include "array/array.h"

typedef enum mica__op {
#define MICA_OP(NAME, ...) MICA__OP_##NAME,
#include "graph/ops.def"
    MICA__OP_COUNT
} mica__op;

typedef enum mica__op_kind {
    MICA__SOURCE,
    MICA__MAKE,
    MICA__MAP,
    MICA__VIEW,
    MICA__ALIAS,
    MICA__REDUCE,
    MICA__FAMILY,
    MICA__LOOP
} mica__op_kind;

/* The arguments of an element-wise op's public constructor, and where its vector form
 * runs: columns ctor and place of ops.def. */
typedef enum mica__op_ctor { MICA__CTOR_OTHER, MICA__CTOR_PLAIN, MICA__CTOR_WHOLE, MICA__CTOR_VALUE } mica__op_ctor;
typedef enum mica__op_place {
    MICA__PLACE_NONE,
    MICA__PLACE_REGISTERS,
    MICA__PLACE_EXACT,
    MICA__PLACE_FUNCTION,
    MICA__PLACE_LOOP,
    MICA__PLACE_VALUE
} mica__op_place;

typedef struct mica__op_info mica__op_info;
struct mica__gnode;
struct mica__text;

/* Computes dtype and shape of the result, or fails with a message that names the op and
 * the values. Only these rules check shapes: constructors call them, and the verifier
 * calls them again after each pass. */
typedef mica_status (*mica__shape_rule)(const mica__op_info *info, const mica__spec *const *in, size_t n_in,
                                        const void *attr, mica__spec *out);

/* The gradient: builds the cotangent of each input i into grads[i]; NULL if it has
 * none. y is the node, ct the cotangent of its result. */
typedef mica_status (*mica__vjp_rule)(mica_scope *s, mica_array *y, mica_array *ct, mica_array **grads);

/* Number of operations of one evaluation. */
typedef uint64_t (*mica__cost_rule)(const mica__op_info *info, const mica__spec *const *in, size_t n_in,
                                    const void *attr, const mica__spec *out);

/* Appends the attributes of a node that its dtype and shape do not already show. */
typedef void (*mica__attr_printer)(struct mica__text *text, const struct mica__gnode *node);

struct mica__op_info {
    mica__op op;
    const char *name;
    mica__op_kind kind;
    int n_in;                  /* -1: any number */
    mica__shape_rule shape;
    uint32_t flops;
    mica__cost_rule cost;
    size_t attr_size;          /* bytes of attributes; 0: none, or optional ones */
    mica__attr_printer print;
    const char *msl;
    mica__vjp_rule vjp;
    mica__op_ctor ctor;
    mica__op_place place;
};

extern const mica__op_info mica__ops[MICA__OP_COUNT];

static inline const mica__op_info *mica__op_get(uint16_t op) { return &mica__ops[op]; }

/* The name of the public op for a mica__index_caller (attrs.h); `self` for MICA__CALLER_NONE. */
const char *mica__index_caller_name(int64_t caller, const char *self);

/* Fails unless x is an integer with one element. */
mica_status mica__one_integer(const mica__op_info *info, const char *what, const mica__spec *x);

/* Declares every rule named in the table. */
#define MICA__SHAPE_RULE(rule)                                                                          \
    mica_status mica__shape_##rule(const mica__op_info *info, const mica__spec *const *in, size_t n_in, \
                                   const void *attr, mica__spec *out)
#define MICA__VJP_RULE(vjp) \
    mica_status mica__vjp_##vjp(mica_scope *s, mica_array *y, mica_array *ct, mica_array **grads)
#define MICA__COST_RULE(cost)                                                                                         \
    uint64_t mica__cost_##cost(const mica__op_info *info, const mica__spec *const *in, size_t n_in, const void *attr, \
                               const mica__spec *out)
#define MICA__ATTR_PRINTER(attr) void mica__print_##attr(struct mica__text *text, const struct mica__gnode *node)
#define MICA_OP(NAME, name, kind, n_in, rule, flops, cost, attr, msl, vjp) \
    MICA__SHAPE_RULE(rule);                                                \
    MICA__COST_RULE(cost);                                                 \
    MICA__ATTR_PRINTER(attr);                                              \
    MICA__VJP_RULE(vjp);
#include "graph/ops.def"

#endif
