/* Helpers of the printer of Metal text (emit_msl.c): loops, operands and instructions of a kernel. */
#ifndef MICA_CODEGEN_MSL_TEXT_H
#define MICA_CODEGEN_MSL_TEXT_H

#include "codegen/emit_msl.h"

extern const char *const mica__msl_memory_type[MICA__DTYPE_COUNT];

typedef struct mica__msl_writer {
    const mica__kernel *k;
    mica__text *text;
    const mica__msl_shape *shape;     /* NULL for an epilogue                         */
    uint32_t buffer[MICA__MSL_MAX_BUFFERS]; /* the first access of each buffer        */
    int64_t lowest[MICA__MSL_MAX_BUFFERS]; /* lowest element touched, at most 0: the buffer is bound there */
    bool written[MICA__MSL_MAX_BUFFERS];
    uint32_t n_buffer;
    const char *index;                /* uint, or ulong if uint is too small          */
    bool wide;                        /* ulong: sizes and strides are in the text     */
    bool shared_fold;                 /* a threadgroup folds a row together           */
    bool epilogue;                    /* instruction 0 is the anchor's element        */
    bool checks;                      /* checks indices                               */
    uint32_t each;                    /* elements per thread                          */
    int stage;                        /* 1: folds parts, 2: folds the partial results; 0: not split */
    int64_t parts;
    uint32_t word[MICA__MSL_MAX_WORDS], n_word; /* words past the limit are counted, not written */
} mica__msl_writer;

/* The type in registers: f16 and bf16 are floats there. */
const char *mica__msl_value_type(mica_dtype dtype);
bool mica__msl_is_half(mica_dtype dtype);

/* Prints a size or a stride. Negative ones are printed modulo 2^32 or 2^64: unsigned arithmetic wraps. */
void mica__msl_size(mica__msl_writer *w, int64_t value);
/* Prints a constant of a kernel; its value is in the words. */
void mica__msl_constant(mica__msl_writer *w, mica_dtype dtype, mica__number value);
/* Expands the template: $0 $1 $2 are replaced by operand[], $a and $b by the attribute. */
void mica__msl_expand(mica__msl_writer *w, const char *template, const char operand[][32], const mica__kinst *inst);
/* The buffer of an access; n_buffer if it has none yet. */
uint32_t mica__msl_buffer_of(const mica__msl_writer *w, const mica__access *a);
/* Prints one instruction as a line. */
void mica__msl_inst(mica__msl_writer *w, uint32_t number, const char *indent);
/* Prints const uint i0 = ..., for loops [first, last) of element `flat`. If a thread has several elements, the
 * last index is that of the first element. */
void mica__msl_loop_indices(mica__msl_writer *w, int first, int last, const char *flat, const char *indent);

#endif
