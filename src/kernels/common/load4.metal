/* Loads of four elements. */
#ifndef MICA_LOAD4_METAL
#define MICA_LOAD4_METAL

#include "common.metal"

/* Four adjacent elements in one load: packed vectors only need the alignment of their elements. */
inline float4 load_float4(uint type, device const uchar *p, long i)
{
    if (type == F32) return float4(*(device const packed_float4 *)((device const float *)p + i));
    if (type == F16) return float4(half4(*(device const packed_half4 *)((device const half *)p + i)));
    if (type == BF16) {
        const ushort4 bits = ushort4(*(device const packed_ushort4 *)((device const ushort *)p + i));
        return as_type<float4>(uint4(bits) << 16);
    }
    if (type == I8) return float4(char4(*(device const packed_char4 *)((device const char *)p + i)));
    return float4(load_float(type, p, i), load_float(type, p, i + 1), load_float(type, p, i + 2),
                  load_float(type, p, i + 3));
}

#endif
