/* A function of textual LLVM IR as a list of instructions and blocks.
 *
 * Only what the count needs is parsed: names, opcodes, types, operands, callees, the flow between blocks. Text that
 * has another form is an error, never skipped: what is not understood would not be counted. */
#ifndef SOFTMETAL_COUNT_IR_H
#define SOFTMETAL_COUNT_IR_H

#include "../msl/text.h"

typedef enum ir_opcode {
#define OPCODE(text, id, kind) IR_##id,
#include "rules.def"
    IR_OPCODES
} ir_opcode;

typedef enum ir_kind { IR_VOID, IR_INT, IR_FLOAT, IR_POINTER, IR_AGGREGATE } ir_kind;

typedef struct ir_type {
    ir_kind kind;
    int bits;     /* of an element */
    int elements; /* 1, or more for a vector */
} ir_type;

typedef struct ir_slice {
    const char *at;
    int length;
} ir_slice;

enum { IR_CONSTANT = -1, IR_GLOBAL = -2, IR_ARGUMENT = -3 };

typedef struct ir_operand {
    int value; /* the instruction that computes it, or one of the above */
    int block; /* phi: where it comes from; br, switch: a successor is a separate list */
    ir_slice text;
} ir_operand;

typedef struct ir_instruction {
    ir_opcode opcode;
    ir_type type;    /* of the result; of a store: of the stored value */
    ir_type from;    /* conversions: of the operand */
    ir_slice name;   /* "%12"; empty: no result */
    ir_slice line;   /* the whole text, with its newline */
    ir_slice callee; /* call: the name without @; empty: indirect or inline assembler */
    ir_slice element; /* getelementptr, alloca: the type of an element */
    bool assembler;
    int first, count; /* operands */
    int block;
    int uses;
} ir_instruction;

typedef struct ir_block {
    ir_slice label; /* empty: the first block */
    int first, count;
    int body; /* the first instruction that is not a phi */
    int successors, successors_count;
} ir_block;

typedef struct ir_function {
    ir_slice name;
    ir_slice text; /* from "define" to "}" */
    ir_instruction *instructions;
    int count, room;
    ir_operand *operands;
    int operands_count, operands_room;
    ir_block *blocks;
    int blocks_count, blocks_room;
    int *edges; /* successors of all blocks */
    int edges_count, edges_room;
    int *table; /* hash of the names of values */
    int table_room;
} ir_function;

/* Parses the function that begins at text ("define ..."). */
bool ir_parse(ir_function *f, const char *text, char **message);
void ir_free(ir_function *f);

ir_type ir_type_of(ir_slice text);
bool ir_slice_is(ir_slice s, const char *text);
bool ir_contains(ir_slice s, const char *text);
/* An integer operand; false: not a number. */
bool ir_number(const ir_operand *o, int64_t *number);
const ir_operand *ir_operand_of(const ir_function *f, const ir_instruction *i, int index);
/* The instruction that computes an operand, or NULL. */
const ir_instruction *ir_source(const ir_function *f, const ir_instruction *i, int index);

#endif
