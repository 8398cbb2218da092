/* Descriptions of operands that every kernel gets, in C and in Metal. */
#ifndef MICA_KERNELS_COMMON_PARAMS_H
#define MICA_KERNELS_COMMON_PARAMS_H

#ifdef __METAL_VERSION__
#define MICA_LAYOUT(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#define MICA_SHADER_ENUM enum : uint
#else
#include <stdint.h>
#define MICA_LAYOUT(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define MICA_SHADER_ENUM enum
#endif

/* mica_dtype, for shaders, which cannot read mica.h: X(name, code). gpu.c checks that both agree. */
/* clang-format off */
#define MICA_SHADER_DTYPES(X) \
    X(BOOL, 0) \
    X(U8,   1) \
    X(I8,   2) \
    X(U16,  3) \
    X(I16,  4) \
    X(U32,  5) \
    X(I32,  6) \
    X(U64,  7) \
    X(I64,  8) \
    X(F16,  9) \
    X(BF16, 10) \
    X(F32,  11) \
    X(F64,  12)
/* clang-format on */

/* Offset of element number i over some axes; contiguous axes are merged. start counts from the lowest element of the
 * operand, where it is bound, because strides may be negative. */
typedef struct mica_view {
    int64_t start;
    int64_t stride[8];
    uint32_t size[8];
    uint32_t ndim;
    uint32_t unused;
} mica_view;
MICA_LAYOUT(mica_view, 112);

/* The first out-of-range index that a kernel read. */
typedef struct mica_fault {
    uint32_t set, kind;          /* generated kernels: 2 * mica__index_caller, + 1 if index is a ulong; index_check:
                                  * mica__index_caller; synapses_check: 1 for a list start */
    int64_t position;            /* among the indices; UPDATE: number of values  */
    int64_t index;
    int64_t size;
} mica_fault;
MICA_LAYOUT(mica_fault, 32);

#endif
