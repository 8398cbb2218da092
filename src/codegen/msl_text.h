/* What the printer of Metal text writes with (emit_msl.c): a kernel's loops, operands and instructions. */
#ifndef MICA_CODEGEN_MSL_TEXT_H
#define MICA_CODEGEN_MSL_TEXT_H

#include "codegen/emit_msl.h"

extern const char *const mica__msl_memory_type[MICA__DTYPE_COUNT];

typedef struct mica__msl_writer {
    const mica__kernel *k;
    mica__text *text;
    const mica__msl_shape *shape;     /* NULL: of an epilogue                         */
    uint32_t buffer[MICA__MSL_MAX_BUFFERS]; /* the first access of each buffer        */
    int64_t lowest[MICA__MSL_MAX_BUFFERS]; /* element touched, but at most 0: it is bound there */
    bool written[MICA__MSL_MAX_BUFFERS];
    uint32_t n_buffer;
    const char *index;                /* uint, or ulong where uint cannot count       */
    bool wide;                        /* ulong: sizes and strides are in the text     */
    bool shared_fold;                 /* by a threadgroup                             */
    bool epilogue;                    /* instruction 0 is the anchor's element        */
    bool checks;                      /* indices                                      */
    uint32_t each;                    /* elements of a thread                         */
    int stage;                        /* 1: folds parts, 2: folds those; 0: all of it */
    int64_t parts;
    uint32_t word[MICA__MSL_MAX_WORDS], n_word; /* one more is counted, not written   */
} mica__msl_writer;

/* In registers: f16 and bf16 are floats there. */
const char *mica__msl_value_type(mica_dtype dtype);
bool mica__msl_is_half(mica_dtype dtype);

/* A size or a stride. Of a negative one the low bits: unsigned arithmetic wraps. */
void mica__msl_size(mica__msl_writer *w, int64_t value);
/* The constants of a kernel, as the others of its words. */
void mica__msl_constant(mica__msl_writer *w, mica_dtype dtype, mica__number value);
/* The template with $0 $1 $2 replaced by operand[], $a and $b by the attribute. */
void mica__msl_expand(mica__msl_writer *w, const char *template, const char operand[][32], const mica__kinst *inst);
/* The buffer an access goes to; n_buffer: none yet. */
uint32_t mica__msl_buffer_of(const mica__msl_writer *w, const mica__access *a);
/* One instruction, as a line. */
void mica__msl_inst(mica__msl_writer *w, uint32_t number, const char *indent);
/* const uint i0 = ..., for loops [first, last) of element `flat`. Where a thread has several, the last is
 * that of the first of them. */
void mica__msl_loop_indices(mica__msl_writer *w, int first, int last, const char *flat, const char *indent);

#endif
