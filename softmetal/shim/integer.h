/* Functions of integers. Arithmetic that could overflow is done unsigned or wider. */

namespace metal {

#define SM_FOR_INTEGER(T)                                                                                             \
    SM_X inline make_unsigned_t<T> sm_u(T x) { return make_unsigned_t<T>(x); }                                        \
    SM_X inline T min(T a, T b) { return b < a ? b : a; }                                                             \
    SM_X inline T max(T a, T b) { return a < b ? b : a; }                                                             \
    SM_X inline T clamp(T x, T low, T high) { return min(max(x, low), high); }                                        \
    SM_X inline T min3(T a, T b, T c) { return min(a, min(b, c)); }                                                   \
    SM_X inline T max3(T a, T b, T c) { return max(a, max(b, c)); }                                                   \
    SM_X inline T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }                                \
    SM_X inline T sign(T x) { return T(x > T(0) ? 1 : is_signed<T>::value && x < T(0) ? -1 : 0); }                    \
    SM_X inline T abs(T x)                                                                                            \
    {                                                                                                                 \
        return is_signed<T>::value && x < T(0) ? T(make_unsigned_t<T>(0) - make_unsigned_t<T>(x)) : x;                \
    }                                                                                                                 \
    SM_X inline make_unsigned_t<T> absdiff(T a, T b)                                                                  \
    {                                                                                                                 \
        return make_unsigned_t<T>(a > b ? make_unsigned_t<T>(a) - make_unsigned_t<T>(b)                               \
                                        : make_unsigned_t<T>(b) - make_unsigned_t<T>(a));                             \
    }                                                                                                                 \
    SM_PURE_OP inline T popcount(T x) { return T(__builtin_popcountl(ulong(make_unsigned_t<T>(x)))); }                \
    SM_PURE_OP inline T clz(T x)                                                                                      \
    {                                                                                                                 \
        ulong u = ulong(make_unsigned_t<T>(x));                                                                       \
        return T(u ? __builtin_clzl(u) - (64 - int(sizeof(T)) * 8) : int(sizeof(T)) * 8);                             \
    }                                                                                                                 \
    SM_PURE_OP inline T ctz(T x)                                                                                      \
    {                                                                                                                 \
        ulong u = ulong(make_unsigned_t<T>(x));                                                                       \
        return T(u ? __builtin_ctzl(u) : int(sizeof(T)) * 8);                                                         \
    }                                                                                                                 \
    SM_PURE_OP inline T reverse_bits(T x)                                                                             \
    {                                                                                                                 \
        return T(__builtin_bitreverse64(ulong(make_unsigned_t<T>(x))) >> (64 - sizeof(T) * 8));                       \
    }                                                                                                                 \
    SM_PURE_OP inline T rotate(T x, T by)                                                                             \
    {                                                                                                                 \
        uint n = uint(by) & uint(sizeof(T) * 8 - 1);                                                                  \
        make_unsigned_t<T> u = make_unsigned_t<T>(x);                                                                 \
        return n ? T(u << n | u >> (sizeof(T) * 8 - n)) : x;                                                          \
    }                                                                                                                 \
    SM_PURE_OP inline T extract_bits(T x, uint offset, uint bits)                                                     \
    {                                                                                                                 \
        uint width = sizeof(T) * 8;                                                                                   \
        if (!bits) return T(0);                                                                                       \
        make_unsigned_t<T> u = make_unsigned_t<T>(make_unsigned_t<T>(x) << (width - bits - offset));                  \
        return T(T(u) >> (width - bits));                                                                             \
    }                                                                                                                 \
    SM_PURE_OP inline T insert_bits(T base, T insert, uint offset, uint bits)                                         \
    {                                                                                                                 \
        ulong mask = (bits >= 64 ? ~0ul : (1ul << bits) - 1) << offset;                                               \
        return T((ulong(base) & ~mask) | (ulong(insert) << offset & mask));                                           \
    }                                                                                                                 \
    SM_PURE_OP inline T mulhi(T a, T b)                                                                               \
    {                                                                                                                 \
        typedef conditional_t<is_signed<T>::value, __int128, unsigned __int128> W;                                    \
        return T(W(a) * W(b) >> (sizeof(T) * 8));                                                                     \
    }                                                                                                                 \
    SM_X inline T madhi(T a, T b, T c) { return T(make_unsigned_t<T>(mulhi(a, b)) + make_unsigned_t<T>(c)); }         \
    SM_PURE_OP inline T addsat(T a, T b) { return T(sm_saturated<T>(__int128(a) + __int128(b))); }                    \
    SM_PURE_OP inline T subsat(T a, T b) { return T(sm_saturated<T>(__int128(a) - __int128(b))); }                    \
    SM_PURE_OP inline T madsat(T a, T b, T c) { return T(sm_saturated<T>(__int128(a) * __int128(b) + __int128(c))); } \
    SM_PURE_OP inline T hadd(T a, T b) { return T((__int128(a) + __int128(b)) >> 1); }                                \
    SM_PURE_OP inline T rhadd(T a, T b) { return T((__int128(a) + __int128(b) + 1) >> 1); }

