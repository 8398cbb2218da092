/* bfloat is a class and not __bf16, because every operation must round to nearest even and
 * keep denormals on every CPU. It converts implicitly to float only (so that "c ? b : 0" is
 * not ambiguous), and only integers convert implicitly to it. Each operation is computed in
 * float and then rounded. The two roundings give the correctly rounded result, because the
 * 24 bits of a float are at least twice the 8 of a bfloat plus two. */

struct bfloat {
    ushort sm_bits;
    bfloat() = default;
    SM_X static constexpr ushort sm_round(float x)
    {
        uint u = __builtin_bit_cast(uint, x);
        if ((u & 0x7fffffff) > 0x7f800000) return ushort(u >> 16 | 0x40);
        return ushort((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    SM_X explicit constexpr bfloat(float x) : sm_bits(sm_round(x)) {}
    SM_X explicit constexpr bfloat(double x) : bfloat(float(x)) {}
    SM_X explicit constexpr bfloat(half x) : bfloat(float(x)) {}
    template <class I, class = metal::enable_if_t<metal::sm_integer<I>::value>>
    SM_X constexpr bfloat(I x) : bfloat(float(x))
    {
    }
    SM_X constexpr float sm_float() const { return __builtin_bit_cast(float, uint(sm_bits) << 16); }
    template <class T, class = metal::enable_if_t<metal::is_same<T, float>::value>> SM_X constexpr operator T() const
    {
        return sm_float();
    }
    template <class T, class = metal::enable_if_t<!metal::is_same<T, float>::value && __is_arithmetic(T)>, class = void>
    SM_X explicit constexpr operator T() const
    {
        return T(sm_float());
    }
};

#define SM_BFLOAT_OP(op)                                                                           \
    SM_X constexpr bfloat operator op(bfloat a, bfloat b) { return bfloat(float(a) op float(b)); } \
    SM_X constexpr float operator op(bfloat a, float b) { return float(a) op b; }                  \
    SM_X constexpr float operator op(float a, bfloat b) { return a op float(b); }                  \
    SM_X constexpr float operator op(bfloat a, half b) { return float(a) op float(b); }            \
    SM_X constexpr float operator op(half a, bfloat b) { return float(a) op float(b); }            \
    template <class I, class = metal::enable_if_t<metal::sm_integer<I>::value>>                    \
    SM_X constexpr bfloat operator op(bfloat a, I b)                                               \
    {                                                                                              \
        return bfloat(float(a) op float(b));                                                       \
    }                                                                                              \
    template <class I, class = metal::enable_if_t<metal::sm_integer<I>::value>>                    \
    SM_X constexpr bfloat operator op(I a, bfloat b)                                               \
    {                                                                                              \
        return bfloat(float(a) op float(b));                                                       \
    }                                                                                              \
    template <class U> SM_X constexpr bfloat &operator op##=(bfloat & a, U b)                      \
    {                                                                                              \
        return a = bfloat(float(a) op float(b));                                                   \
    }
SM_BFLOAT_OP(+)
SM_BFLOAT_OP(-)
SM_BFLOAT_OP(*)
SM_BFLOAT_OP(/)
#undef SM_BFLOAT_OP
#define SM_BFLOAT_COMPARE(op)                                                                                  \
    SM_X constexpr bool operator op(bfloat a, bfloat b) { return float(a) op float(b); }                       \
    template <class U,                                                                                         \
              class = metal::enable_if_t<metal::is_arithmetic<U>::value && !metal::is_same<U, bfloat>::value>> \
    SM_X constexpr bool operator op(bfloat a, U b)                                                             \
    {                                                                                                          \
        return float(a) op float(b);                                                                           \
    }                                                                                                          \
    template <class U,                                                                                         \
              class = metal::enable_if_t<metal::is_arithmetic<U>::value && !metal::is_same<U, bfloat>::value>> \
    SM_X constexpr bool operator op(U a, bfloat b)                                                             \
    {                                                                                                          \
        return float(a) op float(b);                                                                           \
    }
SM_BFLOAT_COMPARE(==)
SM_BFLOAT_COMPARE(!=)
SM_BFLOAT_COMPARE(<)
SM_BFLOAT_COMPARE(<=)
SM_BFLOAT_COMPARE(>)
SM_BFLOAT_COMPARE(>=)
#undef SM_BFLOAT_COMPARE
SM_X constexpr bfloat operator-(bfloat a) { return __builtin_bit_cast(bfloat, ushort(a.sm_bits ^ 0x8000)); }
SM_X constexpr bfloat operator+(bfloat a) { return a; }
SM_X inline bfloat &operator++(bfloat &a) { return a = a + bfloat(1); }
SM_X inline bfloat &operator--(bfloat &a) { return a = a - bfloat(1); }

namespace metal {
SM_LIMITS_REAL(bfloat, 8, 128, __builtin_bit_cast(bfloat, ushort(0x0080)), __builtin_bit_cast(bfloat, ushort(0x7f7f)),
               __builtin_bit_cast(bfloat, ushort(0x3c00)), __builtin_bit_cast(bfloat, ushort(1)), bfloat(INFINITY))
#undef SM_LIMITS_REAL
using ::bfloat;
} // namespace metal
