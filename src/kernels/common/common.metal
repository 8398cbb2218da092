/* Shared by the kernels: load and store of any dtype, offsets of strided
 * elements, and reductions over the threads of a row.
 *
 * A dtype is a function constant: code for other types is removed when the
 * pipeline is made, so one text serves all of them. bf16 is handled as bits, so it also
 * works on devices without the type. */
#ifndef MICA_COMMON_METAL
#define MICA_COMMON_METAL

#include <metal_stdlib>
using namespace metal;

/* a * b + c rounds twice unless written as fma: the same bits as on the CPU. */
#pragma METAL fp contract(off)

#include "common_params.h"

enum : uint {
#define X(name, code) name = code,
    MICA_SHADER_DTYPES(X)
#undef X
};

inline bool type_is_float(uint type) { return type >= F16; }
inline bool type_is_signed(uint type) { return type == I8 || type == I16 || type == I32 || type == I64; }

/* ------------------------------------------------------------- elements --- */

inline float bf16_to_float(ushort bits) { return as_type<float>(uint(bits) << 16); }

/* To nearest, ties to even; NaN stays NaN. */
inline ushort bf16_of_float(float v)
{
    const uint bits = as_type<uint>(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return ushort(bits >> 16 | 0x40u);
    return ushort((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Float dtypes except f64, codes (i8) and masks (bool). */
inline float load_float(uint type, device const uchar *p, long i)
{
    if (type == F32) return ((device const float *)p)[i];
    if (type == F16) return float(((device const half *)p)[i]);
    if (type == BF16) return bf16_to_float(((device const ushort *)p)[i]);
    if (type == I8) return float(((device const char *)p)[i]);
    return float(p[i]);
}

inline void store_float(uint type, device uchar *p, long i, float v)
{
    if (type == F32) ((device float *)p)[i] = v;
    else if (type == F16) ((device half *)p)[i] = half(v);
    else ((device ushort *)p)[i] = bf16_of_float(v);
}

/* The value that reading it back returns. */
inline float round_float(uint type, float v)
{
    return type == F32 ? v : type == F16 ? float(half(v)) : bf16_to_float(bf16_of_float(v));
}

inline float store_rounded(uint type, device uchar *p, long i, float v)
{
    store_float(type, p, i, v);
    return round_float(type, v);
}

/* Stores element i of a result and runs the epilogue that is fused after it. codegen/emit_msl.c writes mica_epilogue
 * and its extra operands, MICA_EPILOGUE_n for a kernel with n buffers; its constants follow the kernel's own
 * parameters, p. The epilogue reads the value as the next kernel would have read it, so fused and separate kernels give
 * the same bits. store_result returns the final value as a later kernel would read it. */
#ifdef MICA_EPILOGUE_OPERANDS
#define store_result(type, out, i, v) \
    mica_epilogue(uint(i), round_float(type, v), (constant uint *)(&p + 1) MICA_EPILOGUE_OPERANDS)
#else
#define MICA_EPILOGUE_3
#define MICA_EPILOGUE_4
#define MICA_EPILOGUE_5
#define MICA_EPILOGUE_6
#define MICA_EPILOGUE_8
#define store_result(type, out, i, v) store_rounded(type, out, i, v)
#endif

/* Integers; u64 as its bit pattern. */
inline long load_long(uint type, device const uchar *p, long i)
{
    if (type == I8) return ((device const char *)p)[i];
    if (type == U16) return ((device const ushort *)p)[i];
    if (type == I16) return ((device const short *)p)[i];
    if (type == U32) return ((device const uint *)p)[i];
    if (type == I32) return ((device const int *)p)[i];
    if (type == U64 || type == I64) return ((device const long *)p)[i];
    return p[i];
}

/* Wraps; anything but 0 is true. */
inline void store_long(uint type, device uchar *p, long i, long v)
{
    if (type == BOOL) p[i] = v != 0 ? 1 : 0;
    else if (type == U8 || type == I8) p[i] = uchar(v);
    else if (type == U16 || type == I16) ((device ushort *)p)[i] = ushort(v);
    else if (type == U32 || type == I32) ((device uint *)p)[i] = uint(v);
    else ((device long *)p)[i] = v;
}

/* Copies an element of 1, 2, 4 or 8 bytes unchanged. */
inline void copy_bits(uint size, device uchar *to, long at, device const uchar *from, long i)
{
    if (size == 1) to[at] = from[i];
    else if (size == 2) ((device ushort *)to)[at] = ((device const ushort *)from)[i];
    else if (size == 4) ((device uint *)to)[at] = ((device const uint *)from)[i];
    else ((device ulong *)to)[at] = ((device const ulong *)from)[i];
}

inline void store_bits(uint size, device uchar *to, long at, ulong bits)
{
    if (size == 1) to[at] = uchar(bits);
    else if (size == 2) ((device ushort *)to)[at] = ushort(bits);
    else if (size == 4) ((device uint *)to)[at] = uint(bits);
    else ((device ulong *)to)[at] = bits;
}

/* ---------------------------------------------------------- conversions --- */

/* Truncates; out of range saturates, NaN gives 0. The bounds are powers of two, which a float represents exactly. */
inline long long_of_float(uint type, float v)
{
    if (isnan(v)) return 0;
    if (type == U64) return v < 0.0f ? 0 : v >= 0x1p64f ? -1 : long(ulong(v));
    const bool two = type == U16 || type == I16, four = type == U32 || type == I32;
    const int bits = type == U8 || type == I8 ? 8 : two ? 16 : four ? 32 : 64;
    const bool is_signed = type_is_signed(type);
    const float high = as_type<float>(uint(127 + (is_signed ? bits - 1 : bits)) << 23), low = is_signed ? -high : 0.0f;
    const long most = is_signed ? long((1ul << (bits - 1)) - 1) : long((1ul << bits) - 1);
    if (v >= high) return most;
    if (v < low) return is_signed ? -most - 1 : 0;
    return long(v);
}

/* Rounds an integer of more than 24 bits to odd: the last bit of the float is set if bits were cut off. Rounding that
 * to 16 bits then gives the same as rounding the integer once. */
inline float float_to_odd(ulong v)
{
    const int above = 40 - int(clz(v));
    if (v == 0 || above <= 0) return float(v);
    const ulong lost = v & ((1ul << above) - 1);
    return float(v >> above | (lost != 0 ? 1ul : 0ul)) * as_type<float>(uint(127 + above) << 23);
}

/* An element to read. */
struct element_in {
    uint type;                                        /* dtype of p                      */
    device const uchar *p;
    long i;
};

/* mica_cast, except for f64: `from` becomes element `at` of `to`. */
inline void cast_element(uint to_type, device uchar *to, long at, element_in from)
{
    const uint type = from.type;
    if (type_is_float(type)) {
        const float v = load_float(type, from.p, from.i);
        if (type_is_float(to_type)) store_float(to_type, to, at, v);
        else if (to_type == BOOL) to[at] = v != 0.0f ? 1 : 0;
        else store_long(to_type, to, at, long_of_float(to_type, v));
        return;
    }
    const long v = load_long(type, from.p, from.i);
    if (!type_is_float(to_type)) {
        store_long(to_type, to, at, v);
        return;
    }
    const bool below = type != U64 && v < 0;
    const ulong size = below ? 0ul - ulong(v) : ulong(v);
    const float f = to_type == F32 ? float(size) : float_to_odd(size);
    store_float(to_type, to, at, below ? -f : f);
}

/* ----------------------------------------------------------------- order --- */

/* As kernels/order.h: a < b in the order exactly if key(a) < key(b). */
constant constexpr ulong KEY_NAN = ~0ul;
constant constexpr ulong KEY_TOP = 1ul << 63;

inline ulong order_key(uint type, device const uchar *p, long i)
{
    if (!type_is_float(type)) {
        const ulong bits = ulong(load_long(type, p, i));
        return type_is_signed(type) ? bits ^ KEY_TOP : bits;
    }
    if (type == F64) {
        const ulong bits = ((device const ulong *)p)[i], size = bits & ~KEY_TOP;
        if (size > 0x7ff0000000000000ul) return KEY_NAN;
        if (size == 0) return KEY_TOP;
        return bits & KEY_TOP ? ~bits : bits | KEY_TOP;
    }
    const uint bits = as_type<uint>(load_float(type, p, i)), size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return KEY_NAN;
    if (size == 0) return KEY_TOP;
    return ulong(bits >> 31 ? ~bits : bits | 0x80000000u) << 32;
}

/* --------------------------------------------------------------- places --- */

inline long view_at(constant mica_view &v, uint flat)
{
    long at = v.start;
    for (uint d = v.ndim; d-- > 0;) {
        const uint above = flat / v.size[d];
        at += long(flat - above * v.size[d]) * v.stride[d];
        flat = above;
    }
    return at;
}

/* ----------------------------------------------------------- reductions --- */

/* Over the threads of one row: those of a simdgroup, or of all simdgroups of the threadgroup, which store partial
 * results in scratch (32 floats). All threads get the result. */
inline float row_sum(float v, threadgroup float *scratch, uint simd, uint lane, uint simds)
{
    v = simd_sum(v);
    if (simds == 1) return v;
    if (lane == 0) scratch[simd] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = simd_sum(lane < simds ? scratch[lane] : 0.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return v;
}

/* v must not be NaN. */
inline float row_max(float v, threadgroup float *scratch, uint simd, uint lane, uint simds)
{
    v = simd_max(v);
    if (simds == 1) return v;
    if (lane == 0) scratch[simd] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = simd_max(lane < simds ? scratch[lane] : -INFINITY);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return v;
}

/* The smallest value of a threadgroup, returned in its first simdgroup. */
inline uint group_min(uint v, threadgroup uint *scratch, uint simd, uint lane, uint simds)
{
    v = simd_min(v);
    if (simds == 1) return v;
    if (lane == 0) scratch[simd] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return simd_min(lane < simds ? scratch[lane] : ~0u);
}

/* ---------------------------------------------------------- two floats ---- */

/* high + low, about 48 bits: used where the CPU uses double. */
struct float_pair {
    float high, low;
};

inline float_pair pair_sum(float a, float b)
{
    const float s = a + b, t = s - a;
    return float_pair{s, (a - (s - t)) + (b - t)};
}

inline float_pair pair_product(float a, float b)
{
    const float p = a * b;
    return float_pair{p, fma(a, b, -p)};
}

inline float_pair pair_add(float_pair a, float_pair b)
{
    const float_pair s = pair_sum(a.high, b.high);
    return pair_sum(s.high, s.low + (a.low + b.low));
}

inline float_pair pair_times(float_pair a, float b)
{
    const float_pair p = pair_product(a.high, b);
    return pair_sum(p.high, fma(a.low, b, p.low));
}

inline float_pair simd_pair_sum(float_pair v)
{
    for (ushort by = 16; by > 0; by /= 2)
        v = pair_add(v, float_pair{simd_shuffle_xor(v.high, by), simd_shuffle_xor(v.low, by)});
    return v;
}

/* As row_sum, for pairs; scratch has 64 floats. */
inline float_pair row_pair_sum(float_pair v, threadgroup float *scratch, uint simd, uint lane, uint simds)
{
    v = simd_pair_sum(v);
    if (simds == 1) return v;
    if (lane == 0) {
        scratch[simd] = v.high;
        scratch[32 + simd] = v.low;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = simd_pair_sum(float_pair{lane < simds ? scratch[lane] : 0.0f, lane < simds ? scratch[32 + lane] : 0.0f});
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return v;
}

#endif