template <class T> SM_X inline __int128 sm_saturated(__int128 x)
{
    __int128 low = numeric_limits<T>::min(), high = numeric_limits<T>::max();
    return x < low ? low : x > high ? high : x;
}
#define SM_INTEGERS(M) M(char) M(sm_schar) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong)
SM_INTEGERS(SM_FOR_INTEGER)
#undef SM_FOR_INTEGER

SM_X inline int mul24(int a, int b) { return int(uint(a << 8 >> 8) * uint(b << 8 >> 8)); }
SM_X inline uint mul24(uint a, uint b) { return (a & 0xffffff) * (b & 0xffffff); }
SM_X inline int mad24(int a, int b, int c) { return int(uint(mul24(a, b)) + uint(c)); }
SM_X inline uint mad24(uint a, uint b, uint c) { return mul24(a, b) + c; }

/* ---- pack and unpack ---- */

SM_X inline float sm_unit(float x, float low) { return fmin(fmax(x, low), 1.0f); }
SM_X inline uint pack_float_to_unorm4x8(float4 v)
{
    uint r = 0;
    for (int i = 0; i < 4; i++) r |= uint(__builtin_rintf(sm_unit(v[i], 0) * 255.0f)) << (8 * i);
    return r;
}
SM_X inline uint pack_float_to_snorm4x8(float4 v)
{
    uint r = 0;
    for (int i = 0; i < 4; i++) r |= uint(uchar(int(__builtin_rintf(sm_unit(v[i], -1) * 127.0f)))) << (8 * i);
    return r;
}
SM_X inline uint pack_half_to_unorm4x8(half4 v) { return pack_float_to_unorm4x8(float4(v)); }
SM_X inline float4 unpack_unorm4x8_to_float(uint x)
{
    return float4(x & 255, x >> 8 & 255, x >> 16 & 255, x >> 24) / 255.0f;
}
SM_X inline float4 unpack_snorm4x8_to_float(uint x)
{
    float4 r;
    for (int i = 0; i < 4; i++) r[i] = fmax(float(char(x >> (8 * i))) / 127.0f, -1.0f);
    return r;
}
SM_X inline half4 unpack_unorm4x8_to_half(uint x) { return half4(unpack_unorm4x8_to_float(x)); }
SM_X inline uint pack_float_to_unorm2x16(float2 v)
{
    return uint(__builtin_rintf(sm_unit(v.x, 0) * 65535.0f)) | uint(__builtin_rintf(sm_unit(v.y, 0) * 65535.0f)) << 16;
}
SM_X inline float2 unpack_unorm2x16_to_float(uint x) { return float2(x & 65535, x >> 16) / 65535.0f; }
SM_X inline uint pack_float_to_snorm2x16(float2 v)
{
    uint r = 0;
    for (int i = 0; i < 2; i++) r |= uint(ushort(int(__builtin_rintf(sm_unit(v[i], -1) * 32767.0f)))) << (16 * i);
    return r;
}
SM_X inline float2 unpack_snorm2x16_to_float(uint x)
{
    float2 r;
    for (int i = 0; i < 2; i++) r[i] = fmax(float(short(x >> (16 * i))) / 32767.0f, -1.0f);
    return r;
}
SM_X inline uint pack_half_to_snorm4x8(half4 v) { return pack_float_to_snorm4x8(float4(v)); }
SM_X inline uint pack_half_to_unorm2x16(half2 v) { return pack_float_to_unorm2x16(float2(v)); }
SM_X inline uint pack_half_to_snorm2x16(half2 v) { return pack_float_to_snorm2x16(float2(v)); }
SM_X inline half4 unpack_snorm4x8_to_half(uint x) { return half4(unpack_snorm4x8_to_float(x)); }
SM_X inline half2 unpack_unorm2x16_to_half(uint x) { return half2(unpack_unorm2x16_to_float(x)); }
SM_X inline half2 unpack_snorm2x16_to_half(uint x) { return half2(unpack_snorm2x16_to_float(x)); }

} // namespace metal
